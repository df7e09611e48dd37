//! Providers that the user has named in an agent's own files. The agent is told to ask the gateway for each of them,
//! and the gateway goes on to the address in the file, so that every key reaches its own provider. Providers whose API
//! the gateway does not speak are left as they are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::gateway::{jsonc, programs, reach};

/// Where an agent has its providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFiles {
    /// In its environment alone.
    No,
    /// In pi's `models.json`.
    Pi,
    /// In settings of several places, which opencode puts together itself.
    OpenCode,
}

/// A provider that the user has named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub name: String,
    /// What the gateway puts before a path.
    pub base: String,
    /// What the agent puts between the gateway's address and a path.
    pub version: &'static str,
}

impl Provider {
    fn new(name: &str, base: &str) -> Option<Self> {
        let base = base.trim().trim_end_matches('/');
        let is_url = ["http://", "https://"].iter().any(|scheme| base.starts_with(scheme));
        // A name that the agent would still put something into is no address yet.
        if !is_url || base.contains(['?', '#', '$', '{']) {
            return None;
        }
        let (base, version) = match base.strip_suffix("/v1") {
            Some(base) => (base, "/v1"),
            None => (base, ""),
        };
        Some(Self { name: name.to_owned(), base: base.to_owned(), version })
    }
}

impl OwnFiles {
    /// What the user has named. Files that are not there, or that the agent itself could not read, name nothing.
    pub async fn providers(self, program: &Path) -> Vec<Provider> {
        match self {
            Self::No => Vec::new(),
            Self::Pi => {
                let text =
                    pi_folder().and_then(|folder| std::fs::read_to_string(folder.join("models.json")).ok());
                text.and_then(|text| jsonc::read(&text)).map(|models| of_pi(&models)).unwrap_or_default()
            }
            Self::OpenCode => {
                /// It takes about a second.
                const WITHIN: Duration = Duration::from_secs(20);
                let said = programs::said(program, &["debug", "config"], WITHIN).await;
                let config = said.and_then(|text| serde_json::from_str::<Value>(&text).ok());
                config.map(|config| of_opencode(&config)).unwrap_or_default()
            }
        }
    }
}

/// Where pi has its files.
fn pi_folder() -> Option<PathBuf> {
    let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let Some(folder) = reach::variable("PI_CODING_AGENT_DIR") else { return Some(home()?.join(".pi/agent")) };
    match folder.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            Some(home()?.join(rest.trim_start_matches('/')))
        }
        _ => Some(folder.into()),
    }
}

/// Providers of pi's `models.json`. One whose models have addresses of their own is left as it is: pi is told one
/// address for all of them.
fn of_pi(models: &Value) -> Vec<Provider> {
    const APIS: [&str; 3] = ["anthropic-messages", "openai-completions", "openai-responses"];
    let is_ours = |api: &Value| api.as_str().is_none_or(|api| APIS.contains(&api));
    let providers = models["providers"].as_object().into_iter().flatten();
    let of_api = providers.filter(|(_, provider)| {
        let mut models = provider["models"].as_array().into_iter().flatten();
        is_ours(&provider["api"])
            && models.all(|model| is_ours(&model["api"]) && model.get("baseUrl").is_none())
    });
    of_api.filter_map(|(name, provider)| Provider::new(name, provider["baseUrl"].as_str()?)).collect()
}

/// Providers of opencode's settings.
fn of_opencode(config: &Value) -> Vec<Provider> {
    const APIS: [&str; 3] = ["@ai-sdk/anthropic", "@ai-sdk/openai", "@ai-sdk/openai-compatible"];
    let providers = config["provider"].as_object().into_iter().flatten();
    let of_api = providers.filter(|(name, provider)| match provider["npm"].as_str() {
        Some(api) => APIS.contains(&api),
        None => matches!(name.as_str(), "anthropic" | "openai"),
    });
    of_api
        .filter_map(|(name, provider)| Provider::new(name, provider["options"]["baseURL"].as_str()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn provider(name: &str, base: &str, version: &'static str) -> Provider {
        Provider { name: name.to_owned(), base: base.to_owned(), version }
    }

    #[test]
    fn providers_of_pi_are_those_whose_api_we_speak() {
        let models = json!({"providers": {
            "anthropic": {"baseUrl": "https://proxy.example/claude/"},
            "local": {"baseUrl": "http://127.0.0.1:1234/v1", "api": "openai-completions", "models": [{"id": "m"}]},
            "gemini": {"baseUrl": "https://g.example", "api": "google-generative-ai"},
            "mixed": {"baseUrl": "https://m.example", "models": [{"id": "m", "api": "google-generative-ai"}]},
            "spread": {"baseUrl": "https://s.example", "models": [{"id": "m", "baseUrl": "https://t.example"}]},
            "openai": {"headers": {"a": "b"}},
            "odd": {"baseUrl": "https://o.example/?key=k"},
        }});
        assert_eq!(
            of_pi(&models),
            [
                provider("anthropic", "https://proxy.example/claude", ""),
                provider("local", "http://127.0.0.1:1234", "/v1"),
            ]
        );
        assert_eq!(of_pi(&json!([])), []);
    }

    #[test]
    fn providers_of_opencode_are_those_whose_api_we_speak() {
        let config = json!({"provider": {
            "a": {"npm": "@ai-sdk/anthropic", "options": {"baseURL": "https://a.example/v1", "apiKey": "***"}},
            "b": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "https://b.example/api/v2"}},
            "c": {"npm": "@ai-sdk/google", "options": {"baseURL": "https://c.example"}},
            "d": {"npm": "@ai-sdk/openai"},
            "e": {"npm": "@ai-sdk/openai", "options": {"baseURL": "https://e.example/${ACCOUNT}/v1"}},
            "openai": {"options": {"baseURL": "https://f.example/v1"}},
            "openrouter": {"options": {"baseURL": "https://g.example/v1"}},
        }});
        assert_eq!(
            of_opencode(&config),
            [
                provider("a", "https://a.example", "/v1"),
                provider("b", "https://b.example/api/v2", ""),
                provider("openai", "https://f.example", "/v1"),
            ]
        );
    }
}
