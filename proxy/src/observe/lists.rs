//! Tool lists: pages joined, content hashed, and which one is in force for whom.

use std::collections::HashMap;
use std::sync::Arc;

use callbox_store::{Catalogue, Micros};
use callbox_wire::mcp::catalogue::{self, MirroredParam};
use callbox_wire::redact::Place;
use serde_json::value::RawValue;

use super::bounded::{Bounded, Key};
use super::link::Scope;
use super::rules::{Rules, quoted};

/// Lists whose content is known to be in the log.
const MAX_KNOWN: usize = 1024;
/// Principals whose list is remembered.
const MAX_IN_FORCE: usize = 4096;
/// Bytes of pages that wait for their next page.
const MAX_PAGE_BYTES: usize = 16 << 20;

/// Headers that clients must mirror arguments into, by tool.
type Mirrors = HashMap<Box<str>, Vec<MirroredParam>>;

/// All lists the observer knows.
#[derive(Debug)]
pub(super) struct Lists {
    known: Bounded<Arc<Mirrors>>,
    in_force: Bounded<Arc<str>>,
    pages: Bounded<Vec<Box<RawValue>>>,
    page_bytes: usize,
}

impl Lists {
    pub(super) fn new() -> Self {
        Self {
            known: Bounded::new(MAX_KNOWN),
            in_force: Bounded::new(MAX_IN_FORCE),
            pages: Bounded::new(MAX_IN_FORCE),
            page_bytes: 0,
        }
    }

    /// Keeps pages until the page behind `cursor` comes.
    pub(super) fn keep(
        &mut self,
        rules: &Rules,
        scope: Scope<'_>,
        place: &Key,
        cursor: &str,
        pages: Vec<Box<RawValue>>,
        now: u32,
    ) {
        let size = bytes(&pages);
        if size > MAX_PAGE_BYTES / 4 {
            return;
        }
        self.page_bytes += size;
        let key = page_key(rules, scope, place, cursor);
        if let Some((_, left)) = self.pages.insert(key, pages, now) {
            self.page_bytes -= bytes(&left);
        }
        while self.page_bytes > MAX_PAGE_BYTES {
            let Some((_, left)) = self.pages.pop_oldest() else {
                break;
            };
            self.page_bytes -= bytes(&left);
        }
    }

    /// The pages before the one behind `cursor`.
    pub(super) fn resume(
        &mut self,
        rules: &Rules,
        scope: Scope<'_>,
        place: &Key,
        cursor: &str,
    ) -> Option<Vec<Box<RawValue>>> {
        let pages = self.pages.remove(&page_key(rules, scope, place, cursor))?;
        self.page_bytes -= bytes(&pages);
        Some(pages)
    }

    /// A list is whole: it is in force from now on. The record is there when its content is new.
    pub(super) fn assembled(
        &mut self,
        rules: &Rules,
        scope: Scope<'_>,
        pages: &[Box<RawValue>],
        at: Micros,
        now: u32,
        mut named: impl FnMut(&str),
    ) -> (Arc<str>, Option<Catalogue>) {
        let tools: Vec<&RawValue> = pages
            .iter()
            .filter_map(|page| catalogue::elements(page))
            .flatten()
            .collect();
        let hash: Arc<str> = catalogue::hash(&tools).into();
        let force = scope.digest(&rules.redactor, "list", &[]);
        self.in_force.insert(force, Arc::clone(&hash), now);
        let key = known_key(rules, &hash);
        if self.known.get(&key, now).is_some() {
            return (hash, None);
        }
        let mut mirrors = Mirrors::new();
        for tool in &tools {
            let name = catalogue::name(tool);
            named(&name);
            let params = catalogue::mirrored_params(tool);
            if !params.is_empty() {
                mirrors.insert(name.into(), params);
            }
        }
        self.known.insert(key, Arc::new(mirrors), now);
        let mut joined = String::from("[");
        for (at, tool) in tools.iter().enumerate() {
            if at > 0 {
                joined.push(',');
            }
            joined.push_str(tool.get());
        }
        joined.push(']');
        let record = RawValue::from_string(joined).ok().and_then(|tools| {
            // Without payloads the names of tools are kept, as they are with every call.
            let tools = if rules.keep_payloads {
                rules.json(&tools, Place::Schema)
            } else {
                names_only(&tools)
            }?;
            Some(Catalogue {
                hash: hash.to_string(),
                upstream: scope.upstream.to_owned(),
                seen_at: at,
                tools,
            })
        });
        (hash, record)
    }

    /// The list in force for a principal.
    pub(super) fn in_force(
        &mut self,
        rules: &Rules,
        scope: Scope<'_>,
        now: u32,
    ) -> Option<Arc<str>> {
        if self.in_force.is_empty() {
            return None;
        }
        let key = scope.digest(&rules.redactor, "list", &[]);
        self.in_force.get(&key, now).cloned()
    }

    /// The headers that a tool of a list wants its arguments mirrored into.
    pub(super) fn mirrors(&mut self, rules: &Rules, hash: &str, now: u32) -> Option<Arc<Mirrors>> {
        self.known.get(&known_key(rules, hash), now).cloned()
    }
}

fn page_key(rules: &Rules, scope: Scope<'_>, place: &Key, cursor: &str) -> Key {
    scope.digest(&rules.redactor, "page", &[place, cursor.as_bytes()])
}

fn known_key(rules: &Rules, hash: &str) -> Key {
    rules.redactor.digest("catalogue", hash.as_bytes())
}

fn bytes(pages: &[Box<RawValue>]) -> usize {
    pages.iter().map(|page| page.get().len()).sum()
}

fn names_only(tools: &RawValue) -> Option<Box<RawValue>> {
    let names: Vec<String> = catalogue::elements(tools)?
        .into_iter()
        .map(|tool| format!("{{\"name\":{}}}", quoted(&catalogue::name(tool)).get()))
        .collect();
    RawValue::from_string(format!("[{}]", names.join(","))).ok()
}
