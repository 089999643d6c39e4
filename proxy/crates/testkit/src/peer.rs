//! One end of a TCP connection that speaks HTTP/1.1 by hand: a test sees and sends every byte.
//!
//! No mock crate can send half an event, stall or reset; this can, because nothing but the test decides when bytes go.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest wait for anything the other side is to do; what takes longer has gone wrong.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A connection and what was read ahead on it.
#[derive(Debug)]
pub struct Peer {
    tcp: TcpStream,
    buffer: BytesMut,
}

/// How a connection was closed by the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// With a FIN.
    Ended,
    /// With a RST.
    Reset,
}

/// A message's head, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Request or status line, without its line end.
    pub line: String,
    /// Fields in order, names as spelt.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// Parses what ends with a blank line.
    ///
    /// # Errors
    /// Not a head.
    pub fn parse(raw: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(raw);
        let mut lines = text.split("\r\n");
        let line = lines.next().context("no first line")?.to_owned();
        let fields = lines
            .take_while(|line| !line.is_empty())
            .map(|line| {
                let (name, value) = line
                    .split_once(':')
                    .with_context(|| format!("no colon in {line:?}"))?;
                Ok((name.to_owned(), value.trim().to_owned()))
            })
            .collect::<Result<_>>()?;
        Ok(Self { line, fields })
    }

    /// The values of a field, any case of its name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self
            .fields
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a field.
    pub fn one(&self, name: &str) -> Option<&str> {
        match self.all(name).as_slice() {
            [value] => Some(value),
            _ => None,
        }
    }

    /// The status of a response.
    pub fn status(&self) -> u16 {
        self.line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }

    fn chunked(&self) -> bool {
        self.all("transfer-encoding")
            .last()
            .is_some_and(|coding| coding.ends_with("chunked"))
    }
}

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its head.
    pub head: Head,
    /// Its body, without framing.
    pub body: Vec<u8>,
    /// Trailer fields of a chunked body.
    pub trailers: Vec<(String, String)>,
}

