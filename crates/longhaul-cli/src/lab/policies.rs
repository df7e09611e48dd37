//! Reference policies for `bench`: what others do, in a few lines each, so that profiles are
//! compared with something. Each gives the view of a call as pieces of text; parameters as in
//! `docs/measuring.md`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use longhaul::conversation::RecordedCompaction;
use longhaul::{Message, Role};
use longhaul_lab::OwnCompaction;

use crate::lab::needs::{self, Name, Needs, Piece};
use crate::lab::prices::{OUTPUT, Prices};

/// A recorded session, ready to be sent by any policy.
pub struct Recording {
    /// Its messages, the recorded agent's compaction included.
    pub messages: Vec<Arc<Message>>,
    pub texts: Vec<String>,
    pub pieces: Vec<Arc<Piece>>,
}

/// A reference policy.
#[derive(Clone, Copy)]
pub struct Policy {
    pub name: &'static str,
    kind: PolicyKind,
    /// Sees the recorded agent's own summaries.
    pub recorded: bool,
}

#[derive(Clone, Copy)]
enum PolicyKind {
    Full,
    Recorded,
    Mask { keep: usize },
    Clear { percent: u64, keep: usize },
    Entry { head: usize, tail: usize },
    Transform,
    SummariseAll(OwnCompaction),
    BareNames { percent: u64, keep: u64 },
    Floor,
    Oracle,
}

const fn policy(name: &'static str, kind: PolicyKind) -> Policy {
    Policy { name, kind, recorded: matches!(kind, PolicyKind::Recorded) }
}

/// All of them.
pub const POLICIES: [Policy; 12] = [
    policy("full, no limit", PolicyKind::Full),
    policy("recorded agent", PolicyKind::Recorded),
    policy("mask all but 10", PolicyKind::Mask { keep: 10 }),
    policy("clear over 50%, keep 3", PolicyKind::Clear { percent: 50, keep: 3 }),
    policy("clear over 80%, keep 3", PolicyKind::Clear { percent: 80, keep: 3 }),
    policy("head+tail 3000+3000", PolicyKind::Entry { head: 3000, tail: 3000 }),
    policy("head+tail 1000+1000", PolicyKind::Entry { head: 1000, tail: 1000 }),
    policy("transform, origin", PolicyKind::Transform),
    policy("summarise all at 80%", PolicyKind::SummariseAll(OwnCompaction::USUAL)),
    policy("(bare names at 50%)", PolicyKind::BareNames { percent: 50, keep: 20_000 }),
    policy("(floor: no results)", PolicyKind::Floor),
    policy("(oracle)", PolicyKind::Oracle),
];

/// What a policy sends: its parts so far, and from where on they are others than at the call before.
#[derive(Default)]
struct Shown {
    parts: Vec<Arc<Piece>>,
    tokens: f64,
    changed: usize,
}

impl Shown {
    fn push(&mut self, piece: Arc<Piece>) {
        self.tokens += piece.tokens;
        self.parts.push(piece);
    }

    fn set(&mut self, at: usize, piece: &Arc<Piece>) {
        self.tokens += piece.tokens - self.parts[at].tokens;
        self.parts[at] = piece.clone();
        self.changed = self.changed.min(at);
    }

    fn restart(&mut self, parts: impl Iterator<Item = Arc<Piece>>) {
        (self.tokens, self.changed) = (0.0, 0);
        self.parts.clear();
        parts.for_each(|part| self.push(part));
    }

    /// How many parts are as at the call before. Changes are counted from here on.
    fn sent(&mut self) -> usize {
        std::mem::replace(&mut self.changed, self.parts.len())
    }
}

