//! Tokens of gateways: how they are made, and what they look like.

use std::fmt::Write;

use crate::error::Failure;

/// The variable in which commands, and agents that we start, find the token of a gateway.
pub const TOKEN: &str = "LONGHAUL_TOKEN";

/// A token that nobody can guess, of letters and digits.
pub fn new() -> Result<String, Failure> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| Failure::Failed(format!("no random bytes: {error}")))?;
    let mut text = String::new();
    // Writing into a text does not fail.
    bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
    Ok(text)
}

/// A name for one agent at a gateway that no other agent has. No secret.
pub fn scope() -> Result<String, Failure> {
    const LENGTH: usize = 12;
    let mut scope = new()?;
    scope.truncate(LENGTH);
    Ok(scope)
}

/// True if a token can stand in the path of a URL as it is.
pub fn fits_a_path(token: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
    !token.is_empty() && !matches!(token, "." | "..") && token.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_fit_into_a_path() {
        let (one, other) = (new().unwrap(), new().unwrap());
        assert!(one != other && one.len() == 48 && fits_a_path(&one));
        for token in ["", "..", "a/b", "a b", "a%2f", "ä"] {
            assert!(!fits_a_path(token), "{token}");
        }
    }
}
