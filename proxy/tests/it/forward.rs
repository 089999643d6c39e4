//! What passes, and how: methods, targets, fields, bodies, trailers.

use callbox_config::{HostHeader, Stamp};
use callbox_proxy::tap::BodyEnd;
use callbox_testkit::peer::Head;

use super::harness::{exchange, over, pair};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn fields(head: &Head) -> Vec<(&str, &str)> {
    head.fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[tokio::test]
async fn a_call_passes_and_is_recorded() {
    let (asked, answered, callbox) = exchange(
        "POST /mcp?a=1&b=%2F HTTP/1.1\r\nHost: mcp.example.test\r\nX-Request-ID: mine\r\ncontent-length: 4\r\n\r\nping",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 4\r\n\r\npong",
    )
    .await;
    assert_eq!(asked.head.line, "POST /mcp?a=1&b=%2F HTTP/1.1");
    assert_eq!(
        fields(&asked.head),
        [
            ("Host", "mcp.example.test"),
            ("X-Request-ID", "mine"),
            ("content-length", "4")
        ],
        "nothing added, nothing renamed"
    );
    assert_eq!(asked.body, b"ping");
    assert_eq!(answered.head.line, "HTTP/1.1 200 OK");
    assert_eq!(
        fields(&answered.head),
        [
            ("Content-Type", "application/json"),
            ("content-length", "4"),
            ("x-request-id", "mine")
        ]
    );
    assert_eq!(answered.body, b"pong");
    let seen = callbox.observed.ended();
    assert_eq!(
        seen.events,
        [
            "request",
            "request chunk",
            "request end",
            "response",
            "response chunk",
            "end"
        ]
    );
    assert_eq!(
        (seen.target.as_str(), seen.request_id.as_deref()),
        ("/mcp?a=1&b=%2F", Some("mine"))
    );
    assert_eq!(
        (seen.request.as_slice(), seen.response.as_slice()),
        (b"ping".as_slice(), b"pong".as_slice())
    );
    assert_eq!(
        (seen.request_end, seen.end),
        (Some(BodyEnd::Complete), Some(BodyEnd::Complete))
    );
    assert_eq!((seen.status, seen.fault), (Some(200), None));
    assert_eq!(
        seen.request_headers,
        "host: mcp.example.test\nx-request-id: mine\ncontent-length: 4\n"
    );
}

#[tokio::test]
async fn every_method_and_target_passes_as_it_came() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let targets = [
        "/",
        "//double//slash",
        "/a/../b/./c",
        "/%2e%2E/%zz",
        "/a;b=c,d",
        "/?",
        "/?q=a+b&&x",
        "/a?b?c",
        "/{tool}|x^\"",
        "/.well-known/oauth-protected-resource/mcp",
    ];
    for target in targets {
        for method in [
            "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X-own",
        ] {
            let request = format!("{method} {target} HTTP/1.1\r\nhost: h\r\n\r\n");
            let (asked, _) = over(&callbox, &mut connections, &request, OK)
                .await
                .unwrap();
            assert_eq!(asked.head.line, format!("{method} {target} HTTP/1.1"));
            assert!(
                asked.head.all("content-length").is_empty(),
                "no length is invented: {:?}",
                asked.head
            );
            assert!(asked.head.all("transfer-encoding").is_empty());
        }
    }
    let (asked, _) = over(
        &callbox,
        &mut connections,
        "OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n",
        OK,
    )
    .await
    .unwrap();
    assert_eq!(asked.head.line, "OPTIONS * HTTP/1.1");
}

#[tokio::test]
async fn the_absolute_form_becomes_the_origin_form_with_its_host() {
    let (asked, _, _callbox) = exchange(
        "GET http://real.test:81/x?y HTTP/1.1\r\nHost: other.test\r\n\r\n",
        OK,
    )
    .await;
    assert_eq!(asked.head.line, "GET /x?y HTTP/1.1");
    assert_eq!(asked.head.one("host"), Some("real.test:81"));
}

