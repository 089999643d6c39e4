//! Tokens known by their shape: JSON web tokens, and the keys of clouds and services by their prefix.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem;

use super::bytes::{at, before, begins_word, is_base64url, is_word, part, rest, run, run_back};

/// Decodes what is there and does not ask for padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The token around the `J` at `i`: `eyJ` is how `{"` begins in base64. `dead`: up to where it is known that none ends.
pub(super) fn jwt(text: &[u8], i: usize, floor: usize, dead: &mut usize) -> Option<(usize, usize)> {
    let start = i.checked_sub(2).filter(|&start| start >= floor)?;
    if i < *dead || part(text, start, i + 1) != b"eyJ" || !begins_word(text, start, floor) {
        return None;
    }
    let first = run(text, start, is_base64url);
    let second = run(text, first + 1, is_base64url);
    // The second part is empty where the content key is agreed on directly (RFC 7516).
    let direct = second == first + 1 && at(text, second) == b'.';
    if at(text, first) != b'.' || second - first < 5 && !direct {
        *dead = first;
        return None;
    }
    // A second part that is JSON, too, or a header that says what this is (an encrypted token has nothing readable).
    let readable = rest(text, first + 1).starts_with(b"eyJ");
    let alone = || !is_base64url(before(text, start, floor));
    if first - start < 12 || !(readable || alone() && is_header(part(text, start, first))) {
        return None;
    }
    let mut end = second;
    for _ in 0..3 {
        if at(text, end) == b'.' && (is_base64url(at(text, end + 1)) || at(text, end + 1) == b'.') {
            end = run(text, end + 1, is_base64url);
        }
    }
    Some((start, end))
}

fn is_header(encoded: &[u8]) -> bool {
    // A header is short; what is longer is judged by its beginning.
    let quarter = encoded.len().min(1024) / 4 * 4;
    let whole = if encoded.len() <= 1024 {
        encoded
    } else {
        part(encoded, 0, quarter)
    };
    LENIENT.decode(whole).is_ok_and(|json| {
        ["\"alg\"", "\"enc\"", "\"typ\""]
            .iter()
            .any(|name| memmem::find(&json, name.as_bytes()).is_some())
    })
}

/// The characters of a key after its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Alphanumeric,
    UpperAlphanumeric,
    Hex,
    Base64Url,
    /// base64url with dots between parts.
    Dotted,
    /// base64url that mixes letters and digits as no name does.
    Mixed,
}

impl Body {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::UpperAlphanumeric => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Base64Url | Self::Mixed => is_base64url(byte),
            Self::Dotted => is_base64url(byte) || byte == b'.' || byte == b'=',
        }
    }
}

