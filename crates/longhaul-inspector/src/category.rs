//! What a view is made of: its parts by category, and tool results by tool. The one place that says which category
//! something belongs to.

use std::collections::HashMap;

use longhaul::{Block, Part, Role, Session, Source, ToolResult};

/// A kind of content. A tool result belongs to its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// System prompt and tools.
    System,
    /// Project rules, and what the profile tells the model.
    Rules,
    /// What a person said, or the host in the person's place.
    User,
    /// What the model said.
    Own,
    /// What the model thought.
    Thinking,
    /// Calls of tools.
    Calls,
    /// Results of tools.
    Results,
    /// What stands for messages that were folded or hidden.
    Summaries,
    /// What changes often, behind everything else.
    Tail,
}

impl Category {
    /// All of them, in the order of a request.
    pub const ALL: [Self; 9] = [
        Self::System,
        Self::Rules,
        Self::User,
        Self::Own,
        Self::Thinking,
        Self::Calls,
        Self::Results,
        Self::Summaries,
        Self::Tail,
    ];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Rules => "rules",
            Self::User => "user",
            Self::Own => "own",
            Self::Thinking => "thinking",
            Self::Calls => "calls",
            Self::Results => "results",
            Self::Summaries => "summaries",
            Self::Tail => "tail",
        }
    }

    /// Of a block of a part.
    pub fn of(source: Source, role: Role, block: &Block) -> Self {
        match (source, role, block) {
            (Source::Tail | Source::HostNote(_), ..) => Self::Tail,
            (Source::Note | Source::Rules, ..) => Self::Rules,
            (Source::Edit(_), ..) => Self::Summaries,
            (_, _, Block::ToolResult(_)) => Self::Results,
            (_, _, Block::ToolCall(_)) => Self::Calls,
            (_, _, Block::Thinking(_)) => Self::Thinking,
            (_, Role::Summary, _) => Self::Summaries,
            (_, Role::System, _) => Self::System,
            (_, Role::Assistant, _) => Self::Own,
            (_, Role::User | Role::Tool, _) => Self::User,
        }
    }

    /// Of a whole part: what most of it is.
    pub fn of_part(part: &Part) -> Self {
        let role = part.message.role();
        let largest = part.message.blocks().iter().max_by_key(|block| block.bytes());
        match largest {
            Some(block) => Self::of(part.source, role, block),
            None => Self::of(part.source, role, &Block::text("")),
        }
    }
}

/// The name of the tool that a result of a part is of.
pub fn tool_of<'a>(session: &'a Session, source: Source, result: &'a ToolResult) -> Option<&'a str> {
    let Source::Message(at) = source else { return result.name.as_deref() };
    result.name.as_deref().or_else(|| session.log().call_of(at, result).map(|call| &*call.name))
}

/// Tools by number, so that what is counted of them is cheap to add up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, usize>,
}

impl Tools {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

/// What is counted together: a category, and in results the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    category: Category,
    tool: usize,
    counted: i64,
}

/// What a view counts by category, kept up with it: only parts that are new are looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    pub(crate) tools: Tools,
    parts: Vec<Vec<Share>>,
    tail: Vec<Share>,
    by_category: [i64; Category::ALL.len()],
    by_tool: Vec<i64>,
}

/// What one view counts: by category, and by tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    pub(crate) by_category: [i64; Category::ALL.len()],
    /// Tools with their results, those that are there.
    pub(crate) by_tool: Vec<(u32, i64)>,
}

