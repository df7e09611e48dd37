//! Questions for permission: how they are asked, and what the answer means.

use std::sync::{Arc, Mutex, PoisonError};

use longhaul_agent::{Effect, Permission, Question};
use tokio::sync::oneshot;

use crate::terminal::{STRONG, one_line};

/// Where a question waits for the line that answers it.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Option<oneshot::Sender<String>>>>);

impl Asked {
    /// Waits for the next line.
    pub fn wait(&self) -> oneshot::Receiver<String> {
        let (sender, receiver) = oneshot::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Gives a line to the question that waits; gives it back if none does.
    pub fn answer(&self, line: String) -> Result<(), String> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(sender) => sender.send(line),
            None => Err(line),
        }
    }
}

/// A question in a line or two.
pub fn text(question: &Question<'_>, width: usize) -> String {
    let what = match question.effect {
        Effect::Changes(path) => format!("{} {path}", question.tool),
        Effect::Runs(command) => format!("{}: {command}", question.tool),
        _ => question.tool.to_owned(),
    };
    // What is asked for must be seen as a whole, as far as a person can read it.
    let what = one_line(&what, 10 * width);
    let always =
        question.rule.map(|rule| format!(" / [a]lways \"{}\"", one_line(rule, width))).unwrap_or_default();
    format!("{STRONG}Allow {what}?{STRONG:#} [y]es{always} / [n]o / or type why not")
}

/// What a line means as an answer. Whatever is not yes is no, and goes to the model.
pub fn meaning(line: &str, has_rule: bool) -> Permission {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Permission::Once,
        "a" | "always" if has_rule => Permission::Always,
        "" | "n" | "no" => Permission::No(None),
        _ => Permission::No(Some(line.trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_says_what_would_run_and_which_rule_would_let_it() {
        let (effect, arguments) = (Effect::Runs("cargo test \x1b[2J".to_owned()), json!({}));
        let question =
            Question { tool: "Bash", arguments: &arguments, effect: &effect, rule: Some("Bash(cargo test)") };
        let plain = anstream::adapter::strip_str(&text(&question, 80)).to_string();
        let want =
            "Allow Bash: cargo test [2J? [y]es / [a]lways \"Bash(cargo test)\" / [n]o / or type why not";
        assert_eq!(plain, want);
    }

    #[test]
    fn only_yes_is_yes() {
        assert_eq!(meaning(" Y ", true), Permission::Once);
        assert_eq!(meaning("always", true), Permission::Always);
        assert_eq!(meaning("a", false), Permission::No(Some("a".to_owned())));
        assert_eq!((meaning("", true), meaning("n", true)), (Permission::No(None), Permission::No(None)));
        assert_eq!(meaning("yes, but later", true), Permission::No(Some("yes, but later".to_owned())));
    }
}
