//! HTTP/1.1 as far as the fake needs it: one request and one response for each connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::log::find;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) method: String,
    /// The path without its query.
    pub(crate) path: String,
    /// The headers, with names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// True if the request names this beta of Anthropic's API.
    pub(crate) fn has_beta(&self, beta: &str) -> bool {
        let values = self.headers.iter().filter(|(name, _)| name == "anthropic-beta");
        values.flat_map(|(_, value)| value.split(',')).any(|value| value.trim() == beta)
    }
}

/// The client went away.
#[derive(Debug)]
pub(crate) struct Left;

/// A connection with a client.
pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Each event goes out at once. Where that cannot be had, it goes out a little later.
        _ = stream.set_nodelay(true);
        Self { stream }
    }

    /// Reads the request; `None` if what comes is none.
    pub(crate) async fn receive(&mut self) -> Option<Received> {
        let mut bytes = Vec::new();
        let end = loop {
            match find_bytes(&bytes, b"\r\n\r\n") {
                Some(end) => break end,
                None => self.more(&mut bytes).await?,
            }
        };
        let mut rest = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes).ok()?;
        let mut received = head_of(&head)?;
        if received.header("transfer-encoding") == Some("chunked") {
            received.body = loop {
                match unchunked(&rest) {
                    Some(body) => break body,
                    None => self.more(&mut rest).await?,
                }
            };
            return Some(received);
        }
        let length = received.header("content-length").unwrap_or("0").parse().ok()?;
        while rest.len() < length {
            self.more(&mut rest).await?;
        }
        received.body = rest;
        Some(received)
    }

    async fn more(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        let read = self.stream.read_buf(bytes).await.ok()?;
        (read > 0).then_some(())
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Left> {
        self.stream.write_all(bytes).await.map_err(|_| Left)
    }

    /// Waits for so long, or until the client goes.
    pub(crate) async fn pause(&mut self, pause: Duration) -> Result<(), Left> {
        if pause.is_zero() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.until_left() => Err(Left),
        }
    }

    /// Waits until the client goes.
    pub(crate) async fn until_left(&mut self) {
        let mut bytes = [0; 1_024];
        while matches!(self.stream.read(&mut bytes).await, Ok(read) if read > 0) {}
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        // Without it the connection ends with a FIN, which is trouble enough.
        _ = self.stream.set_zero_linger();
    }
}

/// The head of a request.
fn head_of(head: &str) -> Option<Received> {
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let path = target.split('?').next().unwrap_or(target);
    let headers = lines.filter_map(|line| line.split_once(':'));
    Some(Received {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect(),
        body: Vec::new(),
    })
}

/// A body that came in chunks; `None` if it is not whole, or none.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find_bytes(bytes, b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        let chunk = bytes.get(end + 2..end + 2 + size)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(chunk);
        bytes = bytes.get(end + 2 + size + 2..)?;
    }
}

fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The words of a status line.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        529 => "Site is overloaded",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = "POST /v1/messages?beta=true HTTP/1.1\r\nX-Api-Key:  k \r\nnonsense\r\n\r\n";
        let received = head_of(head).unwrap();
        assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/v1/messages"));
        assert_eq!(received.headers, [("x-api-key".to_owned(), "k".to_owned())]);
        assert_eq!(head_of("nonsense\r\n\r\n"), None);
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(unchunked(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n").unwrap(), b"abcde");
        assert_eq!(unchunked(b"3\r\nabc\r\n2\r\nd"), None);
        assert_eq!(unchunked(b"3\r\nabc\r\n"), None);
    }
}
