//! The keep set: what no strategy may take. System messages stay where they are; the rest
//! (goal, pins, memories, todos, git stat, rules) is known to the host or is the first user
//! message. Each item is in the view once: where it came in, in the summary that folded
//! it, or in the tail.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::fact::{Fact, FactKind, Note};
use crate::conversation::log::{At, Log};
use crate::conversation::message::{Block, Message, Role};
use crate::digest;
use crate::edits::archive::{Handle, Original};

/// Which item of the keep set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepKey {
    /// What `git diff --stat` says.
    GitStat,
    /// The task list.
    Todos,
    /// Something to remember.
    Memory(Box<str>),
    /// A file of project rules.
    Rules(Box<str>),
    /// What the work is for.
    Goal,
    /// Text that must stay.
    Pin(Box<str>),
}

/// An item that a fold restates: which, and of what text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Which item.
    pub key: KeepKey,
    /// The handle of its text.
    pub text: Handle,
}

/// An item of the keep set, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepItem {
    /// Which item.
    pub key: KeepKey,
    /// Its text.
    pub text: Arc<str>,
    /// The handle of its text.
    pub handle: Handle,
    /// The message it is, if it is one.
    pub source: Option<At>,
}

/// Files of project rules, in the order they are shown. A host looks for them in the root of the
/// project whenever it builds a request, and gives them to
/// [`Session::set_rules`](crate::Session::set_rules).
pub const RULE_FILES: [&str; 3] = ["CODE_LAW.md", "AGENTS.md", "CLAUDE.md"];

