//! Beginnings of ids. UUID v7 ids minted close together share their first twelve digits, so how much of one is enough
//! depends on its neighbours.

use uuid::Uuid;

/// Hex digits that are always shown.
pub(crate) const SHORTEST: usize = 8;
/// Hex digits of a whole id.
pub(crate) const DIGITS: usize = 32;

/// The first `digits` hex digits, hyphens in their places.
pub(crate) fn prefix(id: Uuid, digits: usize) -> String {
    let mut left = digits;
    let mut text = String::with_capacity(digits + 4);
    for c in id.hyphenated().to_string().chars() {
        if left == 0 {
            break;
        }
        if c != '-' {
            left -= 1;
        }
        text.push(c);
    }
    text
}

/// How many hex digits two ids share from the beginning.
pub(crate) fn common(one: Uuid, other: Uuid) -> usize {
    ((one.as_u128() ^ other.as_u128()).leading_zeros() / 4) as usize
}

/// Whether an id begins with what someone typed, hyphens and case aside.
pub(crate) fn begins_with(id: Uuid, typed: &str) -> bool {
    let typed: String = typed
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    id.simple().to_string().starts_with(&typed)
}

/// How many digits tell each of these ids from the others, at least [`SHORTEST`], in their order.
pub(crate) fn apart(ids: &[Uuid]) -> Vec<usize> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let digits = |id: &Uuid| {
        let at = sorted.binary_search(id).unwrap_or(0);
        let neighbours = [at.checked_sub(1), at.checked_add(1)];
        let shared = neighbours
            .into_iter()
            .flatten()
            .filter_map(|at| sorted.get(at))
            .map(|other| common(*id, *other));
        (shared.max().unwrap_or(0) + 1).clamp(SHORTEST, DIGITS)
    };
    ids.iter().map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Uuid {
        Uuid::parse_str(text).unwrap()
    }

    #[test]
    fn beginnings() {
        let one = id("0193a7c2-4e1b-7abc-8000-000000000001");
        let other = id("0193a7c2-4e1b-7abd-8000-000000000001");
        assert_eq!(prefix(one, 8), "0193a7c2");
        assert_eq!(prefix(one, 9), "0193a7c2-4");
        assert_eq!(prefix(one, 32), one.to_string());
        assert_eq!(common(one, other), 15);
        assert_eq!(common(one, one), 32);
        assert!(
            begins_with(one, "0193A7C24e")
                && begins_with(one, "0193a7c2-4e1b-7")
                && !begins_with(one, "0193a7c3")
        );
    }

    #[test]
    fn just_long_enough_to_tell_apart() {
        let one = id("0193a7c2-4e1b-7abc-8000-000000000001");
        let other = id("0193a7c2-4e1b-7abd-8000-000000000001");
        let far = id("0193b000-0000-7000-8000-000000000001");
        assert_eq!(apart(&[far, one, other, one]), [8, 16, 16, 16]);
        assert_eq!(apart(&[one]), [8]);
        assert_eq!(apart(&[]), Vec::<usize>::new());
    }
}