#[tokio::test]
async fn repeated_fields_stay_apart_in_order_and_case() {
    let (asked, answered, _callbox) = exchange(
        "GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-B: \r\nX-a: 2, 3\r\nCookie: a=1\r\ncookie: b=2\r\nMCP-Protocol-Version: 2025-11-25\r\nx-request-id: r\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"r\", scope=\"a b\", error=\"invalid_token\"\r\nSet-Cookie: a=1\r\nwww-authenticate: Basic realm=\"x\"\r\nSet-Cookie: b=2\r\nX-Bytes: caf\u{e9}\r\nServer: s\r\nx-request-id: theirs\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    assert_eq!(asked.head.all("x-a"), ["1", "2, 3"]);
    assert_eq!(asked.head.all("cookie"), ["a=1", "b=2"]);
    let names: Vec<_> = asked
        .head
        .fields
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "Host",
            "X-A",
            "X-a",
            "x-B",
            "Cookie",
            "cookie",
            "MCP-Protocol-Version",
            "x-request-id"
        ]
    );
    assert_eq!(answered.head.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(
        answered.head.all("www-authenticate"),
        [
            "Bearer realm=\"r\", scope=\"a b\", error=\"invalid_token\"",
            "Basic realm=\"x\""
        ]
    );
    assert_eq!(answered.head.one("x-bytes"), Some("caf\u{e9}"));
    assert_eq!(
        answered.head.one("x-request-id"),
        Some("theirs"),
        "the server's own is kept"
    );
    assert!(answered.head.all("date").is_empty(), "no date is invented");
}

#[tokio::test]
async fn b20_challenges_pass_byte_for_byte() {
    let challenge = "Bearer realm=\"r\", scope=\"a b\", error=\"invalid_token\", resource_metadata=\"https://h/.well-known\"";
    let response = format!(
        "HTTP/1.1 401 Nope, sorry\r\nWWW-Authenticate: {challenge}\r\nWWW-Authenticate: DPoP algs=\"ES256\"\r\ncontent-length: 0\r\n\r\n"
    );
    let (_, answered, _callbox) = exchange(
        "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n",
        response,
    )
    .await;
    assert_eq!(
        answered.head.line, "HTTP/1.1 401 Nope, sorry",
        "the reason, too"
    );
    assert_eq!(
        answered.head.all("www-authenticate"),
        [challenge, "DPoP algs=\"ES256\""]
    );
}

