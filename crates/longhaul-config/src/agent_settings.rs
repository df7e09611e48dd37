//! How the user's own agent works: settings that are taken from the user alone. A project may come from anybody, and
//! what it says of the agent is left out.

use std::fmt;
use std::path::PathBuf;

use crate::config::Config;
use crate::error::one_line;
use crate::value::rules_in;

/// How the agent works. The key itself is no setting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentSettings<'a> {
    /// `openai`, `openai-responses` or `anthropic`, if anybody said it.
    pub api: Option<&'a str>,
    /// Where its provider is, if anybody said it.
    pub base_url: Option<&'a str>,
    /// The model's name, if anybody said it.
    pub model: Option<&'a str>,
    /// The variable of the environment that holds the key, if anybody named it.
    pub key_env: Option<&'a str>,
    /// `ask`, `edits`, `read-only` or `all`.
    pub permissions: &'a str,
    /// Rules that let calls run.
    pub allow: Vec<&'a str>,
    /// Rules that let no call run.
    pub deny: Vec<&'a str>,
    /// Replies of the model to one input at most.
    pub steps: u64,
    /// The longest answer in tokens, if anybody said it.
    pub max_output: Option<u64>,
    /// Commands may write wherever the user may.
    pub unconfined: bool,
    /// Tool calls as text.
    pub react: bool,
    /// How much is shown of what the model thinks: `none`, `short` or `whole`.
    pub thinking: &'a str,
}

/// What a project's file says of the agent, and what is not heard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IgnoredSettings {
    /// The file.
    pub path: PathBuf,
    /// The settings, in the order of the lines.
    pub keys: Vec<String>,
}

impl fmt::Display for IgnoredSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(|key| format!("`{key}`")).collect();
        write!(
            f,
            "{}: {} ignored: which model answers and what it may do is said in the user's file, not in a project's",
            one_line(&self.path),
            keys.join(", ") + if keys.len() == 1 { " is" } else { " are" },
        )
    }
}

impl Config {
    /// How the agent works.
    pub fn agent(&self) -> AgentSettings<'_> {
        let said = |key| Some(self.text(key)).filter(|text| !text.is_empty());
        AgentSettings {
            api: Some(self.text("agent.api")).filter(|api| *api != "auto"),
            base_url: said("agent.base_url"),
            model: said("agent.model"),
            key_env: said("agent.key_env"),
            permissions: self.text("agent.permissions"),
            allow: rules_in(self.text("agent.allow")).collect(),
            deny: rules_in(self.text("agent.deny")).collect(),
            steps: self.text("agent.steps").parse().unwrap_or_default(),
            max_output: self.text("agent.max_output").parse().ok().filter(|most| *most > 0),
            unconfined: self.text("agent.unconfined") == "true",
            react: self.text("agent.react") == "true",
            thinking: self.text("agent.thinking"),
        }
    }
}
