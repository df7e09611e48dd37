//! The keep set: what no strategy may take. System messages stay where they are; the rest
//! (goal, pins, memories, todos, git stat, rules) is known to the host or is the first user
//! message. Each item is in the view once: where it came in, in the summary that folded
//! it, or in the tail.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::fact::{Fact, FactKind, Note};
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Message, Role};
use crate::digest;
use crate::edits::archive::Handle;
use crate::edits::edit::{Edit, EditId, EditKind};
use crate::edits::ledger::{Ledger, reaches_beyond};
use crate::edits::voice::Voice;

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
    pub source: Option<Position>,
}

/// Files of project rules, in the order they are shown. A host looks for them in the root of the
/// project whenever it builds a request, and gives them to
/// [`Session::set_rules`](crate::Session::set_rules).
pub const RULE_FILES: [&str; 3] = ["CODE_LAW.md", "AGENTS.md", "CLAUDE.md"];

/// Whether a file of this name holds project rules; letter case does not matter.
///
/// ```
/// use longhaul::view::{RULE_FILES, is_rule_file};
/// assert!(is_rule_file("code_law.md", &RULE_FILES) && !is_rule_file("README.md", &RULE_FILES));
/// ```
pub fn is_rule_file(name: &str, rules: &[&str]) -> bool {
    rules.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// What is said of rules that were taken back.
const NO_LONGER: &str = "(These rules are no longer in force.)";
/// The same of any other item that a note of the host still states.
const WITHDRAWN: &str = "(No longer in force.)";
/// What is said of a goal that a person set after the first request.
const REPLACES: &str = "(This replaces the first request and every goal before it.)";

/// At most this many memories are kept, the newest.
const MEMORIES: usize = 10;

/// The keep set as it was last looked at. Who wants to know what must be kept, where it stands and
/// what a fold must restate asks here.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeepSet {
    items: Vec<KeepItem>,
    /// What the items follow from: notes of the log, the first request and the room in bytes; and, below,
    /// changes of the ledger.
    seen: Option<(usize, Option<Position>, usize)>,
    changes_seen: usize,
}

impl KeepSet {
    pub(crate) fn items(&self) -> &[KeepItem] {
        &self.items
    }

    /// Takes in what the host said since. All items together have at most about `room` bytes.
    pub(crate) fn follow(&mut self, log: &Log, ledger: &Ledger, room: usize) {
        let now = Some((log.notes().len(), log.goal_message(), room));
        if self.seen != now || self.changes_seen != ledger.changes() {
            (self.seen, self.changes_seen) = (now, ledger.changes());
            self.items = items(log, ledger.rules());
            fit(&mut self.items, room);
        }
    }

    /// True if the rules that stand before the history are not those that are in force: one was changed, is
    /// new or was taken back.
    pub(crate) fn rules_differ(&self, log: &Log, ledger: &Ledger) -> bool {
        let mut rules = self.items.iter().filter(|item| matches!(item.key, KeepKey::Rules(_)));
        rules.any(|item| !ledger.rules().is_some_and(|rules| are_in(rules, item, log)))
    }

    /// The rules that are in force, as they are to stand before the history.
    pub(crate) fn rules_in_force(&self) -> String {
        let rules = self.items.iter();
        let rules = rules.filter(|item| matches!(item.key, KeepKey::Rules(_)) && &*item.text != NO_LONGER);
        render(&rules.cloned().collect::<Vec<_>>())
    }

    /// True if the rules that stand before the history must be cut: the window has become smaller since they
    /// were written there. Only then are they worth the history.
    pub(crate) fn must_cut_rules(&self, ledger: &Ledger) -> bool {
        let Some(shown) = ledger.rules() else { return false };
        let files = self.items.iter().filter(|item| matches!(item.key, KeepKey::Rules(_))).count();
        let room = self.seen.map_or(0, |(_, _, room)| room);
        // The marks and names beside what was cut are not counted there.
        let room = room.saturating_add(room / 8 + 200 * files);
        shown.len() > room && self.rules_in_force().len() < shown.len()
    }

    /// What stands in the tail: items that are in no other place of the view.
    pub(crate) fn tail(&self, log: &Log, ledger: &Ledger) -> String {
        let missing = self.items.iter().filter(|item| !is_shown(item, log, ledger));
        missing.map(|item| in_tail(item, ledger)).collect::<Vec<_>>().join("\n")
    }

