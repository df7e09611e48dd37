//! The event stream in which providers send a reply piece by piece (server-sent events). No I/O: bytes
//! go in as the network gives them, cut anywhere, and events come out.

use std::ops::Range;

use memchr::memchr2;

/// An event has at most so many bytes: nobody sends more, and nobody shall fill the memory.
const MOST: usize = 64 << 20;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty where the provider gives none.
    pub name: &'a str,
    /// Its data, lines joined by line feeds.
    pub data: &'a str,
}

/// Why a stream is no event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// An event without end.
    #[error("an event of the stream has more than {} MB", MOST >> 20)]
    TooLong,
    /// Text that is none.
    #[error("the stream is not valid UTF-8")]
    NotText,
}

/// Reads events out of bytes.
///
/// ```
/// use longhaul_model::EventStream;
/// let mut stream = EventStream::default();
/// let mut seen = Vec::new();
/// for bytes in ["event: ping\nda", "ta: {}\n", "\ndata: a\r\ndata: b\r\n\r\n"] {
///     stream.push(bytes.as_bytes());
///     while let Some(event) = stream.next_event()? {
///         seen.push((event.name.to_owned(), event.data.to_owned()));
///     }
/// }
/// assert_eq!(seen, [("ping".to_owned(), "{}".to_owned()), (String::new(), "a\nb".to_owned())]);
/// # Ok::<(), longhaul_model::StreamError>(())
/// ```
#[derive(Debug, Default)]
pub struct EventStream {
    bytes: Vec<u8>,
    /// Bytes before this one were read.
    read: usize,
    /// Bytes before this one hold no end of a line that was not read.
    looked: usize,
    /// The stream has begun: a byte order mark is no longer one.
    begun: bool,
    /// A line feed here belongs to the carriage return before it.
    after_return: bool,
    event: Pending,
}

/// The event whose lines are being read.
#[derive(Debug, Default)]
struct Pending {
    name: String,
    data: String,
    has_data: bool,
    /// Its empty line has come.
    whole: bool,
}

impl EventStream {
    /// Takes in what the network gave.
    pub fn push(&mut self, bytes: &[u8]) {
        // What was read goes before it is more than what is kept.
        if self.read > 0 && self.read >= self.bytes.len() / 2 {
            self.bytes.drain(..self.read);
            (self.looked, self.read) = (self.looked - self.read, 0);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event that is whole; `None` if more bytes are needed. What stands behind the last empty
    /// line when the stream ends is no event.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, StreamError> {
        if self.event.whole {
            self.event.clear();
        }
        while let Some(line) = self.next_line() {
            let text = std::str::from_utf8(&self.bytes[line]).map_err(|_| StreamError::NotText)?;
            let ends = self.event.line(text);
            if self.event.data.len() > MOST {
                return Err(StreamError::TooLong);
            }
            if ends {
                let Pending { name, data, .. } = &self.event;
                return Ok(Some(Event { name, data }));
            }
        }
        if self.bytes.len() - self.read > MOST {
            return Err(StreamError::TooLong);
        }
        Ok(None)
    }

    /// Where the next line stands, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if !self.begun {
            const MARK: &[u8] = b"\xEF\xBB\xBF";
            let start = &self.bytes[..self.bytes.len().min(MARK.len())];
            if start == MARK {
                self.read = MARK.len();
            } else if MARK.starts_with(start) {
                return None;
            }
            self.begun = true;
        }
        if self.after_return && self.read < self.bytes.len() {
            self.after_return = false;
            self.read += usize::from(self.bytes[self.read] == b'\n');
        }
        let from = self.looked.max(self.read);
        let Some(found) = memchr2(b'\n', b'\r', &self.bytes[from..]) else {
            self.looked = self.bytes.len();
            return None;
        };
        let line = self.read..from + found;
        self.after_return = self.bytes[line.end] == b'\r';
        self.read = line.end + 1;
        self.looked = self.read;
        Some(line)
    }
}

impl Pending {
    fn clear(&mut self) {
        (self.has_data, self.whole) = (false, false);
        self.name.clear();
        self.data.clear();
    }

    /// Takes in a line; true if the event is whole.
    fn line(&mut self, line: &str) -> bool {
        if line.is_empty() {
            // An event without data is none.
            self.whole = self.has_data;
            if !self.has_data {
                self.name.clear();
            }
            return self.whole;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // A comment, an id, a time to wait: nothing that a reply needs.
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All events of bytes that come in pieces of these sizes, over and over.
    fn events(bytes: &[u8], pieces: &[usize]) -> Result<Vec<(String, String)>, StreamError> {
        let (mut stream, mut seen, mut rest) = (EventStream::default(), Vec::new(), bytes);
        for size in pieces.iter().cycle() {
            let (piece, more) = rest.split_at((*size).clamp(1, rest.len().max(1)).min(rest.len()));
            stream.push(piece);
            while let Some(event) = stream.next_event()? {
                seen.push((event.name.to_owned(), event.data.to_owned()));
            }
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
        Ok(seen)
    }

    fn all(text: &str) -> Vec<(String, String)> {
        events(text.as_bytes(), &[text.len()]).unwrap()
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn lines_end_in_three_ways_and_comments_are_nothing() {
        let want = [event("a", "1"), event("", "2\n3")];
        for end in ["\n", "\r\n", "\r"] {
            let text = ": hello\nevent: a\ndata: 1\n\n: ping\n\nid: 7\ndata:2\ndata: 3\nretry: 5\n\n";
            assert_eq!(all(&text.replace('\n', end)), want, "{end:?}");
        }
    }

    #[test]
    fn what_is_no_event_is_none() {
        assert_eq!(all("event: a\n\n"), []);
        assert_eq!(all("data: cut off"), []);
        assert_eq!(all("data: cut off\n"), []);
        assert_eq!(all("data\n\n"), [event("", "")]);
        assert_eq!(all("\u{feff}data: x\n\n"), [event("", "x")]);
        assert_eq!(all("data: \u{feff}x\n\n"), [event("", "\u{feff}x")]);
        // The name of an event without data is not the name of the next.
        assert_eq!(all("event: a\n\ndata: x\n\n"), [event("", "x")]);
    }

    #[test]
    fn text_that_is_none_is_an_error() {
        assert_eq!(events(b"data: \xff\n\n", &[3]), Err(StreamError::NotText));
    }

    #[test]
    fn an_event_without_end_is_an_error() {
        let mut stream = EventStream::default();
        let line = vec![b'x'; 1 << 20];
        let ended = (0..100).find_map(|_| {
            stream.push(&line);
            stream.next_event().err()
        });
        assert_eq!(ended, Some(StreamError::TooLong));
    }

    proptest! {
        /// Where the network cuts does not matter.
        #[test]
        fn pieces_of_any_size_give_the_same(
            lines in prop::collection::vec(("(data|event|id|)(: ?|)", "[a-zé中😀 :]{0,9}", "(\n|\r\n|\r)(\n|\r\n|)"), 0..30),
            pieces in prop::collection::vec(1usize..9, 1..9),
        ) {
            let text: String = lines.into_iter().map(|(field, value, end)| field + &value + &end).collect();
            prop_assert_eq!(events(text.as_bytes(), &pieces).unwrap(), all(&text));
        }
    }
}
