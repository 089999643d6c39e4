//! Content codings, undone on the copy as it arrives, with limits.
//!
//! Each decoder gives out all that its input allows at once, so that events flushed through a compressed stream are seen
//! when they pass. Nothing here is ever applied to what is forwarded.

mod codec;

use std::fmt;

use self::codec::{Brotli, Codec, Deflate, Gzip, Zstd};

/// A `Content-Encoding` that cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "content coding {coding:?} is not known (known: gzip, deflate, br, zstd, up to {MAX_CODINGS} of them)"
)]
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
    #[error("{coding} data expands beyond {limit} bytes and more than {MAX_RATIO} times")]
    Bomb {
        /// Which coding.
        coding: &'static str,
        /// The limit that was passed.
        limit: u64,
    },
}

/// Codings applied one over the other that are still undone; one is normal, two are seen, more are an attack.
const MAX_CODINGS: usize = 4;

/// Output beyond the limit is allowed up to this many bytes per byte of input, so that a stream of events may run for
/// days. JSON packs 5 to 20 times, a bomb 1,000 times and more.
const MAX_RATIO: u64 = 100;

/// Undoes a body's codings.
#[derive(Debug)]
pub struct ContentDecoder {
    /// In the order in which they are undone.
    stages: Vec<Stage>,
    failed: Option<CodingError>,
}

/// One coding and its account.
struct Stage {
    codec: Box<dyn Codec>,
    taken: u64,
    given: u64,
    limit: u64,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("coding", &self.codec.name())
            .field("taken", &self.taken)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

impl ContentDecoder {
    /// A decoder for the value of `Content-Encoding` (repeated headers joined by commas): `gzip`, `x-gzip`, `deflate`
    /// (zlib and raw), `br`, `zstd`, `identity`, and lists of them, which are undone from the last to the first.
    ///
    /// `max_output` bounds what each coding gives, unless its input explains more (see [`CodingError::Bomb`]). What is not
    /// encoded passes without a limit.
    ///
    /// # Errors
    ///
    /// When a coding is not known.
    pub fn for_header(
        content_encoding: Option<&str>,
        max_output: u64,
    ) -> Result<Self, UnknownCoding> {
        let unknown = |coding: &str| UnknownCoding {
            coding: coding.chars().take(64).collect(),
        };
        let mut stages = Vec::new();
        for coding in content_encoding
            .unwrap_or_default()
            .rsplit(',')
            .map(str::trim)
        {
            let codec: Box<dyn Codec> = match coding.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Box::new(Gzip::default()),
                "deflate" => Box::new(Deflate::default()),
                "br" => Box::new(Brotli::default()),
                "zstd" => Box::new(Zstd::new().ok_or_else(|| unknown(coding))?),
                _ => return Err(unknown(coding)),
            };
            if stages.len() == MAX_CODINGS {
                return Err(unknown(content_encoding.unwrap_or_default()));
            }
            stages.push(Stage {
                codec,
                taken: 0,
                given: 0,
                limit: max_output,
            });
        }
        Ok(Self {
            stages,
            failed: None,
        })
    }

    /// Whether the body is encoded at all.
    pub fn is_identity(&self) -> bool {
        self.stages.is_empty()
    }

    /// Decodes the next bytes; all that they allow comes out before it returns.
    ///
    /// # Errors
    ///
    /// When the input is corrupt or expands beyond the limit.
    pub fn push(&mut self, chunk: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
        self.guarded(|stages| push(stages, chunk, out))
    }

    /// Ends the input. A body without a single byte is fine whatever its coding (answers to HEAD, 204, 304).
    ///
    /// # Errors
    ///
    /// When the input ended too early.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
        self.guarded(|stages| finish(stages, out))
    }

    fn guarded(
        &mut self,
        work: impl FnOnce(&mut [Stage]) -> Result<(), CodingError>,
    ) -> Result<(), CodingError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        work(&mut self.stages).inspect_err(|error| self.failed = Some(error.clone()))
    }
}

// The recursion of these two is as deep as there are codings.

fn push(stages: &mut [Stage], input: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
    let Some((stage, inner)) = stages.split_first_mut() else {
        out(input);
        return Ok(());
    };
    stage.push(input, &mut |bytes| push(inner, bytes, out))
}

fn finish(stages: &mut [Stage], out: &mut dyn FnMut(&[u8])) -> Result<(), CodingError> {
    let Some((stage, inner)) = stages.split_first_mut() else {
        return Ok(());
    };
    stage.finish(&mut |bytes| push(inner, bytes, out))?;
    finish(inner, out)
}

impl Stage {
    fn push(&mut self, input: &[u8], sink: &mut codec::Sink<'_>) -> Result<(), CodingError> {
        self.taken += input.len() as u64;
        self.work(sink, |codec, sink| codec.push(input, sink))
    }

    fn finish(&mut self, sink: &mut codec::Sink<'_>) -> Result<(), CodingError> {
        if self.taken == 0 {
            return Ok(());
        }
        self.work(sink, |codec, sink| codec.finish(sink))
    }

    fn work(
        &mut self,
        sink: &mut codec::Sink<'_>,
        work: impl FnOnce(&mut dyn Codec, &mut codec::Sink<'_>) -> Result<(), CodingError>,
    ) -> Result<(), CodingError> {
        let Self {
            codec,
            taken,
            given,
            limit,
        } = self;
        let coding = codec.name();
        work(codec.as_mut(), &mut |bytes| {
            *given += bytes.len() as u64;
            if *given > *limit && *given / MAX_RATIO > *taken {
                return Err(CodingError::Bomb {
                    coding,
                    limit: *limit,
                });
            }
            sink(bytes)
        })
    }
}
