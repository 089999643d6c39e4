//! What became of a call that got no answer of its own, and how exchanges end in the log's words.

use callbox_store::{End, Outcome};

use crate::tap::BodyEnd;

/// How an exchange ended, given what callbox itself had to answer.
pub(super) fn end(end: BodyEnd, fault: Option<&str>) -> End {
    match (fault, end) {
        (Some("head-timeout"), _) => End::ProxyTimeout,
        (Some("upstream-unreachable" | "upstream-lost"), _) => End::UpstreamLost,
        (_, BodyEnd::Complete) => End::Complete,
        (_, BodyEnd::Error) => End::UpstreamLost,
        (_, BodyEnd::Cancelled) => End::ClientGone,
        (_, BodyEnd::Timeout) => End::ProxyTimeout,
    }
}

/// What is known of an exchange that ended without the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unanswered<'a> {
    pub(super) end: End,
    /// Of the response; none without one.
    pub(super) status: Option<u16>,
    /// Kind of fault that callbox answered with.
    pub(super) fault: Option<&'a str>,
    /// There was something that could not be read, or part of it never came here.
    pub(super) unread: bool,
    /// Another exchange may still bring the answer.
    pub(super) may_come: bool,
    /// The server said that the answer comes elsewhere.
    pub(super) accepted: bool,
}

/// The outcome of an exchange without the answer; `Pending` while it may come.
pub(super) fn unanswered(facts: Unanswered<'_>) -> Outcome {
    let refused = facts
        .status
        .is_some_and(|status| !(200..300).contains(&status));
    match (facts.fault, facts.end) {
        (Some("head-timeout"), _) => Outcome::Timeout,
        (Some("upstream-unreachable" | "upstream-lost"), _) => Outcome::Lost,
        _ if refused => Outcome::HttpError,
        (_, End::ClientGone) => Outcome::Aborted,
        (_, End::UpstreamLost) => Outcome::Lost,
        (_, End::ProxyTimeout) => Outcome::Timeout,
        _ if facts.unread => Outcome::Unreadable,
        _ if facts.may_come => Outcome::Pending,
        _ if facts.accepted => Outcome::Abandoned,
        // A page, an empty body, a stream without an answer: HTTP was fine and said nothing.
        _ => Outcome::HttpError,
    }
}

/// As metrics and the log spell it.
pub(super) fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::ToolError => "tool_error",
        Outcome::RpcError => "rpc_error",
        Outcome::HttpError => "http_error",
        Outcome::Timeout => "timeout",
        Outcome::Cancelled => "cancelled",
        Outcome::Aborted => "aborted",
        Outcome::Lost => "lost",
        Outcome::Unreadable => "unreadable",
        Outcome::Pending => "pending",
        Outcome::Abandoned => "abandoned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Unanswered<'_> = Unanswered {
        end: End::Complete,
        status: Some(200),
        fault: None,
        unread: false,
        may_come: false,
        accepted: false,
    };

    #[test]
    fn http_says_what_json_rpc_does_not() {
        let of = |facts: Unanswered<'static>| unanswered(facts);
        assert_eq!(
            of(Unanswered {
                status: Some(404),
                end: End::ClientGone,
                ..NONE
            }),
            Outcome::HttpError
        );
        assert_eq!(
            of(Unanswered {
                status: Some(302),
                ..NONE
            }),
            Outcome::HttpError
        );
        assert_eq!(
            of(Unanswered {
                end: End::ClientGone,
                ..NONE
            }),
            Outcome::Aborted
        );
        assert_eq!(
            of(Unanswered {
                end: End::ClientGone,
                status: None,
                ..NONE
            }),
            Outcome::Aborted
        );
        assert_eq!(
            of(Unanswered {
                end: End::UpstreamLost,
                ..NONE
            }),
            Outcome::Lost
        );
        assert_eq!(
            of(Unanswered {
                end: End::ProxyTimeout,
                ..NONE
            }),
            Outcome::Timeout
        );
        assert_eq!(
            of(Unanswered {
                unread: true,
                may_come: true,
                ..NONE
            }),
            Outcome::Unreadable
        );
        assert_eq!(
            of(Unanswered {
                may_come: true,
                ..NONE
            }),
            Outcome::Pending
        );
        assert_eq!(
            of(Unanswered {
                accepted: true,
                ..NONE
            }),
            Outcome::Abandoned
        );
        assert_eq!(of(NONE), Outcome::HttpError);
    }

    #[test]
    fn faults_of_the_hop_are_not_the_tools() {
        let fault = |kind| {
            unanswered(Unanswered {
                status: Some(502),
                fault: Some(kind),
                ..NONE
            })
        };
        assert_eq!(fault("head-timeout"), Outcome::Timeout);
        assert_eq!(fault("upstream-lost"), Outcome::Lost);
        assert_eq!(fault("upstream-unreachable"), Outcome::Lost);
        assert_eq!(fault("body-too-large"), Outcome::HttpError);
        assert_eq!(
            end(BodyEnd::Complete, Some("head-timeout")),
            End::ProxyTimeout
        );
        assert_eq!(
            end(BodyEnd::Complete, Some("body-too-large")),
            End::Complete
        );
    }
}
