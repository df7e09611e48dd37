//! What stands in the slots of a summary: the values of earlier summaries, and what is new.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::facts::{self, Facts, Found};
use super::failing;
use super::known::Known;
use super::sentences;
use super::slot::{Inherit, Slot};
use super::slot_values::{Item, SlotValues};
use super::statement::{File, Request, Statement, TodoState};
use super::{Form, Material, Place};
use crate::conversation::log::Position;

/// Files, each with its counts added up, in the order in which they came last.
#[derive(Debug, Default)]
struct FileCounts {
    by_path: HashMap<String, FileCount>,
}

#[derive(Debug)]
struct FileCount {
    /// Grows with each mention.
    order: usize,
    at: Option<Position>,
    file: File,
}

impl FileCounts {
    fn add(&mut self, at: Option<Position>, file: File) {
        let count = self.by_path.len();
        let none =
            || FileCount { order: count, at, file: File { path: file.path.clone(), reads: 0, changes: 0 } };
        let known = self.by_path.entry(file.path.clone()).or_insert_with(none);
        known.order = count.max(known.order + 1);
        known.at = at.or(known.at);
        known.file.reads += file.reads;
        known.file.changes += file.changes;
    }

    fn into_items(self) -> impl Iterator<Item = (Option<Position>, File)> {
        let mut files: Vec<FileCount> = self.by_path.into_values().collect();
        files.sort_by(|a, b| (a.order, &a.file.path).cmp(&(b.order, &b.file.path)));
        files.into_iter().map(|count| (count.at, count.file))
    }
}

/// The values of all slots but the extract: those of earlier summaries, and what is new.
pub(super) fn facts_of(material: &[&Material], form: &Form<'_>) -> SlotValues {
    let language = form.language;
    let mut values = SlotValues::default();
    let mut files = FileCounts::default();
    let mut facts = Facts::of(material.iter().copied(), form.aliases);
    // What the summaries before said of where the work stood holds until something newer is said.
    let mut stood: BTreeMap<Slot, Vec<Item>> = BTreeMap::new();
    for material in material {
        let Material::Summary(earlier) = material else { continue };
        let mut earlier = earlier.slots();
        for item in Slot::that(Inherit::Count).flat_map(|slot| earlier.take(slot)) {
            item.statement.into_file().into_iter().for_each(|file| files.add(item.at, file));
        }
        for slot in Slot::that(Inherit::Newest) {
            let said = earlier.take(slot);
            if !said.is_empty() {
                stood.insert(slot, said);
            }
        }
        for slot in Slot::that(Inherit::Append) {
            let mut said = earlier.take(slot);
            // An error that was open then may have been solved since.
            for item in &mut said {
                if let Statement::Problem(problem) = &mut item.statement {
                    let undone =
                        problem.call.split_once(' ').and_then(|(_, command)| failing::undone(command));
                    problem.solved |= facts.went_well.contains(undone.unwrap_or(&problem.call));
                }
            }
            values.add(slot, said);
        }
    }
    facts.files.into_iter().for_each(|(at, file)| files.add(Some(at), file));
    let (changed, read): (Vec<_>, Vec<_>) = files.into_items().partition(|(_, file)| file.changes > 0);
    let item = |(at, file)| Item { at, statement: Statement::File(file) };
    values.add(Slot::Files, changed.into_iter().map(item));
    values.add(Slot::Read, read.into_iter().map(item));
    values.add(Slot::Commands, facts.commands.into_iter().map(found(Statement::Command)));
    values.add(Slot::Errors, facts.errors.into_iter().map(found(Statement::Problem)));
    say_errors_once(&mut values);
    values.add(Slot::Decisions, facts.decisions.into_iter().map(found(Statement::Words)));
    values.add(Slot::Learnings, facts.learnings.into_iter().map(found(Statement::Words)));
    if form.template.is_fixed() {
        values.add(Slot::Preferences, wishes_of_requests(material));
    }
    values.add(Slot::Preferences, facts.preferences.into_iter().map(found(Statement::Words)));
    // What an earlier summary says to be done is done, also if what was asked is taken in later.
    let is_told = |(at, request): &(Position, Request)| {
        let same = |item: &Item| match &item.statement {
            Statement::Request(told) => item.at == Some(*at) && told.asked == request.asked,
            _ => false,
        };
        values.get(Slot::Done).iter().any(same)
    };
    facts.requests.retain(|request| !is_told(request));
    let nothing_asked = facts.requests.is_empty();
    let (done, open): (Vec<_>, Vec<_>) =
        facts.requests.into_iter().partition(|(_, request)| request.answer.is_some());
    values.add(Slot::Done, done.into_iter().map(found(Statement::Request)));
    values.add(Slot::Unanswered, open.iter().cloned().map(found(Statement::Request)));
    values.add(Slot::Open, open.into_iter().map(found(Statement::Request)));
    let mut stood = |slot| stood.remove(&slot).unwrap_or_default();
    if nothing_asked {
        values.add(Slot::Open, stood(Slot::Open));
    }
    let state = facts.last_words.map(found(Statement::Words));
    values.add(Slot::State, state.map_or_else(|| stood(Slot::State), |state| vec![state]));
    // A list of which all is done says nothing of what is left.
    let todos = facts.todos.map(|(at, todos)| match todos.iter().all(|todo| todo.state == TodoState::Done) {
        true => Vec::new(),
        false => vec![found(Statement::Todos)((at, todos))],
    });
    values.add(Slot::Todos, todos.unwrap_or_else(|| stood(Slot::Todos)));
    // The goal is restated beside the summary: once is enough.
    let goal = form.goal.map(|place| match place {
        Place::InFront => Item::words(None, language.words().goal_above),
        Place::Behind => Item::words(None, language.words().goal_below),
    });
    values.add(Slot::Goal, goal);
    for slot in [Slot::Stack, Slot::Environment] {
        values.add(slot, stood(slot));
    }
    add_known(&mut values, &form.known);
    let [from, to] = form.known.range(language);
    // A moment is no range.
    values.range = (from != to || form.template.is_fixed()).then_some([from, to]);
    values
}

