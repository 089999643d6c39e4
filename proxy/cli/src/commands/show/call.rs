//! One call, whole: who, what was asked, what the model read, how it went on the wire.

use std::io::Write as _;

use callbox_store::{Call, Capture, HeaderLine};

use crate::answer::{Part, error_text, parts};
use crate::args::ShowArgs;
use crate::clock;
use crate::json::{is_json, pretty};
use crate::log::Log;
use crate::terminal::Screen;
use crate::text::{bytes, plural, truncate, visible};
use crate::words::{self, BOLD, DIM, ODD, PLAIN};

/// Lines of one text without `--full`.
const LINES: usize = 40;
/// Bytes of one line without `--full`.
const COLUMNS: usize = 1000;

/// Prints it; gives what could be done next.
pub(super) fn print(
    screen: &mut Screen,
    log: &Log,
    call: &Call,
    args: &ShowArgs,
) -> anyhow::Result<Vec<String>> {
    let mut page = Page {
        screen,
        full: args.full,
        cut: false,
    };
    page.head(call)?;
    page.facts(call)?;
    match &call.arguments {
        Some(arguments) => {
            let lines = page.json(arguments.get());
            page.section("arguments", "", &lines)?;
        }
        None => page.section("arguments", "none", &[])?,
    }
    page.answer(call)?;
    page.events(call)?;
    if args.headers {
        page.headers("request headers", &call.http.request_headers)?;
        page.headers("response headers", &call.http.response_headers)?;
    }
    let mut hints = vec![format!(
        "callbox show {} shows its session",
        log.short_session(call.session.id)
    )];
    if page.cut {
        hints.push(format!(
            "callbox show {} --full shows long texts whole",
            log.short_calls(&[call.id]).concat()
        ));
    }
    Ok(hints)
}

struct Page<'a> {
    screen: &'a mut Screen,
    full: bool,
    /// Something was left out.
    cut: bool,
}

