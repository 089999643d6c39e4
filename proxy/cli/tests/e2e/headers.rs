//! Cases about header fields: what the two sides say to each other is theirs.

use anyhow::Result;
use callbox_testkit::blocking::h2;
use http_body_util::Full;
use hyper::Request;

use crate::mcp;
use crate::stand::{Setup, Stand, flagged};

#[test]
fn b20_challenges_pass_byte_for_byte_and_apart() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let bearer = r#"Bearer realm="r", scope="a b", error="invalid_token", resource_metadata="https://mcp.example.test/.well-known/oauth-protected-resource""#;
    let basic = r#"Basic realm="other""#;
    let refused = mcp::status(
        "401 Unauthorized",
        &format!("WWW-Authenticate: {bearer}\r\nX-Between: 1\r\nWWW-Authenticate: {basic}\r\n"),
        "{}",
    );
    let (_, answer) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        refused,
    )?;
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.head.all("www-authenticate"), [bearer, basic]);
    let call = stand.call()?;
    assert_eq!(call["outcome"], "http_error");
    assert_eq!(call["http_status"], 401);
    stand.finish_whole()
}

#[test]
fn b21_host_is_kept_by_default_and_nothing_is_added() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let refused = mcp::status("421 Misdirected Request", "", "{}");
    let (asked, answer) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        refused,
    )?;
    assert_eq!(asked.head.all("host"), ["mcp.example.test"]);
    assert_eq!(answer.status(), 421, "the server's refusal passes");
    let sent: Vec<String> = asked
        .head
        .fields()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        sent,
        [
            "host",
            "content-type",
            "accept",
            "content-length",
            "x-request-id"
        ],
        "x-request-id is the only addition"
    );
    assert_eq!(
        answer.head.all("x-request-id"),
        asked.head.all("x-request-id")
    );
    assert_eq!(
        stand.call()?["request_id"].as_str().map(str::to_owned),
        asked.head.field("x-request-id")
    );
    stand.finish_whole()
}

#[test]
fn b21_host_is_rewritten_and_forwarded_fields_added_when_asked() -> Result<()> {
    let stand = Setup::default()
        .file(
            "host_header = \"rewrite\"\nforwarded = true",
            "[listen]\nstamp = \"none\"",
        )
        .start()?;
    let mut client = stand.client()?;
    let result = mcp::json(&mcp::result("1", "found"));
    let (asked, answer) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "search", "{}")),
        result,
    )?;
    assert_eq!(
        asked.head.all("host"),
        [stand.upstream.address().to_string()]
    );
    assert_eq!(asked.head.all("x-forwarded-host"), ["mcp.example.test"]);
    assert_eq!(asked.head.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(asked.head.all("x-forwarded-proto"), ["http"]);
    assert!(asked.head.all("x-request-id").is_empty(), "stamp = none");
    assert!(answer.head.all("x-request-id").is_empty(), "stamp = none");
    stand.finish_whole()
}

#[test]
fn b24_a_request_with_authority_only_is_like_one_with_host() -> Result<()> {
    let stand = Setup::default()
        .file(
            "match = { host = \"mcp.example.test\" }",
            "[listen]\nh2c = true",
        )
        .start()?;
    let ask = |authority: &str| -> Result<h2::Client> {
        let mut client = h2::Client::h2c(stand.callbox.listen)?;
        assert!(client.is_http2());
        let request = Request::post(format!("http://{authority}/mcp?x=1"))
            .header("content-type", "application/json")
            .body(Full::from(mcp::call("1", "search", "{}")))?;
        let (head, text) = client.ask(request)?;
        assert_eq!(head.status, 200, "{text}");
        Ok(client)
    };
    std::thread::scope(|scope| -> Result<()> {
        let client = scope.spawn(|| ask("mcp.example.test:8443").map(drop));
        let mut asked = stand.upstream.next()?;
        asked.send(mcp::json(&mcp::result("1", "found")))?;
        assert_eq!(asked.head.all("host"), ["mcp.example.test:8443"]);
        assert_eq!(asked.head.target(), "/mcp?x=1");
        client.join().expect("the client does not panic")
    })?;
    let mut other = h2::Client::h2c(stand.callbox.listen)?;
    let request = Request::post("http://else.example.test/mcp").body(Full::from("{}"))?;
    let (head, _) = other.ask(request)?;
    assert_eq!(head.status, 502);
    assert_eq!(head.headers["callbox-fault"], "no-route");
    assert_eq!(stand.call()?["outcome"], "ok");
    stand.finish_whole()
}

