//! State that is with the provider, or that the provider changes by itself.

use std::fmt;

use longhaul::{Block, Frame, Message};
use serde_json::Value;

/// What a request leans on that is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// `previous_response_id`: the conversation so far is with the provider.
    PreviousResponse,
    /// `conversation`: it is an object of the provider.
    Conversation,
    /// `item_reference`: an item is named and not sent.
    ItemReference,
    /// `compaction`: an item or a block in which the provider has packed what was before.
    Compaction,
    /// `thread`: the conversation so far is with the provider, or the next requests will lean on this one.
    Thread,
    /// `context_management` that compacts: the provider packs the conversation when it is long.
    Compacts,
    /// `context_management` that clears old results or reasoning. The request has all the same all of
    /// it.
    Clears,
}

impl Held {
    /// Whether the request must go on as it came: what is not in it cannot be shortened.
    pub fn passes_on(self) -> bool {
        self != Self::Clears
    }

    /// What these lean on.
    pub(super) fn of<'a>(frame: &Frame, messages: impl Iterator<Item = &'a Message>) -> Vec<Self> {
        let mut held = Vec::new();
        let set = |name: &str| frame.settings.is_set(name);
        held.extend(set("previous_response_id").then_some(Self::PreviousResponse));
        held.extend(set("conversation").then_some(Self::Conversation));
        held.extend(set("thread").then_some(Self::Thread));
        // A request for a compaction: its answer stands for all that is sent.
        held.extend(set("compaction").then_some(Self::Compaction));
        if let Some(managed) = frame.settings.get("context_management") {
            held.extend(by_management(&managed.value()));
        }
        for block in messages.flat_map(|message| message.blocks()) {
            let Block::Opaque(opaque) = block else { continue };
            let found = match kind(opaque.value.as_str()).as_deref() {
                Some("item_reference") => Self::ItemReference,
                Some("compaction" | "compaction_summary" | "compaction_trigger") => Self::Compaction,
                _ => continue,
            };
            if !held.contains(&found) {
                held.push(found);
            }
        }
        held
    }
}

/// The type of an item or a block. An item without one, and without a role, is a reference.
fn kind(json: &str) -> Option<String> {
    // Long values are pictures and documents: their type is not asked for.
    if !json.contains("\"item_reference\"") && !json.contains("\"compaction") && json.len() > 200 {
        return None;
    }
    let value: Value = serde_json::from_str(json).ok()?;
    match value.get("type") {
        Some(kind) => kind.as_str().map(str::to_owned),
        None => value.get("id").filter(|_| value.get("role").is_none()).map(|_| "item_reference".to_owned()),
    }
}

/// Anthropic has a list of edits, OpenAI a list of managers; both name their kinds by `type`.
fn by_management(managed: &Value) -> Option<Held> {
    let edits = managed.get("edits").unwrap_or(managed);
    let edits = match edits {
        Value::Array(edits) => edits.as_slice(),
        other => std::slice::from_ref(other),
    };
    let compacts = |edit: &Value| {
        let named = edit.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("compact"));
        named || edit.get("compact_threshold").is_some()
    };
    let any = edits.iter().any(|edit| edit.get("type").is_some() || edit.get("compact_threshold").is_some());
    any.then(|| if edits.iter().any(compacts) { Held::Compacts } else { Held::Clears })
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PreviousResponse => "the conversation so far is with the provider (`previous_response_id`)",
            Self::Conversation => "the conversation is an object of the provider (`conversation`)",
            Self::ItemReference => "an item is with the provider (`item_reference`)",
            Self::Compaction => "a part of the conversation is packed by the provider (`compaction`)",
            Self::Thread => "the conversation is a thread with the provider (`thread`)",
            Self::Compacts => "the provider compacts the conversation itself (`context_management`)",
            Self::Clears => "the provider clears old results or reasoning itself (`context_management`)",
        })
    }
}
