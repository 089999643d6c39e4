//! The four codings, each as something that takes bytes and gives bytes at once.
//!
//! The one place that uses the bare decoders: limits are put around them by the module above.

#![allow(
    clippy::disallowed_types,
    reason = "this is the capped wrapper that the ban points to"
)]

use std::fmt;
use std::io::Write;

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::write::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::CodingError;

/// Where decoded bytes go; an error stops the decoder.
pub(super) type Sink<'s> = dyn FnMut(&[u8]) -> Result<(), CodingError> + 's;

/// A coding being undone.
pub(super) trait Codec: Send {
    fn name(&self) -> &'static str;

    /// Takes `input` and gives all that it allows.
    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<(), CodingError>;

    /// The input is over.
    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), CodingError>;
}

/// Output is given in pieces of this size at most (gzip: four times that).
const PIECE: usize = 8 * 1024;

fn corrupt(coding: &'static str, what: impl fmt::Display) -> CodingError {
    CodingError::Corrupt {
        coding,
        what: what.to_string(),
    }
}

/// Members one after the other. What follows the last and does not begin like one is padding and left alone, as gzip does.
#[derive(Default)]
pub(super) struct Gzip {
    member: Option<GzDecoder<Vec<u8>>>,
    padding: bool,
}

impl Gzip {
    const NAME: &str = "gzip";

    fn give(member: &mut GzDecoder<Vec<u8>>, sink: &mut Sink<'_>) -> Result<(), CodingError> {
        let given = if member.get_ref().is_empty() {
            Ok(())
        } else {
            sink(member.get_ref())
        };
        member.get_mut().clear();
        given
    }

    /// Checks length and checksum.
    fn end(mut member: GzDecoder<Vec<u8>>, sink: &mut Sink<'_>) -> Result<(), CodingError> {
        let ended = member.try_finish();
        Self::give(&mut member, sink)?;
        ended.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => CodingError::Truncated { coding: Self::NAME },
            _ => corrupt(Self::NAME, error),
        })
    }
}

impl Codec for Gzip {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), CodingError> {
        while !input.is_empty() && !self.padding {
            let member = self
                .member
                .get_or_insert_with(|| GzDecoder::new(Vec::new()));
            let taken = member
                .write(input)
                .map_err(|error| corrupt(Self::NAME, error))?;
            Self::give(member, sink)?;
            input = input.get(taken..).unwrap_or_default();
            if taken == 0 {
                // The member ended before this byte.
                if let Some(member) = self.member.take() {
                    Self::end(member, sink)?;
                }
                self.padding = !input.starts_with(b"\x1F");
            }
        }
        if let Some(member) = &mut self.member {
            member.flush().map_err(|error| corrupt(Self::NAME, error))?;
            Self::give(member, sink)?;
        }
        Ok(())
    }

    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), CodingError> {
        self.member
            .take()
            .map_or(Ok(()), |member| Self::end(member, sink))
    }
}

/// `deflate` as HTTP means it (zlib) and as some servers send it (raw); the first two bytes tell.
#[derive(Default)]
pub(super) struct Deflate {
    head: Vec<u8>,
    state: Option<Decompress>,
    ended: bool,
}

impl Deflate {
    const NAME: &str = "deflate";

    /// Method 8 and a check sum that fits. Raw data that looks like it would begin with a stored block whose padding bits
    /// are set, which no encoder writes.
    fn is_zlib(head: &[u8]) -> bool {
        matches!(head, [method, flags, ..] if method & 0x0F == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0)
    }

