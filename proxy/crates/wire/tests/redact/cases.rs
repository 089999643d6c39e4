//! Faults of neighbouring products that must not be ours, by their numbers in the case list: B38 to B41.

use callbox_wire::redact::{Detector, Place};

use crate::{ARGUMENTS, RESULT, only, redactor, shape};

/// A small generator with a fixed seed (splitmix64): the same ids in every run.
struct Ids(u64);

impl Ids {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }

    /// Every third one of decimal digits only, which is where careless rules see cards and phones.
    fn uuid(&mut self) -> String {
        let mut hex = self.hex();
        if self.0.is_multiple_of(3) {
            hex = hex
                .bytes()
                .map(|byte| char::from(b'0' + byte % 10))
                .collect();
        }
        let part = |from: usize, to: usize| hex.get(from..to).unwrap();
        format!(
            "{}-{}-{}-{}-{}",
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32)
        )
    }
}

#[test]
fn b38_correlation_is_never_rewritten() {
    let redactor = redactor();
    let mut ids = Ids(38);
    for n in 0..10_000 {
        let (uuid, other, trace) = (ids.uuid(), ids.uuid(), ids.hex());
        let span = trace.get(..16).unwrap();
        assert_eq!(redactor.header("x-request-id", &uuid), uuid);
        assert_eq!(redactor.text(&uuid), uuid);
        let text = format!("session {uuid}, trace {trace} ({other}) at 1764547{n:06}.123456");
        assert_eq!(redactor.text(&text), text);
        let path = format!("/v1/{uuid}?task={other}&span={span}");
        assert_eq!(redactor.target(&path), path);
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":"{uuid}","method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":"{other}","traceparent":"00-{trace}-{span}-01"}},"arguments":{{"session":"{uuid}","key":"{trace}","n":{n}.5,"at":1764547199{n:06}}}}}}}"#
        );
        assert_eq!(redactor.json(&message, Place::Message), message);
        let result = format!(
            r#"{{"resultType":"task","taskId":"{uuid}","createdAt":"2026-11-30T23:59:59.{n:06}Z","ttlMs":{n}}}"#
        );
        assert_eq!(redactor.json(&result, RESULT), result);
    }
    // Even where such a field looks like content.
    let message = r#"{"jsonrpc":"2.0","id":"4111 1111 1111 1111","params":{"requestId":"(555)0100123","_meta":{"progressToken":"a@b.example"}}}"#;
    assert_eq!(redactor.json(message, Place::Message), message);
    for (name, value) in [
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("x-request-id", "4111 1111 1111 1111"),
        ("mcp-protocol-version", "2025-11-25"),
        ("last-event-id", "415-555-0123"),
    ] {
        assert_eq!(redactor.header(name, value), value);
    }
}

#[test]
fn b39_each_kind_is_masked_or_refused() {
    let text = "Call (555)0100123, SSN 123-45-6789, licence D1234567, passport C01X00T47, account DE89 3704 0044 0532 0130 00, \
                card 4111-1111-1111-1111, mail dana@northwind.example";
    let expected = "Call [phone], SSN [ssn], licence D1234567, passport C01X00T47, account [iban], card [card], mail [email]";
    let redactor = redactor();
    assert_eq!(shape(&redactor.text(text)), expected);
    let json = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let out = shape(&redactor.json(&json, RESULT));
    assert_eq!(
        out,
        format!(r#"{{"content":[{{"type":"text","text":"{expected}"}}]}}"#)
    );
    assert_eq!(
        shape(&only(Detector::Phone).text("at (555)0100123.")),
        "at [phone]."
    );
    for unsupported in ["licence", "passport", "account", "Phone", ""] {
        let refused = unsupported.parse::<Detector>().unwrap_err().to_string();
        assert!(
            refused.contains("is not supported: write one of pem, jwt"),
            "{refused}"
        );
    }
}

#[test]
fn b40_secrets_of_targets_cookies_forms_and_bodies() {
    let redactor = redactor();
    assert_eq!(
        shape(&redactor.target("/mcp?api_key=K1")),
        "/mcp?api_key=[key]"
    );
    assert_eq!(
        shape(&redactor.target("/mcp?x=1&API%5FKey=K1&y=2")),
        "/mcp?x=1&API%5FKey=[key]&y=2"
    );
    assert_eq!(
        shape(&redactor.header("Set-Cookie", "s=K2; Path=/; HttpOnly; Max-Age=60")),
        "s=[key]; Path=/; HttpOnly; Max-Age=60"
    );
    assert_eq!(
        shape(&redactor.header("cookie", "s=K2; theme=K2b; K2c")),
        "s=[key]; theme=[key]; [key]"
    );
    assert_eq!(
        shape(&redactor.json(
            r#"{"access_token": "K3", "token_type": "Bearer", "expires_in": 3600}"#,
            RESULT
        )),
        r#"{"access_token": "[key]", "token_type": "Bearer", "expires_in": 3600}"#
    );
    assert_eq!(
        shape(&redactor.text("grant_type=client_credentials&client_secret=K3&scope=crm")),
        "grant_type=client_credentials&client_secret=[key]&scope=crm"
    );
    assert_eq!(
        shape(&redactor.text("client_secret=K3&grant_type=x")),
        "client_secret=[key]&grant_type=x"
    );
}

#[test]
fn b41_secrets_in_urls_and_in_strings_that_hold_json() {
    let redactor = redactor();
    let arguments = r#"{"url":"https://u:K4@h.test/","cfg":"{\"password\":\"K5\"}"}"#;
    assert_eq!(
        shape(&redactor.json(arguments, ARGUMENTS)),
        r#"{"url":"https://[url]@h.test/","cfg":"{\"password\":\"[key]\"}"}"#
    );
    // Twice over, and with a value that is no string.
    let deeper = r#"{"cfg":"{\"inner\":\"{\\\"password\\\":12345,\\\"n\\\":1.0}\"}"}"#;
    assert_eq!(
        shape(&redactor.json(deeper, ARGUMENTS)),
        r#"{"cfg":"{\"inner\":\"{\\\"password\\\":\\\"[key]\\\",\\\"n\\\":1.0}\"}"}"#
    );
    assert_eq!(
        shape(&redactor.text(r"event: x, https:\/\/u:K4@h.test\/")),
        r"event: x, https:\/\/[url]@h.test\/"
    );
    assert_eq!(
        shape(&redactor.json(r#"["https:\/\/u:K4@h.test\/"]"#, ARGUMENTS)),
        r#"["https:\/\/[url]@h.test\/"]"#
    );
}
