use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const NOON: Micros = 1_796_040_000_000_000;

/// Ten thousand ids at one moment differ in their first halves alone, and are in order.
#[test]
fn ten_thousand_ids_of_one_moment_are_unique_and_in_order() {
    let mut ids = Ids::after(None);
    let minted: Vec<_> = (0..10_000).map(|_| ids.next(NOON)).collect();
    assert!(
        minted
            .windows(2)
            .all(|pair| key_of(pair[0]) < key_of(pair[1]))
    );
    assert!(
        minted
            .iter()
            .all(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122)
    );
}

#[test]
fn a_clock_that_jumps_back_does_not_turn_ids_back() {
    let mut ids = Ids::after(None);
    let before = ids.next(NOON);
    let after = ids.next(NOON - 3_600_000_000);
    assert!(key_of(before) < key_of(after));
    // And when it has caught up, ids tell the time again.
    let later = ids.next(NOON + 1_000_000);
    assert_eq!(moment_of(key_of(later)), NOON + 1_000_000);
}

#[test]
fn a_generator_goes_on_after_the_newest_id_of_the_log() {
    let newest = Ids::after(None).next(NOON);
    let next = Ids::after(Some(newest)).next(NOON - 60_000_000);
    assert!(key_of(newest) < key_of(next));
}

/// Two replicas, or two runs of one, that see the same traffic at the same time: each starts with the same state.
#[test]
fn b33_ids_of_replicas_and_restarts_never_collide() {
    let mut seen = HashSet::new();
    for _run in 0..4 {
        let mut ids = Ids::after(None);
        for step in 0..2_500 {
            assert!(seen.insert(ids.next(NOON + step)), "an id came twice");
        }
    }
}

proptest! {
    /// An id minted in time carries its moment to the microsecond, and is the first key of that moment.
    #[test]
    fn an_id_carries_its_moment(at in 0_i64..140_737_488_355_327_000) {
        let key = key_of(Ids::after(None).next(at));
        prop_assert_eq!(moment_of(key), at);
        prop_assert!(key_at(at) <= key);
        prop_assert!(key_at(at + 1) > key);
        prop_assert!(key >= 0);
    }

    /// Halves put together again give the id.
    #[test]
    fn halves_make_a_whole(id in any::<u128>()) {
        let id = Uuid::from_u128(id);
        prop_assert_eq!(id_from(key_of(id), tail_of(id)), id);
    }
}
