//! What an agent is told on the command line, and the agent that is made of it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use longhaul::{Models, Profile, Session, Tokens};
use longhaul_agent::{Agent, AgentSettings, Form, McpServers, Mode, Permissions, Project, React};
use longhaul_config::Config;
use longhaul_model::{Key, Model, Provider};
use longhaul_store::{About, Filter, Keeper, Meta, SessionId, Store, StoreError};
use longhaul_wire::api::Api;

use crate::agent::kept_rules::KeptRules;
use crate::agent::secrets::variable;
use crate::agent::shell::{self, Commands};
use crate::agent::thinking::Thinking;
use crate::commands::sessions::naming;
use crate::error::Failure;
use crate::gateway::options::{ANTHROPIC, OPENAI};
use crate::place::Place;

/// What an agent is told, however it is started.
#[derive(clap::Args, Clone)]
pub struct Options {
    /// What the provider speaks; without it, the key in the environment says it
    #[arg(long, value_enum)]
    api: Option<ApiName>,
    /// Where the provider is, as its own SDKs take it (OpenAI's ends in /v1)
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The model, as the provider knows it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How to compact
    #[arg(long, value_name = "P")]
    profile: Option<String>,
    /// Tokens that fit into the window; without it, the model's own
    #[arg(long, value_name = "N", value_parser = crate::arguments::window)]
    window: Option<u64>,
    /// What may be done without asking
    #[arg(long, value_enum)]
    permissions: Option<PermissionsName>,
    /// Let calls run that fit, such as "Bash(cargo test)" or "Edit(src/**)"
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Let no call run that fits, whatever else is said
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// A folder besides the project that commands may write to
    #[arg(long, value_name = "FOLDER")]
    writable: Vec<PathBuf>,
    /// Let commands write wherever you may
    #[arg(long)]
    unconfined: bool,
    /// Replies of the model to one input at most; 200 if nobody says another number
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// The longest answer in tokens
    #[arg(long, value_name = "N", value_parser = crate::arguments::tokens)]
    max_output: Option<u64>,
    /// Tool calls as text, for models that know no others
    #[arg(long)]
    react: bool,
    /// What is shown of the model's thoughts; the first line if left out
    #[arg(long, value_enum)]
    thinking: Option<Thinking>,
    /// Go on with this session: its id, the start of it, or `last`
    #[arg(long, value_name = "SESSION", conflicts_with = "continues")]
    resume: Option<String>,
    /// Go on with the newest session of this project
    #[arg(long = "continue")]
    continues: bool,
    /// Where sessions are kept: the path of a file, or postgres://…
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Servers of tools, as other agents name them: {"mcpServers": …}. Without it, mcp.json beside your settings
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
    /// The project; the current folder if left out
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// The variable that holds the key, if it is another than the provider's own.
    #[arg(skip)]
    key_env: Option<String>,
}

/// What a provider speaks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ApiName {
    /// OpenAI Chat, and most servers of one's own
    Openai,
    /// OpenAI Responses
    OpenaiResponses,
    /// Anthropic Messages
    Anthropic,
}

/// What may be done without asking.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PermissionsName {
    /// Looking at files
    Ask,
    /// Changing files of the project too
    Edits,
    /// Looking at files, and nothing else
    ReadOnly,
    /// Everything but changes of protected files
    All,
}

impl PermissionsName {
    fn mode(self) -> Mode {
        match self {
            Self::Ask => Mode::Ask,
            Self::Edits => Mode::Edits,
            Self::ReadOnly => Mode::ReadOnly,
            Self::All => Mode::All,
        }
    }
}

/// Who is asked.
struct Whom {
    wire: Api,
    base_url: String,
    key: Option<Key>,
    model: String,
}

/// Replies of the model to one input, if nobody says another number.
const STEPS: usize = 200;

/// Models that are asked if nobody names one.
const CLAUDE: &str = "claude-sonnet-5-5";
const GPT: &str = "gpt-5.5";

/// What to do without a key.
pub const NO_KEY: &str = "no key for a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or give --base-url for a server of your own\n\
    to see it without one: `longhaul demo --agent`";

impl Options {
    /// With what the settings say where the command line says nothing. Rules of both hold.
    pub fn with_settings(self, config: &Config) -> Self {
        let settings = config.agent();
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let named = |name: &str| PermissionsName::from_str(name, false).ok();
        let both = |said: Vec<String>, set: Vec<&str>| {
            set.into_iter().map(str::to_owned).chain(said).collect::<Vec<_>>()
        };
        Self {
            api: self.api.or_else(|| ApiName::from_str(settings.api?, false).ok()),
            base_url: self.base_url.or_else(|| owned(settings.base_url)),
            model: self.model.or_else(|| owned(settings.model)),
            key_env: owned(settings.key_env),
            permissions: self.permissions.or_else(|| named(settings.permissions)),
            allow: both(self.allow, settings.allow),
            deny: both(self.deny, settings.deny),
            steps: self.steps.or(Some(settings.steps)),
            max_output: self.max_output.or(settings.max_output),
            unconfined: self.unconfined || settings.unconfined,
            react: self.react || settings.react,
            thinking: self.thinking.or_else(|| Thinking::from_str(settings.thinking, false).ok()),
            ..self
        }
    }

