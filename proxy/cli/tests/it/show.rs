//! `show`: timelines and single calls.

use insta::assert_snapshot;

use crate::fixture::{Data, START, crm, id, trouble_records};
use crate::run::{json, told};

#[test]
fn a_session_as_a_timeline() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", &id(START).to_string()]), @r#"
    exit code: 0
    ----- stdout -----
    session 01a22cc4  claude-desktop 2.1 -> crm  2025-11-25  tenant acme  principal h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6
    01a22cc4-31a8-7000-8000-0000ca11b0c5  2026-11-30 14:03:05.000 UTC  lasted 1 min 10 s  source protocol
       14:03:05.001  -> initialize  claude-desktop 2.1, 2025-11-25 -> crm-server 1.4, 2025-11-25
       14:03:05.060  -> tools/list  2 tools
    1  14:03:07.120  search_contacts  query="Dana Kim"                           ok          34 ms  0 matches
    2  14:03:09.482  search_contacts  query="dana@northwind.example" limit=1.50  ok          34 ms  0 matches
    3  14:03:12.007  create_contact   name="Dana Kim" company="Northwind"        ok          1.0 s  {"id":"c_151"}  sampled
         <- progress ×2
       … 39.9 s
    4  14:03:53.000  delete_contact   id="c_151"                                 tool_error  4.8 s
         The user declined.
         Nothing was deleted; ask before you try again.
         <- elicitation/create  Delete Dana Kim? -> decline
         flags: duplicate_response
       … 10.1 s
       14:04:07.900  -> ping
       14:04:15.000  -> DELETE  200
    4 calls, 1 failed, 5.9 s in tools, 44.7 s between them
    ----- stderr -----
    hint: callbox show 01a22cc4 4 shows all of call 4
    "#);
}

#[test]
fn a_session_where_all_goes_wrong() {
    let data = Data::with(trouble_records());
    assert_snapshot!(told(&data.dir, &["show", &id(START + 86_400_000_000).to_string()]), @r"
    exit code: 0
    ----- stdout -----
    session 01a231ea  unknown client -> billing  2026-07-28  principal h:9f77000000000000000000000000beef (asserted)
    01a231ea-8da8-7000-8000-0000ca11b0c5  2026-12-01 14:03:05.000 UTC  lasted 6.0 s  source inferred
    1  14:03:06.000  refund  invoice=1  rpc_error   34 ms
         -32602 Unknown invoice
    2  14:03:07.000  refund  invoice=2  http_error  34 ms
         <html>
         <h1>Bad Gateway</h1>
         </html>
    3  14:03:08.000  refund  invoice=3  lost        34 ms
    4  14:03:09.000  refund  invoice=4  aborted     34 ms
    5  14:03:10.000  refund  invoice=5  unreadable  34 ms
         capture: request full, response truncated: over 1048576 bytes: 5242880 bytes
    6  14:03:11.000  refund  invoice=6  pending         -
         2 exchanges joined
    6 calls, 5 failed, 1 pending, 171 ms in tools, 4.8 s between them
    ----- stderr -----
    hint: callbox show 01a231ea 5 shows all of call 5
    ");
}

#[test]
fn a_call() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", &id(START + 7_007_000).to_string()]), @r#"
    exit code: 0
    ----- stdout -----
    call 01a22cc4-4d07-7000-8000-0000ca11b0c5
    create_contact  ok  1.0 s  2026-11-30 14:03:12.007 UTC

      session       01a22cc4-31a8-7000-8000-0000ca11b0c5  call 3, source protocol
      client        claude-desktop 2.1
      upstream      crm  2025-11-25
      principal     h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6
      tenant        acme
      request id    req-3
      exchange      01a22cc4-4d07-7004-8000-0000ca11b0c5
      json-rpc id   3
      trace         0af7651916cd43dd8448eb211c80319c  span b7ad6b7169203331
      http          POST /mcp HTTP/1.1 -> 200
      end           complete
      first byte    after 12 ms
      bodies        request 180 B, response 912 B
      catalogue     sha256:4f2e000000000000000000000000000000000000000000000000000000000007
      sample        chosen, probability 0.05

    arguments
      {
        "name": "Dana Kim",
        "company": "Northwind"
      }

    result  text as the model read it
      {
        "id": "c_151"
      }

    events
             3.4 ms  progress
           500.0 ms  progress
          1041.0 ms  response
    ----- stderr -----
    hint: callbox show 01a22cc4 shows its session
    "#);
}

