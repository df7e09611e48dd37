//! What goes wrong when a model is asked, as what a caller can do about it; and how providers say that a
//! request is too long.

mod content;

use std::sync::LazyLock;
use std::time::Duration;

use longhaul::{Overflow, Tokens};
use regex::{Captures, Regex};
use serde::Deserialize;

use crate::key::CUT;

/// A reply that did not come.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The request does not fit into the window: compact and ask again.
    #[error("the request is too long: {says}")]
    TooLong {
        /// The sizes that the provider names.
        overflow: Overflow,
        /// What the provider says.
        says: String,
    },
    /// Too many requests: wait and ask again.
    #[error("the provider limits requests: {says}")]
    Limited {
        /// How long to wait, if the provider says so.
        retry_after: Option<Duration>,
        /// What the provider says.
        says: String,
    },
    /// The provider fails or has too much to do: ask again.
    #[error("the provider failed with status {status}: {says}")]
    Failed {
        /// The status; 200 for a stream that failed on its way.
        status: u16,
        /// How long to wait, if the provider says so.
        retry_after: Option<Duration>,
        /// What the provider says.
        says: String,
    },
    /// The key is wrong, or may not do this.
    #[error("the provider takes no such key: {0}")]
    Key(String),
    /// The provider does not take the request: it would not take it again.
    #[error("{}", refused(*status, says))]
    Refused {
        /// The status; 0 if nobody was asked, since the address is none.
        status: u16,
        /// What the provider says.
        says: String,
    },
    /// The connection ended before the reply did.
    #[error("the reply was cut off")]
    Cut,
    /// What came is no reply of this API.
    #[error("the reply cannot be read: {0}")]
    Unreadable(String),
    /// A reply without a word and without a call.
    #[error("the reply is empty")]
    Empty,
    /// Nothing came for too long.
    #[error("nothing came for {0:?}")]
    TimedOut(Duration),
    /// Nobody is there.
    #[error("no connection: {0}")]
    Unreachable(String),
}

fn refused(status: u16, says: &str) -> String {
    match status {
        0 => says.to_owned(),
        status => format!("the provider refused the request with status {status}: {says}"),
    }
}

impl Fault {
    /// True if the same request may be answered when it is made again.
    pub fn passes(&self) -> bool {
        match self {
            Self::Limited { .. } | Self::Failed { .. } | Self::Cut | Self::Empty => true,
            Self::TimedOut(_) | Self::Unreachable(_) | Self::Unreadable(_) => true,
            Self::TooLong { .. } | Self::Key(_) | Self::Refused { .. } => false,
        }
    }

    /// How long the provider wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited { retry_after, .. } | Self::Failed { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The same with other words.
    pub(crate) fn with_words(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::TooLong { overflow, says } => Self::TooLong { overflow, says: change(&says) },
            Self::Limited { retry_after, says } => Self::Limited { retry_after, says: change(&says) },
            Self::Failed { status, retry_after, says } => {
                Self::Failed { status, retry_after, says: change(&says) }
            }
            Self::Refused { status, says } => Self::Refused { status, says: change(&says) },
            Self::Key(says) => Self::Key(change(&says)),
            Self::Unreadable(says) => Self::Unreadable(change(&says)),
            Self::Unreachable(says) => Self::Unreachable(change(&says)),
            Self::Cut | Self::Empty | Self::TimedOut(_) => self,
        }
    }

    /// True if the provider refused thinking that it had signed or encrypted: it is bound to other messages than those
    /// that stand before it, or cannot be read. The request is taken without it.
    pub fn refuses_thinking(&self) -> bool {
        matches!(self, Self::Refused { says, .. } if refuses_thinking(says))
    }

    /// What a response of this status and body says, which is no reply.
    pub fn of_response(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let error = ProviderError::read(body);
        let says = error.says(body);
        if let Some(overflow) = error.overflow(status, &says) {
            return Self::TooLong { overflow, says };
        }
        match status {
            401 | 403 => Self::Key(says),
            429 => Self::Limited { retry_after, says },
            408 | 409 | 500.. => Self::Failed { status, retry_after, says },
            _ if error.is_passing() => Self::Failed { status, retry_after, says },
            _ => Self::Refused { status, says },
        }
    }

    /// What an error inside a stream says, which began as a reply.
    pub(crate) fn of_event(body: &str) -> Self {
        let error = ProviderError::read(body);
        if let Some(status) = error.status() {
            return Self::of_response(status, None, body);
        }
        let says = error.says(body);
        match error.overflow(400, &says) {
            Some(overflow) => Self::TooLong { overflow, says },
            None if error.is_limit() => Self::Limited { retry_after: None, says },
            None if error.is_refusal() => Self::Refused { status: 200, says },
            None => Self::Failed { status: 200, retry_after: None, says },
        }
    }
}

