//! Where requests of an API go, from the base URL that people write down.

use longhaul_wire::api::Api;
use reqwest::Url;

use crate::fault::Fault;

/// The address of this API at a base URL. OpenAI's documentation writes the version into the base URL,
/// Anthropic's does not, and people do either.
pub(super) fn of(api: Api, base_url: &str) -> Result<String, Fault> {
    let wrong = |why: &str| Fault::Refused { status: 0, says: format!("the base URL {base_url:?} {why}") };
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
    Ok(if versioned { format!("{base}/{path}") } else { format!("{base}/v1/{path}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_and_without_a_version() {
        let at = |api, base| of(api, base).unwrap();
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
            assert!(of(Api::Chat, base).is_err(), "{base}");
        }
    }
}
