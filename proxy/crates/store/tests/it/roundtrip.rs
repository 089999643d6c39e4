//! What is stored comes back, to the last character of its spelling.

use std::cell::RefCell;
use std::sync::Arc;

use callbox_store::{
    Call, CallEvent, Capture, Captured, Catalogue, Client, Direction, End, Http, Message, Outcome,
    RawJson, Reader, Record, Sample, Session, SessionSource, open,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::sample::{NOON, message, options, raw, session, store};

/// JSON as peers spell it, not as a serialiser would.
fn json() -> impl Strategy<Value = RawJson> {
    let scalar = prop_oneof![
        Just("1e400".to_owned()),
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just(r#""\u0041\/\ud83d\ude00""#.to_owned()),
        Just(r#""<a href=\"x\">&""#.to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<f64>()
            .prop_filter("JSON has no such number", |number| number.is_finite())
            .prop_map(|number| number.to_string()),
        "[ -!#-\\[\\]-~\u{e9}\u{4e16}\u{1f600}]{0,40}".prop_map(|text| format!("\"{text}\"")),
    ];
    scalar
        .prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(" ,"))),
                prop::collection::vec(("[a-z]{1,6}", inner), 0..4).prop_map(|members| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(name, value)| format!("\"{name}\" : {value}"))
                        .collect();
                    // The same member twice: kept, as everything is.
                    format!(
                        "{{{}}}",
                        members
                            .iter()
                            .chain(members.first())
                            .cloned()
                            .collect::<Vec<_>>()
                            .join(",\n")
                    )
                }),
            ]
        })
        .prop_map(|text| raw(&text))
}

fn text() -> impl Strategy<Value = String> {
    "[ -~\u{e9}\u{1f600}\n]{0,30}"
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![
        Outcome::Ok,
        Outcome::ToolError,
        Outcome::RpcError,
        Outcome::HttpError,
        Outcome::Timeout,
        Outcome::Cancelled,
        Outcome::Aborted,
        Outcome::Lost,
        Outcome::Unreadable,
        Outcome::Pending,
        Outcome::Abandoned,
    ])
}

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![
        End::Complete,
        End::ClientGone,
        End::UpstreamLost,
        End::ProxyTimeout,
        End::Open,
    ])
}

fn capture() -> impl Strategy<Value = Capture> {
    prop::sample::select(vec![
        Capture::Full,
        Capture::Truncated,
        Capture::Undecoded,
        Capture::Dropped,
    ])
}

prop_compose! {
    fn any_session()(
        number in any::<u128>(),
        key in any::<[u8; 16]>(),
        source in prop::sample::select(vec![
            SessionSource::Protocol, SessionSource::Conversation, SessionSource::Task,
            SessionSource::RequestState, SessionSource::Trace, SessionSource::Inferred,
        ]),
        principal in prop::option::of(text()),
        tenant in prop::option::of(text()),
        asserted in any::<bool>(),
        client in prop::option::of((text(), prop::option::of(text()))),
        protocol_version in prop::option::of(text()),
        started_at in 0_i64..4_000_000_000_000_000,
    ) -> Session {
        Session {
            id: uuid::Uuid::from_u128(number),
            source,
            key,
            upstream: "crm".to_owned(),
            principal,
            tenant,
            asserted,
            client: client.map(|(name, version)| Client { name, version }),
            protocol_version,
            started_at,
        }
    }
}

prop_compose! {
    fn facts()(
        outcome in outcome(),
        end in end(),
        texts in prop::collection::vec(prop::option::of(text()), 8),
        numbers in prop::collection::vec(prop::option::of(0_u64..1 << 40), 4),
        status in prop::option::of(any::<u16>()),
        legs in any::<u32>(),
        captures in (capture(), capture()),
        events in prop::collection::vec((0_i32..1_000_000_000, text()), 0..4),
        flags in prop::collection::vec(text(), 0..3),
        sample in prop::option::of((any::<f64>().prop_filter("not comparable", |number| !number.is_nan()), any::<bool>())),
        headers in prop::collection::vec((text(), text()), 0..5),
        json in (json(), prop::option::of(json()), prop::option::of(json()), prop::option::of(json())),
        shift in -1_000_000_i64..1_000_000,
        same_id in any::<bool>(),
    ) -> Call {
        let mut texts = texts.into_iter();
        let mut text = || texts.next().flatten();
        let mut numbers = numbers.into_iter();
        let mut number = || numbers.next().flatten();
        let exchange_id = uuid::Uuid::from_u128(0x0193_a7c2_1111_7222_8333_4444_5555_6666);
        let request_id = if same_id { Some(exchange_id.to_string()) } else { text() };
        let mut request_headers = headers.clone();
        request_headers.extend(request_id.clone().map(|id| ("x-request-id".to_owned(), id)));
        let (jsonrpc_id, arguments, result, error) = json;
        Call {
            id: uuid::Uuid::nil(),
            exchange_id,
            request_id,
            session: Arc::new((*session(0)).clone()),
            seq: legs ^ 5,
            protocol_version: text(),
            trace_id: text(),
            span_id: text(),
            jsonrpc_id,
            tool: text().unwrap_or_default(),
            arguments,
            outcome,
            result,
            error,
            end,
            http_status: status,
            started_at: shift,
            first_byte_us: number(),
            duration_us: number(),
            request_bytes: number().unwrap_or_default(),
            response_bytes: number().unwrap_or_default(),
            legs,
            confirmation: text(),
            catalogue: text(),
            capture: Captured { request: captures.0, response: captures.1, reason: text() },
            events: events.into_iter().map(|(offset, kind)| CallEvent { offset_ms: f64::from(offset) / 1000.0, kind }).collect(),
            flags,
            sample: sample.map(|(probability, selected)| Sample { probability, selected }),
            http: Http {
                method: "POST".to_owned(),
                target: "/mcp?x=1".to_owned(),
                version: "HTTP/1.1".to_owned(),
                request_headers,
                response_headers: headers,
            },
        }
    }
}

