//! Transcript files of other agents, read into Longhaul's messages. A format is one file and
//! one row of [`FORMATS`]; which one a file has is found by its content, never by its name.
//! Files are streamed: what is held is the step that is being put together.

mod build;
mod claude_code;
mod codex;
mod messages;
mod mini_swe;
pub mod opencode;
mod openhands;
mod pi;
pub mod resume;
mod swe_agent;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use longhaul::Message;
use serde_json::Value;

use crate::api::{Api, Request, guess};
use crate::mended_surrogates;
use crate::transcript::{self, Cut, MAX_LINE, ReadError};

/// A file may hold several conversations: the main one is 0, side chains and further ones
/// are counted from 1.
pub type Number = usize;

/// A message and the conversation it belongs to.
pub type Numbered = (Number, Message);

/// How an agent writes its sessions.
#[derive(Debug)]
pub struct Format {
    /// Its name, as `convert --from` and messages use it.
    pub name: &'static str,
    /// Whose it is.
    pub says: &'static str,
    shape: Shape,
    /// True if the first JSON value of a file looks like it.
    fits: fn(&Value) -> bool,
}

impl Format {
    /// True if a line behind the first one shows this format.
    fn tells_later(&self, line: &Value) -> bool {
        self.name == LINES_OF_MESSAGES && (self.fits)(line)
    }
}

/// The format of lines that only a call or a result tells from our own.
const LINES_OF_MESSAGES: &str = "message-lines";

/// A file whose first lines are damaged is known by one of so many.
const TELLING_STARTS: usize = 8;

/// How far a file is looked at for such a line.
const TELLING_LINES: usize = 200;
const TELLING_BYTES: usize = 4 << 20;

/// One value a line, or one for the whole file.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Lines(fn() -> Box<dyn Assemble + Send>),
    Whole(fn(&Value) -> Vec<Numbered>),
    /// One request of an API.
    Request(Api),
}

/// Puts messages together from lines.
trait Assemble {
    /// Takes in a line; gives the messages that are complete.
    fn line(&mut self, line: Value) -> Vec<Numbered>;
    /// The file has ended; gives what was still open.
    fn end(&mut self) -> Vec<Numbered>;
}

/// All formats of other agents.
pub static FORMATS: [Format; 12] = [
    Format {
        name: "claude-code",
        says: "Claude Code, ~/.claude/projects/*/*.jsonl",
        shape: Shape::Lines(|| Box::new(claude_code::Assembler::default())),
        fits: claude_code::fits,
    },
    Format {
        name: "codex",
        says: "Codex, ~/.codex/sessions/**/rollout-*.jsonl",
        shape: Shape::Lines(|| Box::new(codex::Assembler::default())),
        fits: codex::fits,
    },
    Format {
        name: "pi",
        says: "pi, ~/.pi/agent/sessions/**/*.jsonl",
        shape: Shape::Lines(|| Box::new(pi::Assembler::default())),
        fits: pi::fits,
    },
    Format {
        name: OPENCODE,
        says: "opencode, what `opencode export` writes",
        shape: Shape::Whole(opencode::read),
        fits: opencode::fits,
    },
    Format {
        name: "openhands",
        says: "OpenHands, output.jsonl: one conversation a line",
        shape: Shape::Lines(|| Box::new(openhands::Assembler::default())),
        fits: openhands::fits,
    },
    Format {
        name: "mini-swe-agent",
        says: "mini-swe-agent, *.traj.json",
        shape: Shape::Whole(mini_swe::read),
        fits: mini_swe::fits,
    },
    Format {
        name: "swe-agent",
        says: "SWE-agent, *.traj",
        shape: Shape::Whole(swe_agent::read),
        fits: swe_agent::fits,
    },
    Format {
        name: "openai",
        says: "a request of OpenAI Chat Completions: {\"model\", \"messages\"}",
        shape: Shape::Request(Api::Chat),
        fits: |first| guess(first) == Some(Api::Chat),
    },
    Format {
        name: "openai-responses",
        says: "a request of OpenAI Responses: {\"model\", \"input\"}",
        shape: Shape::Request(Api::Responses),
        fits: |first| guess(first) == Some(Api::Responses),
    },
    Format {
        name: "anthropic",
        says: "a request of Anthropic Messages: {\"model\", \"system\", \"messages\"}",
        shape: Shape::Request(Api::Anthropic),
        fits: |first| guess(first) == Some(Api::Anthropic),
    },
    Format {
        name: "messages",
        says: "a JSON array of messages, as OpenAI or Anthropic write them",
        shape: Shape::Whole(messages::read_list),
        fits: messages::fits_list,
    },
    Format {
        name: LINES_OF_MESSAGES,
        says: "one message a line, as OpenAI or Anthropic write them",
        shape: Shape::Lines(|| Box::new(messages::Assembler)),
        fits: messages::is_foreign,
    },
];