/// Of open errors that say the same, whatever call they came from, the newest is enough.
fn say_errors_once(values: &mut SlotValues) {
    let mut errors = values.take(Slot::Errors);
    let mut later: HashSet<String> = HashSet::new();
    let mut is_new = |item: &Item| match &item.statement {
        // An exit status alone says nothing of its cause.
        Statement::Problem(problem) if !problem.solved && !problem.line.starts_with("exit ") => {
            later.insert(problem.line.clone())
        }
        _ => true,
    };
    let mut is_kept: Vec<bool> = errors.iter().rev().map(&mut is_new).collect();
    errors.retain(|_| is_kept.pop().unwrap_or(true));
    values.add(Slot::Errors, errors);
}

/// What a person insists on in requests that stand elsewhere too: a fixed form says it in its place.
fn wishes_of_requests(material: &[&Material]) -> Vec<Item> {
    let asked = material.iter().filter_map(|material| match material {
        Material::Asked(asked) => Some(asked),
        Material::Summary(_) | Material::Message(..) => None,
    });
    let wishes = asked.flat_map(|asked| {
        let wishes = asked.message.words().flat_map(sentences::wishes);
        wishes.map(|wish| Item::words(Some(asked.at), wish))
    });
    wishes.collect()
}

/// Adds what is known beside the material. It stands in the place of what a model or an earlier summary
/// says of it.
pub(super) fn add_known(values: &mut SlotValues, known: &Known<'_>) {
    let said = [
        (Slot::OriginalGoal, known.goal.as_deref()),
        (Slot::Stack, known.stack),
        (Slot::Environment, known.environment),
    ];
    for (slot, text) in said.into_iter().filter_map(|(slot, text)| Some((slot, text?))) {
        values.take(slot);
        values.add(slot, [Item::words(None, facts::one_line(text))]);
    }
}

/// Makes items of what was found.
pub(super) fn found<T>(statement: impl Fn(T) -> Statement) -> impl Fn(Found<T>) -> Item {
    move |(at, value)| Item { at: Some(at), statement: statement(value) }
}
