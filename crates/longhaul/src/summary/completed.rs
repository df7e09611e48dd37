//! What a model wrote, completed by what code knows.

use super::extract;
use super::facts::Facts;
use super::filled::{add_known, found};
use super::known::Known;
use super::slot::{Inherit, Slot};
use super::slot_values::{Item, SlotValues};
use super::statement::{File, Statement};
use super::template::{HAND_OFF, LINES, Template};
use super::{Language, Material, Written};
use crate::conversation::log::Position;
use crate::digest::Aliases;

/// The answers of a model, in the form, with what code knows: goal, technical context and range of a
/// fixed form; the files that were changed and the task list, where the model does not name them. Where the
/// form has a limit in words, as many files as it leaves room for, the newest.
pub(crate) fn completed(
    template: &'static Template,
    language: Language,
    parts: &[String],
    material: &[Material],
    known: &Known<'_>,
    aliases: &Aliases,
    most_words: Option<usize>,
) -> Written {
    /// No more files are added.
    const FILES: usize = 20;
    let template = if template.name == LINES.name { &HAND_OFF } else { template };
    let mut values = SlotValues::default();
    let mut lines = Vec::new();
    for part in parts {
        let (written, spoken) = Template::of(part, language).unwrap_or((template, language));
        let mut more = written.read(spoken, part);
        // Where the work stands, the last part that speaks of it says.
        for slot in Slot::that(Inherit::Newest) {
            if !more.slots.get(slot).is_empty() {
                values.take(slot);
            }
        }
        for slot in template.slots() {
            values.add(slot, more.slots.take(slot));
        }
        values.add(Slot::Notes, more.slots.take(Slot::Notes));
        lines.extend(more.lines);
    }
    values.quote(language);
    let facts = Facts::of(material.iter(), aliases);
    // Files of earlier summaries too: what is merged is all there will be of them.
    let mut files: Vec<(Option<Position>, File)> = Vec::new();
    for material in material {
        let Material::Summary(earlier) = material else { continue };
        let said = earlier.slots().take(Slot::Files).into_iter();
        files.extend(said.filter_map(|item| Some((item.at, item.statement.into_file()?))));
    }
    if template.is_fixed() {
        values.range = Some(known.range(language));
        add_known(&mut values, known);
        let open = facts.requests.into_iter().filter(|(_, request)| request.answer.is_none());
        values.add(Slot::Unanswered, open.map(found(Statement::Request)));
        // It lists what was changed: what was only read is none of it.
        let read = facts.files.iter().filter(|(_, file)| file.changes == 0);
        values.retain(Slot::Files, |item| !read.clone().any(|(_, file)| item.statement.is_of(file)));
    }
    files.retain(|(_, file)| facts.files.iter().all(|(_, newer)| newer.path != file.path));
    files.extend(facts.files.into_iter().map(|(at, file)| (Some(at), file)));
    let named = |file: &File| parts.iter().any(|part| names_file(part, &file.path));
    files.retain(|(_, file)| file.changes > 0 && !named(file));
    files.drain(..files.len().saturating_sub(FILES));
    if values.get(Slot::Todos).is_empty() {
        values.add(Slot::Todos, facts.todos.map(found(Statement::Todos)));
    }
    let lines = extract::of_model(lines);
    loop {
        let mut values = values.clone();
        let item = |(at, file): &(_, File)| Item { at: *at, statement: Statement::File(file.clone()) };
        values.add(Slot::Files, files.iter().map(item));
        let written = template.render(language, &values, &lines);
        // What code adds has the words that the model left over.
        if files.is_empty() || most_words.is_none_or(|most| written.words() <= most) {
            return written;
        }
        files.remove(0);
    }
}

/// Whether a text names a file: its path, or its name where no other path ends in it.
fn names_file(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let alone = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
        !before.is_some_and(|c| joins(c) || c == '.') && !after.is_some_and(joins)
    };
    text.contains(path) || text.match_indices(name).any(|(at, _)| alone(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_paths() {
        assert!(names_file("I changed src/core/mod.rs.", "src/core/mod.rs"));
        assert!(names_file("I changed `mod.rs` too", "src/core/mod.rs"));
        assert!(!names_file("I changed util/mod.rs and data.rs", "src/core/mod.rs"));
        assert!(!names_file("data.rs", "src/a.rs"));
    }
}