/// The name of opencode's format, in which its store is read too.
pub const OPENCODE: &str = "opencode";

/// The field of usage that says how much of what was written to the cache stays there for an hour, which has a price of
/// its own.
pub const WRITTEN_FOR_AN_HOUR: &str = longhaul::Usage::WRITTEN_FOR_AN_HOUR;

/// The field of a recorded compaction that says how many of the newest messages the agent kept beside its summary.
pub const KEPT_MESSAGES: &str = "kept_messages";

/// The name of Longhaul's own format beside those of [`FORMATS`].
pub const OWN: &str = "longhaul";

/// Reads any transcript: ours, or another agent's.
pub struct Reader {
    source: Source,
    format: &'static str,
    ready: VecDeque<Numbered>,
}

enum Source {
    Own(transcript::Reader<Box<dyn BufRead + Send>>),
    Lines {
        lines: Lines,
        assemble: Box<dyn Assemble + Send>,
    },
    /// Messages that a host reads itself.
    Made(Box<dyn Iterator<Item = Result<Numbered, ReadError>> + Send>),
    Done {
        cut: Option<Cut>,
    },
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader({})", self.format)
    }
}

/// Opens a file, gzip or plain, of any known format.
pub fn open(path: &Path) -> io::Result<Reader> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a transcript"));
    }
    read(BufReader::with_capacity(64 << 10, File::open(path)?))
}

/// Reads a stream, gzip or plain, of any known format. What is none is read as Longhaul's own,
/// whose errors say what is wrong.
pub fn read(stream: impl BufRead + Send + 'static) -> io::Result<Reader> {
    let mut stream = transcript::unpack(stream)?;
    let mut head = Vec::new();
    let (first, mut format) = find_format(&mut stream, &mut head)?;
    // The first message of an API may look like our own: one with a call or a result tells.
    if format.is_none() && first.as_ref().is_some_and(|first| first.get("role").is_some()) {
        let mut line = Vec::new();
        let mut read = 0;
        while format.is_none() && read < TELLING_LINES && head.len() < TELLING_BYTES {
            line.clear();
            (&mut stream).take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                break;
            }
            let value = serde_json::from_slice::<Value>(&line).ok();
            format = value.and_then(|value| FORMATS.iter().find(|format| format.tells_later(&value)));
            head.extend_from_slice(&line);
            read += 1;
        }
    }
    let mut ready = VecDeque::new();
    let source = match format.map(|format| format.shape) {
        None => Source::Own(transcript::Reader::new(again(head, stream))),
        Some(Shape::Lines(assemble)) => {
            Source::Lines { lines: Lines::new(again(head, stream)), assemble: assemble() }
        }
        Some(Shape::Whole(read)) => {
            ready.extend(first.iter().flat_map(read));
            Source::Done { cut: None }
        }
        Some(Shape::Request(api)) => {
            let rest = (&mut stream).take(MAX_LINE as u64).lines();
            // A packed file that was cut ends with the same error again and again.
            let more = rest.map_while(Result::ok).any(|line| !line.trim().is_empty());
            if more {
                let problem = "holds several requests: give each a file of its own";
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            let body = String::from_utf8_lossy(&head);
            let request =
                Request::decode(api, body).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            ready.extend(request.into_transcript().into_iter().map(|message| (0, message)));
            Source::Done { cut: None }
        }
    };
    Ok(Reader { source, format: format.map_or(OWN, |format| format.name), ready })
}

/// The first value of a stream, and the format that it shows: that of the first line, or of several that are one value.
/// Where the first lines are damaged, one behind them shows the format. What was read is in `head`.
fn find_format(
    stream: &mut impl BufRead,
    head: &mut Vec<u8>,
) -> io::Result<(Option<Value>, Option<&'static Format>)> {
    let format_of = |value: &Value| FORMATS.iter().find(|format| (format.fits)(value));
    let is_of_lines = |format: &&Format| matches!(format.shape, Shape::Lines(_));
    for number in 0..TELLING_STARTS {
        // Giants that are no JSON are damaged by nobody: they are something else.
        if number > 0 && head.len() > TELLING_BYTES {
            break;
        }
        let Some(line) = first_line(stream, head)? else { break };
        match value_of(&head[line.clone()]) {
            Ok(first) if number == 0 => {
                let format = format_of(&first);
                return Ok((Some(first), format));
            }
            Ok(later) => return Ok((None, format_of(&later).filter(is_of_lines))),
            Err(error) if number == 0 && error.is_eof() => {
                stream.take(MAX_LINE as u64).read_to_end(head)?;
                let whole = &head[line.start..];
                if let Ok(first) = value_of(whole) {
                    let format = format_of(&first);
                    return Ok((Some(first), format));
                }
                let mut behind = whole.split(|byte| *byte == b'\n').skip(1).take(TELLING_STARTS);
                let later = behind.find_map(|line| value_of(line).ok());
                return Ok((None, later.as_ref().and_then(format_of).filter(is_of_lines)));
            }
            Err(_) => {}
        }
    }
    Ok((None, None))
}

