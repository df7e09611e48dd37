//! What a provider reports to have done with thinking in a request (`input_transformations` of Anthropic): read while the
//! first bytes of the answer are held, and told to the client in terms of its own request. The provider names places in
//! the request that we sent, where other messages may stand.

use std::collections::HashMap;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, HeaderValue};
use longhaul_wire::api::{BlockPlace, signed_thinking};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hold::Held;
use crate::reading::Form;

/// The name of the field.
const FIELD: &str = "input_transformations";

/// Types and reasons that are counted by their names. A client is told the others too.
const KINDS: [&str; 2] = ["thinking_dropped", "thinking_mismatch_allowed"];
const REASONS: [&str; 4] = [
    "prefix_binding_mismatch",
    "model_binding_mismatch",
    "organization_binding_mismatch",
    "end_user_binding_mismatch",
];

/// What became of one block of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Transformation {
    /// The type, as the provider names it.
    pub(crate) kind: &'static str,
    pub(crate) reason: &'static str,
    /// The hash of the block's signature: it is the same block in every request.
    block: [u8; 16],
}

impl Held {
    /// The transformations that an answer begins with. Afterwards they name the blocks of the request that `came`, instead of
    /// those of the request that was `sent`; a block that the client did not send is not reported to it.
    pub(crate) fn read_transformations(&mut self, sent: &[u8], came: &str) -> Vec<Transformation> {
        if self.head.status != StatusCode::OK || Form::of(&self.head.headers) == Form::Other {
            return Vec::new();
        }
        // A piece may end inside of the name, or inside of a character.
        let first: Vec<u8> = self.first.iter().flatten().copied().collect();
        let text = first.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let Some(listed) = Some(text).filter(|text| text.contains(FIELD)).and_then(listed) else {
            return Vec::new();
        };
        let entries: Vec<Value> = serde_json::from_str(listed.get()).unwrap_or_default();
        if entries.is_empty() {
            return Vec::new();
        }
        let sent = std::str::from_utf8(sent).map(signed_thinking).unwrap_or_default();
        let sent: HashMap<BlockPlace, String> = sent.into_iter().collect();
        let came: HashMap<String, BlockPlace> =
            signed_thinking(came).into_iter().map(|(place, seal)| (seal, place)).collect();
        let (mut transformations, mut told) = (Vec::new(), Vec::new());
        for mut entry in entries {
            let place = entry["path"].as_str().and_then(BlockPlace::named_in);
            let seal = place.and_then(|place| sent.get(&place));
            transformations.push(Transformation::of(&entry, seal.map_or("", |seal| seal)));
            match seal.map(|seal| came.get(seal)) {
                Some(Some(place)) => entry["path"] = place.to_string().into(),
                Some(None) => continue,
                // It names no thinking: it stays as it is.
                None => {}
            }
            told.push(entry);
        }
        let told = Value::Array(told).to_string();
        if told != listed.get() {
            let start = listed.get().as_ptr() as usize - text.as_ptr() as usize;
            let end = start + listed.get().len();
            let first = [&first[..start], told.as_bytes(), &first[end..]].concat();
            // More of the answer may come behind these pieces.
            let length = self.head.headers.get(CONTENT_LENGTH);
            let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
            if let Some(length) = length {
                let length = (length + told.len()).saturating_sub(listed.get().len());
                self.head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            self.first = [Bytes::from(first)].into();
        }
        transformations
    }
}

impl Transformation {
    fn of(entry: &Value, seal: &str) -> Self {
        let known = |name: &str, all: &[&'static str]| {
            let found = all.iter().find(|known| entry[name] == **known);
            found.copied().unwrap_or("other")
        };
        let named = if seal.is_empty() { entry.to_string() } else { seal.to_owned() };
        let mut block = [0; 16];
        block.copy_from_slice(&blake3::hash(named.as_bytes()).as_bytes()[..16]);
        Self { kind: known("type", &KINDS), reason: known("reason", &REASONS), block }
    }
}

/// The list in the first bytes of an answer: of the whole answer, or of the event that begins a stream.
fn listed(text: &str) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        input_transformations: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Start<'a> {
        #[serde(borrow)]
        message: Message<'a>,
    }
    if let Ok(whole) = serde_json::from_str::<Message<'_>>(text) {
        return whole.input_transformations;
    }
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let start = events
        .filter(|data| data.contains(FIELD))
        .find_map(|data| serde_json::from_str::<Start<'_>>(data).ok());
    start?.message.input_transformations
}