/// Whether a file of this name holds project rules; letter case does not matter.
///
/// ```
/// use longhaul::{RULE_FILES, is_rule_file};
/// assert!(is_rule_file("code_law.md", &RULE_FILES) && !is_rule_file("README.md", &RULE_FILES));
/// ```
pub fn is_rule_file(name: &str, rules: &[&str]) -> bool {
    rules.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// What is said of rules that were taken back.
pub(crate) const NO_LONGER: &str = "(These rules are no longer in force.)";
/// What is said of a goal that a person set after the first request.
const REPLACES: &str = "(This replaces the first request and every goal before it.)";

/// At most this many memories are kept, the newest.
const MEMORIES: usize = 10;

/// Everything to keep, in the order it is shown. System messages are not listed: no edit may
/// touch them.
pub(crate) fn items(log: &Log, shown_rules: Option<&str>) -> Vec<KeepItem> {
    let item = |key, text: &str, source| {
        let text: Arc<str> = text.into();
        KeepItem { key, handle: Handle::of(&text), text, source }
    };
    let mut items = Vec::new();
    for (path, text) in log.facts(FactKind::Rules) {
        items.push(item(KeepKey::Rules(path.into()), text, None));
    }
    // They stand before the history for good: that they are gone must be said.
    let stands = |path: &&str| shown_rules.is_some_and(|rules| rules.contains(&head("rules", Some(path))));
    for path in log.taken_back(FactKind::Rules).into_iter().filter(stands) {
        items.push(item(KeepKey::Rules(path.into()), NO_LONGER, None));
    }
    match log.fact(FactKind::Goal, "") {
        // The first request stands in the history as it came, or it would be started over.
        Some(goal)
            if log.goal_message() < log.fact_at(FactKind::Goal, "") && log.goal_message().is_some() =>
        {
            items.push(item(KeepKey::Goal, &replacing(goal), None));
        }
        Some(goal) => items.push(item(KeepKey::Goal, goal, None)),
        None => items.extend(first_goal(log).map(|(at, text)| item(KeepKey::Goal, &text, Some(at)))),
    }
    for (name, text) in log.facts(FactKind::Pin) {
        items.push(item(KeepKey::Pin(name.into()), text, pinned_in(log, name, text)));
    }
    let memories = log.facts(FactKind::Memory);
    for (name, text) in &memories[memories.len().saturating_sub(MEMORIES)..] {
        items.push(item(KeepKey::Memory((*name).into()), text, None));
    }
    for (kind, key) in [(FactKind::Todos, KeepKey::Todos), (FactKind::GitStat, KeepKey::GitStat)] {
        items.extend(log.fact(kind, "").map(|text| item(key, text, None)));
    }
    items
}

/// A goal that was set after the first request.
fn replacing(goal: &str) -> String {
    format!("{goal}\n{REPLACES}")
}

/// All texts that an item may ever have had, to be recalled where it was cut.
pub(crate) fn all_texts(log: &Log) -> Vec<String> {
    let mut texts: Vec<String> = first_goal(log).into_iter().map(|(_, text)| text).collect();
    for noted in log.notes() {
        if let Note::Fact(Fact { kind, text: Some(text), .. }) = &noted.note {
            texts.push(text.to_string());
            texts.extend((*kind == FactKind::Goal).then(|| replacing(text)));
        }
    }
    texts
}

/// True if rules stand among those that are shown before the history: as they are, whole, or cut
/// at another place, where their handle is.
pub(crate) fn are_in(shown: &str, rules: &KeepItem, log: &Log) -> bool {
    let KeepKey::Rules(path) = &rules.key else { return false };
    let whole = || log.fact(FactKind::Rules, path).is_some_and(|text| shown.contains(text));
    shown.contains(&render(std::slice::from_ref(rules)))
        || shown.contains(&head("rules", Some(path))) && (shown.contains(&rules.handle.short()) || whole())
}

/// The name of a pin that stands in a message.
pub(crate) fn pin_name(at: At) -> String {
    format!("{PINNED}{}", at.0 + 1)
}

const PINNED: &str = "message ";

/// The message that a pin stands in, if it is one of those.
fn pinned_in(log: &Log, name: &str, text: &str) -> Option<At> {
    let number: u32 = name.strip_prefix(PINNED)?.parse().ok()?;
    let at = At(number.checked_sub(1)?);
    log.get(at).filter(|message| text_of(message).contains(text)).map(|_| at)
}

/// The first thing a person said is the goal until another is set.
fn first_goal(log: &Log) -> Option<(At, String)> {
    let start = log.goal_message()?;
    Some((start, text_of(log.get(start)?)))
}

/// The words of a message.
pub(crate) fn text_of(message: &Message) -> String {
    message.texts().collect::<Vec<_>>().join("\n")
}

/// Items in the form that the model reads.
pub(crate) fn render(items: &[KeepItem]) -> String {
    let lines = items.iter().map(|item| {
        let (tag, name) = match &item.key {
            KeepKey::Rules(path) => ("rules", Some(path)),
            KeepKey::Goal => ("goal", None),
            KeepKey::Pin(name) => ("pin", Some(name)),
            KeepKey::Memory(name) => ("memory", Some(name)),
            KeepKey::Todos => ("todos", None),
            KeepKey::GitStat => ("git-stat", None),
        };
        format!("{}\n{}\n</{tag}>", head(tag, name.map(|name| &**name)), item.text)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn head(tag: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!(" name={name:?}")).unwrap_or_default();
    format!("<{tag}{name}>")
}

/// A message of the host that stands in the view and in no log.
pub(crate) fn host_message(text: String) -> Arc<Message> {
    Arc::new(Message::new(Role::System, vec![Block::text(text)]))
}

/// Cuts items until all are within `limit` bytes: head and tail with a handle, in the order
/// git stat, memories, rules, goal, pins. Gives what was cut, for the archive.
pub(crate) fn fit(items: &mut [KeepItem], limit: usize) -> Vec<(Handle, Original)> {
    /// No item is cut to less.
    const LEAST: usize = 400;
    let mut originals = Vec::new();
    let group = |key: &KeepKey| match key {
        KeepKey::GitStat => 0,
        KeepKey::Todos | KeepKey::Memory(_) => 1,
        KeepKey::Rules(_) => 2,
        KeepKey::Goal => 3,
        KeepKey::Pin(_) => 4,
    };
    for cut in 0..=4 {
        let all: usize = items.iter().map(|item| item.text.len()).sum();
        if all <= limit {
            break;
        }
        let here: usize =
            items.iter().filter(|item| group(&item.key) == cut).map(|item| item.text.len()).sum();
        let room = limit.saturating_sub(all - here);
        for item in items.iter_mut().filter(|item| group(&item.key) == cut) {
            // Its share of the room, by its size.
            let share = (room as u128 * item.text.len() as u128 / here.max(1) as u128) as usize;
            let share = share.max(LEAST);
            if let Some(short) = digest::head_and_tail(&item.text, share * 2 / 3, share / 3, item.handle) {
                originals.push((item.handle, Original::Text(item.text.clone())));
                item.text = short.into();
            }
        }
    }
    originals
}
