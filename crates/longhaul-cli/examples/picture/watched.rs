//! A program in a terminal that is watched: what it has written is interpreted as a terminal would.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use pty_process::blocking::{Command, Pty, open};

/// The size of a terminal.
#[derive(Clone, Copy)]
pub struct Size {
    pub rows: NonZeroU16,
    pub columns: NonZeroU16,
}

/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// A program that writes nothing for so long has said what it has to say.
const QUIET: Duration = Duration::from_millis(400);

/// A program in a terminal.
pub struct Watched {
    pty: Arc<Pty>,
    child: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

struct Shown {
    terminal: vt100::Parser,
    /// Pieces that came.
    pieces: usize,
    ended: bool,
}

impl Watched {
    /// Starts a program in a folder, with these variables besides.
    pub fn start(
        program: &str,
        arguments: &[impl AsRef<OsStr>],
        folder: Option<&Path>,
        variables: &[(&str, String)],
        size: Size,
    ) -> anyhow::Result<Self> {
        let (pty, pts) = open()?;
        pty.resize(pty_process::Size::new(size.rows.get(), size.columns.get()))?;
        let mut command = Command::new(of_this_build(program)?).args(arguments).env("TERM", "xterm-256color");
        command = command.env_remove("NO_COLOR");
        if let Some(folder) = folder {
            command = command.current_dir(folder).env_clear();
        }
        for (name, value) in variables {
            command = command.env(name, value);
        }
        let child = command.spawn(pts).with_context(|| format!("{program} cannot be run"))?;
        let terminal = vt100::Parser::new(size.rows, size.columns, 0);
        let shown = Shown { terminal, pieces: 0, ended: false };
        let (pty, shown) = (Arc::new(pty), Arc::new((Mutex::new(shown), Condvar::new())));
        let (reader, watched) = (pty.clone(), shown.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let read = (&*reader).read(&mut piece).unwrap_or(0);
                let mut shown = watched.0.lock().unwrap_or_else(PoisonError::into_inner);
                shown.terminal.process(&piece[..read]);
                (shown.pieces, shown.ended) = (shown.pieces + 1, read == 0);
                watched.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Ok(Self { pty, child, shown })
    }

    /// Types.
    pub fn types(&self, keys: &str) -> anyhow::Result<()> {
        Ok((&*self.pty).write_all(keys.as_bytes())?)
    }

    /// Waits until the last row that is not empty has this text, and nothing more comes.
    pub fn rests_at(&self, text: &str) -> anyhow::Result<()> {
        let rests = |shown: &Shown| {
            let contents = shown.terminal.screen().contents();
            contents.trim_end_matches('\n').lines().last().is_some_and(|line| line.trim_end() == text)
        };
        let (lock, more) = &*self.shown;
        let mut shown = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let waited = more.wait_timeout_while(shown, PATIENCE, |shown| !rests(shown) && !shown.ended);
            shown = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !rests(&shown) {
                bail!("{text:?} is not there:\n{}", shown.terminal.screen().contents());
            }
            let pieces = shown.pieces;
            let waited = more.wait_timeout_while(shown, QUIET, |shown| shown.pieces == pieces);
            shown = waited.unwrap_or_else(PoisonError::into_inner).0;
            if shown.pieces == pieces {
                return Ok(());
            }
        }
    }

    /// Waits until the program has ended.
    pub fn ends(&mut self) -> anyhow::Result<()> {
        let (lock, more) = &*self.shown;
        let shown = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = more.wait_timeout_while(shown, 10 * PATIENCE, |shown| !shown.ended);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.child.wait()?;
        Ok(())
    }

    /// What stands in the terminal.
    pub fn screen(&self) -> vt100::Screen {
        self.shown.0.lock().unwrap_or_else(PoisonError::into_inner).terminal.screen().clone()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// `longhaul` is the program that was built with this one.
fn of_this_build(program: &str) -> anyhow::Result<PathBuf> {
    if program != "longhaul" {
        return Ok(program.into());
    }
    let example = std::env::current_exe()?;
    let built = example.parent().and_then(Path::parent).map(|folder| folder.join("longhaul"));
    let built = built.filter(|path| path.is_file());
    built.context("there is no `longhaul` yet: `cargo build -p longhaul-cli` makes it")
}
