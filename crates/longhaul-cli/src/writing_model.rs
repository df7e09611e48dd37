//! The model that writes summaries, as the settings name it.

use longhaul::{Frame, Json, Models, Tokens};
use longhaul_config::Config;
use longhaul_model::{Key, Provider};
use longhaul_wire::api::Api;

use crate::error::Failure;

/// The model that writes summaries, and how it is asked.
pub struct WritingModel {
    pub provider: Provider,
    /// Its name, and how long it may answer.
    pub frame: Frame,
    /// What fits into its window.
    pub window: Tokens,
}

impl WritingModel {
    /// The model that the settings name. `who` wants it.
    pub fn of(config: &Config, who: &str) -> Result<Self, Failure> {
        let settings = config.summariser();
        let Some(base_url) = settings.base_url else {
            let needed = "set `summariser.base_url` (or LONGHAUL_SUMMARISER_BASE_URL), and as the server needs them \
                          `summariser.model`, `summariser.api`, `summariser.key_env` (docs/config.md)";
            return Err(Failure::Input(format!("{who}: no model is named: {needed}")));
        };
        let (api, usual_key) = match settings.api {
            "anthropic" => (Api::Anthropic, "ANTHROPIC_API_KEY"),
            "responses" => (Api::Responses, "OPENAI_API_KEY"),
            _ => (Api::Chat, "OPENAI_API_KEY"),
        };
        let key = match settings.key_env {
            Some(name) => Some(Key::from_env(name).ok_or_else(|| {
                let problem = "it is named by `summariser.key_env` and not set, or empty";
                Failure::Input(format!("the variable {name}: {problem}"))
            })?),
            // A server on this machine is not sent the key of another.
            None if is_local(base_url) => None,
            None => Key::from_env(usual_key),
        };
        let provider =
            Provider::new(api, base_url, key).map_err(|fault| Failure::Input(fault.to_string()))?;
        let mut frame = Frame { model: settings.model.map(Into::into), ..Frame::default() };
        if let Some(most) = settings.max_output {
            // Each API has a name of its own for it, which the request is written with.
            frame.settings.set("max_tokens", Json::from(&serde_json::Value::from(most)));
        }
        let row = Models::builtin().find(settings.model.unwrap_or_default());
        let known = (!row.is_unknown()).then_some(row.window);
        Ok(Self { provider, frame, window: settings.own_window.or(known).unwrap_or(settings.window) })
    }
}

/// True if the server is on this machine.
fn is_local(base_url: &str) -> bool {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let name = host.rsplit_once(':').filter(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "[::1]") || name.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_this_machine_is_known() {
        for local in
            ["http://127.0.0.1:8091", "http://localhost/v1", "http://[::1]:80/v1", "http://u:p@127.0.0.2"]
        {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "https://api.openai.com/v1",
            "http://127.0.0.1.evil.example",
            "http://localhost.example:80",
            "https://localhost@evil.example/",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