/// Prefix, characters, least number of them.
type Shape = (&'static str, Body, usize);

/// Shapes as their issuers document them. The least numbers are a little below, since issuers lengthen and shorten.
#[rustfmt::skip]
const SHAPES: &[Shape] = {
    use Body::{Alphanumeric as A, Base64Url as B, Dotted as D, Hex as H, Mixed as M, UpperAlphanumeric as U};
    &[
        // Amazon, Google, Microsoft
        ("AKIA", U, 16), ("ASIA", U, 16), ("ABIA", U, 16), ("ACCA", U, 16), ("ABSK", B, 40),
        ("AIza", B, 35), ("GOCSPX-", B, 20), ("ya29.", D, 20), ("1//0", B, 30),
        // Source hosts and registries
        ("ghp_", A, 30), ("gho_", A, 30), ("ghu_", A, 30), ("ghs_", A, 30), ("ghr_", A, 30), ("github_pat_", B, 22),
        ("glpat-", D, 20), ("gldt-", D, 20), ("glrt-", D, 20), ("glptt-", D, 20), ("glft-", D, 20), ("glsoat-", D, 20),
        ("glcbt-", D, 20), ("glimt-", D, 20), ("glagent-", D, 20), ("gloas-", D, 20), ("glffct-", D, 20),
        ("ATATT3", B, 50), ("ATCTT3", B, 50), ("ATBB", A, 28), ("AKCp", A, 60),
        ("npm_", A, 30), ("pypi-", B, 50), ("rubygems_", H, 40), ("dckr_pat_", B, 20), ("dckr_oat_", B, 20),
        // Chat and mail
        ("xoxb-", B, 10), ("xoxp-", B, 10), ("xoxa-", B, 10), ("xoxr-", B, 10), ("xoxs-", B, 10), ("xoxe-", B, 10),
        ("xoxe.", D, 10), ("xoxc-", B, 10), ("xoxd-", D, 10), ("xapp-", B, 10), ("SG.", D, 40), ("key-", H, 32),
        // Payment
        ("sk_live_", A, 10), ("sk_test_", A, 10), ("rk_live_", A, 10), ("rk_test_", A, 10), ("whsec_", B, 20),
        ("sq0atp-", B, 20), ("sq0csp-", B, 40),
        // Models
        ("sk-", M, 20), ("hf_", A, 30), ("gsk_", A, 40), ("xai-", A, 40), ("r8_", A, 30), ("pplx-", A, 40),
        ("nvapi-", B, 40), ("fw_", A, 22), ("tvly-", B, 20), ("ops_", B, 60),
        // Hosts, data and operations
        ("dop_v1_", H, 60), ("doo_v1_", H, 60), ("dor_v1_", H, 60), ("hvs.", B, 24), ("hvb.", B, 24),
        ("hvr.", B, 24), ("shpat_", H, 32), ("shpca_", H, 32), ("shppa_", H, 32), ("shpss_", H, 32), ("sbp_", H, 40),
        ("sb_secret_", B, 20), ("lin_api_", A, 32), ("ntn_", A, 40), ("secret_", A, 43), ("glsa_", B, 32), ("glc_", B, 32),
        ("NRAK-", U, 24), ("sntrys_", D, 40), ("sntryu_", H, 60), ("figd_", B, 36), ("PMAK-", B, 40), ("tskey-", B, 20),
        ("dp.pt.", A, 40), ("dp.st.", D, 40), ("pul-", H, 40), ("pscale_pw_", D, 32), ("pscale_tkn_", D, 32),
        ("nfp_", A, 36), ("HRKU-", B, 36), ("CFPAT-", B, 40), ("tfp_", B, 40), ("phx_", A, 32), ("AGE-SECRET-KEY-1", U, 50),
        ("dt0c01.", D, 60), ("FLWSECK-", A, 20), ("FLWSECK_TEST-", A, 12),
        ("atlasv1.", B, 50), ("sk.eyJ", D, 40),
    ]
};

/// How to tell quickly that a shape is not there.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    shape: u8,
    /// Offset of the mark in the prefix, and the mark.
    offset: u8,
    mark: u8,
    first: u8,
}

/// The shapes by the byte that gives them away: the last of `_ - . /` in the prefix, else a capital A at its beginning.
#[derive(Debug)]
pub(super) struct CloudKeys {
    /// By the byte before the mark.
    marked: Vec<Vec<Anchor>>,
    /// By the byte after the A.
    capital: Vec<Vec<Anchor>>,
}

impl CloudKeys {
    pub(super) fn new() -> Self {
        let mut keys = Self {
            marked: vec![Vec::new(); 256],
            capital: vec![Vec::new(); 256],
        };
        for (i, (prefix, ..)) in (0_u8..).zip(SHAPES) {
            let prefix = prefix.as_bytes();
            let mark = prefix.iter().rposition(|byte| b"_-./".contains(byte));
            let (list, by) = match mark {
                Some(mark) => (&mut keys.marked, before(prefix, mark, 0)),
                None => (&mut keys.capital, at(prefix, 1)),
            };
            if let Some(list) = list.get_mut(usize::from(by)) {
                let offset = mark.unwrap_or(0);
                list.push(Anchor {
                    shape: i,
                    offset: u8::try_from(offset).unwrap_or(0),
                    mark: at(prefix, offset),
                    first: at(prefix, 0),
                });
            }
        }
        keys
    }

    /// The key given away by the byte at `i`: a mark in its prefix, or the A it begins with.
    /// `dead`: up to where it is known that no key of mixed characters ends.
    pub(super) fn find(
        &self,
        text: &[u8],
        i: usize,
        floor: usize,
        dead: &mut usize,
    ) -> Option<(usize, usize)> {
        let list = match at(text, i) {
            b'A' => self.capital.get(usize::from(at(text, i + 1)))?,
            b'~' => return azure(text, i, floor),
            _ => self.marked.get(usize::from(before(text, i, floor)))?,
        };
        list.iter().find_map(|anchor| {
            let start = i.checked_sub(usize::from(anchor.offset))?;
            if at(text, i) != anchor.mark || at(text, start) != anchor.first || start < floor {
                return None;
            }
            let shape = SHAPES.get(usize::from(anchor.shape))?;
            let end =
                begins_word(text, start, floor).then(|| key_end(text, start, shape, dead))??;
            Some((start, end))
        })
    }
}

