//! `longhaul wrap`: an agent behind a gateway of its own, which ends with it.

use std::ffi::OsString;
use std::process::ExitCode;

use longhaul_config::Config;
use longhaul_gateway::Gateway;
use tokio::process::Command;
use tokio::runtime::Runtime;

use crate::error::Failure;
use crate::gateway::agents::{self, ANY, Agent, Setting, Told, Upstream, no_proxy};
use crate::gateway::options::{ANTHROPIC, OPENAI, Options};
use crate::gateway::{started, stopped};

/// Run an agent behind a gateway of its own
#[derive(clap::Args)]
#[command(after_help = "\
Known are claude, codex, opencode, aider, qwen and mini. Any other program is told
by the usual variables (ANTHROPIC_BASE_URL, OPENAI_BASE_URL, OPENAI_API_BASE).
Where one of them is set already, the gateway goes on to there. The exit code is
the agent's.

Examples:
  longhaul wrap claude
  longhaul wrap --window 120000 claude -- --continue
  longhaul wrap codex -- exec \"run the tests\"
  longhaul wrap ./my-agent")]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// What the agent is told
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
    #[command(flatten)]
    options: Options,
}

/// Runs the command. Gives the agent's exit code.
pub fn run(args: &Args, config: &Config) -> Result<ExitCode, Failure> {
    args.options.write_log(false)?;
    let (agent, program) = match agents::find(&args.agent) {
        Some(agent) => (agent, agent.program),
        None => (&ANY, args.agent.as_str()),
    };
    let set = |upstream: Upstream| {
        let names = agent.upstream.iter().filter(move |(_, of)| *of == upstream);
        names.filter_map(|(name, _)| std::env::var(name).ok()).find(|value| !value.trim().is_empty())
    };
    let anthropic = args.options.anthropic.clone().or_else(|| set(Upstream::Anthropic));
    let anthropic = anthropic.unwrap_or_else(|| ANTHROPIC.to_owned());
    let openai = set(Upstream::OpenAi).unwrap_or_else(|| OPENAI.to_owned());
    let listen = ([127, 0, 0, 1], 0).into();
    let settings = args.options.settings(config, listen, None, [&anthropic, &openai])?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let gateway = started(settings).await?;
        let code = ran(args, agent, program, &gateway, anthropic == ANTHROPIC).await;
        stopped(gateway).await;
        code
    })
}

/// Runs the agent to its end.
async fn ran(
    args: &Args,
    agent: &Agent,
    program: &str,
    gateway: &Gateway,
    is_anthropic: bool,
) -> Result<ExitCode, Failure> {
    let has_openai_key = std::env::var_os("OPENAI_API_KEY").is_some_and(|key| !key.is_empty());
    let told = Told { gateway: gateway.address(), is_anthropic, has_openai_key };
    let mut command = Command::new(program);
    for setting in (agent.told)(&told) {
        match setting {
            Setting::Variable(name, value) => command.env(name, value),
            Setting::Argument(argument) => command.arg(argument),
        };
    }
    for name in ["NO_PROXY", "no_proxy"] {
        command.env(name, no_proxy(std::env::var(name).ok().as_deref()));
    }
    let mut child = command.args(&args.arguments).spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Input(format!("there is no program `{program}` to run")),
        _ => Failure::Failed(format!("`{program}` cannot be run: {error}")),
    })?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            // The terminal tells the agent too, and it knows what to do.
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    Ok(exit_code(status))
}

/// The exit code of a program; 128 and the number of the signal that ended it.
fn exit_code(status: std::process::ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let by_signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let by_signal = None;
    let code = status.code().or(by_signal).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
