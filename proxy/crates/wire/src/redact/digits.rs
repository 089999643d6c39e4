//! What groups of digits are: cards, phone numbers, US social security numbers.
//!
//! A run of digits alone means nothing here. A card needs a layout of the issuers, their first digits and the check digit;
//! a phone number needs a `+`, a bracketed area code or the North American 3-3-4; a social security number its 3-2-4.
//! None may be part of something longer, such as a UUID, a decimal or a name.

use super::bytes::{at, before, begins_word, is_word, part, rest, run};
use super::placeholder::Kind;

/// Groups looked at together; the longest layouts have five.
const MOST_GROUPS: usize = 8;

/// What stands between two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Blank,
    Dash,
    Dot,
    /// Anything with a bracket.
    Bracket,
}

impl Gap {
    /// Whether a number may end before it although digits follow: a blank, or a bracket, with which the next begins.
    fn ends_number(self) -> bool {
        matches!(self, Self::Blank | Self::Bracket)
    }
}

#[derive(Clone, Copy, Debug)]
struct Group {
    start: usize,
    end: usize,
    /// To the group before; none for the first.
    gap: Option<Gap>,
}

impl Group {
    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// The detectors that look at digits.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "one switch a detector")]
pub(super) struct Wanted {
    pub(super) card: bool,
    /// Cards without grouping, too.
    pub(super) bare_card: bool,
    pub(super) phone: bool,
    pub(super) ssn: bool,
}

/// Groups that follow each other with one separator between, the first at a given place.
struct Groups {
    list: [Group; MOST_GROUPS],
    count: usize,
}

impl Groups {
    fn read(text: &[u8], start: usize) -> Self {
        let none = Group {
            start,
            end: start,
            gap: None,
        };
        let mut groups = Self {
            list: [none; MOST_GROUPS],
            count: 0,
        };
        let mut from = start;
        let mut gap = None;
        for slot in &mut groups.list {
            let end = run(text, from, |byte| byte.is_ascii_digit());
            *slot = Group {
                start: from,
                end,
                gap,
            };
            groups.count += 1;
            let Some((kind, length)) = gap_at(text, end) else {
                break;
            };
            gap = Some(kind);
            from = end + length;
        }
        groups
    }

    fn get(&self, i: usize) -> Option<Group> {
        self.list.get(..self.count)?.get(i).copied()
    }

    fn lengths(&self, from: usize, count: usize) -> Option<([usize; 5], usize)> {
        let mut lengths = [0; 5];
        let window = self.list.get(..self.count)?.get(from..from + count)?;
        for (length, group) in lengths.iter_mut().zip(window) {
            *length = group.len();
        }
        Some((lengths, count))
    }

