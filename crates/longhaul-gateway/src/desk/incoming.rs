//! A request of a client to a model, and what it says of its conversation.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use longhaul_store::About;
use longhaul_wire::api::{Api, SharedText};

use super::live::Hint;

/// A request of a client to a model, as it came.
#[derive(Clone)]
pub struct Incoming {
    /// Whose it is.
    pub tenant: Arc<str>,
    /// What it speaks.
    pub api: Api,
    /// The address of the upstream that it is for, without credentials.
    pub upstream: Arc<str>,
    /// Its headers.
    pub headers: HeaderMap,
    /// Which key it came with, as a number that says nothing of the key and is another in every process.
    pub account: Option<u64>,
    /// Its body, without what it was compressed with.
    pub body: SharedText,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No key and nothing that anybody said.
        write!(f, "Incoming {{ {:?}, {} bytes }}", self.api, self.body.len())
    }
}

/// Headers in which clients name their conversation, and what goes with each.
const NAMES: [&[&str]; 4] = [
    // Claude Code; its sub-agents have a name of their own.
    &["x-claude-code-session-id", "x-claude-code-agent-id"],
    // Codex
    &["session-id", "thread-id"],
    // opencode
    &["x-session-id"],
    // pi
    &["session_id"],
];

/// Bytes at the start of a body that tell conversations apart where no header does: not very well.
const HEAD: usize = 4_096;

impl Incoming {
    /// The client wants it passed on as it is.
    pub(super) fn is_off(&self) -> bool {
        self.header("x-longhaul").is_some_and(|value| value.eq_ignore_ascii_case("off"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Where to look for its conversation first, the best first.
    pub(super) fn hints(&self) -> Vec<Hint> {
        let head = &self.body.as_bytes()[..self.body.len().min(HEAD)];
        let mut hints = named(&self.tenant, self.api, &self.headers);
        hints.push(hint(&self.tenant, self.api, [&b"head"[..], head]));
        hints
    }

    /// What a list of sessions says of the client.
    pub(super) fn about(&self) -> About {
        let program = self.header("user-agent").unwrap_or_default();
        let agent = program.split(['/', ' ']).next().unwrap_or_default();
        About { agent: agent.to_owned(), tenant: self.tenant.to_string(), ..About::default() }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The conversations that the headers of a client name.
pub(super) fn named(tenant: &str, api: Api, headers: &HeaderMap) -> Vec<Hint> {
    let named = NAMES.iter().filter_map(|names| {
        let (first, others) = names.split_first()?;
        let mut name = vec![*first, header(headers, first)?];
        name.extend(others.iter().filter_map(|other| header(headers, other)));
        Some(hint(tenant, api, name.iter().map(|part| part.as_bytes())))
    });
    named.collect()
}

fn hint<'a>(tenant: &'a str, api: Api, parts: impl IntoIterator<Item = &'a [u8]>) -> Hint {
    let mut hash = blake3::Hasher::new();
    for part in [tenant.as_bytes(), api.name().as_bytes()].into_iter().chain(parts) {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut half = [0; 16];
    half.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    Hint(half)
}
