//! The open requests of one session: mostly none or one, so that a session that waits costs next to nothing.

use super::calls::RequestNo;

/// Numbers of open requests, each at a known place.
#[derive(Debug, Default)]
pub(super) enum Open {
    #[default]
    None,
    One(RequestNo),
    /// Boxed: three words for all sessions would be paid for the few that need them.
    Many(Box<Vec<RequestNo>>),
}

impl Open {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn as_slice(&self) -> &[RequestNo] {
        match self {
            Self::None => &[],
            Self::One(no) => std::slice::from_ref(no),
            Self::Many(all) => all,
        }
    }

    /// Adds a request; its place.
    pub(super) fn push(&mut self, no: RequestNo) -> u32 {
        match self {
            Self::None => {
                *self = Self::One(no);
                0
            }
            Self::One(first) => {
                *self = Self::Many(Box::new(vec![*first, no]));
                1
            }
            Self::Many(all) => {
                all.push(no);
                u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }

    /// Takes a request out of its place; the one that moved there, if any.
    pub(super) fn remove(&mut self, place: u32, no: RequestNo) -> Option<RequestNo> {
        match self {
            Self::One(one) if *one == no => *self = Self::None,
            Self::Many(all) => {
                let place = place as usize;
                if all.get(place) != Some(&no) {
                    return None;
                }
                all.swap_remove(place);
                let moved = all.get(place).copied();
                if all.is_empty() {
                    *self = Self::None;
                }
                return moved;
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_what_moves() {
        let mut open = Open::default();
        let places: Vec<u32> = (10..13).map(|no| open.push(no)).collect();
        assert_eq!(places, [0, 1, 2]);
        assert_eq!(open.remove(0, 10), Some(12));
        assert_eq!(open.as_slice(), [12, 11]);
        assert_eq!(open.remove(0, 99), None, "not there");
        assert_eq!(open.remove(1, 11), None);
        assert_eq!(open.remove(0, 12), None);
        assert!(open.is_empty());
        assert_eq!(open.push(5), 0);
        assert_eq!(open.remove(7, 5), None);
        assert!(open.is_empty());
    }
}
