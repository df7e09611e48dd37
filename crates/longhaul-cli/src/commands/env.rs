//! `longhaul env`: what an agent is told so that it goes through a gateway that runs already.

use std::io::Write;
use std::net::SocketAddr;

use crate::error::Failure;
use crate::gateway::agents::{self, ANY, Setting, Told, no_proxy};
use crate::gateway::reach::{Peer, variable};
use crate::gateway::shell::quoted;

/// Print what sends an agent through a gateway that runs already
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  eval \"$(longhaul env claude)\" && claude
  longhaul env codex --gateway 127.0.0.1:9000")]
pub struct Args {
    /// The agent: claude, codex, opencode, aider, qwen, mini, or any other
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Where the gateway listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    gateway: SocketAddr,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let agent = agents::find(&args.agent).unwrap_or(&ANY);
    let has_openai_key = std::env::var_os("OPENAI_API_KEY").is_some_and(|key| !key.is_empty());
    let told = Told { gateway: args.gateway, is_anthropic: true, has_openai_key, recall: agent.recall };
    let mut out = anstream::stdout().lock();
    let mut arguments = Vec::new();
    for setting in (agent.told)(&told) {
        match setting {
            Setting::Variable(name, value) => writeln!(out, "export {name}={}", quoted(&value))?,
            Setting::Argument(argument) => arguments.push(quoted(&argument)),
        }
    }
    if Peer::of(&args.gateway.to_string()).is_some_and(|gateway| gateway.proxy().is_some()) {
        for name in ["NO_PROXY", "no_proxy"] {
            writeln!(out, "export {name}={}", quoted(&no_proxy(variable(name).as_deref())))?;
        }
    }
    if !arguments.is_empty() {
        writeln!(out, "# run it as: {} {}", agent.program, arguments.join(" "))?;
    }
    Ok(())
}