#[test]
fn b32_a_coded_name_is_decoded_before_it_is_compared() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let coded = "=?base64?5pCc57Si?=";
    let request = mcp::modern(
        "1",
        "tools/call",
        Some(coded),
        r#""name":"搜索","arguments":{}"#,
    );
    let result =
        mcp::json(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#);
    let (asked, _) = stand.trade(&mut client, request, &result)?;
    assert_eq!(asked.head.all("mcp-name"), [coded], "forwarded as it is");

    let differs = mcp::modern(
        "1",
        "tools/call",
        Some("delete"),
        r#""name":"search","arguments":{}"#,
    );
    stand.trade(&mut client, differs, &result)?;
    let calls = stand.calls(2)?;
    assert_eq!(calls[0]["tool"], "搜索");
    assert!(!flagged(&calls[0], "header_mismatch"), "{:#}", calls[0]);
    assert_eq!(calls[1]["tool"], "search", "the body counts");
    assert!(flagged(&calls[1], "header_mismatch"), "{:#}", calls[1]);
    stand.finish_whole()
}

#[test]
fn b37_trace_ids_are_read_and_none_is_injected() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let trace = |digit: &str| digit.repeat(32);
    let parent = |digit: &str| format!("00-{}-{}-01", trace(digit), digit.repeat(16));
    let with_meta = |digit: &str| {
        let params = format!(
            r#"{{"name":"search","arguments":{{}},"_meta":{{"traceparent":"{}"}}}}"#,
            parent(digit)
        );
        mcp::request("1", "tools/call", &params)
    };
    let with_header = |digit: &str| format!("traceparent: {}\r\n", parent(digit));
    let plain = mcp::call("1", "search", "{}");
    let requests = [
        mcp::post_with(&with_header("a"), &plain),
        mcp::post(&with_meta("b")),
        mcp::post_with(&with_header("c"), &with_meta("c")),
        mcp::post(&plain),
    ];
    for request in &requests {
        let (asked, _) =
            stand.trade(&mut client, request, mcp::json(&mcp::result("1", "found")))?;
        let sent = request.contains("traceparent: ");
        assert_eq!(
            asked.head.field("traceparent").is_some(),
            sent,
            "nothing is injected"
        );
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert_eq!(asked.body()?, body.as_bytes());
    }
    let calls = stand.calls(4)?;
    let found: Vec<Option<&str>> = calls.iter().map(|call| call["trace_id"].as_str()).collect();
    let (a, b, c) = (trace("a"), trace("b"), trace("c"));
    assert_eq!(found, [Some(a.as_str()), Some(&b), Some(&c), None]);
    stand.finish_whole()
}

#[test]
fn routes_by_path_go_to_their_own_upstream() -> Result<()> {
    let other = callbox_testkit::blocking::Upstream::start()?;
    let stand = Setup::default()
        .file(
            &format!(
                "match = {{ path_prefix = \"/crm\" }}\n[[upstream]]\nname = \"other\"\nurl = \"{}\"",
                other.url()
            ),
            "",
        )
        .start()?;
    let mut client = stand.client()?;
    let body = mcp::call("1", "search", "{}");
    client.send(mcp::post_to("/crm/mcp", "", &body))?;
    let mut asked = stand.upstream.next()?;
    assert_eq!(asked.head.target(), "/crm/mcp");
    asked.send(mcp::json(&mcp::result("1", "crm")))?;
    assert!(client.answer()?.text().contains("crm"));
    client.send(mcp::post_to("/crmx", "", &body))?;
    let mut asked = other.next()?;
    asked.send(mcp::json(&mcp::result("1", "other")))?;
    assert!(client.answer()?.text().contains("other"));
    let calls = stand.calls(2)?;
    assert_eq!(calls[0]["upstream"], "crm");
    assert_eq!(calls[1]["upstream"], "other");
    stand.finish_whole()
}
