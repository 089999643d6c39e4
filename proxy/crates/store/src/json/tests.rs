use std::sync::Arc;

use uuid::Uuid;

use crate::record::*;
use crate::summary::SessionSummary;

fn raw(text: &str) -> RawJson {
    serde_json::value::RawValue::from_string(text.to_owned()).unwrap()
}

fn session() -> Session {
    Session {
        id: Uuid::from_u128(0x0193_a7c2_0000_7000_8000_0000_0000_0001),
        source: SessionSource::Protocol,
        key: [1; 16],
        upstream: "crm".to_owned(),
        principal: Some("h:9f2c".to_owned()),
        tenant: None,
        asserted: false,
        client: Some(Client {
            name: "claude".to_owned(),
            version: Some("2.1".to_owned()),
        }),
        protocol_version: Some("2025-11-25".to_owned()),
        started_at: 1_796_083_199_000_000,
    }
}

fn call() -> Call {
    Call {
        id: Uuid::from_u128(0x0193_a7c2_0000_7000_8000_0000_0000_0002),
        exchange_id: Uuid::from_u128(0x0193_a7c2_0000_7000_8000_0000_0000_0003),
        request_id: Some("value of x-request-id".to_owned()),
        session: Arc::new(session()),
        seq: 7,
        protocol_version: Some("2025-11-25".to_owned()),
        trace_id: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
        span_id: Some("b7ad6b7169203331".to_owned()),
        jsonrpc_id: raw("1.0"),
        tool: "search \"contacts\"".to_owned(),
        arguments: Some(raw("{\"query\":\n  \"D\\u0061na\",\r\n \"n\":1e400}")),
        outcome: Outcome::Ok,
        result: Some(raw(r#"{"content":[],"content":1.0}"#)),
        error: None,
        end: End::Complete,
        http_status: Some(200),
        started_at: 1_796_083_199_123_456,
        first_byte_us: Some(3_400),
        duration_us: Some(12_345),
        request_bytes: 180,
        response_bytes: 912,
        legs: 1,
        confirmation: None,
        catalogue: None,
        capture: Captured {
            request: Capture::Full,
            response: Capture::Truncated,
            reason: None,
        },
        events: vec![CallEvent {
            offset_ms: 3.400_000_4,
            kind: "progress".to_owned(),
        }],
        flags: vec!["duplicate_response".to_owned()],
        sample: Some(Sample {
            probability: 0.05,
            selected: false,
        }),
        http: Http::default(),
    }
}

/// The line that users see, member for member.
#[test]
fn a_call_has_the_members_of_the_design() {
    insta::assert_snapshot!(call().to_json(), @r##"{"schema":"callbox.call/1","id":"0193a7c2-0000-7000-8000-000000000002","exchange_id":"0193a7c2-0000-7000-8000-000000000003","request_id":"value of x-request-id","session":"0193a7c2-0000-7000-8000-000000000001","session_source":"protocol","seq":7,"upstream":"crm","protocol_version":"2025-11-25","principal":"h:9f2c","tenant":null,"client":{"name":"claude","version":"2.1"},"trace_id":"0af7651916cd43dd8448eb211c80319c","jsonrpc_id":1.0,"tool":"search \"contacts\"","arguments":{"query":   "D\u0061na",   "n":1e400},"outcome":"ok","result":{"content":[],"content":1.0},"error":null,"end":"complete","http_status":200,"started_at":"2026-11-30T23:59:59.123456Z","first_byte_ms":3.4,"duration_ms":12.345,"request_bytes":180,"response_bytes":912,"legs":1,"confirmation":null,"catalogue":null,"capture":{"request":"full","response":"truncated","reason":null},"events":[{"offset_ms":3.4,"kind":"progress"}],"flags":["duplicate_response"],"sample":{"probability":0.05,"selected":false},"verdicts":[]}"##);
}

#[test]
fn what_is_absent_is_null_and_unverified_identity_is_marked() {
    let session = Session {
        principal: None,
        client: None,
        protocol_version: None,
        asserted: true,
        ..session()
    };
    let call = Call {
        session: Arc::new(session),
        request_id: None,
        arguments: None,
        result: None,
        first_byte_us: None,
        duration_us: None,
        sample: None,
        http_status: None,
        outcome: Outcome::Pending,
        end: End::Open,
        trace_id: None,
        protocol_version: None,
        ..call()
    };
    insta::assert_snapshot!(call.to_json(), @r##"{"schema":"callbox.call/1","id":"0193a7c2-0000-7000-8000-000000000002","exchange_id":"0193a7c2-0000-7000-8000-000000000003","request_id":null,"session":"0193a7c2-0000-7000-8000-000000000001","session_source":"protocol","seq":7,"upstream":"crm","protocol_version":null,"principal":null,"tenant":null,"asserted":true,"client":null,"trace_id":null,"jsonrpc_id":1.0,"tool":"search \"contacts\"","arguments":null,"outcome":"pending","result":null,"error":null,"end":"open","http_status":null,"started_at":"2026-11-30T23:59:59.123456Z","first_byte_ms":null,"duration_ms":null,"request_bytes":180,"response_bytes":912,"legs":1,"confirmation":null,"catalogue":null,"capture":{"request":"full","response":"truncated","reason":null},"events":[{"offset_ms":3.4,"kind":"progress"}],"flags":["duplicate_response"],"sample":null,"verdicts":[]}"##);
}

#[test]
fn a_session_has_the_members_of_the_design() {
    let summary = SessionSummary {
        session: session(),
        last_at: 1_796_083_200_000_000,
        calls: 3,
        failed: 1,
    };
    insta::assert_snapshot!(summary.to_json(), @r##"{"schema":"callbox.session/1","id":"0193a7c2-0000-7000-8000-000000000001","source":"protocol","upstream":"crm","principal":"h:9f2c","tenant":null,"client":{"name":"claude","version":"2.1"},"protocol_version":"2025-11-25","started_at":"2026-11-30T23:59:59.000000Z","last_at":"2026-12-01T00:00:00.000000Z","calls":3,"failed":1}"##);
}

#[test]
fn a_message_as_json() {
    let message = Message {
        id: Uuid::from_u128(4),
        exchange_id: Uuid::from_u128(5),
        session: Arc::new(session()),
        direction: Direction::ServerToClient,
        kind: "request".to_owned(),
        method: Some("elicitation/create".to_owned()),
        jsonrpc_id: Some(raw("\"\\u0031\"")),
        call: Some(Uuid::from_u128(6)),
        at: 0,
        http_status: None,
        body: Some(raw("{ }")),
        flags: Vec::new(),
    };
    insta::assert_snapshot!(message.to_json(), @r##"{"schema":"callbox.message/1","id":"00000000-0000-0000-0000-000000000004","exchange_id":"00000000-0000-0000-0000-000000000005","session":"0193a7c2-0000-7000-8000-000000000001","direction":"server_to_client","kind":"request","method":"elicitation/create","jsonrpc_id":"\u0031","call":"00000000-0000-0000-0000-000000000006","at":"1970-01-01T00:00:00.000000Z","http_status":null,"body":{ },"flags":[]}"##);
}

/// Exactly one line, and JSON, whatever the recorded text looks like.
#[test]
fn it_is_one_line_of_json() {
    let line = call().to_json();
    assert!(!line.contains(['\n', '\r']));
    serde_json::from_str::<&serde_json::value::RawValue>(&line).unwrap();
}
