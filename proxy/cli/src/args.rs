//! The command line, as typed. One type a command, global options once; what the values mean is decided elsewhere.

mod filter;
mod when;

use std::path::PathBuf;

use callbox_config::{Env, Overrides, Sources};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use filter::{CallFilterArgs, SessionFilterArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Ids may be shortened to any unique beginning; times are UTC
Exit codes: 0 fine, 1 a check found something, 2 cannot tell or an error, 64 wrong usage";

/// Record what AI agents do with a production MCP server
#[derive(Debug, Parser)]
#[command(name = "callbox", version, styles = STYLES, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Configuration file
    #[arg(short, long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Data directory of the call log [default: callbox-data]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data: Option<PathBuf>,
    /// Form of the log on stderr: human or json
    #[arg(
        long,
        value_name = "FORMAT",
        global = true,
        hide_possible_values = true
    )]
    pub(crate) log_format: Option<LogFormat>,
    /// Say more on stderr; twice: even more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

impl Global {
    /// Where settings come from when no other flag sets any.
    pub(crate) fn sources(&self) -> Sources {
        let overrides = Overrides {
            data: self.data.clone(),
            log_level: match self.verbose {
                0 => None,
                1 => Some("debug".to_owned()),
                _ => Some("trace".to_owned()),
            },
            log_format: self.log_format.map(|format| match format {
                LogFormat::Human => "human".to_owned(),
                LogFormat::Json => "json".to_owned(),
            }),
            ..Overrides::default()
        };
        Sources {
            file: self.config.clone(),
            env: Env::from_process(),
            overrides,
        }
    }
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text
    Human,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start callbox in front of an MCP server
    Up(ServeArgs),
    /// Start the proxy role alone
    Proxy(ServeArgs),
    /// List sessions
    Sessions(SessionsArgs),
    /// List tool calls
    Calls(CallsArgs),
    /// Follow tool calls as they conclude
    Tail(TailArgs),
    /// Show a call or a session
    Show(ShowArgs),
    /// Write calls as JSON Lines or HAR
    Export(ExportArgs),
    /// Erase a session or a principal from the log
    Erase(EraseArgs),
    /// Apply the retention limits now
    Prune,
    /// Check or show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write a completion script for a shell
    Completions(CompletionsArgs),
    /// Write a manual page
    Man(ManArgs),
}

/// Arguments of `up` and `proxy`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox up --upstream http://127.0.0.1:3001
  callbox up --upstream https://mcp.example.com --listen 0.0.0.0:8080 --data /var/lib/callbox
  callbox up --config callbox.toml")]
pub(crate) struct ServeArgs {
    /// Origin of the MCP server, instead of those in the configuration
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) upstream: Vec<String>,
    /// Address for clients [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Address of /metrics, /livez and /readyz [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// Write the bound addresses and the process id here as JSON, once ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

/// Arguments of `sessions`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox sessions --since 1d
  callbox sessions --tenant acme --json | jq -r .id")]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) list: ListArgs,
    #[command(flatten)]
    pub(crate) filter: SessionFilterArgs,
}

/// Arguments of `calls`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox calls --since 1h --outcome tool_error
  callbox calls --tool create_contact --tool delete_contact --limit 0
  callbox calls --session 0193a7 --json | jq .arguments")]
pub(crate) struct CallsArgs {
    #[command(flatten)]
    pub(crate) list: ListArgs,
    #[command(flatten)]
    pub(crate) filter: CallFilterArgs,
}

/// Rows of a table, when nobody says how many.
const USUAL: usize = 50;

/// What every list takes.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// At most the last N, 0 for all [default: 50, with --json all]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

impl ListArgs {
    /// How many of the last rows are asked for; none: all.
    pub(crate) fn limit(&self) -> Option<usize> {
        let usual = if self.json { 0 } else { USUAL };
        Some(self.limit.unwrap_or(usual)).filter(|limit| *limit > 0)
    }

    /// What to tell who did not ask for a limit and got so many rows.
    pub(crate) fn note(&self, rows: usize) -> Option<String> {
        let cut = self.limit.is_none() && rows == USUAL;
        cut.then(|| format!("at most the last {USUAL} are listed; --limit 0 lists all"))
    }
}

/// Arguments of `tail`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox tail
  callbox tail --outcome tool_error --outcome rpc_error --json")]
pub(crate) struct TailArgs {
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) filter: CallFilterArgs,
}

/// Arguments of `show`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox show 0193a7
  callbox show 0193a7 3
  callbox show 0193a7c2-4e --full --headers
  callbox show 0193a7 --json")]
pub(crate) struct ShowArgs {
    /// Id of a call or a session, or its beginning
    pub(crate) id: String,
    /// Number of a call in that session
    pub(crate) number: Option<u32>,
    /// Show long arguments, results and texts whole
    #[arg(long)]
    pub(crate) full: bool,
    /// Show the HTTP headers of a call
    #[arg(long)]
    pub(crate) headers: bool,
    /// One JSON object a line: the call, or the session with its calls and other messages
    #[arg(long, conflicts_with_all = ["full", "headers"])]
    pub(crate) json: bool,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox export --since 1d -o day.jsonl
  callbox export --har --session 0193a7 -o session.har")]
pub(crate) struct ExportArgs {
    /// Write an HTTP Archive (HAR 1.2) instead of JSON Lines
    #[arg(long)]
    pub(crate) har: bool,
    /// Write to this file; it appears when it is complete [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) filter: CallFilterArgs,
}

/// Arguments of `erase`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox erase --session 0193a7c2
  callbox erase --principal h:9f2c41d0 --yes")]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    pub(crate) what: EraseWhat,
    /// Do it; without this, only what would go is printed
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Whose records go.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct EraseWhat {
    /// This session, with its calls and messages
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// All sessions of this principal
    #[arg(long, value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report every problem of the configuration at once
    Check(ConfigCheckArgs),
    /// Print the settings in force, each with where it comes from
    Show,
    /// Print the JSON Schema of callbox.toml
    Schema,
}

/// Arguments of `config check`.
#[derive(Args, Debug)]
pub(crate) struct ConfigCheckArgs {
    /// One JSON object a line for each problem
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox completions bash > ~/.local/share/bash-completion/completions/callbox
  callbox completions zsh > ~/.zfunc/_callbox")]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  callbox man | man -l -
  callbox man calls > callbox-calls.1")]
pub(crate) struct ManArgs {
    /// Command to describe [default: callbox itself]
    pub(crate) command: Option<String>,
}
