//! Filters as typed. Turning them into the store's filters needs the log: ids and principals may be shortened.

use callbox_store::{CallFilter, Micros, Outcome, SessionFilter};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::when::moment;
use crate::log::Log;
use crate::words;

/// Which calls.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub(crate) struct CallFilterArgs {
    /// Started after this time, or so long ago: 1h, 2d, 2026-11-30T14:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Micros>,
    /// Started before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Micros>,
    /// Of this tool; may be repeated
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// With this outcome; may be repeated
    #[arg(long, value_parser = outcome_parser())]
    outcome: Vec<Outcome>,
    /// In this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// By this principal
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// By this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// By this client
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// To this upstream
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Under this tool list, by its hash
    #[arg(long, value_name = "HASH")]
    catalogue: Option<String>,
}

impl CallFilterArgs {
    /// In the store's terms.
    pub(crate) fn resolve(&self, log: &Log) -> anyhow::Result<CallFilter> {
        Ok(CallFilter {
            since: self.since,
            until: self.until,
            tools: self.tool.clone(),
            outcomes: self.outcome.clone(),
            session: self
                .session
                .as_deref()
                .map(|prefix| log.session_id(prefix))
                .transpose()?,
            principal: self
                .principal
                .as_deref()
                .map(|prefix| log.principal(prefix))
                .transpose()?,
            tenant: self.tenant.clone(),
            client: self.client.clone(),
            upstream: self.upstream.clone(),
            catalogue: self.catalogue.clone(),
        })
    }
}

/// Which sessions.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub(crate) struct SessionFilterArgs {
    /// Active after this time, or so long ago: 1h, 2d, 2026-11-30T14:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Micros>,
    /// Started before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Micros>,
    /// Of this principal
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// Of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Of this client
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// With this upstream
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
}

impl SessionFilterArgs {
    /// In the store's terms.
    pub(crate) fn resolve(&self, log: &Log) -> anyhow::Result<SessionFilter> {
        Ok(SessionFilter {
            since: self.since,
            until: self.until,
            source: None,
            principal: self
                .principal
                .as_deref()
                .map(|prefix| log.principal(prefix))
                .transpose()?,
            tenant: self.tenant.clone(),
            client: self.client.clone(),
            upstream: self.upstream.clone(),
        })
    }
}

/// Takes an outcome's name; clap lists the names when it is another word.
fn outcome_parser() -> impl TypedValueParser<Value = Outcome> {
    PossibleValuesParser::new(words::OUTCOMES.map(words::outcome)).try_map(|name| {
        words::OUTCOMES
            .into_iter()
            .find(|outcome| words::outcome(*outcome) == name)
            .ok_or("no such outcome")
    })
}
