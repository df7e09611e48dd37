//! The line that a person types, in a thread of its own: it stays as it is while the agent prints above it. A line is
//! asked for before it is read, so that what a command prints comes before the next prompt.
//!
//! Where stdin or stdout is no terminal, lines are read as they come, and nothing is drawn.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, ExternalPrinter};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::completion::Typing;
use super::prompt::Prompt;
use super::screen::Screen;
use super::typed::Typed;
use crate::gateway::signals::{Signal, Signals};

/// What a person did.
#[derive(Debug)]
pub enum Input {
    /// Typed this.
    Line(String),
    /// Pressed Ctrl-C.
    Interrupt,
    /// Pressed Ctrl-C behind a line that was begun, which is gone.
    Cleared,
    /// Pressed Ctrl-D, or the lines are at their end.
    End,
}

/// Where an input comes from.
#[derive(PartialEq, Eq)]
enum Origin {
    Editor,
    Signal,
}

/// Who reads lines.
pub struct Editor {
    wanted: Sender<()>,
    sender: UnboundedSender<(Input, Origin)>,
    inputs: UnboundedReceiver<(Input, Origin)>,
    /// A line is wanted that has not come.
    asked: bool,
    is_terminal: bool,
    prompt: Prompt,
    typed: Typed,
    /// Cancelled when the process is to end: nobody waits for a reader any longer.
    ending: CancellationToken,
    #[cfg(unix)]
    found: Option<rustix::termios::Termios>,
}

/// Bytes of a line that is not typed.
const LONGEST: u64 = 4 << 20;
/// Lines that are remembered.
const HISTORY: usize = 1_000;
/// How often a line is read that cannot be.
const READINGS: usize = 5;
/// Milliseconds within which the rest of a key follows that begins with Esc.
const ESCAPE: u16 = 100;
/// The longest that is waited for a prompt to be drawn.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread of the editor is at. Who prints must know: a line that is printed while the prompt is about to be
/// drawn would stand behind it.
#[derive(Clone, Default)]
pub(super) struct At(Arc<(Mutex<Stage>, Condvar)>);

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    #[default]
    Away,
    /// The prompt is about to be drawn.
    Coming,
    There,
}

