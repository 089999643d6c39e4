//! A map with a limit: the entry used longest ago makes room, and silent ones can be taken out.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Keyed digest of whatever identifies an entry.
pub(crate) type Key = [u8; 16];

/// Keys are keyed digests already: their first bytes are as good as any hash, and no peer can choose them.
#[derive(Default)]
pub(super) struct Digested(u64);

impl Hasher for Digested {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut()
                .zip(chunk)
                .for_each(|(to, from)| *to = *from);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u64(&mut self, word: u64) {
        // Counters: spread them over the upper bits, too.
        self.0 ^= word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Lengths of keys are all the same.
    fn write_usize(&mut self, _: usize) {}
}

/// A map for keys that are digests or counters.
pub(super) type DigestMap<K, V> = HashMap<K, V, BuildHasherDefault<Digested>>;

const NONE: u32 = u32::MAX;

/// At most `max` entries in order of use.
#[derive(Debug)]
pub(super) struct Bounded<V> {
    index: DigestMap<Key, u32>,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    max: usize,
}

#[derive(Debug)]
struct Slot<V> {
    key: Key,
    /// Boxed, so that the slots of entries that left cost little.
    value: Option<Box<V>>,
    /// When it was last used, in seconds of the observer's clock.
    used: u32,
    newer: u32,
    older: u32,
}

impl<V> Bounded<V> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            index: DigestMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            max: max.max(1),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The entry, without using it.
    pub(super) fn peek(&mut self, key: &Key) -> Option<&mut V> {
        let at = *self.index.get(key)?;
        self.slots.get_mut(at as usize)?.value.as_deref_mut()
    }

    /// When it was last used.
    pub(super) fn used(&self, key: &Key) -> Option<u32> {
        let at = *self.index.get(key)?;
        Some(self.slots.get(at as usize)?.used)
    }

    /// Uses the entry.
    pub(super) fn get(&mut self, key: &Key, now: u32) -> Option<&mut V> {
        let at = *self.index.get(key)?;
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
        let slot = self.slots.get_mut(at as usize)?;
        slot.used = now;
        slot.value.as_deref_mut()
    }

    /// Puts an entry in; gives back what it replaced, or what had to leave for it.
    pub(super) fn insert(&mut self, key: Key, value: V, now: u32) -> Option<(Key, V)> {
        let mut left = self.remove(&key).map(|value| (key, value));
        if left.is_none() && self.len() >= self.max {
            left = self.pop_oldest();
        }
        let slot = Slot {
            key,
            value: Some(Box::new(value)),
            used: now,
            newer: NONE,
            older: NONE,
        };
        let at = if let Some(at) = self.free.pop() {
            if let Some(place) = self.slots.get_mut(at as usize) {
                *place = slot;
            }
            at
        } else {
            let Ok(at) = u32::try_from(self.slots.len()) else {
                return left;
            };
            self.slots.push(slot);
            at
        };
        self.index.insert(key, at);
        self.link(at);
        left
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<V> {
        let at = self.index.remove(key)?;
        self.unlink(at);
        self.free.push(at);
        let value = self.slots.get_mut(at as usize)?.value.take();
        value.map(|value| *value)
    }

    /// Takes out the entry used longest ago.
    pub(super) fn pop_oldest(&mut self) -> Option<(Key, V)> {
        let key = self.slots.get(self.oldest as usize)?.key;
        self.remove(&key).map(|value| (key, value))
    }

    /// The entry used longest ago, when that was before `limit`.
    pub(super) fn oldest_before(&self, limit: u32) -> Option<Key> {
        let slot = self.slots.get(self.oldest as usize)?;
        (slot.used < limit).then_some(slot.key)
    }

    /// Gives memory back after many entries left.
    pub(super) fn shrink(&mut self) {
        if self.slots.len() < 1024 || self.index.len() * 4 > self.slots.len() {
            return;
        }
        let mut kept = Self::new(self.max);
        let mut at = self.oldest;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            at = slot.newer;
            if let Some(value) = slot.value.take() {
                let (key, used) = (slot.key, slot.used);
                kept.insert(key, *value, used);
            }
        }
        *self = kept;
    }

    fn link(&mut self, at: u32) {
        let newest = std::mem::replace(&mut self.newest, at);
        if let Some(slot) = self.slots.get_mut(at as usize) {
            (slot.older, slot.newer) = (newest, NONE);
        }
        match self.slots.get_mut(newest as usize) {
            Some(slot) => slot.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some(slot) = self.slots.get(at as usize) else {
            return;
        };
        let (newer, older) = (slot.newer, slot.older);
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Key {
        [n; 16]
    }

    #[test]
    fn the_one_used_longest_ago_makes_room() {
        let mut map = Bounded::new(3);
        for n in 0..3 {
            assert_eq!(map.insert(key(n), n, 0), None);
        }
        assert_eq!(map.get(&key(0), 1), Some(&mut 0));
        assert_eq!(map.insert(key(3), 3, 1), Some((key(1), 1)));
        assert_eq!(map.insert(key(3), 4, 1), Some((key(3), 3)), "replaced");
        assert_eq!(map.oldest_before(1), Some(key(2)));
        assert_eq!(map.remove(&key(2)), Some(2));
        assert_eq!(map.oldest_before(1), None, "0 was used at 1");
        assert_eq!(map.pop_oldest(), Some((key(0), 0)));
        assert_eq!(map.pop_oldest(), Some((key(3), 4)));
        assert_eq!(map.pop_oldest(), None);
        assert!(map.is_empty());
    }

    #[test]
    fn shrinking_keeps_the_order() {
        let mut map = Bounded::new(10_000);
        let wide = |n: u16| {
            let mut key = [0; 16];
            key[..2].copy_from_slice(&n.to_le_bytes());
            key
        };
        for n in 0..5_000 {
            map.insert(wide(n), n, u32::from(n));
        }
        for n in 3..5_000 {
            map.remove(&wide(n));
        }
        map.shrink();
        assert!(map.slots.len() < 10);
        let order: Vec<u16> = std::iter::from_fn(|| map.pop_oldest())
            .map(|(_, value)| value)
            .collect();
        assert_eq!(order, [0, 1, 2]);
    }
}
