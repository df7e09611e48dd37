//! Questions for permission: shown page by page, and answered by a line that was begun behind them.

use std::sync::{Arc, Mutex, PoisonError};

use longhaul_agent::{Answer, Consent};
use tokio::sync::oneshot;

use super::prompt::{Means, Prompt};
use super::screen::Screen;
use super::typed::Typed;
use crate::agent::consent_text;
use crate::terminal::STRONG;

/// Where a question waits for the line that answers it.
#[derive(Clone, Default)]
pub struct WaitingQuestion(Arc<Mutex<Option<Waiting>>>);

struct Waiting {
    sender: oneshot::Sender<String>,
    /// What was typed already when the question came: a line that begins so was not meant for it.
    begun: String,
}

impl WaitingQuestion {
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

/// A question, in pages that fit on the screen.
pub struct Paged<'a> {
    consent: &'a Consent,
    pages: Vec<Vec<String>>,
}

/// Rows of the screen that a page leaves: for the question, which may be three rows wide, and the prompt.
const SPARED: usize = 6;
/// Rows of a page at least.
const SHORTEST: usize = 4;

impl<'a> Paged<'a> {
    /// A question on a screen of so many columns and rows.
    pub fn new(consent: &'a Consent, width: usize, height: usize) -> Self {
        let lines = consent_text::lines(consent, Some(width));
        let rows = height.saturating_sub(SPARED).max(SHORTEST);
        Self { consent, pages: lines.chunks(rows).map(<[String]>::to_vec).collect() }
    }

    /// Asks it. Only who has seen all pages can say yes.
    pub async fn ask(
        &self,
        asked: &WaitingQuestion,
        typed: &Typed,
        prompt: &Prompt,
        screen: &Screen,
    ) -> Answer {
        for (number, page) in (1..).zip(&self.pages) {
            // Before the question is seen: what is typed from here on may answer it.
            let line = asked.wait(typed.text());
            prompt.set(Means::Answers);
            screen.lines(page.iter().cloned());
            let is_last = number == self.pages.len();
            let question = if is_last {
                consent_text::choices(self.consent)
            } else {
                format!(
                    "Page {number} of {}: Enter shows the next one / [n]o / or type why not",
                    self.pages.len()
                )
            };
            screen.line(format_args!("{STRONG}{question}{STRONG:#}"));
            // A person who is gone has not agreed.
            let Ok(line) = line.await else { return Answer::No(None) };
            prompt.set(Means::Waits);
            match consent_text::meaning(&line, self.consent) {
                answer if is_last => return answer,
                Answer::No(None) if line.is_empty() => {}
                refused @ Answer::No(_) => return refused,
                // It was given too early to be meant for all of it.
                _ => {}
            }
        }
        Answer::No(None)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::Poll;

    use longhaul_agent::{Asked, Reach};

    use super::*;

    /// Answers each question with the next of these lines.
    fn answer(consent: &Consent, height: usize, lines: &[&str]) -> Option<Answer> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (asked, screen) = (WaitingQuestion::default(), Screen::stdout());
        let question = Paged::new(consent, 80, height);
        runtime.block_on(async {
            let (typed, prompt) = (Typed::default(), Prompt::default());
            let mut answer = std::pin::pin!(question.ask(&asked, &typed, &prompt, &screen));
            let mut lines = lines.iter();
            std::future::poll_fn(|context| {
                loop {
                    if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                        return Poll::Ready(Some(answer));
                    }
                    let Some(line) = lines.next() else { return Poll::Ready(None) };
                    asked.answer((*line).to_owned()).unwrap();
                }
            })
            .await
        })
    }

    #[test]
    fn nobody_agrees_to_what_was_not_shown() {
        let command = (0..30).map(|line| format!("echo {line}\n")).collect();
        let what = Asked::Command { command, background: false, reach: Reach { writes: None } };
        let consent = Consent { tool: "Bash".to_owned(), what, why: None, rule: None };
        // Three pages of 14 rows.
        assert_eq!(answer(&consent, 20, &["y", "y"]), None);
        assert_eq!(answer(&consent, 20, &["y", "y", "y"]), Some(Answer::Yes));
        assert_eq!(answer(&consent, 20, &["", "", "y"]), Some(Answer::Yes));
        assert_eq!(answer(&consent, 20, &["", "", ""]), Some(Answer::No(None)));
        assert_eq!(answer(&consent, 20, &["n"]), Some(Answer::No(None)));
        assert_eq!(answer(&consent, 20, &["", "\x1b"]), Some(Answer::No(None)));
        assert_eq!(answer(&consent, 20, &["not so"]), Some(Answer::No(Some("not so".to_owned()))));
        assert_eq!(answer(&consent, 100, &["y"]), Some(Answer::Yes));
    }

    #[test]
    fn a_line_that_was_begun_before_is_no_answer() {
        let asked = WaitingQuestion::default();
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
}
