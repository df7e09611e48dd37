//! What the fake answers: a list of answers that are given in their order.

use serde_json::Value;

/// An answer of the model: thinking, words and calls of tools, in the order in which they were added.
///
/// ```
/// use longhaul_fake::Answer;
/// let words: Answer = "Done.".into();
/// assert_eq!(words, Answer::new().text("Done."));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub(crate) parts: Vec<Part>,
    pub(crate) stop: Option<String>,
    pub(crate) counts: Option<Counts>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Thinking(String),
    /// Thinking that only the provider can read.
    Sealed(String),
    Text(String),
    Call {
        name: String,
        arguments: String,
    },
}

/// What an answer costs, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of the prompt, whether or not the cache had it.
    pub prompt: u64,
    /// The part of the prompt that was read from the cache.
    pub cached: u64,
    /// The part of the prompt that was written into the cache. Only Anthropic reports it.
    pub written: u64,
    /// The answer.
    pub output: u64,
}

/// What the fake answers when its script is at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtEnd {
    /// This line, again and again.
    Line(String),
    /// Status 400, with words that say so.
    Error,
}

impl Default for AtEnd {
    fn default() -> Self {
        Self::Line("The script is at its end.".to_owned())
    }
}

impl Answer {
    /// An answer without any part.
    pub fn new() -> Self {
        Self::default()
    }

    /// The answer with more thinking: signed for Anthropic, encrypted for Responses if the client asks for
    /// that, `reasoning_content` for Chat.
    pub fn thinking(self, text: &str) -> Self {
        self.with(Part::Thinking(text.to_owned()))
    }

    /// The answer with thinking that nobody but the provider can read: `redacted_thinking` for Anthropic,
    /// encrypted reasoning without a summary for Responses (whether or not the client asks for it), nothing
    /// for Chat.
    pub fn sealed_thinking(self, data: &str) -> Self {
        self.with(Part::Sealed(data.to_owned()))
    }

    /// The answer with more words.
    pub fn text(self, text: &str) -> Self {
        self.with(Part::Text(text.to_owned()))
    }

    /// The answer with a call of a tool.
    pub fn call(self, name: &str, arguments: Value) -> Self {
        self.raw_call(name, &arguments.to_string())
    }

    /// The answer with a call whose arguments are this text, which need not be JSON.
    pub fn raw_call(self, name: &str, arguments: &str) -> Self {
        self.with(Part::Call { name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// The answer with another reason for its end, in the word of the API that is spoken: `length`,
    /// `max_tokens`, `max_output_tokens`, …
    pub fn stop(self, word: &str) -> Self {
        Self { stop: Some(word.to_owned()), ..self }
    }

    /// The answer with this usage in place of what the fake counts.
    pub fn usage(self, counts: Counts) -> Self {
        Self { counts: Some(counts), ..self }
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// True if a tool is called.
    pub(crate) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }

    /// The answer with the arguments of each call cut in half.
    pub(crate) fn with_cut_arguments(mut self) -> Self {
        for part in &mut self.parts {
            if let Part::Call { arguments, .. } = part {
                let half = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at));
                arguments.truncate(half.unwrap_or(0));
            }
        }
        self
    }

    /// The size of the answer in tokens.
    pub(crate) fn tokens(&self) -> u64 {
        let bytes = |part: &Part| match part {
            Part::Thinking(text) | Part::Sealed(text) | Part::Text(text) => text.len(),
            Part::Call { name, arguments } => name.len() + arguments.len(),
        };
        self.parts.iter().map(bytes).sum::<usize>().div_ceil(4) as u64
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}
