//! `longhaul env`: what an agent is told so that it goes through a gateway that runs already.

use std::io::Write;
use std::net::SocketAddr;

use crate::error::Failure;
use crate::gateway::agents::{self, ANY, Setting, Told, no_proxy};
use crate::gateway::own_token::OwnToken;
use crate::gateway::reach::{Peer, variable};
use crate::gateway::secret::{self, TOKEN};
use crate::gateway::shell::quoted;
use crate::terminal;

/// Print what sends an agent through a gateway that runs already
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  eval \"$(longhaul env claude)\" && claude
  longhaul env codex --gateway 127.0.0.1:9000
  LONGHAUL_TOKEN=… longhaul env claude

What is printed has the gateway's token in it: for a gateway of this machine
your own, which `longhaul serve` asks for, unless you name another.")]
pub struct Args {
    /// The agent: claude, codex, opencode, pi, aider, qwen, mini, or any other
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Where the gateway listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    gateway: SocketAddr,
    /// What the gateway asks for; without it, your own token for a gateway of this machine
    #[arg(long, value_name = "T", env = TOKEN, hide_env_values = true)]
    token: Option<String>,
    /// The gateway only observes (`serve --observe`): leave the agent's own compaction on, and name no tools
    #[arg(long)]
    observe: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let known = agents::find(&args.agent);
    let agent = known.unwrap_or(&ANY);
    let token = match args.token.clone().filter(|token| !token.is_empty()) {
        None if args.gateway.ip().is_loopback() => Some(OwnToken::get()?.text),
        named => named,
    };
    if token.as_deref().is_some_and(|token| !secret::fits_a_path(token)) {
        let problem =
            "a token for agents is of letters, digits, `-`, `.`, `_` and `~`: it stands in base URLs";
        return Err(Failure::Input(problem.to_owned()));
    }
    let told = Told {
        gateway: args.gateway,
        is_anthropic: true,
        has_openai_key: variable("OPENAI_API_KEY").is_some(),
        token,
        scope: secret::scope()?,
        providers: Vec::new(),
        command: None,
        opencode_config: variable("OPENCODE_CONFIG_CONTENT"),
        recall: agent.recall,
        observes: args.observe,
    };
    let mut out = anstream::stdout().lock();
    if known.is_none() {
        let name = terminal::one_line(&args.agent, 60);
        writeln!(out, "# `{name}` is none of the agents that are known: these are the usual variables")?;
    }
    let mut arguments = Vec::new();
    for setting in (agent.told)(&told) {
        match setting {
            Setting::Variable(name, value) => writeln!(out, "export {name}={}", quoted(&value))?,
            Setting::Argument(argument) => arguments.push(quoted(&argument)),
            Setting::File { flag, name, text } => {
                writeln!(out, "# save as {name}:")?;
                text.lines().try_for_each(|line| writeln!(out, "#   {line}"))?;
                arguments.extend([flag.to_owned(), name.to_owned()]);
            }
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
