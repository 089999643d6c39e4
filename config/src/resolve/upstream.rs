//! `[[upstream]]`.

use std::net::Ipv6Addr;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

use super::{Cx, Purpose};
use crate::pem::Pem;
use crate::raw;
use crate::settings::{ClientTls, HostHeader, Upstream, UpstreamProtocol};
use crate::write::shown;

/// Name of a single upstream that was given none.
pub(crate) const UNNAMED: &str = "default";

const ORIGIN: &str = "an origin such as \"http://127.0.0.1:3001\" or \"https://mcp.example.com\"";

pub(super) fn resolve(cx: &mut Cx<'_>, raw: &[raw::Upstream]) -> Vec<Upstream> {
    if raw.is_empty() && cx.purpose == Purpose::Serve {
        if cx.all_sound(&["upstream"]) {
            let problem = cx
                .problem("upstream", "no server to forward to")
                .fix("start with `--upstream http://127.0.0.1:3001`, or write [[upstream]] with a url into the file");
            cx.findings.push(problem);
        }
        return Vec::new();
    }
    let alone = raw.len() == 1;
    let upstreams: Vec<_> = raw
        .iter()
        .enumerate()
        .map(|(at, raw)| one(cx, at, raw, alone))
        .collect();
    names(cx, &upstreams);
    rules(cx, &upstreams);
    upstreams
}

fn one(cx: &mut Cx<'_>, at: usize, raw: &raw::Upstream, alone: bool) -> Upstream {
    let tick = Duration::from_millis(1);
    let key = |name: &str| format!("upstream[{at}].{name}");
    let target = if let Some(url) = &raw.url {
        target(cx, &key("url"), url)
    } else {
        cx.missing(&key("url"), ORIGIN);
        None
    };
    let https = target.as_ref().is_some_and(|target| target.https);
    if raw.tls.is_some() && target.is_some() && !https {
        let problem = cx
            .problem(&key("tls"), "has no effect on an http:// upstream")
            .fix("write https:// in url, or remove this section");
        cx.findings.push(problem);
    }
    let Target { host, port, .. } = target.unwrap_or_default();
    let rule = raw.rule.clone().unwrap_or_default();
    Upstream {
        name: name(cx, &key("name"), raw.name.as_deref(), alone),
        https,
        host,
        port,
        path_prefix: rule
            .path_prefix
            .and_then(|prefix| path_prefix(cx, &key("match.path_prefix"), &prefix)),
        match_host: rule
            .host
            .and_then(|host| match_host(cx, &key("match.host"), &host)),
        protocol: match raw.protocol {
            raw::Protocol::Auto => UpstreamProtocol::Auto,
            raw::Protocol::Http1 => UpstreamProtocol::Http1,
            raw::Protocol::Http2 => UpstreamProtocol::Http2,
        },
        tls: raw
            .tls
            .as_ref()
            .map(|tls| client_tls(cx, &key("tls"), tls))
            .unwrap_or_default(),
        connect_timeout: cx.duration(&key("connect_timeout"), &raw.connect_timeout, tick),
        tls_timeout: cx.duration(&key("tls_timeout"), &raw.tls_timeout, tick),
        response_head_timeout: raw
            .response_head_timeout
            .as_ref()
            .map(|text| cx.duration(&key("response_head_timeout"), text, tick)),
        idle_timeout: cx.duration(&key("idle_timeout"), &raw.idle_timeout, tick),
        max_idle: raw.max_idle,
        host_header: match raw.host_header {
            raw::HostHeader::Keep => HostHeader::Keep,
            raw::HostHeader::Rewrite => HostHeader::Rewrite,
        },
        forwarded: raw.forwarded,
    }
}

