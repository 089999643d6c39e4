//! A condition that lasts is logged when it begins, when it ends, and in a summary now and then: never once per event.

use std::time::{Duration, Instant};

/// What to log about one more occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    /// The first one, or a different one than before: log it.
    New,
    /// It goes on: log how many there were since the last line.
    Summary(u64),
    /// Nothing.
    Nothing,
}

/// Tracks one condition; `K` tells one state from another (e.g. the reason).
#[derive(Debug)]
pub struct Repeat<K> {
    every: Duration,
    state: Option<(K, Instant, u64)>,
}

impl<K: PartialEq> Repeat<K> {
    /// Summaries come at most once per `every`.
    pub fn new(every: Duration) -> Self {
        Self { every, state: None }
    }

    /// The condition holds, for this reason.
    pub fn occurred(&mut self, kind: K, now: Instant) -> Say {
        match &mut self.state {
            Some((current, said, count)) if *current == kind => {
                *count += 1;
                if now.saturating_duration_since(*said) < self.every {
                    return Say::Nothing;
                }
                *said = now;
                Say::Summary(std::mem::take(count))
            }
            state => {
                *state = Some((kind, now, 0));
                Say::New
            }
        }
    }

    /// The condition is over; true when that is news.
    pub fn cleared(&mut self) -> bool {
        self.state.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b46_a_day_of_failures_is_a_handful_of_lines() {
        let start = Instant::now();
        let mut repeat = Repeat::new(Duration::from_hours(1));
        let mut lines = 0;
        let mut counted = 0;
        // ten attempts a second for 24 hours
        for tick in 0..864_000_u64 {
            match repeat.occurred("unreachable", start + Duration::from_millis(tick * 100)) {
                Say::New => lines += 1,
                Say::Summary(n) => {
                    lines += 1;
                    counted += n;
                }
                Say::Nothing => {}
            }
        }
        assert_eq!(lines, 24);
        assert!(counted > 800_000);
        assert!(repeat.cleared());
        assert!(!repeat.cleared());
    }

    #[test]
    fn another_reason_is_news() {
        let now = Instant::now();
        let mut repeat = Repeat::new(Duration::from_mins(1));
        assert_eq!(repeat.occurred("full", now), Say::New);
        assert_eq!(repeat.occurred("full", now), Say::Nothing);
        assert_eq!(repeat.occurred("read-only", now), Say::New);
    }
}
