//! What callbox answers by itself, and how it says so.

use std::time::{Duration, Instant};

use callbox_proxy::FaultKind;
use callbox_proxy::tap::BodyEnd;
use callbox_testkit::peer::Message;

use super::harness::{Callbox, pair, upstream_settings};

const POST: &str = "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\ncall";

fn assert_fault(answered: &Message, status: u16, kind: &str) {
    assert_eq!(answered.head.status(), status, "{answered:?}");
    assert_eq!(answered.head.one("callbox-fault"), Some(kind));
    assert_eq!(
        answered.head.one("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(answered.body.starts_with(b"callbox: "), "{answered:?}");
    assert!(!answered.body.contains(&b'{'), "never a JSON-RPC body");
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_a_502() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let callbox = Callbox::start(free, |_| {});
    let mut client = callbox.client().await;
    for turn in 1..=2 {
        client.send(POST).await.unwrap();
        let answered = client.read_message().await.unwrap();
        assert_fault(&answered, 502, "upstream-unreachable");
        assert_eq!(
            callbox
                .server
                .traffic()
                .faults(FaultKind::UpstreamUnreachable),
            turn,
            "the connection goes on"
        );
    }
    let seen = callbox.observed.wait("ends", |seen| {
        seen.iter().find(|seen| seen.end.is_some()).cloned()
    });
    assert_eq!(
        (seen.status, seen.fault, seen.end),
        (
            Some(502),
            Some("upstream-unreachable"),
            Some(BodyEnd::Error)
        )
    );
    assert!(seen.request_id.is_some());
}

#[tokio::test]
async fn an_upstream_that_breaks_before_its_head_is_a_502() {
    for partial in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "not http at all\r\n\r\n",
    ] {
        let (callbox, mut connections, _upstream) = pair(|_| {}).await;
        let mut client = callbox.client().await;
        client.send(POST).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        upstream.send(partial).await.unwrap();
        drop(upstream);
        assert_fault(&client.read_message().await.unwrap(), 502, "upstream-lost");
        let seen = callbox.observed.ended();
        assert_eq!(
            (seen.fault, seen.end, seen.request.as_slice()),
            (
                Some("upstream-lost"),
                Some(BodyEnd::Error),
                b"call".as_slice()
            )
        );
        assert!(connections.is_empty(), "it is not tried again");
    }
}

#[tokio::test]
async fn a_head_deadline_counts_from_the_end_of_the_request() {
    let limit = Duration::from_millis(300);
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.upstreams[0].response_head_timeout = Some(limit)).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nca")
        .await
        .unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_head().await.unwrap();
    // Longer than the limit: a slow upload is not the upstream's fault.
    tokio::time::sleep(limit * 2).await;
    let whole = Instant::now();
    client.send("ll").await.unwrap();
    upstream.read_exact(4).await.unwrap();
    assert_fault(&client.read_message().await.unwrap(), 504, "head-timeout");
    assert!(
        whole.elapsed() >= limit.mul_f32(0.9),
        "{:?}",
        whole.elapsed()
    );
    upstream.closed().await.unwrap();
    let seen = callbox.observed.ended();
    assert_eq!(
        (seen.fault, seen.end),
        (Some("head-timeout"), Some(BodyEnd::Timeout))
    );
}

#[tokio::test]
async fn a_head_deadline_does_not_end_a_stream() {
    let limit = Duration::from_millis(200);
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.upstreams[0].response_head_timeout = Some(limit)).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no")
        .await
        .unwrap();
    tokio::time::sleep(limit * 3).await;
    upstream.send("k").await.unwrap();
    assert_eq!(client.read_message().await.unwrap().body, b"ok");
}

