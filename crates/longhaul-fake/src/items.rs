//! The items that the fake made over OpenAI Responses, and what OpenAI refuses in items that are sent back.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::api::{Said, text};
use crate::twin::{EncryptedReasoning, ItemPairs, Twin};

/// The items of all answers so far.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// The id of the item right after a reasoning item, by the id of that.
    followers: HashMap<String, String>,
    /// The id of the reasoning item right before an item, by the id of that.
    reasoning: HashMap<String, String>,
    /// The encrypted contents.
    encrypted: HashSet<String>,
}

impl Items {
    /// Remembers the items of an answer.
    pub(crate) fn remember(&mut self, output: &[Value]) {
        for pair in output.windows(2).filter(|pair| is_reasoning(&pair[0])) {
            let (reasoning, follower) = (text(&pair[0], "id"), text(&pair[1], "id"));
            self.followers.insert(reasoning.to_owned(), follower.to_owned());
            self.reasoning.insert(follower.to_owned(), reasoning.to_owned());
        }
        let encrypted = output.iter().filter_map(|item| item["encrypted_content"].as_str());
        self.encrypted.extend(encrypted.map(str::to_owned));
    }

    /// The words for items that this provider refuses.
    pub(crate) fn violation(&self, twin: Twin, input: &[Value]) -> Option<Said> {
        let unpaired = match twin.items {
            ItemPairs::Loose => None,
            ItemPairs::Bound => (0..input.len()).find_map(|at| self.unpaired(input, at)).map(Said::invalid),
        };
        unpaired.or_else(|| match twin.reasoning {
            EncryptedReasoning::OnRequest => None,
            EncryptedReasoning::Verified => input.iter().find_map(|item| self.unverified(item)),
        })
    }

    /// The words for an item whose partner is missing. An item without an id needs none.
    fn unpaired(&self, input: &[Value], at: usize) -> Option<String> {
        let (id, kind) = (text(&input[at], "id"), text(&input[at], "type"));
        let is_other = |item: &Value, wanted: &str| !["", wanted].contains(&text(item, "id"));
        if let Some(follower) = self.followers.get(id) {
            let next = input.get(at + 1);
            return next.is_none_or(|next| is_other(next, follower)).then(|| {
                format!("Item '{id}' of type '{kind}' was provided without its required following item.")
            });
        }
        let reasoning = self.reasoning.get(id)?;
        let before = at.checked_sub(1).map(|before| &input[before]);
        before.is_none_or(|before| !is_reasoning(before) || is_other(before, reasoning)).then(|| {
            format!("Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'.")
        })
    }

    /// The words for encrypted content that the fake did not make.
    fn unverified(&self, item: &Value) -> Option<Said> {
        let content = item["encrypted_content"].as_str().filter(|_| is_reasoning(item))?;
        let id = text(item, "id");
        (!self.encrypted.contains(content)).then(|| {
            Said::invalid(format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
            ))
            .with_code("invalid_encrypted_content")
        })
    }
}

fn is_reasoning(item: &Value) -> bool {
    text(item, "type") == "reasoning"
}
