//! What is refused before anything goes upstream, and how the refusal looks.

use callbox_proxy::FaultKind;

use super::harness::{over, pair};

async fn assert_refused(request: &[u8], status: u16) {
    let (callbox, connections, upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client.send(request).await.unwrap();
    let answered = client.read_message().await.unwrap();
    let text = String::from_utf8_lossy(request).into_owned();
    assert_eq!(answered.head.status(), status, "{text:?}");
    assert_eq!(
        answered.head.one("callbox-fault"),
        Some("bad-request"),
        "{text:?}"
    );
    assert_eq!(
        answered.head.one("content-type"),
        Some("text/plain; charset=utf-8"),
        "{text:?}"
    );
    assert!(answered.body.starts_with(b"callbox: "), "{text:?}");
    client.closed().await.unwrap();
    assert!(connections.is_empty(), "{text:?}");
    assert_eq!(upstream.accepted(), 0, "nothing went upstream: {text:?}");
    let traffic = callbox.server.traffic();
    callbox.server.drain();
    assert_eq!(traffic.faults(FaultKind::BadRequest), 1, "{text:?}");
}

#[tokio::test]
async fn framing_that_contradicts_itself_is_refused() {
    for fields in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "transfer-encoding: CHUNKED\r\ncontent-length: 0",
        "Transfer-Encoding: gzip, chunked\r\nContent-Length: 3",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 3",
        "Content-Length: +3",
        "Content-Length: -3",
        "Content-Length: 0x3",
        "Content-Length:",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Content-Length : 3",
        "Content-Length: 3\r\n folded: x",
        "No colon",
        "Bad name: x",
    ] {
        assert_refused(
            format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\nabc").as_bytes(),
            400,
        )
        .await;
    }
    assert_refused(
        b"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    )
    .await;
}

#[tokio::test]
async fn what_is_not_http_is_refused_in_callboxs_own_words() {
    for (request, status) in [
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS to a plain port\r\n\r\n".as_slice(),
            400,
        ),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", 400),
        (b"G@T / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: \x00\r\n\r\n", 400),
        (b"GET /a?b=<c> HTTP/1.1\r\n\r\n", 400),
        (b"GET /a#b HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 400),
    ] {
        assert_refused(request, status).await;
    }
    assert_refused(
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000)).as_bytes(),
        414,
    )
    .await;
    assert_refused(
        format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(140_000)).as_bytes(),
        431,
    )
    .await;
}

#[tokio::test]
async fn a_refusal_after_a_good_exchange_is_marked_as_well() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
    client.send("garbage\r\n\r\n").await.unwrap();
    let answered = client.read_message().await.unwrap();
    assert_eq!(
        (answered.head.status(), answered.head.one("callbox-fault")),
        (400, Some("bad-request"))
    );
}

#[tokio::test]
async fn an_upstreams_own_bare_400_passes_untouched() {
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.stamp = callbox_config::Stamp::None).await;
    let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    let mut client = callbox.client().await;
    for _ in 0..3 {
        client
            .send("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
            .await
            .unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_head().await.unwrap();
        upstream.send(bare).await.unwrap();
        assert_eq!(
            String::from_utf8(client.read_raw_head().await.unwrap()).unwrap(),
            bare
        );
        // Not kept, so that the next request comes on a connection of its own.
        drop(upstream);
    }
}

#[tokio::test]
async fn equal_lengths_are_one_length() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let (asked, _) = over(
        &callbox,
        &mut connections,
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    )
    .await
    .unwrap();
    assert_eq!(
        (asked.head.all("content-length"), asked.body.as_slice()),
        (vec!["3"], b"abc".as_slice())
    );
}

#[tokio::test]
async fn pipelined_requests_are_served_in_order_and_checked_each() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send(concat!(
            "POST /1 HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "POST /2 HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\ndef",
            "POST /3 HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ))
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    for (line, body) in [("POST /1 HTTP/1.1", "abc"), ("POST /2 HTTP/1.1", "def")] {
        let asked = upstream.read_message().await.unwrap();
        assert_eq!(
            (asked.head.line.as_str(), asked.body.as_slice()),
            (line, body.as_bytes())
        );
        upstream
            .send(format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{line}",
                line.len()
            ))
            .await
            .unwrap();
        assert_eq!(client.read_message().await.unwrap().body, line.as_bytes());
    }
    assert_eq!(client.read_message().await.unwrap().head.status(), 400);
    client.closed().await.unwrap();
}

#[tokio::test]
async fn an_answer_with_two_framings_goes_on_with_one() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let (_, answered) = over(
        &callbox,
        &mut connections,
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    )
    .await
    .unwrap();
    assert!(answered.head.all("content-length").is_empty());
    assert_eq!(answered.body, b"abc");
    let seen = callbox.observed.ended();
    assert!(
        seen.response_headers.contains("content-length: 9"),
        "the record has both: {}",
        seen.response_headers
    );
}
