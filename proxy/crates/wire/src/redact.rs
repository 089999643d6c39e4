//! Redaction: what must not reach the disk is replaced, the rest stays byte for byte.
//!
//! Three kinds of rules: key names (structure), JSON pointers per tool (place) and detectors (content). Each replaced
//! value becomes `[redacted:kind:digits]`, equal digits for equal values. JSON stays JSON; what cannot be read is
//! replaced whole, never passed. Correlation (ids, tokens of progress, trace context) is not touched by content rules.
//!
//! Everything here is one pass over text that a peer chose: no recursion on its depth, no work that grows faster than its
//! length. See `keys` for what a name matches, `content` for the scan, `walk` for JSON.

#![warn(clippy::indexing_slicing)]

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use self::content::About;
use self::edit::Edit;
use self::keys::KeyTable;
use self::placeholder::{Kind, Mint};
use self::pointer::{Active, Pointers};
use self::target::Target;
use self::tokens::CloudKeys;
use self::walk::Root;

mod assign;
mod bytes;
mod content;
mod digits;
mod edit;
mod email;
mod header;
mod iban;
mod keys;
mod literal;
mod member;
mod pem;
mod placeholder;
mod pointer;
mod target;
mod tokens;
mod url;
mod walk;
mod words;

/// Names of query parameters that are secrets in URLs, whatever the configured keys.
const PARAMETERS: [&str; 10] = [
    "sig",
    "signature",
    "credential",
    "auth",
    "pass",
    "pwd",
    "sas",
    "access_key",
    "subscription_key",
    "client_secret",
];

/// What to redact.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Key names whose values are replaced: whole words, in any case and with any separator.
    pub keys: Vec<String>,
    /// Content detectors that are on.
    pub detectors: Vec<Detector>,
    /// Tool name (or `*`) and JSON pointer into its arguments and results, `*` for any member or element.
    pub pointers: Vec<(String, String)>,
}

/// A kind of content that is found wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detector {
    /// PEM blocks: private keys and certificates.
    Pem,
    /// JSON web tokens, signed and encrypted.
    Jwt,
    /// Keys of clouds and services, by prefix and length.
    CloudKey,
    /// Payment cards: issuer, layout and check digit.
    Card,
    /// E-mail addresses.
    Email,
    /// Phone numbers: international, with an area code in brackets, or North American.
    Phone,
    /// IBANs: country, length and check digits.
    Iban,
    /// User and password in URLs, signatures and credentials in their queries.
    UrlCredential,
    /// US social security numbers, by their shape.
    Ssn,
}

impl Detector {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Pem,
        Self::Jwt,
        Self::CloudKey,
        Self::Card,
        Self::Email,
        Self::Phone,
        Self::Iban,
        Self::UrlCredential,
        Self::Ssn,
    ];

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pem => "pem",
            Self::Jwt => "jwt",
            Self::CloudKey => "cloud-key",
            Self::Card => "card",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::UrlCredential => "url-credential",
            Self::Ssn => "ssn",
        }
    }
}

impl FromStr for Detector {
    type Err = RuleError;

    fn from_str(name: &str) -> Result<Self, RuleError> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| RuleError::Detector {
            found: name.to_owned(),
        })
    }
}

/// Where a text stands, since not every rule holds everywhere.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// `params.arguments` of a call.
    Arguments {
        /// The tool's name.
        tool: &'a str,
    },
    /// `result` of a call.
    Result {
        /// The tool's name.
        tool: &'a str,
    },
    /// Any other message, or its `params`, `result` or `error`.
    Message,
    /// Tool definitions: names in a schema are no keys, so the key rules do not apply.
    Schema,
}

/// A rule that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A key name without letters.
    #[error(
        "redaction key {found:?}: write a name of letters and digits, 96 at most, such as \"api_key\""
    )]
    Key {
        /// As configured.
        found: String,
    },
    /// Not a JSON pointer.
    #[error("redaction pointer {found:?} of tool {tool:?}: {problem}")]
    Pointer {
        /// As configured.
        tool: String,
        /// As configured.
        found: String,
        /// What is wrong, and the fix.
        problem: &'static str,
    },
    /// No such detector.
    #[error(
        "redaction detector {found:?} is not supported: write one of {}",
        detector_names()
    )]
    Detector {
        /// As configured.
        found: String,
    },
}

fn detector_names() -> String {
    Detector::ALL.map(Detector::name).join(", ")
}

