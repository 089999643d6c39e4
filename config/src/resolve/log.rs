//! `[log]`.

use super::Cx;
use crate::nearest::nearest;
use crate::raw;
use crate::settings::{Log, LogFormat};
use crate::write::shown;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

pub(super) fn resolve(cx: &mut Cx<'_>, raw: &raw::Log) -> Log {
    if let Some(directive) = raw
        .level
        .split(',')
        .find(|directive| !is_directive(directive))
    {
        let problem = cx
            .problem("log.level", "not a log level")
            .found(shown(&raw.level))
            .allowed(format!(
                "{}; or a list such as \"info,callbox_proxy=debug\"",
                LEVELS.join(", ")
            ));
        let level = directive.rsplit('=').next().unwrap_or(directive).trim();
        cx.findings
            .push(match nearest(level, LEVELS).or_else(|| synonym(level)) {
                Some(level) => problem.fix(format!("did you mean \"{level}\"?")),
                None => problem,
            });
    }
    Log {
        level: raw.level.clone(),
        format: match raw.format {
            raw::LogFormat::Human => LogFormat::Human,
            raw::LogFormat::Json => LogFormat::Json,
        },
    }
}

fn is_directive(text: &str) -> bool {
    let text = text.trim();
    let level = |level: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
    match text.split_once('=') {
        Some((target, tail)) => {
            let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
            !target.is_empty() && target.chars().all(inside) && level(tail)
        }
        None => level(text),
    }
}

fn synonym(level: &str) -> Option<&'static str> {
    match level.to_lowercase().as_str() {
        "none" | "silent" | "quiet" => Some("off"),
        "fatal" | "critical" => Some("error"),
        "notice" | "information" => Some("info"),
        "verbose" | "all" => Some("trace"),
        _ => None,
    }
}
