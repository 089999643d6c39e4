//! Which worker serves which connection.
//!
//! All workers accept on one socket, and the first to wake takes what is there, so that on its own one could end up
//! with most connections. A connection is therefore handed to the worker with the fewest, once, before its first byte.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::mpsc;

/// Connections handed over that a worker has not taken yet; with more the accepting worker keeps its own.
const WAITING: usize = 256;

/// A connection on its way to its worker, and its place in the count.
pub(super) type Arrival = (TcpStream, SocketAddr, Slot);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Open(AtomicUsize);

/// All workers, as each sees them.
#[derive(Debug)]
pub(super) struct Crew {
    open: Vec<Open>,
    doors: Vec<mpsc::Sender<Arrival>>,
}

impl Crew {
    /// A crew of `count`, and the inner side of each one's door.
    pub(super) fn new(count: usize) -> (Arc<Self>, Vec<mpsc::Receiver<Arrival>>) {
        let (doors, insides) = (0..count).map(|_| mpsc::channel(WAITING)).unzip();
        let open = (0..count).map(|_| Open::default()).collect();
        (Arc::new(Self { open, doors }), insides)
    }

    /// Connections of all workers.
    fn total(&self) -> usize {
        self.open.iter().map(|open| open.0.load(Relaxed)).sum()
    }

    /// The worker with the fewest connections; `own` when no other has fewer.
    fn idlest(&self, own: usize) -> usize {
        let load = |index: usize| {
            self.open
                .get(index)
                .map_or(usize::MAX, |open| open.0.load(Relaxed))
        };
        let least = (0..self.open.len())
            .min_by_key(|index| load(*index))
            .unwrap_or(own);
        if load(least) < load(own) { least } else { own }
    }

    /// Takes a place for a connection that `own` accepted, at the worker that is to serve it.
    pub(super) fn seat(self: &Arc<Self>, own: usize) -> Slot {
        self.seat_at(self.idlest(own))
    }

    /// Takes a place at this worker.
    pub(super) fn seat_at(self: &Arc<Self>, worker: usize) -> Slot {
        if let Some(open) = self.open.get(worker) {
            open.0.fetch_add(1, Relaxed);
        }
        Slot {
            worker,
            number: self.total(),
            crew: Arc::clone(self),
        }
    }

    /// Hands a connection to the worker its place is at. Back when that one has its hands full.
    pub(super) fn hand_over(&self, arrival: Arrival) -> Result<(), Arrival> {
        match self.doors.get(arrival.2.worker) {
            Some(door) => door
                .try_send(arrival)
                .map_err(mpsc::error::TrySendError::into_inner),
            None => Err(arrival),
        }
    }
}

/// One client connection's place in the count.
#[derive(Debug)]
pub(super) struct Slot {
    /// Who serves it.
    pub(super) worker: usize,
    /// How many there are with this one.
    pub(super) number: usize,
    crew: Arc<Crew>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(open) = self.crew.open.get(self.worker) {
            open.0.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_evenly_and_given_back() {
        let (crew, _insides) = Crew::new(3);
        let slots: Vec<_> = (0..30).map(|_| crew.seat(0)).collect();
        assert_eq!(slots.last().map(|slot| slot.number), Some(30));
        for worker in 0..3 {
            assert_eq!(
                slots.iter().filter(|slot| slot.worker == worker).count(),
                10
            );
        }
        drop(slots);
        assert_eq!(crew.total(), 0);
        assert_eq!(crew.seat(2).worker, 2, "of equals the one that accepted");
    }
}
