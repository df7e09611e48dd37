//! What fills the context, by category, and how that is drawn.

use anstyle::{AnsiColor, Style};
use longhaul::{Session, Tokens};
use longhaul_inspector::category::{Category as Kind, filling};

use crate::terminal::{grouped, percent};

/// A kind of content.
#[derive(Clone, Copy)]
struct Category {
    name: &'static str,
    letter: char,
    style: Style,
}

const fn category(name: &'static str, letter: char, color: AnsiColor) -> Category {
    Category { name, letter, style: color.on_default() }
}

const CATEGORIES: [Category; 7] = [
    category("system and tools", 's', AnsiColor::Magenta),
    category("user", 'u', AnsiColor::Green),
    category("answers", 'a', AnsiColor::Cyan),
    category("thinking", 't', AnsiColor::Blue),
    category("tool calls", 'c', AnsiColor::Yellow),
    category("tool results", 'r', AnsiColor::White),
    category("summaries", 'm', AnsiColor::BrightGreen),
];

/// Which letter stands for what, in two lines.
pub fn legend() -> [String; 2] {
    let all = CATEGORIES.map(|Category { name, letter, style }| format!("{style}{letter}{style:#} {name}"));
    [all[..4].join("   "), all[4..].join("   ")]
}

/// Tokens by category, in the order of the categories.
#[derive(Debug, Default)]
pub struct Filling([u64; CATEGORIES.len()]);

impl Filling {
    /// Of the view as it was prepared.
    pub fn of(session: &Session) -> Self {
        let mut own = Self::default();
        // The tail is of the request alone.
        for (kind, tokens) in filling(session).into_iter().filter(|(kind, _)| *kind != Kind::Tail) {
            own.0[row_of(kind)] += tokens;
        }
        own
    }

    /// The same shares of another sum: of what a provider is known to count, say.
    pub fn scaled_to(self, sum: Tokens) -> Self {
        let all = self.tokens().max(1);
        Self(self.0.map(|tokens| tokens * sum.0 / all))
    }

    /// All of them.
    pub fn tokens(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Names and tokens of those that are there, the largest first.
    pub fn largest(&self) -> Vec<(&'static str, u64)> {
        let all = CATEGORIES.iter().zip(self.0).map(|(category, tokens)| (category.name, tokens));
        let mut all: Vec<_> = all.filter(|(_, tokens)| *tokens > 0).collect();
        all.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        all
    }

    /// The window: each category a run of its letter, as wide as its share.
    pub fn bar(&self, window: Tokens, columns: u64) -> String {
        let mut bar = String::new();
        let (mut sum, mut drawn) = (0, 0);
        for (category, tokens) in CATEGORIES.iter().zip(self.0) {
            sum += tokens;
            let end = (sum * columns / window.0.max(1)).min(columns);
            let run: String = std::iter::repeat_n(category.letter, (end - drawn) as usize).collect();
            bar += &format!("{}{run}{:#}", category.style, category.style);
            drawn = end;
        }
        bar + &" ".repeat((columns - drawn) as usize)
    }

    /// A line for each category, with its share of all.
    pub fn lines(&self) -> Vec<String> {
        let all = self.tokens().max(1);
        let line = |(category, tokens): (&Category, u64)| {
            let Category { name, letter, style } = category;
            let share = percent(Some(tokens as f64 / all as f64));
            format!("  {style}{letter}{style:#} {name:17}{:>9} {share:>6}", grouped(tokens))
        };
        CATEGORIES.iter().zip(self.0).map(line).collect()
    }
}

/// Where a kind of content stands among the categories.
fn row_of(kind: Kind) -> usize {
    match kind {
        Kind::System => 0,
        Kind::User | Kind::Rules | Kind::Tail => 1,
        Kind::Own => 2,
        Kind::Thinking => 3,
        Kind::Calls => 4,
        Kind::Results => 5,
        Kind::Summaries => 6,
    }
}
