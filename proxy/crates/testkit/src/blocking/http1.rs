//! HTTP/1.1 read as bytes: a head is kept exactly as it came, a body is handed out as it arrives and says how it ended.

use std::io::{ErrorKind, Read};

use anyhow::{Context as _, bail, ensure};

/// Start line and fields, with the empty line that ends them.
#[derive(Clone, PartialEq, Eq)]
pub struct Head(Vec<u8>);

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Head {
    /// The bytes as they came.
    pub fn raw(&self) -> &[u8] {
        &self.0
    }

    /// The same as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    fn start(&self) -> String {
        self.text().lines().next().unwrap_or_default().to_owned()
    }

    /// Method of a request.
    pub fn method(&self) -> String {
        let start = self.start();
        start.split(' ').next().unwrap_or_default().to_owned()
    }

    /// Target of a request.
    pub fn target(&self) -> String {
        let start = self.start();
        start.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// Status of a response; 0 when there is none.
    pub fn status(&self) -> u16 {
        self.target().parse().unwrap_or_default()
    }

    /// All values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.text()
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    }

    /// First value of a field.
    pub fn field(&self, name: &str) -> Option<String> {
        self.all(name).into_iter().next()
    }

    /// Names and values in order; names in lower case, since their case means nothing.
    pub fn fields(&self) -> Vec<(String, String)> {
        self.text()
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect()
    }
}

/// What a body gives next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes without their framing.
    Data(Vec<u8>),
    /// It ended as its framing says.
    End,
    /// It broke off.
    Broken(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Over,
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
    Close,
}

/// Reads heads and bodies off a connection.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    framing: Framing,
    trailers: Vec<String>,
}

const LARGEST_HEAD: usize = 1 << 20;

impl<R: Read> Reader<R> {
    /// Nothing read yet.
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            framing: Framing::Over,
            trailers: Vec::new(),
        }
    }

    /// The next head; none when the connection ended before its first byte.
    ///
    /// # Errors
    /// It broke off inside the head, or nothing came in time.
    pub fn head(&mut self) -> anyhow::Result<Option<Head>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = Head(self.buffer.drain(..end + 4).collect());
                self.trailers.clear();
                return Ok(Some(head));
            }
            ensure!(self.buffer.len() < LARGEST_HEAD, "a head without end");
            if !self.more().context("while waiting for a head")? {
                ensure!(self.buffer.is_empty(), "the head broke off");
                return Ok(None);
            }
        }
    }

    /// From here on a request's body follows.
    pub fn request_body(&mut self, head: &Head) {
        self.framing = explicit(head).unwrap_or(Framing::Over);
    }

    /// From here on a response's body follows.
    pub fn response_body(&mut self, head: &Head, to_head_request: bool) {
        let bodyless = to_head_request || matches!(head.status(), 100..=199 | 204 | 304);
        self.framing = if bodyless {
            Framing::Over
        } else {
            explicit(head).unwrap_or(Framing::Close)
        };
    }

    /// The next bytes of the body, as soon as there are any.
    ///
    /// # Errors
    /// Nothing came in time, or it is not HTTP.
    pub fn piece(&mut self) -> anyhow::Result<Piece> {
        loop {
            match self.framing {
                Framing::Over | Framing::Length(0) => {
                    self.framing = Framing::Over;
                    return Ok(Piece::End);
                }
                Framing::Length(left) | Framing::ChunkData(left) if !self.buffer.is_empty() => {
                    let take = usize::try_from(left)
                        .map_or(self.buffer.len(), |left| left.min(self.buffer.len()));
                    let data: Vec<u8> = self.buffer.drain(..take).collect();
                    let left = left - take as u64;
                    self.framing = match self.framing {
                        Framing::Length(_) => Framing::Length(left),
                        _ if left == 0 => Framing::ChunkEnd,
                        _ => Framing::ChunkData(left),
                    };
                    return Ok(Piece::Data(data));
                }
                Framing::Close if !self.buffer.is_empty() => {
                    return Ok(Piece::Data(std::mem::take(&mut self.buffer)));
                }
                Framing::ChunkSize | Framing::ChunkEnd | Framing::Trailers => {
                    if let Some(line) = self.line() {
                        self.chunk_line(&line)?;
                        continue;
                    }
                }
                _ => {}
            }
            match self.more() {
                Ok(true) => {}
                Ok(false) if self.framing == Framing::Close => {
                    self.framing = Framing::Over;
                    return Ok(Piece::End);
                }
                Ok(false) => return Ok(Piece::Broken("the connection ended".to_owned())),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    bail!("no further byte of the body in time");
                }
                Err(error) => return Ok(Piece::Broken(error.to_string())),
            }
        }
    }

    /// Whether a body has begun and not ended.
    pub fn in_body(&self) -> bool {
        self.framing != Framing::Over
    }

    /// Trailer lines of the last body.
    pub fn trailers(&self) -> &[String] {
        &self.trailers
    }

    /// The connection itself.
    pub fn source(&self) -> &R {
        &self.source
    }

    fn chunk_line(&mut self, line: &str) -> anyhow::Result<()> {
        self.framing = match self.framing {
            Framing::ChunkSize => {
                let size = line.split(';').next().unwrap_or_default().trim();
                match u64::from_str_radix(size, 16)
                    .with_context(|| format!("chunk size {line:?}"))?
                {
                    0 => Framing::Trailers,
                    size => Framing::ChunkData(size),
                }
            }
            Framing::ChunkEnd => {
                ensure!(line.is_empty(), "a chunk is followed by {line:?}");
                Framing::ChunkSize
            }
            _ if line.is_empty() => Framing::Over,
            other => {
                self.trailers.push(line.to_owned());
                other
            }
        };
        Ok(())
    }

    fn line(&mut self) -> Option<String> {
        let end = find(&self.buffer, b"\r\n")?;
        let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    fn more(&mut self) -> std::io::Result<bool> {
        let mut part = [0; 16 * 1024];
        let n = self.source.read(&mut part)?;
        self.buffer
            .extend_from_slice(part.get(..n).unwrap_or_default());
        Ok(n > 0)
    }
}

fn explicit(head: &Head) -> Option<Framing> {
    if head
        .field("transfer-encoding")
        .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    {
        return Some(Framing::ChunkSize);
    }
    Some(Framing::Length(head.field("content-length")?.parse().ok()?))
}

/// Where `needle` begins in `hay`.
pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(hay, needle)
}
