//! Tagged fields: a tag byte, then a number or bytes. Unknown tags are skipped, so an older callbox reads what a newer
//! one wrote, and optional fields cost nothing when absent.

/// Shapes, in the lowest bit of the tag byte.
const NUMBER: u8 = 0;
const BYTES: u8 = 1;

/// Appends fields to a buffer.
pub(crate) struct Fields<'a>(pub(crate) &'a mut Vec<u8>);

impl Fields<'_> {
    /// A number under `tag`.
    pub(crate) fn number(&mut self, tag: u8, value: u64) {
        self.0.push(tag << 1 | NUMBER);
        put_number(self.0, value);
    }

    /// A signed number under `tag`, small ones short.
    pub(crate) fn signed(&mut self, tag: u8, value: i64) {
        self.number(tag, zigzag(value));
    }

    /// Bytes under `tag`.
    pub(crate) fn bytes(&mut self, tag: u8, value: &[u8]) {
        self.0.push(tag << 1 | BYTES);
        put_bytes(self.0, value);
    }

    /// Bytes under `tag`, when there are any to speak of.
    pub(crate) fn optional(&mut self, tag: u8, value: Option<&str>) {
        if let Some(value) = value {
            self.bytes(tag, value.as_bytes());
        }
    }
}

/// A field that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads fields back; nothing in it trusts the input.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next field; `Ok(None)` at the end.
    pub(crate) fn field(&mut self) -> Result<Option<(u8, Value<'a>)>, &'static str> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let byte = self.byte()?;
        let value = if byte & 1 == NUMBER {
            Value::Number(self.number()?)
        } else {
            Value::Bytes(self.bytes()?)
        };
        Ok(Some((byte >> 1, value)))
    }

    pub(crate) fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or("ends early")?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number does not end")
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], &'static str> {
        let len = usize::try_from(self.number()?).map_err(|_| "a length is out of range")?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("ends early")?;
        self.0 = rest;
        Ok(bytes)
    }
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_number(out, value.len() as u64);
    out.extend_from_slice(value);
}

pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}