impl At {
    pub(super) fn set(&self, stage: Stage) {
        *self.lock() = stage;
        self.0.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints above the line that is typed.
pub(super) struct Printer {
    at: At,
    printer: Box<dyn ExternalPrinter + Send>,
}

impl Printer {
    pub(super) fn print(&mut self, text: String) {
        let is_coming = |stage: &mut Stage| *stage == Stage::Coming;
        let wait = self.at.0.1.wait_timeout_while(self.at.lock(), PATIENCE, is_coming);
        let (stage, _) = wait.unwrap_or_else(PoisonError::into_inner);
        if *stage == Stage::Away {
            // The editor does not begin while this is printed.
            _ = self.printer.print(text);
        } else {
            // It may end meanwhile: the text is printed when it begins anew.
            drop(stage);
            _ = self.printer.print(text);
        }
    }
}

impl Editor {
    /// An editor for the terminal, or a reader of lines where there is none; and the screen that goes with it.
    pub fn start(project: &Path, history: Option<PathBuf>) -> (Self, Screen) {
        let (wanted, asks) = mpsc::channel();
        let (sender, inputs) = unbounded_channel();
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let editor = Self {
            wanted,
            sender: sender.clone(),
            inputs,
            asked: false,
            is_terminal,
            prompt: Prompt::default(),
            typed: Typed::default(),
            ending: CancellationToken::new(),
            #[cfg(unix)]
            found: rustix::termios::tcgetattr(std::io::stdin()).ok(),
        };
        let at = At::default();
        let typing = Typing::new(project.to_owned(), at.clone(), editor.prompt(), editor.typed());
        if is_terminal && let Some(screen) = edit(typing, at, history, asks, sender.clone()) {
            return (editor, screen);
        }
        let (wanted, asks) = mpsc::channel();
        std::thread::spawn(move || read(&asks, &sender));
        let screen = Screen::pipe(editor.ending.clone());
        (Self { wanted, is_terminal: false, ..editor }, screen)
    }

    /// Whether a person types, who can be asked.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// What stands before the line.
    pub fn prompt(&self) -> Prompt {
        self.prompt.clone()
    }

    /// The line as far as it is typed.
    pub fn typed(&self) -> Typed {
        self.typed.clone()
    }

    /// Wants a line, if none is wanted yet.
    pub fn ask(&mut self) {
        if !self.asked {
            self.asked = self.wanted.send(()).is_ok();
        }
    }

    /// Listens to signals from now on: where the terminal is not the editor's, Ctrl-C is one. A window that is closed is
    /// the end of the lines: what runs must not live on.
    pub fn listen(&self) {
        let (sender, ending) = (self.sender.clone(), self.ending.clone());
        tokio::spawn(async move {
            let Ok(mut signals) = Signals::caught() else { return };
            for signals_before in 0.. {
                let input = match signals.next().await {
                    Signal::Interrupt | Signal::Interrupted => Input::Interrupt,
                    Signal::Terminate | Signal::HangUp => Input::End,
                };
                if signals_before > 0 || matches!(input, Input::End) {
                    ending.cancel();
                }
                if sender.send((input, Origin::Signal)).is_err() {
                    return;
                }
            }
        });
    }

    /// What a person does next. Who drops the future has missed nothing.
    pub async fn next(&mut self) -> Input {
        let (input, from) = self.inputs.recv().await.unwrap_or((Input::End, Origin::Editor));
        self.asked &= from == Origin::Signal;
        input
    }

    /// Leaves the terminal as it was found, also if a line is being typed.
    pub fn close(self) {
        if !self.is_terminal || !self.asked {
            return;
        }
        #[cfg(unix)]
        if let Some(found) = &self.found {
            let how = rustix::termios::OptionalActions::Drain;
            _ = rustix::termios::tcsetattr(std::io::stdin(), how, found);
        }
        // Pasted text is no longer marked.
        _ = writeln!(std::io::stdout(), "\x1b[?2004l");
    }
}

/// Starts the thread of an editor. `None` if the terminal can do nothing of what is needed.
fn edit(
    typing: Typing,
    at: At,
    history: Option<PathBuf>,
    asks: Receiver<()>,
    sender: UnboundedSender<(Input, Origin)>,
) -> Option<Screen> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY)
        .ok()?
        .auto_add_history(false)
        .history_ignore_space(true)
        .bracketed_paste(true)
        // Without it, Esc would wait for another key, and take a Ctrl-C for the rest of a sequence.
        .keyseq_timeout(Some(ESCAPE))
        // The helper sees each prompt that is drawn; it has no colours of its own.
        .color_mode(ColorMode::Forced)
        .build();
    let mut editor = rustyline::Editor::<Typing, FileHistory>::with_config(config).ok()?;
    let typed = typing.typed();
    editor.set_helper(Some(typing));
    let printer = editor.create_external_printer().ok()?;
    if let Some(history) = &history {
        // The first time there is none.
        _ = editor.load_history(history);
    }
    let stage = at.clone();
    std::thread::spawn(move || {
        for () in asks {
            let mut readings = 0;
            let (line, begun) = loop {
                stage.set(Stage::Coming);
                let line = editor.readline(Prompt::FIRST);
                stage.set(Stage::Away);
                let begun = !typed.text().is_empty();
                typed.set("");
                readings += 1;
                match line {
                    // A signal that comes while the terminal is made ready is an error of that, and no end.
                    Err(ReadlineError::Io(_) | ReadlineError::Errno(_)) if readings < READINGS => {}
                    line => break (line, begun),
                }
            };
            let input = match line {
                Ok(line) => {
                    if !line.trim().is_empty() {
                        _ = editor.add_history_entry(line.as_str());
                        // The editor makes the file private, and keeps what others wrote meanwhile.
                        history.iter().for_each(|history| _ = editor.append_history(history));
                    }
                    Input::Line(line)
                }
                Err(ReadlineError::Interrupted) if begun => Input::Cleared,
                Err(ReadlineError::Interrupted) => Input::Interrupt,
                Err(_) => Input::End,
            };
            if sender.send((input, Origin::Editor)).is_err() {
                return;
            }
        }
    });
    Some(Screen::above(Printer { at, printer: Box::new(printer) }))
}

/// Reads lines that nobody types.
fn read(asks: &Receiver<()>, sender: &UnboundedSender<(Input, Origin)>) {
    let mut lines = std::io::stdin().lock();
    for () in asks {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut lines, LONGEST).read_until(b'\n', &mut line);
        let input = match read {
            Ok(read) if read > 0 => Input::Line(String::from_utf8_lossy(&line).trim_end().to_owned()),
            _ => Input::End,
        };
        if sender.send((input, Origin::Editor)).is_err() {
            return;
        }
    }
}
