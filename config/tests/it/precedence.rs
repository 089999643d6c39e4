//! Which source wins, and how each spells a value.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use callbox_config::*;

use crate::desk::{CERTIFICATE, Desk, KEY};

#[test]
fn no_file_is_needed() {
    let settings = Desk::bare().upstream("http://127.0.0.1:3001").settings();
    assert_eq!(settings.data, Path::new("callbox-data"));
    let listen = &settings.listen;
    assert_eq!(listen.address.to_string(), "127.0.0.1:8080");
    assert_eq!(
        listen.workers,
        std::thread::available_parallelism().unwrap()
    );
    assert_eq!(listen.max_connections, 10_000);
    assert_eq!(listen.tls_timeout, Duration::from_secs(10));
    assert_eq!(listen.request_head_timeout, Duration::from_secs(30));
    assert_eq!(listen.drain_timeout, Duration::from_secs(30));
    assert_eq!((listen.max_request_body, listen.h2c), (None, false));
    assert_eq!(
        (listen.half_close, listen.stamp),
        (HalfClose::Gone, Stamp::RequestId)
    );
    assert_eq!(listen.tls, None);

    let [upstream] = settings.upstreams.as_slice() else {
        panic!("{:?}", settings.upstreams)
    };
    assert_eq!((upstream.name.as_str(), upstream.https), ("default", false));
    assert_eq!((upstream.host.as_str(), upstream.port), ("127.0.0.1", 3001));
    assert_eq!(
        (&upstream.path_prefix, &upstream.match_host),
        (&None, &None)
    );
    assert_eq!(upstream.protocol, UpstreamProtocol::Auto);
    assert_eq!(upstream.tls, ClientTls::default());
    assert_eq!(upstream.connect_timeout, Duration::from_secs(5));
    assert_eq!(upstream.tls_timeout, Duration::from_secs(10));
    assert_eq!(upstream.response_head_timeout, None);
    assert_eq!(upstream.idle_timeout, Duration::from_secs(90));
    assert_eq!((upstream.max_idle, upstream.forwarded), (256, false));
    assert_eq!(upstream.host_header, HostHeader::Keep);

    let record = &settings.record;
    assert_eq!(
        (record.payloads, record.durability),
        (Payloads::Redacted, Durability::Commit)
    );
    assert_eq!(record.max_message_bytes, 1 << 20);
    assert_eq!(
        (record.queue_events, record.queue_bytes),
        (65_536, 64 << 20)
    );
    assert_eq!(record.durability_timeout, Duration::from_secs(2));
    assert_eq!(
        (record.max_sessions, record.session_idle),
        (100_000, Duration::from_mins(10))
    );
    assert_eq!(
        record.redact.keys.join(" "),
        "password passwd secret token access_token refresh_token api_key authorization cookie private_key"
    );
    assert_eq!(record.redact.detectors.len(), 9);
    assert_eq!(record.redact.pointers, []);
    let month = Duration::from_hours(30 * 24);
    assert_eq!(
        record.retention,
        Retention {
            max_age: month,
            max_bytes: 10 << 30
        }
    );

    assert_eq!(
        settings.identity.principal,
        IdentitySource::Header("authorization".into())
    );
    assert_eq!(settings.identity.tenant, None);
    assert_eq!(
        settings.identity.conversation,
        ["gen_ai.conversation.id", "session.id"]
    );
    assert_eq!(settings.admin.address.to_string(), "127.0.0.1:9464");
    assert_eq!(settings.admin.token, None);
    assert_eq!(
        settings.log,
        Log {
            level: "info".into(),
            format: LogFormat::Human
        }
    );
}

const FILE: &str = r#"
data = "file"
listen.address = "127.0.0.1:1"
admin.address = "127.0.0.1:2"
log = { level = "warn", format = "json" }
record = { durability = "before-response", retention = { max_age = "7d" } }
identity.principal = { claim = "sub" }
upstream = [{ name = "file", url = "http://file.example" }]
"#;

