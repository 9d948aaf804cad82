//! Which version of HTTP a client speaks: told by the first bytes that it sends. Nothing is judged further than that.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// How every connection of HTTP/2 with prior knowledge begins (RFC 9113 section 3.4). No method of HTTP/1 begins like that: `PRI` is
/// reserved for it (RFC 9113 section 11.6).
const PREFACE: [u8; 3] = *b"PRI";

/// What was read to tell the version, which belongs to what the client has to say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ahead {
    bytes: [u8; PREFACE.len()],
    /// Of these bytes, from where to where they were not handed out yet.
    from: u8,
    to: u8,
}

/// The versions that are spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Reads until it is clear. A client that sends nothing more is left to whoever cares for such clients.
pub(super) async fn told(stream: &mut TcpStream) -> io::Result<(Spoken, Ahead)> {
    let mut ahead = Ahead::default();
    loop {
        let (known, rest) = ahead.bytes.split_at_mut(usize::from(ahead.to));
        if !PREFACE.starts_with(known) {
            return Ok((Spoken::Http1, ahead));
        }
        if rest.is_empty() {
            return Ok((Spoken::Http2, ahead));
        }
        let read = stream.read(rest).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // At most three.
        ahead.to += u8::try_from(read).unwrap_or(0);
    }
}

impl Ahead {
    /// Takes what fits into so many bytes; nothing once all of it is taken.
    pub(super) fn take(&mut self, room: usize) -> &[u8] {
        let from = usize::from(self.from);
        let to = usize::from(self.to).min(from.saturating_add(room));
        // Never more than three.
        self.from = u8::try_from(to).unwrap_or(self.to);
        &self.bytes[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    /// What a client that sends these pieces, one after the other, is taken for, and what is handed on.
    async fn taken_for(pieces: &[&[u8]]) -> (io::Result<Spoken>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        client.set_nodelay(true).unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let sending = async {
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            client.shutdown().await.unwrap();
        };
        let (told, ()) = tokio::join!(told(&mut server), sending);
        match told {
            Ok((spoken, mut ahead)) => {
                let mut all = [ahead.take(1).to_vec(), ahead.take(9).to_vec(), ahead.take(9).to_vec()].concat();
                server.read_to_end(&mut all).await.unwrap();
                (Ok(spoken), all)
            }
            Err(error) => (Err(error), Vec::new()),
        }
    }

    #[tokio::test]
    async fn told_by_the_first_bytes_which_are_not_lost() {
        let cases: [(&[&[u8]], Spoken); 6] = [
            (&[b"GET / HTTP/1.1\r\n"], Spoken::Http1),
            (&[b"P", b"UT /"], Spoken::Http1),
            (&[b"P", b"R", b"OPFIND /"], Spoken::Http1),
            (&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], Spoken::Http2),
            (&[b"P", b"R", b"I * HTTP/2.0"], Spoken::Http2),
            (&[b"\x16\x03\x01"], Spoken::Http1),
        ];
        for (pieces, expected) in cases {
            let (told, all) = taken_for(pieces).await;
            assert_eq!(told.unwrap(), expected);
            assert_eq!(all, pieces.concat());
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_before_is_an_error() {
        for pieces in [&[][..], &[&b"PR"[..]]] {
            assert_eq!(taken_for(pieces).await.0.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
