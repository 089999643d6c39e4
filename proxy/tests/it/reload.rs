//! New settings while exchanges are under way.

use callbox_config::Stamp;
use callbox_testkit::scripted::Scripted;

use super::harness::{over, pair, upstream_settings};

const GET: &str = "GET /crm HTTP/1.1\r\nhost: h\r\n\r\n";

#[tokio::test]
async fn routes_and_limits_change_and_running_calls_go_on() {
    let (callbox, mut connections, _upstream) = pair(|_| {}).await;
    let (other, mut others) = Scripted::by_hand().await.unwrap();
    let mut running = callbox.client().await;
    running.send(GET).await.unwrap();
    let mut old = connections.next().await.unwrap();
    old.read_head().await.unwrap();
    let mut settings = callbox.settings.clone();
    let mut crm = upstream_settings("crm", other.address());
    crm.path_prefix = Some("/crm".to_owned());
    settings.upstreams.push(crm);
    settings.listen.stamp = Stamp::None;
    callbox.server.reload(&settings).unwrap();
    let (asked, _) = over(
        &callbox,
        &mut others,
        GET,
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    )
    .await
    .unwrap();
    assert!(asked.head.all("x-request-id").is_empty());
    old.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .await
        .unwrap();
    assert_eq!(running.read_message().await.unwrap().body, b"ok");
    // The connection to the upstream that did not change is still there.
    running
        .send("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(old.read_head().await.unwrap().line, "GET / HTTP/1.1");
}

#[tokio::test]
async fn what_only_a_restart_can_change_is_refused_by_name() {
    let (callbox, _connections, _upstream) = pair(|_| {}).await;
    let mut settings = callbox.settings.clone();
    settings.listen.workers = 7.try_into().unwrap();
    let error = callbox.server.reload(&settings).unwrap_err();
    assert_eq!(
        error.to_string(),
        "listen.workers cannot be changed while callbox runs; restart it"
    );
    let mut settings = callbox.settings.clone();
    settings.upstreams[0].https = true;
    settings.upstreams[0].tls.ca = Some("/nonexistent".into());
    assert!(callbox.server.reload(&settings).is_err());
    assert!(callbox.server.reload(&callbox.settings).is_ok());
}
