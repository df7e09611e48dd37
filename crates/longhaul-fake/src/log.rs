//! What the fake got.

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