#[tokio::test]
async fn a_connect_deadline_is_a_502() {
    // A listener whose queue is full answers no further connect.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let _listener = socket.listen(1).unwrap();
    let mut full = Vec::new();
    while let Ok(Ok(tcp)) = tokio::time::timeout(
        Duration::from_millis(200),
        tokio::net::TcpStream::connect(address),
    )
    .await
    {
        full.push(tcp);
    }
    let callbox = Callbox::start(address, |settings| {
        settings.upstreams[0].connect_timeout = Duration::from_millis(200);
    });
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    assert_fault(
        &client.read_message().await.unwrap(),
        502,
        "upstream-unreachable",
    );
}

#[tokio::test]
async fn connections_over_the_cap_are_told_so() {
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.max_connections = 2).await;
    let mut first = callbox.client().await;
    let mut second = callbox.client().await;
    for client in [&mut first, &mut second] {
        client.send(POST).await.unwrap();
        let mut upstream = connections.next().await.unwrap();
        upstream.read_message().await.unwrap();
        upstream
            .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
            .unwrap();
        client.read_message().await.unwrap();
        drop(upstream);
    }
    let mut third = callbox.client().await;
    third.send(POST).await.unwrap();
    assert_fault(
        &third.read_message().await.unwrap(),
        503,
        "connection-limit",
    );
    third.closed().await.unwrap();
    assert_eq!(
        callbox.server.traffic().faults(FaultKind::ConnectionLimit),
        1
    );
    // One leaves, one more may come.
    drop(first);
    loop {
        let mut next = callbox.client().await;
        next.send(POST).await.unwrap();
        let served = tokio::select! {
            upstream = connections.next() => Some(upstream.unwrap()),
            answered = next.read_message() => {
                assert_fault(&answered.unwrap(), 503, "connection-limit");
                None
            }
        };
        if served.is_some() {
            break;
        }
    }
}

#[tokio::test]
async fn b22_a_body_over_the_limit_is_a_413_that_names_it() {
    let (callbox, mut connections, upstream) =
        pair(|settings| settings.listen.max_request_body = Some(8)).await;
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n")
        .await
        .unwrap();
    let answered = client.read_message().await.unwrap();
    assert_fault(&answered, 413, "body-too-large");
    assert!(
        String::from_utf8_lossy(&answered.body).contains("8 bytes (listen.max_request_body)"),
        "{answered:?}"
    );
    assert_eq!(upstream.accepted(), 0, "told by the length alone");
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n")
        .await
        .unwrap();
    let mut peer = connections.next().await.unwrap();
    peer.read_head().await.unwrap();
    assert_eq!(peer.read_chunk().await.unwrap(), b"12345");
    client.send_chunk("6789").await.unwrap();
    assert_fault(&client.read_message().await.unwrap(), 413, "body-too-large");
    peer.closed().await.unwrap();
    let mut client = callbox.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 8\r\n\r\n12345678")
        .await
        .unwrap();
    let mut peer = connections.next().await.unwrap();
    assert_eq!(
        peer.read_message().await.unwrap().body,
        b"12345678",
        "the limit itself passes"
    );
    assert_eq!(callbox.server.traffic().faults(FaultKind::BodyTooLarge), 2);
}

#[tokio::test]
async fn without_a_route_it_is_a_502_and_no_record() {
    let (callbox, _connections, _upstream) =
        pair(|settings| settings.upstreams[0].path_prefix = Some("/crm".to_owned())).await;
    let mut client = callbox.client().await;
    client.send(POST).await.unwrap();
    assert_fault(&client.read_message().await.unwrap(), 502, "no-route");
    assert!(callbox.observed.exchanges().is_empty());
    assert_eq!(callbox.server.traffic().faults(FaultKind::NoRoute), 1);
}

