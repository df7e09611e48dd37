//! `longhaul serve`: the gateway, until it is told to stop.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use longhaul_config::Config;
use longhaul_gateway::{Gateway, GatewayError, Settings, Token};
use longhaul_store::StoreError;
use tokio::runtime::Runtime;

use crate::error::Failure;
use crate::gateway::options::{ANTHROPIC, OPENAI, Options, kept, size};
use crate::gateway::signals::{Signal, Signals};
use crate::gateway::stopped;

/// Serve agents: a proxy in front of their provider that keeps conversations small
#[derive(clap::Args)]
#[command(after_help = "\
Agents are told its address in the place of their provider's; keys go through
it and are kept nowhere. Whatever goes wrong here, the agent's own request
goes on to its provider as it came. `longhaul env AGENT` prints what to set.

Examples:
  longhaul serve
  longhaul serve --listen 127.0.0.1:9000 --window 120000
  longhaul serve --anthropic http://127.0.0.1:8090 --openai http://127.0.0.1:8090/v1
  longhaul serve --listen 0.0.0.0:8484 --token $TOKEN --store postgres://…
  longhaul serve --keep-days 30 --keep-bytes 10G
  longhaul serve --observe")]
pub struct Args {
    /// Where agents connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    listen: SocketAddr,
    /// What agents must know to be let in; needed where others can connect
    #[arg(long, value_name = "T", env = "LONGHAUL_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Delete sessions that nobody used for so many days; without it, none goes by its age
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    keep_days: Option<u64>,
    /// While sessions take more bytes than this (500M, 10G), delete the one that was left alone longest
    #[arg(long, value_name = "SIZE", value_parser = size)]
    keep_bytes: Option<u64>,
    /// Store nothing that anybody says, only hashes and figures: conversations are in memory alone
    #[arg(long)]
    no_content: bool,
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    args.options.write_log(true)?;
    args.options.make_store(config)?;
    let settings = args.settings(config)?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let mut signals = Signals::caught()?;
        let without_content = settings.desk.without_content;
        let gateway = tokio::select! {
            gateway = started_in_time(settings) => gateway?,
            () = ended(&mut signals) => return Ok(()),
        };
        if without_content {
            tracing::warn!(
                "nothing that is said is stored: after a restart, out of memory or on another replica a conversation \
                 begins anew, without its edits; recall after that, search and `longhaul sessions show` find nothing"
            );
        }
        let mut out = anstream::stdout();
        writeln!(out, "listening on http://{}", gateway.address())?;
        out.flush()?;
        while let Signal::HangUp = signals.next().await {
            args.reload(&gateway);
        }
        stopped(gateway, (!without_content).then_some(&args.options)).await;
        Ok(())
    })
}

/// A gateway that serves. A server of sessions that does not answer yet may be starting too: it is waited for.
async fn started_in_time(settings: Settings) -> Result<Gateway, Failure> {
    const MOST: Duration = Duration::from_secs(30);
    const LONGEST_PAUSE: Duration = Duration::from_secs(4);
    let begun = Instant::now();
    let mut pause = Duration::from_millis(250);
    loop {
        let problem = match longhaul_gateway::start(settings.clone()).await {
            Err(GatewayError::Store(
                problem @ (StoreError::Unavailable { .. } | StoreError::Busy { .. }),
            )) if longhaul_store::is_server(&settings.desk.store) && begun.elapsed() + pause < MOST => {
                problem
            }
            started => return started.map_err(|error| Failure::Input(error.to_string())),
        };
        tracing::warn!(%problem, "waiting for the store");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits until this process is told to end.
async fn ended(signals: &mut Signals) {
    while let Signal::HangUp = signals.next().await {}
}

impl Args {
    /// What the gateway goes by.
    fn settings(&self, config: &Config) -> Result<Settings, Failure> {
        let token = self.token.as_deref().map(Token::new);
        let mut settings = self.options.settings(config, self.listen, token, [ANTHROPIC, OPENAI])?;
        let gateway = config.gateway();
        settings.desk.retention =
            kept(self.keep_days.or(gateway.keep_days), self.keep_bytes.or(gateway.keep_bytes));
        settings.desk.without_content |= self.no_content;
        Ok(settings)
    }

    /// Reads the settings again. If something is wrong with them, they stay as they were.
    fn reload(&self, gateway: &Gateway) {
        let settings = Config::load().map_err(Failure::from).and_then(|config| self.settings(&config));
        match settings.map(|settings| gateway.change(settings)) {
            Ok(fixed) if fixed.is_empty() => tracing::info!("the settings were read again"),
            Ok(fixed) => {
                let fixed = fixed.join(", ");
                tracing::warn!(fixed, "the settings were read again; these change with a restart only");
            }
            Err(problem) => tracing::warn!(%problem, "the settings stay as they were"),
        }
    }
}
