//! What others tell this process: to end, to look at its settings again, or that its terminal is gone.

use std::io;

/// What this process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C; a program in the foreground of the terminal is told too.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

/// The signals, from now on: none ends this process by itself any more.
#[cfg(unix)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub fn caught() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, hang_up: signal(SignalKind::hangup())? })
    }

    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hang_up.recv() => Signal::HangUp,
        }
    }
}

/// Elsewhere there is Ctrl-C alone.
#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub fn caught() -> io::Result<Self> {
        Ok(Self)
    }

    pub async fn next(&mut self) -> Signal {
        _ = tokio::signal::ctrl_c().await;
        Signal::Interrupt
    }
}
