//! Identity: which message this is, however it is written. A client sends a conversation again and
//! again; by the identities of its messages it is known.
//!
//! The identity of a message is a hash of what its client says: role, content, ids, arguments,
//! signatures and unknown fields. Left out is what changes while the message stays the same: marks of
//! the cache (a reader has taken them out), a bare string or one text block, spacing and the order of
//! fields, and all that is ours (who speaks, times, the text that was read).

use std::fmt;

use longhaul::{Block, Extra, Json, Message, Seal};

use super::role_name;
use crate::scan::{Scanner, Value};

/// What is hashed, and how, has this number: identities of another version are not compared.
pub const VERSION: u8 = 1;

/// The identity of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity([u8; 16]);

/// The identity of a conversation up to a message: of this message and of all before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain([u8; 16]);

impl Identity {
    /// The identity of a message that was read from a request.
    ///
    /// ```
    /// use longhaul_wire::api::{Api, Identity, Request};
    /// let bare = r#"{"messages": [{"role": "user", "content": "Go on."}]}"#;
    /// let marked = r#"{"messages": [{"content": [{"type": "text", "text": "Go on.",
    ///     "cache_control": {"type": "ephemeral"}}], "role": "user"}]}"#;
    /// let of = |body| Identity::of(&Request::decode(Api::Anthropic, body).unwrap().messages()[0]);
    /// assert_eq!(of(bare), of(marked));
    /// ```
    pub fn of(message: &Message) -> Self {
        let mut hash = Hash::new("longhaul message");
        hash.text(message.role().name());
        hash.text(role_name(message).as_deref().unwrap_or_default());
        hash.extra(message.extra());
        hash.blocks(message.blocks());
        Self(hash.end())
    }

    /// As bytes, for a store.
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl Chain {
    /// Before the first message. Conversations of another tenant or another API have nothing in
    /// common.
    pub fn start(tenant: &str, api: super::Api) -> Self {
        let mut hash = Hash::new("longhaul chain");
        hash.text(tenant);
        hash.text(api.name());
        Self(hash.end())
    }

    /// Behind one more message.
    pub fn then(&self, message: Identity) -> Self {
        let mut hash = Hash::new("longhaul link");
        hash.0.update(&self.0);
        hash.0.update(&message.0);
        Self(hash.end())
    }

    /// Behind each of these messages, in their order.
    pub fn over(self, messages: &[Identity]) -> impl Iterator<Item = Self> {
        messages.iter().scan(self, |chain, message| {
            *chain = chain.then(*message);
            Some(*chain)
        })
    }

    /// As bytes, for a store.
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

/// What is hashed is written so that no two things are written alike: each has its kind and its
/// length before it.
struct Hash(blake3::Hasher);

impl Hash {
    fn new(what: &str) -> Self {
        let mut hash = Self(blake3::Hasher::new());
        hash.0.update(&[VERSION]);
        hash.text(what);
        hash
    }

    fn end(self) -> [u8; 16] {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        half
    }

    /// The kind of what follows, and how much it is.
    fn kind(&mut self, kind: u8, count: usize) {
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&(count as u64).to_le_bytes());
        self.0.update(&bytes);
    }

    fn text(&mut self, text: &str) {
        self.kind(b's', text.len());
        self.0.update(text.as_bytes());
    }

    fn blocks(&mut self, blocks: &[Block]) {
        self.kind(b'b', blocks.len());
        blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => {
                self.kind(b'T', 0);
                self.text(&text.text);
            }
            Block::Thinking(thinking) => {
                let seal = match &thinking.seal {
                    Seal::Open => 0,
                    Seal::Signed(_) => 1,
                    Seal::Redacted(_) => 2,
                    Seal::Encrypted(_) => 3,
                };
                self.kind(b'R', seal);
                self.text(&thinking.text);
                self.text(thinking.seal.data().unwrap_or_default());
            }
            Block::ToolCall(call) => {
                self.kind(b'C', usize::from(call.server));
                self.text(&call.id);
                self.text(&call.name);
                self.json(&call.arguments);
            }
            Block::ToolResult(result) => {
                self.kind(b'A', usize::from(result.is_error));
                self.text(&result.id);
                self.text(result.name.as_deref().unwrap_or_default());
                match &result.content {
                    Some(content) => self.blocks(content),
                    None => self.text(&result.text),
                }
            }
            Block::Image(image) => {
                self.kind(b'I', 0);
                self.json(&image.source);
            }
            Block::Opaque(opaque) => {
                self.kind(b'O', 0);
                self.json(&opaque.value);
            }
        }
        self.extra(block.extra());
    }

    fn extra(&mut self, extra: &Extra) {
        let mut fields: Vec<(&str, &Json)> = extra.iter().collect();
        fields.sort_by_key(|(name, _)| *name);
        self.kind(b'o', fields.len());
        for (name, value) in fields {
            self.text(name);
            self.json(value);
        }
    }

    fn json(&mut self, json: &Json) {
        let text = json.as_str();
        let scanned = Scanner::new(text, 0).and_then(|mut scanner| {
            let note = scanner.value()?;
            Ok((scanner.tape, note))
        });
        match scanned {
            Ok((tape, note)) => self.value(tape.value(text, note)),
            // Nested too deep to be walked.
            Err(_) => {
                self.kind(b'?', 0);
                self.text(text);
            }
        }
    }

    fn value(&mut self, value: Value<'_>) {
        if let Some(text) = value.text() {
            self.text(&text);
        } else if value.is_array() {
            self.kind(b'a', value.elements().count());
            value.elements().for_each(|element| self.value(element));
        } else if value.is_object() {
            let mut fields: Vec<_> = value.fields().map(|(key, value)| (key.text(), value)).collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            self.kind(b'o', fields.len());
            for (name, value) in fields {
                self.text(name.as_deref().unwrap_or_default());
                self.value(value);
            }
        } else {
            self.kind(b'n', value.raw().len());
            self.0.update(value.raw().as_bytes());
        }
    }
}

fn hex(bytes: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}
