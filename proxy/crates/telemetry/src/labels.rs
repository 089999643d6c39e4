//! Label values that come from peers: admitted from capped sets, cleaned, the rest counted as `_other`.

use std::collections::HashSet;
use std::sync::{Arc, RwLock};

use prometheus::IntCounter;

/// Value of everything past the cap.
pub const OTHER: &str = "_other";

/// Characters of one label value at most (judging.md 2.6).
const MAX_CHARS: usize = 64;

/// A label whose values peers choose: the first `cap` distinct ones keep their name.
#[derive(Clone, Debug)]
pub struct CappedLabel {
    seen: Arc<RwLock<HashSet<Box<str>>>>,
    cap: usize,
    overflow: IntCounter,
}

impl CappedLabel {
    /// `overflow` counts observations that became `_other`.
    pub fn new(cap: usize, overflow: IntCounter) -> Self {
        Self {
            seen: Arc::default(),
            cap,
            overflow,
        }
    }

    /// Reserves a place for a value before it is observed, e.g. a name from `tools/list`. Full sets stay as they are.
    pub fn admit(&self, raw: &str) {
        self.insert(&clean(raw));
    }

    /// Calls `observe` with the admitted value: its own name when it was admitted, or was still free to be and
    /// `may_admit` is set; `_other` else.
    pub fn with<R>(&self, raw: &str, may_admit: bool, observe: impl FnOnce(&str) -> R) -> R {
        let value = clean(raw);
        if self.contains(&value) || (may_admit && self.insert(&value)) {
            observe(&value)
        } else {
            self.overflow.inc();
            observe(OTHER)
        }
    }

    fn contains(&self, value: &str) -> bool {
        self.seen
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .contains(value)
    }

    fn insert(&self, value: &str) -> bool {
        let mut seen = self
            .seen
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.contains(value) || (seen.len() < self.cap && seen.insert(value.into()))
    }
}

/// Without control characters, at most 64 characters, never empty.
fn clean(raw: &str) -> std::borrow::Cow<'_, str> {
    if raw.is_empty() {
        return "_empty".into();
    }
    if raw.len() <= MAX_CHARS && !raw.chars().any(char::is_control) {
        return raw.into();
    }
    raw.chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARS)
        .collect::<String>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(cap: usize) -> (CappedLabel, IntCounter) {
        let overflow = IntCounter::new("overflow", "test").expect("invariant: a valid name");
        (CappedLabel::new(cap, overflow.clone()), overflow)
    }

    #[test]
    fn the_first_values_keep_their_names() {
        let (label, overflow) = label(2);
        let seen: Vec<String> = ["a", "b", "c", "a"]
            .iter()
            .map(|raw| label.with(raw, true, str::to_owned))
            .collect();
        assert_eq!(seen, ["a", "b", "_other", "a"]);
        assert_eq!(overflow.get(), 1);
    }

    #[test]
    fn names_not_admitted_take_no_place() {
        let (label, _) = label(2);
        assert_eq!(label.with("invented", false, str::to_owned), OTHER);
        label.admit("listed");
        assert_eq!(label.with("listed", false, str::to_owned), "listed");
    }

    #[test]
    fn values_are_short_and_printable() {
        assert_eq!(clean("a\n\u{1b}[31mb"), "a[31mb");
        assert_eq!(clean(&"é".repeat(300)).chars().count(), 64);
        assert_eq!(clean(""), "_empty");
    }
}