/// The rules, ready for use. One for all threads; nothing of the key is ever shown.
pub struct Redactor {
    keys: KeyTable,
    parameters: KeyTable,
    pointers: Pointers,
    detectors: u16,
    cloud: CloudKeys,
    classes: [u8; 256],
    mint: Mint,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<_> = Detector::ALL
            .into_iter()
            .filter(|&one| self.on(one))
            .collect();
        f.debug_struct("Redactor")
            .field("detectors", &on)
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// Compiles the rules. `key` makes the placeholders' digits: keep it as secret and as long as the log.
    ///
    /// # Errors
    ///
    /// Names the rule, what is wrong with it, and the fix.
    pub fn new(rules: Rules, key: &[u8; 32]) -> Result<Self, RuleError> {
        let Rules {
            keys,
            detectors,
            pointers,
        } = rules;
        let mut redactor = Self {
            keys: KeyTable::new(&keys)?,
            parameters: KeyTable::new(&PARAMETERS.map(str::to_owned))?,
            pointers: Pointers::new(&pointers)?,
            detectors: detectors
                .into_iter()
                .fold(0, |set, one| set | 1 << one as u16),
            cloud: CloudKeys::new(),
            classes: [0; 256],
            mint: Mint::new(key),
        };
        redactor.mark_classes();
        Ok(redactor)
    }

    /// A JSON document. JSON comes out whatever comes in: what cannot be read becomes one string.
    pub fn json<'t>(&self, text: &'t str, place: Place<'_>) -> Cow<'t, str> {
        let (root, active) = self.root(place, false);
        let mut edits = Vec::new();
        match self.walk(text.as_bytes(), root, &active, &mut edits) {
            Ok(()) => spliced(text, edits),
            Err(_) => Cow::Owned(format!(
                "\"{}\"",
                self.mint.placeholder(Kind::Unread, text.as_bytes())
            )),
        }
    }

    /// The beginning of a JSON document that was cut. What stands at the cut and may be half a secret is replaced, and so
    /// is everything from the first byte on that is no JSON.
    pub fn json_prefix(&self, text: &[u8], place: Place<'_>) -> String {
        let (readable, broken) = readable(text);
        let (root, active) = self.root(place, true);
        let mut edits = Vec::new();
        if let Err(fault) = self.walk(readable, root, &active, &mut edits) {
            edits.retain(|edit| edit.end <= fault);
            self.replace(text, fault, text.len(), Kind::Unread, &mut edits);
            return edit::apply(text, edits);
        }
        self.prefix(text, readable, broken, edits)
    }

    /// Text that is no JSON document (JSON in it is found all the same).
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut edits = Vec::new();
        self.content(text.as_bytes(), plain(), &[], &mut edits);
        spliced(text, edits)
    }

    /// The beginning of a text that was cut.
    pub fn text_prefix(&self, text: &[u8]) -> String {
        let (readable, broken) = readable(text);
        let about = About {
            cut: true,
            ..plain()
        };
        let mut edits = Vec::new();
        self.content(readable, about, &[], &mut edits);
        self.prefix(text, readable, broken, edits)
    }

    fn prefix(&self, text: &[u8], readable: &[u8], broken: bool, mut edits: Vec<Edit>) -> String {
        if !broken {
            return edit::apply(readable, edits);
        }
        self.replace(text, readable.len(), text.len(), Kind::Unread, &mut edits);
        edit::apply(text, edits)
    }

    /// The value of a header.
    pub fn header<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        self.header_value(name, value)
    }

    /// A request target: path and query.
    pub fn target<'t>(&self, target: &'t str) -> Cow<'t, str> {
        let mut edits = Vec::new();
        let whole = Target {
            base: 0,
            about: plain(),
            sessions: true,
        };
        self.target_edits(target.as_bytes(), whole, &mut edits);
        spliced(target, edits)
    }

    /// Keyed digest (HMAC-SHA-256, its first half) of a value, for what must be told apart and never shown. Digests of
    /// different domains have nothing to do with each other.
    pub fn digest(&self, domain: &str, value: &[u8]) -> [u8; 16] {
        self.mint.digest(domain, value)
    }

    fn on(&self, detector: Detector) -> bool {
        self.detectors >> detector as u16 & 1 == 1
    }

    fn root(&self, place: Place<'_>, cut: bool) -> (Root, Vec<Active>) {
        let (flags, tool) = match place {
            Place::Arguments { tool } => (0, Some(tool)),
            Place::Result { tool } => (member::PROTOCOL, Some(tool)),
            Place::Message => (member::PROTOCOL | member::TOP, None),
            Place::Schema => (0, None),
        };
        let root = Root {
            names: !matches!(place, Place::Schema),
            flags,
            level: 0,
            cut,
        };
        let active = tool
            .filter(|_| !self.pointers.is_empty())
            .map_or_else(Vec::new, |tool| self.pointers.of_tool(tool));
        (root, active)
    }
}

fn plain() -> About {
    About {
        names: true,
        ..About::default()
    }
}

fn spliced(text: &str, edits: Vec<Edit>) -> Cow<'_, str> {
    if edits.is_empty() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(edit::apply(text.as_bytes(), edits))
    }
}

/// The part that is UTF-8, and whether more follows than the beginning of one character.
fn readable(text: &[u8]) -> (&[u8], bool) {
    match std::str::from_utf8(text) {
        Ok(_) => (text, false),
        Err(broken) => (
            bytes::part(text, 0, broken.valid_up_to()),
            broken.error_len().is_some(),
        ),
    }
}