/// The same of the text of an error.
pub fn refuses_thinking(error: &str) -> bool {
    const WORDS: [&str; 3] = [
        "bound to a different conversation",
        "invalid_encrypted_content",
        "could not be verified. Reason: Encrypted",
    ];
    WORDS.iter().any(|words| error.contains(words))
}

/// An error as providers write it: `{"error": {…}}`, `{"error": "…"}`, or the object alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProviderError {
    message: Option<String>,
    detail: Option<serde_json::Value>,
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<serde_json::Value>,
    error: Option<Inner>,
    // llama.cpp
    n_prompt_tokens: Option<u64>,
    n_ctx: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Inner {
    Object(Box<ProviderError>),
    Words(String),
    Other(serde::de::IgnoredAny),
}

impl ProviderError {
    fn read(body: &str) -> Self {
        let error: Self = serde_json::from_str(body).unwrap_or_default();
        match error.error {
            Some(Inner::Object(inner)) => *inner,
            Some(Inner::Words(words)) => Self { message: Some(words), error: None, ..error },
            Some(Inner::Other(_)) | None => error,
        }
    }

    /// In words: those of the provider, or the start of what it sent.
    fn says(&self, body: &str) -> String {
        /// More is a page for a browser.
        const MOST: usize = 500;
        let detail = self.detail.as_ref().map(ToString::to_string);
        let said = self.message.clone().or(detail).unwrap_or_else(|| body.trim().to_owned());
        match said.char_indices().nth(MOST) {
            Some((end, _)) => format!("{}{CUT}", &said[..end]),
            None if said.is_empty() => "no words".to_owned(),
            None => said,
        }
    }

    fn has_sign(&self, signs: &[&str]) -> bool {
        let code = self.code.as_ref().and_then(serde_json::Value::as_str);
        self.kind.as_deref().into_iter().chain(code).any(|sign| signs.contains(&sign))
    }

    /// The status that stands in an error itself, as routers write it that have answered already.
    fn status(&self) -> Option<u16> {
        let code = self.code.as_ref().and_then(serde_json::Value::as_u64)?;
        u16::try_from(code).ok().filter(|code| (400..600).contains(code))
    }

    fn is_limit(&self) -> bool {
        self.has_sign(&["rate_limit_error", "rate_limit_exceeded", "insufficient_quota"])
    }

    /// The provider would not take the request again.
    fn is_refusal(&self) -> bool {
        self.has_sign(&["invalid_request_error", "invalid_prompt", "not_found_error", "permission_error"])
    }

    /// The provider has too much to do, whatever its status.
    fn is_passing(&self) -> bool {
        self.has_sign(&[
            "overloaded_error",
            "api_error",
            "server_error",
            "timeout_error",
            "unavailable_error",
        ])
    }

    /// The sizes that are named, if the request was too long.
    fn overflow(&self, status: u16, says: &str) -> Option<Overflow> {
        let signs = [
            "context_length_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "model_max_prompt_tokens_exceeded",
            "string_above_max_length",
        ];
        let named = Overflow {
            prompt: self.n_prompt_tokens.map(Tokens),
            window: self.n_ctx.map(Tokens),
            answer: None,
        };
        let found = OVERFLOWS.iter().find_map(|pattern| pattern.captures(says)).map(|found| sizes(&found));
        // Of requests there may be too many a minute, which is no matter of their length.
        let limited = status == 429 && found.is_none_or(|found| found.window.is_none());
        if limited || self.is_limit() || is_rate(says) {
            return None;
        }
        match found {
            Some(found) => Some(Overflow {
                prompt: named.prompt.or(found.prompt),
                window: named.window.or(found.window),
                answer: found.answer,
            }),
            None => (self.has_sign(&signs) || status == 413).then_some(named),
        }
    }
}

