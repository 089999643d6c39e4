//! The event stream format, rule by rule.

use callbox_wire::sse::{Decoder, SseEvent};

/// What a decoder gives for a stream in pieces.
pub(crate) fn events(pieces: &[&[u8]]) -> Vec<SseEvent> {
    let mut decoder = Decoder::new(1 << 20);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut |event| events.push(event));
    }
    events
}

fn data(stream: &str) -> Vec<String> {
    events(&[stream.as_bytes()])
        .into_iter()
        .map(|event| String::from_utf8(event.data.text).unwrap())
        .collect()
}

#[test]
fn one_space_after_the_colon_belongs_to_the_format() {
    assert_eq!(
        data("data:a\n\ndata: b\n\ndata:  c\n\ndata:\td\n\n"),
        ["a", "b", " c", "\td"]
    );
}

#[test]
fn a_data_line_without_value_counts() {
    assert_eq!(data("data\n\n"), [""]);
    assert_eq!(data("data\ndata\n\n"), ["\n"]);
    assert_eq!(data("data:\n\n"), [""]);
    assert_eq!(data("data: a\ndata\ndata: b\n\n"), ["a\n\nb"]);
}

#[test]
fn names_are_exact() {
    assert_eq!(
        data("Data: a\ndata : b\n data: c\ndatas: d\ndat: e\nretryx: 7\nidx: 1\n\n"),
        Vec::<String>::new()
    );
}

#[test]
fn a_byte_order_mark_is_skipped_once_and_only_at_the_start() {
    assert_eq!(data("\u{FEFF}data: a\n\n"), ["a"]);
    assert_eq!(data("\u{FEFF}\u{FEFF}data: a\n\n"), Vec::<String>::new());
    assert_eq!(data("data: a\n\n\u{FEFF}data: b\n\n"), ["a"]);
    assert_eq!(
        events(&[b"\xEF", b"\xBB", b"\xBF", b"data: a\n\n"]).len(),
        1
    );
    assert_eq!(
        events(&[b"\xEF\xBBdata: a\n\n"]).len(),
        0,
        "half a mark is part of a name"
    );
}

#[test]
fn carriage_return_and_line_feed_split_over_chunks_are_one_end() {
    let events = events(&[
        b"data: a\r",
        b"\n",
        b"data: b\r",
        b"\n\r",
        b"\n",
        b"\ndata: c\n\n",
    ]);
    let data: Vec<_> = events
        .iter()
        .map(|event| event.data.text.as_slice())
        .collect();
    assert_eq!(data, [b"a\nb".as_slice(), b"c"]);
}

#[test]
fn an_event_is_delivered_at_the_first_byte_of_its_end() {
    let mut decoder = Decoder::new(100);
    let mut seen = 0;
    decoder.push(b"data: a\r\n\r", &mut |_| seen += 1);
    assert_eq!(seen, 1, "the line feed may take its time");
}

#[test]
fn a_priming_event_has_an_id_and_empty_data() {
    let events =
        events(&[b"id: 7\nretry: 3000\ndata:\n\nid: 8\n\nretry: 10\n\nevent: x\n\n: ping\n\n\n\n"]);
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.id.as_deref(), event.retry, event.has_data))
        .collect();
    assert_eq!(
        seen,
        [
            (Some("7"), Some(3000), true),
            (Some("8"), None, false),
            (None, Some(10), false)
        ]
    );
    assert!(
        events
            .iter()
            .all(|event| event.data.text.is_empty() && event.data.overflow.is_none())
    );
}

#[test]
fn the_last_value_of_a_field_counts_and_none_carries_over() {
    let events =
        events(&[b"event: a\nevent: b\nid: 1\nid: 2\nretry: 1\nretry: 2\ndata: x\n\ndata: y\n\n"]);
    assert_eq!(events[0].event.as_deref(), Some("b"));
    assert_eq!(
        (events[0].id.as_deref(), events[0].retry),
        (Some("2"), Some(2))
    );
    assert_eq!(
        (&events[1].event, &events[1].id, events[1].retry),
        (&None, &None, None)
    );
}

