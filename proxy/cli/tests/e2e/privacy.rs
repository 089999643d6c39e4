//! Cases about secrets: none is at rest, and what tells calls apart is never rewritten.

use anyhow::{Context as _, Result};
use callbox_testkit::process::Callbox;

use crate::at_rest::AtRest;
use crate::mcp::{self, Session};
use crate::stand::{Stand, binary};

/// Shown in some record: proves that the search finds what is there.
const CONTROL: &str = "plain-control-text";

#[test]
fn b38_correlation_fields_are_never_rewritten() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    // A card number by its digits, as an id: grouped and with a valid check digit.
    let looks_like_card = "4111-1111-1111-1111";
    let session = Session::open(&stand, &mut client, "2025-06-18", "5500000000000004")?;
    let ids: Vec<String> = (0..200)
        .map(|n| {
            uuid::Uuid::from_u128(0x4111_1111_1111_1111_4111_1111_1111_1111 + (n << 40)).to_string()
        })
        .chain([looks_like_card.to_owned()])
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let trace = format!("00-{n:032x}-00f067aa0ba902b7-01")
            .replace("0000000000000000", "4111111111111111");
        let body = mcp::call(
            &format!("\"{id}\""),
            "search",
            &format!(r#"{{"contact_id":"{id}x"}}"#),
        );
        let request = session.post(&body).replacen(
            "\r\n",
            &format!("\r\nX-Request-Id: {id}\r\ntraceparent: {trace}\r\n"),
            1,
        );
        stand.trade(
            &mut client,
            request,
            mcp::json(&mcp::result(&format!("\"{id}\""), "ok")),
        )?;
    }
    let calls = stand.calls(ids.len())?;
    for (call, id) in calls.iter().zip(&ids) {
        assert_eq!(call["request_id"], id.as_str());
        assert_eq!(call["jsonrpc_id"], id.as_str());
        assert_eq!(call["outcome"], "ok");
        assert!(
            call["trace_id"]
                .as_str()
                .is_some_and(|trace| trace.contains("4111111111111111"))
        );
    }
    let uuids = calls
        .iter()
        .zip(&ids)
        .take(200)
        .filter(|(call, id)| call["arguments"]["contact_id"] == format!("{id}x"));
    assert_eq!(uuids.count(), 200, "UUIDs in arguments are no card numbers");
    stand.finish_whole()
}

#[test]
fn b39_each_enabled_kind_is_masked() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let kinds = [
        ("phone", "(555)0100123"),
        ("ssn", "219-09-9999"),
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("card", "4111 1111 1111 1111"),
        ("email", "dana.kim@northwind.example"),
        (
            "jwt",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJkYW5hIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        ),
    ];
    let text = kinds
        .map(|(kind, value)| format!("{kind} is {value};"))
        .join(" ");
    let body = mcp::call(
        "1",
        "note",
        &format!(r#"{{"text":"{text}","note":"{CONTROL}"}}"#),
    );
    let answer = mcp::json(&mcp::result("1", &text));
    let (asked, answered) = stand.trade(&mut client, mcp::post(&body), answer)?;
    assert_eq!(asked.body()?, body.as_bytes(), "the wire is untouched");
    assert!(answered.text().contains(&text), "the wire is untouched");
    let call = stand.call()?;
    let argument = call["arguments"]["text"].to_string();
    assert_eq!(
        call["result"]["content"][0]["text"].to_string(),
        argument,
        "equal placeholders"
    );
    for (kind, value) in kinds {
        assert!(!argument.contains(value), "{kind} in {argument}");
        assert!(
            argument.contains(&format!("{kind} is [redacted:{kind}:")),
            "{kind} in {argument}"
        );
    }
    assert!(!AtRest::of(&stand)?.places(CONTROL).is_empty());
    AtRest::of(&stand)?.has_none_of(&kinds.map(|(_, value)| value))?;
    stand.finish_whole()
}

#[test]
fn b39_a_kind_that_does_not_exist_is_refused_at_start() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let refused = Callbox::up(
        binary(),
        "http://127.0.0.1:9",
        &folder.path().join("data"),
        &[],
        &[(
            "CALLBOX__RECORD__REDACT__DETECTORS",
            r#"["email", "passport"]"#,
        )],
    );
    let message = refused.err().context("it started")?.to_string();
    assert!(message.contains("record.redact.detectors"), "{message}");
    assert!(
        message.contains("passport") && message.contains("phone"),
        "found and allowed: {message}"
    );
    Ok(())
}

