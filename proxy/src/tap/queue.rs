//! The queue behind the tap: bounded by events and by bytes, never waited for by the side that offers.
//!
//! Frames of bodies may fill half of the bytes; the rest is kept for heads. So a flood of large results costs
//! texts, which records say, and not the records of the calls.
//!
//! The observer is not woken for every event. It takes what has come every few milliseconds, and sleeps until it is
//! woken only when nothing came. Room for the `End` of every exchange that was let in is kept from its first event
//! on, so that no exchange stays open for ever in the observer's books.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::Thread;
use std::time::Duration;

use super::Event;

/// Pause between two takings while events come.
const PACE: Duration = Duration::from_millis(5);
/// A wake-up that crossed with the observer's going to sleep is made good after this long.
const NAP: Duration = Duration::from_millis(20);
/// What an event costs beside its bytes.
const EVENT_BYTES: u64 = 64;

/// Bounds of the queue.
#[derive(Clone, Copy, Debug)]
pub struct TapLimits {
    /// Events.
    pub events: usize,
    /// Bytes of heads and chunks.
    pub bytes: usize,
}

/// Why something was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue is full by count.
    Events,
    /// The queue is full by bytes.
    Bytes,
    /// There is no observer any more.
    Closed,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Events, Self::Bytes, Self::Closed];

    /// Label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "tap_events",
            Self::Bytes => "tap_bytes",
            Self::Closed => "tap_closed",
        }
    }
}

/// One slot of the queue: events of one exchange that were offered together.
#[derive(Debug)]
pub(crate) enum Events {
    One(Event),
    Two([Event; 2]),
    Three([Event; 3]),
}

impl Events {
    fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Two(_) => 2,
            Self::Three(_) => 3,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::One(event) => bytes(event),
            Self::Two(events) => events.iter().map(bytes).sum(),
            Self::Three(events) => events.iter().map(bytes).sum(),
        }
    }
}

fn bytes(event: &Event) -> u64 {
    let held = match event {
        Event::Request(_, head) => {
            head.headers.0.capacity() + head.target.len() + size_of_val(&**head)
        }
        Event::Response(_, head) => head.headers.0.capacity() + size_of_val(&**head),
        Event::RequestChunk(_, chunk) | Event::ResponseChunk(_, _, chunk) => chunk.len(),
        _ => 0,
    };
    held as u64 + EVENT_BYTES
}

fn is_frame(event: &Event) -> bool {
    matches!(event, Event::RequestChunk(..) | Event::ResponseChunk(..))
}

impl TapLimits {
    /// Bytes up to which frames of bodies are let in.
    fn frames(&self) -> u64 {
        self.bytes as u64 / 2
    }
}

/// What the tap let in and what it did not.
#[derive(Debug, Default)]
pub struct TapCounts {
    exchanges: AtomicU64,
    exchanges_dropped: [AtomicU64; 3],
    chunks_dropped: [AtomicU64; 3],
    durability_late: AtomicU64,
}

impl TapCounts {
    /// Exchanges let in.
    pub fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed)
    }

    /// Exchanges not let in, none of whose events the observer sees.
    pub fn exchanges_dropped(&self, reason: DropReason) -> u64 {
        self.exchanges_dropped[reason as usize].load(Ordering::Relaxed)
    }

    /// Chunks and response heads missing from exchanges that were let in.
    pub fn chunks_dropped(&self, reason: DropReason) -> u64 {
        self.chunks_dropped[reason as usize].load(Ordering::Relaxed)
    }

    /// Responses that went on without their record being committed, because that took too long.
    pub fn durability_late(&self) -> u64 {
        self.durability_late.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Shared {
    limits: TapLimits,
    /// Events queued, and the `End`s still to come of exchanges let in.
    events: AtomicUsize,
    bytes: AtomicU64,
    observer: Thread,
    asleep: AtomicBool,
    /// Set while the observer paces itself: half full, or somebody waits for a commit.
    hurry: AtomicBool,
    counts: TapCounts,
}

/// The data path's side. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tap {
    queue: SyncSender<Events>,
    shared: Arc<Shared>,
}

/// The counters alone: does not keep the queue open.
#[derive(Clone, Debug)]
pub struct TapWatch(Arc<Shared>);

impl TapWatch {
    /// What was let in and what was not.
    pub fn counts(&self) -> &TapCounts {
        &self.0.counts
    }