impl Page<'_> {
    fn head(&mut self, call: &Call) -> anyhow::Result<()> {
        let style = words::outcome_style(call.outcome);
        let lasted = call
            .duration_us
            .map_or_else(|| "not ended".to_owned(), clock::span);
        let tool = visible(&call.tool);
        let outcome = words::outcome(call.outcome);
        writeln!(self.screen, "call {}", call.id)?;
        let at = clock::date_time(call.started_at);
        writeln!(
            self.screen,
            "{BOLD}{tool}{BOLD:#}  {style}{outcome}{style:#}  {lasted}  {DIM}{at} UTC{DIM:#}\n"
        )?;
        Ok(())
    }

    fn facts(&mut self, call: &Call) -> anyhow::Result<()> {
        let session = &call.session;
        let source = words::name(session.source);
        self.fact(
            "session",
            &format!("{}  call {}, source {source}", session.id, call.seq),
        )?;
        if let Some(client) = &session.client {
            self.fact("client", &words::client(client))?;
        }
        let revision = call
            .protocol_version
            .as_deref()
            .unwrap_or("unknown revision");
        self.fact("upstream", &format!("{}  {revision}", session.upstream))?;
        let asserted = if session.asserted {
            "  asserted by an unverified claim"
        } else {
            ""
        };
        self.optional(
            "principal",
            session
                .principal
                .as_ref()
                .map(|principal| format!("{principal}{asserted}")),
        )?;
        self.optional(
            "tenant",
            session
                .tenant
                .as_ref()
                .map(|tenant| format!("{tenant}{asserted}")),
        )?;
        self.optional("request id", call.request_id.clone())?;
        self.fact("exchange", &call.exchange_id.to_string())?;
        self.fact("json-rpc id", call.jsonrpc_id.get())?;
        let span = call
            .span_id
            .as_ref()
            .map(|span| format!("  span {span}"))
            .unwrap_or_default();
        self.optional(
            "trace",
            call.trace_id.as_ref().map(|trace| format!("{trace}{span}")),
        )?;
        let http = &call.http;
        let status = call
            .http_status
            .map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        self.fact(
            "http",
            &format!(
                "{} {} {} -> {status}",
                http.method, http.target, http.version
            ),
        )?;
        self.fact("end", &words::name(call.end))?;
        self.optional(
            "first byte",
            call.first_byte_us
                .map(|first| format!("after {}", clock::span(first))),
        )?;
        self.fact(
            "bodies",
            &format!(
                "request {}, response {}",
                bytes(call.request_bytes),
                bytes(call.response_bytes)
            ),
        )?;
        self.optional(
            "exchanges",
            (call.legs > 1).then(|| format!("{} joined", call.legs)),
        )?;
        self.optional("confirmation", call.confirmation.clone())?;
        self.optional("catalogue", call.catalogue.clone())?;
        self.capture(call)?;
        self.optional(
            "flags",
            (!call.flags.is_empty()).then(|| call.flags.join(", ")),
        )?;
        let sample = call.sample.as_ref().map(|sample| {
            let chosen = if sample.selected {
                "chosen"
            } else {
                "not chosen"
            };
            format!("{chosen}, probability {}", sample.probability)
        });
        self.optional("sample", sample)
    }

    fn capture(&mut self, call: &Call) -> anyhow::Result<()> {
        let capture = &call.capture;
        if (capture.request, capture.response) == (Capture::Full, Capture::Full) {
            return Ok(());
        }
        let reason = capture
            .reason
            .as_ref()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        let (request, response) = (words::name(capture.request), words::name(capture.response));
        self.fact(
            "capture",
            &format!("request {request}, response {response}{reason}"),
        )
    }

    fn answer(&mut self, call: &Call) -> anyhow::Result<()> {
        let failed = words::failed(call.outcome);
        if let Some(error) = &call.error {
            let lines = self.text(&error_text(error));
            self.section("error", "as the client read it", &lines)?;
            if error.get().starts_with('{') {
                let lines = self.json(error.get());
                self.section("error object", "", &lines)?;
            }
        }
        let Some(result) = &call.result else {
            return if call.error.is_none() {
                self.section("result", "none", &[])
            } else {
                Ok(())
            };
        };
        for part in parts(result) {
            match part {
                Part::Text(text) => {
                    let lines = if is_json(&text) {
                        self.json(&text)
                    } else {
                        self.text(&text)
                    };
                    self.section(
                        if failed { "error" } else { "result" },
                        "text as the model read it",
                        &lines,
                    )?;
                }
                Part::Json { title, json } => {
                    let lines = self.json(json);
                    self.section(&title, "", &lines)?;
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        let columns = self.columns();
        let lines: Vec<String> = text
            .lines()
            .map(|line| truncate(&visible(line), columns).into_owned())
            .collect();
        self.cut |= lines
            .iter()
            .zip(text.lines())
            .any(|(shown, line)| shown.ends_with('…') && !line.ends_with('…'));
        lines
    }

    fn json(&mut self, json: &str) -> Vec<String> {
        let (lines, cut) = pretty(json, self.columns());
        self.cut |= cut;
        lines
    }

    fn columns(&self) -> usize {
        if self.full { usize::MAX } else { COLUMNS }
    }

    fn events(&mut self, call: &Call) -> anyhow::Result<()> {
        if call.events.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = call
            .events
            .iter()
            .map(|event| format!("{:>10.1} ms  {}", event.offset_ms, visible(&event.kind)))
            .collect();
        self.section("events", "", &lines)
    }

    fn headers(&mut self, title: &str, headers: &[HeaderLine]) -> anyhow::Result<()> {
        let lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{}: {}", visible(name), visible(value)))
            .collect();
        self.section(title, if lines.is_empty() { "none" } else { "" }, &lines)
    }

    fn fact(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        let style = if name == "flags" || name == "capture" {
            ODD
        } else {
            PLAIN
        };
        Ok(writeln!(
            self.screen,
            "  {DIM}{name:<12}{DIM:#}  {style}{}{style:#}",
            visible(value)
        )?)
    }

    fn optional(&mut self, name: &str, value: Option<String>) -> anyhow::Result<()> {
        value.map_or(Ok(()), |value| self.fact(name, &value))
    }

    /// A titled block; long ones are cut.
    fn section(&mut self, title: &str, note: &str, lines: &[String]) -> anyhow::Result<()> {
        let space = if note.is_empty() { "" } else { "  " };
        writeln!(
            self.screen,
            "\n{BOLD}{title}{BOLD:#}{space}{DIM}{note}{DIM:#}"
        )?;
        let most = if self.full { usize::MAX } else { LINES };
        for line in lines.iter().take(most) {
            writeln!(self.screen, "  {line}")?;
        }
        if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
            self.cut = true;
            writeln!(
                self.screen,
                "  {DIM}… {} more{DIM:#}",
                plural(more as u64, "line")
            )?;
        }
        Ok(())
    }
}
