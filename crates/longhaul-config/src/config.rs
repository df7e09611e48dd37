//! All settings with their values, and the profiles that they make.

use std::env;
use std::path::Path;

use longhaul::{Profile, Tokens};

use crate::agent_settings::IgnoredSettings;
use crate::error::{ConfigError, NoSuchProfile};
use crate::layers::Layers;
use crate::profile_settings::PROFILE_SETTINGS;
use crate::setting::{Origin, Setting};
use crate::size::size_of;
use crate::value::{ValueKind, names_in, tool_kind};

/// All settings, each with its value. The default is what is built in.
#[derive(Debug, Clone)]
pub struct Config {
    settings: Vec<Setting>,
    profiles: Vec<NamedProfile>,
    pub(crate) ignored: Vec<IgnoredSettings>,
}

/// How the model is reached that writes summaries of recorded sessions. The key itself is no setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummariserSettings<'a> {
    /// Its base URL, if anybody set it.
    pub base_url: Option<&'a str>,
    /// `chat`, `responses` or `anthropic`.
    pub api: &'a str,
    /// Its name.
    pub model: Option<&'a str>,
    /// The variable of the environment that holds its key, if anybody named it.
    pub key_env: Option<&'a str>,
    /// Tokens that fit into its window, if anybody said it: where nobody did, the model's own is the right one.
    pub own_window: Option<Tokens>,
    /// The same, or a careful guess.
    pub window: Tokens,
    /// The longest answer that it is asked for, if anybody said it.
    pub max_output: Option<u64>,
}

/// How a gateway is run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// Sessions that nobody used for so many days are deleted.
    pub keep_days: Option<u64>,
    /// While sessions take more bytes than this, the one that was left alone longest is deleted.
    pub keep_bytes: Option<u64>,
    /// Nothing that anybody said is stored.
    pub no_content: bool,
    /// Everything is decided, and the client's own bytes are sent.
    pub observe: bool,
    /// Web pages that may use the APIs, by their origins.
    pub origins: Vec<String>,
    /// Bytes that conversations may take in memory.
    pub memory: u64,
    /// Bytes of a request's body that are kept.
    pub max_body: u64,
    /// Bytes of all bodies that are kept at once.
    pub max_bodies: u64,
    /// Connections of clients at once.
    pub connections: u64,
    /// Milliseconds that a decision may take.
    pub decide_ms: u64,
}

/// A profile, with the built-in one that it is based on; a built-in one on itself.
#[derive(Debug, Clone)]
struct NamedProfile {
    name: String,
    base: Profile,
}

/// No size that is set is larger.
const MOST: u64 = 1 << 50;