    /// A note of the host that states what no other place of the view states, and takes back what no longer holds; `None`
    /// if there is nothing to state. For models to which nothing may be shown in another place at the next request.
    pub(crate) fn note(&self, log: &Log, ledger: &Ledger) -> Option<(String, Vec<Kept>)> {
        let missing = self.items.iter().filter(|item| !is_shown(item, log, ledger));
        let gone = self.withdrawn(ledger);
        let due: Vec<&KeepItem> = missing.chain(&gone).collect();
        let lines = due.iter().map(|item| match ledger.newest_note_of(&item.key) {
            Some(_) if &*item.text != NO_LONGER => {
                format!("(This replaces what stands above.)\n{}", render(std::slice::from_ref(*item)))
            }
            _ => in_tail(item, ledger),
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        (!due.is_empty()).then(|| (text, due.into_iter().map(Kept::of).collect()))
    }

    /// Items that a note states and that are no longer kept.
    fn withdrawn(&self, ledger: &Ledger) -> Vec<KeepItem> {
        let handle = Handle::of(WITHDRAWN);
        let mut gone: Vec<KeepItem> = Vec::new();
        for kept in ledger.host_notes().flat_map(|(_, note)| &note.kept) {
            let is_known = |item: &KeepItem| item.key == kept.key;
            let is_stated = ledger.newest_note_of(&kept.key).is_some_and(|newest| newest.text != handle);
            if is_stated && !self.items.iter().any(is_known) && !gone.iter().any(is_known) {
                gone.push(KeepItem { key: kept.key.clone(), text: WITHDRAWN.into(), handle, source: None });
            }
        }
        gone
    }

    /// The items that would go with these runs, and those that stand in the tail: a fold takes them
    /// in, since it changes what follows anyway. Task list and git stat change often: they stay in the tail
    /// until a `full` summary restates them, and are then restated by the fold that takes that summary in.
    pub(crate) fn restated_by(&self, spans: &[Span], ledger: &Ledger, full: bool) -> Vec<KeepItem> {
        let gone = |at: Position| spans.iter().any(|span| span.contains(at));
        let steady = |item: &&KeepItem| match item.key {
            KeepKey::Rules(_) => false,
            KeepKey::Todos | KeepKey::GitStat => full || is_restated(item, ledger),
            KeepKey::Goal | KeepKey::Pin(_) | KeepKey::Memory(_) => true,
        };
        let restated = |item: &&KeepItem| match item.source {
            Some(at) => gone(at),
            None => !is_kept_elsewhere(item, spans, ledger),
        };
        self.items.iter().filter(steady).filter(restated).cloned().collect()
    }
}

impl Kept {
    /// What a fold that restates this item says of it.
    pub(crate) fn of(item: &KeepItem) -> Self {
        Self { key: item.key.clone(), text: item.handle }
    }

    fn is(&self, item: &KeepItem) -> bool {
        self.key == item.key && self.text == item.handle
    }
}

/// The items that an edit restates.
fn kept_by(edit: &Edit) -> &[Kept] {
    match &edit.kind {
        EditKind::Fold { kept, .. } => kept,
        _ => &[],
    }
}

/// True if the item stands in the history or in a summary.
pub(crate) fn is_shown(item: &KeepItem, log: &Log, ledger: &Ledger) -> bool {
    if matches!(item.key, KeepKey::Rules(_)) {
        return is_noted(item, ledger) || ledger.rules().is_some_and(|rules| are_in(rules, item, log));
    }
    if item.source.is_some_and(|at| ledger.covering(at).is_none()) {
        return true;
    }
    is_noted(item, ledger) || is_restated(item, ledger)
}

/// True if the newest note of the host that states the item states it as it is.
pub(crate) fn is_noted(item: &KeepItem, ledger: &Ledger) -> bool {
    ledger.newest_note_of(&item.key).is_some_and(|kept| kept.is(item))
}

/// True if a fold that is shown restates the item.
fn is_restated(item: &KeepItem, ledger: &Ledger) -> bool {
    let mut folds = ledger.outermost().filter_map(|(_, id)| ledger.get(id));
    folds.any(|edit| kept_by(edit).iter().any(|kept| kept.is(item)))
}

/// True if a fold that stays restates the item.
fn is_kept_elsewhere(item: &KeepItem, spans: &[Span], ledger: &Ledger) -> bool {
    let stays = |span: Span| !spans.iter().any(|new| new.start <= span.start && span.end <= new.end);
    let keeps = |id| ledger.get(id).is_some_and(|edit| kept_by(edit).iter().any(|kept| kept.is(item)));
    let goes = |at: Position| {
        let before = at.0.checked_sub(1).map(Position);
        before.is_some_and(|before| spans.iter().any(|span| span.contains(before)))
    };
    let mut notes = ledger.host_notes().filter(|(_, note)| !goes(note.at));
    notes.any(|(_, note)| note.kept.iter().any(|kept| kept.is(item)))
        || ledger.outermost().any(|(span, id)| stays(span) && keeps(id))
}

/// Edits that hide a fold which restates one of these items. What is restated again hangs on them:
/// were one undone, the item would be there twice.
pub(crate) fn hiders_of(kept: &[Kept], spans: &[Span], ledger: &Ledger) -> Vec<EditId> {
    let mut hiders = Vec::new();
    for (edit, active) in ledger.edits() {
        if !active || !kept_by(edit).iter().any(|other| kept.contains(other)) {
            continue;
        }
        let covering = edit.kind.spans().first().and_then(|span| ledger.covering(span.start));
        let Some((outer, id)) = covering.filter(|(_, id)| *id != edit.id) else { continue };
        let inside = spans.iter().any(|span| span.start <= outer.start && outer.end <= span.end);
        if !inside && !hiders.contains(&id) {
            hiders.push(id);
        }
    }
    hiders
}

/// A visible fold that restates what this edit restates too.
pub(crate) fn also_kept_by(edit: &Edit, ledger: &Ledger) -> Option<EditId> {
    let (kept, spans) = (kept_by(edit), edit.kind.spans());
    let mut others = ledger.outermost().filter(|(outer, id)| {
        let inside = spans.iter().any(|span| span.start <= outer.start && outer.end <= span.end);
        // An edit that holds this one shows in its place.
        let holds = || ledger.get(*id).is_some_and(|outer| !reaches_beyond(&edit.kind, &outer.kind));
        !inside && !holds()
    });
    others.find_map(|(_, id)| kept_by(ledger.get(id)?).iter().any(|other| kept.contains(other)).then_some(id))
}

/// Everything to keep, in the order it is shown. System messages are not listed: no edit may
/// touch them.
fn items(log: &Log, shown_rules: Option<&str>) -> Vec<KeepItem> {
    let item = |key, text: &str, source| {
        let text: Arc<str> = text.into();
        KeepItem { key, handle: Handle::of(&text), text, source }
    };
    let mut items = Vec::new();
    let place = |path: &str| shown_rules.and_then(|shown| shown.find(&head("rules", Some(path))));
    let mut rules = log.facts(FactKind::Rules);
    // A file that changes keeps its place among the others.
    rules.sort_by_key(|(path, _)| place(path).unwrap_or(usize::MAX));
    for (path, text) in rules {
        items.push(item(KeepKey::Rules(path.into()), text, None));
    }
    // As long as they stand before the history, it must be said that they are gone.
    let stands = |path: &&str| place(path).is_some();
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
        let pin = item(KeepKey::Pin(name.into()), text, pinned_in(log, name, text));
        // The first request as a whole stands there once, as the goal, until another is set.
        let is_goal = |item: &KeepItem| item.source.is_some() && item.source == pin.source;
        if !items.iter().any(|goal| is_goal(goal) && goal.key == KeepKey::Goal && goal.text == pin.text) {
            items.push(pin);
        }
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
        if let Note::Fact(fact) = &noted.note
            && let Fact { kind, text: Some(text), .. } = &**fact
        {
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
    let Some(stands) = rules_from(shown, path) else { return false };
    let is = |text: &str| stands.strip_prefix(text).is_some_and(|rest| rest.starts_with(END_OF_RULES));
    let cut = || stands.find(END_OF_RULES).is_some_and(|end| stands[..end].contains(&rules.handle.short()));
    is(&rules.text) || log.fact(FactKind::Rules, path).is_some_and(is) || cut()
}

/// What stands behind the text of each file of rules.
const END_OF_RULES: &str = "\n</rules>";

/// The rules that are shown, from the text of one file on.
fn rules_from<'a>(shown: &'a str, path: &str) -> Option<&'a str> {
    let start = format!("{}\n", head("rules", Some(path)));
    shown.find(&start).map(|at| &shown[at + start.len()..])
}

/// An item as it stands in the tail. Rules whose earlier text still stands before the history say that
/// they replace it.
fn in_tail(item: &KeepItem, ledger: &Ledger) -> String {
    let text = render(std::slice::from_ref(item));
    match &item.key {
        KeepKey::Rules(path)
            if &*item.text != NO_LONGER
                && ledger.rules().is_some_and(|shown| rules_from(shown, path).is_some()) =>
        {
            format!("(These rules replace the rules of {path} above.)\n{text}")
        }
        _ => text,
    }
}

/// The name of a pin that stands in a message.
pub(crate) fn pin_name(at: Position) -> String {
    format!("{PINNED}{}", at.0 + 1)
}

const PINNED: &str = "message ";

/// The message that a pin stands in, if it is one of those.
fn pinned_in(log: &Log, name: &str, text: &str) -> Option<Position> {
    let number: u32 = name.strip_prefix(PINNED)?.parse().ok()?;
    let at = Position(number.checked_sub(1)?);
    log.get(at).filter(|message| words_of(message).contains(text)).map(|_| at)
}

/// The first thing a person said is the goal until another is set.
fn first_goal(log: &Log) -> Option<(Position, String)> {
    let start = log.goal_message()?;
    Some((start, words_of(log.get(start)?)))
}

/// What a person says in a message.
pub(crate) fn words_of(message: &Message) -> String {
    message.words().collect::<Vec<_>>().join("\n")
}

/// All texts of a message.
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
pub(crate) fn host_message(text: String, voice: Option<Voice>) -> Arc<Message> {
    Arc::new(Message::voiced(Role::System, text, voice))
}

/// Cuts items until all are within `limit` bytes: head and tail with a handle, in the order
/// git stat, memories, rules, goal, pins.
fn fit(items: &mut [KeepItem], limit: usize) {
    /// No item is cut to less.
    const LEAST: usize = 400;
    /// About what the mark takes that says what was cut, in bytes: without it the next in order would be cut
    /// for the marks of those before.
    const MARK: usize = 100;
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
            let share = share.saturating_sub(MARK).max(LEAST);
            if let Some(short) = digest::head_and_tail(&item.text, share * 2 / 3, share / 3, item.handle) {
                item.text = short.into();
            }
        }
    }
}
