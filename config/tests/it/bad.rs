//! What an operator reads when something is wrong: the whole text, so that a change of words shows in review.

use callbox_config::{Env, Overrides, Sources, load};
use insta::assert_snapshot;

use crate::desk::{CERTIFICATE, Desk, KEY};

/// A file with an upstream, so that only the rest is wrong.
fn with_upstream(text: &str) -> Desk {
    Desk::file(text).upstream("http://127.0.0.1:3001")
}

#[test]
fn nothing_at_all() {
    assert_snapshot!(Desk::bare().error(), @"");
}

#[test]
fn all_problems_at_once_in_the_order_of_the_sources() {
    let desk = Desk::file(
        r#"
datta = "x"

[listen]
address = "localhost:8080"
max_connections = "100"
drain_timeout = 30

[[upstream]]
name = "crm"
url = "127.0.0.1:3001"

[[upstream]]
name = "CRM"
ulr = "http://127.0.0.1:3002"

[record]
durability = "before_response"
max_message_bytes = "1M"

[sample]
rate = 0.05
"#,
    )
    .env([
        ("CALLBOX__LOG__LEVEL", "verbose"),
        ("CALLBOX__LISTEN__ADRESS", "0.0.0.0:1"),
    ])
    .flags(Overrides {
        admin: Some(":9464".into()),
        ..Overrides::default()
    });
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn not_toml() {
    assert_snapshot!(with_upstream("[listen\naddress = \"127.0.0.1:1\"\nh2c = maybe\n").error(), @"");
    assert_snapshot!(with_upstream("data = \"a\"\ndata = \"b\"\n").error(), @"");
}

#[test]
fn not_utf8() {
    let desk = Desk::bare();
    let path = desk.folder().join("callbox.toml");
    std::fs::write(&path, b"# caf\xe9\n").unwrap();
    let sources = Sources {
        file: Some(path),
        ..Sources::default()
    };
    assert_snapshot!(desk.text(&load(&sources).unwrap_err().to_string()), @"");
}

#[test]
fn no_such_file() {
    let sources = Sources {
        file: Some("/nowhere/callbox.toml".into()),
        ..Sources::default()
    };
    let error = load(&sources).unwrap_err();
    assert_snapshot!(error, @"");
    assert_snapshot!(std::error::Error::source(&error).unwrap(), @"");
    assert!(error.problems().is_empty());
}

#[test]
fn wrong_types() {
    let desk = with_upstream(
        r#"
data = ["callbox-data"]
admin = "127.0.0.1:9464"

[[listen]]
address = "127.0.0.1:8080"

[record]
payloads = true
queue_events = 1.5
queue_bytes = 67108864
max_sessions = 0
session_idle = 2026-11-30

[record.redact]
keys = "password"
detectors = ["email", "creditcard"]
pointers = [{ tool = "t", pointer = 1 }]

[identity]
conversation = [1]
"#,
    );
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn values_out_of_range() {
    let desk = with_upstream(
        r#"
[listen]
workers = 0
max_connections = -1
tls_timeout = "0s"
request_head_timeout = "200 years"
drain_timeout = "-5s"
max_request_body = "0B"

[record]
max_message_bytes = "0B"
queue_bytes = "1024"
durability_timeout = "5"
session_idle = "soon"

[record.retention]
max_age = "0s"
max_bytes = "10 gigs"
"#,
    );
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn addresses() {
    let desk = with_upstream(
        "listen = { address = \"https://0.0.0.0:443\" }\nadmin = { address = \"9464\" }\n",
    );
    assert_snapshot!(desk.error(), @"");
    let desk = with_upstream(
        "listen = { address = \"127.0.0.1\" }\nadmin = { address = \"0.0.0.0:99999\" }\n",
    );
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn one_address_for_two_listeners() {
    let desk = with_upstream("").flags(Overrides {
        upstream: vec!["http://127.0.0.1:3001".into()],
        listen: Some("0.0.0.0:9464".into()),
        ..Overrides::default()
    });
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn upstream_urls() {
    let desk = Desk::file(
        r#"
[[upstream]]
name = "path"
url = "http://127.0.0.1:3001/mcp"
match = { host = "a" }

[[upstream]]
name = "credentials"
url = "http://user:hunter2@crm.example.com"
match = { host = "b" }

[[upstream]]
name = "scheme"
url = "ws://crm.example.com"
match = { host = "c" }

[[upstream]]
name = "host"
url = "http://"
match = { host = "d" }

[[upstream]]
name = "port"
url = "http://crm.example.com:0"
match = { host = "e" }

[[upstream]]
name = "fragment"
url = "http://crm.example.com/#x"
match = { host = "f" }

[[upstream]]
name = "query"
url = "https://crm.example.com?api_key=hunter2"
match = { host = "g" }

[[upstream]]
name = "umlaut"
url = "http://münchen.example"
match = { host = "h" }

[[upstream]]
name = "none"
match = { host = "i" }
"#,
    );
    let error = desk.error();
    assert!(!error.contains("hunter2"), "{error}");
    assert_snapshot!(error, @"");
}

#[test]
fn upstreams_in_one_anothers_way() {
    let desk = Desk::file(
        r#"
[[upstream]]
name = "crm"
url = "http://127.0.0.1:3001"

[[upstream]]
name = "Crm"
url = "http://127.0.0.1:3002"

[[upstream]]
url = "http://127.0.0.1:3003"
match = { path_prefix = "/a/" }

[[upstream]]
name = "_x"
url = "http://127.0.0.1:3004"
match = { path_prefix = "/a" }
"#,
    );
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn upstream_rules() {
    let desk = Desk::file(
        r#"
[[upstream]]
name = "a"
url = "http://127.0.0.1:3001"
match = { path_prefix = "crm", host = "https://crm.example.com:8443/" }

[[upstream]]
name = "b"
url = "http://127.0.0.1:3002"
match = { path_prefix = "/a/../b", host = "*.example.com" }
tls = { ca = "ca.pem" }

[[upstream]]
name = "c"
url = "https://127.0.0.1:3003"
match = { path_prefix = "/a?b", host = "" }
tls = { certificate = "c.pem", server_name = "https://x" }
"#,
    );
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn an_upstream_that_is_callbox() {
    assert_snapshot!(Desk::bare().upstream("http://localhost:8080").error(), @"");
    assert_snapshot!(Desk::bare().upstream("http://127.0.0.1:9464").error(), @"");
}

#[test]
fn upstream_flag_twice() {
    let desk = Desk::bare().flags(Overrides {
        upstream: vec![
            "http://127.0.0.1:3001".into(),
            "http://u:hunter2@127.0.0.1:3002".into(),
        ],
        ..Overrides::default()
    });
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn certificate_files() {
    let desk = with_upstream(
        r#"
[listen.tls]
certificate = "tls/a.key"
key = "tls/missing.key"
client_certificate = "optional"
"#,
    );
    desk.put("tls/a.key", KEY);
    assert_snapshot!(desk.error(), @"");

    let desk = with_upstream(
        "[listen.tls]\ncertificate = \"a.crt\"\nkey = \"a.crt\"\nclient_ca = \".\"\n",
    );
    desk.put("a.crt", CERTIFICATE);
    assert_snapshot!(desk.error(), @"");

    let desk = with_upstream(
        "[listen.tls]\ncertificate = \"a.crt\"\nkey = \"~/a.key\"\nclient_ca = \"\"\n",
    );
    desk.put("a.crt", "no pem\n");
    assert_snapshot!(desk.error(), @"");

    let desk = with_upstream("[listen.tls]\ncertificate = \"a.crt\"\n");
    desk.put("a.crt", CERTIFICATE);
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn secrets_are_not_shown() {
    for (text, variables) in [
        ("[admin]\ntoken = \"hunter2\"\n", [("A", "b")]),
        ("[admin]\ntokn = \"hunter2\"\n", [("A", "b")]),
        ("[admin]\ntoken = { value = \"hunter2\" }\n", [("A", "b")]),
        ("[admin]\ntoken = hunter2\n", [("A", "b")]),
        (
            "[admin]\ntoken = { env = \"T\" }\n",
            [("T", "hunter2 hunter2")],
        ),
        ("", [("CALLBOX__ADMIN__TOKEN", "hunter2")]),
        ("", [("CALLBOX__ADMIN__TOKEN", "\"hunter2\"")]),
        ("", [("CALLBOX__ADMIN__TOKN", "hunter2")]),
    ] {
        let error = with_upstream(text).env(variables).error();
        assert!(!error.contains("hunter2"), "{error}");
    }
    let desk = with_upstream("[admin]\ntoken = \"hunter2\"\n");
    assert_snapshot!(desk.error(), @"");
    assert!(
        !format!("{:?}", with_upstream("").env([("T", "hunter2")]).sources).contains("hunter2")
    );
}

#[test]
fn secrets_that_are_not_there() {
    let desk = with_upstream("[admin]\ntoken = { env = \"NO_SUCH\" }\n");
    assert_snapshot!(desk.error(), @"");
    let desk = with_upstream("[admin]\ntoken = { file = \"token\" }\n");
    assert_snapshot!(desk.error(), @"");
    desk.put("token", " \n");
    assert_snapshot!(desk.error(), @"");
    let desk =
        with_upstream("[admin]\ntoken = { file = \"token\", env = \"T\" }\n").env([("T", "t")]);
    assert_snapshot!(desk.error(), @"");
    let desk = with_upstream("[admin]\ntoken = { }\n");
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn identity_redaction_and_log() {
    let desk = with_upstream(
        r#"
[identity]
principal = { header = "x user", claim = "sub" }
tenant = { header = "x tenant" }
conversation = [" "]

[record.redact]
keys = ["password", "--"]
pointers = [
  { tool = "create", pointer = "$.contact.email" },
  { tool = "", pointer = "/a~b" },
  { pointer = "/a" },
]

[log]
level = "info,callbox_proxy=verbos"
format = "text"
"#,
    );
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn variables() {
    let desk = with_upstream("").env([
        ("CALLBOX__", "x"),
        ("CALLBOX__ADMIN", "127.0.0.1:1"),
        ("CALLBOX__LISTEN__MAX_CONNECTIONS", "many"),
        ("CALLBOX__LISTEN__H2C", "yes"),
        ("CALLBOX__LISTEN__TLS__CERT", "a"),
        ("CALLBOX__RECORD__REDACT__KEYS", "password,token"),
        ("CALLBOX__RECORD__REDACT__DETECTORS", "[\"emial\"]"),
        ("CALLBOX__UPSTREAM__0__URL", "http://127.0.0.1:3001"),
        ("CALLBOX__listen__address", "127.0.0.1:1"),
        ("CALLBOX_BLESS", "0"),
    ]);
    assert_snapshot!(desk.error(), @"");
}

#[cfg(unix)]
#[test]
fn text_that_is_not_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let bad = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
    let mut desk = with_upstream("");
    desk.sources.env = Env::from_iter([("CALLBOX__DATA", bad.clone())]);
    desk.sources.overrides.data = Some(bad.into());
    assert_snapshot!(desk.error(), @"");
}

#[test]
fn warnings() {
    let desk = with_upstream(
        "[admin]\naddress = \"0.0.0.0:9464\"\n[record.redact]\nkeys = [\"Password\", \"pin\"]\n",
    );
    assert_snapshot!(desk.warnings(), @"");
    let desk = with_upstream("");
    assert_eq!(desk.warnings(), "");
}
