//! Whether all of it would work here: a check for each thing that can be wrong, and what to do then. Nothing is
//! sent to a provider, and nothing secret is said: of addresses only host and port.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul::Time;
use longhaul_config::Config;
use longhaul_store::{About, UpstreamRefusal};
use serde::Serialize;

use crate::error::Failure;
use crate::gateway::options::{ANTHROPIC, OPENAI};
use crate::gateway::own_token::OwnToken;
use crate::gateway::programs::{self, version};
use crate::gateway::reach::{Peer, variable};
use crate::gateway::shim::Shim;
use crate::gateway::{agents, shell};
use crate::place::Place;

/// How it stands with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// It works, but it may not be what is wanted.
    Hint,
    /// It stops something from working.
    Problem,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Hint => "hint",
            Self::Problem => "problem",
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    pub state: State,
    /// What was looked at.
    pub what: String,
    /// What was found.
    pub says: String,
    /// What to do, if there is something to do.
    #[serde(rename = "do")]
    pub todo: Option<String>,
}

impl Check {
    fn ok(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { state: State::Ok, what: what.into(), says: says.into(), todo: None }
    }

    fn hint(what: impl Into<String>, says: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { state: State::Hint, what: what.into(), says: says.into(), todo: Some(todo.into()) }
    }

    fn problem(what: impl Into<String>, says: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { state: State::Problem, what: what.into(), says: says.into(), todo: Some(todo.into()) }
    }
}

/// Whether settings can be read.
pub fn settings(config: &Result<Config, Failure>) -> Check {
    match config {
        Ok(config) => {
            let window = match config.own_window() {
                Some(window) => format!("a window of {} tokens", window.0),
                None => "the model's own window".to_owned(),
            };
            Check::ok("settings", format!("profile {}, {window}", config.profile_name()))
        }
        Err(problem) => Check::problem("settings", problem.to_string(), "mend or remove what is named"),
    }
}

/// The store, and what gateways have learnt there of providers.
pub fn stores(place: impl Fn() -> Result<Place, Failure>) -> Vec<Check> {
    let refusals = place().ok().filter(Place::is_there).map(|place| refusals(&place, now()));
    [vec![store(place())], refusals.unwrap_or_default()].concat()
}

/// Whether sessions can be kept there. A store that is not there is not made.
fn store(place: Result<Place, Failure>) -> Check {
    const TODO: &str = "give --store or LONGHAUL_STORE another place, or let it be written";
    let place = match place {
        Ok(place) => place,
        Err(problem) => return Check::problem("store", problem.to_string(), TODO),
    };
    let checked = match place.is_there() {
        true => write_and_delete(&place).map(|()| format!("{place} can be written")),
        false => writable_folder(Path::new(place.as_str()))
            .map(|folder| format!("{place} is made when it is needed; {} can be written", folder.display()))
            .map_err(|(folder, error)| Failure::file(&folder, error)),
    };
    match checked {
        Ok(says) => Check::ok("store", says),
        Err(problem) => Check::problem("store", problem.to_string(), TODO),
    }
}

