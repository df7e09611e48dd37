//! What stands before the line that is typed. It says what becomes of the line: it is heard now, it waits its turn, or
//! it answers a question. All are of one width, so that the editor may draw one in the place of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The prompt as it is now. It is drawn when something is printed next.
#[derive(Clone, Default)]
pub struct Prompt(Arc<AtomicU8>);

/// What becomes of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// It is heard.
    Heard = 0,
    /// It waits until the agent has ended.
    Waits = 1,
    /// It answers a question.
    Answers = 2,
}

impl Prompt {
    /// What it is at first, and as wide as all.
    pub const FIRST: &str = "> ";

    /// Lines mean this from now on.
    pub fn set(&self, means: Means) {
        self.0.store(means as u8, Ordering::Relaxed);
    }

    /// As it is drawn.
    pub fn text(&self) -> &'static str {
        match self.0.load(Ordering::Relaxed) {
            0 => Self::FIRST,
            1 => "… ",
            _ => "? ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::columns;

    #[test]
    fn all_prompts_have_one_width() {
        let prompt = Prompt::default();
        for (means, text) in [(Means::Waits, "… "), (Means::Answers, "? "), (Means::Heard, "> ")] {
            prompt.set(means);
            assert_eq!((prompt.text(), columns(text)), (text, columns(Prompt::FIRST)));
        }
    }
}
