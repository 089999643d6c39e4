//! A client on a plain TCP connection.

use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::http1::{Head, Piece, Reader, find};
use crate::process::PATIENCE;

/// The connection.
#[derive(Debug)]
pub struct Client {
    reader: Reader<TcpStream>,
    /// Body bytes that came and were not asked for yet.
    ahead: Vec<u8>,
}

/// A body and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its bytes without framing.
    pub bytes: Vec<u8>,
    /// Set when it broke off, with the reason.
    pub broken: Option<String>,
    /// Trailer lines.
    pub trailers: Vec<String>,
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Start line and fields.
    pub head: Head,
    /// What followed.
    pub body: Body,
}

impl Answer {
    /// Its status.
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body.bytes).into_owned()
    }
}

impl Client {
    /// A new connection.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            reader: Reader::new(stream),
            ahead: Vec::new(),
        })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The other side no longer takes any.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
        self.stream()
            .write_all(bytes.as_ref())
            .context("the client could not send")
    }

    /// Waits for the head of a response.
    ///
    /// # Errors
    /// None came.
    pub fn head(&mut self) -> anyhow::Result<Head> {
        let head = self
            .reader
            .head()?
            .context("the connection ended without an answer")?;
        self.ahead.clear();
        self.reader.response_body(&head, false);
        Ok(head)
    }

    /// Reads on in the body until `needle` has come; gives everything up to its end.
    ///
    /// # Errors
    /// The body ended before, or nothing came in time.
    pub fn until(&mut self, needle: &str) -> anyhow::Result<Vec<u8>> {
        loop {
            if let Some(at) = find(&self.ahead, needle.as_bytes()) {
                return Ok(self.ahead.drain(..at + needle.len()).collect());
            }
            match self.reader.piece() {
                Ok(Piece::Data(data)) => self.ahead.extend(data),
                other => bail!(
                    "waiting for {needle:?}: {other:?} after {:?}",
                    String::from_utf8_lossy(&self.ahead)
                ),
            }
        }
    }

    /// The next bytes of the body as they arrive, or its end.
    ///
    /// # Errors
    /// Nothing came in time.
    pub fn piece(&mut self) -> anyhow::Result<Piece> {
        if self.ahead.is_empty() {
            self.reader.piece()
        } else {
            Ok(Piece::Data(std::mem::take(&mut self.ahead)))
        }
    }

    /// The rest of the body, to its end.
    ///
    /// # Errors
    /// The end did not come in time.
    pub fn rest(&mut self) -> anyhow::Result<Body> {
        let mut bytes = std::mem::take(&mut self.ahead);
        let broken = loop {
            match self.reader.piece()? {
                Piece::Data(data) => bytes.extend(data),
                Piece::End => break None,
                Piece::Broken(why) => break Some(why),
            }
        };
        Ok(Body {
            bytes,
            broken,
            trailers: self.reader.trailers().to_vec(),
        })
    }

    /// The next whole response.
    ///
    /// # Errors
    /// It did not come in time.
    pub fn answer(&mut self) -> anyhow::Result<Answer> {
        let head = self.head()?;
        let body = self.rest()?;
        Ok(Answer { head, body })
    }

    /// The next response, which has no body because the request was HEAD.
    ///
    /// # Errors
    /// It did not come in time.
    pub fn answer_to_head(&mut self) -> anyhow::Result<Head> {
        let head = self.head()?;
        self.reader.response_body(&head, true);
        Ok(head)
    }

    /// Sends a request and waits for its whole response.
    ///
    /// # Errors
    /// There was none.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> anyhow::Result<Answer> {
        self.send(request)?;
        self.answer()
    }

    /// Checks that nothing comes for a while, neither a byte nor an end.
    ///
    /// # Errors
    /// Something came.
    pub fn quiet(&mut self, during: Duration) -> anyhow::Result<()> {
        ensure!(self.ahead.is_empty(), "bytes came: {:?}", self.ahead);
        self.stream().set_read_timeout(Some(during))?;
        let came = if self.reader.in_body() {
            self.reader.piece().map(|piece| format!("{piece:?}")).ok()
        } else {
            let mut byte = [0];
            let peeked = self.stream().peek(&mut byte);
            peeked.map(|n| format!("{n} bytes")).ok()
        };
        self.stream().set_read_timeout(Some(PATIENCE))?;
        match came {
            None => Ok(()),
            Some(came) => bail!("this came: {came}"),
        }
    }

    /// Waits longer than [`PATIENCE`] for what a busy machine has a lot of.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn patience(&self, patience: Duration) -> anyhow::Result<()> {
        self.stream().set_write_timeout(Some(patience))?;
        Ok(self.stream().set_read_timeout(Some(patience))?)
    }

    /// Ends the sending side only.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn close_sending(&self) -> anyhow::Result<()> {
        Ok(self.stream().shutdown(Shutdown::Write)?)
    }

    /// Ends the connection with a reset.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn reset(self) -> anyhow::Result<()> {
        Ok(socket2::SockRef::from(self.stream()).set_linger(Some(Duration::ZERO))?)
    }

    fn stream(&self) -> &TcpStream {
        self.reader.source()
    }
}
