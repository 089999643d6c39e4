//! From the configuration as written to [`Settings`]: parses texts, checks what keys mean together, and touches the disk
//! where that is asked for. Every fault is reported; a value that has one is replaced by a stand-in, which nobody sees,
//! because faults leave no settings behind.

mod admin;
mod identity;
mod listen;
mod log;
mod record;
mod upstream;

pub(crate) use listen::workers;
pub(crate) use upstream::UNNAMED;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::env::Env;
use crate::pem::{self, Pem};
use crate::problem::{Origin, Problem};
use crate::raw;
use crate::settings::Settings;
use crate::shape::Findings;
use crate::units;
use crate::write::shown;

/// What the settings are for, which decides how much must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Carrying traffic: an upstream is needed, certificates and secrets are read.
    Serve,
    /// Looking at what was recorded, or at the configuration itself: neither is needed.
    Look,
}

/// Resolves; complains into `findings`. The warnings are returned.
pub(crate) fn resolve(
    raw: &raw::Config,
    env: &Env,
    purpose: Purpose,
    findings: &mut Findings,
) -> (Settings, Vec<Problem>) {
    let mut cx = Cx {
        env,
        purpose,
        findings,
        warnings: Vec::new(),
    };
    let settings = Settings {
        data: PathBuf::from(&raw.data.0),
        listen: listen::resolve(&mut cx, &raw.listen),
        upstreams: upstream::resolve(&mut cx, &raw.upstream),
        record: record::resolve(&mut cx, &raw.record),
        identity: identity::resolve(&mut cx, &raw.identity),
        admin: admin::resolve(&mut cx, &raw.admin),
        log: log::resolve(&mut cx, &raw.log),
    };
    together(&mut cx, &settings);
    (settings, cx.warnings)
}

/// What sections must agree on.
fn together(cx: &mut Cx<'_>, settings: &Settings) {
    let (listen, admin) = (settings.listen.address, settings.admin.address);
    if overlap(listen, admin) && cx.all_sound(&["listen.address", "admin.address"]) {
        let problem = cx
            .problem(
                "admin.address",
                format!("in the way of listen.address, which is {listen}"),
            )
            .found(shown(&admin.to_string()))
            .fix("give one of them another port");
        cx.findings.push(problem);
    }
    for (at, upstream) in settings.upstreams.iter().enumerate() {
        let key = format!("upstream[{at}].url");
        for (name, own) in [("listen.address", listen), ("admin.address", admin)] {
            let address = if upstream.host == "localhost" {
                Some(SocketAddr::new(own.ip(), upstream.port))
            } else {
                upstream
                    .host
                    .parse()
                    .ok()
                    .map(|ip| SocketAddr::new(ip, upstream.port))
            };
            let local = own.ip().is_loopback() || own.ip().is_unspecified();
            if address.is_some_and(|address| overlap(address, own))
                && local
                && cx.all_sound(&[&key, name])
            {
                let problem = cx
                    .problem(&key, format!("callbox itself listens there ({name})"))
                    .found(shown(&upstream.authority()))
                    .fix("name the server's own address, or give callbox another port");
                cx.findings.push(problem);
            }
        }
    }
}

/// Whether two sockets would be in one another's way.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let any = a.ip().is_unspecified() || b.ip().is_unspecified();
    let same_ip = a.ip() == b.ip()
        || (any && (a.is_ipv4() == b.is_ipv4() || unspecified_v6(a) || unspecified_v6(b)));
    a.port() == b.port() && a.port() != 0 && same_ip
}

/// `[::]` takes IPv4 as well on the usual systems.
fn unspecified_v6(address: SocketAddr) -> bool {
    address.is_ipv6() && address.ip().is_unspecified()
}

/// What resolving needs at hand.
struct Cx<'a> {
    env: &'a Env,
    purpose: Purpose,
    findings: &'a mut Findings,
    warnings: Vec<Problem>,
}

