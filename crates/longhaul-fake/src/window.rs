//! Whether a request fits into the window, and the words of the refusal if it does not.

use serde_json::Value;

use crate::api::{Protocol, Said};
use crate::twin::WindowRule;

/// The size of a request in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) prompt: u64,
    /// The longest answer that the client asks for; 0 if it sets no limit.
    pub(crate) answer: u64,
}

/// The longest answer that a request asks for, over any API.
pub(crate) fn longest_answer(body: &Value) -> u64 {
    let names = ["max_completion_tokens", "max_output_tokens", "max_tokens"];
    names.iter().find_map(|name| body[*name].as_u64()).unwrap_or(0)
}

impl WindowRule {
    /// True if the request is refused.
    pub(crate) fn refuses(self, size: Size, window: u64) -> bool {
        match self {
            Self::Prompt => size.prompt > window,
            Self::ClaudeWithAnswer | Self::VllmWithAnswer => size.prompt + size.answer > window,
        }
    }

    /// The words for a request that is too long.
    pub(crate) fn words(self, protocol: &dyn Protocol, size: Size, window: u64) -> Said {
        let Size { prompt, answer } = size;
        match self {
            Self::ClaudeWithAnswer if prompt <= window => Said::invalid(format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, decrease input length or `max_tokens` and try again"
            )),
            Self::Prompt | Self::ClaudeWithAnswer => protocol.too_long(prompt, window),
            Self::VllmWithAnswer => {
                let longest = window.saturating_sub(answer);
                Said::vllm(format!(
                    "You passed {prompt} input tokens and requested {answer} output tokens. However, the model's context length is only {window} tokens, resulting in a maximum input length of {longest} tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value={prompt})"
                ))
                .with_param("input_tokens")
            }
        }
    }
}
