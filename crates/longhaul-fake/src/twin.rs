//! The providers that the fake can imitate: one row of data for each, with what that provider refuses and counts.
//! The checks are elsewhere ([`crate::binding`], [`crate::items`], [`crate::window`], and one file per API).

use std::time::Duration;

use crate::api::Api;

/// A provider that the fake imitates. [`Settings::twin`](crate::Settings::twin) chooses one.
///
/// A test that needs another combination changes a row:
///
/// ```
/// use longhaul_fake::{Binding, Twin};
/// let twin = Twin { name: "recording, then refusing", binding: Binding::Error, ..Twin::ANTHROPIC_RECORD };
/// assert_eq!(twin.apis, Twin::ANTHROPIC_NOW.apis);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    /// The name of the row, for messages of tests and for [`Twin::named`].
    pub name: &'static str,
    /// The APIs that the provider speaks. Over any other API the fake behaves like [`Twin::PLAIN`].
    pub apis: &'static [Api],
    /// How the size of a request is compared with the window, if one is set.
    pub window: WindowRule,
    /// Where system messages may stand.
    pub system: SystemMessages,
    /// The order of user and assistant messages.
    pub turns: Turns,
    /// The treatment of thinking that was made for another prefix.
    pub binding: Binding,
    /// The treatment of the request field `thinking.block_binding` and its beta header.
    pub controls: BindingControls,
    /// The treatment of the request field `thread`.
    pub threads: Threads,
    /// The pairs of reasoning items with the items that they led to.
    pub items: ItemPairs,
    /// The encrypted content of reasoning items.
    pub reasoning: EncryptedReasoning,
    /// The prompt cache.
    pub cache: CacheRules,
}

/// The limit that a window sets, and the words that refuse a longer request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowRule {
    /// The prompt must fit. The words are those of the API.
    Prompt,
    /// The prompt and `max_tokens` must fit. The words are those of older Claude models.
    ClaudeWithAnswer,
    /// The prompt and the requested answer must fit. The words are those of vLLM.
    VllmWithAnswer,
}

/// Where messages with the role `system` may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemMessages {
    /// Anywhere.
    Anywhere,
    /// Only as the first message (chat templates of Qwen).
    First,
    /// After a user message, and last or before an assistant message (newer Claude models).
    BetweenTurns,
    /// Nowhere (older Claude models).
    Refused,
}

/// The order of the roles in OpenAI Chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// Any order.
    Any,
    /// User and assistant in turn, after an optional system message (chat templates of Gemma). Calls of tools
    /// and their results are not counted, as in the templates that support tools.
    Alternate,
}

/// The treatment of stale thinking: blocks whose prefix, or whose previous thinking block, is not the one that
/// they were made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Signatures are not checked.
    Off,
    /// The request is refused with status 400, unless it asks for `drop_block`.
    Error,
    /// The block is dropped, and every later one that was made before the difference, unless the request asks for
    /// `error`.
    Drop,
    /// The block is kept, and reported if the beta header is set. A request that sets the field gets what it asks
    /// for.
    Record,
}

/// The treatment of the beta `thinking-binding-controls-2026-08-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingControls {
    /// The field is ignored, and answers report nothing.
    Ignored,
    /// The field needs the header. With the header, answers have `input_transformations`.
    Offered,
    /// The field is refused with or without the header (hosts that do not know the beta).
    Refused,
}

/// The treatment of the field `thread` of Anthropic Messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The field is ignored.
    Ignored,
    /// The request is refused with `thread_unsupported_request`.
    Refused,
}

/// The requirements of OpenAI Responses for items that a client returns with their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemPairs {
    /// Some item of the model follows each reasoning item.
    Loose,
    /// The item after each reasoning item is the one that followed it in the answer, and such an item has its
    /// reasoning item before it.
    Bound,
}

/// The treatment of encrypted content of reasoning items in OpenAI Responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptedReasoning {
    /// The content is sent to clients that ask for it, and not checked when they return it.
    OnRequest,
    /// The content is always sent, whole only in `response.output_item.done`, and refused with `invalid_encrypted_content`
    /// if the fake did not make it.
    Verified,
}

/// The rules of a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRules {
    /// A prefix of fewer tokens is neither written nor read.
    pub least: u64,
    /// How far before a mark the cache looks for an entry (Anthropic).
    pub look_back: LookBack,
    /// The effect of `cache_control` at the top level of a request (Anthropic).
    pub top_level: TopLevelMark,
    /// How long an entry lives after it was last written or read; `None` is for ever. A mark with `"ttl": "1h"`
    /// writes an entry that lives for an hour.
    pub life: Option<Duration>,
}

/// How far before a mark the cache looks for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookBack {
    /// At the mark and the 20 blocks before it.
    Blocks,
    /// At 20 positions, of which the mark is the first. A run of calls of tools is one position, and so is a run of
    /// their results.
    Positions,
}

/// The effect of `cache_control` at the top level of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopLevelMark {
    /// None.
    Ignored,
    /// The last block is marked.
    LastBlock,
}

/// The cache of the Anthropic rows, but for the least size.
const ANTHROPIC_CACHE: CacheRules = CacheRules {
    least: 512,
    look_back: LookBack::Positions,
    top_level: TopLevelMark::LastBlock,
    life: Some(Duration::from_secs(300)),
};