fn name(cx: &mut Cx<'_>, key: &str, name: Option<&str>, alone: bool) -> String {
    const ALLOWED: &str =
        "up to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit";
    let Some(name) = name else {
        if !alone {
            cx.missing(key, ALLOWED);
        }
        return UNNAMED.to_owned();
    };
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !name.chars().all(inside)
        || name.len() > 64
    {
        let problem = cx
            .problem(key, "not a name")
            .found(shown(name))
            .allowed(ALLOWED);
        cx.findings.push(problem);
    }
    name.to_owned()
}

#[derive(Default)]
struct Target {
    https: bool,
    host: String,
    port: u16,
}

fn target(cx: &mut Cx<'_>, key: &str, url: &str) -> Option<Target> {
    let (message, fix) = match read_url(url) {
        Ok(target) => return Some(target),
        Err(fault) => fault,
    };
    let problem = cx.problem(key, message).found(shown(url)).allowed(ORIGIN);
    cx.findings.push(match fix {
        Some(fix) => problem.fix(fix),
        None => problem,
    });
    None
}

/// What is wrong with a URL, and what to write instead.
type UrlFault = (&'static str, Option<String>);

fn read_url(url: &str) -> Result<Target, UrlFault> {
    let Some((scheme, _)) = url.split_once("://") else {
        return Err(match url.parse::<Authority>() {
            Ok(authority) if !url.contains('@') => (
                "the scheme is missing",
                Some(format!("write \"http://{authority}\"")),
            ),
            _ => ("not a URL", None),
        });
    };
    let https = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => return Err(("the scheme is neither http nor https", None)),
    };
    if url.contains('#') {
        return Err((
            "a URL with a fragment",
            Some("leave out everything from `#` on".to_owned()),
        ));
    }
    let uri: Uri = url.parse().map_err(|_| ("not a URL", None))?;
    let authority = uri.authority().ok_or(("the host is missing", None))?;
    if authority.as_str().contains('@') {
        let fix = "leave it out: clients send their own credentials, and callbox passes them on";
        return Err(("a URL with user and password", Some(fix.to_owned())));
    }
    if uri.query().is_some() || !matches!(uri.path(), "" | "/") {
        let fix = format!(
            "write \"{}://{authority}\": paths go on as clients send them, so point clients at callbox with the same path",
            if https { "https" } else { "http" },
        );
        return Err((
            "an upstream is an origin, without path and query",
            Some(fix),
        ));
    }
    let host = authority.host();
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let sound = match bare {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_host_name(host),
    };
    if !sound {
        return Err(("the host is neither a name nor an address", None));
    }
    let port = match authority.as_str().strip_prefix(host) {
        Some("") if https => 443,
        Some("") => 80,
        // `http` lets more through as a port than a number.
        Some(_) => authority
            .port_u16()
            .filter(|port| *port != 0)
            .ok_or(("not a port", None))?,
        None => return Err(("not a URL", None)),
    };
    Ok(Target {
        https,
        host: bare.unwrap_or(host).to_ascii_lowercase(),
        port,
    })
}

fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (1..=63).contains(&label.len()) && label.chars().all(inside)
    };
    host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
}

fn path_prefix(cx: &mut Cx<'_>, key: &str, prefix: &str) -> Option<String> {
    let trimmed = prefix.trim_end_matches('/');
    let step = |step: &str| !matches!(step, "" | "." | "..");
    let sound = prefix.starts_with('/')
        && prefix
            .parse::<PathAndQuery>()
            .is_ok_and(|parsed| parsed.query().is_none() && parsed.path() == prefix)
        && trimmed.split('/').skip(1).all(step);
    let problem = cx
        .problem(key, "not a path prefix")
        .found(shown(prefix))
        .allowed("a path from `/` on, such as \"/crm\", without query, empty steps or dots");
    if !sound {
        let fix = (!prefix.starts_with('/')).then(|| format!("write \"/{trimmed}\""));
        cx.findings.push(match fix {
            Some(fix) if is_host_name(prefix) => problem.fix(fix),
            _ => problem,
        });
        return None;
    }
    // `/` is every path, which is what no prefix is.
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

fn match_host(cx: &mut Cx<'_>, key: &str, host: &str) -> Option<String> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return Some(format!("[{address}]"));
    }
    if is_host_name(host) {
        return Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase());
    }
    let problem = cx.problem(key, "not a host").found(shown(host)).allowed(
        "a host name or address without scheme, port or wildcard, such as \"crm.example.com\"",
    );
    let authority = host
        .split_once("://")
        .map_or(host, |(_, rest)| rest)
        .trim_end_matches('/');
    let fix = authority
        .parse::<Authority>()
        .ok()
        .map(|authority| authority.host().to_owned());
    cx.findings
        .push(match fix.filter(|host| is_host_name(host)) {
            Some(host) => problem.fix(format!("write \"{host}\"")),
            None => problem,
        });
    None
}