/// What providers refuse of the edits that gateways make. A store that cannot be read is reported elsewhere.
fn refusals(place: &Place, now: Time) -> Vec<Check> {
    let known = place.open().and_then(|store| Ok(store.refusals()?)).unwrap_or_default();
    let mut known: Vec<UpstreamRefusal> =
        known.into_iter().filter(|refusal| UpstreamRefusal::counts(refusal.learnt, now)).collect();
    known.sort_by(|one, other| {
        (&one.upstream, &one.model, &one.form).cmp(&(&other.upstream, &other.model, &other.form))
    });
    let check = |refusal: UpstreamRefusal| {
        let what = match &*refusal.form {
            "tool" => "the recall tool".to_owned(),
            role => format!("summaries and notes as {role} text"),
        };
        let says = match &*refusal.says {
            "" => String::new(),
            says => format!(": {says:?}"),
        };
        let UpstreamRefusal { upstream, model, learnt, .. } = refusal;
        let said = format!("{upstream} refuses {what} for {model} (since {} UTC){says}", learnt);
        Check::hint(
            "refused edits",
            said,
            "nothing: new edits have another form, and after seven days this one is tried again",
        )
    };
    known.into_iter().map(check).collect()
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Makes an empty session and deletes it.
fn write_and_delete(place: &Place) -> Result<(), Failure> {
    let store = place.open()?;
    let id = store.create(&About { title: Some("longhaul doctor".to_owned()), ..About::default() })?;
    Ok(store.delete(id)?)
}

/// The folder in which a file would be made, or the first one above that is there.
fn writable_folder(file: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
    let file = std::path::absolute(file).map_err(|error| (file.to_owned(), error))?;
    let Some(folder) = file.ancestors().skip(1).find(|folder| folder.exists()) else {
        return Err((file, io::ErrorKind::NotFound.into()));
    };
    let trial = folder.join(format!(".longhaul-doctor-{}", std::process::id()));
    let made = fs::File::create_new(&trial).and_then(|_| fs::remove_file(&trial));
    made.map(|()| folder.to_owned()).map_err(|error| (folder.to_owned(), error))
}

/// Agents that are there.
pub async fn agents() -> Vec<Check> {
    /// Some agents are slow to start.
    const WITHIN: Duration = Duration::from_secs(5);
    let names = agents::AGENTS.iter().map(|agent| agent.program);
    let found = names.filter_map(|name| Some((name, programs::in_path(name).into_iter().next()?)));
    let asked: Vec<_> = found
        .map(|(name, first)| {
            let real = if Shim::is_at(&first) { programs::real(name) } else { Some(first.clone()) };
            let asked = real.clone();
            let task = tokio::spawn(async move {
                match asked {
                    Some(program) => version(&program, WITHIN).await,
                    None => None,
                }
            });
            (name, first, real, task)
        })
        .collect();
    let mut checks = Vec::new();
    for (name, first, real, task) in asked {
        let version = task.await.ok().flatten();
        checks.push(agent(name, &first, real.as_deref(), version.as_deref()));
    }
    if checks.is_empty() {
        let todo = "install one, or give `longhaul wrap` the path of a program";
        checks.push(Check::hint("agents", "none that is known is in PATH", todo));
    }
    checks
}

/// What is said of an agent: the first program of its name, and the one behind a shim.
fn agent(name: &str, first: &Path, real: Option<&Path>, version: Option<&str>) -> Check {
    let Some(real) = real else {
        let says = format!("{} is our shim, and the program behind it is not in PATH", first.display());
        return Check::problem(name, says, format!("install {name}, or `longhaul unpersist {name}`"));
    };
    let at = match real == first {
        true => real.display().to_string(),
        false => format!("{} behind our shim {}", real.display(), first.display()),
    };
    match version {
        Some(version) => Check::ok(name, format!("{version}, {at}")),
        None => {
            let todo = format!("see what `{} --version` says", shell::quoted(&real.display().to_string()));
            Check::hint(name, format!("{at} does not say its version"), todo)
        }
    }
}

/// Whether a gateway answers there. One that the user named, or that agents are sent to, must.
pub async fn gateway(peer: &Peer, must_be: bool) -> Check {
    let pages = async {
        for (path, says) in [("/healthz", "alive"), ("/readyz", "ready")] {
            match peer.page(path).await? {
                (200, said) if said == says => {}
                (status, _) => {
                    return Err(format!(
                        "{path} is answered with {status}, and not by a gateway that is {says}"
                    ));
                }
            }
        }
        Ok(())
    };
    match pages.await {
        Ok(()) => Check::ok(
            "gateway",
            format!("{peer} is alive and ready; its page is at http://{peer}/inspect/?token=TOKEN"),
        ),
        Err(error) => {
            let says = format!("none at {peer}: {error}");
            match must_be {
                true => Check::problem("gateway", says, format!("longhaul serve --listen {peer}")),
                false => {
                    Check::hint("gateway", says, "`longhaul serve` starts one; `longhaul wrap` needs none")
                }
            }
        }
    }
}

/// Whether the token of this user's gateways is known to nobody else.
pub fn token() -> Check {
    match OwnToken::known() {
        Ok(Some(OwnToken { path, .. })) => Check::ok("token", format!("{} is yours alone", path.display())),
        Ok(None) => Check::ok("token", "none yet: `longhaul serve` makes one"),
        Err(problem) => {
            Check::problem("token", problem.to_string(), "delete the file, and tell agents the new token")
        }
    }
}

/// Variables that say where a provider is.
const BASES: [&str; 4] = ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_BASE"];

/// True if agents of this shell are sent to this gateway.
pub fn is_base(gateway: &Peer) -> bool {
    let mut set = BASES.iter().filter_map(|name| Peer::of(&variable(name)?));
    set.any(|peer| peer.is_same(gateway))
}

/// Where agents of this shell go.
pub fn bases(gateway: &Peer) -> Vec<Check> {
    let set = BASES.iter().filter_map(|name| Some((*name, variable(name)?)));
    let checks: Vec<Check> = set
        .map(|(name, value)| match Peer::of(&value) {
            None => {
                Check::problem(name, "it is no URL", format!("unset {name}, or write http://… or https://…"))
            }
            Some(peer) if peer.is_same(gateway) => {
                let todo = format!("`longhaul wrap` would go on to it: unset {name} before");
                let without = "; it names no token: `longhaul env AGENT` prints an address that does";
                let says = format!("agents of this shell go through the gateway at {peer}");
                Check::hint(name, if value.contains("/t/") { says } else { says + without }, todo)
            }
            Some(peer) => Check::ok(name, format!("{peer}; `longhaul wrap` goes on to it")),
        })
        .collect();
    match checks.is_empty() {
        true => vec![Check::ok("base URLs", "none is set: agents go to their providers")],
        false => checks,
    }
}

/// Whether a proxy would get what is for the gateway.
pub fn proxy(gateway: &Peer, must_be: bool) -> Check {
    match gateway.proxy() {
        None => Check::ok("proxy", format!("none is asked for {gateway}")),
        Some((name, _)) => {
            let says = format!("{name} is set, and NO_PROXY has no {}", gateway.host);
            let todo = format!(
                "export NO_PROXY=\"${{NO_PROXY:+$NO_PROXY,}}{}\"; `longhaul wrap` does it",
                gateway.host
            );
            match must_be {
                true => Check::problem("proxy", says, todo),
                false => Check::hint("proxy", says, todo),
            }
        }
    }
}

/// Whether providers can be reached: a connection, and no request. One that the user named must be, and one of all.
pub async fn providers(gateway: &Peer) -> Vec<Check> {
    let sides = [("anthropic", &BASES[..2], ANTHROPIC), ("openai", &BASES[2..], OPENAI)];
    let mut found = Vec::new();
    for (what, names, default) in sides {
        let named =
            names.iter().find_map(|name| Peer::of(&variable(name)?)).filter(|peer| !peer.is_same(gateway));
        let is_named = named.is_some();
        let Some(peer) = named.or_else(|| Peer::of(default)) else { continue };
        let (asked, by) = match peer.proxy() {
            Some((name, Some(proxy))) => (proxy, format!(" by the proxy of {name}")),
            Some((_, None)) | None => (peer.clone(), String::new()),
        };
        found.push((what, is_named, format!("{peer}{by}"), asked.connects().await));
    }
    let none = found.iter().all(|(.., connected)| connected.is_err());
    let checks = found.into_iter().map(|(what, is_named, at, connected)| match connected {
        Ok(()) => Check::ok(what, format!("{at} can be reached")),
        Err(error) => {
            let says = format!("{at} cannot be reached: {error}");
            let todo = "look at the network, a firewall, and HTTPS_PROXY";
            if none || is_named { Check::problem(what, says, todo) } else { Check::hint(what, says, todo) }
        }
    });
    checks.collect()
}
