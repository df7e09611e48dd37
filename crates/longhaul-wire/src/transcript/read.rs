//! A file or stream of lines, read one message at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use longhaul::Message;
use longhaul::conversation::Raw;

use crate::mended_surrogates;

use super::decode::{DecodeError, decode};

/// A line longer than this is skipped and said, not read: nobody's memory is filled by a file
/// that is something else.
pub const MAX_LINE: usize = 256 << 20;

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream itself failed. Nothing follows.
    #[error("line {line}: cannot be read: {source}")]
    Io {
        /// The line it failed in.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// The line is not a message. Reading goes on with the next one.
    #[error("line {line}: {source}")]
    Line {
        /// The line.
        line: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The line is not UTF-8. Reading goes on with the next one.
    #[error("line {line}: is not UTF-8 text")]
    NotText {
        /// The line.
        line: u64,
    },
    /// The line is too long. Reading goes on with the next one.
    #[error("line {line}: is longer than {} MiB, skipped", MAX_LINE >> 20)]
    TooLong {
        /// The line.
        line: u64,
    },
}

/// The last line, where it was not written to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its number.
    pub line: u64,
    /// How many bytes of it are there.
    pub bytes: usize,
}

/// Opens a file, gzip or plain: found by its first bytes, not by its name.
pub fn open(path: &Path) -> io::Result<Reader<Box<dyn BufRead + Send>>> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a transcript"));
    }
    Reader::unpacked(BufReader::with_capacity(64 << 10, File::open(path)?))
}

/// A stream that may be gzip, unpacked.
pub(crate) fn unpack(mut stream: impl BufRead + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    // A pipe may give one byte at first.
    let mut start = Vec::new();
    (&mut stream).take(2).read_to_end(&mut start)?;
    let packed = start == [0x1f, 0x8b];
    let stream = io::Cursor::new(start).chain(stream);
    Ok(if packed {
        Box::new(BufReader::with_capacity(64 << 10, MultiGzDecoder::new(stream)))
    } else {
        Box::new(stream)
    })
}

/// Reads a line into the buffer: true if it is whole, false if the stream ended in it, `None`
/// if nothing was left.
pub(crate) fn read_line(
    stream: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    line: u64,
) -> Result<Option<bool>, ReadError> {
    read_line_within(MAX_LINE, stream, buffer, line)
}

/// The same for lines of at most so many bytes. A longer one is passed over.
fn read_line_within(
    most: usize,
    stream: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    line: u64,
) -> Result<Option<bool>, ReadError> {
    buffer.clear();
    match (&mut *stream).take(most as u64 + 1).read_until(b'\n', buffer) {
        Ok(0) => Ok(None),
        Ok(_) if buffer.len() > most && !buffer.ends_with(b"\n") => {
            buffer.clear();
            buffer.shrink_to(64 << 10);
            stream.skip_until(b'\n').map_err(|source| ReadError::Io { line, source })?;
            Err(ReadError::TooLong { line })
        }
        Ok(_) => Ok(Some(buffer.ends_with(b"\n"))),
        // A gzip file that is still being written ends in the middle of its last block.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(false)),
        // Padding behind a gzip file, as tapes have it.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput && line > 1 && buffer.is_empty() => {
            Ok(None)
        }
        Err(source) => Err(ReadError::Io { line, source }),
    }
}

impl ReadError {
    /// True if nothing can be read behind it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::Io { .. })
    }

    /// The line is not JSON.
    pub fn not_json(line: u64, error: &serde_json::Error) -> Self {
        Self::Line { line, source: DecodeError::not_json(error) }
    }
}

impl Reader<Box<dyn BufRead + Send>> {
    /// Reads a stream that may be gzip.
    pub fn unpacked(stream: impl BufRead + Send + 'static) -> io::Result<Self> {
        unpack(stream).map(Self::new)
    }
}

/// Reads messages, one a line. Blank lines are skipped.
///
/// ```
/// use longhaul_wire::transcript::Reader;
/// let text = "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assis";
/// let mut reader = Reader::new(text.as_bytes());
/// assert_eq!(reader.by_ref().filter_map(Result::ok).count(), 1);
/// assert_eq!(reader.cut().unwrap().line, 2);
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    stream: R,
    line: u64,
    buffer: Vec<u8>,
    cut: Option<Cut>,
    done: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads plain text.
    pub fn new(stream: R) -> Self {
        Self { stream, line: 0, buffer: Vec::new(), cut: None, done: false }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The last line, if it was cut. Known when the iterator has ended.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    fn read_message(&mut self) -> Option<Result<Message, ReadError>> {
        loop {
            self.line += 1;
            let whole = match read_line(&mut self.stream, &mut self.buffer, self.line) {
                Ok(Some(whole)) => whole,
                Ok(None) => return None,
                Err(error) => {
                    self.done = error.is_last();
                    return Some(Err(error));
                }
            };
            self.done = !whole;
            let line = self.line;
            let mut bytes = self.buffer.as_slice();
            if line == 1 {
                bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            }
            if bytes.trim_ascii().is_empty() {
                if self.done {
                    // Cut behind a whole line: the gzip stream has no end.
                    self.cut = self.buffer.is_empty().then_some(Cut { line, bytes: 0 });
                    return None;
                }
                continue;
            }
            let message = match std::str::from_utf8(bytes) {
                Ok(text) => decode_mended(text).map_err(|source| ReadError::Line { line, source }),
                Err(_) => Err(ReadError::NotText { line }),
            };
            if message.is_err() && self.done && !is_whole_json(bytes) {
                self.cut = Some(Cut { line, bytes: self.buffer.len() });
                return None;
            }
            return Some(message);
        }
    }
}

/// A message; with halves of characters in it as a last resort. No text can hold them, so the line itself is kept: what is
/// sealed is written again as its provider sealed it.
fn decode_mended(text: &str) -> Result<Message, DecodeError> {
    decode(text).or_else(|error| {
        let mended = mended_surrogates(text.as_bytes()).and_then(|json| String::from_utf8(json).ok());
        let message = mended.map_or(Err(error), |text| decode(&text))?;
        Ok(message.with_raw(Raw::without(super::FORMAT, text.trim(), &[])))
    })
}

/// A last line that is JSON was written to its end, whatever else is wrong with it.
fn is_whole_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done { None } else { self.read_message() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_limit_is_passed_over() {
        let mut stream: &[u8] = b"short\nfar too long a line\nnext\nand another long one";
        let (mut read, mut buffer) = (Vec::new(), Vec::new());
        for line in 1..=5 {
            read.push(match read_line_within(8, &mut stream, &mut buffer, line) {
                Ok(Some(whole)) => format!("{} {whole}", String::from_utf8_lossy(&buffer).trim_end()),
                Ok(None) => "end".to_owned(),
                Err(error) => error.to_string(),
            });
        }
        let skipped = |line| format!("line {line}: is longer than 256 MiB, skipped");
        assert_eq!(read, ["short true", &skipped(2), "next true", &skipped(4), "end"]);
    }
}
