//! Reference policies for `bench`: what others do, in a few lines each, so that profiles are
//! compared with something. Each gives the view of a call as texts; parameters as in
//! `docs/measuring.md`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul::conversation::RecordedCompaction;
use longhaul::{Message, Role};

use crate::lab::needs::{self, Needs, Piece};

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
    SummariseAll { percent: u64, keep: u64 },
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
    policy("summarise all at 80%", PolicyKind::SummariseAll { percent: 80, keep: 20_000 }),
    policy("(bare names at 50%)", PolicyKind::BareNames { percent: 50, keep: 20_000 }),
    policy("(floor: no results)", PolicyKind::Floor),
    policy("(oracle)", PolicyKind::Oracle),
];

/// A policy on its way through a recording.
pub struct PolicyRun<'a> {
    kind: PolicyKind,
    window: u64,
    recording: &'a Recording,
    /// What is shown in the place of each message, once that was decided.
    shown: Vec<Option<Arc<Piece>>>,
    cleared: HashSet<usize>,
    start: usize,
    head: Option<Arc<Piece>>,
    seen: usize,
    names: Vec<String>,
    oracle: HashMap<usize, HashSet<usize>>,
}

/// What a policy sends, and what making it cost, in tokens × price.
pub struct PolicyView {
    pub parts: Vec<Arc<Piece>>,
    pub extra_cost: f64,
}

fn size(parts: &[Arc<Piece>]) -> f64 {
    parts.iter().map(|piece| piece.tokens).sum()
}

const CLEARED: &str = "[old tool result cleared]";

impl<'a> PolicyRun<'a> {
    pub fn new(policy: Policy, window: u64, recording: &'a Recording) -> Self {
        let oracle = match policy.kind {
            PolicyKind::Oracle => needs::needed_lines(&recording.messages, &recording.texts),
            _ => HashMap::new(),
        };
        Self {
            kind: policy.kind,
            window,
            recording,
            shown: vec![None; recording.messages.len()],
            cleared: HashSet::new(),
            start: 0,
            head: None,
            seen: 0,
            names: Vec::new(),
            oracle,
        }
    }

    /// What is sent when the messages before `upto` are there.
    pub fn view(&mut self, upto: usize, needs: &mut Needs) -> PolicyView {
        let free = |parts| PolicyView { parts, extra_cost: 0.0 };
        match self.kind {
            PolicyKind::Full => free(self.recording.pieces[..upto].to_vec()),
            PolicyKind::Recorded => {
                while self.seen < upto {
                    if self.recording.messages[self.seen].recorded_compaction()
                        == Some(RecordedCompaction::Summary)
                    {
                        self.start = self.seen;
                    }
                    self.seen += 1;
                }
                free(self.recording.pieces[self.start..upto].to_vec())
            }
            PolicyKind::Mask { keep } => {
                let tools = self.tools(upto);
                let old: HashSet<usize> = tools[..tools.len().saturating_sub(keep)].iter().copied().collect();
                free(self.with_cleared(upto, &old, needs))
            }
            PolicyKind::Clear { percent, keep } => {
                let mut parts = self.with_cleared(upto, &self.cleared.clone(), needs);
                if size(&parts) > self.window as f64 * percent as f64 / 100.0 {
                    let tools = self.tools(upto);
                    self.cleared.extend(&tools[..tools.len().saturating_sub(keep)]);
                    parts = self.with_cleared(upto, &self.cleared.clone(), needs);
                }
                free(parts)
            }
            PolicyKind::Entry { head, tail } => {
                free(self.entered(upto, needs, |text, _| head_and_tail(text, head, tail)))
            }
            PolicyKind::Floor => free(self.entered(upto, needs, |_, _| "[cleared]".to_owned())),
            PolicyKind::Oracle => {
                let wanted = std::mem::take(&mut self.oracle);
                let parts = self.entered(upto, needs, |text, at| thinned(text, wanted.get(&at)));
                self.oracle = wanted;
                free(parts)
            }
            PolicyKind::Transform => free(self.transformed(upto, needs)),
            PolicyKind::SummariseAll { percent, keep } => self.summarised(upto, needs, percent, keep),
            PolicyKind::BareNames { percent, keep } => self.named(upto, needs, percent, keep),
        }
    }

    /// Tool messages before `upto`.
    fn tools(&self, upto: usize) -> Vec<usize> {
        (0..upto).filter(|at| self.recording.messages[*at].role() == Role::Tool).collect()
    }

