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
    assert_snapshot!(desk.text(&shown), @"");
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
fn defaults_alone_can_be_shown() {
    let shown = show(&Sources::default()).unwrap();
    assert!(shown.contains("# [[upstream]] is not set"), "{shown}");
}