    fn inflate(
        state: &mut Decompress,
        mut input: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<bool, CodingError> {
        let mut piece = [0; PIECE];
        loop {
            let (taken, given) = (state.total_in(), state.total_out());
            let status = state
                .decompress(input, &mut piece, FlushDecompress::None)
                .map_err(|error| corrupt(Self::NAME, error))?;
            let (taken, given) = (
                length(state.total_in() - taken),
                length(state.total_out() - given),
            );
            if given > 0 {
                sink(piece.get(..given).unwrap_or_default())?;
            }
            input = input.get(taken..).unwrap_or_default();
            match status {
                Status::StreamEnd => return Ok(true),
                // Output may be pending after a short piece, too: only a step without effect ends the input.
                _ if taken > 0 || given > 0 => {}
                _ if input.is_empty() => return Ok(false),
                _ => return Err(corrupt(Self::NAME, "no progress")),
            }
        }
    }
}

impl Codec for Deflate {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), CodingError> {
        if self.ended {
            return Ok(());
        }
        let Self { head, state, ended } = self;
        if state.is_none() {
            let (start, rest) = input.split_at(input.len().min(2 - head.len()));
            head.extend_from_slice(start);
            input = rest;
            if head.len() < 2 {
                return Ok(());
            }
            *ended = Self::inflate(
                state.insert(Decompress::new(Self::is_zlib(head))),
                head,
                sink,
            )?;
        }
        if let (Some(state), false) = (state, *ended) {
            *ended = Self::inflate(state, input, sink)?;
        }
        Ok(())
    }

    fn finish(&mut self, _sink: &mut Sink<'_>) -> Result<(), CodingError> {
        if self.ended {
            Ok(())
        } else {
            Err(CodingError::Truncated { coding: Self::NAME })
        }
    }
}

/// Brotli; windows up to 16 MiB, as the content coding allows.
pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    ended: bool,
}

impl Default for Brotli {
    fn default() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            ended: false,
        }
    }
}

impl Brotli {
    const NAME: &str = "br";
}

impl Codec for Brotli {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn push(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<(), CodingError> {
        let mut piece = [0; PIECE];
        let (mut left, mut offset, mut total) = (input.len(), 0, 0);
        while !self.ended {
            let (mut room, mut given) = (piece.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut offset,
                input,
                &mut room,
                &mut given,
                &mut piece,
                &mut total,
                &mut self.state,
            );
            if given > 0 {
                sink(piece.get(..given).unwrap_or_default())?;
            }
            match result {
                BrotliResult::NeedsMoreInput if given == 0 => return Ok(()),
                // It also asks for input when the piece came out full and more is pending.
                BrotliResult::NeedsMoreOutput | BrotliResult::NeedsMoreInput => {}
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::ResultFailure => {
                    return Err(corrupt(
                        Self::NAME,
                        format_args!("{:?}", self.state.error_code),
                    ));
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _sink: &mut Sink<'_>) -> Result<(), CodingError> {
        if self.ended {
            Ok(())
        } else {
            Err(CodingError::Truncated { coding: Self::NAME })
        }
    }
}

/// Zstandard, frames one after the other.
pub(super) struct Zstd {
    decoder: Decoder<'static>,
    in_frame: bool,
}

impl Zstd {
    const NAME: &str = "zstd";

    /// RFC 9659: the content coding uses windows of 8 MiB at most. More would be memory at the peer's choice.
    const WINDOW_LOG_MAX: u32 = 23;

    pub(super) fn new() -> Option<Self> {
        let mut decoder = Decoder::new().ok()?;
        decoder
            .set_parameter(DParameter::WindowLogMax(Self::WINDOW_LOG_MAX))
            .ok()?;
        Some(Self {
            decoder,
            in_frame: false,
        })
    }
}

impl Codec for Zstd {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn push(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), CodingError> {
        let mut piece = [0; PIECE];
        let mut full = false;
        while !input.is_empty() || (full && self.in_frame) {
            let step = self
                .decoder
                .run_on_buffers(input, &mut piece)
                .map_err(|error| corrupt(Self::NAME, error))?;
            if step.bytes_written > 0 {
                sink(piece.get(..step.bytes_written).unwrap_or_default())?;
            }
            input = input.get(step.bytes_read..).unwrap_or_default();
            full = step.bytes_written == piece.len();
            self.in_frame = step.remaining > 0;
        }
        Ok(())
    }

    fn finish(&mut self, _sink: &mut Sink<'_>) -> Result<(), CodingError> {
        if self.in_frame {
            Err(CodingError::Truncated { coding: Self::NAME })
        } else {
            Ok(())
        }
    }
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
