//! Blocks: documents of one commit, packed together and compressed as one zstd frame with a checksum.
//!
//! The first byte of a block is its format. Format 1 compresses with `block/dictionary.bin`, four kilobytes of what
//! documents are made of anyway (header names, methods, the frame of a result), put together once by hand: with little
//! traffic, when a commit has one call, it more than halves them. It can never change; another one is another format.
//!
//! A block explains itself: each document carries its length, what it is, and the key of its row. Rows only name the
//! block, so a block can be rewritten without touching them. Damage to one costs the documents in it and nothing else.

use std::ops::Range;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use crate::doc::fields::{Input, put_number, unzigzag, zigzag};
use crate::error::StoreError;

const FORMAT: u8 = 1;
const DICTIONARY: &[u8] = include_bytes!("block/dictionary.bin");
/// A block is closed once it has this much before compression. Larger ones compress better by little and cost every reader more.
pub(crate) const ENOUGH: usize = 64 * 1024;
/// More than this is not allocated for a block, whatever its frame claims.
const MOST: usize = 1 << 30;
/// zstd frames that decoders skip begin with this.
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call that has now concluded.
    Concluded,
    /// A call still open, or a later word on one that had concluded.
    Call,
    /// A message.
    Message,
    /// Nothing but the news that the call concluded; its document is elsewhere.
    Mark,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Concluded, Self::Call, Self::Message, Self::Mark];

    fn code(self) -> u8 {
        match self {
            Self::Concluded => 0,
            Self::Call => 1,
            Self::Message => 2,
            Self::Mark => 3,
        }
    }

    /// Whether the document belongs to a row of the call table.
    pub(crate) fn of_call(self) -> bool {
        self != Self::Message
    }
}

/// A block being filled; the buffer is used again for the next.
pub(crate) struct Packer {
    raw: Vec<u8>,
    /// Keys are written as their distance from the first one.
    base: i64,
    last: i64,
    scratch: Vec<u8>,
    frame: Vec<u8>,
    packed: Vec<u8>,
    compressor: Compressor<'static>,
}

/// What was packed.
pub(crate) struct Packed<'a> {
    /// Largest key in the block.
    pub(crate) last: i64,
    /// The frame.
    pub(crate) data: &'a [u8],
}

impl Packer {
    pub(crate) fn new(level: i32) -> Result<Self, StoreError> {
        let mut compressor =
            Compressor::with_dictionary(level, DICTIONARY).map_err(StoreError::Compression)?;
        compressor
            .set_parameter(CParameter::ChecksumFlag(true))
            .map_err(StoreError::Compression)?;
        Ok(Self {
            raw: Vec::with_capacity(2 * ENOUGH),
            base: 0,
            last: i64::MIN,
            scratch: Vec::with_capacity(4096),
            frame: Vec::new(),
            packed: Vec::new(),
            compressor,
        })
    }

    /// Adds a document that `write` appends to its buffer.
    pub(crate) fn add(&mut self, kind: Kind, key: i64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.raw.is_empty() {
            self.raw.extend_from_slice(&key.to_be_bytes());
            self.base = key;
        }
        self.last = self.last.max(key);
        self.scratch.clear();
        self.scratch.push(kind.code());
        put_number(&mut self.scratch, zigzag(key.wrapping_sub(self.base)));
        write(&mut self.scratch);
        put_number(&mut self.raw, self.scratch.len() as u64);
        self.raw.extend_from_slice(&self.scratch);
    }

    /// Adds a document of another block as it is.
    pub(crate) fn copy(&mut self, doc: &Doc<'_>) {
        self.add(doc.kind, doc.key, |out| out.extend_from_slice(doc.body));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Whether the block is worth closing.
    pub(crate) fn is_full(&self) -> bool {
        self.raw.len() >= ENOUGH
    }

    /// Compresses what there is and begins anew.
    pub(crate) fn pack(&mut self) -> Result<Packed<'_>, StoreError> {
        if self.raw.is_empty() {
            self.raw.extend_from_slice(&0_i64.to_be_bytes());
        }
        // The compressor writes to the start of a buffer, so the format goes in front afterwards, from its own.
        self.frame.clear();
        self.frame
            .reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        self.compressor
            .compress_to_buffer(&self.raw, &mut self.frame)
            .map_err(StoreError::Compression)?;
        self.packed.clear();
        self.packed.push(FORMAT);
        self.packed.extend_from_slice(&self.frame);
        let last = self.last;
        self.forget();
        Ok(Packed {
            last,
            data: &self.packed,
        })
    }

