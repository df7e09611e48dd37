//! Whether a fault is about what stands in the request: then another form of it may be taken.

use super::Fault;

impl Fault {
    /// What the provider says, if it refused what stands in the request: not its size, a key, a quota, the address or a
    /// model, and no fault of its own that passes.
    pub fn refused_content(&self) -> Option<&str> {
        match self {
            Self::Refused { status, says } => {
                let of_content = matches!(status, 200 | 400 | 406 | 415 | 418 | 422);
                (of_content && !is_about_account(says)).then_some(says)
            }
            // Servers of local models answer so when a chat template fails.
            Self::Failed { status: 500 | 501, says, .. } => is_about_messages(says).then_some(says),
            _ => None,
        }
    }
}

/// True if an error speaks of money, keys or rights.
fn is_about_account(says: &str) -> bool {
    const WORDS: [&str; 7] =
        ["credit", "billing", "quota", "api key", "api_key", "usage limit", "organization has been"];
    let says = says.to_lowercase();
    WORDS.iter().any(|word| says.contains(word))
}

/// True if an error speaks of messages, their roles or the template that renders them.
fn is_about_messages(says: &str) -> bool {
    const WORDS: [&str; 6] = ["template", "jinja", "role", "system message", "tool", "invalid message"];
    let says = says.to_lowercase();
    WORDS.iter().any(|word| says.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_of_what_a_request_says_are_refusals_of_content() {
        let refused = |status, message: &str| {
            let body = serde_json::json!({ "error": { "message": message } }).to_string();
            Fault::of_response(status, None, &body).refused_content().map(str::to_owned)
        };
        for (status, message) in [
            (400, "System message must be at the beginning."),
            (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
            (422, "messages.3.role: Input should be 'user' or 'assistant'"),
            (500, "Value is not callable: null at row 24 of the chat template"),
            (500, "Jinja Exception: Conversation roles must alternate"),
        ] {
            assert_eq!(refused(status, message).as_deref(), Some(message), "{status}");
        }
        for (status, message) in [
            (401, "no such key"),
            (402, "pay first"),
            (403, "not for you"),
            (404, "no such model"),
            (408, "too slow"),
            (409, "in conflict"),
            (413, "too large"),
            (429, "too many requests"),
            (500, "Internal server error"),
            (502, "role"),
            (503, "role"),
            (504, "role"),
            (529, "Overloaded"),
            (400, "Your credit balance is too low to access the API."),
            (400, "prompt is too long: 9 tokens > 8 maximum"),
            (400, "You exceeded your current quota"),
        ] {
            assert_eq!(refused(status, message), None, "{status} {message}");
        }
        let event = |error: &str| Fault::of_event(&format!(r#"{{"error":{error}}}"#));
        assert!(
            event(r#"{"code":400,"message":"System message must be at the beginning."}"#)
                .refused_content()
                .is_some()
        );
        assert!(event(r#"{"type":"invalid_request_error","message":"no"}"#).refused_content().is_some());
        assert!(event(r#"{"type":"overloaded_error","message":"no"}"#).refused_content().is_none());
    }
}