/// A policy on its way through a recording. A call costs what is new and what the policy changes, not the
/// length of the session.
pub struct PolicyRun<'a> {
    kind: PolicyKind,
    window: f64,
    prices: Prices,
    recording: &'a Recording,
    /// Messages before this one were seen.
    seen: usize,
    shown: Shown,
    /// Tool results that stand as they came, by message.
    whole: VecDeque<usize>,
    /// Messages before this one are left out, or in what stands first.
    start: usize,
    /// Tokens of the messages that are left out.
    dropped: f64,
    /// Words and paths of the past, for summaries.
    users: Vec<String>,
    paths: Vec<String>,
    known_paths: HashSet<String>,
    names: NameList,
    /// The list of names stands first.
    listed: bool,
    oracle: HashMap<usize, HashSet<usize>>,
}

/// What a policy sends, and what making it cost, in tokens × price.
pub struct PolicyView {
    /// So many parts are as at the call before.
    pub kept: usize,
    /// The parts behind them.
    pub parts: Vec<Arc<Piece>>,
    pub extra_cost: f64,
}

const CLEARED: &str = "[old tool result cleared]";

impl<'a> PolicyRun<'a> {
    pub fn new(policy: Policy, window: u64, prices: Prices, recording: &'a Recording) -> Self {
        let oracle = match policy.kind {
            PolicyKind::Oracle => needs::needed_lines(&recording.messages, &recording.texts),
            _ => HashMap::new(),
        };
        Self {
            kind: policy.kind,
            window: window as f64,
            prices,
            recording,
            seen: 0,
            shown: Shown::default(),
            whole: VecDeque::new(),
            // Transform never drops the first message.
            start: usize::from(matches!(policy.kind, PolicyKind::Transform)),
            dropped: 0.0,
            users: Vec::new(),
            paths: Vec::new(),
            known_paths: HashSet::new(),
            names: NameList::default(),
            listed: false,
            oracle,
        }
    }

    /// What is sent when the messages before `upto` are there.
    pub fn view(&mut self, upto: usize, needs: &mut Needs) -> PolicyView {
        for at in self.seen..upto {
            self.take(at, needs);
        }
        self.seen = self.seen.max(upto);
        let mut extra_cost = 0.0;
        match self.kind {
            PolicyKind::Full
            | PolicyKind::Recorded
            | PolicyKind::Entry { .. }
            | PolicyKind::Floor
            | PolicyKind::Oracle => {}
            PolicyKind::Mask { keep } => self.clear(keep, needs),
            PolicyKind::Clear { percent, keep } => {
                if self.is_over(percent) {
                    self.clear(keep, needs);
                }
            }
            PolicyKind::Transform => return self.transformed(needs),
            PolicyKind::SummariseAll(own) => {
                if own.is_due(self.shown.tokens, self.window) {
                    extra_cost = self.summarise(upto, needs, own.keep);
                }
            }
            PolicyKind::BareNames { percent, keep } => {
                if self.is_over(percent) {
                    self.list_names(upto, needs, keep);
                }
            }
        }
        let kept = self.shown.sent();
        PolicyView { kept, parts: self.shown.parts[kept..].to_vec(), extra_cost }
    }

    /// Takes in the next message, as it is shown at first.
    fn take(&mut self, at: usize, needs: &mut Needs) {
        let (message, text) = (&self.recording.messages[at], &self.recording.texts[at]);
        if let PolicyKind::Recorded = self.kind
            && message.recorded_compaction() == Some(RecordedCompaction::Summary)
        {
            self.shown.restart(std::iter::empty());
        }
        let is_result = message.role() == Role::Tool;
        let piece = match self.kind {
            PolicyKind::Entry { head, tail } if is_result => needs.piece(&head_and_tail(text, head, tail)),
            PolicyKind::Floor if is_result => needs.piece("[cleared]"),
            PolicyKind::Oracle if is_result => needs.piece(&thinned(text, self.oracle.get(&at))),
            _ => self.recording.pieces[at].clone(),
        };
        if is_result {
            self.whole.push_back(at);
        }
        self.shown.push(piece);
    }

    fn is_over(&self, percent: u64) -> bool {
        self.shown.tokens > self.window * percent as f64 / 100.0
    }

    /// Clears all results but the newest.
    fn clear(&mut self, keep: usize, needs: &mut Needs) {
        let stub = needs.piece(CLEARED);
        let old = self.whole.len().saturating_sub(keep);
        self.whole.drain(..old).for_each(|at| self.shown.set(at, &stub));
    }

