//! A transcript file on its way in: any format, lines that cannot be read said and skipped.

use std::io::{self, Write};
use std::path::PathBuf;

use longhaul::Message;
use longhaul_wire::agents;

use crate::error::Failure;
use crate::lab::inputs::Input;
use crate::lab::opencode_store::open_any;
use crate::terminal;
use crate::terminal::clear_progress;

/// Lines that are reported one by one; the rest is counted.
const REPORTED: usize = 5;

/// A file that nobody called a session, and that begins with so many lines of something else, is none.
const STRANGE: usize = 64;

/// A file that is being read.
pub struct TranscriptFile {
    path: PathBuf,
    reader: agents::Reader,
    /// The one conversation that is wanted.
    only: Option<usize>,
    /// A message that was read and given back.
    first: Option<(usize, Message)>,
    /// How many conversations were seen.
    conversations: usize,
    /// True if it was found in a folder.
    found: bool,
    unread: usize,
    /// What is to be said if the file turns out to be a session.
    held: Vec<String>,
}

impl TranscriptFile {
    /// Opens a file; `-` is standard input.
    pub fn open(input: &Input) -> Result<Self, Failure> {
        let path = &input.path;
        let reader = if input.is_stdin() {
            agents::read(io::BufReader::new(io::stdin()))
        } else {
            open_any(path, None)
        };
        let reader = reader.map_err(|error| match error.kind() {
            // No request, no gzip: nothing that would be a session.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                Failure::no_messages(path, error)
            }
            _ => Failure::file(path, error),
        })?;
        Ok(Self {
            path: path.clone(),
            reader,
            only: input.conversation,
            first: None,
            conversations: 0,
            found: input.found,
            unread: 0,
            held: Vec::new(),
        })
    }

    /// The name of a conversation in the file.
    pub fn name(&self, number: usize) -> String {
        match number {
            0 => self.path.display().to_string(),
            _ => format!("{}#{number}", self.path.display()),
        }
    }

    /// The log of one conversation, the main one if none was named: without what the recorded agent made of
    /// its own history.
    pub fn one_log(&mut self) -> impl Iterator<Item = Message> {
        let one = self.only.unwrap_or_default();
        let log = self.filter(move |(number, message)| *number == one && !message.is_recorded_compaction());
        log.map(|(_, message)| message)
    }

    /// As if this message, the first one, had not been read yet.
    pub fn again(mut self, first: (usize, Message)) -> Self {
        self.first = Some(first);
        self
    }

    /// The format that was found.
    pub fn format(&self) -> &'static str {
        self.reader.format()
    }

    /// Says how the file ended. `empty` if it held nothing: that is an error.
    pub fn finish(&self, empty: bool) -> Result<(), Failure> {
        if empty && let (Some(only), 1..) = (self.only, self.conversations) {
            let problem = format!("has no conversation {only}: the last is {}", self.conversations - 1);
            return Err(Failure::file(&self.path, problem));
        }
        if empty && self.unread == 0 {
            return Err(Failure::no_messages(&self.path, "has no messages"));
        }
        if empty && self.found {
            return Err(Failure::no_messages(&self.path, "is no transcript of a known format"));
        }
        if self.unread > REPORTED {
            self.say(&format!("{} more lines could not be read", self.unread - REPORTED));
        }
        if let Some(cut) = self.reader.cut() {
            self.say(&format!("line {}: cut off after {} bytes, left out", cut.line, cut.bytes));
        }
        if empty {
            return Err(Failure::no_messages(&self.path, "is no transcript of a known format"));
        }
        Ok(())
    }

    /// A line on stderr. Nobody reads it there? Then nothing is lost.
    fn say(&self, what: &str) {
        clear_progress();
        _ = writeln!(io::stderr(), "{}: {what}", terminal::path(&self.path));
    }
}

impl Iterator for TranscriptFile {
    type Item = (usize, Message);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            match self.reader.next()? {
                Ok((number, message)) => {
                    for what in std::mem::take(&mut self.held) {
                        self.say(&what);
                    }
                    self.conversations = self.conversations.max(number + 1);
                    if self.only.is_none_or(|only| only == number) {
                        return Some((number, message));
                    }
                }
                Err(error) => {
                    self.unread += 1;
                    let unknown = self.found && self.conversations == 0;
                    match (self.unread <= REPORTED, unknown) {
                        (true, true) => self.held.push(error.to_string()),
                        (true, false) => self.say(&error.to_string()),
                        (false, true) if self.unread > STRANGE => return None,
                        (false, _) => {}
                    }
                }
            }
        }
    }
}