#[tokio::test]
async fn hop_by_hop_fields_stay_behind_and_mcp_fields_never_do() {
    let (asked, answered, _callbox) = exchange(
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Hop, Mcp-Session-Id, Authorization\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nMcp-Session-Id: s\r\nAuthorization: Bearer t\r\nProxy-Connection: x\r\nUpgrade: websocket\r\nLast: 1\r\nx-request-id: r\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nMcp-Session-Id: s\r\nA: 1\r\nx-request-id: r\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    assert_eq!(
        fields(&asked.head),
        [
            ("Host", "h"),
            ("Mcp-Session-Id", "s"),
            ("Authorization", "Bearer t"),
            ("Last", "1"),
            ("x-request-id", "r")
        ]
    );
    assert_eq!(
        fields(&answered.head),
        [
            ("Mcp-Session-Id", "s"),
            ("A", "1"),
            ("x-request-id", "r"),
            ("content-length", "0")
        ]
    );
}

#[tokio::test]
async fn bodyless_answers_keep_their_length_field() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    for (request, response, length) in [
        (
            "HEAD / HTTP/1.1\r\nhost: h\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n",
            Some("1234"),
        ),
        (
            "HEAD / HTTP/1.1\r\nhost: h\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            None,
        ),
        (
            "GET / HTTP/1.1\r\nhost: h\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 1234\r\n\r\n",
            Some("1234"),
        ),
        (
            "GET / HTTP/1.1\r\nhost: h\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
            None,
        ),
        (
            "DELETE / HTTP/1.1\r\nhost: h\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            None,
        ),
        (
            "DELETE / HTTP/1.1\r\nhost: h\r\n\r\n",
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            Some("0"),
        ),
        (
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            Some("0"),
        ),
    ] {
        let mut client = callbox.client().await;
        client.send(request).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_head().await.unwrap();
        upstream.send(response).await.unwrap();
        let head = client.read_head().await.unwrap();
        assert_eq!(head.one("content-length"), length, "{response:?}");
        assert!(head.all("transfer-encoding").is_empty(), "{response:?}");
        // The connection goes on: the next head follows at once, no body in between.
        client
            .send("GET /next HTTP/1.1\r\nhost: h\r\n\r\n")
            .await
            .unwrap();
        let next = upstream.read_head().await.unwrap();
        assert_eq!(
            next.line, "GET /next HTTP/1.1",
            "the upstream connection is used again"
        );
        upstream
            .send("HTTP/1.1 299 Next\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(client.read_head().await.unwrap().line, "HTTP/1.1 299 Next");
    }
}

#[tokio::test]
async fn chunked_stays_chunked_and_a_length_stays_a_length() {
    let (asked, answered, _callbox) = exchange(
        "POST / HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\n\r\n",
    )
    .await;
    assert_eq!(
        (asked.head.all("transfer-encoding"), asked.body.as_slice()),
        (vec!["chunked"], b"abc".as_slice())
    );
    assert!(asked.head.all("content-length").is_empty());
    assert_eq!(
        (
            answered.head.all("transfer-encoding"),
            answered.body.as_slice()
        ),
        (vec!["chunked"], b"xyz".as_slice())
    );
    assert!(answered.head.all("content-length").is_empty());
    // A GET with a chunked body has one, too.
    let (asked, _, _callbox) = exchange(
        "GET / HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        OK,
    )
    .await;
    assert_eq!(asked.body, b"abc");
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let (asked, answered, _callbox) = exchange(
        "POST / HTTP/1.1\r\nhost: h\r\nTE: trailers\r\nConnection: TE\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\nX-Sum: 7\r\n\r\n",
    )
    .await;
    assert_eq!(asked.head.one("te"), Some("trailers"), "offered on");
    assert_eq!(asked.head.one("trailer"), Some("X-Sum"));
    assert_eq!(asked.trailers, [("x-sum".to_owned(), "9".to_owned())]);
    assert_eq!(answered.trailers, [("x-sum".to_owned(), "7".to_owned())]);
}

#[tokio::test]
async fn an_old_client_gets_what_it_understands() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.0\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    let asked = upstream.read_message().await.unwrap();
    assert_eq!(
        (asked.head.line.as_str(), asked.body.as_slice()),
        ("POST / HTTP/1.1", b"hi".as_slice())
    );
    upstream
        .send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
        .await
        .unwrap();
    let answered = client.read_message().await.unwrap();
    assert_eq!(answered.head.line, "HTTP/1.0 200 OK");
    assert!(answered.head.all("transfer-encoding").is_empty());
    assert_eq!(answered.body, b"ok");
}

#[tokio::test]
async fn an_old_upstream_is_understood_and_not_used_twice() {
    let (callbox, mut connections, upstream) = pair(|_| {}).await;
    let request =
        "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    for _ in 0..2 {
        let (asked, answered) = over(
            &callbox,
            &mut connections,
            request,
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
        )
        .await
        .unwrap();
        assert_eq!(
            (asked.head.line.as_str(), asked.body.as_slice()),
            ("POST / HTTP/1.1", b"hi".as_slice())
        );
        assert_eq!(answered.head.line, "HTTP/1.1 200 OK");
    }
    assert_eq!(upstream.accepted(), 2);
}

#[tokio::test]
async fn the_body_waits_for_the_upstreams_100() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\nExpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    let head = upstream.read_head().await.unwrap();
    assert_eq!(
        head.one("expect"),
        Some("100-continue"),
        "the expectation is the upstream's to meet"
    );
    upstream
        .send("HTTP/1.1 100 Continue\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(
        client.read_head().await.unwrap().line,
        "HTTP/1.1 100 Continue"
    );
    client.send("body").await.unwrap();
    assert_eq!(upstream.read_exact(4).await.unwrap(), b"body");
    upstream.send(OK).await.unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
}

#[tokio::test]
async fn a_refusal_instead_of_100_reaches_the_client_without_one() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\nExpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream
        .send("HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(
        client.read_head().await.unwrap().line,
        "HTTP/1.1 417 Expectation Failed",
        "no 100 before it"
    );
}