#[tokio::test]
async fn routes_lead_to_their_upstreams_with_the_path_as_it_is() {
    let (other, mut others) = callbox_testkit::scripted::Scripted::by_hand()
        .await
        .unwrap();
    let (callbox, mut connections, _upstream) = pair(|settings| {
        let mut crm = upstream_settings("crm", other.address());
        crm.path_prefix = Some("/crm".to_owned());
        settings.upstreams.push(crm);
    })
    .await;
    let mut client = callbox.client().await;
    client
        .send("GET /crm/mcp?x HTTP/1.1\r\nhost: h:80\r\n\r\n")
        .await
        .unwrap();
    let mut peer = others.next().await.unwrap();
    assert_eq!(
        peer.read_head().await.unwrap().line,
        "GET /crm/mcp?x HTTP/1.1"
    );
    peer.send("HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    client.read_head().await.unwrap();
    client
        .send("GET /crmx HTTP/1.1\r\nhost: h:80\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(
        connections
            .next()
            .await
            .unwrap()
            .read_head()
            .await
            .unwrap()
            .line,
        "GET /crmx HTTP/1.1"
    );
    let upstreams = callbox.server.traffic().upstreams();
    let answers: Vec<_> = upstreams
        .iter()
        .map(|(name, traffic)| (name.as_str(), traffic.answers(2)))
        .collect();
    assert_eq!(answers, [("crm", 1), ("up", 0)]);
}

#[tokio::test]
async fn a_slow_head_is_not_waited_for_but_an_idle_connection_is() {
    let limit = Duration::from_millis(300);
    let (callbox, mut connections, _upstream) =
        pair(|settings| settings.listen.request_head_timeout = limit).await;
    let mut silent = callbox.client().await;
    let mut slow = callbox.client().await;
    slow.send("POST / HTTP/1.1\r\nhos").await.unwrap();
    let mut idle = callbox.client().await;
    idle.send(POST).await.unwrap();
    let mut upstream = connections.next().await.unwrap();
    upstream.read_message().await.unwrap();
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    idle.read_message().await.unwrap();
    silent.closed().await.unwrap();
    slow.closed().await.unwrap();
    // The deadline is long past for a connection between two requests: it has none.
    tokio::time::sleep(limit * 2).await;
    idle.send(POST).await.unwrap();
    assert_eq!(upstream.read_message().await.unwrap().body, b"call");
    upstream
        .send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(idle.read_message().await.unwrap().body, b"ok");
    // A further head has it again.
    idle.send("POST / HTTP/1.1\r\nhos").await.unwrap();
    idle.closed().await.unwrap();
    let traffic = callbox.server.traffic();
    callbox.server.drain();
    assert_eq!(traffic.heads_late(), 3);
}

/// A client that sends all of a large body before it looks at the answer.
#[tokio::test]
async fn a_client_in_mid_upload_gets_its_refusal_all_the_same() {
    let (callbox, _connections, _upstream) =
        pair(|settings| settings.listen.max_request_body = Some(1000)).await;
    for _ in 0..20 {
        let mut client = callbox.client().await;
        client
            .send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2000000\r\n\r\n")
            .await
            .unwrap();
        client.send(vec![b'x'; 2_000_000]).await.unwrap();
        assert_fault(&client.read_message().await.unwrap(), 413, "body-too-large");
    }
}

#[tokio::test]
async fn bytes_are_counted_while_a_connection_lives() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let mut client = callbox.client().await;
    let mut upstream = None;
    for _ in 0..2 {
        client.send(POST).await.unwrap();
        if upstream.is_none() {
            upstream = Some(connections.next().await.unwrap());
        }
        let upstream = upstream.as_mut().unwrap();
        upstream.read_message().await.unwrap();
        upstream
            .send("HTTP/1.1 204 No Content\r\nx-request-id: r\r\n\r\n")
            .await
            .unwrap();
        client.read_head().await.unwrap();
    }
    let traffic = callbox.server.traffic();
    assert_eq!(traffic.bytes_in(), 2 * POST.len() as u64);
    assert_eq!(
        traffic.bytes_out(),
        "HTTP/1.1 204 No Content\r\nx-request-id: r\r\n\r\n".len() as u64
    );
}
