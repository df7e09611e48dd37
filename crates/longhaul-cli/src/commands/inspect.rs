//! `longhaul inspect`: the inspector of stored or recorded sessions, without a gateway.

use std::fs;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_config::Config;
use longhaul_inspector::access::Access;
use longhaul_inspector::export::{ExportError, Redaction, export};
use longhaul_inspector::{Inspector, Server, Settings};
use longhaul_store::{About, SessionId, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::demo;
use super::sessions::naming;
use crate::arguments::say_unknown_model;
use crate::error::Failure;
use crate::gateway::secret;
use crate::gateway::signals::Signals;
use crate::lab::importing::Import;
use crate::lab::inputs::{self, Unread};
use crate::lab::recorded::without_model;
use crate::place::Place;
use crate::terminal;

/// Look at sessions call by call, in a browser: what was sent, why, what it cost
#[derive(clap::Args)]
#[command(after_help = "\
Without an argument all stored sessions are shown. A FILE of any format that
`longhaul convert` reads is taken through the engine as if Longhaul had been
there, and kept only while this runs. A running gateway has the same page at
/inspect/ (`longhaul serve`).

Examples:
  longhaul inspect
  longhaul inspect last
  longhaul inspect demo
  longhaul inspect session.jsonl --window 64000
  longhaul inspect ~/.claude/projects
  longhaul inspect last --export report --redact 'customer-[0-9]+'")]
pub struct Args {
    /// Transcripts, journals or folders of them; or a stored session: its id, the start of one, or `last`; or `demo`
    #[arg(value_name = "FILE|SESSION")]
    what: Vec<PathBuf>,
    /// Where the page is
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// What a browser must know to be let in, in the place of a token that is made now; needed where others can connect
    #[arg(long, value_name = "T", env = "LONGHAUL_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Where sessions are kept: the path of a file, or postgres://…
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// How to compact, in the place of the setting `profile`
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// Tokens that fit into the model's window, for files; without it, that of --model, or the profile's
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// The model, where a transcript does not say
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Write the session as static pages into this new folder, without keys
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Take out of the pages what this regular expression fits; may be given several times
    #[arg(long, value_name = "PATTERN", requires = "export")]
    redact: Vec<String>,
}

/// The sessions that are looked at.
struct Sources {
    store: Arc<dyn Store>,
    /// The only one that is wanted.
    only: Option<SessionId>,
    /// Where recorded sessions are kept while they are looked at.
    folder: Option<TempDir>,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    if let Some(folder) = &args.export {
        return args.export_to(folder, config);
    }
    let (access, shown) = args.access()?;
    let sources = args.sources(config)?;
    let name = args.profile.as_deref().unwrap_or(config.profile_name());
    let settings = Settings {
        profile: config.profile(name)?,
        profiles: config.profiles().collect(),
        access,
        read_only: None,
        temporary: sources.folder.is_some(),
    };
    let inspector = Inspector::new(sources.store.clone(), settings);
    Runtime::new()?.block_on(async {
        let mut signals = Signals::caught()?;
        let cannot = |error| Failure::Input(format!("cannot listen on {}: {error}", args.listen));
        let server = Server::bind(args.listen, inspector).await.map_err(cannot)?;
        let token = shown.map(|token| format!("?token={token}")).unwrap_or_default();
        let place = sources.only.map(|id| format!("#/s/{id}")).unwrap_or_default();
        let mut out = anstream::stdout();
        writeln!(out, "inspector on http://{}/inspect/{token}{place}", server.address())?;
        out.flush()?;
        tokio::select! {
            () = server.run() => {}
            _ = signals.next() => {}
        }
        Ok(())
    })
}

impl Args {
    /// Who may look: whoever has the token. It is given where it is to be printed: one that somebody named on a terminal
    /// alone, where no log is.
    fn access(&self) -> Result<(Access, Option<String>), Failure> {
        let (text, is_shown) = match self.token.as_deref().map(str::trim) {
            Some("") => return Err(Failure::Input("the token is empty".to_owned())),
            Some(named) => (named.to_owned(), secret::fits_a_path(named) && std::io::stdout().is_terminal()),
            None if !self.listen.ip().is_loopback() => {
                let address = self.listen;
                let problem =
                    "can be reached from other machines: set a token (`--token`), or listen on 127.0.0.1";
                return Err(Failure::Input(format!("{address} {problem}")));
            }
            None => (secret::new()?, true),
        };
        let token = longhaul_gateway::Token::new(&text);
        let access = Access::with_token(move |text| token.is(text))
            .map_err(|error| Failure::Failed(format!("there are no random numbers: {error}")))?;
        Ok((access, is_shown.then_some(text)))
    }

    /// One session as static pages.
    fn export_to(&self, folder: &Path, config: &Config) -> Result<(), Failure> {
        let redaction = Redaction::new(&self.redact).map_err(Failure::Input)?;
        if folder.exists() && !fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
            return Err(Failure::file(folder, "is there already: pages go to a new folder"));
        }
        let sources = self.sources(config)?;
        let several =
            || Failure::Input("--export takes one session: name it, or the file that it is in".to_owned());
        let id = sources.only.ok_or_else(several)?;
        let profile = config.profile(self.profile.as_deref().unwrap_or(config.profile_name()))?;
        let exported =
            export(&sources.store, id, profile, &redaction, folder).map_err(|error| match error {
                ExportError::Pattern(_) => Failure::Input(error.to_string()),
                ExportError::Session(_) | ExportError::Write { .. } => Failure::Failed(error.to_string()),
            })?;
        let (calls, bytes) = (terminal::grouped(exported.calls as u64), terminal::short(exported.bytes));
        let page = terminal::path(&exported.page);
        writeln!(
            anstream::stdout(),
            "{page}: {calls} calls in {bytes} bytes; keys of known forms are taken out"
        )?;
        Ok(())
    }

    fn sources(&self, config: &Config) -> Result<Sources, Failure> {
        let place = || Place::new(self.store.clone().unwrap_or_else(|| config.store()));
        match self.what.as_slice() {
            [] => Ok(Sources { store: place()?.open()?, only: None, folder: None }),
            [name] if name.as_os_str() == "demo" && !name.exists() => self.demo(config),
            [name] if !is_file(name) => {
                // What looks like a path is none of a session.
                if name.components().count() > 1 || name.extension().is_some() {
                    return Err(Failure::file(name, "no such file"));
                }
                let (place, name) = (place()?, name.to_string_lossy());
                let store = place.open()?;
                let meta = naming::find(&*store, &name, &place)?;
                Ok(Sources { store, only: Some(meta.id), folder: None })
            }
            files => self.recorded(files, tempfile::tempdir()?, self.window, config),
        }
    }

    /// The session of `longhaul demo`.
    fn demo(&self, config: &Config) -> Result<Sources, Failure> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("demo.jsonl");
        fs::write(&file, demo::transcript_with_prices()?)?;
        self.recorded(&[file], folder, self.window.or(Some(demo::WINDOW.0)), config)
    }

    /// Recorded sessions in a store of their own, in this folder.
    fn recorded(
        &self,
        files: &[PathBuf],
        folder: TempDir,
        window: Option<u64>,
        config: &Config,
    ) -> Result<Sources, Failure> {
        let name = self.profile.as_deref().unwrap_or(config.profile_name());
        let import = Import {
            profile: without_model(config.profile(name)?),
            window: window.or_else(|| config.own_window().map(|window| window.0)),
            model: self.model.as_deref().unwrap_or_default(),
        };
        say_unknown_model(import.model);
        let store = longhaul_store::open(&folder.path().join("sessions.db").display().to_string())?;
        let (mut ids, mut read, mut unread) = (Vec::new(), 0, Unread::default());
        for input in inputs::find(files)? {
            match import.take(&input) {
                Ok(taken) => {
                    read += 1;
                    for taken in taken {
                        let about = About {
                            agent: taken.agent.clone(),
                            project: Path::new(&taken.name)
                                .strip_prefix(folder.path())
                                .map_or_else(|_| taken.name.clone(), |bundled| bundled.display().to_string()),
                            ..About::default()
                        };
                        ids.push(taken.keep(&store, &about)?.id);
                    }
                }
                Err(failure) => unread.add(&input, failure)?,
            }
        }
        unread.finish(read)?;
        let only = if let [one] = ids.as_slice() { Some(*one) } else { None };
        Ok(Sources { store, only, folder: Some(folder) })
    }
}

/// True if the argument names a file, a folder, or a conversation of a file (`path#2`).
fn is_file(path: &Path) -> bool {
    let named = || path.to_str().and_then(|path| path.rsplit_once('#')).map(|(path, _)| path.to_owned());
    path.exists() || path.as_os_str() == "-" || named().is_some_and(|path| Path::new(&path).exists())
}