impl Peer {
    /// Takes a connected socket.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn new(tcp: TcpStream) -> Result<Self> {
        tcp.set_nodelay(true)?;
        Ok(Self {
            tcp,
            buffer: BytesMut::new(),
        })
    }

    /// Connects.
    ///
    /// # Errors
    /// Nobody listens.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    /// The socket, for options.
    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The other side is gone.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        Ok(
            tokio::time::timeout(PATIENCE, self.tcp.write_all(bytes.as_ref()))
                .await
                .context("send takes too long")??,
        )
    }

    /// Sends one chunk of a chunked body.
    ///
    /// # Errors
    /// The other side is gone.
    pub async fn send_chunk(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let bytes = bytes.as_ref();
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.send(chunk).await
    }

    /// Reads once. False: the other side ended.
    ///
    /// # Errors
    /// A reset, or nothing for too long.
    pub async fn read_more(&mut self) -> Result<bool> {
        let read = tokio::time::timeout(PATIENCE, self.tcp.read_buf(&mut self.buffer)).await;
        Ok(read.with_context(|| format!("nothing more came after {:?}", self.buffer))?? > 0)
    }

    /// Takes what was read so far.
    pub fn take(&mut self) -> Vec<u8> {
        self.buffer.split().to_vec()
    }

    /// Exactly `n` bytes.
    ///
    /// # Errors
    /// The other side ended before.
    pub async fn read_exact(&mut self, n: usize) -> Result<Vec<u8>> {
        while self.buffer.len() < n {
            if !self.read_more().await? {
                bail!(
                    "ended after {} of {n} bytes: {:?}",
                    self.buffer.len(),
                    self.buffer
                );
            }
        }
        Ok(self.buffer.split_to(n).to_vec())
    }

    /// Everything up to and with `end`.
    ///
    /// # Errors
    /// The other side ended before.
    pub async fn read_until(&mut self, end: &[u8]) -> Result<Vec<u8>> {
        let mut from = 0;
        loop {
            if let Some(at) = memchr::memmem::find(self.buffer.get(from..).unwrap_or_default(), end)
            {
                return Ok(self.buffer.split_to(from + at + end.len()).to_vec());
            }
            from = self.buffer.len().saturating_sub(end.len());
            if !self.read_more().await? {
                bail!(
                    "ended before {:?}: {:?}",
                    String::from_utf8_lossy(end),
                    self.buffer
                );
            }
        }
    }

    /// A head, raw.
    ///
    /// # Errors
    /// The other side ended before.
    pub async fn read_raw_head(&mut self) -> Result<Vec<u8>> {
        self.read_until(b"\r\n\r\n").await
    }

    /// A head.
    ///
    /// # Errors
    /// The other side ended before, or it is none.
    pub async fn read_head(&mut self) -> Result<Head> {
        Head::parse(&self.read_raw_head().await?)
    }

    /// One chunk of a chunked body; empty: the last.
    ///
    /// # Errors
    /// The other side ended before, or it is none.
    pub async fn read_chunk(&mut self) -> Result<Vec<u8>> {
        let line = self.read_until(b"\r\n").await?;
        let text = String::from_utf8_lossy(&line);
        let size = usize::from_str_radix(text.trim(), 16)
            .with_context(|| format!("not a chunk size: {text:?}"))?;
        if size == 0 {
            return Ok(Vec::new());
        }
        let chunk = self.read_exact(size).await?;
        anyhow::ensure!(
            self.read_exact(2).await? == b"\r\n",
            "a chunk without its end"
        );
        Ok(chunk)
    }

    /// A whole request or response, by its framing; a response without one is read to the end of the connection.
    ///
    /// # Errors
    /// The other side ended before.
    pub async fn read_message(&mut self) -> Result<Message> {
        let head = self.read_head().await?;
        self.read_body(head).await
    }

    /// The rest of a message whose head was read.
    ///
    /// # Errors
    /// The other side ended before.
    pub async fn read_body(&mut self, head: Head) -> Result<Message> {
        let mut message = Message {
            head,
            body: Vec::new(),
            trailers: Vec::new(),
        };
        let status = if message.head.line.starts_with("HTTP/") {
            message.head.status()
        } else {
            0
        };
        if matches!(status, 100..=199 | 204 | 304) {
            return Ok(message);
        }
        if message.head.chunked() {
            loop {
                let chunk = self.read_chunk().await?;
                if chunk.is_empty() {
                    break;
                }
                message.body.extend_from_slice(&chunk);
            }
            loop {
                let line = self.read_until(b"\r\n").await?;
                let text = String::from_utf8_lossy(&line);
                let Some((name, value)) = text.trim().split_once(':') else {
                    break;
                };
                message
                    .trailers
                    .push((name.to_owned(), value.trim().to_owned()));
            }
        } else if let Some(length) = message.head.one("content-length") {
            message.body = self.read_exact(length.parse()?).await?;
        } else if status != 0 {
            message.body = self.read_to_end().await?;
        }
        Ok(message)
    }

    /// All up to the end of the connection.
    ///
    /// # Errors
    /// A reset.
    pub async fn read_to_end(&mut self) -> Result<Vec<u8>> {
        while self.read_more().await? {}
        Ok(self.take())
    }

    /// Waits until the other side closes. What it still sends is thrown away.
    ///
    /// # Errors
    /// It does not, for too long.
    pub async fn closed(&mut self) -> Result<Closed> {
        loop {
            self.buffer.advance(self.buffer.len());
            match tokio::time::timeout(PATIENCE, self.tcp.read_buf(&mut self.buffer)).await {
                Err(_) => bail!("still open"),
                Ok(Ok(0)) => return Ok(Closed::Ended),
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return Ok(Closed::Reset),
            }
        }
    }

    /// Closes the sending side only.
    ///
    /// # Errors
    /// The socket is gone.
    pub async fn finish(&mut self) -> Result<()> {
        Ok(self.tcp.shutdown().await?)
    }

    /// Resets the connection.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn reset(self) -> Result<()> {
        Ok(self.tcp.set_zero_linger()?)
    }
}
