//! Laws that hold for any input. Each property says its law in its name or first line.

mod document;
mod reference;

use callbox_wire::coding::ContentDecoder;
use callbox_wire::collect::Collector;
use callbox_wire::rpc::{self, Body, DecodeError, IdField, Message};
use callbox_wire::sse::{Decoder, SseEvent};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::coding::ENCODERS;

/// Cuts bytes at any places, also none and several times the same.
fn pieces<'b>(bytes: &'b [u8], cuts: &[Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut from = 0;
    places
        .into_iter()
        .map(|to| &bytes[std::mem::replace(&mut from, to)..to])
        .collect()
}

/// Text made of what matters to the event stream format.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        8 => prop::sample::select(vec![
            "\n", "\r", "\r\n", "\n\n", ":", " ", "data", "data:", "data: ", "event:", "id:", "retry:", "id: 1", "\0", "1",
            "x", "\u{FEFF}", "那", "{\"id\":1}",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(token, 0..60).prop_map(|tokens| tokens.concat())
}

fn decoded(cap: usize, pieces: &[&[u8]]) -> (Vec<SseEvent>, u64, Option<u64>) {
    let mut decoder = Decoder::new(cap);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut |event| events.push(event));
    }
    (events, decoder.comments(), decoder.finish())
}

proptest! {
    #[test]
    fn events_do_not_depend_on_how_bytes_are_split(stream in stream(), cuts in vec(any::<Index>(), 0..20), cap in 0_usize..40) {
        let whole = decoded(cap, &[&stream]);
        prop_assert_eq!(&decoded(cap, &pieces(&stream, &cuts)), &whole);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&decoded(cap, &bytes), &whole);
    }

    #[test]
    fn events_are_those_of_the_standard(stream in stream()) {
        let (events, comments, unfinished) = decoded(1 << 20, &[&stream]);
        let expected = reference::read(&stream);
        prop_assert_eq!(events, expected.events);
        prop_assert_eq!(comments, expected.comments);
        prop_assert_eq!(unfinished.is_some(), expected.unfinished);
    }

    #[test]
    fn codings_are_undone_however_bytes_are_split(
        parts in vec((vec(any::<u8>(), 0..50), 1_usize..40), 0..20),
        cuts in vec(any::<Index>(), 0..20),
        choice in vec(0..ENCODERS.len(), 0..4),
    ) {
        let text = parts.iter().flat_map(|(bytes, times)| bytes.repeat(*times)).collect::<Vec<u8>>();
        let body = choice.iter().fold(text.clone(), |body, index| ENCODERS[*index].1(&body));
        let header = choice.iter().map(|index| ENCODERS[*index].0).collect::<Vec<_>>().join(", ");
        let mut decoder = ContentDecoder::for_header(Some(&header), 1 << 20).unwrap();
        let mut seen = Vec::new();
        for piece in pieces(&body, &cuts) {
            decoder.push(piece, &mut |bytes| seen.extend_from_slice(bytes)).unwrap();
        }
        decoder.finish(&mut |bytes| seen.extend_from_slice(bytes)).unwrap();
        prop_assert_eq!(seen, text);
    }

    #[test]
    fn broken_codings_neither_panic_nor_exceed_the_limit(
        text in vec(any::<u8>(), 0..300),
        index in 0..ENCODERS.len(),
        wounds in vec((any::<Index>(), any::<u8>()), 0..4),
        cuts in vec(any::<Index>(), 0..5),
    ) {
        let (coding, encode) = ENCODERS[index];
        let mut body = encode(&text);
        for (place, byte) in wounds {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let mut decoder = ContentDecoder::for_header(Some(coding), 1000).unwrap();
        let mut given = 0;
        let outcome = pieces(&body, &cuts).iter().try_for_each(|piece| decoder.push(piece, &mut |bytes| given += bytes.len()));
        let outcome = outcome.and_then(|()| decoder.finish(&mut |bytes| given += bytes.len()));
        prop_assert!(given <= 1000.max(body.len() * 101), "{} bytes from {}", given, body.len());
        if outcome.is_err() {
            prop_assert_eq!(decoder.push(b"x", &mut |_| {}), outcome);
        }
    }

    #[test]
    fn any_bytes_parse_or_fail_as_other_parsers_say(text in prop_oneof![vec(any::<u8>(), 0..200), document::noise()]) {
        agrees_with_a_tree(&text)?;
    }

    #[test]
    fn messages_parse_as_other_parsers_say(text in document::message()) {
        prop_assert!(rpc::parse(text.as_bytes()).is_ok());
        agrees_with_a_tree(text.as_bytes())?;
    }

    #[test]
    fn batches_parse_as_their_messages(texts in vec(document::message(), 0..5)) {
        let batch = format!("[{}]", texts.join(" , "));
        let Ok(Body::Batch(messages)) = rpc::parse(batch.as_bytes()) else { panic!("no batch: {batch}") };
        prop_assert_eq!(messages.len(), texts.len());
        for (message, text) in messages.iter().zip(&texts) {
            prop_assert_eq!(format!("{message:?}"), format!("{:?}", one(text.trim())));
        }
    }

    #[test]
    fn the_outline_of_a_long_message_is_what_its_parse_says(
        text in document::message(),
        cuts in vec(any::<Index>(), 0..20),
        cap in any::<Index>(),
    ) {
        let cap = cap.index(text.len() + 5);
        let mut collector = Collector::new(cap);
        for piece in pieces(text.as_bytes(), &cuts) {
            collector.push(piece);
        }
        let collected = collector.finish();
        prop_assert_eq!(collected.bytes, text.len() as u64);
        prop_assert_eq!(&collected.text, &text.as_bytes()[..cap.min(text.len())]);
        prop_assert_eq!(collected.overflow.is_some(), text.len() > cap);
        let Some(overflow) = collected.overflow else { return Ok(()) };
        prop_assert_eq!(overflow.sha256, <[u8; 32]>::from(Sha256::digest(text.as_bytes())));

        let (outline, message) = (overflow.outline, one(&text));
        match (&outline.id, &message.id) {
            (IdField::Invalid(_), IdField::Invalid(_)) => {}
            (outlined, parsed) => prop_assert_eq!(outlined, parsed),
        }
        prop_assert_eq!(outline.method.as_deref(), message.method.as_deref());
        prop_assert_eq!((outline.has_result, outline.has_error), (message.result.is_some(), message.error.is_some()));
        let [params, result] = [message.params, message.result]
            .map(|part| part.map_or(Value::Null, |part| serde_json::from_str(part.get()).unwrap()));
        prop_assert_eq!(outline.tool.as_deref(), params["name"].as_str());
        prop_assert_eq!(outline.is_error, result["isError"] == Value::Bool(true));
        prop_assert_eq!(outline.result_type.as_deref(), result["resultType"].as_str());
        prop_assert!(outline.complete && !outline.is_array);
    }

    #[test]
    fn outlining_noise_does_not_depend_on_how_it_is_split(text in document::noise(), cuts in vec(any::<Index>(), 0..20)) {
        let mut collector = Collector::new(0);
        collector.push(&text);
        let whole = collector.finish();
        for piece in pieces(&text, &cuts) {
            collector.push(piece);
        }
        prop_assert_eq!(collector.finish(), whole);
    }
}