/// How providers word that a request is too long. `prompt` is its size where they name it (`tools` is the part of it that
/// they count apart), `window` what would fit, `answer` what the request allows its answer where they count that too.
/// Patterns that name more come before those that name less.
static OVERFLOWS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        // Anthropic
        r"prompt is too long(: (?<prompt>\d+) tokens > (?<window>\d+) maximum)?",
        r"input length and `max_tokens` exceed context limit: (?<prompt>\d+) \+ (?<answer>\d+) > (?<window>\d+)",
        // OpenAI, vLLM, DeepSeek, OpenRouter; the request with its answer, or the messages alone
        r"maximum context length is (?<window>\d+) tokens.*?\((?:about )?(?<prompt>\d+) (?:in the messages|of text input|in your prompt)(?:[,;] (?<tools>\d+) (?:in the functions|of tool input))?(?:[,;] (?<answer>\d+) (?:in the completion|in the output|for the completion))?",
        // vLLM
        r"max_completion_tokens' is too large: (?<answer>\d+)\. This model's maximum context length is (?<window>\d+) tokens and your request has (?<prompt>\d+) input tokens",
        r"maximum context length is (?<window>\d+) tokens\. However, you requested (?<answer>\d+) output tokens and your prompt contains (?:at least )?(?<prompt>\d+) input tokens",
        r"passed (?<prompt>\d+) input tokens and requested (?<answer>\d+) output tokens.*?context length is only (?<window>\d+) tokens",
        r"context length is only (?<window>\d+) tokens",
        // SGLang
        r"maximum context length of (?<window>\d+) tokens\. You requested a total of \d+ tokens: (?<prompt>\d+) tokens from the input messages and (?<answer>\d+) tokens for the completion",
        r"input \((?<prompt>\d+) tokens\) is longer than the model's context length \((?<window>\d+) tokens\)",
        // OpenAI and others again, which name less
        r"maximum context length is (?<window>\d+)(?: tokens)?.*?(?:resulted in|requested|contains at least|contains|has) (?:about )?(?<prompt>\d+)",
        r"maximum context length (?:is|of) (?<window>\d+)",
        r"limit of (?<window>\d+) tokens\. Your messages resulted in (?<prompt>\d+) tokens",
        r"exceeds the context window",
        // llama.cpp
        r"request \((?<prompt>\d+) tokens\) exceeds the available context size \((?<window>\d+) tokens\)",
        r"exceeds the available context size",
        r"context size has been exceeded",
        // vLLM
        r"prompt \(length (?<prompt>\d+)\) is longer than the maximum model length of (?<window>\d+)",
        // Together, TGI
        r"must be <= (?<window>\d+)\. Given: (?<prompt>\d+) `inputs` tokens and (?<answer>\d+) `max_new_tokens`",
        r"`inputs` must have less than (?<window>\d+) tokens\. Given: (?<prompt>\d+)",
        // Cohere
        r"too many tokens: total number of tokens (?:\([^)]*\)|in the prompt) cannot exceed (?<window>\d+)",
        r"too many tokens:.*?limit for this model is (?<window>\d+) tokens",
        r"too many tokens",
        // Gemini
        r"input token count \(?(?<prompt>\d+)\)? exceeds the maximum number of tokens allowed \(?(?<window>\d+)\)?",
        // xAI
        r"maximum prompt length is (?<window>\d+) but the request contains (?<prompt>\d+) tokens",
        // GitHub Copilot
        r"prompt token count of (?<prompt>\d+) exceeds the limit of (?<window>\d+)",
        // Mistral
        r"contains (?<prompt>\d+) tokens.*?too large for model with (?<window>\d+) maximum context length",
        // Kimi
        r"exceeded model token limit: (?<window>\d+)",
        // LM Studio
        r"loaded with context length of only (?<window>\d+) tokens",
        r"greater than the context length",
        // Bedrock, Ollama, MiniMax, GLM, Groq
        r"(?:input|prompt) is too long for requested model",
        r"(?:prompt too long; exceeded|input length exceeds).*?context length",
        r"context window exceeds limit",
        r"prompt exceeds max length",
        r"reduce the length of (?:the|your) (?:messages|prompt|input)",
    ];
    // Each is one that compiles: a test goes through all of them.
    patterns.iter().filter_map(|pattern| Regex::new(&format!("(?is){pattern}")).ok()).collect()
});

/// True if a limit per time is spoken of.
fn is_rate(says: &str) -> bool {
    let says = says.to_lowercase();
    ["rate limit", "per min", "per day", "quota", "please wait"].iter().any(|words| says.contains(words))
}

