//! The gateway as commands start it: what they are told about it, agents that are sent through it, and whether all
//! of that would work here.

pub mod activity;
pub mod agents;
pub mod checks;
pub mod jsonc;
pub mod options;
pub mod own_providers;
pub mod own_token;
pub mod private_file;
pub mod programs;
pub mod reach;
pub mod secret;
pub mod shell;
pub mod shim;
pub mod signals;
pub mod summary;

use std::io::Write;

use longhaul_gateway::{Gateway, Settings};

use crate::error::Failure;
use options::Options;

/// A gateway that serves.
pub async fn started(settings: Settings) -> Result<Gateway, Failure> {
    longhaul_gateway::start(settings).await.map_err(|error| Failure::Input(error.to_string()))
}

/// Stops the gateway and says what it did. `options` are those that it was started with, if what is stored has its words.
pub async fn stopped(gateway: Gateway, options: Option<&Options>) {
    let figures = gateway.stop().await;
    // Where stderr is closed there is no reader.
    if let Some(cramped) = figures.cramped {
        _ = writeln!(anstream::stderr(), "longhaul: {cramped}");
    }
    _ = writeln!(anstream::stderr(), "{}", summary::summary(&figures));
    if let Some((session, options)) = figures.tied.zip(options) {
        _ = writeln!(
            anstream::stderr(),
            "longhaul: to go on without Longhaul, run `{}` (FILE is the agent's own session file) and put FILE.released in its place",
            options.release(session)
        );
    }
}