#[tokio::test]
async fn an_upstream_that_ignores_the_expectation_gets_the_body() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\nExpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    assert_eq!(
        client.read_head().await.unwrap().line,
        "HTTP/1.1 100 Continue",
        "after a second"
    );
    client.send("body").await.unwrap();
    assert_eq!(upstream.read_exact(4).await.unwrap(), b"body");
    drop(callbox);
}

#[tokio::test]
async fn the_stamp_is_the_exchange_id_and_comes_back() {
    let (asked, answered, callbox) = exchange("GET / HTTP/1.1\r\nhost: h\r\n\r\n", OK).await;
    let id = asked.head.one("x-request-id").unwrap();
    assert_eq!(answered.head.one("x-request-id"), Some(id));
    assert_eq!(callbox.observed.ended().request_id.as_deref(), Some(id));
    assert_eq!(id.as_bytes()[14], b'7', "a UUID v7: {id}");
}

#[tokio::test]
async fn without_a_stamp_nothing_is_added() {
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.stamp = Stamp::None).await;
    let (asked, answered) = over(
        &callbox,
        &mut connections,
        "GET / HTTP/1.1\r\nhost: h\r\n\r\n",
        OK,
    )
    .await
    .unwrap();
    assert_eq!(fields(&asked.head), [("host", "h")]);
    assert_eq!(fields(&answered.head), [("content-length", "2")]);
}

#[tokio::test]
async fn b21_host_is_kept_or_rewritten_as_configured() {
    let request = "GET / HTTP/1.1\r\nHost: mcp.example.test\r\nOrigin: https://app.test\r\n\r\n";
    let (asked, _, _callbox) = exchange(request, OK).await;
    assert_eq!(asked.head.one("host"), Some("mcp.example.test"));
    assert!(asked.head.all("x-forwarded-for").is_empty());
    let (callbox, mut connections, upstream) = pair(|settings| {
        settings.upstreams[0].host_header = HostHeader::Rewrite;
        settings.upstreams[0].forwarded = true;
    })
    .await;
    let (asked, _) = over(&callbox, &mut connections, request, OK).await.unwrap();
    assert_eq!(
        asked.head.one("host"),
        Some(upstream.address().to_string().as_str())
    );
    assert_eq!(asked.head.one("origin"), Some("https://app.test"));
    assert_eq!(
        asked.head.one("x-forwarded-host"),
        Some("mcp.example.test"),
        "the client's, not the rewritten one"
    );
    assert_eq!(asked.head.one("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(asked.head.one("x-forwarded-proto"), Some("http"));
}

#[tokio::test]
async fn b13_a_405_passes_once_with_its_allow() {
    let (_, answered, callbox) = exchange(
        "GET /mcp HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\n\r\n",
        "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    assert_eq!(
        (answered.head.status(), answered.head.one("allow")),
        (405, Some("POST"))
    );
    assert_eq!(callbox.observed.ended().status, Some(405));
}

#[tokio::test]
async fn b15_a_404_with_a_json_rpc_body_passes_as_it_is() {
    let body =
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#;
    let response = format!(
        "HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_, answered, _callbox) = exchange(
        "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n",
        response,
    )
    .await;
    assert_eq!(
        (answered.head.status(), answered.body.as_slice()),
        (404, body.as_bytes())
    );
}

#[tokio::test]
async fn b08_compressed_bytes_pass_with_their_fields() {
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0x00];
    let mut response = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\ncontent-length: 12\r\nVary: Accept-Encoding\r\n\r\n".to_vec();
    response.extend_from_slice(&gzip);
    let (asked, answered, callbox) = exchange(
        "GET / HTTP/1.1\r\nhost: h\r\nAccept-Encoding: gzip;q=1.0, br\r\n\r\n",
        response,
    )
    .await;
    assert_eq!(asked.head.one("accept-encoding"), Some("gzip;q=1.0, br"));
    assert_eq!(
        (
            answered.head.one("content-encoding"),
            answered.body.as_slice()
        ),
        (Some("gzip"), gzip.as_slice())
    );
    assert_eq!(
        callbox.observed.ended().response,
        gzip,
        "the copy is what passed"
    );
}
