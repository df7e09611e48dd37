//! Agents that are sent through the gateway: what each is told, by its environment or by flags. One row for each.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use longhaul_gateway::Recall;
use serde_json::{Value, json};

use crate::error::Failure;
use crate::gateway::jsonc;
use crate::gateway::own_providers::{OwnFiles, Provider};
use crate::gateway::secret::TOKEN;

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
    /// Where it has providers that the user has named.
    pub own_files: OwnFiles,
    /// Where its user may have named an address that wins over what it is told.
    pub keeps_address: &'static str,
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
    /// What the gateway asks for.
    pub token: Option<String>,
    /// Tells this agent's conversations from those of others at the gateway. No secret.
    pub scope: String,
    /// Providers that the user has named, in the order in which the gateway knows them.
    pub providers: Vec<Provider>,
    /// The first argument of the user.
    pub command: Option<String>,
    /// What the user tells opencode by its environment.
    pub opencode_config: Option<String>,
    /// How it recalls: only who recalls by tools of ours is told of them.
    pub recall: Recall,
    /// The gateway only observes: the agent is told where it is, and nothing else.
    pub observes: bool,
}

/// One thing that an agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// By a variable of its environment.
    Variable(&'static str, String),
    /// By an argument, before those of the user. All users of a machine can read it: never a token.
    Argument(String),
    /// By a file, whose path follows this argument.
    File { flag: &'static str, name: &'static str, text: &'static str },
}

impl Told {
    /// The gateway's address, with the token in it if there is one: for the environment, never for an argument.
    fn root(&self) -> String {
        match &self.token {
            Some(token) => format!("http://{}/t/{token}", self.gateway),
            None => format!("http://{}", self.gateway),
        }
    }

    /// The same with the scope behind it.
    fn base(&self) -> String {
        format!("{}/s/{}", self.root(), self.scope)
    }

    /// The gateway's address without the token, with the scope: for arguments.
    fn open_base(&self) -> String {
        format!("http://{}/s/{}", self.gateway, self.scope)
    }

    fn openai(&self) -> String {
        format!("{}/v1", self.base())
    }

    /// Names and addresses of the providers that the user has named, behind the gateway.
    fn behind_the_gateway(&self) -> impl Iterator<Item = (&str, String)> {
        let numbered = self.providers.iter().enumerate();
        numbered.map(|(n, own)| {
            (own.name.as_str(), format!("{}/to/{n}/s/{}{}", self.root(), self.scope, own.version))
        })
    }

    /// The variable that arguments name in the token's place.
    fn token_variable(&self) -> Option<Setting> {
        self.token.as_ref().map(|token| variable(TOKEN, token))
    }
}

const ANTHROPIC_URL: (&str, Upstream) = ("ANTHROPIC_BASE_URL", Upstream::Anthropic);
const ANTHROPIC_API_BASE: (&str, Upstream) = ("ANTHROPIC_API_BASE", Upstream::Anthropic);
const OPENAI_URLS: [(&str, Upstream); 2] =
    [("OPENAI_BASE_URL", Upstream::OpenAi), ("OPENAI_API_BASE", Upstream::OpenAi)];

/// All agents that are known.
pub static AGENTS: [Agent; 7] = [
    Agent {
        name: "claude",
        program: "claude",
        upstream: &[ANTHROPIC_URL],
        told: claude,
        own_files: OwnFiles::No,
        keeps_address: "`env` in ~/.claude/settings.json",
        recall: Recall::Mcp,
    },
    Agent {
        name: "codex",
        program: "codex",
        upstream: &OPENAI_URLS,
        told: codex,
        own_files: OwnFiles::No,
        keeps_address: "`profile` or `model_provider` in ~/.codex/config.toml",
        recall: Recall::Fill,
    },
    Agent {
        name: "opencode",
        program: "opencode",
        upstream: &[ANTHROPIC_URL, OPENAI_URLS[0]],
        told: opencode,
        own_files: OwnFiles::OpenCode,
        keeps_address: "`provider` in opencode.json",
        recall: Recall::Mcp,
    },
    Agent {
        name: "pi",
        program: "pi",
        upstream: &[],
        told: pi,
        own_files: OwnFiles::Pi,
        keeps_address: "its models.json or a provider that it knows by itself",
        recall: Recall::Fill,
    },
    Agent {
        name: "aider",
        program: "aider",
        upstream: &[OPENAI_URLS[1], ANTHROPIC_API_BASE, ANTHROPIC_URL],
        told: any,
        own_files: OwnFiles::No,
        keeps_address: ".aider.conf.yml or .env",
        recall: Recall::Mcp,
    },
    Agent {
        name: "qwen",
        program: "qwen",
        upstream: &OPENAI_URLS,
        told: any,
        own_files: OwnFiles::No,
        keeps_address: "~/.qwen/settings.json or .env",
        recall: Recall::Mcp,
    },
    Agent {
        name: "mini",
        program: "mini",
        upstream: &[OPENAI_URLS[1], OPENAI_URLS[0], ANTHROPIC_API_BASE, ANTHROPIC_URL],
        told: any,
        own_files: OwnFiles::No,
        keeps_address: "its configuration or its .env",
        recall: Recall::Mcp,
    },
];

/// What a program is told that goes by the usual variables.
pub static ANY: Agent = Agent {
    name: "",
    program: "",
    upstream: &[ANTHROPIC_URL, ANTHROPIC_API_BASE, OPENAI_URLS[0], OPENAI_URLS[1]],
    told: any,
    own_files: OwnFiles::No,
    keeps_address: "its own settings",
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
    let mut settings = vec![variable("ANTHROPIC_BASE_URL", told.base())];
    if !told.observes {
        // Its own compaction would only lose what ours keeps.
        settings.push(variable("DISABLE_AUTO_COMPACT", "1"));
    }
    if told.is_anthropic {
        // Behind another address it takes a window of a million for one of 200,000.
        settings.push(variable("_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "1"));
    }
    if told.recall == Recall::Fill || told.observes {
        return settings;
    }
    // A tool that is loaded later would change the prompt, and all of it would be billed again.
    let mut server = json!({"type": "http", "url": format!("{}/mcp", told.open_base()), "alwaysLoad": true});
    if told.token.is_some() {
        // Claude Code puts the variable's value in.
        server["headers"] = json!({"x-longhaul-token": format!("${{{TOKEN}}}")});
    }
    let servers = json!({"mcpServers": {"longhaul": server}});
    // In one word: Claude Code takes several words behind these flags.
    settings.push(Setting::Argument(format!("--mcp-config={servers}")));
    settings.push(Setting::Argument("--allowedTools=mcp__longhaul__recall".to_owned()));
    settings.extend(told.token_variable());
    settings
}

fn codex(told: &Told) -> Vec<Setting> {
    let login = match told.has_openai_key {
        true => r#"env_key="OPENAI_API_KEY""#,
        false => "requires_openai_auth=true",
    };
    let token = match told.token {
        Some(_) => format!(r#"env_http_headers={{"x-longhaul-token"="{TOKEN}"}},"#),
        None => String::new(),
    };
    let provider = format!(
        r#"model_providers.longhaul={{name="longhaul",base_url="{}/v1",{login},{token}wire_api="responses",supports_websockets=false}}"#,
        told.open_base()
    );
    let arguments = ["-c", "model_provider=longhaul", "-c", &provider];
    arguments
        .map(|argument| Setting::Argument(argument.to_owned()))
        .into_iter()
        .chain(told.token_variable())
        .collect()
}

fn opencode(told: &Told) -> Vec<Setting> {
    let mut ours = json!({
        "provider": {
            "anthropic": {"options": {"baseURL": told.openai()}},
            "openai": {"options": {"baseURL": told.openai()}},
        },
    });
    if !told.observes {
        ours["mcp"] = json!({"longhaul": {"type": "remote", "url": format!("{}/mcp", told.base())}});
        ours["compaction"] = json!({"auto": false});
    }
    for (name, base) in told.behind_the_gateway() {
        ours["provider"][name] = json!({"options": {"baseURL": base}});
    }
    // The user may use the same variable.
    let mut config = told.opencode_config.as_deref().and_then(jsonc::read).unwrap_or(Value::Null);
    put_over(&mut config, ours);
    vec![variable("OPENCODE_CONFIG_CONTENT", config.to_string())]
}

/// Puts the fields of one value over those of another.
fn put_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                put_over(below.entry(name).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

fn pi(told: &Told) -> Vec<Setting> {
    /// Commands of pi for its packages: they ask no model, and know no other arguments.
    const COMMANDS: [&str; 6] = ["install", "remove", "uninstall", "update", "list", "config"];
    if told.command.as_deref().is_some_and(|command| COMMANDS.contains(&command)) {
        return Vec::new();
    }
    let mut addresses = json!({"anthropic": told.base(), "openai": told.openai()});
    for (name, base) in told.behind_the_gateway() {
        addresses[name] = base.into();
    }
    let text = include_str!("../../templates/pi.js");
    vec![
        variable("LONGHAUL_PROVIDERS", addresses.to_string()),
        Setting::File { flag: "--extension", name: "longhaul-pi.js", text },
    ]
}

fn any(told: &Told) -> Vec<Setting> {
    vec![
        variable("ANTHROPIC_BASE_URL", told.base()),
        variable("ANTHROPIC_API_BASE", told.base()),
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
        Told {
            gateway: "127.0.0.1:4040".parse().unwrap(),
            is_anthropic,
            has_openai_key,
            token: None,
            scope: "5c09e".to_owned(),
            providers: Vec::new(),
            command: None,
            opencode_config: None,
            recall: Recall::Mcp,
            observes: false,
        }
    }

    fn guarded() -> Told {
        let provider =
            |name: &str, version| Provider { name: name.to_owned(), base: "http://h".to_owned(), version };
        let providers = vec![provider("mine", "/v1"), provider("anthropic", "")];
        Told { token: Some("T0ken".to_owned()), providers, ..told(true, true) }
    }

    /// Arguments of a program can be read by all users of a machine.
    #[test]
    fn a_token_stands_in_variables_and_never_in_an_argument() {
        for agent in AGENTS.iter().chain([&ANY]) {
            let settings = (agent.told)(&guarded());
            let tells = |setting: &Setting| format!("{setting:?}").contains("T0ken");
            assert!(settings.iter().any(tells), "{} is told no token", agent.name);
            let secret = settings.iter().filter(|setting| tells(setting));
            assert!(secret.clone().all(|setting| matches!(setting, Setting::Variable(..))), "{}", agent.name);
        }
    }

    #[test]
    fn providers_of_the_user_are_asked_for_through_the_gateway() {
        let Setting::Variable(_, told) = &pi(&guarded())[0] else { panic!() };
        let (at, scope) = ("http://127.0.0.1:4040/t/T0ken", "s/5c09e");
        assert_eq!(
            serde_json::from_str::<Value>(told).unwrap(),
            json!({
                "anthropic": format!("{at}/to/1/{scope}"),
                "openai": format!("{at}/{scope}/v1"),
                "mine": format!("{at}/to/0/{scope}/v1"),
            })
        );
        let own = r#"{"provider": {"mine": {"name": "Mine"}}, "theme": "dark", /* mine */ "compaction": {"auto": true}}"#;
        let guarded = Told { opencode_config: Some(own.to_owned()), ..guarded() };
        let Setting::Variable(_, told) = &opencode(&guarded)[0] else { panic!() };
        let told: Value = serde_json::from_str(told).unwrap();
        assert_eq!(
            told["provider"]["mine"],
            json!({"name": "Mine", "options": {"baseURL": format!("{at}/to/0/{scope}/v1")}})
        );
        assert_eq!((&told["theme"], &told["compaction"]["auto"]), (&"dark".into(), &false.into()));
    }

    #[test]
    fn commands_of_pi_for_itself_are_left_alone() {
        for (command, settings) in [("install", 0), ("list", 0), ("-p", 2), ("fix it", 2)] {
            assert_eq!(pi(&Told { command: Some(command.to_owned()), ..told(true, true) }).len(), settings);
        }
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
            arguments[0].starts_with("--mcp-config={")
                && arguments[0].contains("http://127.0.0.1:4040/s/5c09e/mcp")
        );
        assert_eq!(arguments[1], "--allowedTools=mcp__longhaul__recall");
        // Where the tool is added to its requests, it is told of no other.
        let filled = (find("claude").unwrap().told)(&Told { recall: Recall::Fill, ..told(true, false) });
        assert!(filled.iter().all(|setting| matches!(setting, Setting::Variable(..))));
    }

    /// Its requests and its calls of our tools have the same scope.
    #[test]
    fn every_address_that_an_agent_is_told_has_its_scope() {
        for agent in AGENTS.iter().chain([&ANY]) {
            for told in [told(true, true), guarded()] {
                let settings = format!("{:?}", (agent.told)(&told));
                let addresses = settings.split("http://127.0.0.1:4040").skip(1);
                let unscoped: Vec<&str> = addresses
                    .filter(|rest| {
                        let rest = rest.strip_prefix("/t/T0ken").unwrap_or(rest);
                        let rest = rest.strip_prefix("/to/").map_or(rest, |rest| &rest[1..]);
                        !rest.starts_with("/s/5c09e")
                    })
                    .collect();
                assert!(unscoped.is_empty() && settings.contains("5c09e"), "{}: {unscoped:?}", agent.name);
            }
        }
    }

    /// Nothing of ours is in the requests of an agent that is only observed, and its own compaction stays.
    #[test]
    fn an_agent_that_is_observed_is_told_the_address_alone() {
        for agent in AGENTS.iter().chain([&ANY]) {
            for recall in [Recall::Mcp, Recall::Fill] {
                let settings = (agent.told)(&Told { observes: true, recall, ..guarded() });
                let told = format!("{settings:?}");
                for ours in ["mcp", "COMPACT", "compaction"] {
                    assert!(!told.contains(ours), "{}: {told}", agent.name);
                }
                assert!(told.contains("127.0.0.1:4040"), "{}: {told}", agent.name);
            }
        }
    }

    #[test]
    fn codex_gets_a_provider_of_its_own_and_no_secret() {
        for (has_key, login) in [(true, "env_key=\"OPENAI_API_KEY\""), (false, "requires_openai_auth=true")] {
            let settings = (find("codex").unwrap().told)(&told(true, has_key));
            let Setting::Argument(provider) = &settings[3] else { panic!() };
            assert!(
                provider.contains(login) && provider.contains("http://127.0.0.1:4040/s/5c09e/v1"),
                "{provider}"
            );
        }
    }

    #[test]
    fn a_proxy_of_the_user_is_not_asked_for_our_address() {
        assert_eq!(no_proxy(None), "127.0.0.1,localhost");
        assert_eq!(no_proxy(Some("intranet")), "intranet,127.0.0.1,localhost");
    }
}
