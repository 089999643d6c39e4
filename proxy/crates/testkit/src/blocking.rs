//! A client and an upstream for tests that watch callbox as a process: they send and see exact bytes at the moment the
//! test says so, and block, with a deadline. The upstream hands out requests, not connections: which connection of its
//! pool callbox takes is its own business.

pub mod client;
pub mod h2;
pub mod http1;
pub mod upstream;

pub use client::{Answer, Body, Client};
pub use http1::{Head, Piece};
pub use upstream::{Asked, Upstream};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::Result;

    use super::{Client, Upstream};

    const POST: &str =
        "POST /a HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nhi";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    #[test]
    fn requests_are_handed_out_whatever_their_connection() -> Result<()> {
        let upstream = Upstream::start()?;
        let mut clients = [
            Client::connect(upstream.address())?,
            Client::connect(upstream.address())?,
        ];
        for at in [0, 1, 0] {
            let client = &mut clients[at];
            client.send(POST)?;
            let mut asked = upstream.next()?;
            assert_eq!(asked.head.raw(), &POST.as_bytes()[..POST.len() - 2]);
            assert_eq!(asked.head.all("x-a"), ["1", "2"]);
            assert_eq!(asked.body()?, b"hi");
            client.quiet(Duration::from_millis(20))?;
            asked.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nyo")?;
            assert_eq!(client.answer()?.text(), "yo");
        }
        assert_eq!((upstream.requests(), upstream.connections()), (3, 2));
        Ok(())
    }

    #[test]
    fn chunks_come_as_they_are_sent_and_ends_are_told_apart() -> Result<()> {
        let upstream = Upstream::start()?;
        let mut client = Client::connect(upstream.address())?;
        client.send(POST)?;
        let mut asked = upstream.next()?;
        asked.send(CHUNKED)?;
        asked.chunk("ab")?;
        asked.chunk("cd")?;
        client.head()?;
        assert_eq!(client.until("bc")?, b"abc");
        asked.send("0\r\nX-T: 1\r\n\r\n")?;
        let rest = client.rest()?;
        assert_eq!(rest.bytes, b"d");
        assert_eq!(rest.broken, None);
        assert_eq!(rest.trailers, ["X-T: 1"]);

        client.send(POST)?;
        let mut asked = upstream.next()?;
        asked.send(CHUNKED)?;
        asked.chunk("ab")?;
        client.head()?;
        client.until("ab")?;
        client.quiet(Duration::from_millis(20))?;
        asked.reset()?;
        assert!(client.rest()?.broken.is_some());
        Ok(())
    }

    #[test]
    fn a_client_that_leaves_is_seen() -> Result<()> {
        let upstream = Upstream::start()?;
        let mut client = Client::connect(upstream.address())?;
        client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nh")?;
        let asked = upstream.next()?;
        asked.body_has("h")?;
        assert!(!asked.is_closed());
        client.reset()?;
        asked.body_broken()?;
        asked.closed()?;
        Ok(())
    }
}
