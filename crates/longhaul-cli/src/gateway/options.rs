//! What a command that starts the gateway is told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use longhaul::{Summariser, Tokens};
use longhaul_config::{Config, size_of, without_password};
use longhaul_gateway::{DeskSettings, Limits, Open, Origin, Recall, Settings, SummaryModel, Token};
use longhaul_store::{Retention, SessionId};
use tracing_subscriber::filter::LevelFilter;

use crate::error::Failure;
use crate::gateway::shell::quoted;
use crate::output_file;
use crate::place::Place;
use crate::writing_model::WritingModel;

/// Anthropic's own address.
pub const ANTHROPIC: &str = "https://api.anthropic.com";
/// OpenAI's own address.
pub const OPENAI: &str = "https://api.openai.com/v1";

/// What the gateway is told, however it is started.
#[derive(clap::Args)]
pub struct Options {
    /// Where requests of Anthropic Messages go, as Anthropic's SDKs take it
    #[arg(long, value_name = "URL")]
    pub anthropic: Option<String>,
    /// Where requests of OpenAI Chat and Responses go, as OpenAI's SDKs take it
    #[arg(long, value_name = "URL")]
    pub openai: Option<String>,
    /// Where sessions are kept: the path of a file, or postgres://…
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Tokens that fit into the window; without it, the model's own
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// How to compact
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// How models get back what was left out: by the tools at /mcp, or by a tool that is added to requests
    #[arg(long, value_name = "WAY", value_parser = recall_ways())]
    pub recall: Option<Recall>,
    /// Decide everything, send the agent's own requests, and report what would have been sent
    #[arg(long)]
    pub observe: bool,
    /// Write a line for each request to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

impl Options {
    /// The settings of a gateway that listens there. `anthropic` and `openai` are where requests go if no flag
    /// says so.
    pub fn settings(
        &self,
        config: &Config,
        listen: SocketAddr,
        token: Option<Token>,
        [anthropic, openai]: [&str; 2],
    ) -> Result<Settings, Failure> {
        let place = self.place(config)?;
        let profile = config.profile(self.profile.as_deref().unwrap_or(config.profile_name()))?;
        let summaries = match profile.summariser {
            Summariser::Extractor => None,
            Summariser::Host => Some(written_by(config)?),
        };
        let window = self.window.map(Tokens).or_else(|| config.own_window());
        let recall = self.recall.unwrap_or_default();
        let gateway = config.gateway();
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let desk = DeskSettings {
            profile,
            profiles: config.profiles().collect(),
            window,
            summaries,
            recall,
            observe: self.observes(config),
            memory: bytes(gateway.memory),
            retention: kept(gateway.keep_days, gateway.keep_bytes),
            without_content: gateway.no_content,
            ..DeskSettings::new(place.as_str())
        };
        let limits = Limits {
            body_bytes: bytes(gateway.max_body),
            bodies_bytes: bytes(gateway.max_bodies),
            connections: bytes(gateway.connections),
            decide: Duration::from_millis(gateway.decide_ms),
            ..Limits::default()
        };
        Ok(Settings {
            listen,
            anthropic: self.anthropic.clone().unwrap_or_else(|| anthropic.to_owned()),
            openai: self.openai.clone().unwrap_or_else(|| openai.to_owned()),
            others: Vec::new(),
            token,
            open: Open::Nothing,
            origins: origins(&gateway.origins)?,
            desk,
            limits,
        })
    }

    /// Whether the gateway only observes.
    pub fn observes(&self, config: &Config) -> bool {
        self.observe || config.gateway().observe
    }

    /// Makes the file of the store if it is not there, and reports one that cannot be used. A server may still be starting.
    pub fn make_store(&self, config: &Config) -> Result<(), Failure> {
        let place = self.place(config)?;
        if place.is_url() { Ok(()) } else { place.open_or_make().map(drop) }
    }

    /// Whether the command line says how the gateway is to be set up: what is wrong then may be a flag.
    pub fn is_told(&self) -> bool {
        [&self.profile, &self.store, &self.anthropic, &self.openai].into_iter().any(Option::is_some)
    }

    /// The command that writes an agent's session file for going on without Longhaul. FILE stands for that file.
    pub fn release(&self, session: SessionId) -> String {
        // A password is not printed: whoever gave one adds it.
        let store = self.store.as_ref().map(|place| format!(" --store {}", quoted(&without_password(place))));
        format!("longhaul release {session} FILE -o FILE.released{}", store.unwrap_or_default())
    }

    fn place(&self, config: &Config) -> Result<Place, Failure> {
        Place::new(self.store.clone().unwrap_or_else(|| config.store()))
    }

    /// Where log lines go: the file, if one is named, else stderr if that is free.
    pub fn write_log(&self, stderr_is_free: bool) -> Result<(), Failure> {
        let to_file = match &self.log {
            Some(path) => {
                let file = output_file::private().append(true).open(path);
                Some(file.map_err(|error| Failure::file(path, error))?)
            }
            None => None,
        };
        let builder = tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).with_ansi(false);
        // A second one is the test's own.
        match to_file {
            Some(file) => _ = builder.with_writer(std::sync::Mutex::new(file)).try_init(),
            None if stderr_is_free => _ = builder.with_writer(std::io::stderr).try_init(),
            None => {}
        }
        Ok(())
    }
}

/// Web pages that may use the APIs.
fn origins(named: &[String]) -> Result<Vec<Origin>, Failure> {
    let parsed = named.iter().map(|origin| origin.parse());
    let problem = |error: longhaul_gateway::NoOrigin| Failure::Input(format!("gateway.origins: {error}"));
    parsed.collect::<Result<_, _>>().map_err(problem)
}

/// The ways to recall, by their names.
fn recall_ways() -> impl TypedValueParser<Value = Recall> {
    let names = PossibleValuesParser::new(["mcp", "fill"]);
    names.map(|name| if name == "fill" { Recall::Fill } else { Recall::Mcp })
}

/// Which sessions are kept. All, if nobody says it.
pub fn kept(days: Option<u64>, bytes: Option<u64>) -> Retention {
    let older_than = days.map(|days| Duration::from_secs(days.saturating_mul(86_400)));
    Retention { older_than, larger_than: bytes, ..Retention::default() }
}

/// A number of bytes that a flag names.
pub fn size(text: &str) -> Result<u64, String> {
    let problem = "not a number of bytes: give one such as 500M or 10G";
    size_of(text).filter(|bytes| *bytes > 0).ok_or_else(|| problem.to_owned())
}

/// The model that writes summaries beside the requests.
fn written_by(config: &Config) -> Result<SummaryModel, Failure> {
    let WritingModel { provider, frame, window } =
        WritingModel::of(config, "a profile with summariser = \"model\"")?;
    Ok(SummaryModel { model: Arc::new(provider), frame, window })
}