fn client_tls(cx: &mut Cx<'_>, key: &str, raw: &raw::ClientTls) -> ClientTls {
    let below = |name: &str| format!("{key}.{name}");
    match (&raw.certificate, &raw.key) {
        (Some(_), None) => cx.missing(&below("key"), "the private key of certificate"),
        (None, Some(_)) => cx.missing(&below("certificate"), "the certificate chain of key"),
        _ => {}
    }
    if let Some(name) = &raw.server_name
        && !is_host_name(name)
        && name.parse::<Ipv6Addr>().is_err()
    {
        let problem = cx
            .problem(&below("server_name"), "not a host")
            .found(shown(name))
            .allowed("a host name or address, without scheme and port");
        cx.findings.push(problem);
    }
    ClientTls {
        ca: cx.pem(&below("ca"), raw.ca.as_ref(), Pem::Certificate),
        certificate: cx.pem(
            &below("certificate"),
            raw.certificate.as_ref(),
            Pem::Certificate,
        ),
        key: cx.pem(&below("key"), raw.key.as_ref(), Pem::Key),
        server_name: raw.server_name.clone(),
    }
}

/// Names are labels of records and metrics: two servers under one name could not be told apart.
fn names(cx: &mut Cx<'_>, upstreams: &[Upstream]) {
    for (at, upstream) in upstreams.iter().enumerate() {
        let key = format!("upstream[{at}].name");
        let earlier = upstreams
            .iter()
            .take(at)
            .position(|other| other.name.eq_ignore_ascii_case(&upstream.name));
        if let Some(earlier) = earlier
            && cx.all_sound(&[&key, &format!("upstream[{earlier}].name")])
        {
            let problem = cx
                .problem(&key, format!("the same name as upstream[{earlier}]"))
                .found(shown(&upstream.name))
                .fix("give each upstream a name of its own; case does not make a difference");
            cx.findings.push(problem);
        }
    }
}

/// Every request has at most one place to go.
fn rules(cx: &mut Cx<'_>, upstreams: &[Upstream]) {
    let key = |at: usize| format!("upstream[{at}].match");
    for (at, upstream) in upstreams.iter().enumerate() {
        let same = |other: &&Upstream| {
            (&other.match_host, &other.path_prefix) == (&upstream.match_host, &upstream.path_prefix)
        };
        let Some(earlier) = upstreams.iter().take(at).position(|other| same(&other)) else {
            continue;
        };
        if !cx.all_sound(&[&key(at), &key(earlier)]) {
            continue;
        }
        let everything = upstream.match_host.is_none() && upstream.path_prefix.is_none();
        let problem = if everything {
            cx.problem(
                &key(at),
                format!("takes every request, and so does upstream[{earlier}]"),
            )
            .allowed("at most one upstream without match")
            .fix("add match = { path_prefix = \"/…\" } or match = { host = \"…\" } to all but one")
        } else {
            cx.problem(&key(at), format!("the same rule as upstream[{earlier}]"))
                .fix("give each upstream a rule of its own")
        };
        cx.findings.push(problem);
    }
}
