//! However bytes are split and exchanges interleaved, the calls are the same.

use bytes::Bytes;
use callbox_store::Call;
use http::{Method, StatusCode, Version};
use proptest::prelude::*;
use uuid::Uuid;

use super::feed::{Feed, WALL, modern, result, text, tools_call};
use crate::tap::{BodyEnd, Event, RequestHead, ResponseHead};

/// One exchange as a peer writes it.
#[derive(Clone, Debug)]
struct Script {
    headers: String,
    request: String,
    status: u16,
    response_headers: String,
    response: String,
    end: BodyEnd,
}

fn script() -> impl Strategy<Value = Script> {
    let ids = prop_oneof![
        Just("1"),
        Just("\"1\""),
        Just("2"),
        Just("-0"),
        Just("\"é\\u00e9\"")
    ];
    let end = prop_oneof![4 => Just(BodyEnd::Complete), 1 => Just(BodyEnd::Error), 1 => Just(BodyEnd::Cancelled)];
    let texts = prop_oneof![
        Just("plain".to_owned()),
        Just("那搜索 \\n \\\"q\\\"".to_owned()),
        "[a-z ]{0,300}"
    ];
    (0..8_u8, ids, any::<bool>(), texts, end).prop_map(|(kind, id, crlf, words, end)| {
        let session = "mcp-session-id: s\nmcp-protocol-version: 2025-11-25\n".to_owned();
        let line = if crlf { "\r\n" } else { "\n" };
        let event = |data: &str| format!("event: message{line}id: 7{line}data: {data}{line}{line}");
        let progress =
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"那"}}"#;
        let call = tools_call(id, "search", r#"{"q":"搜索","n":1.0}"#);
        let answer = result(id, &words);
        let (json, stream) = (
            "content-type: application/json\n",
            "content-type: text/event-stream\n",
        );
        let (headers, request, status, response_headers, response) = match kind {
            0 => (session, call, 200, json, answer),
            1 => (
                session,
                call,
                200,
                stream,
                event(progress) + ": ping\n\n" + &event(&answer),
            ),
            2 => (
                session,
                format!("[{call},{}]", tools_call("99", "b", "{}")),
                200,
                stream,
                event(&answer) + &event(&result("99", "b")),
            ),
            3 => (session, call, 500, "content-type: text/html\n", words),
            4 => (session, call, 200, stream, event(&answer) + &event(&answer)),
            5 => (session, call, 200, json, answer.chars().take(40).collect()),
            6 => {
                let (headers, body) = modern(
                    id,
                    "tools/call",
                    "search",
                    r#""name":"search","arguments":{}"#,
                );
                (
                    headers,
                    body,
                    200,
                    stream,
                    event(progress) + &event(&answer),
                )
            }
            _ => (session, call, 202, "", String::new()),
        };
        Script {
            headers,
            request,
            status,
            response_headers: response_headers.to_owned(),
            response,
            end,
        }
    })
}

fn events(
    script: &Script,
    n: u64,
    feed: &Feed,
    sizes: &mut impl Iterator<Item = usize>,
) -> Vec<Event> {
    let id = Uuid::from_u64_pair(0x7000, n + 1);
    let head = RequestHead {
        at_wall: WALL,
        at: feed.now,
        peer: "192.0.2.1:1".parse().unwrap(),
        upstream: "crm".into(),
        method: Method::POST,
        target: "/mcp".to_owned(),
        version: Version::HTTP_11,
        request_id: None,
        headers: text(&script.headers),
    };
    let answer = ResponseHead {
        at: feed.now,
        status: StatusCode::from_u16(script.status).unwrap(),
        headers: text(&script.response_headers),
        fault: None,
    };
    let mut split = |body: &str| {
        let (mut rest, mut frames) = (body.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let (frame, after) =
                rest.split_at(sizes.next().unwrap_or(rest.len()).clamp(1, rest.len()));
            frames.push(Bytes::copy_from_slice(frame));
            rest = after;
        }
        frames
    };
    let mut events = vec![Event::Request(id, Box::new(head))];
    events.extend(
        split(&script.request)
            .into_iter()
            .map(|frame| Event::RequestChunk(id, frame)),
    );
    events.push(Event::RequestEnd(id, BodyEnd::Complete));
    events.push(Event::Response(id, Box::new(answer)));
    events.extend(
        split(&script.response)
            .into_iter()
            .map(|frame| Event::ResponseChunk(id, feed.now, frame)),
    );
    events.push(Event::End(id, feed.now, script.end));
    events
}

/// What must not depend on how it came.
fn facts(feed: &mut Feed) -> Vec<String> {
    feed.wait(700_000);
    let mut facts: Vec<String> = feed
        .calls()
        .into_iter()
        .map(|call| {
            let Call { exchange_id, jsonrpc_id, tool, arguments, outcome, result, error, end, .. } = &call;
            let events: Vec<_> = call.events.iter().map(|event| event.kind.as_str()).collect();
            format!(
                "{exchange_id} {jsonrpc_id} {tool} {arguments:?} {outcome:?} {result:?} {error:?} {end:?} {events:?} {} {:?} {:?} {} {}",
                call.legs, call.flags, call.capture, call.request_bytes, call.response_bytes
            )
        })
        .collect();
    facts.sort();
    assert_eq!(feed.faults(), 0);
    facts
}

fn fed() -> Feed {
    let mut feed = Feed::new();
    feed.initialize("2025-11-25", "s", "");
    feed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn splits_and_interleavings_change_nothing(
        scripts in prop::collection::vec(script(), 1..6),
        sizes in prop::collection::vec(1..40_usize, 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
    ) {
        // Retries are told by what came before: with everything at once there is no before.
        let mut scripts = scripts;
        for (n, script) in scripts.iter_mut().enumerate() {
            script.request = script.request.replace("search", &format!("search{n}"));
            script.headers = script.headers.replace("mcp-name: search", &format!("mcp-name: search{n}"));
        }
        let mut whole = fed();
        for (n, script) in scripts.iter().enumerate() {
            for event in events(script, n as u64, &whole, &mut std::iter::empty()) {
                whole.observer.handle(event);
            }
        }
        let mut split = fed();
        let mut sizes = sizes.into_iter().cycle();
        let mut queues: Vec<_> = scripts
            .iter()
            .enumerate()
            .map(|(n, script)| events(script, n as u64, &split, &mut sizes).into_iter())
            .collect();
        let mut order = order.into_iter();
        while !queues.is_empty() {
            let at = order.next().map_or(0, |index| index.index(queues.len()));
            match queues[at].next() {
                Some(event) => split.observer.handle(event),
                None => drop(queues.remove(at)),
            }
        }
        prop_assert_eq!(facts(&mut whole), facts(&mut split));
    }
}
