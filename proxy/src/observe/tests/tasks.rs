//! Tasks: a call whose outcome comes later, by another request or none.

use callbox_store::{End, Outcome};

use super::feed::{Feed, flags, modern, outcomes, raw, result};

fn begin(feed: &mut Feed, headers: &str, task: &str) {
    let id = feed.post(
        headers,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long","arguments":{},"task":{"ttl":60000}}}"#,
    );
    feed.json(
        id,
        &format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"task":{{"taskId":"{task}","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":60000}}}}}}"#
        ),
    );
}

fn ask(feed: &mut Feed, headers: &str, id: &str, method: &str, task: &str) -> uuid::Uuid {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"taskId":"{task}"}}}}"#
    );
    feed.post(headers, &body)
}

#[test]
fn a_result_fetched_later_concludes_the_call() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    begin(&mut feed, &headers, "t-1");
    assert_eq!(
        (feed.call().outcome, feed.call().duration_us),
        (Outcome::Pending, None)
    );
    feed.wait(1000);
    let get = ask(&mut feed, &headers, "2", "tasks/get", "t-1");
    feed.json(
        get,
        r#"{"jsonrpc":"2.0","id":2,"result":{"taskId":"t-1","status":"completed"}}"#,
    );
    assert_eq!(
        feed.call().outcome,
        Outcome::Pending,
        "what came of it is not said yet"
    );
    let fetch = ask(&mut feed, &headers, "3", "tasks/result", "t-1");
    feed.stream(fetch);
    feed.wait(500);
    feed.event(
        fetch,
        r#"{"jsonrpc":"2.0","id":3,"result":{"content":[],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}"#,
    );
    feed.done(fetch);
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.end, call.legs),
        (Outcome::ToolError, End::Complete, 2)
    );
    assert_eq!(call.duration_us, Some(1_500_000));
    assert!(raw(call.result.as_ref()).contains("isError"));
    let messages = feed.messages();
    let last = messages.last().unwrap();
    assert_eq!(
        (last.method.as_deref(), last.call, last.body.is_none()),
        (Some("tasks/result"), Some(call.id), true)
    );
}

#[test]
fn an_error_fetched_later_is_the_calls() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    begin(&mut feed, &headers, "t-1");
    let fetch = ask(&mut feed, &headers, "3", "tasks/result", "t-1");
    feed.json(
        fetch,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"boom"}}"#,
    );
    let call = feed.call();
    assert_eq!(
        (call.outcome, raw(call.error.as_ref())),
        (Outcome::RpcError, r#"{"code":-32603,"message":"boom"}"#)
    );
}

#[test]
fn a_task_that_nobody_fetches_ends_as_last_told() {
    for (status, outcome) in [
        ("completed", Outcome::Ok),
        ("failed", Outcome::ToolError),
        ("working", Outcome::Abandoned),
    ] {
        let mut feed = Feed::new();
        let headers = feed.initialize("2025-11-25", "s", "");
        begin(&mut feed, &headers, "t-1");
        let stream = feed.get(&headers);
        feed.stream(stream);
        feed.event(
            stream,
            &format!(r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"t-1","status":"{status}"}}}}"#),
        );
        feed.wait(601_000);
        assert_eq!(feed.call().outcome, outcome);
        assert_eq!(feed.messages().last().unwrap().call, Some(feed.call().id));
    }
}

#[test]
fn a_cancelled_task_is_cancelled() {
    let mut feed = Feed::new();
    let headers = feed.initialize("2025-11-25", "s", "");
    begin(&mut feed, &headers, "t-1");
    let cancel = ask(&mut feed, &headers, "2", "tasks/cancel", "t-1");
    feed.json(
        cancel,
        r#"{"jsonrpc":"2.0","id":2,"result":{"taskId":"t-1","status":"cancelled"}}"#,
    );
    assert_eq!(feed.call().outcome, Outcome::Cancelled);
}

#[test]
fn a_task_of_another_session_is_another_task() {
    let mut feed = Feed::new();
    let one = feed.initialize("2025-11-25", "s-1", "");
    let two = feed.initialize("2025-11-25", "s-2", "");
    begin(&mut feed, &one, "1");
    begin(&mut feed, &two, "1");
    let fetch = ask(&mut feed, &two, "3", "tasks/result", "1");
    feed.json(fetch, &result("3", "x"));
    assert_eq!(outcomes(&feed.calls()), [Outcome::Pending, Outcome::Ok]);
}

