//! The environment of commands: the agent's own, without keys of model providers, and set so that no program waits
//! for somebody at a terminal.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables of these that hold a secret are not passed on.
const PROVIDERS: [&str; 32] = [
    "AI21_",
    "ANTHROPIC_",
    "AZURE_AI_",
    "AZURE_OPENAI_",
    "CEREBRAS_",
    "CLAUDE_",
    "COHERE_",
    "DASHSCOPE_",
    "DEEPINFRA_",
    "DEEPSEEK_",
    "FIREWORKS_",
    "GEMINI_",
    "GLM_",
    "GOOGLE_API_",
    "GOOGLE_GENERATIVE_AI_",
    "GROQ_",
    "KIMI_",
    "LITELLM_",
    "MINIMAX_",
    "MISTRAL_",
    "MOONSHOT_",
    "NVIDIA_",
    "OPENAI_",
    "OPENROUTER_",
    "PERPLEXITY_",
    "QWEN_",
    "REPLICATE_",
    "TOGETHER_",
    "VOYAGE_",
    "XAI_",
    "ZAI_",
    "ZHIPUAI_",
];
/// Words in a name that tell a secret from an address or a model.
const SECRETS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "HEADERS"];
/// Names that follow no rule.
const OTHERS: [&str; 4] = ["AWS_BEARER_TOKEN_BEDROCK", "CO_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];
/// Settings of ours: the address and the token of a gateway, a database, keys.
const OURS: &str = "LONGHAUL_";
/// The token of a gateway of ours.
const TOKEN: &str = "LONGHAUL_TOKEN";

/// Set for every command. Nobody is asked for a password, in the terminal or in a window.
const SET: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
];

/// What commands see of the agent's environment.
pub(crate) fn of_commands(
    agent: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let passed = agent.into_iter().filter(|(name, _)| !is_ours_or_a_key(name));
    let passed = passed.filter(|(name, _)| SET.iter().all(|(set, _)| name != *set));
    passed.chain(SET.map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The first program of this name in the `PATH` of an environment.
pub(crate) fn program(environment: &[(OsString, OsString)], name: &str) -> Option<PathBuf> {
    let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
    // A folder that is not absolute would be another one in each working directory.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(is_program)
}

fn is_program(path: &PathBuf) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn is_ours_or_a_key(name: &OsStr) -> bool {
    name.to_string_lossy().to_ascii_uppercase().starts_with(OURS) || holds_a_key(name)
}

/// Whether a variable of this name holds a key of a model provider, or a token of a gateway.
pub fn holds_a_key(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let of_a_provider = || PROVIDERS.iter().any(|provider| name.starts_with(provider));
    let is_secret = || SECRETS.iter().any(|word| name.contains(word));
    OTHERS.contains(&name.as_str()) || name == TOKEN || (of_a_provider() && is_secret())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_passed_on_and_all_else_is() {
        let agent = [
            ("ANTHROPIC_API_KEY", "a"),
            ("ANTHROPIC_BASE_URL", "b"),
            ("openai_api_key", "c"),
            ("GOOGLE_API_KEY", "d"),
            ("LONGHAUL_GATEWAY", "e"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "f"),
            ("HF_TOKEN", "g"),
            ("GITHUB_TOKEN", "h"),
            ("PATH", "i"),
            ("TERM", "xterm"),
        ];
        let seen = of_commands(agent.map(|(name, value)| (name.into(), value.into())));
        let names: Vec<&str> = seen.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(
            names,
            [
                "ANTHROPIC_BASE_URL",
                "GITHUB_TOKEN",
                "PATH",
                "TERM",
                "PAGER",
                "GIT_PAGER",
                "GIT_TERMINAL_PROMPT",
                "GIT_ASKPASS",
                "SSH_ASKPASS_REQUIRE"
            ]
        );
        assert!(seen.contains(&("TERM".into(), "dumb".into())));
    }
}
