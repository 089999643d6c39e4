//! IBANs: a country with an IBAN, the country's length, and the check digits (ISO 13616, mod 97).

use super::bytes::{at, before, begins_word, is_word};

/// Country and length, four bytes each.
const LENGTHS: &[u8] = b"\
    AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29\
    ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20\
    LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29\
    PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20";

/// Countries whose account numbers have digits only; checked, since their codes and hex digits look alike.
const DIGITS_ONLY: &str =
    "AE AT BA BE CZ DE DK EE ES FI FO GL HR HU IL IS LT ME NO PL PT RS SE SI SK XK";

/// The end of the IBAN that starts at `start`, whose first two bytes are letters.
pub(super) fn find(text: &[u8], start: usize, floor: usize) -> Option<usize> {
    let previous = before(text, start, floor);
    let in_id = previous == b'-' && is_word(before(text, start - 1, floor));
    if !begins_word(text, start, floor) || previous == b'_' || in_id {
        return None;
    }
    let country = [at(text, start), at(text, start + 1)];
    let lower = country[0].is_ascii_lowercase();
    let country = country.map(|byte| byte.to_ascii_uppercase());
    let length = length_of(country)?;
    let digits_only = DIGITS_ONLY.split(' ').any(|one| one.as_bytes() == country);
    let mut taken = 0;
    let mut check = 0;
    let mut head = 0;
    let mut i = start;
    while taken < length {
        let byte = at(text, i);
        let of_case = if lower {
            !byte.is_ascii_uppercase()
        } else {
            !byte.is_ascii_lowercase()
        };
        if byte.is_ascii_alphanumeric() && of_case {
            let value = char::from(byte).to_digit(36)?;
            let add = |sum: u32| (sum * if value > 9 { 100 } else { 10 } + value) % 97;
            if taken < 4 {
                head = add(head);
            } else {
                check = add(check);
            }
            if value > 9 && (taken == 2 || taken == 3 || taken > 3 && digits_only) {
                return None;
            }
            taken += 1;
            i += 1;
        } else {
            let gap = separator(text, i)?;
            if taken % 4 != 0 {
                return None;
            }
            i += gap;
        }
    }
    let next = at(text, i);
    if is_word(next) && next < 0x80 || next == b'_' || next == b'-' && is_word(at(text, i + 1)) {
        return None;
    }
    // The country and the check digits go to the end: six digits, since a letter counts as two.
    let whole = (check * (1_000_000 % 97) + head) % 97;
    (whole == 1).then_some(i)
}

fn length_of(country: [u8; 2]) -> Option<usize> {
    let entry = LENGTHS
        .chunks_exact(4)
        .find(|entry| entry.starts_with(&country))?;
    std::str::from_utf8(entry.get(2..)?).ok()?.parse().ok()
}

/// The length of one blank, dash or no-break space between two groups.
fn separator(text: &[u8], i: usize) -> Option<usize> {
    let length = match at(text, i) {
        b' ' | b'-' => 1,
        0xC2 if at(text, i + 1) == 0xA0 => 2,
        0xE2 if at(text, i + 1) == 0x80 && at(text, i + 2) == 0xAF => 3,
        _ => return None,
    };
    at(text, i + length)
        .is_ascii_alphanumeric()
        .then_some(length)
}
