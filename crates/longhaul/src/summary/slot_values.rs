//! The values of slots: what a summary is filled with, and what of it has room.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::Language;
use super::slot::{Slot, Yield};
use super::statement::Statement;
use super::template::Template;
use crate::conversation::log::Position;

/// A value of a slot, and the message that it came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) at: Option<Position>,
    pub(crate) statement: Statement,
}

impl Item {
    pub(crate) fn words(at: Option<Position>, words: impl Into<String>) -> Self {
        Self { at, statement: Statement::Words(words.into()) }
    }
}

/// The values of each slot, in their order.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct SlotValues {
    pub(super) lists: BTreeMap<Slot, Vec<Item>>,
    /// From when to when.
    pub(crate) range: Option<[String; 2]>,
    /// Slots whose values had no room.
    pub(super) left_out: BTreeSet<Slot>,
}

impl SlotValues {
    pub(crate) fn get(&self, slot: Slot) -> &[Item] {
        self.lists.get(&slot).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn push(&mut self, slot: Slot, items: impl IntoIterator<Item = Item>) {
        self.lists.entry(slot).or_default().extend(items);
    }

    /// Adds values. What is said again stands where it was said last.
    pub(crate) fn add(&mut self, slot: Slot, items: impl IntoIterator<Item = Item>) {
        let list = self.lists.entry(slot).or_default();
        list.extend(items);
        let mut said = HashSet::with_capacity(list.len());
        let mut last: Vec<bool> = list.iter().rev().map(|item| said.insert(&item.statement)).collect();
        list.retain(|_| last.pop().unwrap_or(true));
    }

    /// Leaves out what the template has no place for.
    pub(crate) fn keep_slots_of(&mut self, template: &Template) {
        self.lists.retain(|slot, _| template.has(*slot));
    }

    /// Takes away what there is no room for, as [`fit`](Self::fit) does, and remembers which slots are
    /// empty for it. What the work is for stays.
    pub(crate) fn fit_form(&mut self, room: usize, language: Language) -> usize {
        let goal = self.take(Slot::OriginalGoal);
        let used: usize = goal.iter().map(|item| item.statement.say(language).len()).sum();
        let before: Vec<Slot> = self.slots_with_values().collect();
        let gone = self.fit(room.saturating_sub(used), language);
        let after: Vec<Slot> = self.slots_with_values().collect();
        self.left_out = before.into_iter().filter(|slot| !after.contains(slot)).collect();
        self.push(Slot::OriginalGoal, goal);
        gone
    }

    /// Takes out what must be named: files that were changed, which may take all the room, in bytes; then tasks, other
    /// files and errors that nobody has solved, the newest of each, up to half of it.
    pub(crate) fn take_trail(&mut self, room: usize, language: Language) -> Vec<(Slot, Vec<Item>)> {
        type Wanted = fn(&Statement) -> bool;
        let is_change: Wanted = |said| matches!(said, Statement::File(file) if file.changes > 0);
        let is_open: Wanted = |said| !matches!(said, Statement::Problem(problem) if problem.solved);
        let any: Wanted = |_| true;
        let half = room / 2;
        let parts = [
            (Slot::Files, is_change, room),
            (Slot::Todos, any, half),
            (Slot::Files, any, half),
            (Slot::Errors, is_open, half),
        ];
        let mut used = 0;
        let mut take = |(slot, wanted, most): (Slot, Wanted, usize)| {
            let (named, others): (Vec<Item>, Vec<Item>) =
                self.take(slot).into_iter().partition(|item| wanted(&item.statement));
            let fits = |item: &&Item| {
                let size = item.statement.say(language).len() + 4;
                let fits = used + size <= most;
                used += if fits { size } else { 0 };
                fits
            };
            let count = named.iter().rev().take_while(fits).count();
            let mut rest = named;
            let newest = rest.split_off(rest.len() - count);
            rest.extend(others);
            self.push(slot, rest);
            (slot, newest)
        };
        parts.map(&mut take).into()
    }

    /// Puts back what [`take_trail`](Self::take_trail) has taken out.
    pub(crate) fn put_trail(&mut self, trail: Vec<(Slot, Vec<Item>)>) {
        trail.into_iter().for_each(|(slot, items)| self.push(slot, items));
        // The file that was touched last stands last.
        self.lists.entry(Slot::Files).or_default().sort_by_key(|item| item.at);
    }

    fn slots_with_values(&self) -> impl Iterator<Item = Slot> {
        self.lists.iter().filter(|(_, items)| !items.is_empty()).map(|(slot, _)| *slot)
    }

    /// Leaves out values of a slot.
    pub(crate) fn retain(&mut self, slot: Slot, keep: impl Fn(&Item) -> bool) {
        self.lists.entry(slot).or_default().retain(keep);
    }

    pub(crate) fn take(&mut self, slot: Slot) -> Vec<Item> {
        self.lists.remove(&slot).unwrap_or_default()
    }

    /// A model wrote them: what looks like a count of code is words like all others.
    pub(crate) fn quote(&mut self, language: Language) {
        for item in self.lists.values_mut().flatten() {
            if let Statement::File(_) | Statement::Command(_) = item.statement {
                item.statement = Statement::Words(item.statement.say(language).into_owned());
            }
        }
    }

    /// All values, slot by slot.
    pub(crate) fn into_items(self) -> impl Iterator<Item = Item> {
        self.lists.into_values().flatten()
    }

    /// Takes away the oldest values of the longest lists until all have at most so many bytes. Gives how
    /// many went.
    pub(crate) fn fit(&mut self, limit: usize, language: Language) -> usize {
        /// A line's own share: its bullet and its end.
        const EACH: usize = 24;
        struct List {
            slot: Slot,
            /// Sizes of the values, oldest first.
            sizes: Vec<usize>,
            /// What those that are left are together.
            total: usize,
            gone: usize,
        }
        let mut lists: Vec<List> = Vec::with_capacity(self.lists.len());
        for (slot, items) in &self.lists {
            let size = |item: &Item| item.statement.say(language).len() + EACH;
            let sizes: Vec<usize> = items.iter().map(size).collect();
            lists.push(List { slot: *slot, total: sizes.iter().sum(), sizes, gone: 0 });
        }
        let mut all: usize = lists.iter().map(|list| list.total).sum();
        while all > limit {
            let weight = |list: &&mut List| match list.slot.yields() {
                Yield::Late => list.total / 4,
                Yield::BySize => list.total,
            };
            let left = lists.iter_mut().filter(|list| list.gone < list.sizes.len());
            let Some(longest) = left.max_by_key(weight) else { break };
            let size = longest.sizes[longest.gone];
            longest.total -= size;
            all -= size;
            longest.gone += 1;
        }
        for (items, list) in self.lists.values_mut().zip(&lists) {
            items.drain(..list.gone);
        }
        lists.iter().map(|list| list.gone).sum()
    }
}