#[test]
fn file_over_defaults() {
    let desk = Desk::file(FILE);
    let settings = desk.settings();
    assert_eq!(settings.data, desk.folder().join("file"));
    assert_eq!(settings.listen.address.port(), 1);
    assert_eq!(settings.admin.address.port(), 2);
    assert_eq!(
        settings.log,
        Log {
            level: "warn".into(),
            format: LogFormat::Json
        }
    );
    assert_eq!(settings.record.durability, Durability::BeforeResponse);
    assert_eq!(
        settings.record.retention.max_age,
        Duration::from_hours(7 * 24)
    );
    assert_eq!(
        settings.record.retention.max_bytes,
        10 << 30,
        "the rest of a section keeps its defaults"
    );
    assert_eq!(
        settings.identity.principal,
        IdentitySource::Claim("sub".into())
    );
    assert_eq!(settings.upstreams[0].name, "file");
}

#[test]
fn environment_over_file() {
    let desk = Desk::file(FILE).env([
        ("CALLBOX__DATA", "env"),
        ("CALLBOX__LISTEN__ADDRESS", "[::1]:11"),
        ("CALLBOX__LISTEN__WORKERS", "3"),
        ("CALLBOX__LISTEN__H2C", "true"),
        ("CALLBOX__LISTEN__MAX_REQUEST_BODY", "2 MiB"),
        ("CALLBOX__RECORD__DURABILITY", "commit"),
        ("CALLBOX__RECORD__RETENTION__MAX_AGE", "1h 30m"),
        ("CALLBOX__RECORD__REDACT__KEYS", "[\"pin\"]"),
        (
            "CALLBOX__RECORD__REDACT__POINTERS",
            "[{ tool = \"*\", pointer = \"/a\" }]",
        ),
        ("CALLBOX__IDENTITY__PRINCIPAL__HEADER", "X-User"),
        ("CALLBOX__IDENTITY__TENANT", "{ claim = \"org\" }"),
        (
            "CALLBOX__UPSTREAM",
            "[{ url = \"https://ENV.example\", tls = { server_name = \"x\" } }]",
        ),
        ("PATH", "/bin"),
    ]);
    let settings = desk.settings();
    assert_eq!(
        settings.data,
        Path::new("env"),
        "relative to the working directory"
    );
    assert_eq!(settings.listen.address.to_string(), "[::1]:11");
    assert_eq!(settings.listen.workers, NonZeroUsize::new(3).unwrap());
    assert!(settings.listen.h2c);
    assert_eq!(settings.listen.max_request_body, Some(2 << 20));
    assert_eq!(settings.record.durability, Durability::Commit);
    assert_eq!(settings.record.retention.max_age, Duration::from_mins(90));
    assert_eq!(settings.record.redact.keys, ["pin"]);
    assert_eq!(settings.record.redact.pointers[0].pointer, "/a");
    assert_eq!(
        settings.identity.principal,
        IdentitySource::Header("x-user".into()),
        "replaces the claim of the file"
    );
    assert_eq!(
        settings.identity.tenant,
        Some(IdentitySource::Claim("org".into()))
    );
    assert_eq!(
        settings.admin.address.port(),
        2,
        "what the environment does not name stays"
    );
    let [upstream] = settings.upstreams.as_slice() else {
        panic!("{:?}", settings.upstreams)
    };
    assert_eq!(
        (upstream.host.as_str(), upstream.port, upstream.https),
        ("env.example", 443, true)
    );
    assert_eq!(upstream.tls.server_name.as_deref(), Some("x"));
}