fn begin_modern(feed: &mut Feed) {
    let (headers, body) = modern("1", "tools/call", "long", r#""name":"long","arguments":{}"#);
    let id = feed.post(&headers, &body);
    feed.json(
        id,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t-9","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}}"#,
    );
    assert_eq!(feed.call().outcome, Outcome::Pending);
}

fn get_modern(feed: &mut Feed, id: &str, told: &str) {
    let (headers, body) = modern(id, "tasks/get", "t-9", r#""taskId":"t-9""#);
    let exchange = feed.post(&headers, &body);
    feed.json(
        exchange,
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","taskId":"t-9",{told}}}}}"#),
    );
}

#[test]
fn the_extension_tells_the_result_with_the_task() {
    for (told, outcome) in [
        (
            r#""status":"completed","result":{"content":[]}"#,
            Outcome::Ok,
        ),
        (
            r#""status":"completed","result":{"content":[],"isError":true}"#,
            Outcome::ToolError,
        ),
        (
            r#""status":"failed","error":{"code":-32603,"message":"x"}"#,
            Outcome::RpcError,
        ),
        (r#""status":"cancelled""#, Outcome::Cancelled),
    ] {
        let mut feed = Feed::new();
        begin_modern(&mut feed);
        get_modern(&mut feed, "2", r#""status":"working""#);
        assert_eq!(feed.call().outcome, Outcome::Pending);
        get_modern(&mut feed, "3", told);
        let call = feed.call();
        assert_eq!(
            (call.outcome, call.end, call.legs),
            (outcome, End::Complete, 2),
            "{told}"
        );
        assert!(
            feed.messages()
                .iter()
                .all(|message| message.session.id == call.session.id)
        );
    }
}

#[test]
fn a_listen_stream_may_tell_it_first() {
    let mut feed = Feed::new();
    begin_modern(&mut feed);
    let (headers, body) = modern(
        "5",
        "subscriptions/listen",
        "",
        r#""notifications":{"taskIds":["t-9"]}"#,
    );
    let listen = feed.post(&headers, &body);
    feed.stream(listen);
    feed.event(listen, r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}"#);
    feed.event(listen, r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t-9","status":"completed","result":{"content":[{"type":"text","text":"told"}]}}}"#);
    feed.wait(300);
    let call = feed.call();
    assert_eq!(call.outcome, Outcome::Ok);
    assert!(raw(call.result.as_ref()).contains("told"));
    get_modern(
        &mut feed,
        "6",
        r#""status":"completed","result":{"content":[]}"#,
    );
    assert!(
        raw(feed.call().result.as_ref()).contains("told"),
        "the first telling stands"
    );
}

#[test]
fn input_for_a_task_confirms_its_call() {
    let mut feed = Feed::new();
    begin_modern(&mut feed);
    get_modern(
        &mut feed,
        "2",
        r#""status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{}}}"#,
    );
    let (headers, body) = modern(
        "3",
        "tasks/update",
        "t-9",
        r#""taskId":"t-9","inputResponses":{"q":{"action":"decline"}}"#,
    );
    let update = feed.post(&headers, &body);
    feed.json(
        update,
        r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete"}}"#,
    );
    get_modern(
        &mut feed,
        "4",
        r#""status":"completed","result":{"content":[]}"#,
    );
    let call = feed.call();
    assert_eq!(
        (call.outcome, call.confirmation.as_deref()),
        (Outcome::Ok, Some("decline"))
    );
}

#[test]
fn a_result_after_a_cancel_is_late() {
    let mut feed = Feed::new();
    begin_modern(&mut feed);
    let (headers, body) = modern("2", "tasks/cancel", "t-9", r#""taskId":"t-9""#);
    let cancel = feed.post(&headers, &body);
    feed.stream(cancel);
    feed.event(
        cancel,
        r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}"#,
    );
    get_modern(
        &mut feed,
        "3",
        r#""status":"completed","result":{"content":[]}"#,
    );
    feed.done(cancel);
    let call = feed.call();
    assert_eq!(
        (call.outcome, flags(&call)),
        (Outcome::Cancelled, vec!["late_result"])
    );
}