impl Twin {
    /// No provider in particular: only what every provider refuses. This is the default.
    pub const PLAIN: Self = Self {
        name: "plain",
        apis: &[Api::Chat, Api::Responses, Api::Messages],
        window: WindowRule::Prompt,
        system: SystemMessages::Anywhere,
        turns: Turns::Any,
        binding: Binding::Off,
        controls: BindingControls::Ignored,
        threads: Threads::Ignored,
        items: ItemPairs::Loose,
        reasoning: EncryptedReasoning::OnRequest,
        cache: CacheRules {
            least: 0,
            look_back: LookBack::Blocks,
            top_level: TopLevelMark::Ignored,
            life: None,
        },
    };

    /// Claude models that bind thinking to its prefix (Fable and Mythos 5.2; Opus, Sonnet and Haiku 5.5 on newer
    /// accounts).
    pub const ANTHROPIC_NOW: Self = Self {
        name: "anthropic_now",
        apis: &[Api::Messages],
        system: SystemMessages::BetweenTurns,
        binding: Binding::Error,
        controls: BindingControls::Offered,
        threads: Threads::Refused,
        cache: ANTHROPIC_CACHE,
        ..Self::PLAIN
    };

    /// As [`Self::ANTHROPIC_NOW`], but stale thinking is dropped without being asked for.
    pub const ANTHROPIC_DROP: Self =
        Self { name: "anthropic_drop", binding: Binding::Drop, ..Self::ANTHROPIC_NOW };

    /// As [`Self::ANTHROPIC_NOW`], for accounts that are older than the check: stale thinking is only reported.
    pub const ANTHROPIC_RECORD: Self =
        Self { name: "anthropic_record", binding: Binding::Record, ..Self::ANTHROPIC_NOW };

    /// Claude models before binding: no system messages between turns, and the answer counts against the window.
    pub const ANTHROPIC_OLDER: Self = Self {
        name: "anthropic_older",
        window: WindowRule::ClaudeWithAnswer,
        system: SystemMessages::Refused,
        binding: Binding::Off,
        cache: CacheRules { least: 1_024, ..ANTHROPIC_CACHE },
        ..Self::ANTHROPIC_NOW
    };

    /// A host of Anthropic's API that does not know the beta for binding, and refuses its field.
    pub const ANTHROPIC_HOST: Self = Self {
        name: "anthropic_host",
        controls: BindingControls::Refused,
        system: SystemMessages::Refused,
        binding: Binding::Off,
        ..Self::ANTHROPIC_NOW
    };

    /// OpenAI's Responses API.
    pub const OPENAI_NOW: Self = Self {
        name: "openai_now",
        apis: &[Api::Chat, Api::Responses],
        items: ItemPairs::Bound,
        reasoning: EncryptedReasoning::Verified,
        cache: CacheRules { least: 1_024, life: Some(Duration::from_secs(30 * 60)), ..Self::PLAIN.cache },
        ..Self::PLAIN
    };

    /// A Qwen model on vLLM.
    pub const VLLM_QWEN: Self = Self {
        name: "vllm_qwen",
        apis: &[Api::Chat],
        window: WindowRule::VllmWithAnswer,
        system: SystemMessages::First,
        ..Self::PLAIN
    };

    /// A Gemma model on vLLM.
    pub const GEMMA: Self = Self { name: "gemma", turns: Turns::Alternate, ..Self::VLLM_QWEN };

    /// All rows.
    pub const ALL: [Self; 9] = [
        Self::PLAIN,
        Self::ANTHROPIC_NOW,
        Self::ANTHROPIC_DROP,
        Self::ANTHROPIC_RECORD,
        Self::ANTHROPIC_OLDER,
        Self::ANTHROPIC_HOST,
        Self::OPENAI_NOW,
        Self::VLLM_QWEN,
        Self::GEMMA,
    ];

    /// The rows whose providers speak this API.
    pub fn speaking(api: Api) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |twin| twin.apis.contains(&api))
    }

    /// The row with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|twin| twin.name == name)
    }

    /// The row that the environment variable `LONGHAUL_TWIN` names, so that any test can run against any of them;
    /// [`Self::PLAIN`] without it.
    ///
    /// # Panics
    /// If there is no such row.
    #[expect(
        clippy::panic,
        reason = "a test against another provider than was asked for would prove nothing"
    )]
    pub fn of_environment() -> Self {
        match std::env::var("LONGHAUL_TWIN") {
            Ok(name) => {
                Self::named(&name).unwrap_or_else(|| panic!("LONGHAUL_TWIN: there is no twin `{name}`"))
            }
            Err(_) => Self::PLAIN,
        }
    }

    /// The rules for a request over this API.
    pub(crate) fn over(self, api: Api) -> Self {
        if self.apis.contains(&api) { self } else { Self::PLAIN }
    }
}

impl Default for Twin {
    fn default() -> Self {
        Self::PLAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_names_and_apis() {
        for twin in Twin::ALL {
            assert_eq!(Twin::named(twin.name), Some(twin));
        }
        let names = |api| Twin::speaking(api).map(|twin| twin.name).collect::<Vec<_>>();
        assert_eq!(names(Api::Chat), ["plain", "openai_now", "vllm_qwen", "gemma"]);
        assert_eq!(names(Api::Responses), ["plain", "openai_now"]);
        assert_eq!(Twin::ANTHROPIC_NOW.over(Api::Chat), Twin::PLAIN);
    }
}