    /// Shortens old results; over its limit the oldest messages are left out, but for the first.
    fn transformed(&mut self, needs: &mut Needs) -> PolicyView {
        const RESULTS: usize = 6;
        const NEWEST: usize = 20;
        let old = self.whole.len().saturating_sub(RESULTS);
        for at in self.whole.drain(..old) {
            let piece = needs.piece(&first_and_last_lines(&self.recording.texts[at]));
            if at < self.start {
                self.dropped += piece.tokens - self.shown.parts[at].tokens;
            }
            self.shown.set(at, &piece);
        }
        let parts = &self.shown.parts;
        let (limit, last) = (0.75 * self.window, parts.len().saturating_sub(NEWEST).max(1));
        let before = self.start;
        while self.shown.tokens - self.dropped > limit && self.start < last {
            self.dropped += parts[self.start].tokens;
            self.start += 1;
        }
        // A result that became shorter makes room for what had been left out.
        while self.start > 1 && self.shown.tokens - self.dropped + parts[self.start - 1].tokens <= limit {
            self.start -= 1;
            self.dropped -= parts[self.start].tokens;
        }
        let moved = before != self.start;
        let changed = self.shown.sent();
        let kept = if moved { changed.min(1) } else { changed.min(1) + changed.saturating_sub(self.start) };
        let view = self.shown.parts.iter().take(1).chain(self.shown.parts.iter().skip(self.start));
        PolicyView { kept, parts: view.skip(kept).cloned().collect(), extra_cost: 0.0 }
    }

    /// Where the newest part of so many tokens begins, at a step.
    fn recent(&self, upto: usize, keep: u64) -> usize {
        let (mut at, mut sum) = (upto, 0.0);
        while at > self.start && sum + self.recording.pieces[at - 1].tokens < keep as f64 {
            at -= 1;
            sum += self.recording.pieces[at].tokens;
        }
        while at < upto && self.recording.messages[at].role() == Role::Tool {
            at += 1;
        }
        at
    }

    /// One text in the place of all messages before `cut`.
    fn fold(&mut self, head: Arc<Piece>, cut: usize, upto: usize) {
        self.start = cut;
        self.shown.restart(std::iter::once(head).chain(self.recording.pieces[cut..upto].iter().cloned()));
    }

    /// Everything but the newest part becomes user words and paths: a stand-in for a model's
    /// summary, whose call is priced. Gives the price.
    fn summarise(&mut self, upto: usize, needs: &mut Needs, keep: u64) -> f64 {
        const SUMMARY: usize = OwnCompaction::SUMMARY as usize;
        let price = self.prices.cost(self.shown.tokens, 0.0) + OUTPUT as f64 * SUMMARY as f64;
        let cut = self.recent(upto, keep);
        for at in self.start..cut {
            let message = &self.recording.messages[at];
            match message.role() {
                Role::User => self.users.push(self.recording.texts[at].chars().take(400).collect()),
                Role::Assistant => {
                    let paths = needs::paths_of(message).into_iter();
                    self.paths.extend(paths.filter(|path| self.known_paths.insert(path.clone())));
                }
                _ => {}
            }
        }
        let newest = |text: &str, most: usize| {
            text.chars().skip(text.chars().count().saturating_sub(most)).collect::<String>()
        };
        let paths = self.paths[self.paths.len().saturating_sub(200)..].join("\n");
        let users = newest(&self.users.join("\n"), SUMMARY * 2);
        // What was said before them is never looked at again.
        self.users = vec![users.clone()];
        let head: String = format!("{users}\n{paths}").chars().take(SUMMARY * 4).collect();
        self.fold(needs.piece(&head), cut, upto);
        price
    }

