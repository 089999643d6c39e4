//! Bodies as they flow: at once, in both directions, for as long as they like.

use std::time::{Duration, Instant};

use callbox_proxy::tap::BodyEnd;

use super::harness::{exchange, pair};

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const GET: &str = "GET /mcp HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\n\r\n";

#[tokio::test]
async fn b01_a_question_in_mid_call_is_answered_while_the_call_is_open() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut call = callbox.client().await;
    call.send("POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\ncall")
        .await
        .unwrap();
    let mut first = connections.next().await.unwrap();
    assert_eq!(first.read_message().await.unwrap().body, b"call");
    let question =
        "data: {\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"method\":\"elicitation/create\"}\n\n";
    first.send(STREAM).await.unwrap();
    let asked = Instant::now();
    first.send_chunk(question).await.unwrap();
    assert_eq!(call.read_head().await.unwrap().status(), 200);
    assert_eq!(call.read_chunk().await.unwrap(), question.as_bytes());
    assert!(
        asked.elapsed() < Duration::from_millis(100),
        "{:?}",
        asked.elapsed()
    );
    let mut answer = callbox.client().await;
    answer
        .send("POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 6\r\n\r\nanswer")
        .await
        .unwrap();
    let mut second = connections.next().await.unwrap();
    assert_eq!(second.read_message().await.unwrap().body, b"answer");
    second
        .send("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(answer.read_head().await.unwrap().status(), 202);
    first.send_chunk("data: done\n\n").await.unwrap();
    first.send("0\r\n\r\n").await.unwrap();
    assert_eq!(call.read_chunk().await.unwrap(), b"data: done\n\n");
    assert!(call.read_chunk().await.unwrap().is_empty());
    let seen = callbox.observed.wait("both end", |seen| {
        seen.iter()
            .all(|seen| seen.end.is_some())
            .then(|| seen.to_vec())
    });
    assert_eq!(seen.len(), 2);
}

/// Every deadline there is, set to a tenth of how long the streams below are silent.
fn short(settings: &mut callbox_config::Settings) {
    let short = Duration::from_millis(150);
    settings.listen.request_head_timeout = short;
    settings.listen.tls_timeout = short;
    settings.listen.drain_timeout = short;
    settings.record.durability_timeout = short;
    settings.record.session_idle = short;
    let upstream = &mut settings.upstreams[0];
    upstream.connect_timeout = short;
    upstream.tls_timeout = short;
    upstream.idle_timeout = short;
}

/// Lets time pass in which nothing is to happen: what is tested is that no timer of callbox's ends the stream.
async fn silence() {
    tokio::time::sleep(Duration::from_millis(1500)).await;
}

#[tokio::test]
async fn b02_a_silent_stream_stays_open_past_every_deadline() {
    let (callbox, mut connections, _upstream) = pair(short).await;
    let mut client = callbox.client().await;
    client.send(GET).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream.send(STREAM).await.unwrap();
    assert_eq!(
        client.read_head().await.unwrap().status(),
        200,
        "the head comes before any event"
    );
    silence().await;
    upstream.send_chunk("data: late\n\n").await.unwrap();
    assert_eq!(client.read_chunk().await.unwrap(), b"data: late\n\n");
}

#[tokio::test]
async fn b10_b11_pings_and_comments_come_through_one_by_one() {
    let (callbox, mut connections, _upstream) = pair(short).await;
    let mut client = callbox.client().await;
    client.send(GET).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream.send(STREAM).await.unwrap();
    client.read_head().await.unwrap();
    for event in [
        ":\n\n",
        ": ping\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n",
    ]
    .repeat(3)
    {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let sent = Instant::now();
        upstream.send_chunk(event).await.unwrap();
        assert_eq!(
            client.read_chunk().await.unwrap(),
            event.as_bytes(),
            "neither joined nor held back"
        );
        assert!(
            sent.elapsed() < Duration::from_millis(100),
            "{:?}",
            sent.elapsed()
        );
    }
}

#[tokio::test]
async fn b12_an_answer_may_take_longer_than_every_deadline() {
    let (callbox, mut connections, _upstream) = pair(short).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    silence().await;
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Complete));
}

#[tokio::test]
async fn b03_to_b06_bytes_pass_however_they_are_cut() {
    // A character cut in two, all line ends, joined data lines, event, id, retry and comments.
    let stream = "data: 那\u{1f600}\n\nevent: message\nid: 7\nretry: 3\ndata: {\"a\":\ndata: 1}\n\n: c\r\n\r\ndata: x\r\rdata: y\r\n\r\n";
    let bytes = stream.as_bytes();
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    for cut in 1..bytes.len() {
        let mut client = callbox.client().await;
        client.send(GET).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_head().await.unwrap();
        upstream.send(STREAM).await.unwrap();
        client.read_head().await.unwrap();
        for part in [&bytes[..cut], &bytes[cut..]] {
            upstream.send_chunk(part).await.unwrap();
            assert_eq!(client.read_chunk().await.unwrap(), part);
        }
        upstream.send("0\r\n\r\n").await.unwrap();
        assert!(client.read_chunk().await.unwrap().is_empty());
    }
    let seen = callbox.observed.wait("all end", |seen| {
        (seen.len() == bytes.len() - 1 && seen.iter().all(|seen| seen.end.is_some()))
            .then(|| seen.to_vec())
    });
    assert!(seen.iter().all(|seen| seen.response == bytes));
}

