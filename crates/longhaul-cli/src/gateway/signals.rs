//! What others tell this process: to end, to look at its settings again, or that its terminal is gone.

use std::io;

use tokio::sync::mpsc::UnboundedReceiver;

/// What this process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C; a program in the foreground of the terminal is told too.
    Interrupt,
    /// SIGINT that a process sent to this one alone.
    Interrupted,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

/// The signals, from now on: none ends this process by itself any more.
pub struct Signals {
    received: UnboundedReceiver<Signal>,
    #[cfg(unix)]
    handle: signal_hook::iterator::Handle,
}

#[cfg(unix)]
impl Signals {
    pub fn caught() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::iterator::SignalsInfo;
        use signal_hook::iterator::exfiltrator::WithOrigin;
        let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let (sender, received) = tokio::sync::mpsc::unbounded_channel();
        let pass_on = move || {
            for origin in signals.forever() {
                let signal = match origin.signal {
                    SIGINT if origin.process.is_some() => Signal::Interrupted,
                    SIGINT => Signal::Interrupt,
                    SIGHUP => Signal::HangUp,
                    _ => Signal::Terminate,
                };
                if sender.send(signal).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(pass_on)?;
        Ok(Self { received, handle })
    }
}

#[cfg(unix)]
impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Elsewhere there is Ctrl-C alone.
#[cfg(not(unix))]
impl Signals {
    pub fn caught() -> io::Result<Self> {
        let (sender, received) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && sender.send(Signal::Interrupt).is_ok() {}
        });
        Ok(Self { received })
    }
}

impl Signals {
    /// The next one. Who drops the future has missed nothing.
    pub async fn next(&mut self) -> Signal {
        match self.received.recv().await {
            Some(signal) => signal,
            // Nobody listens any more: nothing will come.
            None => std::future::pending().await,
        }
    }
}
