//! Agents that are sent through the gateway: what each is told, by its environment or by flags. One row for each.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use longhaul_gateway::Recall;

use crate::error::Failure;

/// An agent, and how it is told where its provider is.
pub struct Agent {
    /// Its name here.
    pub name: &'static str,
    /// The program to run.
    pub program: &'static str,
    /// Variables that say where the provider is, if the user has set one: the gateway goes on to there.
    pub upstream: &'static [(&'static str, Upstream)],
    /// What it is told.
    pub told: fn(&Told) -> Vec<Setting>,
    /// How it recalls, if nobody says otherwise: by tools that it is told of, or by one that is added to its requests.
    pub recall: Recall,
}

/// Whose address a variable has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upstream {
    Anthropic,
    OpenAi,
}

/// What is known when an agent is started.
pub struct Told {
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// Requests go on to Anthropic itself.
    pub is_anthropic: bool,
    /// The user has a key of OpenAI in the environment.
    pub has_openai_key: bool,
    /// How it recalls: only who recalls by tools of ours is told of them.
    pub recall: Recall,
}

/// One thing that an agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// By a variable of its environment.
    Variable(&'static str, String),
    /// By an argument, before those of the user.
    Argument(String),
}

impl Told {
    fn anthropic(&self) -> String {
        format!("http://{}", self.gateway)
    }

    /// The tools of the gateway.
    fn tools(&self) -> String {
        format!("http://{}/mcp", self.gateway)
    }

    fn openai(&self) -> String {
        format!("http://{}/v1", self.gateway)
    }
}

const ANTHROPIC_URL: (&str, Upstream) = ("ANTHROPIC_BASE_URL", Upstream::Anthropic);
const OPENAI_URLS: [(&str, Upstream); 2] =
    [("OPENAI_BASE_URL", Upstream::OpenAi), ("OPENAI_API_BASE", Upstream::OpenAi)];

/// All agents that are known.
pub static AGENTS: [Agent; 6] = [
    Agent {
        name: "claude",
        program: "claude",
        upstream: &[ANTHROPIC_URL],
        told: claude,
        recall: Recall::Mcp,
    },
    Agent { name: "codex", program: "codex", upstream: &OPENAI_URLS, told: codex, recall: Recall::Fill },
    Agent {
        name: "opencode",
        program: "opencode",
        upstream: &[ANTHROPIC_URL, OPENAI_URLS[0]],
        told: opencode,
        recall: Recall::Mcp,
    },
    Agent {
        name: "aider",
        program: "aider",
        upstream: &[OPENAI_URLS[1], ANTHROPIC_URL],
        told: any,
        recall: Recall::Mcp,
    },
    Agent { name: "qwen", program: "qwen", upstream: &OPENAI_URLS, told: any, recall: Recall::Mcp },
    Agent { name: "mini", program: "mini", upstream: &OPENAI_URLS, told: any, recall: Recall::Mcp },
];

/// An agent that goes by a file of its own, which is not written yet.
pub const NOT_YET: &str = "pi";

/// What a program is told that goes by the usual variables.
pub static ANY: Agent = Agent {
    name: "",
    program: "",
    upstream: &[ANTHROPIC_URL, OPENAI_URLS[0], OPENAI_URLS[1]],
    told: any,
    recall: Recall::Mcp,
};

/// The agent of this name.
pub fn find(name: &str) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.name == name)
}

/// The name of the program of an agent that is known, or of any other.
pub fn program(agent: &str) -> Result<&str, Failure> {
    let name = find(agent).map_or(agent, |agent| agent.program);
    let is_name = !name.is_empty() && !name.starts_with(['-', '.']);
    if !is_name || name.contains(|c: char| c == '/' || c.is_control() || c.is_whitespace()) {
        return Err(Failure::Input("the name of a program in PATH is wanted, not a path".to_owned()));
    }
    Ok(name)
}

/// Where shims are put if nobody names a folder.
pub fn shim_folder() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".local/bin"))
}

fn variable(name: &'static str, value: impl Into<String>) -> Setting {
    Setting::Variable(name, value.into())
}

