//! What a person sees: whole lines, above the line that is being typed if there is one. Whoever prints what a model, a
//! tool or a file says cleans it first (`terminal::printable`, `cut`, `one_line`): styles are ours alone.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::editor::Printer;
use crate::agent::outlet::Outlet;
use crate::terminal::{BAD, FAINT};

/// Where lines go.
#[derive(Clone)]
pub struct Screen {
    out: Out,
}

#[derive(Clone)]
enum Out {
    Stdout,
    /// In a pipe, whose reader may not read.
    Pipe(Outlet),
    /// Through a thread, so that nobody who prints waits for the editor.
    AboveEditor(Sender<Job>),
}

enum Job {
    Print(String),
    /// All that came before is printed.
    Done(Sender<()>),
}

/// The longest that is waited for lines to be printed.
const PATIENCE: Duration = Duration::from_millis(300);

impl Screen {
    /// Lines on stdout, where nobody types.
    pub fn stdout() -> Self {
        Self { out: Out::Stdout }
    }

    /// Lines on stdout, for which nobody waits once this is cancelled.
    pub(super) fn pipe(stop: CancellationToken) -> Self {
        Self { out: Out::Pipe(Outlet::new(stop, print)) }
    }

    /// Lines above what is typed.
    pub(super) fn above(mut printer: Printer) -> Self {
        let (sender, jobs) = mpsc::channel();
        std::thread::spawn(move || {
            for job in jobs {
                match job {
                    Job::Print(text) => printer.print(text),
                    Job::Done(sender) => _ = sender.send(()),
                }
            }
        });
        Self { out: Out::AboveEditor(sender) }
    }

    /// Prints a line. Where nobody looks any longer the work goes on.
    pub fn line(&self, text: impl Display) {
        match &self.out {
            Out::Stdout => print(&text.to_string()),
            Out::Pipe(outlet) => outlet.line(text.to_string()),
            Out::AboveEditor(sender) => {
                let text = format!("{text}\n");
                let text = if has_colours() { text } else { anstream::adapter::strip_str(&text).to_string() };
                _ = sender.send(Job::Print(text));
            }
        }
    }

    /// Prints lines.
    pub fn lines(&self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| self.line(line));
    }

    /// A line that may be skipped.
    pub fn faint(&self, text: impl Display) {
        self.line(format_args!("{FAINT}{text}{FAINT:#}"));
    }

    /// What is wrong.
    pub fn bad(&self, text: impl Display) {
        self.line(format_args!("{BAD}{text}{BAD:#}"));
    }

    /// Waits until all is printed.
    pub fn flush(&self) {
        match &self.out {
            Out::Stdout => {}
            Out::Pipe(outlet) => _ = outlet.flush(),
            Out::AboveEditor(sender) => {
                let (done, printed) = mpsc::channel();
                if sender.send(Job::Done(done)).is_ok() {
                    _ = printed.recv_timeout(PATIENCE);
                }
            }
        }
    }
}

fn print(line: &str) {
    let mut out = anstream::stdout().lock();
    _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Whether stdout is a terminal that wants colours.
fn has_colours() -> bool {
    std::io::stdout().is_terminal()
        && anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}
