//! The observer's thread and the log behind it: takes what the tap was offered, hands records to the writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use callbox_config::{Durability, Settings};
use callbox_store::{Batch, Health, Keys, Options, State, StoreError, Writer};
use callbox_telemetry::Metrics;

use crate::observe::{Observer, Rules, RulesError};
use crate::tap::{Tap, TapLimits, tap};

/// Longest time between two looks at the clock: open calls become visible, silent sessions leave memory.
const TICK: Duration = Duration::from_millis(250);
/// Before a batch is offered again to a writer that is behind.
const PAUSE: Duration = Duration::from_millis(5);
/// zstd level of the log's payloads.
const COMPRESSION: i32 = 1;

/// Why recording cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The call log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The redaction rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The observer's thread.
    #[error("the observer's thread did not start: {0}")]
    Thread(std::io::Error),
    /// The observer's thread ended by a panic.
    #[error("the observer had panicked: what was not handed to the log by then is lost")]
    Panicked,
}

/// Counts of the observer.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sessions: AtomicU64,
    pub(crate) exchanges_open: AtomicU64,
    pub(crate) sessions_evicted: AtomicU64,
    pub(crate) exchanges_evicted: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) truncated: AtomicU64,
    pub(crate) undecoded: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// The same at one moment.
#[derive(Debug, Default)]
pub(crate) struct CountsNow {
    pub(crate) sessions: u64,
    pub(crate) exchanges_open: u64,
    pub(crate) evicted: Vec<(&'static str, u64)>,
    pub(crate) faults: u64,
    pub(crate) incomplete: Vec<(&'static str, u64)>,
}

/// Reads how recording is doing without keeping it alive.
#[derive(Clone, Debug)]
pub(crate) struct RecorderWatch {
    counts: Arc<Counts>,
    writer: Arc<Writer>,
}

impl RecorderWatch {
    pub(crate) fn health(&self) -> Health {
        self.writer.health()
    }

    pub(crate) fn counts(&self) -> CountsNow {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CountsNow {
            sessions: get(&self.counts.sessions),
            exchanges_open: get(&self.counts.exchanges_open),
            evicted: vec![
                ("session", get(&self.counts.sessions_evicted)),
                ("exchange", get(&self.counts.exchanges_evicted)),
            ],
            faults: get(&self.counts.faults),
            incomplete: vec![
                ("truncated", get(&self.counts.truncated)),
                ("undecoded", get(&self.counts.undecoded)),
                ("dropped", get(&self.counts.dropped)),
            ],
        }
    }
}

/// The running recorder.
#[derive(Debug)]
pub(crate) struct Recorder {
    thread: JoinHandle<()>,
    watch: RecorderWatch,
    keys: Keys,
    rules: Arc<Mutex<Option<Rules>>>,
}

impl Recorder {
    /// Opens the log and starts the observer; everything offered to the tap from now on is recorded.
    pub(crate) fn start(
        settings: &Settings,
        metrics: &Metrics,
    ) -> Result<(Self, Tap), RecorderError> {
        let record = &settings.record;
        let writer = Arc::new(callbox_store::open(Options {
            synchronous_full: record.durability == Durability::BeforeResponse,
            max_age: record.retention.max_age,
            max_bytes: record.retention.max_bytes,
            queue_records: record.queue_events,
            queue_bytes: record.queue_bytes,
            compression_level: COMPRESSION,
            ..Options::new(&settings.data)
        })?);
        let keys = Keys::load_or_create(&settings.data)?;
        let rules = Rules::new(settings, &keys)?;
        let counts = Arc::new(Counts::default());
        let watch = RecorderWatch {
            counts: Arc::clone(&counts),
            writer: Arc::clone(&writer),
        };
        let next_rules: Arc<Mutex<Option<Rules>>> = Arc::default();
        let limits = TapLimits {
            events: record.queue_events,
            bytes: record.queue_bytes,
        };
        let (give, take) = std::sync::mpsc::sync_channel(1);
        let finder = Arc::clone(&writer);
        let observer = Observer::new(
            rules,
            record.max_sessions,
            writer.ids(),
            Box::new(move |key| finder.find_session(key)),
            metrics.clone(),
            counts,
        );
        let reloaded = Arc::clone(&next_rules);
        let thread = std::thread::Builder::new()
            .name("callbox-observer".to_owned())
            .spawn(move || {
                let (tap, receiver) = tap(limits, std::thread::current());
                // The starter waits for it.
                if give.send(tap).is_ok() {
                    observe(observer, receiver, &writer, &reloaded);
                }
            })
            .map_err(RecorderError::Thread)?;
        let tap = take.recv().map_err(|_gone| RecorderError::Panicked)?;
        Ok((
            Self {
                thread,
                watch,
                keys,
                rules: next_rules,
            },
            tap,
        ))
    }

    pub(crate) fn watch(&self) -> RecorderWatch {
        self.watch.clone()
    }

    /// New rules and limits from the next event on.
    pub(crate) fn reload(&self, settings: &Settings) -> Result<(), RecorderError> {
        let rules = Rules::new(settings, &self.keys)?;
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules);
        let retention = &settings.record.retention;
        self.watch
            .writer
            .retention(retention.max_age, retention.max_bytes);
        Ok(())
    }

    /// Waits until all that was offered is in the log, and closes it. Every [`Tap`] must be gone.
    pub(crate) fn finish(self) -> Result<(), RecorderError> {
        if self.thread.join().is_err() {
            return Err(RecorderError::Panicked);
        }
        Ok(self.watch.writer.close()?)
    }
}

/// The thread: take, observe, hand over, until the data path is gone.
fn observe(
    mut observer: Observer,
    mut receiver: crate::tap::TapReceiver,
    writer: &Writer,
    reloaded: &Mutex<Option<Rules>>,
) {
    let mut events = Vec::new();
    let mut ticked = Instant::now();
    loop {
        let more = receiver.take(&mut events, TICK);
        if let Some(rules) = reloaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            observer.reload(rules);
        }
        for event in events.drain(..) {
            observer.handle(event);
        }
        let now = Instant::now();
        if now.saturating_duration_since(ticked) >= TICK {
            ticked = now;
            observer.tick(now);
        }
        if !more {
            observer.finish(now);
        }
        hand_over(observer.take(), writer);
        if !more {
            return;
        }
    }
}

fn hand_over(batch: Batch, writer: &Writer) {
    if batch.records.is_empty() && batch.committed.is_empty() {
        return;
    }
    let mut batch = batch;
    while let Err(refused) = writer.submit(batch) {
        // A writer that is only behind is waited for: the tap has room, and counts what does not fit there. One that
        // cannot write is not.
        if writer.health().state != State::Ok {
            writer.discard(refused);
            return;
        }
        batch = refused;
        std::thread::park_timeout(PAUSE);
    }
}
