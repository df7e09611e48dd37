//! Questions for permission: how they are asked, and what the answer means.

use std::sync::{Arc, Mutex, PoisonError};

use longhaul_agent::{Effect, Permission, Question};
use tokio::sync::oneshot;

use crate::terminal::{STRONG, one_line};

/// Where a question waits for the line that answers it.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Option<Waiting>>>);

struct Waiting {
    sender: oneshot::Sender<String>,
    /// What was typed already when the question came: a line that begins so was not meant for it.
    begun: String,
}

impl Asked {
    /// Waits for the next line that was not begun before.
    pub fn wait(&self, begun: String) -> oneshot::Receiver<String> {
        let (sender, receiver) = oneshot::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Waiting { sender, begun });
        receiver
    }

    /// Gives a line to the question that waits; gives it back if none does.
    pub fn answer(&self, line: String) -> Result<(), String> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.take() {
            None => Err(line),
            Some(Waiting { sender, begun }) if !begun.is_empty() && line.starts_with(&begun) => {
                *waiting = Some(Waiting { sender, begun: String::new() });
                Err(line)
            }
            Some(Waiting { sender, .. }) => sender.send(line),
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
    fn a_line_that_was_begun_before_is_no_answer() {
        let asked = Asked::default();
        assert_eq!(asked.answer("y".to_owned()), Err("y".to_owned()));
        let mut answer = asked.wait("ye".to_owned());
        assert_eq!(asked.answer("yes".to_owned()), Err("yes".to_owned()));
        assert!(answer.try_recv().is_err());
        assert_eq!(asked.answer("yes".to_owned()), Ok(()));
        assert_eq!(answer.try_recv().as_deref(), Ok("yes"));
        // One that was taken back was not meant either way.
        let mut answer = asked.wait("half a".to_owned());
        assert_eq!((asked.answer("n".to_owned()), answer.try_recv().as_deref()), (Ok(()), Ok("n")));
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
