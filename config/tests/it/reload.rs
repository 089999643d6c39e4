//! What a reload can change and what waits for a restart.

use callbox_config::Settings;

use crate::desk::Desk;

fn with(text: &str) -> Settings {
    Desk::file(&format!(
        "{text}\n[[upstream]]\nurl = \"http://127.0.0.1:3001\"\n"
    ))
    .settings()
}

#[test]
fn keys_that_wait_for_a_restart() {
    // `data` depends on the folder of the file, which differs between two desks.
    let old = with("data = \"/d\"");
    let new = with(
        r#"
data = "/e"
listen = { address = "127.0.0.1:1", workers = 1023, max_connections = 5, drain_timeout = "1s" }
admin = { address = "127.0.0.1:2" }
record = { queue_events = 100, queue_bytes = "1MiB", durability = "before-response", max_sessions = 7, payloads = "none" }
log = { level = "debug", format = "json" }
"#,
    );
    assert_eq!(
        Settings::needs_restart(&old, &new),
        [
            "data",
            "listen.address",
            "listen.workers",
            "record.queue_events",
            "record.queue_bytes",
            "record.durability",
            "record.max_sessions",
            "admin.address",
            "log.format",
        ]
    );
}

#[test]
fn keys_that_change_at_once() {
    let old = with("data = \"/d\"");
    let new = with(
        r#"
data = "/d"
listen = { max_connections = 5, drain_timeout = "1s", stamp = "none", h2c = true }
record = { payloads = "none", redact = { keys = [] }, retention = { max_age = "1d" } }
log = { level = "debug" }
"#,
    );
    assert_ne!(old, new);
    assert_eq!(Settings::needs_restart(&old, &new), [""; 0]);
}