    /// Everything but the newest part becomes a list of its names: worthless, which shows what
    /// retention alone is worth. A list that would fill the window loses its oldest names.
    fn list_names(&mut self, upto: usize, needs: &mut Needs, keep: u64) {
        let cut = self.recent(upto, keep);
        if cut == self.start && self.listed {
            // Nothing new: the list would be the same.
            return;
        }
        self.listed = true;
        for at in self.start..cut {
            for name in needs.names(&self.recording.texts[at]) {
                self.names.mention(name, needs.bytes_of(name));
            }
        }
        while self.names.bytes() as f64 / 4.0 > self.window && self.names.forget_oldest(needs) {}
        self.fold(needs.list(self.names.in_order(), self.names.bytes()), cut, upto);
    }
}

/// Names in the order in which they were last mentioned.
#[derive(Default)]
struct NameList {
    /// Each where it was last mentioned; nothing where it was before.
    names: Vec<Option<Name>>,
    places: HashMap<Name, usize>,
    /// Of all names, each with a space behind it.
    bytes: usize,
}

impl NameList {
    fn mention(&mut self, name: Name, bytes: usize) {
        match self.places.insert(name, self.names.len()) {
            Some(before) => self.names[before] = None,
            None => self.bytes += bytes + 1,
        }
        self.names.push(Some(name));
        if self.names.len() > 2 * self.places.len() + 1_000 {
            self.names.retain(Option::is_some);
            self.places = self.names.iter().flatten().copied().zip(0..).collect();
        }
    }

    fn in_order(&self) -> impl Iterator<Item = Name> {
        self.names.iter().flatten().copied()
    }

    /// Bytes of the list, with single spaces between the names.
    fn bytes(&self) -> usize {
        self.bytes.saturating_sub(1)
    }

    /// Forgets the older half. False if there is nothing to forget.
    fn forget_oldest(&mut self, needs: &Needs) -> bool {
        let names: Vec<Name> = self.in_order().skip(self.places.len() / 2).collect();
        let forgets = names.len() < self.places.len();
        *self = Self::default();
        names.into_iter().for_each(|name| self.mention(name, needs.bytes_of(name)));
        forgets
    }
}

/// The first and last characters of a text, if it is much longer.
fn head_and_tail(text: &str, head: usize, tail: usize) -> String {
    let count = text.chars().count();
    if count <= head + tail + 80 {
        return text.to_owned();
    }
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}\n[... {} characters left out ...]\n{end}", count - head - tail)
}

fn first_and_last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let count = text.chars().count();
    if count <= 500 || lines.len() <= 6 {
        return text.to_owned();
    }
    let mark = format!("[... {} lines left out, {count} characters originally ...]", lines.len() - 5);
    [&lines[..3], &[mark.as_str()], &lines[lines.len() - 2..]].concat().join("\n")
}

/// The first and the last line, and those that are wanted.
fn thinned(text: &str, wanted: Option<&HashSet<usize>>) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let last = lines.len() - 1;
    let keep = |at: usize| at == 0 || at == last || wanted.is_some_and(|wanted| wanted.contains(&at));
    lines.iter().enumerate().filter(|(at, _)| keep(*at)).map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul::Message;

    /// The prompt of a summary is in the cache already; what is written costs five tokens each.
    #[test]
    fn a_summary_is_priced_like_everything_else() {
        let mut needs = Needs::new(|text| text.len() as f64);
        let messages: Vec<Arc<Message>> = (0..4).map(|_| Arc::new(Message::user("a".repeat(100)))).collect();
        let texts: Vec<String> = messages.iter().map(|message| needs::text_of(message)).collect();
        let pieces = texts.iter().map(|text| needs.piece(text)).collect();
        let recording = Recording { messages, texts, pieces };
        let policy = policy("", PolicyKind::SummariseAll(OwnCompaction { percent: 80, keep: 100 }));
        for (prices, reading) in [("0.1,1.25", 0.1), ("0.5,1", 0.5)] {
            let mut run = PolicyRun::new(policy, 400, prices.parse().unwrap(), &recording);
            assert_eq!(run.view(3, &mut needs).extra_cost, 0.0);
            assert_eq!(run.view(4, &mut needs).extra_cost, reading * 400.0 + 12_500.0);
        }
    }
}