impl Filling {
    /// Takes in the view of a session, of which the first `same` parts are those that were taken in last.
    pub(crate) fn follow(&mut self, session: &Session, same: usize) -> Counted {
        let parts = session.view().parts();
        let same = same.min(self.parts.len()).min(parts.len());
        let gone: Vec<Vec<Share>> =
            self.parts.drain(same..).chain([std::mem::take(&mut self.tail)]).collect();
        gone.iter().flatten().for_each(|share| self.add(*share, -1));
        for part in &parts[same..] {
            let shares = self.shares(session, part);
            shares.iter().for_each(|share| self.add(*share, 1));
            self.parts.push(shares);
        }
        if let Some(tail) = session.view().tail() {
            self.tail = self.shares(session, tail);
            self.tail.clone().iter().for_each(|share| self.add(*share, 1));
        }
        let mut by_category = self.by_category;
        by_category[Category::System as usize] += session.view().fixed().measure.counted;
        let by_tool = self.by_tool.iter().enumerate().filter(|(_, counted)| **counted > 0);
        Counted { by_category, by_tool: by_tool.map(|(tool, counted)| (tool as u32, *counted)).collect() }
    }

    fn add(&mut self, share: Share, times: i64) {
        self.by_category[share.category as usize] += share.counted * times;
        if share.category == Category::Results {
            if self.by_tool.len() <= share.tool {
                self.by_tool.resize(share.tool + 1, 0);
            }
            self.by_tool[share.tool] += share.counted * times;
        }
    }

    /// What a part is made of. Blocks are not counted one by one: they share what the part counts by their size.
    fn shares(&mut self, session: &Session, part: &Part) -> Vec<Share> {
        let (role, whole) = (part.message.role(), part.measure.counted);
        let blocks = part.message.blocks();
        let bytes: usize = blocks.iter().map(Block::bytes).sum();
        let mut shares: Vec<Share> = Vec::with_capacity(1);
        for block in blocks {
            let category = Category::of(part.source, role, block);
            let tool = match (category, block) {
                (Category::Results, Block::ToolResult(result)) => {
                    let name = tool_of(session, part.source, result).unwrap_or("unknown").to_owned();
                    self.tools.number(&name)
                }
                _ => 0,
            };
            let counted = match blocks.len() {
                1 => whole,
                _ => (i128::from(whole) * block.bytes() as i128 / bytes.max(1) as i128) as i64,
            };
            match shares.iter_mut().find(|share| share.category == category && share.tool == tool) {
                Some(share) => share.counted += counted,
                None => shares.push(Share { category, tool, counted }),
            }
        }
        shares
    }
}

/// Tokens by category of the view as it was prepared, the tail included.
pub fn filling(session: &Session) -> [(Category, u64); Category::ALL.len()] {
    let counted = Filling::default().follow(session, 0);
    let tokens = |counted: i64| {
        let measure = longhaul::size::Measure { counted, ..Default::default() };
        session.meter().tokens(measure).tokens.0
    };
    Category::ALL.map(|category| (category, tokens(counted.by_category[category as usize])))
}

/// Parts of a whole that have these weights, in whole numbers whose sum is the whole.
pub(crate) fn scaled(weights: &[i64], whole: u64) -> Vec<u64> {
    /// No view counts so much; what says so must not make the sums overflow.
    const MOST: i64 = 1 << 40;
    let weight = |weight: &i64| i128::from((*weight).clamp(0, MOST));
    let all: i128 = weights.iter().map(weight).sum();
    if all == 0 {
        return weights.iter().enumerate().map(|(at, _)| if at == 0 { whole } else { 0 }).collect();
    }
    let (mut sum, mut given) = (0_i128, 0_u64);
    let part = |own: &i64| {
        sum += weight(own);
        let upto = (i128::from(whole) * sum / all) as u64;
        let part = upto - given;
        given = upto;
        part
    };
    weights.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        for (weights, whole) in
            [(vec![1, 1, 1], 10), (vec![0, 0], 7), (vec![5, -3, 2], 1), (vec![i64::MAX; 3], u64::MAX)]
        {
            assert_eq!(scaled(&weights, whole).iter().sum::<u64>(), whole, "{weights:?}");
        }
        assert_eq!(scaled(&[3, 1], 8), [6, 2]);
    }
}