    /// Bytes queued now.
    pub fn bytes_in_flight(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

/// The observer's side.
#[derive(Debug)]
pub struct TapReceiver {
    queue: Receiver<Events>,
    shared: Arc<Shared>,
    busy: bool,
}

/// A tap whose receiver will be used by the thread `observer`.
pub fn tap(limits: TapLimits, observer: Thread) -> (Tap, TapReceiver) {
    // Sized so that what `events` admits always has a slot.
    let (sender, receiver) = sync_channel(limits.events.max(2));
    let shared = Arc::new(Shared {
        limits,
        events: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        observer,
        asleep: AtomicBool::new(false),
        hurry: AtomicBool::new(false),
        counts: TapCounts::default(),
    });
    (
        Tap {
            queue: sender,
            shared: Arc::clone(&shared),
        },
        TapReceiver {
            queue: receiver,
            shared,
            busy: false,
        },
    )
}

impl Tap {
    /// The counters alone, for whoever outlives the data path.
    pub fn watch(&self) -> TapWatch {
        TapWatch(Arc::clone(&self.shared))
    }

    /// What was let in and what was not.
    pub fn counts(&self) -> &TapCounts {
        &self.shared.counts
    }

    /// Bytes queued now.
    pub fn bytes_in_flight(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Offers an exchange's first events, and keeps room for its end. False: dropped, and counted.
    pub(crate) fn begin(&self, events: Events) -> bool {
        match self.admit(events, 1) {
            Ok(()) => {
                self.shared.counts.exchanges.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(reason) => {
                self.shared.counts.exchanges_dropped[reason as usize]
                    .fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Offers more of an exchange that was let in. False: dropped, and counted.
    pub(crate) fn offer(&self, events: Events) -> bool {
        match self.admit(events, 0) {
            Ok(()) => true,
            Err(reason) => {
                self.shared.counts.chunks_dropped[reason as usize].fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Offers the end of an exchange that was let in, and `last`, which came with it: at most a head and a frame. The
    /// end always fits, for its room was kept; of `last` the frame, or both, may be dropped, and counted, and then the
    /// exchange is marked.
    pub(crate) fn end(&self, last: [Option<Event>; 2], gap: Event, end: Event) {
        let shared = &*self.shared;
        let [first, second] = last;
        let kept = |event: &Option<Event>| event.as_ref().map_or(0, bytes);
        let before = shared.bytes.load(Ordering::Relaxed);
        let fits = |event: Event, size: u64| {
            let limit = if is_frame(&event) {
                shared.limits.frames()
            } else {
                shared.limits.bytes as u64
            };
            (before + size <= limit).then_some(event)
        };
        let had = usize::from(first.is_some()) + usize::from(second.is_some());
        let size = kept(&first);
        let first = first.and_then(|event| fits(event, size));
        let size = kept(&first) + kept(&second);
        let second = second.and_then(|event| fits(event, size));
        let events = match (first, second) {
            (Some(one), Some(two)) => Events::Three([one, two, end]),
            (None, None) if had == 0 => Events::One(end),
            (Some(one), None) | (None, Some(one)) if had == 1 => Events::Two([one, end]),
            (first, second) => {
                shared.counts.chunks_dropped[DropReason::Bytes as usize]
                    .fetch_add(1, Ordering::Relaxed);
                match first.or(second) {
                    Some(one) => Events::Three([one, gap, end]),
                    None => Events::Two([gap, end]),
                }
            }
        };
        shared.bytes.fetch_add(events.bytes(), Ordering::Relaxed);
        if let Err(reason) = self.send(events) {
            // Without an observer there is nobody to tell.
            tracing::trace!(reason = reason.name(), "end of an exchange not offered");
        }
    }

    /// A response went on although its record was not committed in time.
    pub(crate) fn count_late(&self) {
        self.shared
            .counts
            .durability_late
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Makes the observer look now rather than at its next turn.
    pub(crate) fn hurry(&self) {
        if !self.shared.hurry.swap(true, Ordering::AcqRel) {
            self.shared.observer.unpark();
        }
    }

    fn admit(&self, events: Events, reserve: usize) -> Result<(), DropReason> {
        let shared = &*self.shared;
        let size = events.bytes();
        let slots = 1 + reserve;
        let count = shared.events.fetch_add(slots, Ordering::Relaxed) + slots;
        let bytes = shared.bytes.fetch_add(size, Ordering::Relaxed) + size;
        // An exchange's first events say that there was a call; only what comes later may be done without.
        let limit = match &events {
            Events::One(event) if reserve == 0 && is_frame(event) => shared.limits.frames(),
            _ => shared.limits.bytes as u64,
        };
        let full = if count > shared.limits.events {
            Some(DropReason::Events)
        } else if bytes > limit {
            Some(DropReason::Bytes)
        } else {
            None
        };
        let refused = match full {
            Some(reason) => Some(reason),
            None => self.send(events).err(),
        };
        if let Some(reason) = refused {
            shared.events.fetch_sub(slots, Ordering::Relaxed);
            shared.bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(reason);
        }
        if count > shared.limits.events / 2 || bytes > shared.limits.bytes as u64 / 2 {
            self.hurry();
        }
        Ok(())
    }

    fn send(&self, events: Events) -> Result<(), DropReason> {
        match self.queue.try_send(events) {
            Ok(()) => {
                if self.shared.asleep.load(Ordering::Acquire)
                    && self.shared.asleep.swap(false, Ordering::AcqRel)
                {
                    self.shared.observer.unpark();
                }
                Ok(())
            }
            Err(TrySendError::Full(_)) => Err(DropReason::Events),
            Err(TrySendError::Disconnected(_)) => Err(DropReason::Closed),
        }
    }
}

impl TapReceiver {
    /// Appends what has come to `into`, waiting for `patience` at most when nothing has. False once every [`Tap`] is
    /// gone and all was taken.
    ///
    /// While events come, calls return about every 5 ms; a queue half full or somebody who waits for a commit cuts
    /// that short. Must be called on the thread that was named to [`tap`].
    pub fn take(&mut self, into: &mut Vec<Event>, patience: Duration) -> bool {
        if self.busy && !self.shared.hurry.load(Ordering::Acquire) {
            std::thread::park_timeout(PACE);
        }
        self.shared.hurry.store(false, Ordering::Release);
        let mut waited = Duration::ZERO;
        loop {
            match self.take_queued(into) {
                Err(()) => return false,
                Ok(0) if waited < patience => {
                    self.busy = false;
                    self.shared.asleep.store(true, Ordering::SeqCst);
                    // What came before the flag was up is taken at once.
                    match self.take_queued(into) {
                        Err(()) => return false,
                        Ok(0) => {
                            let nap = NAP.min(patience.saturating_sub(waited));
                            std::thread::park_timeout(nap);
                            waited += nap;
                        }
                        Ok(_) => self.busy = true,
                    }
                    self.shared.asleep.store(false, Ordering::Release);
                    if self.busy {
                        return true;
                    }
                }
                Ok(taken) => {
                    self.busy = taken > 0;
                    return true;
                }
            }
        }
    }

    fn take_queued(&mut self, into: &mut Vec<Event>) -> Result<u64, ()> {
        let (mut slots, mut bytes, mut taken) = (0, 0, 0);
        // No more than the queue holds in one go, so that a fast data path cannot keep the observer in here.
        let closed = loop {
            if slots > self.shared.limits.events {
                break false;
            }
            match self.queue.try_recv() {
                Ok(events) => {
                    slots += 1;
                    bytes += events.bytes();
                    taken += events.len();
                    match events {
                        Events::One(event) => into.push(event),
                        Events::Two(events) => into.extend(events),
                        Events::Three(events) => into.extend(events),
                    }
                }
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            }
        };
        self.shared.events.fetch_sub(slots, Ordering::Relaxed);
        self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if closed && taken == 0 {
            Err(())
        } else {
            Ok(taken)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use std::time::Instant;

    use bytes::Bytes;
    use uuid::Uuid;

    use super::super::{BodyEnd, Side};
    use super::*;

    fn chunk(size: usize) -> Events {
        Events::One(Event::ResponseChunk(
            Uuid::nil(),
            Instant::now(),
            Bytes::from(vec![0; size]),
        ))
    }

    fn end(tap: &Tap) {
        let lost = Event::Lost(Uuid::nil(), Side::Response);
        tap.end(
            [None, None],
            lost,
            Event::End(Uuid::nil(), Instant::now(), BodyEnd::Complete),
        );
    }

    #[test]
    fn the_end_of_what_was_let_in_always_fits() {
        let (tap, mut receiver) = tap(
            TapLimits {
                events: 8,
                bytes: 1 << 20,
            },
            std::thread::current(),
        );
        let admitted = (0..100).filter(|_| tap.begin(chunk(1))).count();
        assert_eq!(admitted, 4, "each takes two of eight");
        assert!(!tap.offer(chunk(1)));
        for _ in 0..admitted {
            end(&tap);
        }
        let mut taken = Vec::new();
        assert!(receiver.take(&mut taken, Duration::ZERO));
        assert_eq!(taken.len(), 8);
        assert_eq!(tap.counts().exchanges(), 4);
        assert_eq!(tap.counts().exchanges_dropped(DropReason::Events), 96);
        assert_eq!(tap.counts().chunks_dropped(DropReason::Events), 1);
        assert_eq!(
            (
                tap.bytes_in_flight(),
                tap.shared.events.load(Ordering::Relaxed)
            ),
            (0, 0)
        );
    }

    #[test]
    fn bytes_are_bounded_and_given_back() {
        let (tap, mut receiver) = tap(
            TapLimits {
                events: 100,
                bytes: 10_000,
            },
            std::thread::current(),
        );
        assert!(tap.offer(chunk(4_500)));
        assert!(!tap.offer(chunk(4_500)));
        assert_eq!(tap.counts().chunks_dropped(DropReason::Bytes), 1);
        receiver.take(&mut Vec::new(), Duration::ZERO);
        assert!(tap.offer(chunk(4_500)));
    }

    #[test]
    fn frames_leave_room_for_heads() {
        let limits = TapLimits {
            events: 100,
            bytes: 10_000,
        };
        let (tap, mut receiver) = super::tap(limits, std::thread::current());
        assert!(tap.offer(chunk(4_500)));
        assert!(!tap.offer(chunk(1_000)), "a frame");
        assert!(tap.begin(chunk(1_000)), "an exchange's first events");
        let head = || {
            Event::Response(
                Uuid::nil(),
                Box::new(super::super::ResponseHead {
                    at: Instant::now(),
                    status: http::StatusCode::OK,
                    headers: super::super::HeaderText::default(),
                    fault: None,
                }),
            )
        };
        let Events::One(frame) = chunk(1_000) else {
            unreachable!("one event")
        };
        let gap = Event::Lost(Uuid::nil(), Side::Response);
        let end = Event::End(Uuid::nil(), Instant::now(), BodyEnd::Complete);
        tap.end([Some(head()), Some(frame)], gap, end);
        let mut taken = Vec::new();
        receiver.take(&mut taken, Duration::ZERO);
        assert!(matches!(
            taken.as_slice(),
            [
                Event::ResponseChunk(..),
                Event::ResponseChunk(..),
                Event::Response(..),
                Event::Lost(..),
                Event::End(..)
            ]
        ));
        assert_eq!(tap.counts().chunks_dropped(DropReason::Bytes), 2);
        assert_eq!(tap.bytes_in_flight(), 0);
    }

    #[test]
    fn a_sleeping_observer_is_woken_by_the_first_event_and_told_of_the_end() {
        let (handle, given) = sync_channel(1);
        let (start, go) = sync_channel::<TapReceiver>(1);
        let observer = std::thread::spawn(move || {
            handle.send(std::thread::current()).unwrap();
            let mut receiver = go.recv().unwrap();
            let mut taken = Vec::new();
            while receiver.take(&mut taken, Duration::from_mins(1)) {}
            taken.len()
        });
        let (tap, receiver) = tap(
            TapLimits {
                events: 100,
                bytes: 10_000,
            },
            given.recv().unwrap(),
        );
        start.send(receiver).unwrap();
        assert!(tap.begin(chunk(1)));
        end(&tap);
        drop(tap);
        assert_eq!(observer.join().unwrap(), 2);
    }

    #[test]
    fn without_an_observer_offers_are_refused_and_counted() {
        let (tap, receiver) = tap(
            TapLimits {
                events: 100,
                bytes: 10_000,
            },
            std::thread::current(),
        );
        drop(receiver);
        assert!(!tap.begin(chunk(1)));
        assert_eq!(tap.counts().exchanges_dropped(DropReason::Closed), 1);
    }
}