fn sizes(found: &Captures<'_>) -> Overflow {
    let size = |name| found.name(name).and_then(|digits| digits.as_str().parse().ok()).map(Tokens);
    let prompt = size("prompt").map(|prompt| prompt + size("tools").unwrap_or(Tokens::ZERO));
    // An answer of nothing is that of a request that asks for none: an embedding.
    let answer = size("answer").filter(|answer| *answer > Tokens::ZERO);
    Overflow { prompt, window: size("window"), answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overflow(status: u16, body: &str) -> Option<(Option<u64>, Option<u64>)> {
        match Fault::of_response(status, None, body) {
            Fault::TooLong { overflow, .. } => {
                Some((overflow.prompt.map(|tokens| tokens.0), overflow.window.map(|tokens| tokens.0)))
            }
            _ => None,
        }
    }

    fn says(status: u16, message: &str) -> Option<(Option<u64>, Option<u64>)> {
        overflow(status, &serde_json::json!({ "error": { "message": message } }).to_string())
    }

    #[test]
    fn an_answer_that_is_counted_with_the_prompt_is_named() {
        /// Status and sentence; the prompt, window and answer that it names.
        type Row = (u16, &'static str, Option<u64>, Option<u64>, Option<u64>);
        let all: [Row; 16] = [
            (
                400,
                "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or `max_tokens` and try again",
                Some(190_000),
                Some(200_000),
                Some(21_333),
            ),
            (400, "prompt is too long: 35613 tokens > 32000 maximum", Some(35_613), Some(32_000), None),
            // OpenAI, vLLM before 0.10, DeepSeek
            (
                400,
                "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (30000 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
                Some(30_000),
                Some(32_768),
                Some(10_000),
            ),
            (
                400,
                "This model's maximum context length is 4097 tokens. However, you requested 4500 tokens (3000 in the messages, 500 in the functions, 1000 in the completion).",
                Some(3_500),
                Some(4_097),
                Some(1_000),
            ),
            (
                400,
                "This model's maximum context length is 8192 tokens, however you requested 8977 tokens (8977 in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
                Some(8_977),
                Some(8_192),
                None,
            ),
            // OpenRouter
            (
                400,
                "This endpoint's maximum context length is 204800 tokens. However, you requested about 205432 tokens (81684 of text input, 3748 of tool input, 120000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.",
                Some(85_432),
                Some(204_800),
                Some(120_000),
            ),
            (
                400,
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output).",
                Some(7_884),
                Some(131_072),
                Some(131_072),
            ),
            // vLLM
            (
                400,
                "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
                Some(62_466),
                Some(128_000),
                Some(65_535),
            ),
            (
                400,
                "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960 tokens and your request has 9000 input tokens (32000 > 40960 - 9000).",
                Some(9_000),
                Some(40_960),
                Some(32_000),
            ),
            (
                400,
                "You passed 30721 input tokens and requested 10240 output tokens. However, the model's context length is only 40960 tokens, resulting in a maximum input length of 30720 tokens. Please reduce the length of the input prompt.",
                Some(30_721),
                Some(40_960),
                Some(10_240),
            ),
            // SGLang
            (
                400,
                "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 130000 tokens from the input messages and 10000 tokens for the completion.",
                Some(130_000),
                Some(131_072),
                Some(10_000),
            ),
            (
                400,
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
                Some(5_000),
                Some(4_096),
                None,
            ),
            // Together
            (
                422,
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4087 `inputs` tokens and 512 `max_new_tokens`",
                Some(4_087),
                Some(4_097),
                Some(512),
            ),
            // Cohere: what it has received is the answer too, or the prompt alone
            (
                400,
                "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a smaller max_tokens value.",
                None,
                Some(2_048),
                None,
            ),
            (
                400,
                "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs. The limit for this model is 288000 tokens.",
                None,
                Some(288_000),
                None,
            ),
            // llama.cpp
            (500, "Context size has been exceeded.", None, None, None),
        ];
        for (status, message, prompt, window, answer) in all {
            let body = serde_json::json!({ "error": { "message": message } }).to_string();
            let expected = Overflow {
                prompt: prompt.map(Tokens),
                window: window.map(Tokens),
                answer: answer.map(Tokens),
            };
            match Fault::of_response(status, None, &body) {
                Fault::TooLong { overflow, .. } => assert_eq!(overflow, expected, "{message}"),
                fault => panic!("{message}: {fault:?}"),
            }
        }
    }

    #[test]
    fn every_provider_says_it_in_its_own_way() {
        let all = [
            ("prompt is too long: 35613 tokens > 32000 maximum", Some(35_613), Some(32_000)),
            ("prompt is too long", None, None),
            (
                "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or `max_tokens` and try again",
                Some(190_000),
                Some(200_000),
            ),
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.",
                Some(9_000),
                Some(8_192),
            ),
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages, 100 in the completion).",
                Some(4_900),
                Some(4_096),
            ),
            (
                "This endpoint's maximum context length is 32768 tokens. However, you requested about 40100 tokens (40000 of text input, 100 in the output).",
                Some(40_000),
                Some(32_768),
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 305020 tokens. Please reduce the length of the messages.",
                Some(305_020),
                Some(272_000),
            ),
            (
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                None,
                None,
            ),
            (
                "request (969 tokens) exceeds the available context size (512 tokens), try increasing it",
                Some(969),
                Some(512),
            ),
            (
                "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
                Some(5_000),
                Some(4_096),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
                Some(1_200_000),
                Some(1_048_575),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                Some(537_812),
                Some(131_072),
            ),
            ("prompt token count of 206000 exceeds the limit of 128000", Some(206_000), Some(128_000)),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(40_000),
                Some(32_768),
            ),
            ("Invalid request: Your request exceeded model token limit: 131072", None, Some(131_072)),
            (
                "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
                None,
                Some(4_096),
            ),
            ("Input is too long for requested model.", None, None),
            ("prompt too long; exceeded max context length by 12 tokens", None, None),
            ("invalid params, context window exceeds limit", None, None),
            ("Prompt exceeds max length", None, None),
        ];
        for (message, prompt, window) in all {
            assert_eq!(says(400, message), Some((prompt, window)), "{message}");
        }
    }

    #[test]
    fn patterns_compile() {
        assert_eq!(OVERFLOWS.len(), 34);
    }

    #[test]
    fn codes_and_fields_tell_too() {
        let body = r#"{"error":{"code":400,"message":"…","type":"exceed_context_size_error","n_prompt_tokens":969,"n_ctx":512}}"#;
        assert_eq!(overflow(400, body), Some((Some(969), Some(512))));
        let body = r#"{"error":{"message":"too much","code":"context_length_exceeded"}}"#;
        assert_eq!(overflow(400, body), Some((None, None)));
        assert_eq!(overflow(413, "<html>Payload Too Large</html>"), Some((None, None)));
        assert_eq!(
            overflow(400, r#"{"error":"prompt is too long: 9 tokens > 8 maximum"}"#),
            Some((Some(9), Some(8)))
        );
        assert_eq!(
            overflow(
                400,
                r#"{"object":"error","message":"This model's maximum context length is 16 tokens. However, you requested 20 tokens"}"#
            ),
            Some((Some(20), Some(16)))
        );
    }

    #[test]
    fn too_many_a_minute_is_not_too_long() {
        let message =
            "This request would exceed your organization's rate limit of 30000 input tokens per minute.";
        assert_eq!(says(429, message), None);
        // Bedrock, also as an event of a stream
        assert_eq!(says(400, "Too many tokens, please wait before trying again."), None);
        let body = r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 50000.","type":"tokens","code":"rate_limit_exceeded"}}"#;
        assert!(matches!(Fault::of_response(429, None, body), Fault::Limited { .. }));
    }

    #[test]
    fn an_error_behind_a_good_status_tells_what_to_do() {
        let fault = |error: &str| Fault::of_event(&format!(r#"{{"error":{error}}}"#));
        assert!(matches!(fault(r#"{"code":401,"message":"no"}"#), Fault::Key(_)));
        assert!(matches!(fault(r#"{"code":429,"message":"no"}"#), Fault::Limited { .. }));
        assert!(matches!(fault(r#"{"code":502,"message":"no"}"#), Fault::Failed { status: 502, .. }));
        assert!(matches!(
            fault(r#"{"code":"server_error","message":"no"}"#),
            Fault::Failed { status: 200, .. }
        ));
        assert!(matches!(fault(r#"{"type":"rate_limit_error"}"#), Fault::Limited { .. }));
        assert!(matches!(fault(r#"{"type":"invalid_request_error"}"#), Fault::Refused { status: 200, .. }));
        let long = r#"{"code":400,"message":"prompt is too long: 9 tokens > 8 maximum"}"#;
        assert!(matches!(fault(long), Fault::TooLong { overflow, .. } if overflow.window == Some(Tokens(8))));
    }

    #[test]
    fn a_status_tells_what_to_do() {
        let fault = |status| {
            Fault::of_response(status, Some(Duration::from_secs(2)), r#"{"error":{"message":"no"}}"#)
        };
        assert!(matches!(fault(429), Fault::Limited { retry_after: Some(wait), .. } if wait.as_secs() == 2));
        assert!(fault(500).passes() && fault(529).passes() && fault(503).passes());
        assert!(!fault(400).passes() && !fault(404).passes() && !fault(401).passes());
        assert_eq!(fault(401), Fault::Key("no".to_owned()));
        // A page for a browser is cut.
        let page = format!("<html>{}", "x".repeat(10_000));
        let Fault::Failed { says, .. } = Fault::of_response(502, None, &page) else { panic!() };
        assert!(says.len() < 600);
    }
}