    fn with_cleared(&self, upto: usize, cleared: &HashSet<usize>, needs: &mut Needs) -> Vec<Arc<Piece>> {
        let stub = needs.piece(CLEARED);
        let pieces = self.recording.pieces[..upto].iter().enumerate();
        pieces.map(|(at, piece)| if cleared.contains(&at) { stub.clone() } else { piece.clone() }).collect()
    }

    /// Tool results changed once, when they come in.
    fn entered(
        &mut self,
        upto: usize,
        needs: &mut Needs,
        change: impl Fn(&str, usize) -> String,
    ) -> Vec<Arc<Piece>> {
        for at in self.seen..upto {
            let piece = match self.recording.messages[at].role() {
                Role::Tool => needs.piece(&change(&self.recording.texts[at], at)),
                _ => self.recording.pieces[at].clone(),
            };
            self.shown[at] = Some(piece);
        }
        self.seen = self.seen.max(upto);
        self.shown[..upto].iter().flatten().cloned().collect()
    }

    fn transformed(&mut self, upto: usize, needs: &mut Needs) -> Vec<Arc<Piece>> {
        let tools = self.tools(upto);
        let old: HashSet<usize> = tools[..tools.len().saturating_sub(6)].iter().copied().collect();
        let mut parts = Vec::with_capacity(upto);
        for at in 0..upto {
            if !old.contains(&at) {
                parts.push(self.recording.pieces[at].clone());
                continue;
            }
            if self.shown[at].is_none() {
                self.shown[at] = Some(needs.piece(&first_and_last_lines(&self.recording.texts[at])));
            }
            parts.extend(self.shown[at].clone());
        }
        if parts.len() > 21 {
            let (mut all, mut dropped) = (size(&parts), 1);
            while all > 0.75 * self.window as f64 && dropped < parts.len() - 20 {
                all -= parts[dropped].tokens;
                dropped += 1;
            }
            parts.drain(1..dropped);
        }
        parts
    }

    fn since_start(&self, upto: usize) -> Vec<Arc<Piece>> {
        self.head.iter().chain(&self.recording.pieces[self.start..upto]).cloned().collect()
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

    /// Everything but the newest part becomes user words and paths: a stand-in for a model's
    /// summary, whose call is priced.
    fn summarised(&mut self, upto: usize, needs: &mut Needs, percent: u64, keep: u64) -> PolicyView {
        const SUMMARY: usize = 2500;
        let parts = self.since_start(upto);
        let all = size(&parts);
        if all <= self.window as f64 * percent as f64 / 100.0 {
            return PolicyView { parts, extra_cost: 0.0 };
        }
        let cut = self.recent(upto, keep);
        let users = (0..cut).filter(|at| self.recording.messages[*at].role() == Role::User);
        let users: Vec<String> =
            users.map(|at| self.recording.texts[at].chars().take(400).collect()).collect();
        let users = users.join("\n");
        let mut paths: Vec<String> = Vec::new();
        let mut known = HashSet::new();
        for at in (0..cut).filter(|at| self.recording.messages[*at].role() == Role::Assistant) {
            for path in needs::paths_of(&self.recording.messages[at]) {
                if known.insert(path.clone()) {
                    paths.push(path);
                }
            }
        }
        let newest = |text: &str, most: usize| {
            text.chars().skip(text.chars().count().saturating_sub(most)).collect::<String>()
        };
        let paths = paths[paths.len().saturating_sub(200)..].join("\n");
        let head: String =
            format!("{}\n{paths}", newest(&users, SUMMARY * 2)).chars().take(SUMMARY * 4).collect();
        self.head = Some(needs.piece(&head));
        self.start = cut;
        PolicyView { parts: self.since_start(upto), extra_cost: 0.1 * all + 5.0 * SUMMARY as f64 }
    }

    /// Everything but the newest part becomes a list of its names: worthless, which shows what
    /// retention alone is worth.
    fn named(&mut self, upto: usize, needs: &mut Needs, percent: u64, keep: u64) -> PolicyView {
        let parts = self.since_start(upto);
        if size(&parts) > self.window as f64 * percent as f64 / 100.0 {
            let cut = self.recent(upto, keep);
            let mut known: HashMap<String, usize> = HashMap::new();
            let mut all = std::mem::take(&mut self.names);
            for at in self.start..cut {
                all.extend(needs::words(&self.recording.texts[at]).map(str::to_owned));
            }
            // Each where it stood last.
            all.iter().enumerate().for_each(|(at, name)| _ = known.insert(name.clone(), at));
            let mut at = 0..;
            all.retain(|name| known.get(name) == at.next().as_ref());
            self.head = Some(needs.piece(&all.join(" ")));
            self.names = all;
            self.start = cut;
        }
        PolicyView { parts: self.since_start(upto), extra_cost: 0.0 }
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