impl Cx<'_> {
    /// A problem at a key, with the key's origin or else that of the section it is missing from.
    fn problem(&self, key: &str, message: impl Into<String>) -> Problem {
        let mut at = key;
        let origin = loop {
            if let Some(origin) = self.findings.origins.get(at) {
                break origin.clone();
            }
            match at.rfind(['.', '[']) {
                Some(end) => at = at.get(..end).unwrap_or_default(),
                None => break Origin::Default,
            }
        };
        Problem::new(key, origin, message)
    }

    fn all_sound(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.findings.is_sound(key))
    }

    /// Reports a key that has to be there, unless the reason has been reported already.
    fn missing(&mut self, key: &str, allowed: &str) {
        if self.findings.is_sound(key) {
            let problem = self.problem(key, "missing").allowed(allowed);
            self.findings.push(problem);
        }
    }

    fn duration(&mut self, key: &str, text: &raw::DurationText, least: Duration) -> Duration {
        let problem = match units::duration(&text.0) {
            Some(duration) if (least..=units::LONGEST).contains(&duration) => return duration,
            Some(_) => {
                let least = units::duration_text(least);
                let most = units::duration_text(units::LONGEST);
                self.problem(key, "out of range")
                    .allowed(format!("from \"{least}\" to \"{most}\""))
            }
            None => {
                let problem = self
                    .problem(key, "not a duration")
                    .allowed("a number with a unit: ms, s, m, h, d, w; such as \"500ms\", \"1h 30m\", \"30d\"");
                match text.0.trim().parse::<u64>() {
                    Ok(number) => problem.fix(format!("write the unit: \"{number}s\"")),
                    Err(_) => problem,
                }
            }
        };
        self.findings.push(problem.found(shown(&text.0)));
        Duration::ZERO
    }

    fn size(&mut self, key: &str, text: &raw::SizeText, range: RangeInclusive<u64>) -> u64 {
        let problem = match units::size(&text.0) {
            Some(size) if range.contains(&size) => return size,
            Some(_) => {
                let (least, most) = (
                    units::size_text(*range.start()),
                    units::size_text(*range.end()),
                );
                self.problem(key, "out of range")
                    .allowed(format!("from \"{least}\" to \"{most}\""))
            }
            None => {
                let problem = self.problem(key, "not a size").allowed(
                    "a whole number with a unit: B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000)",
                );
                let text = text.0.trim();
                let number = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T']);
                match number.parse::<u64>() {
                    Ok(number) if number.to_string() == text => {
                        problem.fix(format!("write the unit: \"{number}B\""))
                    }
                    Ok(_) => problem.fix(format!(
                        "write the unit in full: \"{}iB\"",
                        text.to_uppercase()
                    )),
                    Err(_) => problem,
                }
            }
        };
        self.findings.push(problem.found(shown(&text.0)));
        0
    }

    /// A size that has to fit the address space.
    fn length(&mut self, key: &str, text: &raw::SizeText, range: RangeInclusive<u64>) -> usize {
        usize::try_from(self.size(key, text, range)).unwrap_or(usize::MAX)
    }

    fn address(&mut self, key: &str, text: &str) -> SocketAddr {
        if let Ok(address) = text.parse() {
            return address;
        }
        let problem = self
            .problem(key, "not an IP address with a port")
            .found(shown(text))
            .allowed("IP:PORT such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080; port 0 takes a free one");
        let port = text
            .rsplit(':')
            .next()
            .and_then(|port| port.parse::<u16>().ok());
        let host = text.rsplit_once(':').map_or("", |(host, _)| host);
        let problem = match (host, port) {
            ("localhost", Some(port)) => problem.fix(format!("write \"127.0.0.1:{port}\"")),
            ("" | "*", Some(port)) => problem.fix(format!(
                "write \"127.0.0.1:{port}\" for this machine only, \"0.0.0.0:{port}\" for all"
            )),
            (_, None) if text.parse::<std::net::IpAddr>().is_ok() => problem.fix("add the port"),
            (_, Some(_)) if text.contains("://") => problem.fix("leave out the scheme"),
            _ => problem,
        };
        self.findings.push(problem);
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    /// A PEM file that must be there and hold what is expected.
    fn pem(&mut self, key: &str, path: Option<&raw::PathText>, expected: Pem) -> Option<PathBuf> {
        let path = PathBuf::from(&path?.0);
        if self.purpose == Purpose::Serve
            && let Err(fault) = pem::check(&path, expected)
        {
            let problem = self
                .problem(key, fault.message)
                .found(shown(&path.to_string_lossy()))
                .allowed(expected.words());
            self.findings.push(match fault.fix {
                Some(fix) => problem.fix(fix),
                None => problem,
            });
        }
        Some(path)
    }
}

/// The one key of a table of alternatives that is set.
fn one_of<'t, T>(
    cx: &mut Cx<'_>,
    key: &str,
    choices: [(&str, Option<&'t T>); 2],
) -> Option<(usize, &'t T)> {
    let [(first_name, first), (second_name, second)] = choices;
    match (first, second) {
        (Some(first), None) => Some((0, first)),
        (None, Some(second)) => Some((1, second)),
        (Some(_), Some(_)) => {
            let problem = cx
                .problem(key, format!("both {first_name} and {second_name} are set"))
                .allowed("one of the two")
                .fix("remove one");
            cx.findings.push(problem);
            None
        }
        (None, None) => {
            let problem = cx
                .problem(
                    key,
                    format!("neither {first_name} nor {second_name} is set"),
                )
                .allowed(format!(
                    "{{ {first_name} = \"…\" }} or {{ {second_name} = \"…\" }}"
                ));
            if cx.all_sound(&[key]) {
                cx.findings.push(problem);
            }
            None
        }
    }
}
