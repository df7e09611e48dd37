//! A transcript file on its way in: any format, lines that cannot be read said and skipped.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul::{Message, Session};
use longhaul_wire::{agents, transcript};

use crate::error::Failure;
use crate::replay::clear_progress;

/// Lines that are reported one by one; the rest is counted.
const REPORTED: usize = 5;

/// Appends a recorded message to a session, and takes over the frame that its line carries.
pub fn push_recorded(session: &mut Session, message: impl Into<Arc<Message>>) {
    let message = message.into();
    let frame = transcript::frame_of(&message);
    session.push(message);
    frame.into_iter().for_each(|frame| session.set_frame(frame));
}

/// A file that is being read.
pub struct Source {
    path: PathBuf,
    reader: agents::Reader,
    unread: usize,
}

impl Source {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let reader = if path == Path::new("-") {
            agents::read(io::BufReader::new(io::stdin()))
        } else {
            agents::open(path)
        };
        let reader = reader.map_err(|error| Failure::file(path, error))?;
        Ok(Self { path: path.to_owned(), reader, unread: 0 })
    }

    /// The name of a conversation in the file.
    pub fn name(&self, number: usize) -> String {
        match number {
            0 => self.path.display().to_string(),
            _ => format!("{}#{number}", self.path.display()),
        }
    }

    /// The format that was found.
    pub fn format(&self) -> &'static str {
        self.reader.format()
    }

    /// Says how the file ended. `empty` if it held nothing: that is an error.
    pub fn finish(&self, empty: bool) -> Result<(), Failure> {
        if self.unread > REPORTED {
            self.say(format_args!("{} more lines could not be read", self.unread - REPORTED));
        }
        if let Some(cut) = self.reader.cut() {
            self.say(format_args!("line {}: cut off after {} bytes, left out", cut.line, cut.bytes));
        }
        if empty && self.unread == 0 {
            return Err(Failure::file(&self.path, "has no messages"));
        }
        if empty {
            return Err(Failure::file(&self.path, "is no transcript of a known format"));
        }
        Ok(())
    }

    /// A line on stderr. Nobody reads it there? Then nothing is lost.
    fn say(&self, what: std::fmt::Arguments<'_>) {
        clear_progress();
        _ = writeln!(io::stderr(), "{}: {what}", self.path.display());
    }
}

impl Iterator for Source {
    type Item = (usize, Message);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reader.next()? {
                Ok(message) => return Some(message),
                Err(error) => {
                    self.unread += 1;
                    if self.unread <= REPORTED {
                        self.say(format_args!("{error}"));
                    }
                }
            }
        }
    }
}