#[test]
fn an_empty_event_name_is_none_and_an_empty_id_is_one() {
    let events = events(&[b"event: a\nevent:\nid\ndata: x\n\n"]);
    assert_eq!(
        (&events[0].event, events[0].id.as_deref()),
        (&None, Some(""))
    );
}

#[test]
fn an_id_with_nul_is_ignored() {
    let events = events(&[b"id: 1\nid: 2\x002\ndata: x\n\n"]);
    assert_eq!(events[0].id.as_deref(), Some("1"));
}

#[test]
fn retry_takes_digits_only() {
    let events = events(&[b"retry: 5\nretry: +6\nretry: 7s\nretry: 8 \nretry:\nretry: 99999999999999999999\ndata: x\n\n"]);
    assert_eq!(events[0].retry, Some(5));
}

#[test]
fn comments_are_counted_and_say_nothing() {
    let mut decoder = Decoder::new(100);
    let mut seen = Vec::new();
    decoder.push(b": ping\n:\n\ndata: a\n: b\ndata: c\n\n:", &mut |event| {
        seen.push(event);
    });
    assert_eq!(decoder.comments(), 4);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].data.text, b"a\nc");
    assert_eq!(decoder.finish(), None, "a comment is no event");
    assert_eq!(decoder.comments(), 0, "starts over");
}

#[test]
fn an_unfinished_event_is_reported_and_not_delivered() {
    for (stream, left) in [
        ("data: a\n\n", None),
        ("data: a\n", Some(7)),
        ("data: a", Some(7)),
        ("da", Some(2)),
        ("id: 1\r\ndata:", Some(10)),
        ("data: a\n\nx", Some(1)),
        ("\u{FEFF}", None),
        (": ping\n", None),
        ("", None),
    ] {
        let mut decoder = Decoder::new(100);
        let mut delivered = 0;
        decoder.push(stream.as_bytes(), &mut |_| delivered += 1);
        assert_eq!(decoder.finish(), left, "{stream:?}");
        assert_eq!(
            delivered,
            usize::from(stream.ends_with("a\n\n") || stream.ends_with('x')),
            "{stream:?}"
        );
    }
}

#[test]
fn half_a_byte_order_mark_is_an_unfinished_name() {
    for (stream, left) in [(b"\xEF".as_slice(), 1), (b"\xEF\xBB", 2), (b"\xEF\xBBd", 3)] {
        let mut decoder = Decoder::new(100);
        decoder.push(stream, &mut |_| {});
        assert_eq!(decoder.finish(), Some(left), "{stream:?}");
    }
}

#[test]
fn a_decoder_starts_over_clean() {
    let mut decoder = Decoder::new(100);
    decoder.push(b"event: a\nid: 1\ndata: half\r", &mut |_| {
        panic!("not complete")
    });
    assert_eq!(decoder.finish(), Some(23));
    let mut seen = Vec::new();
    decoder.push("\u{FEFF}\ndata: whole\n\n".as_bytes(), &mut |event| {
        seen.push(event);
    });
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (&seen[0].event, &seen[0].id, seen[0].data.text.as_slice()),
        (&None, &None, b"whole".as_slice())
    );
}

#[test]
fn an_endless_line_does_not_grow() {
    let mut decoder = Decoder::new(1000);
    let mut seen = Vec::new();
    for name in [
        "data: ",
        "\nevent: ",
        "\nid: ",
        "\nretry: ",
        "\n: ",
        "\nother: ",
        "\n",
    ] {
        decoder.push(name.as_bytes(), &mut |_| {});
        for _ in 0..100 {
            decoder.push(&[b'1'; 1000], &mut |event| seen.push(event));
        }
    }
    decoder.push(b"\n\n", &mut |event| seen.push(event));
    let [event] = seen.as_slice() else {
        panic!("{} events", seen.len())
    };
    assert_eq!((event.data.text.len(), event.data.bytes), (1000, 100_000));
    assert!(event.data.text.capacity() <= 1000);
    assert_eq!(
        event.event.as_ref().unwrap().len(),
        Decoder::MAX_FIELD_BYTES
    );
    assert_eq!(event.id.as_ref().unwrap().len(), Decoder::MAX_FIELD_BYTES);
    assert_eq!(event.retry, None);
}
