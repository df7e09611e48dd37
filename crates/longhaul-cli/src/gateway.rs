//! The gateway as commands start it: what they are told about it, agents that are sent through it, and whether all
//! of that would work here.

pub mod activity;
pub mod agents;
pub mod checks;
pub mod jsonc;
pub mod options;
pub mod own_providers;
pub mod private_file;
pub mod programs;
pub mod reach;
pub mod secret;
pub mod shell;
pub mod shim;
pub mod signals;

use std::io::Write;

use longhaul_gateway::{Gateway, Settings};

use crate::error::Failure;

/// A gateway that serves.
pub async fn started(settings: Settings) -> Result<Gateway, Failure> {
    longhaul_gateway::start(settings).await.map_err(|error| Failure::Input(error.to_string()))
}

/// Stops the gateway and says what it did.
pub async fn stopped(gateway: Gateway) {
    let figures = gateway.figures();
    gateway.stop().await;
    // Where stderr is closed there is no reader.
    if let Some(cramped) = figures.cramped {
        _ = writeln!(anstream::stderr(), "longhaul: {cramped}");
    }
    _ = writeln!(anstream::stderr(), "{}", options::summary(&figures));
    if let Some(session) = figures.tied {
        _ = writeln!(
            anstream::stderr(),
            "longhaul: to go on without Longhaul, run `longhaul release {session} FILE -o FILE` on the agent's session file"
        );
    }
}