/// Random calls, stored in random groups, are read back equal in every field; so is their JSON.
#[test]
fn random_calls_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let ids = RefCell::new(writer.ids());
    let batches = prop::collection::vec((facts(), any_session()), 1..12);
    TestRunner::new(Config::with_cases(150))
        .run(&batches, |batch| {
            let calls: Vec<_> = batch
                .into_iter()
                .map(|(facts, session)| {
                    let id = ids.borrow_mut().next(NOON);
                    Call {
                        id,
                        session: Arc::new(session),
                        started_at: NOON + facts.started_at,
                        ..facts
                    }
                })
                .collect();
            prop_assert!(store(&writer, crate::sample::calls(calls.clone())));
            for call in calls {
                let read = reader.call(call.id).unwrap().expect("it was stored");
                prop_assert_eq!(read.to_json(), call.to_json());
                prop_assert_eq!(format!("{read:?}"), format!("{call:?}"));
                let summary = reader
                    .session(call.session.id)
                    .unwrap()
                    .expect("so was its session");
                prop_assert_eq!(&summary.session, &*call.session);
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(writer.health().dropped_total(), 0);
    writer.close().unwrap();
}

#[test]
fn messages_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let plain = message(&mut ids, &session, NOON, r#"{"a" : 1.0}"#);
    let rich = Message {
        direction: Direction::ServerToClient,
        kind: "response".to_owned(),
        method: None,
        jsonrpc_id: Some(raw("\"\\u0031\"")),
        call: Some(plain.id),
        http_status: None,
        body: None,
        flags: vec!["undecoded".to_owned()],
        ..message(&mut ids, &session, NOON + 1, "null")
    };
    let records = [&rich, &plain]
        .map(|message| Record::Message(Box::new(message.clone())))
        .into();
    assert!(store(&writer, records));
    let reader = Reader::open(dir.path()).unwrap();
    let read = reader.messages(session.id).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", [&plain, &rich]));
    assert!(
        reader.messages(plain.id).unwrap().is_empty(),
        "nobody's session has no messages"
    );
}

#[test]
fn a_catalogue_is_kept_once_and_found_by_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let catalogue = Catalogue {
        hash: "sha256:4f2e".to_owned(),
        upstream: "crm".to_owned(),
        seen_at: NOON,
        tools: raw(r#"[{"name":"a","inputSchema":{"minimum":1.0}}]"#),
    };
    let again = Catalogue {
        seen_at: NOON + 5,
        ..catalogue.clone()
    };
    assert!(store(
        &writer,
        vec![
            Record::Catalogue(Box::new(catalogue.clone())),
            Record::Catalogue(Box::new(again))
        ]
    ));
    let reader = Reader::open(dir.path()).unwrap();
    let read = reader
        .catalogue("sha256:4f2e")
        .unwrap()
        .expect("it was stored");
    assert_eq!(format!("{read:?}"), format!("{catalogue:?}"));
    assert!(reader.catalogue("sha256:0000").unwrap().is_none());
}

#[test]
fn a_session_is_found_by_its_key_with_its_last_number_and_learns() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let early = Arc::new(Session {
        client: None,
        protocol_version: None,
        ..(*session(9)).clone()
    });
    let later = Arc::new(Session {
        client: Some(Client {
            name: "x".to_owned(),
            version: None,
        }),
        ..(*early).clone()
    });
    assert_eq!(writer.find_session(&early.key), None);
    let first = crate::sample::call(&mut ids, &early, 1, NOON);
    let second = Call {
        outcome: Outcome::Lost,
        ..crate::sample::call(&mut ids, &later, 2, NOON + 7_000_000)
    };
    assert!(store(
        &writer,
        crate::sample::calls([first.clone(), second])
    ));
    // A record that was made before the client was known does not make it unknown.
    assert!(store(
        &writer,
        crate::sample::calls([crate::sample::call(&mut ids, &early, 3, NOON + 8_000_000)])
    ));
    assert_eq!(writer.find_session(&early.key), Some(((*later).clone(), 3)));
    let reader = Reader::open(dir.path()).unwrap();
    let summary = reader.session(early.id).unwrap().unwrap();
    assert_eq!(
        (summary.calls, summary.failed, summary.last_at),
        (3, 1, NOON + 8_002_000)
    );
    assert_eq!(
        reader.call(first.id).unwrap().unwrap().session.client,
        later.client
    );
}