    /// The one gap between all groups of a window.
    fn uniform(&self, from: usize, count: usize) -> Option<Gap> {
        let gap = self.get(from + 1)?.gap?;
        (from + 2..from + count)
            .all(|i| self.get(i).is_some_and(|group| group.gap == Some(gap)))
            .then_some(gap)
    }
}

/// One separator (blank, no-break space, dash, dot), with or without brackets, and a digit after it.
#[inline]
fn gap_at(text: &[u8], end: usize) -> Option<(Gap, usize)> {
    // Nearly always a blank and a word, or a mark that separates no groups.
    match at(text, end) {
        b' ' if !matches!(at(text, end + 1), b'0'..=b'9' | b'(') => None,
        b' ' | b'-' | b'.' | b'(' | b')' | 0xC2 | 0xE2 => any_gap_at(text, end),
        _ => None,
    }
}

fn any_gap_at(text: &[u8], end: usize) -> Option<(Gap, usize)> {
    let mut i = end;
    let mut gap = None;
    if at(text, i) == b')' {
        gap = Some(Gap::Bracket);
        i += 1;
    }
    let (mark, width) = match (at(text, i), at(text, i + 1), at(text, i + 2)) {
        (b' ', ..) => (Gap::Blank, 1),
        (b'-', ..) => (Gap::Dash, 1),
        (b'.', ..) => (Gap::Dot, 1),
        (0xC2, 0xA0, _) => (Gap::Blank, 2),
        (0xE2, 0x80, 0xAF) => (Gap::Blank, 3),
        (0xE2, 0x80, 0x90..=0x93) => (Gap::Dash, 3),
        _ => (Gap::Bracket, 0),
    };
    i += width;
    if width > 0 {
        gap = gap.or(Some(mark));
    }
    if at(text, i) == b'(' {
        gap = Some(Gap::Bracket);
        i += 1;
    }
    at(text, i).is_ascii_digit().then_some((gap?, i - end))
}

/// What the group of digits at `i` begins, and where it starts and ends. A word may begin at `i`.
pub(super) fn find(
    text: &[u8],
    i: usize,
    floor: usize,
    wanted: Wanted,
) -> Option<(usize, usize, Kind)> {
    let plus = before(text, i, floor) == b'+';
    let bracket = before(text, i, floor) == b'(';
    if !plus && !bracket && !may_begin(text, i) {
        return None;
    }
    let groups = Groups::read(text, i);
    let mut free = groups.count;
    if wanted.card {
        let card = (0..groups.count).find_map(|from| {
            let free_before = from > 0 || stands_alone(text, i, floor);
            let end = free_before.then(|| card(text, &groups, from, wanted.bare_card))??;
            Some((from, end))
        });
        match card {
            Some((0, end)) => return Some((i, end, Kind::Card)),
            // Its own turn comes; what stands before it must not take its first groups.
            Some((from, _)) => free = from,
            None => {}
        }
    }
    if wanted.ssn
        && free >= 3
        && stands_alone(text, i, floor)
        && let Some(end) = ssn(text, &groups)
    {
        return Some((i, end, Kind::Ssn));
    }
    if !wanted.phone {
        return None;
    }
    if plus || bracket {
        let start = i - 1;
        let end = if plus {
            international(text, &groups, free)
        } else {
            bracketed(text, &groups, free)
        };
        let free = begins_word(text, start, floor);
        if let (true, Some(end)) = (free, end) {
            return Some((start, end, Kind::Phone));
        }
    }
    if plus || !stands_alone(text, i, floor) {
        return None;
    }
    american(text, &groups, free)
        .or_else(|| dialled_abroad(text, &groups, free))
        .map(|end| (i, end, Kind::Phone))
}

/// Whether the first two groups at `i` are as long as some layout wants them: most dates, times and amounts are not.
fn may_begin(text: &[u8], i: usize) -> bool {
    let end = run(text, i, |byte| byte.is_ascii_digit());
    let second = gap_at(text, end).map_or(0, |(_, gap)| {
        run(text, end + gap, |byte| byte.is_ascii_digit()) - end - gap
    });
    match (end - i, second) {
        (13.., _) | (4, 4 | 6) | (3, 2 | 3) => true,
        (1, 3) => at(text, i) == b'1',
        (4..=6, 1..) => rest(text, i).starts_with(b"00"),
        _ => false,
    }
}

/// Whether the digits at `i` are not the tail of a decimal, a name or a dashed id.
fn stands_alone(text: &[u8], i: usize, floor: usize) -> bool {
    match before(text, i, floor) {
        b'.' => !before(text, i - 1, floor).is_ascii_digit(),
        b'-' => !is_word(before(text, i - 1, floor)),
        byte => byte != b'_' && begins_word(text, i, floor),
    }
}

/// Whether what ends at `end` goes on as something else.
fn goes_on(text: &[u8], end: usize) -> bool {
    match at(text, end) {
        // A word after a dash may be a secret of its own, which must not hide this one.
        b'.' | b'-' => at(text, end + 1).is_ascii_digit(),
        // No-break blanks, typographic dashes and quotes.
        0xC2 | 0xE2 => false,
        byte => is_word(byte) || byte == b'_',
    }
}

fn card(text: &[u8], groups: &Groups, from: usize, bare: bool) -> Option<usize> {
    let first = groups.get(from)?;
    if first.gap.is_some_and(|gap| gap != Gap::Blank) {
        return None;
    }
    if (13..=19).contains(&first.len()) {
        let follows = groups.get(from + 1).and_then(|next| next.gap);
        let alone = follows.is_none_or(Gap::ends_number) && !goes_on(text, first.end);
        return (bare && alone && is_card(part(text, first.start, first.end))).then_some(first.end);
    }
    for count in [5, 4, 3] {
        let Some((lengths, _)) = groups.lengths(from, count) else {
            continue;
        };
        let layout = matches!(
            lengths,
            [4, 4, 4, 4, 3 | 0] | [4, 4, 4, 1, 0] | [4, 6, 5 | 4, 0, 0]
        );
        let (true, Some(gap), Some(last)) = (
            layout,
            groups.uniform(from, count),
            groups.get(from + count - 1),
        ) else {
            continue;
        };
        let follows = groups.get(from + count).and_then(|next| next.gap);
        let ends = follows.is_none_or(Gap::ends_number) && !goes_on(text, last.end);
        if gap != Gap::Bracket && ends && is_card(part(text, first.start, last.end)) {
            return Some(last.end);
        }
    }
    None
}

/// Issuer, length and check digit (Luhn) of the digits in `text`.
pub(super) fn is_card(text: &[u8]) -> bool {
    let mut digits = [0_u8; 19];
    let mut count = 0;
    for digit in text.iter().filter(|byte| byte.is_ascii_digit()) {
        let Some(slot) = digits.get_mut(count) else {
            return false;
        };
        *slot = digit - b'0';
        count += 1;
    }
    let Some(digits) = digits.get(..count) else {
        return false;
    };
    let head = |n: usize| {
        digits
            .iter()
            .take(n)
            .fold(0_u32, |sum, &digit| sum * 10 + u32::from(digit))
    };
    let issuer = match (head(1), head(2), head(4)) {
        (4, ..) => matches!(count, 13 | 16 | 19),
        (_, 34 | 37, _) => count == 15,
        (_, 51..=55, _) | (.., 2221..=2720 | 2200..=2204) => count == 16,
        (_, 36, _) | (.., 3000..=3059 | 3095 | 3800..=3999) => matches!(count, 14 | 16),
        (.., 3528..=3589 | 6011 | 6440..=6599) | (_, 62, _) => (16..=19).contains(&count),
        (.., 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763) => count >= 13,
        _ => false,
    };
    let luhn = digits.iter().rev().enumerate().fold(0, |sum, (i, &digit)| {
        let doubled = u32::from(digit) * if i % 2 == 1 { 2 } else { 1 };
        sum + doubled / 10 + doubled % 10
    });
    issuer && luhn % 10 == 0
}

fn ssn(text: &[u8], groups: &Groups) -> Option<usize> {
    let (lengths, _) = groups.lengths(0, 3)?;
    let last = groups.get(2)?;
    let gap = groups.uniform(0, 3)?;
    let follows = groups.get(3).and_then(|next| next.gap);
    let layout = lengths == [3, 2, 4, 0, 0] && matches!(gap, Gap::Dash | Gap::Blank);
    let ends = follows.is_none_or(Gap::ends_number) && !goes_on(text, last.end);
    let first = groups.get(0)?;
    (layout && ends && is_ssn(part(text, first.start, last.end))).then_some(last.end)
}

/// Nine digits with an area, a group and a serial that are given out.
pub(super) fn is_ssn(text: &[u8]) -> bool {
    let digits: Vec<u8> = text.iter().copied().filter(u8::is_ascii_digit).collect();
    let (area, group, serial) = (
        part(&digits, 0, 3),
        part(&digits, 3, 5),
        part(&digits, 5, 9),
    );
    digits.len() == 9
        && area != b"000"
        && area != b"666"
        && !area.starts_with(b"9")
        && group != b"00"
        && serial != b"0000"
}

/// `+` and 8 to 15 digits (E.164), grouped in any way.
fn international(text: &[u8], groups: &Groups, free: usize) -> Option<usize> {
    let first = groups.get(0)?;
    if at(text, first.start) == b'0' {
        return None;
    }
    if first.len() >= 8 {
        let decimal = at(text, first.end) == b'.' && at(text, first.end + 1).is_ascii_digit();
        return (first.len() <= 15 && !decimal).then_some(first.end);
    }
    let mut best = None;
    let mut digits = 0;
    let american = at(text, first.start) == b'1';
    for i in 0..free {
        let group = groups.get(i)?;
        digits += group.len();
        // As much as fits, since countries group as they like; eleven digits are a whole American number.
        if digits > 15 || digits > 13 && best.is_some() {
            break;
        }
        if digits >= 8 {
            best = Some(group.end);
            if american && digits == 11 {
                break;
            }
        }
    }
    best
}

/// `(555)0100123`, `(020) 7946 0958`: an area code in brackets.
fn bracketed(text: &[u8], groups: &Groups, free: usize) -> Option<usize> {
    let area = groups.get(0)?;
    if at(text, area.end) != b')' || !(2..=5).contains(&area.len()) || free < 2 {
        return None;
    }
    let trunk = at(text, area.start) == b'0';
    let mut digits = area.len();
    for i in 1..free.min(5) {
        let group = groups.get(i)?;
        if i > 1 && group.gap == Some(Gap::Bracket) {
            return None;
        }
        digits += group.len();
        let follows = groups.get(i + 1).as_ref().is_some_and(|_| i + 1 < free);
        let whole = if trunk {
            digits >= 9 && !(follows && digits <= 10)
        } else {
            area.len() == 3 && digits == 10
        };
        if digits > 12 {
            return None;
        }
        if whole && !goes_on(text, group.end) {
            return Some(group.end);
        }
    }
    None
}

/// `415-555-0123`, `415.555.0123`, `1-415-555-0123`.
fn american(text: &[u8], groups: &Groups, free: usize) -> Option<usize> {
    let first = groups.get(0)?;
    let from = usize::from(first.len() == 1 && at(text, first.start) == b'1');
    let (lengths, _) = groups.lengths(from, 3)?;
    let (area, exchange, last) = (
        groups.get(from)?,
        groups.get(from + 1)?,
        groups.get(from + 2)?,
    );
    let follows = groups
        .get(from + 3)
        .filter(|_| from + 3 < free)
        .and_then(|next| next.gap);
    let ends = follows.is_none_or(Gap::ends_number) && !goes_on(text, last.end);
    let code = |group: Group| (b'2'..=b'9').contains(&at(text, group.start));
    // Blanks alone are also how tables of numbers look: then the exchange must be one that exists.
    let blanks = groups.uniform(from, 3) == Some(Gap::Blank);
    (lengths == [3, 3, 4, 0, 0]
        && free >= from + 3
        && ends
        && exchange.gap != Some(Gap::Bracket)
        && code(area)
        && (!blanks || code(exchange)))
    .then_some(last.end)
}

/// `0044 20 7946 0958`: the international prefix in digits, with groups.
fn dialled_abroad(text: &[u8], groups: &Groups, free: usize) -> Option<usize> {
    let first = groups.get(0)?;
    let prefix = part(text, first.start, first.end);
    let country = prefix.starts_with(b"00") && prefix.get(2).is_some_and(|byte| *byte != b'0');
    if !country || prefix.len() > 6 {
        return None;
    }
    let mut digits = first.len();
    let mut best = None;
    for i in 1..free {
        let group = groups.get(i)?;
        digits += group.len();
        if digits > 15 || group.len() < 2 {
            break;
        }
        if digits >= 10 && !goes_on(text, group.end) {
            best = Some(group.end);
        }
    }
    best
}

/// A value that is digits and what may stand between them, under a name that says what they are.
pub(super) fn bare(text: &[u8]) -> Option<usize> {
    let marks = |byte: &u8| byte.is_ascii_digit() || b" ()-./+".contains(byte);
    let count = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    (text.iter().all(marks) && count > 0).then_some(count)
}
