//! Which servers there are, in the form that other agents have too: `{"mcpServers": {NAME: {command, args, env}}}`, or
//! `{url, headers}` for one that is reached by HTTP. `${NAME}` in a value is a variable of the environment, so that no
//! key need stand in the file.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Servers by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct McpServers {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, ServerSettings>,
}

/// How a server is spoken to.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ServerSettings {
    /// It is started.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Its environment, beside our own.
        #[serde(default)]
        env: BTreeMap<String, String>,
    },
    /// It is reached by HTTP.
    Url {
        /// Where.
        url: String,
        /// What each request says, such as `Authorization`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

impl std::fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Variables and headers hold keys.
        match self {
            Self::Command { command, .. } => write!(f, "Command({command})"),
            Self::Url { .. } => f.write_str("Url"),
        }
    }
}

/// Settings that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("these are no settings of MCP servers: {0}")]
pub struct BadServers(String);

impl McpServers {
    /// Reads settings. `variable` gives variables of the environment.
    ///
    /// ```
    /// use longhaul_agent::McpServers;
    /// let json = r#"{"mcpServers": {"docs": {"command": "docs-server", "env": {"TOKEN": "${TOKEN}"}}}}"#;
    /// let servers = McpServers::read(json, |name| (name == "TOKEN").then(|| "t".to_owned()))?;
    /// assert_eq!(servers.iter().count(), 1);
    /// assert!(McpServers::read(json, |_| None).unwrap_err().to_string().contains("TOKEN is not set"));
    /// # Ok::<(), longhaul_agent::BadServers>(())
    /// ```
    pub fn read(json: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadServers> {
        let mut servers: Self = serde_json::from_str(json).map_err(|error| BadServers(error.to_string()))?;
        for (name, settings) in &mut servers.servers {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 30 || !name.chars().all(is_name) {
                return Err(BadServers(format!("`{name}` is no name: letters, digits, - and _ are")));
            }
            let values: Vec<&mut String> = match settings {
                ServerSettings::Command { command, args, env } => {
                    [command].into_iter().chain(args).chain(env.values_mut()).collect()
                }
                ServerSettings::Url { url, headers } => {
                    [url].into_iter().chain(headers.values_mut()).collect()
                }
            };
            for value in values {
                *value = filled_in(value, &variable).map_err(|why| BadServers(format!("{name}: {why}")))?;
            }
        }
        Ok(servers)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ServerSettings)> {
        self.servers.iter().map(|(name, settings)| (name.as_str(), settings))
    }
}

/// A value with variables of the environment in their places.
fn filled_in(value: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), value);
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}') else { break };
        out.push_str(&rest[..start]);
        let (name, default) = match rest[start + 2..start + end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&rest[start + 2..start + end], None),
        };
        let known = variable(name).or_else(|| default.map(str::to_owned));
        out.push_str(&known.ok_or_else(|| format!("the variable {name} is not set"))?);
        rest = &rest[start + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}