#[test]
fn b40_secrets_in_query_cookies_and_tokens_are_nowhere_on_disk() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let secrets = [
        "K1-query-canary",
        "K2-set-cookie-canary",
        "K3-access-canary",
        "K4-bearer-canary",
        "K5-cookie-canary",
        "K6-api-header-canary",
        "K7-form-canary",
        "K8-session-canary",
    ];
    let [
        query,
        set_cookie,
        access,
        bearer,
        cookie,
        api,
        form,
        session_id,
    ] = secrets;
    let fields = format!(
        "Authorization: Bearer {bearer}\r\nCookie: sid={cookie}; theme=dark\r\nX-Api-Key: {api}\r\n\
         Mcp-Session-Id: {session_id}\r\nUser-Agent: {CONTROL}\r\n"
    );
    let target = format!("/mcp?api_key={query}&page=2");
    let answer = mcp::status(
        "200 OK",
        &format!("Set-Cookie: s={set_cookie}; HttpOnly\r\nMcp-Session-Id: {session_id}\r\n"),
        &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"access_token": "{access}","n":1}}}}"#),
    );
    let request = mcp::post_to(
        &target,
        &fields,
        &mcp::call("1", "login", r#"{"user":"dana"}"#),
    );
    let (asked, answered) = stand.trade(&mut client, request, &answer)?;
    assert_eq!(asked.head.target(), target);
    assert_eq!(
        asked.head.all("cookie"),
        [format!("sid={cookie}; theme=dark")]
    );
    assert!(answered.text().contains(access));
    let login = format!("grant_type=client_credentials&client_secret={form}");
    let token = format!(
        "POST /token HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{login}",
        login.len()
    );
    stand.trade(
        &mut client,
        token,
        mcp::json(&format!(r#"{{"refresh_token":"{access}"}}"#)),
    )?;
    stand.call()?;
    stand.callbox.reconcile()?;
    let running = AtRest::of(&stand)?;
    assert!(
        !running
            .places("client_credentials")
            .iter()
            .any(|place| place.contains("unpacked"))
    );
    running.has_none_of(&secrets)?;
    let call = stand.call()?;
    assert!(
        call["principal"]
            .as_str()
            .is_some_and(|principal| principal.starts_with("h:"))
    );
    stopped(stand, &secrets)
}

/// Stops callbox and looks again.
pub(crate) fn stopped(mut stand: Stand, secrets: &[&str]) -> Result<()> {
    stand.callbox.reconcile()?;
    assert_eq!(stand.callbox.stop()?.code(), Some(0));
    AtRest::of(&stand)?.has_none_of(secrets)
}

#[test]
fn b41_secrets_in_arguments_urls_and_nested_json_are_masked() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    let secrets = ["K4-userinfo-canary", "K5-nested-canary", "K6-deep-canary"];
    let arguments = r#"{"url":"https://u:K4-userinfo-canary@h.test/x","cfg":"{\"password\":\"K5-nested-canary\",\"n\":1.0}","deep":[{"clientSecret":null,"api-key":["K6-deep-canary"]}],"query":"plain-control-text"}"#;
    let result = mcp::json(&mcp::result("1", "ok"));
    let (asked, _) = stand.trade(
        &mut client,
        mcp::post(&mcp::call("1", "connect", arguments)),
        result,
    )?;
    assert!(
        String::from_utf8(asked.body()?)?.contains(arguments),
        "the wire is untouched"
    );
    let call = stand.call()?;
    let url = call["arguments"]["url"].to_string();
    assert!(url.contains("h.test/x"), "the rest of the URL stays: {url}");
    let nested = call["arguments"]["cfg"]
        .as_str()
        .context("still a string")?;
    assert!(
        nested.contains("\"n\":1.0"),
        "the rest of the nested JSON stays: {nested}"
    );
    assert_eq!(call["arguments"]["query"], CONTROL);
    AtRest::of(&stand)?.has_none_of(&secrets)?;
    stopped(stand, &secrets)
}

#[test]
fn payloads_can_be_left_out() -> Result<()> {
    let stand = Stand::with(&[("RECORD__PAYLOADS", "none")])?;
    let mut client = stand.client()?;
    let request = mcp::post(&mcp::call("1", "search", r#"{"query":"not-to-be-kept"}"#));
    stand.trade(
        &mut client,
        request,
        mcp::json(&mcp::result("1", "nor-this")),
    )?;
    let call = stand.call()?;
    assert_eq!(call["tool"], "search");
    assert_eq!(call["outcome"], "ok");
    assert!(call["response_bytes"].as_u64() > Some(0));
    AtRest::of(&stand)?.has_none_of(&["not-to-be-kept", "nor-this"])?;
    stand.finish_whole()
}

#[test]
fn an_erased_session_leaves_nothing_while_callbox_runs() -> Result<()> {
    let stand = Stand::up()?;
    let mut client = stand.client()?;
    for (id, text) in [("s-gone", "to-be-forgotten"), ("s-kept", CONTROL)] {
        let session = Session::open(&stand, &mut client, "2025-06-18", id)?;
        let body = mcp::call("1", "search", &format!(r#"{{"query":"{text}"}}"#));
        stand.trade(
            &mut client,
            session.post(&body),
            mcp::json(&mcp::result("1", text)),
        )?;
    }
    let calls = stand.calls(2)?;
    let session = calls[0]["session"].as_str().context("a session")?;
    stand
        .callbox
        .query(&["erase", "--session", session, "--yes"])?;
    let at_rest = AtRest::of(&stand)?;
    at_rest.has_none_of(&["to-be-forgotten", session])?;
    assert!(!at_rest.places(CONTROL).is_empty(), "the other one stays");
    let again = Session {
        version: "2025-06-18".to_owned(),
        id: "s-kept".to_owned(),
    };
    stand.trade(
        &mut client,
        again.post(&mcp::call("2", "search", "{}")),
        mcp::json(&mcp::result("2", "found")),
    )?;
    stand.calls(2)?;
    stand.finish_whole()
}

#[test]
fn files_are_for_their_owner_only() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let stand = Stand::up()?;
    for entry in std::fs::read_dir(stand.data())? {
        let entry = entry?;
        let mode = entry.metadata()?.permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.path());
    }
    stand.finish_whole()
}
