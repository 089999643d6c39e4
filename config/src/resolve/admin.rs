//! `[admin]`, with the one secret there is.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::{Cx, Purpose};
use crate::raw;
use crate::settings::{Admin, Secret};
use crate::write::shown;

pub(super) fn resolve(cx: &mut Cx<'_>, raw: &raw::Admin) -> Admin {
    let address = cx.address("admin.address", &raw.address);
    if !address.ip().is_loopback()
        && raw.token.is_none()
        && cx.all_sound(&["admin.address", "admin.token"])
    {
        let warning = cx
            .problem(
                "admin.address",
                "anyone who reaches this address can read the metrics",
            )
            .found(address.to_string())
            .fix("set admin.token, or make sure that only monitoring gets there");
        cx.warnings.push(warning);
    }
    Admin {
        address,
        token: raw
            .token
            .as_ref()
            .and_then(|raw| secret(cx, "admin.token", raw)),
    }
}

fn secret(cx: &mut Cx<'_>, key: &str, raw: &raw::SecretSource) -> Option<Secret> {
    // The alternatives differ in type, so that `one_of` sees their texts.
    let choices = [
        ("env", raw.env.as_ref()),
        ("file", raw.file.as_ref().map(|path| &path.0)),
    ];
    let (choice, name) = super::one_of(cx, key, choices)?;
    if cx.purpose == Purpose::Look {
        return None;
    }
    let read = if choice == 0 {
        from_env(cx, name)
    } else {
        from_file(Path::new(name))
    };
    let below = if choice == 0 {
        format!("{key}.env")
    } else {
        format!("{key}.file")
    };
    let fault = match read {
        Ok(text) => match usable(text.trim()) {
            Ok(secret) => return Some(secret),
            Err(fault) => fault.to_owned(),
        },
        Err(fault) => fault,
    };
    let problem = cx.problem(&below, fault).found(shown(name));
    cx.findings
        .push(problem.allowed("a token of visible ASCII characters, without spaces"));
    None
}

fn from_env(cx: &Cx<'_>, name: &str) -> Result<String, String> {
    match cx.env.get(name) {
        Some(value) => Ok(value.to_owned()),
        None if cx.env.has(name) => Err("the variable is not UTF-8".to_owned()),
        None => Err("the variable is not set".to_owned()),
    }
}

fn from_file(path: &Path) -> Result<String, String> {
    /// No secret is longer; and `/dev/zero` has an end.
    const LIMIT: u64 = 64 << 10;
    let read = || -> io::Result<String> {
        let mut text = String::new();
        File::open(path)?.take(LIMIT).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| format!("cannot be read: {error}"))
}

/// What can stand in an `Authorization` header.
fn usable(text: &str) -> Result<Secret, &'static str> {
    if text.is_empty() {
        return Err("the secret is empty");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the secret has characters that cannot be sent");
    }
    Ok(Secret::new(text.to_owned()))
}
