//! `[record]`.

use std::time::Duration;

use super::Cx;
use crate::raw;
use crate::settings::{Detector, Durability, Payloads, Record, Redact, RedactPointer, Retention};
use crate::write::shown;

pub(super) fn resolve(cx: &mut Cx<'_>, raw: &raw::Record) -> Record {
    let tick = Duration::from_millis(1);
    Record {
        payloads: match raw.payloads {
            raw::Payloads::Redacted => Payloads::Redacted,
            raw::Payloads::None => Payloads::None,
        },
        max_message_bytes: cx.length(
            "record.max_message_bytes",
            &raw.max_message_bytes,
            1 << 10..=1 << 30,
        ),
        queue_events: raw.queue_events,
        queue_bytes: cx.length("record.queue_bytes", &raw.queue_bytes, 64 << 10..=64 << 30),
        durability: match raw.durability {
            raw::Durability::Commit => Durability::Commit,
            raw::Durability::BeforeResponse => Durability::BeforeResponse,
        },
        durability_timeout: cx.duration("record.durability_timeout", &raw.durability_timeout, tick),
        max_sessions: raw.max_sessions,
        session_idle: cx.duration(
            "record.session_idle",
            &raw.session_idle,
            Duration::from_secs(1),
        ),
        redact: redact(cx, &raw.redact),
        retention: Retention {
            max_age: cx.duration(
                "record.retention.max_age",
                &raw.retention.max_age,
                Duration::from_secs(1),
            ),
            max_bytes: cx.size(
                "record.retention.max_bytes",
                &raw.retention.max_bytes,
                1 << 20..=1 << 50,
            ),
        },
    }
}

fn redact(cx: &mut Cx<'_>, raw: &raw::Redact) -> Redact {
    for (at, name) in raw.keys.iter().enumerate() {
        if !name.contains(char::is_alphanumeric) {
            let problem = cx
                .problem(
                    &format!("record.redact.keys[{at}]"),
                    "a name without a letter or digit",
                )
                .found(shown(name))
                .allowed("a member name such as \"password\"");
            cx.findings.push(problem);
        }
    }
    let plain = |name: &str| {
        name.to_lowercase()
            .replace(|c: char| !c.is_alphanumeric(), "")
    };
    let given: Vec<_> = raw.keys.iter().map(|name| plain(name)).collect();
    let mut missing = raw::Redact::default().keys;
    missing.retain(|name| !given.contains(&plain(name)));
    if !missing.is_empty() {
        let warning = cx
            .problem(
                "record.redact.keys",
                "values under names of the default list will be recorded",
            )
            .found(format!("a list without {}", missing.join(", ")))
            .fix("add them, unless that is what you want");
        cx.warnings.push(warning);
    }
    let pointers = raw
        .pointers
        .iter()
        .enumerate()
        .filter_map(|(at, raw)| pointer(cx, at, raw))
        .collect();
    Redact {
        keys: raw.keys.clone(),
        detectors: raw.detectors.iter().copied().map(detector).collect(),
        pointers,
    }
}

fn pointer(cx: &mut Cx<'_>, at: usize, raw: &raw::RedactPointer) -> Option<RedactPointer> {
    let key = |name: &str| format!("record.redact.pointers[{at}].{name}");
    let allowed =
        "an RFC 6901 pointer such as \"/contact/email\" or \"/items/*/note\"; \"\" is the whole";
    match &raw.tool {
        None => cx.missing(&key("tool"), "the name of a tool, or \"*\" for all"),
        Some(tool) if tool.is_empty() => {
            let problem = cx
                .problem(&key("tool"), "an empty name")
                .allowed("the name of a tool, or \"*\" for all");
            cx.findings.push(problem);
        }
        Some(_) => {}
    }
    match &raw.pointer {
        None => cx.missing(&key("pointer"), allowed),
        Some(pointer) if !is_pointer(pointer) => {
            let problem = cx
                .problem(&key("pointer"), "not a JSON pointer")
                .found(shown(pointer))
                .allowed(allowed);
            let fixed = format!(
                "/{}",
                pointer.trim_start_matches(['$', '.']).replace('.', "/")
            );
            cx.findings.push(if pointer.starts_with('/') {
                problem.fix("write `~` as `~0`, and a `/` inside a name as `~1`")
            } else {
                problem.fix(format!("write {}", shown(&fixed)))
            });
        }
        Some(_) => {}
    }
    Some(RedactPointer {
        tool: raw.tool.clone()?,
        pointer: raw.pointer.clone()?,
    })
}

fn is_pointer(text: &str) -> bool {
    let escapes = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && escapes
}

fn detector(raw: raw::Detector) -> Detector {
    match raw {
        raw::Detector::Pem => Detector::Pem,
        raw::Detector::Jwt => Detector::Jwt,
        raw::Detector::CloudKey => Detector::CloudKey,
        raw::Detector::Card => Detector::Card,
        raw::Detector::Email => Detector::Email,
        raw::Detector::Phone => Detector::Phone,
        raw::Detector::Iban => Detector::Iban,
        raw::Detector::UrlCredential => Detector::UrlCredential,
        raw::Detector::Ssn => Detector::Ssn,
    }
}