/// Reads on to the end of the next line that is not blank. Gives where it stands in `head`, without a byte order mark;
/// nothing at the end.
fn first_line(stream: &mut impl BufRead, head: &mut Vec<u8>) -> io::Result<Option<Range<usize>>> {
    loop {
        let start = head.len();
        if stream.take(MAX_LINE as u64).read_until(b'\n', head)? == 0 {
            return Ok(None);
        }
        let mark = if start == 0 && head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        if !head[start + mark..].trim_ascii().is_empty() {
            return Ok(Some(start + mark..head.len()));
        }
        if head.len() > TELLING_BYTES {
            return Ok(None);
        }
    }
}

/// The value of a line or a file. What holds more values than any session is no JSON for us: each takes many times its
/// bytes in memory.
fn value_of(json: &[u8]) -> serde_json::Result<Value> {
    const LARGE: usize = 16 << 20;
    const MOST_VALUES: usize = 6_000_000;
    if json.len() > LARGE && json.iter().filter(|byte| **byte == b',').count() > MOST_VALUES {
        return Err(serde::de::Error::custom("holds more values than a session"));
    }
    serde_json::from_slice(json).or_else(|error| match mended_surrogates(json) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// A stream from its start, of which `head` was read.
fn again(head: Vec<u8>, rest: impl BufRead + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(io::Cursor::new(head).chain(rest))
}

impl Reader {
    /// Messages of a format that is no stream of text: a host reads its files itself.
    pub fn of_messages(
        format: &'static str,
        messages: impl Iterator<Item = Result<Numbered, ReadError>> + Send + 'static,
    ) -> Self {
        Self { source: Source::Made(Box::new(messages)), format, ready: VecDeque::new() }
    }

    /// The format that was found.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// The last line, if it was cut. Known when the iterator has ended.
    pub fn cut(&self) -> Option<Cut> {
        match &self.source {
            Source::Own(reader) => reader.cut(),
            Source::Lines { .. } | Source::Made(_) => None,
            Source::Done { cut } => *cut,
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Numbered, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(message));
            }
            match &mut self.source {
                Source::Own(reader) => {
                    return reader.next().map(|message| message.map(|message| (0, message)));
                }
                Source::Made(messages) => return messages.next(),
                Source::Done { .. } => return None,
                Source::Lines { lines, assemble } => match lines.next() {
                    Some(Ok(line)) => self.ready.extend(assemble.line(line)),
                    Some(Err(error)) => return Some(Err(error)),
                    None => {
                        self.ready.extend(assemble.end());
                        self.source = Source::Done { cut: lines.cut };
                    }
                },
            }
        }
    }
}

/// JSON values, one a line.
struct Lines {
    stream: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    line: u64,
    cut: Option<Cut>,
    done: bool,
}

impl Lines {
    fn new(stream: Box<dyn BufRead + Send>) -> Self {
        Self { stream, buffer: Vec::new(), line: 0, cut: None, done: false }
    }
}

impl Iterator for Lines {
    type Item = Result<Value, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            self.line += 1;
            let line = self.line;
            match transcript::read_line(&mut self.stream, &mut self.buffer, line) {
                Ok(Some(whole)) => self.done = !whole,
                Ok(None) => return None,
                Err(error) => {
                    self.done = error.is_last();
                    return Some(Err(error));
                }
            }
            if self.buffer.trim_ascii().is_empty() {
                self.cut = (self.done && self.buffer.is_empty()).then_some(Cut { line, bytes: 0 });
                continue;
            }
            let start = if line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            match value_of(&self.buffer[start..]) {
                Ok(value) => return Some(Ok(value)),
                Err(_) if self.done => {
                    self.cut = Some(Cut { line, bytes: self.buffer.len() });
                    return None;
                }
                Err(error) => return Some(Err(ReadError::not_json(line, &error))),
            }
        }
        None
    }
}
