//! Numbers that stand for enumeration members in the file. Positions are the format: append, never reorder.

use crate::record::{Capture, Direction, End, Outcome, SessionSource};

/// A closed enumeration with a number for each member.
pub(crate) trait Coded: Copy + PartialEq + 'static {
    /// The members, each at its number.
    const MEMBERS: &'static [Self];

    /// Number of this member.
    fn code(self) -> u8 {
        let at = Self::MEMBERS.iter().position(|member| *member == self);
        at.and_then(|at| u8::try_from(at).ok())
            .expect("every member is listed (tested)")
    }

    /// Member with this number.
    fn from_code(code: i64) -> Option<Self> {
        Self::MEMBERS.get(usize::try_from(code).ok()?).copied()
    }
}

impl Coded for Outcome {
    const MEMBERS: &'static [Self] = &[
        Self::Ok,
        Self::ToolError,
        Self::RpcError,
        Self::HttpError,
        Self::Timeout,
        Self::Cancelled,
        Self::Aborted,
        Self::Lost,
        Self::Unreadable,
        Self::Pending,
        Self::Abandoned,
    ];
}

impl Coded for End {
    const MEMBERS: &'static [Self] = &[
        Self::Complete,
        Self::ClientGone,
        Self::UpstreamLost,
        Self::ProxyTimeout,
        Self::Open,
    ];
}

impl Coded for SessionSource {
    const MEMBERS: &'static [Self] = &[
        Self::Protocol,
        Self::Conversation,
        Self::Task,
        Self::RequestState,
        Self::Trace,
        Self::Inferred,
    ];
}

impl Coded for Capture {
    const MEMBERS: &'static [Self] = &[Self::Full, Self::Truncated, Self::Undecoded, Self::Dropped];
}

impl Coded for Direction {
    const MEMBERS: &'static [Self] = &[Self::ClientToServer, Self::ServerToClient];
}

/// Whether a call with this outcome counts as failed: concluded, and not `ok`.
pub(crate) fn failed(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Ok | Outcome::Pending)
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;

    /// A member missing from the list would panic in `code`: ask serde for all names it knows and code each.
    fn complete<T: Coded + DeserializeOwned + std::fmt::Debug>() {
        let error = serde_json::from_str::<T>("\"no such member\"")
            .expect_err("not a member")
            .to_string();
        let names = error.split('`').skip(3).step_by(2);
        let mut count = 0;
        for name in names {
            let member: T = serde_json::from_str(&format!("\"{name}\"")).expect("serde listed it");
            assert_eq!(T::from_code(member.code().into()), Some(member));
            count += 1;
        }
        assert_eq!(count, T::MEMBERS.len(), "{error}");
    }

    #[test]
    fn every_member_has_a_number() {
        complete::<Outcome>();
        complete::<End>();
        complete::<SessionSource>();
        complete::<Capture>();
        complete::<Direction>();
    }

    #[test]
    fn ok_is_zero_since_the_partial_index_says_so() {
        assert_eq!(Outcome::Ok.code(), 0);
    }
}
