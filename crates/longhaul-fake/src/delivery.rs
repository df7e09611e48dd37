//! A response on its way: which bytes, in which pieces, after which pauses, and how it ends. Here trouble
//! becomes bytes.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::api::{Protocol, Said, Written};
use crate::http::{Connection, Left, reason};
use crate::log::Outcome;
use crate::trouble::{Close, Trouble};

/// A response on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// 0 if not even a head is sent.
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    framing: Framing,
    pieces: Vec<Vec<u8>>,
    /// The pause before the first byte.
    first: Duration,
    /// The pause before each piece after the first.
    between: Duration,
    ending: Ending,
}

/// How the client knows where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Proper,
    Early(Close),
    /// Nothing more comes, and the connection stays open.
    Silence,
    /// This comes again and again.
    Repeated(&'static str, Duration),
}

/// A body that is not streamed goes out in so many pieces.
const PIECES: usize = 4;

const PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body>\r\n</html>";

impl Delivery {
    /// A body that is known from the beginning.
    pub(crate) fn whole(status: u16, kind: &str, body: Vec<u8>) -> Self {
        let size = body.len().div_ceil(PIECES).max(1);
        Self {
            status,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            framing: Framing::Length(body.len()),
            pieces: body.chunks(size).map(<[u8]>::to_vec).collect(),
            first: Duration::ZERO,
            between: Duration::ZERO,
            ending: Ending::Proper,
        }
    }

    /// A body of JSON.
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::whole(status, "application/json", body.to_string().into_bytes())
    }

    /// An error as an API writes it.
    pub(crate) fn error(protocol: &dyn Protocol, status: u16, said: &Said) -> Self {
        Self::json(status, &protocol.error(said))
    }

    /// A page for a browser.
    pub(crate) fn page() -> Self {
        Self::whole(502, "text/html", PAGE.into())
    }

    /// The events of a stream.
    pub(crate) fn stream(events: Vec<String>) -> Self {
        Self {
            framing: Framing::Chunks,
            pieces: events.into_iter().map(String::into_bytes).collect(),
            ..Self::whole(200, "text/event-stream; charset=utf-8", Vec::new())
        }
    }

    /// An answer, with what this trouble does to it.
    pub(crate) fn answer(protocol: &dyn Protocol, written: &Written<'_>, trouble: Option<&Trouble>) -> Self {
        let delivery = match written.asked["stream"] == true {
            true => Self::stream(streamed(protocol, written, trouble)),
            false => whole(protocol, written, trouble),
        };
        match trouble {
            Some(trouble) => delivery.with(trouble),
            None => delivery,
        }
    }

    /// The response with this header, in the place of any other of that name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The response with a pause before each piece after the first.
    pub(crate) fn paused(self, between: Duration) -> Self {
        Self { between, ..self }
    }

    /// The response with what trouble does to the way in which it is sent.
    fn with(mut self, trouble: &Trouble) -> Self {
        let last = self.pieces.len().saturating_sub(1);
        match trouble {
            Trouble::Slow { first, between } => Self { first: *first, between: *between, ..self },
            Trouble::Hang => Self { status: 0, ending: Ending::Silence, ..self },
            Trouble::Close => Self { status: 0, ending: Ending::Early(Close::Fin), ..self },
            Trouble::HangAfter(after) => {
                self.pieces.truncate((*after).min(last));
                Self { ending: Ending::Silence, ..self }
            }
            Trouble::Cut { after, close } => {
                self.pieces.truncate((*after).min(last));
                Self { ending: Ending::Early(*close), ..self }
            }
            Trouble::CommentsOnly { every } => {
                let comment = if self.framing == Framing::Chunks { ": keep-alive\n\n" } else { " " };
                let ending = Ending::Repeated(comment, *every);
                Self { framing: Framing::Chunks, pieces: Vec::new(), ending, ..self }
            }
            Trouble::StaysOpen => Self { ending: Ending::Silence, ..self },
            Trouble::Split(bytes) => {
                let pieces = self.pieces.concat().chunks((*bytes).max(1)).map(<[u8]>::to_vec).collect();
                Self { framing: Framing::Chunks, pieces, ..self }
            }
            _ => self,
        }
    }

    /// Sends the response and ends the connection.
    pub(crate) async fn send(self, mut connection: Connection) -> Outcome {
        let ending = self.ending;
        match self.send_pieces(&mut connection).await {
            Err(Left) => return Outcome::Left,
            Ok(()) if ending == Ending::Silence => {
                connection.until_left().await;
                return Outcome::Left;
            }
            Ok(()) => {}
        }
        if ending == Ending::Early(Close::Reset) {
            connection.reset();
        }
        Outcome::Said
    }

    async fn send_pieces(&self, connection: &mut Connection) -> Result<(), Left> {
        if self.status == 0 {
            return Ok(());
        }
        connection.pause(self.first).await?;
        connection.send(self.head().as_bytes()).await?;
        for (at, piece) in self.pieces.iter().enumerate() {
            if at > 0 {
                connection.pause(self.between).await?;
            }
            connection.send(&self.framed(piece)).await?;
        }
        if let Ending::Repeated(comment, every) = self.ending {
            loop {
                connection.send(&self.framed(comment.as_bytes())).await?;
                connection.pause(every).await?;
            }
        }
        match (self.framing, self.ending) {
            (Framing::Chunks, Ending::Proper) => connection.send(b"0\r\n\r\n").await,
            _ => Ok(()),
        }
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\nconnection: close\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match self.framing {
            Framing::Length(length) => head + &format!("content-length: {length}\r\n\r\n"),
            Framing::Chunks => head + "transfer-encoding: chunked\r\n\r\n",
        }
    }

    fn framed(&self, piece: &[u8]) -> Vec<u8> {
        match self.framing {
            Framing::Length(_) => piece.to_vec(),
            Framing::Chunks => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
        }
    }
}

