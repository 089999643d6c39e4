//! `config show`.

use callbox_config::{Overrides, Settings, Sources, show};
use insta::assert_snapshot;

use crate::desk::Desk;

const FILE: &str = r#"data = "log"
record.retention.max_age = "7d"
[listen]
workers = 2
[[upstream]]
name = "crm"
url = "https://crm.example.com"
match = { path_prefix = "/crm" }
[[upstream]]
name = "wiki"
url = "http://wiki.example.com"
[identity]
tenant = { claim = "org" }
[admin]
token = { file = "token" }
"#;

#[test]
fn every_line_has_its_source() {
    let desk = Desk::file(FILE)
        .env([
            ("CALLBOX__RECORD__DURABILITY", "before-response"),
            ("CALLBOX__IDENTITY__PRINCIPAL__CLAIM", "sub"),
        ])
        .flags(Overrides {
            listen: Some("127.0.0.1:0".into()),
            ..Overrides::default()
        });
    desk.put("token", "hunter2");
    let shown = show(&desk.sources).unwrap();
    assert!(!shown.contains("hunter2"));
    // How far the sources stand to the right depends on the length of the folder's name.
    let lines = desk.text(&shown);
    let lines = lines.lines().map(|line| match line.split_once("  # ") {
        Some((line, source)) => format!("{:<50}# {source}", line.trim_end()),
        None => line.to_owned(),
    });
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    data = "log"                                      # file callbox.toml:1

    [listen]
    address = "127.0.0.1:0"                           # flag --listen
    h2c = false                                       # default
    workers = 2                                       # file callbox.toml:4
    max_connections = 10000                           # default
    tls_timeout = "10s"                               # default
    request_head_timeout = "30s"                      # default
    drain_timeout = "30s"                             # default
    # max_request_body is not set                     # default
    half_close = "gone"                               # default
    stamp = "request-id"                              # default

    # [listen.tls] is not set                         # default

    [[upstream]]
    name = "crm"                                      # file callbox.toml:6
    url = "https://crm.example.com"                   # file callbox.toml:7
    protocol = "auto"                                 # default
    connect_timeout = "5s"                            # default
    tls_timeout = "10s"                               # default
    # response_head_timeout is not set                # default
    idle_timeout = "90s"                              # default
    max_idle = 256                                    # default
    host_header = "keep"                              # default
    forwarded = false                                 # default

    [upstream.match]
    path_prefix = "/crm"                              # file callbox.toml:8
    # host is not set                                 # default

    # [upstream.tls] is not set                       # default

    [[upstream]]
    name = "wiki"                                     # file callbox.toml:10
    url = "http://wiki.example.com"                   # file callbox.toml:11
    protocol = "auto"                                 # default
    connect_timeout = "5s"                            # default
    tls_timeout = "10s"                               # default
    # response_head_timeout is not set                # default
    idle_timeout = "90s"                              # default
    max_idle = 256                                    # default
    host_header = "keep"                              # default
    forwarded = false                                 # default

    # [upstream.match] is not set                     # default

    # [upstream.tls] is not set                       # default

    [record]
    payloads = "redacted"                             # default
    max_message_bytes = "1MiB"                        # default
    queue_events = 65536                              # default
    queue_bytes = "64MiB"                             # default
    durability = "before-response"                    # env CALLBOX__RECORD__DURABILITY
    durability_timeout = "2s"                         # default
    max_sessions = 100000                             # default
    session_idle = "10m"                              # default

    [record.redact]
    keys = ["password", "passwd", "secret", "token", "access_token", "refresh_token", "api_key", "authorization", "cookie", "private_key"]# default
    detectors = ["pem", "jwt", "cloud-key", "card", "email", "phone", "iban", "url-credential", "ssn"]# default
    pointers = []                                     # default

    [record.retention]
    max_age = "7d"                                    # file callbox.toml:2
    max_bytes = "10GiB"                               # default

    [identity]
    principal = { claim = "sub" }                     # env CALLBOX__IDENTITY__PRINCIPAL__CLAIM
    tenant = { claim = "org" }                        # file callbox.toml:13
    conversation = ["gen_ai.conversation.id", "session.id"]# default

    [admin]
    address = "127.0.0.1:9464"                        # default
    token = { file = "token" }                        # file callbox.toml:15

    [log]
    level = "info"                                    # default
    format = "human"                                  # default
    "#);
}

/// What `show` prints is a configuration with the same meaning.
#[test]
fn what_it_prints_means_the_same() {
    let desk = Desk::file(FILE).env([
        ("CALLBOX__LISTEN__TLS__KEY", "k"),
        ("CALLBOX__LISTEN__TLS__CERTIFICATE", "c \"\n"),
    ]);
    let shown = Desk::file(&show(&desk.sources).unwrap());
    let mut again = Settings::for_queries(&shown.sources).unwrap();
    // Variables mean the working directory, files their folder.
    for path in again
        .listen
        .tls
        .iter_mut()
        .flat_map(|tls| [&mut tls.key, &mut tls.certificate])
    {
        *path = path.strip_prefix(shown.folder()).unwrap().to_owned();
    }
    assert_eq!(again, Settings::for_queries(&desk.sources).unwrap());
}

#[test]
fn a_flag_leaves_nothing_of_the_list_in_the_file() {
    let desk = Desk::file(FILE).upstream("http://127.0.0.1:3001");
    let shown = show(&desk.sources).unwrap();
    let lines: Vec<_> = shown
        .lines()
        .filter(|line| line.starts_with("url") || line.starts_with("name"))
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    name = "default"                                  # default
    url = "http://127.0.0.1:3001"                     # flag --upstream
    "#);
}

#[test]
fn defaults_alone_can_be_shown() {
    let shown = show(&Sources::default()).unwrap();
    assert!(shown.contains("# [[upstream]] is not set"), "{shown}");
}
