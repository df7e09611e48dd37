//! What fills the context, by category, and how that is drawn.

use anstyle::{AnsiColor, Style};
use longhaul::{Block, Part, Role, Session, Tokens};

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
        let mut filling = Self::default();
        filling.0[0] = session.meter().tokens(session.view().fixed().measure).tokens.0;
        for part in session.view().parts() {
            filling.add(session, part);
        }
        filling
    }

    fn add(&mut self, session: &Session, part: &Part) {
        let role = part.message.role();
        let whole = session.meter().tokens(part.measure).tokens.0;
        if part.message.blocks().len() == 1 {
            self.0[category_of(role, &part.message.blocks()[0])] += whole;
            return;
        }
        // Shares by size: blocks are not counted one by one.
        let bytes: usize = part.message.blocks().iter().map(Block::bytes).sum();
        for block in part.message.blocks() {
            self.0[category_of(role, block)] += whole * block.bytes() as u64 / bytes.max(1) as u64;
        }
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

fn category_of(role: Role, block: &Block) -> usize {
    match (role, block) {
        (_, Block::ToolResult(_)) => 5,
        (_, Block::ToolCall(_)) => 4,
        (_, Block::Thinking(_)) => 3,
        (Role::Summary, _) => 6,
        (Role::System, _) => 0,
        (Role::Assistant, _) => 2,
        (Role::User | Role::Tool, _) => 1,
    }
}
