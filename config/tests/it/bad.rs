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
    assert_snapshot!(Desk::bare().error(), @"
    1 problem in the configuration

    upstream: no server to forward to
      fix: start with `--upstream http://127.0.0.1:3001`, or write [[upstream]] with a url into the file
    ");
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
    assert_snapshot!(desk.error(), @r#"
    14 problems in the configuration

    callbox.toml:2:1: datta: unknown key
      allowed: at the top: data, listen, upstream, record, identity, admin, log
      fix: did you mean `data`?

    callbox.toml:5:11: listen.address: not an IP address with a port
      found: "localhost:8080"
      allowed: IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one
      fix: write "127.0.0.1:8080"

    callbox.toml:6:19: listen.max_connections: expected a whole number, found a string
      found: "100"
      allowed: a whole number from 1 to 1000000
      fix: write a number: 100

    callbox.toml:7:17: listen.drain_timeout: expected a string, found a whole number
      found: 30
      allowed: a duration such as "500ms", "30s", "10m", "30d"
      fix: write the unit: "30s"

    callbox.toml:11:7: upstream[0].url: the scheme is missing
      found: "127.0.0.1:3001"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"
      fix: write "http://127.0.0.1:3001"

    callbox.toml:13:1: upstream[1].match: takes every request, and so does upstream[0]
      allowed: at most one upstream without match
      fix: add match = { path_prefix = "/…" } or match = { host = "…" } to all but one

    callbox.toml:14:8: upstream[1].name: the same name as upstream[0]
      found: "CRM"
      fix: give each upstream a name of its own; case does not make a difference

    callbox.toml:15:1: upstream[1].ulr: unknown key
      allowed: in upstream[1]: name, url, protocol, connect_timeout, tls_timeout, response_head_timeout, idle_timeout, max_idle, host_header, forwarded, match, tls
      fix: did you mean `upstream[1].url`?

    callbox.toml:18:14: record.durability: value not allowed
      found: "before_response"
      allowed: "commit", "before-response"
      fix: did you mean "before-response"?

    callbox.toml:19:21: record.max_message_bytes: not a size
      found: "1M"
      allowed: a whole number with a unit: B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000)
      fix: write the unit in full: "1MiB"

    callbox.toml:21:2: sample: unknown key
      allowed: at the top: data, listen, upstream, record, identity, admin, log

    CALLBOX__LISTEN__ADRESS: no setting has this name
      allowed: CALLBOX__SECTION__KEY in capitals, such as CALLBOX__LISTEN__ADDRESS
      fix: did you mean CALLBOX__LISTEN__ADDRESS?

    CALLBOX__LOG__LEVEL: log.level: not a log level
      found: "verbose"
      allowed: off, error, warn, info, debug, trace; or a list such as "info,callbox_proxy=debug"
      fix: did you mean "trace"?

    --admin: admin.address: not an IP address with a port
      found: ":9464"
      allowed: IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one
      fix: write "127.0.0.1:9464" for this machine only, "0.0.0.0:9464" for all
    "#);
}