    /// As [`Packer::pack`], padded to exactly `len` bytes where that is possible: a row of the same length is
    /// overwritten in place, so that no copy of the former content stays behind.
    pub(crate) fn pack_to(&mut self, len: usize) -> Result<Packed<'_>, StoreError> {
        let last = self.pack()?.last;
        if let Some(padding) = len.checked_sub(self.packed.len() + 8) {
            self.packed.extend_from_slice(&SKIPPABLE);
            let length = u32::try_from(padding).unwrap_or(u32::MAX);
            self.packed.extend_from_slice(&length.to_le_bytes());
            self.packed.resize(self.packed.len() + length as usize, 0);
        }
        Ok(Packed {
            last,
            data: &self.packed,
        })
    }

    /// Drops what was added since the last block.
    pub(crate) fn forget(&mut self) {
        self.raw.clear();
        // A single huge document must not keep its memory for ever.
        self.raw.shrink_to(16 * ENOUGH);
        self.scratch.shrink_to(16 * ENOUGH);
        self.frame.shrink_to(16 * ENOUGH);
        self.packed.shrink_to(16 * ENOUGH);
        self.last = i64::MIN;
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer")
            .field("raw", &self.raw.len())
            .finish_non_exhaustive()
    }
}

/// A block that was read.
#[derive(Debug)]
pub(crate) struct Block {
    raw: Vec<u8>,
    index: Vec<Place>,
}

/// Where a document lies in its block.
#[derive(Debug)]
struct Place {
    kind: Kind,
    key: i64,
    body: Range<usize>,
}

/// A document in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doc<'a> {
    pub(crate) kind: Kind,
    pub(crate) key: i64,
    pub(crate) body: &'a [u8],
}

/// Reads blocks, one after the other.
pub(crate) struct Unpacker(Decompressor<'static>);

impl Unpacker {
    pub(crate) fn new() -> Result<Self, StoreError> {
        Decompressor::with_dictionary(DICTIONARY)
            .map(Self)
            .map_err(StoreError::Compression)
    }

    /// Decompresses block `num`.
    pub(crate) fn unpack(&mut self, num: i64, data: &[u8]) -> Result<Block, StoreError> {
        let damaged = |what: &str| StoreError::Damaged {
            block: num,
            what: what.to_owned(),
        };
        let frame = match data.split_first() {
            // Emptied by retention; the row stays for its number.
            None => {
                return Ok(Block {
                    raw: Vec::new(),
                    index: Vec::new(),
                });
            }
            Some((&FORMAT, frame)) => frame,
            Some(_) => return Err(damaged("its format is unknown here")),
        };
        let bound = Decompressor::upper_bound(frame).filter(|bound| *bound <= MOST);
        let bound = bound.ok_or_else(|| damaged("its frame does not say how long it is"))?;
        let raw = self
            .0
            .decompress(frame, bound)
            .map_err(|error| damaged(&error.to_string()))?;
        let index = index(&raw).map_err(damaged)?;
        Ok(Block { raw, index })
    }
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unpacker")
    }
}

impl Block {
    /// All documents, in the order they were stored.
    pub(crate) fn docs(&self) -> impl Iterator<Item = Doc<'_>> {
        self.index.iter().map(|place| Doc {
            kind: place.kind,
            key: place.key,
            body: &self.raw[place.body.clone()],
        })
    }

    /// The latest document of a row.
    pub(crate) fn find(&self, of_call: bool, key: i64) -> Option<&[u8]> {
        let wanted = |place: &&Place| {
            place.key == key && place.kind != Kind::Mark && place.kind.of_call() == of_call
        };
        self.index
            .iter()
            .rev()
            .find(wanted)
            .map(|place| &self.raw[place.body.clone()])
    }

    /// Bytes it takes in memory, about.
    pub(crate) fn weight(&self) -> usize {
        self.raw.len() + self.index.len() * size_of::<Place>()
    }
}

fn index(raw: &[u8]) -> Result<Vec<Place>, &'static str> {
    let (head, rest) = raw.split_at_checked(8).ok_or("it ends early")?;
    let base = head
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| "it ends early")?;
    let mut input = Input(rest);
    let mut places = Vec::new();
    while !input.0.is_empty() {
        let mut doc = Input(input.bytes()?);
        let end = raw.len() - input.0.len();
        let kind = *Kind::ALL
            .get(usize::from(doc.byte()?))
            .ok_or("a document of unknown kind")?;
        let key = base.wrapping_add(unzigzag(doc.number()?));
        places.push(Place {
            kind,
            key,
            body: end - doc.0.len()..end,
        });
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
