//! Where requests of an API go, from the base URL that people write down.

use std::fmt;

use longhaul_wire::api::Api;
use reqwest::Url;

use crate::fault::Fault;

/// Where requests go. What is shown of it has no user, no password and no query.
#[derive(Clone)]
pub(super) struct Address(String);

impl Address {
    /// The address of this API at a base URL. OpenAI's documentation writes the version into the base URL,
    /// Anthropic's does not, and people do either.
    pub(super) fn of(api: Api, base_url: &str) -> Result<Self, Fault> {
        let wrong = |why: &str| {
            let says = format!("the base URL {:?} {why}", shown(base_url));
            Fault::Refused { status: 0, says }
        };
        let base = base_url.trim().trim_end_matches('/');
        let url = Url::parse(base).map_err(|error| wrong(&format!("is none: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("begins neither with http:// nor with https://"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a query or a fragment"));
        }
        let path = match api {
            Api::Anthropic => "messages",
            Api::Chat => "chat/completions",
            Api::Responses => "responses",
        };
        let versioned = match api {
            Api::Anthropic => base.ends_with("/v1"),
            // Whoever writes a path means it.
            Api::Chat | Api::Responses => url.path().len() > 1,
        };
        Ok(Self(if versioned { format!("{base}/{path}") } else { format!("{base}/v1/{path}") }))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&shown(&self.0), f)
    }
}

/// An address without what may be secret in it.
fn shown(address: &str) -> String {
    let open = address.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = open.split_once("//").map_or(("", open), |(scheme, rest)| (scheme, rest));
    let host = rest.find('/').unwrap_or(rest.len());
    let behind = rest[..host].rfind('@').map_or(rest, |at| &rest[at + 1..]);
    if scheme.is_empty() { behind.to_owned() } else { format!("{scheme}//{behind}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_and_without_a_version() {
        let at = |api, base| Address::of(api, base).unwrap().0;
        assert_eq!(at(Api::Anthropic, "https://api.anthropic.com"), "https://api.anthropic.com/v1/messages");
        assert_eq!(at(Api::Anthropic, "http://127.0.0.1:9/v1/"), "http://127.0.0.1:9/v1/messages");
        assert_eq!(at(Api::Anthropic, "https://h/api/anthropic"), "https://h/api/anthropic/v1/messages");
        assert_eq!(at(Api::Chat, "https://api.openai.com/v1"), "https://api.openai.com/v1/chat/completions");
        assert_eq!(at(Api::Chat, "http://127.0.0.1:11434"), "http://127.0.0.1:11434/v1/chat/completions");
        assert_eq!(at(Api::Chat, "https://h/v1beta/openai/"), "https://h/v1beta/openai/chat/completions");
        assert_eq!(at(Api::Responses, "http://h:1/v1"), "http://h:1/v1/responses");
    }

    #[test]
    fn what_is_no_base_url_is_said() {
        for base in ["", "localhost:8080", "ftp://h", "http://h/?key=1", "nonsense"] {
            assert!(Address::of(Api::Chat, base).is_err(), "{base}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let address = Address::of(Api::Chat, "https://me:secret@h:9/v1").unwrap();
        assert_eq!(address.as_str(), "https://me:secret@h:9/v1/chat/completions");
        assert_eq!(format!("{address:?}"), r#""https://h:9/v1/chat/completions""#);
        for base in ["http://me:secret@h/?key=secret", "me:secret@h", "ftp://secret@h/v1", "http://h#secret"]
        {
            let fault = Address::of(Api::Chat, base).unwrap_err();
            assert!(!format!("{fault:?}").contains("secret"), "{fault:?}");
        }
    }
}
