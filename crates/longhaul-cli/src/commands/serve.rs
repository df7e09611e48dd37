//! `longhaul serve`: the gateway, until it is told to stop.

use std::io::Write;
use std::net::SocketAddr;

use longhaul_config::Config;
use longhaul_gateway::Token;
use tokio::runtime::Runtime;

use crate::error::Failure;
use crate::gateway::options::{ANTHROPIC, OPENAI, Options};
use crate::gateway::{started, stopped};

/// Serve agents: a proxy in front of their provider that keeps conversations small
#[derive(clap::Args)]
#[command(after_help = "\
Agents are told its address in the place of their provider's; keys go through it
and are kept nowhere. Whatever goes wrong here, the agent's own request goes on
to its provider as it came. `longhaul env AGENT` prints what to set.

Examples:
  longhaul serve
  longhaul serve --listen 127.0.0.1:9000 --window 120000
  longhaul serve --anthropic http://127.0.0.1:8090 --openai http://127.0.0.1:8090/v1
  longhaul serve --listen 0.0.0.0:8484 --token $TOKEN --store postgres://…")]
pub struct Args {
    /// Where agents connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    listen: SocketAddr,
    /// What agents must know to be let in; needed where others can connect
    #[arg(long, value_name = "T", env = "LONGHAUL_TOKEN", hide_env_values = true)]
    token: Option<String>,
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    args.options.write_log(true)?;
    let settings = args.options.settings(
        config,
        args.listen,
        args.token.as_deref().map(Token::new),
        [ANTHROPIC, OPENAI],
    )?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let gateway = started(settings).await?;
        let mut out = anstream::stdout();
        writeln!(out, "listening on http://{}", gateway.address())?;
        out.flush()?;
        until_stopped().await;
        stopped(gateway).await;
        Ok(())
    })
}

/// Waits until somebody wants us to end.
async fn until_stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    _ = tokio::signal::ctrl_c().await;
}