impl Default for Config {
    fn default() -> Self {
        let built_in = |key: &str, kind, says, value: &str| Setting {
            key: key.to_owned(),
            kind,
            says,
            value: value.to_owned(),
            origin: Origin::BuiltIn,
        };
        let window = ValueKind::Tokens(1_000, 100_000_000);
        let settings = vec![
            built_in("window", window, "tokens that fit into the model's window", "200000"),
            built_in("profile", ValueKind::Profile, "how to compact", "longhaul"),
            built_in("store", ValueKind::Place, "where sessions are kept", ""),
            built_in("summariser.base_url", ValueKind::Place, "where the model is that writes summaries", ""),
            built_in(
                "summariser.api",
                ValueKind::OneOf(&["chat", "responses", "anthropic"]),
                "what it speaks",
                "chat",
            ),
            built_in("summariser.model", ValueKind::Text, "its name", ""),
            built_in("summariser.key_env", ValueKind::VariableName, "the variable that holds its key", ""),
            built_in("summariser.window", window, "tokens that fit into its window", "32000"),
            built_in(
                "summariser.max_output",
                ValueKind::Number(0, 1_000_000),
                "tokens of its longest answer; 0: it knows",
                "0",
            ),
            built_in(
                "agent.api",
                ValueKind::OneOf(&["auto", "openai", "openai-responses", "anthropic"]),
                "what the provider speaks; auto: the key says it",
                "auto",
            ),
            built_in("agent.base_url", ValueKind::Place, "where the agent's provider is", ""),
            built_in("agent.model", ValueKind::Text, "the model that answers", ""),
            built_in("agent.key_env", ValueKind::VariableName, "the variable that holds its key", ""),
            built_in(
                "agent.permissions",
                ValueKind::OneOf(&["ask", "edits", "read-only", "all"]),
                "what may be done without asking",
                "ask",
            ),
            built_in("agent.allow", ValueKind::Rules, "calls that may run", ""),
            built_in("agent.deny", ValueKind::Rules, "calls that may not run", ""),
            built_in("agent.steps", ValueKind::Number(1, 1_000_000), "replies to one input at most", "200"),
            built_in(
                "agent.max_output",
                ValueKind::Number(0, 10_000_000),
                "tokens of the longest answer; 0: the provider knows",
                "0",
            ),
            built_in("agent.unconfined", ValueKind::Flag, "commands write wherever you may", "false"),
            built_in("agent.react", ValueKind::Flag, "tool calls as text", "false"),
            built_in(
                "agent.thinking",
                ValueKind::OneOf(&["none", "short", "whole"]),
                "what is shown of the model's thoughts",
                "short",
            ),
            built_in(
                "gateway.keep_days",
                ValueKind::Number(0, 36_500),
                "sessions are kept; 0: for ever",
                "0",
            ),
            built_in("gateway.keep_bytes", ValueKind::Size(0, MOST), "all sessions take; 0: no limit", "0"),
            built_in("gateway.no_content", ValueKind::Flag, "nothing that anybody said is stored", "false"),
            built_in(
                "gateway.observe",
                ValueKind::Flag,
                "requests are decided, and sent as they came",
                "false",
            ),
            built_in("gateway.origins", ValueKind::Text, "web pages that may use the APIs", ""),
            built_in("gateway.memory", ValueKind::Size(1 << 20, MOST), "conversations in memory", "96M"),
            built_in("gateway.max_body", ValueKind::Size(1 << 10, 1 << 30), "a request that is read", "64M"),
            built_in("gateway.max_bodies", ValueKind::Size(1 << 20, MOST), "all requests at once", "512M"),
            built_in("gateway.connections", ValueKind::Number(1, 100_000), "of clients at once", "1024"),
            built_in("gateway.decide_ms", ValueKind::Number(1, 600_000), "that a decision may take", "2000"),
        ];
        let mut config = Self { settings, profiles: Vec::new(), ignored: Vec::new() };
        for profile in Profile::all() {
            config.define(profile.name.to_string(), profile);
        }
        config
    }
}

impl Config {
    /// Reads the usual places: the user's file, the file of the project that the current folder
    /// is in, and the environment.
    ///
    /// ```no_run
    /// # use longhaul_config::Config;
    /// let config = Config::load()?;
    /// let profile = config.profile(config.profile_name())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// For another folder, or with flags, [`Layers::find`] and [`Config::read`] do the same in
    /// two steps.
    pub fn load() -> Result<Self, ConfigError> {
        // Without a current folder there is no project.
        Self::read(&Layers::find(&env::current_dir().unwrap_or_default())?)
    }

    /// All settings: the general ones, profile by profile, tools.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// A setting by its whole name, such as `profiles.mini.trigger`.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// Tokens that fit into the model's window.
    pub fn window(&self) -> Tokens {
        Tokens(self.text("window").parse().unwrap_or_default())
    }

    /// The window, if anybody set it: where nobody did, the model's own is the right one.
    pub fn own_window(&self) -> Option<Tokens> {
        self.get("window").filter(|setting| setting.origin != Origin::BuiltIn).map(|_| self.window())
    }

    /// The name of the profile to go by.
    pub fn profile_name(&self) -> &str {
        self.text("profile")
    }

    /// Where sessions are kept: the path of a file, or a URL; empty if nobody said it and the user has no
    /// folder. A path in a file of settings is seen from the folder of that file.
    pub fn store(&self) -> String {
        let Some(setting) = self.get("store") else { return String::new() };
        match &setting.origin {
            Origin::File { path, .. } if !setting.value.contains("://") => {
                let folder = path.parent().unwrap_or(Path::new(""));
                folder.join(&setting.value).display().to_string()
            }
            _ => setting.value.clone(),
        }
    }