#[test]
fn flags_over_all() {
    let desk = Desk::file(FILE)
        .env([
            ("CALLBOX__DATA", "env"),
            ("CALLBOX__LISTEN__ADDRESS", "127.0.0.1:11"),
            ("CALLBOX__ADMIN__ADDRESS", "127.0.0.1:12"),
            ("CALLBOX__LOG__LEVEL", "error"),
            ("CALLBOX__LOG__FORMAT", "json"),
            ("CALLBOX__UPSTREAM", "[{ url = \"http://env.example\" }]"),
        ])
        .flags(Overrides {
            upstream: vec!["http://[2001:DB8::1]:3001/".into()],
            listen: Some("127.0.0.1:21".into()),
            admin: Some("127.0.0.1:22".into()),
            data: Some("flag".into()),
            log_level: Some("debug".into()),
            log_format: Some("human".into()),
        });
    let settings = desk.settings();
    assert_eq!(settings.data, Path::new("flag"));
    assert_eq!(
        (
            settings.listen.address.port(),
            settings.admin.address.port()
        ),
        (21, 22)
    );
    assert_eq!(
        settings.log,
        Log {
            level: "debug".into(),
            format: LogFormat::Human
        }
    );
    let [upstream] = settings.upstreams.as_slice() else {
        panic!("{:?}", settings.upstreams)
    };
    assert_eq!(
        (upstream.host.as_str(), upstream.port),
        ("2001:db8::1", 3001)
    );
    assert_eq!(upstream.authority(), "[2001:db8::1]:3001");
}

#[test]
fn relative_paths_of_a_file_start_at_its_folder() {
    let desk = Desk::file(
        "data = \"/var/lib/callbox\"\n[listen.tls]\ncertificate = \"tls/a.crt\"\nkey = \"tls/a.key\"\n[admin]\ntoken = { file = \"t\" }\n",
    )
    .upstream("http://127.0.0.1:3001");
    desk.put("tls/a.crt", CERTIFICATE);
    desk.put("tls/a.key", KEY);
    desk.put("t", "s3cret\n");
    let settings = desk.settings();
    assert_eq!(settings.data, Path::new("/var/lib/callbox"));
    let tls = settings.listen.tls.unwrap();
    assert_eq!(tls.certificate, desk.folder().join("tls/a.crt"));
    assert_eq!(tls.client_certificate, ClientCertificate::Required);
    let token = settings.admin.token.unwrap();
    assert_eq!(token.expose(), "s3cret");
    assert_eq!(format!("{token:?}"), "Secret(…)");
}

#[test]
fn a_secret_from_the_environment() {
    let desk = Desk::bare()
        .upstream("http://127.0.0.1:3001")
        .env([("CALLBOX__ADMIN__TOKEN__ENV", "T"), ("T", "s3cret")]);
    assert_eq!(desk.settings().admin.token.unwrap().expose(), "s3cret");
}

#[test]
fn queries_need_neither_upstream_nor_secrets() {
    let desk = Desk::file(
        "data = \"d\"\n[admin]\ntoken = { file = \"missing\" }\n[listen.tls]\ncertificate = \"missing\"\nkey = \"missing\"\n",
    );
    let settings = Settings::for_queries(&desk.sources).unwrap();
    assert_eq!(settings.data, desk.folder().join("d"));
    assert_eq!(settings.admin.token, None);
    assert!(settings.upstreams.is_empty());
}

#[test]
fn rules_as_the_router_reads_them() {
    let desk = Desk::file(
        r#"
[[upstream]]
name = "a"
url = "http://a.example:80"
match = { path_prefix = "/crm/", host = "CRM.example.com." }

[[upstream]]
name = "b"
url = "https://b.example:8443"
match = { host = "::1" }

[[upstream]]
name = "rest"
url = "https://c.example"
match = { path_prefix = "/" }
"#,
    );
    let upstreams = desk.settings().upstreams;
    let rules: Vec<_> = upstreams
        .iter()
        .map(|upstream| {
            (
                upstream.path_prefix.as_deref(),
                upstream.match_host.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        rules,
        [
            (Some("/crm"), Some("crm.example.com")),
            (None, Some("[::1]")),
            (None, None)
        ]
    );
    let authorities: Vec<_> = upstreams.iter().map(Upstream::authority).collect();
    assert_eq!(authorities, ["a.example", "b.example:8443", "c.example"]);
}
