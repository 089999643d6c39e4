//! A name as words: letters and digits in lower case, and where each word starts.

/// Longer names (without separators) are not split; the caller then looks for a rule's letters anywhere in them.
pub(super) const LONGEST: usize = 96;

/// A name's letters and digits in lower case, and where its words start.
pub(super) struct Words {
    buffer: [u8; LONGEST],
    len: usize,
    /// Bit `n`: a word starts at `n`; the bit at the end is always set.
    starts: u128,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    None,
    Lower,
    Upper,
    Digit,
}

impl Words {
    pub(super) fn split(name: &[u8]) -> Option<Self> {
        let mut words = Self {
            buffer: [0; LONGEST],
            len: 0,
            starts: 0,
        };
        let mut splitter = Splitter {
            previous: Class::None,
            uppers: 0,
        };
        if name.is_ascii() {
            for &byte in name {
                let class = match byte {
                    b'a'..=b'z' => Class::Lower,
                    b'A'..=b'Z' => Class::Upper,
                    b'0'..=b'9' => Class::Digit,
                    _ => Class::None,
                };
                if splitter.starts(&mut words, class) {
                    *words.buffer.get_mut(words.len)? = byte.to_ascii_lowercase();
                    words.len += 1;
                }
            }
        } else {
            for c in String::from_utf8_lossy(name).chars() {
                let class = match c {
                    _ if c.is_uppercase() => Class::Upper,
                    _ if c.is_alphabetic() => Class::Lower,
                    _ if c.is_numeric() => Class::Digit,
                    _ => Class::None,
                };
                if splitter.starts(&mut words, class) {
                    for lower in c.to_lowercase() {
                        let mut bytes = [0; 4];
                        let bytes = lower.encode_utf8(&mut bytes).as_bytes();
                        let end = words.len + bytes.len();
                        words.buffer.get_mut(words.len..end)?.copy_from_slice(bytes);
                        words.len = end;
                    }
                }
            }
        }
        words.starts |= 1 << words.len;
        Some(words)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where words start, one after the other.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        let mut bits = self.starts & !(1 << self.len);
        std::iter::from_fn(move || {
            let start = (bits != 0).then_some(bits.trailing_zeros() as usize);
            bits &= bits.wrapping_sub(1);
            start
        })
    }

    pub(super) fn letters(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    pub(super) fn is_boundary(&self, at: usize) -> bool {
        at <= self.len && self.starts >> at & 1 == 1
    }

    pub(super) fn count(&self) -> usize {
        (self.starts & !(1 << self.len)).count_ones() as usize
    }

    /// Where the last word that is no number starts.
    pub(super) fn last_start(&self) -> usize {
        self.last_span().0
    }

    pub(super) fn last(&self) -> &[u8] {
        let (start, end) = self.last_span();
        self.letters().get(start..end).unwrap_or_default()
    }

    fn last_span(&self) -> (usize, usize) {
        let mut end = self.len;
        while end > 0 {
            let start = self.start_before(end);
            if !self.buffer.get(start).is_some_and(u8::is_ascii_digit) {
                return (start, end);
            }
            end = start;
        }
        (0, self.len)
    }

    /// The word that ends at `end`.
    pub(super) fn before(&self, end: usize) -> &[u8] {
        if end == 0 {
            return &[];
        }
        self.letters()
            .get(self.start_before(end)..end)
            .unwrap_or_default()
    }

    fn start_before(&self, end: usize) -> usize {
        let earlier = self.starts & ((1 << end) - 1);
        127_usize.saturating_sub(earlier.leading_zeros() as usize)
    }
}

/// Where one word ends and the next begins.
struct Splitter {
    previous: Class,
    uppers: usize,
}

impl Splitter {
    /// Whether the next character belongs to a word; marks where one starts.
    #[inline]
    fn starts(&mut self, words: &mut Words, class: Class) -> bool {
        let starts = match (self.previous, class) {
            (_, Class::None) => false,
            (Class::None, _) | (Class::Lower, Class::Upper) => true,
            (Class::Digit, _) | (_, Class::Digit) => self.previous != class,
            // `APIKey` is API and Key, `DBpassword` is DB and password: both readings count.
            (Class::Upper, Class::Lower) if self.uppers > 1 => {
                words.starts |= 1 << words.len.saturating_sub(1);
                true
            }
            _ => false,
        };
        // At the end of the buffer the split is given up anyway.
        if starts && words.len < LONGEST {
            words.starts |= 1 << words.len;
        }
        self.uppers = if class == Class::Upper {
            self.uppers + 1
        } else {
            0
        };
        self.previous = class;
        class != Class::None
    }
}
