//! Recorded text on a terminal. Whatever a client or server sent is hostile until it went through [`visible`]: nothing
//! of it may move the cursor, change colours, reorder the line or hide. Also owns widths: cells, not characters.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Spells out every character that would act on a terminal or hide from the reader, as JSON escapes it (`\u001b`).
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push_visible(&mut shown, c);
    }
    Cow::Owned(shown)
}

/// [`visible`] for a text of several lines: its line breaks stay.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// [`visible`] for one character.
pub(crate) fn push_visible(shown: &mut String, c: char) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if acts(c) => {
            let mut units = [0; 2];
            let spelled = c.encode_utf16(&mut units).iter();
            shown.extend(spelled.map(|unit| format!("\\u{unit:04x}")));
        }
        c => shown.push(c),
    }
}

/// Whether a character does something instead of being seen: controls (C1 too: U+009B is an escape sequence's
/// beginning), bidirectional overrides, line separators, and invisible characters that can smuggle text past a reader.
/// The joiners U+200C and U+200D stay: scripts and emoji need them.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Terminal cells a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// At most `cells` wide; an ellipsis says that something is missing.
pub(crate) fn truncate(text: &str, cells: usize) -> Cow<'_, str> {
    // Most texts are short; of a long one only the beginning is measured.
    if text.len() <= cells || (text.len() <= cells.saturating_mul(16) && width(text) <= cells) {
        return Cow::Borrowed(text);
    }
    let room = cells.saturating_sub(1);
    let mut used = 0;
    let mut kept = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > room || kept.len() > cells.saturating_mul(16) {
            break;
        }
        kept.push(c);
    }
    // A variation selector can widen what came before it.
    while width(&kept) > room {
        kept.pop();
    }
    if cells > 0 {
        kept.push('…');
    }
    Cow::Owned(kept)
}

/// Spaces that fill a cell of `cells`.
pub(crate) fn padding(text: &str, cells: usize) -> String {
    " ".repeat(cells.saturating_sub(width(text)))
}

/// `1284` as `1,284`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `3 calls`, `1 call`.
pub(crate) fn plural(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(number))
}

/// Bytes with a binary unit: `912 B`, `1.2 MiB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    // In tenths, and in integers: a float would round the largest values.
    let mut tenths = u128::from(number) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10 * 1024 && unit + 1 < UNITS.len() {
        unit += 1;
        tenths = (u128::from(number) * 10) >> (10 * (unit + 1));
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    let whole = u64::try_from(tenths / 10).unwrap_or(u64::MAX);
    if tenths < 1000 {
        format!("{whole}.{} {name}", tenths % 10)
    } else {
        format!("{} {name}", count(whole))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_spelled_out() {
        assert_eq!(
            visible("\x1b[2J\u{9b}31m\u{7}"),
            r"\u001b[2J\u009b31m\u0007"
        );
        assert_eq!(
            visible("a\u{202e}b\u{2066}c\u{200b}d\u{feff}"),
            r"a\u202eb\u2066c\u200bd\ufeff"
        );
        assert_eq!(visible("hidden \u{e0041}"), r"hidden \udb40\udc41");
        assert_eq!(visible("one\r\ntwo\tthree"), r"one\r\ntwo\tthree");
        assert!(matches!(visible("Dana Kim, 東京, 👩‍💻"), Cow::Borrowed(_)));
    }

    #[test]
    fn truncation_counts_cells() {
        assert_eq!(truncate("Dana Kim", 8), "Dana Kim");
        assert_eq!(truncate("Dana Kim", 7), "Dana K…");
        assert_eq!(truncate("東京都庁", 8), "東京都庁");
        assert_eq!(truncate("東京都庁", 6), "東京…");
        assert_eq!(truncate("東京都庁", 1), "…");
        assert_eq!(truncate("x", 0), "");
    }

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(
            [0, 999, 1000, 25_690, 1_234_567].map(count),
            ["0", "999", "1,000", "25,690", "1,234,567"]
        );
        assert_eq!(
            [0, 912, 1024, 1_258_292, 10 << 30, 1000 << 20, u64::MAX].map(bytes),
            [
                "0 B",
                "912 B",
                "1.0 KiB",
                "1.2 MiB",
                "10.0 GiB",
                "1,000 MiB",
                "16,383 PiB"
            ]
        );
        assert_eq!(
            [plural(0, "call"), plural(1, "call"), plural(2000, "call")],
            ["0 calls", "1 call", "2,000 calls"]
        );
    }

    proptest! {
        /// Nothing that acts survives, whatever the text.
        #[test]
        fn visible_text_is_inert(text: String) {
            prop_assert!(!visible(&text).contains(acts));
        }

        /// A truncated text fits, whatever its characters.
        #[test]
        fn truncated_text_fits(text: String, cells in 0..40_usize) {
            let shown = visible(&text);
            prop_assert!(width(&truncate(&shown, cells)) <= cells);
        }
    }
}