    /// The agent, and how its commands are kept in.
    pub fn agent(&self, config: &Config) -> Result<(Agent, Commands), Failure> {
        let (model, name) = self.model()?;
        let project = shell::project(&self.folder()?)?;
        let (keeper, session) = self.session(config, &project, &name)?;
        let (tools, commands) =
            shell::tools(&project, !self.unconfined, &self.writable, &self.place(config)?)?;
        let settings = AgentSettings {
            model: name,
            max_output: self.max_output,
            steps: self.steps.and_then(|steps| usize::try_from(steps).ok()).unwrap_or(STEPS).max(1),
            form: self.form(session.profile()),
        };
        let permissions = self.permissions(&project)?;
        let agent = Agent::new(session, Some(keeper), model, project, tools, permissions, settings);
        Ok((agent, commands))
    }

    /// What is shown of the model's thoughts.
    pub fn thinking(&self) -> Thinking {
        self.thinking.unwrap_or_default()
    }

    /// The folder of the project.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        match &self.project {
            Some(folder) => Ok(folder.clone()),
            None => std::env::current_dir()
                .map_err(|error| Failure::Failed(format!("the current folder: {error}"))),
        }
    }

    /// Gives an agent the tools of the servers that are named. Gives what is wrong with those that do not answer.
    pub async fn connect(&self, agent: &mut Agent) -> Result<Vec<String>, Failure> {
        let Some(path) = self.mcp_config.clone().or_else(users_servers) else { return Ok(Vec::new()) };
        let json = std::fs::read_to_string(&path).map_err(|error| Failure::file(&path, error))?;
        let servers = McpServers::read(&json, variable);
        let servers = servers.map_err(|error| Failure::file(&path, error))?;
        let mut problems = Vec::new();
        let root = agent.project().root().to_owned();
        for server in longhaul_agent::connect(&servers, &root).await {
            match server.tools {
                Ok(tools) => agent.add_tools(tools),
                Err(problem) => problems.push(format!("the MCP server {}: {problem}", server.name)),
            }
        }
        Ok(problems)
    }

    fn permissions(&self, project: &Project) -> Result<Permissions, Failure> {
        let mut permissions = Permissions::new(self.permissions.map_or(Mode::Ask, PermissionsName::mode));
        KeptRules::of(project.root()).allow(&mut permissions)?;
        let bad = |error: longhaul_agent::BadRule| Failure::Input(error.to_string());
        for rule in &self.allow {
            permissions.allow(rule).map_err(bad)?;
        }
        for rule in &self.deny {
            permissions.deny(rule).map_err(bad)?;
        }
        Ok(permissions)
    }

    /// Whether there is somebody to be asked. Says so at once, where making the agent takes its time.
    pub fn check(&self) -> Result<(), Failure> {
        self.whom().map(|_| ())
    }

    /// The model, and its name.
    fn model(&self) -> Result<(Arc<dyn Model>, String), Failure> {
        let Whom { wire, base_url, key, model } = self.whom()?;
        let provider =
            Provider::new(wire, &base_url, key).map_err(|fault| Failure::Input(fault.to_string()))?;
        let provider: Arc<dyn Model> = Arc::new(provider);
        Ok((if self.react { Arc::new(React::new(provider)) } else { provider }, model))
    }

    fn whom(&self) -> Result<Whom, Failure> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let has_claude = set("ANTHROPIC_API_KEY").is_some();
        // A key by another name is for a provider that speaks what most do, unless the settings say what it speaks.
        let has_openai = set("OPENAI_API_KEY").is_some() || self.key_env.is_some();
        let api = match (self.api, &self.model) {
            (Some(api), _) => api,
            (None, Some(model)) if model.starts_with("claude") && has_claude => ApiName::Anthropic,
            (None, _) if self.base_url.is_some() => ApiName::Openai,
            (None, Some(model)) if !model.starts_with("claude") && has_openai => ApiName::OpenaiResponses,
            (None, _) if has_claude => ApiName::Anthropic,
            (None, _) if has_openai => ApiName::OpenaiResponses,
            (None, _) => return Err(Failure::Input(NO_KEY.to_owned())),
        };
        let (wire, key, url, usual_url, usual_model) = match api {
            ApiName::Anthropic => {
                (Api::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ANTHROPIC, CLAUDE)
            }
            ApiName::OpenaiResponses => (Api::Responses, "OPENAI_API_KEY", "OPENAI_BASE_URL", OPENAI, GPT),
            ApiName::Openai => (Api::Chat, "OPENAI_API_KEY", "OPENAI_BASE_URL", OPENAI, GPT),
        };
        let base_url = self.base_url.clone().or_else(|| set(url)).unwrap_or_else(|| usual_url.to_owned());
        let key = match &self.key_env {
            Some(name) => Some(set(name).map(|key| Key::new(&key)).ok_or_else(|| {
                let problem = "it is named by `agent.key_env` and not set, or empty";
                Failure::Input(format!("the variable {name}: {problem}"))
            })?),
            None => set(key).map(|key| Key::new(&key)),
        };
        if key.is_none() && base_url == usual_url {
            return Err(Failure::Input(NO_KEY.to_owned()));
        }
        let model = self.model.clone().unwrap_or_else(|| usual_model.to_owned());
        Ok(Whom { wire, base_url, key, model })
    }

    fn session(&self, config: &Config, project: &Project, model: &str) -> Result<(Keeper, Session), Failure> {
        let (place, store) = self.store(config)?;
        let before = match &self.resume {
            Some(name) => Some(naming::find(&*store, name, &place)?.id),
            None if self.continues => Some(newest_of(&*store, project)?),
            None => None,
        };
        match before {
            Some(id) => self.stored(config, id, model),
            None => self.fresh(config, project, model),
        }
    }

    /// Where sessions are kept, which is made if it is not there.
    pub fn store(&self, config: &Config) -> Result<(Place, Arc<dyn Store>), Failure> {
        let place = self.place(config)?;
        let store = place.open_or_make()?;
        Ok((place, store))
    }

    /// Where sessions are kept.
    pub fn place(&self, config: &Config) -> Result<Place, Failure> {
        Place::new(self.store.clone().unwrap_or_else(|| config.store()))
    }

    /// A stored session, to go on with.
    pub fn stored(&self, config: &Config, id: SessionId, model: &str) -> Result<(Keeper, Session), Failure> {
        let (keeper, mut session) = Keeper::open(self.store(config)?.1, id, self.profile(config)?)?;
        let row = Models::builtin().find(model);
        // The table may know more of the model than when the session was stored.
        if session.model() != row {
            session.switch(row.clone(), longhaul::Seals::Engine);
        }
        self.set_window(config, &mut session);
        Ok((keeper, session))
    }

    /// A new session.
    pub fn fresh(
        &self,
        config: &Config,
        project: &Project,
        model: &str,
    ) -> Result<(Keeper, Session), Failure> {
        let mut session = Session::new(self.profile(config)?, Models::builtin().find(model).clone());
        self.set_window(config, &mut session);
        let folder = project.root().display().to_string();
        let about = About { agent: AGENT.to_owned(), project: folder, ..About::default() };
        Ok((Keeper::create(self.store(config)?.1, &about, &session)?, session))
    }

    /// The window that the user has set; else it is the model's own.
    pub fn window(&self, config: &Config) -> Option<Tokens> {
        self.window.map(Tokens).or_else(|| config.own_window())
    }

    fn set_window(&self, config: &Config, session: &mut Session) {
        self.window(config).into_iter().for_each(|window| session.set_window(window));
    }

    fn profile(&self, config: &Config) -> Result<Profile, Failure> {
        Ok(config.profile(self.profile.as_deref().unwrap_or(config.profile_name()))?)
    }

    /// How the model sees results. Seed profiles know them by their envelope, and so does text.
    fn form(&self, profile: &Profile) -> Form {
        if self.react || &*profile.name == "archive" { Form::Json } else { Form::Plain }
    }

    /// An agent, and sessions that are opened from now on, go by this profile.
    pub fn set_profile(&mut self, name: &str, config: &Config, agent: &mut Agent) -> Result<(), Failure> {
        let profile = config.profile(name)?;
        self.profile = Some(name.to_owned());
        let form = self.form(&profile);
        agent.set_profile(profile, form);
        Ok(())
    }

    /// Another model, by the name that the provider knows.
    pub fn model_named(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let options = Self { model: Some(name.to_owned()), ..self.clone() };
        Ok(options.model()?.0)
    }
}

/// The user's own servers, if there is such a file. A project's file is not taken: it would start programs.
fn users_servers() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("longhaul/mcp.json")).filter(|path| path.is_file())
}

/// The program that sessions of the agent are stored under.
const AGENT: &str = "longhaul";

/// Sessions that are looked at for those in which something was said.
const LOOKED_AT: usize = 1_000;

/// The agent's sessions in this project in which something was said, the one written to last first.
pub fn sessions_of(store: &dyn Store, project: &Project) -> Result<Vec<Meta>, StoreError> {
    let project = Some(project.root().display().to_string());
    let filter = Filter { project, agent: Some(AGENT.to_owned()), ..Filter::default() };
    let mut found = store.list(&filter, LOOKED_AT)?;
    found.retain(|meta| meta.messages > 0);
    Ok(found)
}

fn newest_of(store: &dyn Store, project: &Project) -> Result<SessionId, Failure> {
    let newest = sessions_of(store, project)?.into_iter().next();
    let folder = project.root().display();
    let none = || Failure::Input(format!("there is no session of this project yet ({folder})"));
    Ok(newest.ok_or_else(none)?.id)
}
