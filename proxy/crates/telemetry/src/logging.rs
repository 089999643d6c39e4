//! callbox's own log: to stderr, for people or machines, level reloadable.

use std::io::IsTerminal as _;
use std::sync::Arc;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter text is not one.
    #[error(
        "log.level: {level:?} is not a filter: {reason}; use error, warn, info, debug or trace, or per module like info,callbox_proxy=debug"
    )]
    Filter {
        /// What was given.
        level: String,
        /// What the parser says.
        reason: String,
    },
    /// Someone else installed a subscriber first.
    #[error("the log is set up already")]
    Installed,
}

/// Changes the level while running.
#[derive(Clone)]
pub struct LogHandle(Arc<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl std::fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogHandle")
    }
}

impl LogHandle {
    /// Takes a new filter into use.
    ///
    /// # Errors
    /// The filter text is wrong; the old one stays.
    pub fn set_level(&self, level: &str) -> Result<(), LogError> {
        let filter = filter(level)?;
        (self.0)(filter).map_err(|gone| LogError::Filter {
            level: level.to_owned(),
            reason: gone.to_string(),
        })
    }
}

/// Installs the process's log.
///
/// # Errors
/// The filter text is wrong, or there is a log already.
pub fn logging(level: &str, json: bool) -> Result<LogHandle, LogError> {
    let (filter, handle) = reload::Layer::new(filter(level)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    let installed = if json {
        registry.with(lines.json().flatten_event(true)).try_init()
    } else {
        let ansi = std::io::stderr().is_terminal();
        registry
            .with(lines.with_ansi(ansi).with_target(false))
            .try_init()
    };
    installed.map_err(|_taken| LogError::Installed)?;
    Ok(LogHandle(Arc::new(move |filter| handle.reload(filter))))
}

fn filter(level: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::builder()
        .parse(level)
        .map_err(|error| LogError::Filter {
            level: level.to_owned(),
            reason: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_filter_is_named() {
        let error =
            filter("info,callbox=loud").map_or_else(|error| error.to_string(), |_| String::new());
        assert!(error.contains("callbox=loud"), "{error}");
        assert!(filter("info,callbox_proxy=debug").is_ok());
    }
}