#[test]
fn not_toml() {
    assert_snapshot!(with_upstream("[listen\naddress = \"127.0.0.1:1\"\nh2c = maybe\n").error(), @"
    1 problem in the configuration

    callbox.toml:1:8: not TOML: unclosed table, expected `]`
    ");
    assert_snapshot!(with_upstream("a =\nh2c = maybe\n[x\n").error(), @"
    3 problems in the configuration

    callbox.toml:1:4: not TOML: string values must be quoted, expected literal string

    callbox.toml:2:7: not TOML: string values must be quoted, expected literal string

    callbox.toml:3:3: not TOML: unclosed table, expected `]`
    ");
    assert_snapshot!(with_upstream("data = \"a\"\ndata = \"b\"\n").error(), @"
    1 problem in the configuration

    callbox.toml:2:1: not TOML: duplicate key
    ");
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
    assert_snapshot!(desk.text(&load(&sources).unwrap_err().to_string()), @"
    1 problem in the configuration

    callbox.toml:1:6: not TOML: the text is not UTF-8
    ");
}

#[test]
fn no_such_file() {
    let sources = Sources {
        file: Some("/nowhere/callbox.toml".into()),
        ..Sources::default()
    };
    let error = load(&sources).unwrap_err();
    assert_snapshot!(error, @"cannot read the configuration file /nowhere/callbox.toml");
    assert_snapshot!(std::error::Error::source(&error).unwrap(), @"No such file or directory (os error 2)");
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
    assert_snapshot!(desk.error(), @r#"
    12 problems in the configuration

    callbox.toml:2:8: data: expected a string, found a list
      allowed: a path, as a string

    callbox.toml:3:9: admin: expected a table, found a string
      found: "127.0.0.1:9464"
      allowed: a table with address, token

    callbox.toml:5:1: listen: expected a table, found a list
      allowed: a table with address, h2c, workers, max_connections, tls_timeout, request_head_timeout, drain_timeout, max_request_body, half_close, stamp, tls
      fix: write the section once, in single brackets: [listen]

    callbox.toml:9:12: record.payloads: expected a string, found a boolean
      found: true
      allowed: "redacted", "none"

    callbox.toml:10:16: record.queue_events: expected a whole number, found a fraction
      found: 1.5
      allowed: a whole number from 16 to 16777216

    callbox.toml:11:15: record.queue_bytes: expected a string, found a whole number
      found: 67108864
      allowed: a size such as "512B", "64KiB", "1MiB", "10GiB"
      fix: write the unit: "67108864B"

    callbox.toml:12:16: record.max_sessions: value not allowed
      found: 0
      allowed: a whole number from 1 to 10000000

    callbox.toml:13:16: record.session_idle: expected a string, found a date or time
      found: 2026-11-30
      allowed: a duration such as "500ms", "30s", "10m", "30d"

    callbox.toml:16:8: record.redact.keys: expected a list, found a string
      found: "password"
      allowed: a list of strings
      fix: put it in brackets: ["password"]

    callbox.toml:17:23: record.redact.detectors[1]: value not allowed
      found: "creditcard"
      allowed: "pem", "jwt", "cloud-key", "card", "email", "phone", "iban", "url-credential", "ssn"
      fix: did you mean "card"?

    callbox.toml:18:37: record.redact.pointers[0].pointer: expected a string, found a whole number
      found: 1
      allowed: a string
      fix: write it in quotes: "1"

    callbox.toml:21:17: identity.conversation[0]: expected a string, found a whole number
      found: 1
      allowed: a string
      fix: write it in quotes: "1"
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    12 problems in the configuration

    callbox.toml:3:11: listen.workers: value not allowed
      found: 0
      allowed: a whole number from 1 to 1024

    callbox.toml:4:19: listen.max_connections: value not allowed
      found: -1
      allowed: a whole number from 1 to 1000000

    callbox.toml:5:15: listen.tls_timeout: out of range
      found: "0s"
      allowed: from "1ms" to "36500d"

    callbox.toml:6:24: listen.request_head_timeout: not a duration
      found: "200 years"
      allowed: a number with a unit: ms, s, m, h, d, w; such as "500ms", "1h 30m", "30d"

    callbox.toml:7:17: listen.drain_timeout: not a duration
      found: "-5s"
      allowed: a number with a unit: ms, s, m, h, d, w; such as "500ms", "1h 30m", "30d"

    callbox.toml:8:20: listen.max_request_body: out of range
      found: "0B"
      allowed: from "1B" to "1PiB"

    callbox.toml:11:21: record.max_message_bytes: out of range
      found: "0B"
      allowed: from "1KiB" to "1GiB"

    callbox.toml:12:15: record.queue_bytes: not a size
      found: "1024"
      allowed: a whole number with a unit: B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000)
      fix: write the unit: "1024B"

    callbox.toml:13:22: record.durability_timeout: not a duration
      found: "5"
      allowed: a number with a unit: ms, s, m, h, d, w; such as "500ms", "1h 30m", "30d"
      fix: write the unit: "5s"

    callbox.toml:14:16: record.session_idle: not a duration
      found: "soon"
      allowed: a number with a unit: ms, s, m, h, d, w; such as "500ms", "1h 30m", "30d"

    callbox.toml:17:11: record.retention.max_age: out of range
      found: "0s"
      allowed: from "1s" to "36500d"

    callbox.toml:18:13: record.retention.max_bytes: not a size
      found: "10 gigs"
      allowed: a whole number with a unit: B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000)
    "#);
}

#[test]
fn addresses() {
    let desk = with_upstream(
        "listen = { address = \"https://0.0.0.0:443\" }\nadmin = { address = \"9464\" }\n",
    );
    assert_snapshot!(desk.error(), @r#"
    2 problems in the configuration

    callbox.toml:1:22: listen.address: not an IP address with a port
      found: "https://0.0.0.0:443"
      allowed: IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one
      fix: leave out the scheme

    callbox.toml:2:21: admin.address: not an IP address with a port
      found: "9464"
      allowed: IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one
      fix: write "127.0.0.1:9464" for this machine only, "0.0.0.0:9464" for all
    "#);
    let desk = with_upstream(
        "listen = { address = \"127.0.0.1\" }\nadmin = { address = \"0.0.0.0:99999\" }\n",
    );
    assert_snapshot!(desk.error(), @r#"
    2 problems in the configuration

    callbox.toml:1:22: listen.address: not an IP address with a port
      found: "127.0.0.1"
      allowed: IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one
      fix: add the port

    callbox.toml:2:21: admin.address: not an IP address with a port
      found: "0.0.0.0:99999"
      allowed: IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one
    "#);
}

#[test]
fn one_address_for_two_listeners() {
    let desk = with_upstream("").flags(Overrides {
        upstream: vec!["http://127.0.0.1:3001".into()],
        listen: Some("0.0.0.0:9464".into()),
        ..Overrides::default()
    });
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    admin.address: in the way of listen.address, which is 0.0.0.0:9464
      found: "127.0.0.1:9464"
      fix: give one of them another port
    "#);
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
    assert_snapshot!(error, @r#"
    9 problems in the configuration

    callbox.toml:4:7: upstream[0].url: an upstream is an origin, without path and query
      found: "http://127.0.0.1:3001/mcp"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"
      fix: write "http://127.0.0.1:3001": paths go on as clients send them, so point clients at callbox with the same path

    callbox.toml:9:7: upstream[1].url: a URL with user and password
      found: "http://…@crm.example.com"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"
      fix: leave it out: clients send their own credentials, and callbox passes them on

    callbox.toml:14:7: upstream[2].url: the scheme is neither http nor https
      found: "ws://crm.example.com"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"

    callbox.toml:19:7: upstream[3].url: not a URL
      found: "http://"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"

    callbox.toml:24:7: upstream[4].url: not a port
      found: "http://crm.example.com:0"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"

    callbox.toml:29:7: upstream[5].url: a URL with a fragment
      found: "http://crm.example.com/#x"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"
      fix: leave out everything from `#` on

    callbox.toml:34:7: upstream[6].url: an upstream is an origin, without path and query
      found: "https://crm.example.com?…"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"
      fix: write "https://crm.example.com": paths go on as clients send them, so point clients at callbox with the same path

    callbox.toml:39:7: upstream[7].url: not a URL
      found: "http://münchen.example"
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"

    callbox.toml:42:1: upstream[8].url: missing
      allowed: an origin such as "http://127.0.0.1:3001" or "https://mcp.example.com"
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    5 problems in the configuration

    callbox.toml:6:1: upstream[1].match: takes every request, and so does upstream[0]
      allowed: at most one upstream without match
      fix: add match = { path_prefix = "/…" } or match = { host = "…" } to all but one

    callbox.toml:7:8: upstream[1].name: the same name as upstream[0]
      found: "Crm"
      fix: give each upstream a name of its own; case does not make a difference

    callbox.toml:10:1: upstream[2].name: missing
      allowed: up to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit

    callbox.toml:15:8: upstream[3].name: not a name
      found: "_x"
      allowed: up to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit

    callbox.toml:17:9: upstream[3].match: the same rule as upstream[2]
      fix: give each upstream a rule of its own
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    11 problems in the configuration

    callbox.toml:5:25: upstream[0].match.path_prefix: not a path prefix
      found: "crm"
      allowed: a path from `/` on, such as "/crm", without query, empty steps or dots
      fix: write "/crm"

    callbox.toml:5:39: upstream[0].match.host: not a host
      found: "https://crm.example.com:8443/"
      allowed: a host name or address without scheme, port or wildcard, such as "crm.example.com"
      fix: write "crm.example.com"

    callbox.toml:10:25: upstream[1].match.path_prefix: not a path prefix
      found: "/a/../b"
      allowed: a path from `/` on, such as "/crm", without query, empty steps or dots

    callbox.toml:10:43: upstream[1].match.host: not a host
      found: "*.example.com"
      allowed: a host name or address without scheme, port or wildcard, such as "crm.example.com"

    callbox.toml:11:7: upstream[1].tls: has no effect on an http:// upstream
      fix: write https:// in url, or remove this section

    callbox.toml:11:14: upstream[1].tls.ca: cannot be read: No such file or directory (os error 2)
      found: "ca.pem"
      allowed: a PEM file with certificates

    callbox.toml:16:25: upstream[2].match.path_prefix: not a path prefix
      found: "/a?…"
      allowed: a path from `/` on, such as "/crm", without query, empty steps or dots

    callbox.toml:16:40: upstream[2].match.host: not a host
      found: ""
      allowed: a host name or address without scheme, port or wildcard, such as "crm.example.com"

    callbox.toml:17:7: upstream[2].tls.key: missing
      allowed: the private key of certificate

    callbox.toml:17:23: upstream[2].tls.certificate: cannot be read: No such file or directory (os error 2)
      found: "c.pem"
      allowed: a PEM file with certificates

    callbox.toml:17:46: upstream[2].tls.server_name: not a host
      found: "https://x"
      allowed: a host name or address, without scheme and port
    "#);
}

#[test]
fn an_upstream_that_is_callbox() {
    assert_snapshot!(Desk::bare().upstream("http://localhost:8080").error(), @r#"
    1 problem in the configuration

    --upstream: upstream[0].url: callbox itself listens there (listen.address)
      found: "localhost:8080"
      fix: name the server's own address, or give callbox another port
    "#);
    assert_snapshot!(Desk::bare().upstream("http://127.0.0.1:9464").error(), @r#"
    1 problem in the configuration

    --upstream: upstream[0].url: callbox itself listens there (admin.address)
      found: "127.0.0.1:9464"
      fix: name the server's own address, or give callbox another port
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    --upstream: upstream: given more than once
      found: "http://127.0.0.1:3001", "http://…@127.0.0.1:3002"
      allowed: one origin: a flag cannot say which requests go where
      fix: write one [[upstream]] with name, url and match for each into a file
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    3 problems in the configuration

    callbox.toml:3:15: listen.tls.certificate: is not a PEM file with certificates
      found: "tls/a.key"
      allowed: a PEM file with certificates
      fix: it holds a private key: are the two files swapped?

    callbox.toml:4:7: listen.tls.key: cannot be read: No such file or directory (os error 2)
      found: "tls/missing.key"
      allowed: a PEM file with a private key

    callbox.toml:5:22: listen.tls.client_certificate: has no effect without client_ca
      fix: set client_ca, or remove this key
    "#);

    let desk = with_upstream(
        "[listen.tls]\ncertificate = \"a.crt\"\nkey = \"a.crt\"\nclient_ca = \".\"\n",
    );
    desk.put("a.crt", CERTIFICATE);
    assert_snapshot!(desk.error(), @r#"
    2 problems in the configuration

    callbox.toml:3:7: listen.tls.key: is not a PEM file with a private key
      found: "a.crt"
      allowed: a PEM file with a private key
      fix: it holds a certificate: are the two files swapped?

    callbox.toml:4:13: listen.tls.client_ca: cannot be read: Is a directory (os error 21)
      found: "."
      allowed: a PEM file with certificates
    "#);

    let desk = with_upstream(
        "[listen.tls]\ncertificate = \"a.crt\"\nkey = \"~/a.key\"\nclient_ca = \"\"\n",
    );
    desk.put("a.crt", "no pem\n");
    assert_snapshot!(desk.error(), @r#"
    3 problems in the configuration

    callbox.toml:2:15: listen.tls.certificate: is not a PEM file with certificates
      found: "a.crt"
      allowed: a PEM file with certificates

    callbox.toml:3:7: listen.tls.key: `~` is not expanded
      found: "~/a.key"
      fix: write the path out, from `/` on

    callbox.toml:4:13: listen.tls.client_ca: an empty path
      found: ""
      allowed: a path
    "#);

    let desk = with_upstream("[listen.tls]\ncertificate = \"a.crt\"\n");
    desk.put("a.crt", CERTIFICATE);
    assert_snapshot!(desk.error(), @"
    1 problem in the configuration

    callbox.toml:1:1: listen.tls.key: missing
      allowed: a PEM file with a private key
    ");
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
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    callbox.toml:2:9: admin.token: secrets are not written into the configuration
      allowed: { env = "…" } or { file = "…" }
      fix: keep the secret in a variable or a file, and name that here
    "#);
    assert!(
        !format!("{:?}", with_upstream("").env([("T", "hunter2")]).sources).contains("hunter2")
    );
}

#[test]
fn secrets_that_are_not_there() {
    let desk = with_upstream("[admin]\ntoken = { env = \"NO_SUCH\" }\n");
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    callbox.toml:2:17: admin.token.env: the variable is not set
      found: "NO_SUCH"
      allowed: a token of visible ASCII characters, without spaces
    "#);
    let desk = with_upstream("[admin]\ntoken = { file = \"token\" }\n");
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    callbox.toml:2:18: admin.token.file: cannot be read: No such file or directory (os error 2)
      found: "token"
      allowed: a token of visible ASCII characters, without spaces
    "#);
    desk.put("token", " \n");
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    callbox.toml:2:18: admin.token.file: the secret is empty
      found: "token"
      allowed: a token of visible ASCII characters, without spaces
    "#);
    let desk =
        with_upstream("[admin]\ntoken = { file = \"token\", env = \"T\" }\n").env([("T", "t")]);
    assert_snapshot!(desk.error(), @"
    1 problem in the configuration

    callbox.toml:2:9: admin.token: both env and file are set
      allowed: one of the two
      fix: remove one
    ");
    let desk = with_upstream("[admin]\ntoken = { }\n");
    assert_snapshot!(desk.error(), @r#"
    1 problem in the configuration

    callbox.toml:2:9: admin.token: neither env nor file is set
      allowed: { env = "…" } or { file = "…" }
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    10 problems in the configuration

    callbox.toml:3:13: identity.principal: both header and claim are set
      allowed: one of the two
      fix: remove one

    callbox.toml:4:21: identity.tenant.header: not a header name
      found: "x tenant"
      allowed: a header name such as "x-tenant"

    callbox.toml:5:17: identity.conversation[0]: an empty name
      allowed: the name of a baggage member or `_meta` key, such as "session.id"

    callbox.toml:8:21: record.redact.keys[1]: a name without a letter or digit
      found: "--"
      allowed: a member name such as "password"

    callbox.toml:10:32: record.redact.pointers[0].pointer: not a JSON pointer
      found: "$.contact.email"
      allowed: an RFC 6901 pointer such as "/contact/email" or "/items/*/note"; "" is the whole
      fix: write "/contact/email"

    callbox.toml:11:12: record.redact.pointers[1].tool: an empty name
      allowed: the name of a tool, or "*" for all

    callbox.toml:11:26: record.redact.pointers[1].pointer: not a JSON pointer
      found: "/a~b"
      allowed: an RFC 6901 pointer such as "/contact/email" or "/items/*/note"; "" is the whole
      fix: write `~` as `~0`, and a `/` inside a name as `~1`

    callbox.toml:12:3: record.redact.pointers[2].tool: missing
      allowed: the name of a tool, or "*" for all

    callbox.toml:16:9: log.level: not a log level
      found: "info,callbox_proxy=verbos"
      allowed: off, error, warn, info, debug, trace; or a list such as "info,callbox_proxy=debug"

    callbox.toml:17:10: log.format: value not allowed
      found: "text"
      allowed: "human", "json"
    "#);
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
    assert_snapshot!(desk.error(), @r#"
    9 problems in the configuration

    CALLBOX__: no setting has this name
      allowed: CALLBOX__SECTION__KEY in capitals, such as CALLBOX__LISTEN__ADDRESS
      fix: unset CALLBOX__, or look the name up in the reference

    CALLBOX__ADMIN: admin: expected a table, found a string
      found: "127.0.0.1:1"
      allowed: a table with address, token

    CALLBOX__LISTEN__H2C: listen.h2c: expected true or false, found a string
      found: "yes"
      allowed: true or false
      fix: write true

    CALLBOX__LISTEN__MAX_CONNECTIONS: listen.max_connections: expected a whole number, found a string
      found: "many"
      allowed: a whole number from 1 to 1000000

    CALLBOX__LISTEN__TLS__CERT: no setting has this name
      allowed: CALLBOX__SECTION__KEY in capitals, such as CALLBOX__LISTEN__ADDRESS
      fix: did you mean CALLBOX__LISTEN__TLS__CERTIFICATE?

    CALLBOX__RECORD__REDACT__DETECTORS: record.redact.detectors[0]: value not allowed
      found: "emial"
      allowed: "pem", "jwt", "cloud-key", "card", "email", "phone", "iban", "url-credential", "ssn"
      fix: did you mean "email"?

    CALLBOX__RECORD__REDACT__KEYS: record.redact.keys: expected a list, found a string
      found: "password,token"
      allowed: a list of strings
      fix: put it in brackets: ["password", "token"]

    CALLBOX__UPSTREAM__0__URL: no setting has this name
      allowed: CALLBOX__SECTION__KEY in capitals, such as CALLBOX__LISTEN__ADDRESS
      fix: set the whole list: CALLBOX__UPSTREAM='[{ name = "crm", url = "http://127.0.0.1:3001" }]'

    CALLBOX__listen__address: no setting has this name
      allowed: CALLBOX__SECTION__KEY in capitals, such as CALLBOX__LISTEN__ADDRESS
      fix: did you mean CALLBOX__LISTEN__ADDRESS?
    "#);
}

#[cfg(unix)]
#[test]
fn text_that_is_not_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let bad = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
    let mut desk = with_upstream("");
    desk.sources.env = Env::from_iter([("CALLBOX__DATA", bad.clone())]);
    desk.sources.overrides.data = Some(bad.into());
    assert_snapshot!(desk.error(), @"
    2 problems in the configuration

    CALLBOX__DATA: data: the variable is not UTF-8

    --data: data: the path is not UTF-8
    ");
}

/// `config check --json`.
#[test]
fn problems_for_machines() {
    let desk = with_upstream("").env([("CALLBOX__LISTEN__WORKERS", "0")]);
    let problem = &desk.load().unwrap_err().problems()[0].clone();
    assert_snapshot!(serde_json::to_string(problem).unwrap(), @r#"{"key":"listen.workers","origin":{"source":"env","name":"CALLBOX__LISTEN__WORKERS"},"message":"value not allowed","found":"0","allowed":"a whole number from 1 to 1024","fix":null}"#);
}

#[test]
fn warnings() {
    let desk = with_upstream(
        "[admin]\naddress = \"0.0.0.0:9464\"\n[record.redact]\nkeys = [\"Password\", \"pin\"]\n",
    );
    assert_snapshot!(desk.warnings(), @"
    callbox.toml:2:11: admin.address: anyone who reaches this address can read the metrics
      found: 0.0.0.0:9464
      fix: set admin.token, or make sure that only monitoring gets there

    callbox.toml:4:8: record.redact.keys: values under names of the default list will be recorded
      found: a list without passwd, secret, token, access_token, refresh_token, api_key, authorization, cookie, private_key
      fix: add them, unless that is what you want
    ");
    let desk = with_upstream("");
    assert_eq!(desk.warnings(), "");
}