fn key_end(
    text: &[u8],
    start: usize,
    &(prefix, body, least): &Shape,
    dead: &mut usize,
) -> Option<usize> {
    if body == Body::Mixed && start < *dead {
        return None;
    }
    let tail = rest(text, start).strip_prefix(prefix.as_bytes())?;
    let count = run(tail, 0, |byte| body.has(byte));
    // Dots end sentences, too.
    let key = part(tail, 0, count);
    let key = part(key, 0, key.iter().rposition(|&byte| byte != b'.')? + 1);
    let exact = body == Body::UpperAlphanumeric && least == 16;
    let whole = if exact {
        key.len() == least && !is_word(at(tail, least))
    } else {
        key.len() >= least
    };
    if body == Body::Mixed && !is_mixed(key) {
        *dead = start + prefix.len() + count;
        return None;
    }
    whole.then_some(start + prefix.len() + key.len())
}

/// No name made of words: all three kinds of characters, or one long part with digits.
fn is_mixed(key: &[u8]) -> bool {
    let digits = key.iter().any(u8::is_ascii_digit);
    let cases = key.iter().any(u8::is_ascii_uppercase) && key.iter().any(u8::is_ascii_lowercase);
    let long = key
        .split(|&byte| byte == b'-' || byte == b'_')
        .any(|part| part.len() >= 20);
    digits && (cases || long)
}

/// Secrets of Azure applications: three characters, a digit, `Q~` and 31 or more characters.
fn azure(text: &[u8], i: usize, floor: usize) -> Option<(usize, usize)> {
    let start = i.checked_sub(5).filter(|&start| start >= floor)?;
    let mut end = run(text, i + 1, |byte| {
        is_base64url(byte) || byte == b'~' || byte == b'.'
    });
    while at(text, end - 1) == b'.' {
        end -= 1;
    }
    let head = at(text, i - 1) == b'Q' && at(text, i - 2).is_ascii_digit();
    (head && end - i > 31 && begins_word(text, start, floor)).then_some((start, end))
}

/// Databricks tokens have no mark, only `dapi` and 32 hex digits. `i`: the first digit of a word.
pub(super) fn databricks(text: &[u8], i: usize, floor: usize) -> Option<(usize, usize)> {
    let hex = run_back(text, i, floor, 32, |byte| byte.is_ascii_hexdigit());
    let start = hex.checked_sub(4).filter(|&start| start >= floor)?;
    let end = run(text, i, |byte| byte.is_ascii_hexdigit());
    let found = part(text, start, hex) == b"dapi" && end - hex >= 32;
    (found && begins_word(text, start, floor)).then_some((start, end))
}

/// The token of a Telegram bot around the `:` at `i`: its number, `:AA` and 33 characters.
pub(super) fn telegram(text: &[u8], i: usize, floor: usize) -> Option<(usize, usize)> {
    if !rest(text, i + 1).starts_with(b"AA") {
        return None;
    }
    let start = run_back(text, i, floor, 12, |byte| byte.is_ascii_digit());
    let end = run(text, i + 1, is_base64url);
    // In an address it follows `/bot`.
    (i - start >= 8 && end - i > 33).then_some((start, end))
}

/// The credential after `Bearer ` or `Basic ` when it reads like one.
pub(super) fn after_scheme(text: &[u8], i: usize, floor: usize) -> Option<(usize, usize)> {
    let tail = rest(text, i);
    let basic = tail.starts_with(b"Basic ");
    if is_word(before(text, i, floor)) || !basic && !tail.starts_with(b"Bearer ") {
        return None;
    }
    let start = i + if basic { 6 } else { 7 };
    let end = run(text, start, |byte| {
        is_base64url(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
    });
    let token = part(text, start, end);
    let found = if basic {
        let pair = base64::engine::general_purpose::STANDARD.decode(token);
        token.len() <= 1024 && pair.is_ok_and(|pair| pair.contains(&b':') && pair.is_ascii())
    } else {
        token.len() >= 16 && is_mixed(token) && !token.starts_with(b"eyJ")
    };
    found.then_some((start, end))
}