#[tokio::test]
async fn both_directions_go_on_at_once() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream.send(STREAM).await.unwrap();
    client.read_head().await.unwrap();
    for turn in 0..5 {
        client.send_chunk(format!("up {turn}")).await.unwrap();
        assert_eq!(
            upstream.read_chunk().await.unwrap(),
            format!("up {turn}").as_bytes()
        );
        upstream.send_chunk(format!("down {turn}")).await.unwrap();
        assert_eq!(
            client.read_chunk().await.unwrap(),
            format!("down {turn}").as_bytes()
        );
    }
    client.send("0\r\n\r\n").await.unwrap();
    assert!(upstream.read_chunk().await.unwrap().is_empty());
    upstream.send("0\r\n\r\n").await.unwrap();
    assert!(client.read_chunk().await.unwrap().is_empty());
    let seen = callbox.observed.ended();
    assert_eq!(
        (seen.request_end, seen.end),
        (Some(BodyEnd::Complete), Some(BodyEnd::Complete))
    );
    assert_eq!(seen.request, b"up 0up 1up 2up 3up 4");
}

/// An upstream that sends back what it gets, and a client that reads only when it has sent all: more than all buffers
/// between them hold. If one direction waited for the other, this would stand still.
#[tokio::test]
async fn a_full_download_does_not_stop_the_upload() {
    const SIZE: usize = 32 << 20;
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send(format!(
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: {SIZE}\r\n\r\n"
        ))
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream
        .send(format!("HTTP/1.1 200 OK\r\ncontent-length: {SIZE}\r\n\r\n"))
        .await
        .unwrap();
    let block = vec![b'x'; 1 << 16];
    let download = async {
        // Full after a few megabytes, because nobody reads.
        while tokio::time::timeout(Duration::from_millis(500), upstream.send(&block))
            .await
            .is_ok()
        {}
        let mut left = SIZE;
        while left > 0 {
            left -= upstream.read_exact(left.min(1 << 20)).await.unwrap().len();
        }
    };
    let upload = async {
        for _ in 0..SIZE / block.len() {
            client.send(&block).await.unwrap();
        }
    };
    tokio::join!(download, upload);
    client.read_head().await.unwrap();
}

#[tokio::test]
async fn b23_memory_stays_flat_under_a_large_body_and_a_slow_reader() {
    const SIZE: usize = 256 << 20;
    // The observer looks at nothing: the queue's bytes are all the recorder may hold.
    let (upstream, mut connections) = callbox_testkit::scripted::Scripted::by_hand()
        .await
        .unwrap();
    let callbox = super::harness::Callbox::with(
        upstream.address(),
        super::harness::Observer::Stalled,
        |settings| {
            settings.record.queue_bytes = 4 << 20;
        },
    );
    let mut client = callbox.client().await;
    client
        .send(format!(
            "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: {SIZE}\r\n\r\n"
        ))
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    let before = resident();
    let block = vec![b'x'; 1 << 16];
    let upload = async {
        for _ in 0..SIZE / block.len() {
            client.send(&block).await.unwrap();
        }
    };
    let reading = async {
        let mut left = SIZE;
        while left > 0 {
            left -= upstream.read_exact(left.min(1 << 16)).await.unwrap().len();
        }
    };
    tokio::join!(upload, reading);
    let grown = resident().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more after {SIZE}");
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
    // The end of what was let in may go over the limit: it is small, and there is room for it by count.
    assert!(callbox.tap.bytes_in_flight() <= (4 << 20) + 1024);
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

#[tokio::test]
async fn b14_a_call_without_a_session_passes() {
    let (asked, answered, _callbox) = exchange(
        "POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    )
    .await;
    assert!(asked.head.all("mcp-session-id").is_empty());
    assert!(answered.head.all("mcp-session-id").is_empty());
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_ends_so_for_an_old_client() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    client
        .send("GET / HTTP/1.0\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    upstream
        .send("HTTP/1.0 200 OK\r\n\r\nall there is")
        .await
        .unwrap();
    drop(upstream);
    let answered = client.read_message().await.unwrap();
    assert_eq!(answered.body, b"all there is");
    assert_eq!(callbox.observed.ended().end, Some(BodyEnd::Complete));
}