fn claude(told: &Told) -> Vec<Setting> {
    let mut settings = vec![
        variable("ANTHROPIC_BASE_URL", told.anthropic()),
        // Its own compaction would only lose what ours keeps.
        variable("DISABLE_AUTO_COMPACT", "1"),
    ];
    if told.is_anthropic {
        // Behind another address it takes a window of a million for one of 200,000.
        settings.push(variable("_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "1"));
    }
    if told.recall == Recall::Fill {
        return settings;
    }
    // A tool that is loaded later would change the prompt, and all of it would be billed again.
    let server = serde_json::json!({"type": "http", "url": told.tools(), "alwaysLoad": true});
    let servers = serde_json::json!({"mcpServers": {"longhaul": server}});
    // In one word: Claude Code takes several words behind these flags.
    settings.push(Setting::Argument(format!("--mcp-config={servers}")));
    settings.push(Setting::Argument("--allowedTools=mcp__longhaul__recall".to_owned()));
    settings
}

fn codex(told: &Told) -> Vec<Setting> {
    let login = match told.has_openai_key {
        true => r#"env_key="OPENAI_API_KEY""#,
        false => "requires_openai_auth=true",
    };
    let provider = format!(
        r#"model_providers.longhaul={{name="longhaul",base_url="{}",{login},wire_api="responses",supports_websockets=false}}"#,
        told.openai()
    );
    ["-c", "model_provider=longhaul", "-c", &provider]
        .map(|argument| Setting::Argument(argument.to_owned()))
        .to_vec()
}

fn opencode(told: &Told) -> Vec<Setting> {
    let config = serde_json::json!({
        "provider": {
            "anthropic": {"options": {"baseURL": format!("{}/v1", told.anthropic())}},
            "openai": {"options": {"baseURL": told.openai()}},
        },
        "mcp": {"longhaul": {"type": "remote", "url": told.tools()}},
        "compaction": {"auto": false},
    });
    vec![variable("OPENCODE_CONFIG_CONTENT", config.to_string())]
}

fn any(told: &Told) -> Vec<Setting> {
    vec![
        variable("ANTHROPIC_BASE_URL", told.anthropic()),
        variable("ANTHROPIC_API_BASE", told.anthropic()),
        variable("OPENAI_BASE_URL", told.openai()),
        variable("OPENAI_API_BASE", told.openai()),
    ]
}

/// Addresses that no proxy of the user is asked for, with ours among them.
pub fn no_proxy(before: Option<&str>) -> String {
    const OURS: &str = "127.0.0.1,localhost";
    match before {
        Some(before) if !before.trim().is_empty() => format!("{before},{OURS}"),
        _ => OURS.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(is_anthropic: bool, has_openai_key: bool) -> Told {
        let gateway = "127.0.0.1:4040".parse().unwrap();
        Told { gateway, is_anthropic, has_openai_key, recall: Recall::Mcp }
    }

    #[test]
    fn claude_keeps_a_large_window_only_where_anthropic_answers() {
        let names = |told: &Told| {
            let settings = (find("claude").unwrap().told)(told);
            settings
                .iter()
                .filter(|s| matches!(s, Setting::Variable(name, _) if name.starts_with('_')))
                .count()
        };
        assert_eq!((names(&told(true, false)), names(&told(false, false))), (1, 0));
    }

    #[test]
    fn claude_gets_the_tool_that_gives_back_what_was_left_out() {
        let settings = (find("claude").unwrap().told)(&told(true, false));
        let arguments: Vec<&String> = settings
            .iter()
            .filter_map(|s| if let Setting::Argument(text) = s { Some(text) } else { None })
            .collect();
        assert!(
            arguments[0].starts_with("--mcp-config={") && arguments[0].contains("http://127.0.0.1:4040/mcp")
        );
        assert_eq!(arguments[1], "--allowedTools=mcp__longhaul__recall");
        // Where the tool is added to its requests, it is told of no other.
        let filled = (find("claude").unwrap().told)(&Told { recall: Recall::Fill, ..told(true, false) });
        assert!(filled.iter().all(|setting| matches!(setting, Setting::Variable(..))));
    }

    #[test]
    fn codex_gets_a_provider_of_its_own_and_no_secret() {
        for (has_key, login) in [(true, "env_key=\"OPENAI_API_KEY\""), (false, "requires_openai_auth=true")] {
            let settings = (find("codex").unwrap().told)(&told(true, has_key));
            let Setting::Argument(provider) = &settings[3] else { panic!() };
            assert!(provider.contains(login) && provider.contains("http://127.0.0.1:4040/v1"), "{provider}");
        }
    }

    #[test]
    fn a_proxy_of_the_user_is_not_asked_for_our_address() {
        assert_eq!(no_proxy(None), "127.0.0.1,localhost");
        assert_eq!(no_proxy(Some("intranet")), "intranet,127.0.0.1,localhost");
    }
}
