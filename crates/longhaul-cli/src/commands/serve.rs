//! `longhaul serve`: the gateway, until it is told to stop.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use longhaul_config::Config;
use longhaul_gateway::{Gateway, GatewayError, Open, Origin, Settings, Token};
use longhaul_store::StoreError;
use tokio::runtime::Runtime;

use crate::error::Failure;
use crate::gateway::options::{ANTHROPIC, OPENAI, Options, kept, size};
use crate::gateway::own_token::OwnToken;
use crate::gateway::signals::{Signal, Signals};
use crate::gateway::stopped;
use crate::terminal::one_line;

/// Serve agents: a proxy in front of their provider that keeps conversations small
#[derive(clap::Args)]
#[command(after_help = "\
Agents are told its address in the place of their provider's; keys go through
it and are kept nowhere. Whatever goes wrong here, the agent's own request
goes on to its provider as it came. `longhaul env AGENT` prints what to set:
the address has a token in it, which is made once and which nobody else knows.

Examples:
  longhaul serve
  longhaul serve --no-token
  longhaul serve --origin http://localhost:3000
  longhaul serve --listen 127.0.0.1:9000 --window 120000
  longhaul serve --anthropic http://127.0.0.1:8090 --openai http://127.0.0.1:8090/v1
  longhaul serve --listen 0.0.0.0:8484 --token $TOKEN --store postgres://…
  longhaul serve --keep-days 30 --keep-bytes 10G
  longhaul serve --observe")]
pub struct Args {
    /// Where agents connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    listen: SocketAddr,
    /// What agents must know to be let in, in the place of your own token; needed where others can connect
    #[arg(long, value_name = "T", env = "LONGHAUL_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Let every program of this machine use the APIs; pages, tools and changes need the token all the same
    #[arg(long)]
    no_token: bool,
    /// Let web pages of this origin (https://chat.example.com) use the APIs; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<Origin>,
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
    let own = args.own_token()?;
    let settings = args.settings(config, own.as_ref())?;
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
        // In one piece: who reads the first line alone may go after it.
        write!(out, "{}", args.greeting(gateway.address(), own.as_ref()))?;
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
    /// The token of this user, which the gateway asks for if nobody names another. Where other machines can connect,
    /// somebody must name one.
    fn own_token(&self) -> Result<Option<OwnToken>, Failure> {
        let is_needed = self.token.is_none() && self.listen.ip().is_loopback();
        is_needed.then(OwnToken::get).transpose()
    }

    fn token(&self, own: Option<&OwnToken>) -> Option<Token> {
        let Some(named) = &self.token else { return own.map(|own| Token::of_one_user(&own.text)) };
        // `longhaul env` prints the user's own as a variable, which this gateway may be started with.
        let known = OwnToken::known().ok().flatten();
        let is_own = known.is_some_and(|known| known.text == named.trim());
        Some(if is_own { Token::of_one_user(named) } else { Token::new(named) })
    }

    /// What is printed when the gateway serves. A token is printed on a terminal alone: what else reads it may be a log.
    fn greeting(&self, address: SocketAddr, own: Option<&OwnToken>) -> String {
        let mut lines = format!("listening on http://{address}\n");
        match own {
            Some(OwnToken { text, .. }) if std::io::stdout().is_terminal() => {
                lines += &format!(
                    "base URL for agents: http://{address}/t/{text} (for OpenAI's SDKs with /v1 behind it)\n"
                );
                lines += &format!("inspector at http://{address}/inspect/?token={text}\n");
            }
            Some(OwnToken { path, .. }) => {
                let path = one_line(&path.display().to_string(), 500);
                lines +=
                    &format!("the token is in {path}; `longhaul env AGENT` prints addresses that have it\n");
            }
            None => {}
        }
        if self.no_token {
            lines += "without the token, every user and program of this machine can use your base URLs here, and go on \
                      with conversations that it knows; pages, tools and changes need the token\n";
        }
        lines
    }

    /// What the gateway goes by.
    fn settings(&self, config: &Config, own: Option<&OwnToken>) -> Result<Settings, Failure> {
        let token = self.token(own);
        let mut settings = self.options.settings(config, self.listen, token, [ANTHROPIC, OPENAI])?;
        settings.open = if self.no_token { Open::Apis } else { Open::Nothing };
        settings.origins.extend_from_slice(&self.origin);
        let gateway = config.gateway();
        settings.desk.retention =
            kept(self.keep_days.or(gateway.keep_days), self.keep_bytes.or(gateway.keep_bytes));
        settings.desk.without_content |= self.no_content;
        Ok(settings)
    }

    /// Reads the settings again. If something is wrong with them, they stay as they were.
    fn reload(&self, gateway: &Gateway) {
        let read = || self.settings(&Config::load()?, self.own_token()?.as_ref());
        let settings: Result<Settings, Failure> = read();
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