/// What a provider says when it fails in the middle of an answer.
fn overloaded(protocol: &dyn Protocol) -> Said {
    protocol.status(529, "", "")
}

/// The events of an answer, with what trouble does to them.
fn streamed(protocol: &dyn Protocol, written: &Written<'_>, trouble: Option<&Trouble>) -> Vec<String> {
    let mut events = protocol.events(written);
    let last = events.len().saturating_sub(1);
    match trouble {
        Some(Trouble::NoClosingEvent) => events.retain(|event| !event.closes),
        Some(Trouble::ErrorEvent { after }) => {
            events.truncate((*after).min(last));
            events.push(protocol.error_event(&overloaded(protocol)));
        }
        _ => {}
    }
    match trouble {
        Some(Trouble::CrLf) => {
            let ping = protocol.ping().map(|ping| ping.text("\r\n")).unwrap_or_default();
            let quiet = format!(": keep-alive\r\n\r\n{ping}");
            events.iter().map(|event| quiet.clone() + &event.text("\r\n")).collect()
        }
        Some(Trouble::BrokenJson { after }) => {
            let at = (*after).min(last);
            let text = |(n, event): (usize, &crate::api::Event)| match n == at {
                true => event.broken("\n"),
                false => event.text("\n"),
            };
            events.iter().enumerate().map(text).collect()
        }
        _ => events.iter().map(|event| event.text("\n")).collect(),
    }
}

/// The body of an answer, with what trouble does to it.
fn whole(protocol: &dyn Protocol, written: &Written<'_>, trouble: Option<&Trouble>) -> Delivery {
    let body = protocol.whole(written);
    let mut bytes = body.to_string().into_bytes();
    match trouble {
        Some(Trouble::ErrorEvent { .. }) => Delivery::error(protocol, 200, &overloaded(protocol)),
        Some(Trouble::BrokenJson { .. } | Trouble::NoClosingEvent) => {
            bytes.truncate(bytes.len() / 2);
            Delivery::whole(200, "application/json", bytes)
        }
        Some(Trouble::CrLf) => {
            Delivery::whole(200, "application/json", [b"\r\n".as_slice(), &bytes].concat())
        }
        Some(Trouble::Gzip) => {
            Delivery::whole(200, "application/json", compressed(bytes)).header("content-encoding", "gzip")
        }
        _ => Delivery::whole(200, "application/json", bytes),
    }
}

fn compressed(bytes: Vec<u8>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // What is written into memory does not fail; if it did, the bytes would go out as they are.
    match encoder.write_all(&bytes).and_then(|()| encoder.finish()) {
        Ok(compressed) => compressed,
        Err(_) => bytes,
    }
}