fn one(text: &str) -> Message<'_> {
    match rpc::parse(text.as_bytes()) {
        Ok(Body::One(message)) => message,
        other => panic!("{other:?}: {text}"),
    }
}

/// Compares with `serde_json::Value`, which is stricter in three ways that we know and want.
fn agrees_with_a_tree(text: &[u8]) -> Result<(), TestCaseError> {
    let plain = text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text);
    let tree = serde_json::from_slice::<Value>(plain);
    match (rpc::parse(text), tree) {
        (Ok(Body::One(message)), Ok(tree)) => same(&message, &tree)?,
        (Ok(Body::Batch(messages)), Ok(Value::Array(elements))) => {
            prop_assert_eq!(messages.len(), elements.len());
            messages
                .iter()
                .zip(&elements)
                .try_for_each(|(message, element)| same(message, element))?;
        }
        (Ok(_), Ok(tree)) => prop_assert!(false, "a body, but {}", tree),
        (Ok(_), Err(error)) => {
            let error = error.to_string();
            let known = [
                "number out of range",
                "lone leading surrogate",
                "unexpected end of hex escape",
                "recursion limit",
            ];
            prop_assert!(
                known.iter().any(|known| error.contains(known)),
                "a body, but {}",
                error
            );
        }
        (Err(DecodeError::NotAnObject), tree) => {
            prop_assert!(!matches!(tree, Ok(Value::Object(_) | Value::Array(_))));
        }
        (Err(error), Ok(tree)) => prop_assert!(false, "{}, but {}", error, tree),
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

fn same(message: &Message<'_>, tree: &Value) -> Result<(), TestCaseError> {
    let raw = |part: Option<&serde_json::value::RawValue>| {
        part.map(|part| serde_json::from_str::<Value>(part.get()).unwrap())
    };
    let member = |name: &str| tree.get(name).cloned();
    prop_assert_eq!(raw(message.params), member("params"));
    prop_assert_eq!(raw(message.result), member("result"));
    let no_error = tree.get("result").is_some() && tree.get("error") == Some(&Value::Null);
    prop_assert_eq!(raw(message.error), member("error").filter(|_| !no_error));
    prop_assert_eq!(
        message.method.as_deref(),
        tree.get("method").and_then(Value::as_str)
    );
    prop_assert_eq!(
        message.not_v2,
        tree.get("jsonrpc").and_then(Value::as_str) != Some("2.0")
    );
    let id = match &message.id {
        IdField::Missing => None,
        IdField::Null => Some(Value::Null),
        IdField::Id(id) => Some(serde_json::from_str(id.as_raw_json()).unwrap()),
        IdField::Invalid(raw) => Some(serde_json::from_str(raw).unwrap()),
    };
    prop_assert_eq!(id, member("id"));
    Ok(())
}
