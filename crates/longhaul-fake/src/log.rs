//! What the fake got.

use std::collections::HashSet;

use serde_json::Value;

use crate::api::Api;
use crate::script::Counts;

/// What stands in the place of a key.
pub(crate) const REDACTED: &str = "[key]";

/// A request for an answer, as the fake got it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The number of the call, from 1.
    pub number: usize,
    /// The API that the client spoke.
    pub api: Api,
    /// The path, as the client wrote it.
    pub path: String,
    /// The headers, with names in small letters, and keys as `[key]`.
    pub headers: Vec<(String, String)>,
    /// The body; `Null` if it was no JSON.
    pub body: Value,
    /// True if the client asked for a stream.
    pub streamed: bool,
    /// What the fake counted, whether or not it answered.
    pub counts: Counts,
    /// The marks of the cache in the request.
    pub marks: usize,
    /// The thinking blocks that were not valid any more, for a twin that binds thinking.
    pub stale: Vec<StaleBlock>,
    /// What a provider would refuse in the request, in its words.
    pub violation: Option<String>,
    /// The status that the fake answered with; 0 if not a byte was to come.
    pub status: u16,
    /// How the call ended.
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The fake has not said everything.
    Open,
    /// The fake has said everything that it had to say, and ended the connection.
    Said,
    /// The client went away before the fake ended the connection.
    Left,
}

/// A thinking block whose prefix, or whose previous thinking block, was another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleBlock {
    /// The place of its message in the request.
    pub message: usize,
    /// The place of the block in the content of the message.
    pub block: usize,
    /// Its signature; the data of redacted thinking.
    pub signature: String,
    /// The reaction of the fake.
    pub ruling: Ruling,
}

/// The reaction of the fake to a stale thinking block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// The request was refused.
    Refused,
    /// The block was left out, and the request was answered.
    Dropped,
    /// The block was kept, and the request was answered.
    Recorded,
}

/// The numbers of stale thinking blocks in all calls. A block that was sent many times counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StaleCounts {
    /// Blocks in requests that were refused for them.
    pub refused: usize,
    /// Blocks that were dropped.
    pub dropped: usize,
    /// Blocks that were kept, and would be refused or dropped by a stricter provider.
    pub recorded: usize,
}

impl StaleCounts {
    pub(crate) fn of(log: &[Call]) -> Self {
        let stale: Vec<&StaleBlock> = log.iter().flat_map(|call| &call.stale).collect();
        let count = |ruling| {
            let of_kind = stale.iter().filter(|block| block.ruling == ruling);
            of_kind.map(|block| block.signature.as_str()).collect::<HashSet<_>>().len()
        };
        Self {
            refused: count(Ruling::Refused),
            dropped: count(Ruling::Dropped),
            recorded: count(Ruling::Recorded),
        }
    }
}

impl Call {
    /// The value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

/// The value of a header.
pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Headers without the keys in them.
pub(crate) fn redacted(headers: &[(String, String)]) -> Vec<(String, String)> {
    let secret = ["authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"];
    let value = |name: &str, value: &str| match secret.contains(&name) {
        true => REDACTED.to_owned(),
        false => value.to_owned(),
    };
    headers.iter().map(|(name, text)| (name.clone(), value(name, text))).collect()
}