#[test]
fn a_failed_call_with_headers() {
    let data = crm();
    assert_snapshot!(told(&data.dir, &["show", "--headers", &id(START + 48_000_000).to_string()]), @r#"
    exit code: 0
    ----- stdout -----
    call 01a22cc4-ed28-7000-8000-0000ca11b0c5
    delete_contact  tool_error  4.8 s  2026-11-30 14:03:53.000 UTC

      session       01a22cc4-31a8-7000-8000-0000ca11b0c5  call 4, source protocol
      client        claude-desktop 2.1
      upstream      crm  2025-11-25
      principal     h:9f2c41d08c3b5a6e7f8091a2b3c4d5e6
      tenant        acme
      request id    req-4
      exchange      01a22cc4-ed28-7004-8000-0000ca11b0c5
      json-rpc id   4
      trace         0af7651916cd43dd8448eb211c80319c  span b7ad6b7169203331
      http          POST /mcp HTTP/1.1 -> 200
      end           complete
      first byte    after 12 ms
      bodies        request 180 B, response 912 B
      confirmation  decline
      catalogue     sha256:4f2e000000000000000000000000000000000000000000000000000000000007
      flags         duplicate_response
      sample        not chosen, probability 0.05

    arguments
      {
        "id": "c_151"
      }

    error  text as the model read it
      The user declined.
      Nothing was deleted; ask before you try again.

    request headers
      host: mcp.northwind.example
      content-type: application/json
      authorization: [redacted:authorization:9f2c1ab0]

    response headers
      content-type: application/json
      x-request-id: req-4
    ----- stderr -----
    hint: callbox show 01a22cc4 shows its session
    "#);
}

#[test]
fn calls_without_an_answer() {
    let data = Data::with(trouble_records());
    let show = |seconds: i64| {
        told(
            &data.dir,
            &[
                "show",
                &id(START + (86_400 + seconds) * 1_000_000).to_string(),
            ],
        )
    };
    assert_snapshot!(show(1), @r#"
    exit code: 0
    ----- stdout -----
    call 01a231ea-9190-7000-8000-0000ca11b0c5
    refund  rpc_error  34 ms  2026-12-01 14:03:06.000 UTC

      session       01a231ea-8da8-7000-8000-0000ca11b0c5  call 1, source inferred
      upstream      billing  2026-07-28
      principal     h:9f77000000000000000000000000beef  asserted by an unverified claim
      request id    req-1
      exchange      01a231ea-9190-7004-8000-0000ca11b0c5
      json-rpc id   1
      trace         0af7651916cd43dd8448eb211c80319c  span b7ad6b7169203331
      http          POST /mcp HTTP/1.1 -> 200
      end           complete
      first byte    after 12 ms
      bodies        request 180 B, response 912 B
      catalogue     sha256:4f2e000000000000000000000000000000000000000000000000000000000007
      sample        not chosen, probability 0.05

    arguments
      {
        "invoice": 1
      }

    error  as the client read it
      -32602 Unknown invoice

    error object
      {
        "code": -32602,
        "message": "Unknown invoice",
        "data": {
          "invoice": 1
        }
      }
    ----- stderr -----
    hint: callbox show 01a231ea shows its session
    "#);
    assert_snapshot!(show(2), @r#"
    exit code: 0
    ----- stdout -----
    call 01a231ea-9578-7000-8000-0000ca11b0c5
    refund  http_error  34 ms  2026-12-01 14:03:07.000 UTC

      session       01a231ea-8da8-7000-8000-0000ca11b0c5  call 2, source inferred
      upstream      billing  2026-07-28
      principal     h:9f77000000000000000000000000beef  asserted by an unverified claim
      request id    req-2
      exchange      01a231ea-9578-7004-8000-0000ca11b0c5
      json-rpc id   2
      trace         0af7651916cd43dd8448eb211c80319c  span b7ad6b7169203331
      http          POST /mcp HTTP/1.1 -> 502
      end           complete
      first byte    after 12 ms
      bodies        request 180 B, response 912 B
      catalogue     sha256:4f2e000000000000000000000000000000000000000000000000000000000007
      sample        not chosen, probability 0.05

    arguments
      {
        "invoice": 2
      }

    error  as the client read it
      <html>
      <h1>Bad Gateway</h1>
      </html>
    ----- stderr -----
    hint: callbox show 01a231ea shows its session
    "#);
    assert_snapshot!(show(5), @r#"
    exit code: 0
    ----- stdout -----
    call 01a231ea-a130-7000-8000-0000ca11b0c5
    refund  unreadable  34 ms  2026-12-01 14:03:10.000 UTC

      session       01a231ea-8da8-7000-8000-0000ca11b0c5  call 5, source inferred
      upstream      billing  2026-07-28
      principal     h:9f77000000000000000000000000beef  asserted by an unverified claim
      request id    req-5
      exchange      01a231ea-a130-7004-8000-0000ca11b0c5
      json-rpc id   5
      trace         0af7651916cd43dd8448eb211c80319c  span b7ad6b7169203331
      http          POST /mcp HTTP/1.1 -> 200
      end           complete
      first byte    after 12 ms
      bodies        request 180 B, response 5.0 MiB
      catalogue     sha256:4f2e000000000000000000000000000000000000000000000000000000000007
      capture       request full, response truncated: over 1048576 bytes: 5242880 bytes
      sample        not chosen, probability 0.05

    arguments
      {
        "invoice": 5
      }

    result  none
    ----- stderr -----
    hint: callbox show 01a231ea shows its session
    "#);
    assert_snapshot!(show(6), @r#"
    exit code: 0
    ----- stdout -----
    call 01a231ea-a518-7000-8000-0000ca11b0c5
    refund  pending  not ended  2026-12-01 14:03:11.000 UTC

      session       01a231ea-8da8-7000-8000-0000ca11b0c5  call 6, source inferred
      upstream      billing  2026-07-28
      principal     h:9f77000000000000000000000000beef  asserted by an unverified claim
      request id    req-6
      exchange      01a231ea-a518-7004-8000-0000ca11b0c5
      json-rpc id   6
      trace         0af7651916cd43dd8448eb211c80319c  span b7ad6b7169203331
      http          POST /mcp HTTP/1.1 -> no answer
      end           open
      bodies        request 180 B, response 912 B
      exchanges     2 joined
      catalogue     sha256:4f2e000000000000000000000000000000000000000000000000000000000007
      sample        not chosen, probability 0.05

    arguments
      {
        "invoice": 6
      }

    result  none
    ----- stderr -----
    hint: callbox show 01a231ea shows its session
    "#);
}

#[test]
fn a_session_as_json_is_everything_in_order() {
    let data = crm();
    let lines = json(&data.dir, &["show", "--json", &id(START).to_string()]);
    let order: Vec<String> = lines
        .iter()
        .map(|line| {
            let schema = line["schema"].as_str().unwrap();
            let name = line["tool"]
                .as_str()
                .or(line["method"].as_str())
                .unwrap_or("");
            format!("{schema} {name}").trim_end().to_owned()
        })
        .collect();
    assert_snapshot!(order.join("\n"), @r"
    callbox.session/1
    callbox.message/1 initialize
    callbox.message/1 initialize
    callbox.message/1 notifications/initialized
    callbox.message/1 tools/list
    callbox.message/1 tools/list
    callbox.call/1 search_contacts
    callbox.call/1 search_contacts
    callbox.call/1 create_contact
    callbox.message/1 notifications/progress
    callbox.message/1 notifications/progress
    callbox.call/1 delete_contact
    callbox.message/1 elicitation/create
    callbox.message/1 elicitation/create
    callbox.message/1 ping
    callbox.message/1 ping
    callbox.message/1 DELETE
    ");
    let message = lines
        .iter()
        .find(|line| line["schema"] == "callbox.message/1")
        .unwrap();
    assert_snapshot!(message.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" "), @"at body call direction exchange_id flags http_status id jsonrpc_id kind method schema session");
}

#[test]
fn a_call_as_json_is_the_call() {
    let data = crm();
    let id = id(START + 2_120_000).to_string();
    let shown = json(&data.dir, &["show", "--json", &id]);
    assert_eq!(
        shown,
        json(
            &data.dir,
            &["calls", "--json", "--until", "2026-11-30T14:03:08Z"]
        )
    );
    assert_eq!(shown[0]["id"], id.as_str());
}

#[test]
fn a_call_by_its_number() {
    let data = crm();
    let session = &id(START).to_string()[..8];
    let shown = json(&data.dir, &["show", "--json", session, "3"]);
    assert_eq!(
        (&shown[0]["seq"], &shown[0]["tool"]),
        (&3.into(), &"create_contact".into())
    );
    assert_snapshot!(told(&data.dir, &["show", session, "9"]), @r"
    exit code: 2
    ----- stdout -----
    ----- stderr -----
    error: session 01a22cc4 has no call 9 in the log

    hint: callbox show 01a22cc4 lists its calls
    ");
}