    /// The model that writes summaries of recorded sessions.
    pub fn summariser(&self) -> SummariserSettings<'_> {
        let said = |key| Some(self.text(key)).filter(|text| !text.is_empty());
        let window = self.get("summariser.window").filter(|setting| setting.origin != Origin::BuiltIn);
        SummariserSettings {
            base_url: said("summariser.base_url"),
            api: self.text("summariser.api"),
            model: said("summariser.model"),
            key_env: said("summariser.key_env"),
            own_window: window.and_then(|setting| setting.value.parse().ok()).map(Tokens),
            window: Tokens(self.text("summariser.window").parse().unwrap_or_default()),
            max_output: self.text("summariser.max_output").parse().ok().filter(|most| *most > 0),
        }
    }

    /// How a gateway is run.
    pub fn gateway(&self) -> GatewaySettings {
        let number = |key| self.text(key).parse().unwrap_or_default();
        let size = |key| size_of(self.text(key)).unwrap_or_default();
        GatewaySettings {
            keep_days: Some(number("gateway.keep_days")).filter(|days| *days > 0),
            keep_bytes: Some(size("gateway.keep_bytes")).filter(|bytes| *bytes > 0),
            no_content: self.text("gateway.no_content") == "true",
            observe: self.text("gateway.observe") == "true",
            origins: names_in(self.text("gateway.origins")).map(str::to_owned).collect(),
            memory: size("gateway.memory"),
            max_body: size("gateway.max_body"),
            max_bodies: size("gateway.max_bodies"),
            connections: number("gateway.connections"),
            decide_ms: number("gateway.decide_ms"),
        }
    }

    /// What projects say of the agent, which is not heard.
    pub fn ignored(&self) -> &[IgnoredSettings] {
        &self.ignored
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).map_or("", |setting| &setting.value)
    }

    /// The names of all profiles.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.profiles.iter().map(|profile| profile.name.as_str())
    }

    /// The name of the built-in profile that a profile of one's own is based on; `None` for a
    /// built-in one.
    pub fn base_of(&self, name: &str) -> Option<&str> {
        let profile = self.profiles.iter().find(|profile| profile.name == name)?;
        (profile.name != *profile.base.name).then_some(&*profile.base.name)
    }

    /// A profile, with the settings it was given.
    pub fn profile(&self, name: &str) -> Result<Profile, NoSuchProfile> {
        let found = self.profiles.iter().find(|profile| profile.name == name);
        found.map(|profile| self.with_settings(profile)).ok_or_else(|| NoSuchProfile {
            name: name.to_owned(),
            known: self.names().map(str::to_owned).collect(),
        })
    }

    /// All profiles, with the settings they were given.
    pub fn profiles(&self) -> impl Iterator<Item = Profile> {
        self.profiles.iter().map(|profile| self.with_settings(profile))
    }

    fn with_settings(&self, NamedProfile { name, base }: &NamedProfile) -> Profile {
        let mut profile = base.clone();
        for row in PROFILE_SETTINGS {
            if let Some(setting) = self.get(&format!("profiles.{name}.{}", row.name)) {
                (row.set)(&mut profile, &setting.value);
            }
        }
        for setting in &self.settings {
            let Some(tool) = setting.key.strip_prefix("tools.") else { continue };
            if let Some(kind) = tool_kind(&setting.value) {
                profile.aliases.add(tool, kind);
            }
        }
        profile.name = name.as_str().into();
        profile
    }

    /// The names of profiles whose base works to its trigger, and no further.
    pub(crate) fn working_to_their_trigger(&self) -> Vec<String> {
        let to_trigger = |profile: &&NamedProfile| profile.base.shares.target == profile.base.shares.trigger;
        self.profiles.iter().filter(to_trigger).map(|profile| profile.name.clone()).collect()
    }

    /// A profile, with what is built in for its base. One of this name is forgotten, and what it
    /// was given.
    pub(crate) fn define(&mut self, name: String, base: Profile) {
        self.settings.retain(|setting| !setting.key.starts_with(&format!("profiles.{name}.")));
        self.profiles.retain(|profile| profile.name != name);
        for row in PROFILE_SETTINGS.iter().filter(|row| row.is_for(&name, &base.name)) {
            self.settings.push(Setting {
                key: format!("profiles.{name}.{}", row.name),
                kind: row.kind,
                says: row.says,
                value: (row.get)(&base),
                origin: Origin::BuiltIn,
            });
        }
        self.profiles.push(NamedProfile { name, base });
    }

    /// Puts a checked value in its place. A tool has one from the time that somebody names it.
    pub(crate) fn put(&mut self, key: &str, kind: ValueKind, value: String, origin: Origin) {
        if kind == ValueKind::Tool {
            self.settings.retain(|setting| setting.key != key);
            let says = "a tool of this kind";
            self.settings.push(Setting { key: key.to_owned(), kind, says, value, origin });
        } else if let Some(setting) = self.settings.iter_mut().find(|setting| setting.key == key) {
            setting.value = value;
            setting.origin = origin;
        }
    }
}
