//! What SIGHUP cannot change. The reference marks the same keys; a test compares the two.

use crate::settings::Settings;

type Differs = fn(&Settings, &Settings) -> bool;

/// Bound sockets, threads, open files and queues: made once at start.
const RESTART: [(&str, Differs); 10] = [
    ("data", |a, b| a.data != b.data),
    ("listen.address", |a, b| {
        a.listen.address != b.listen.address
    }),
    ("listen.workers", |a, b| {
        a.listen.workers != b.listen.workers
    }),
    ("record.queue_events", |a, b| {
        a.record.queue_events != b.record.queue_events
    }),
    ("record.queue_bytes", |a, b| {
        a.record.queue_bytes != b.record.queue_bytes
    }),
    ("record.durability", |a, b| {
        a.record.durability != b.record.durability
    }),
    ("record.max_sessions", |a, b| {
        a.record.max_sessions != b.record.max_sessions
    }),
    ("admin.address", |a, b| a.admin.address != b.admin.address),
    ("admin.token", |a, b| a.admin.token != b.admin.token),
    ("log.format", |a, b| a.log.format != b.log.format),
];

impl Settings {
    /// Keys that differ and that a reload does not apply: they wait for a restart. Everything else takes effect at once.
    pub fn needs_restart(old: &Self, new: &Self) -> Vec<&'static str> {
        RESTART
            .iter()
            .filter(|(_, differs)| differs(old, new))
            .map(|(key, _)| *key)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ROOT;

    #[test]
    fn the_reference_marks_the_same_keys() {
        let mut marked = Vec::new();
        ROOT.each("", &mut |path, key| {
            if key.restart {
                marked.push(path.to_owned());
            }
        });
        let mut known: Vec<_> = RESTART.iter().map(|(key, _)| (*key).to_owned()).collect();
        marked.sort();
        known.sort();
        assert_eq!(known, marked);
    }
}
