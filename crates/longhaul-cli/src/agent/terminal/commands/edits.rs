//! `/undo`, `/redo`, `/recall`: what was done to the context is taken back, made again, looked at.

use longhaul::{EditId, RecallPart, Session};
use longhaul_inspector::steering::Difference;

use crate::agent::terminal::conversation::Conversation;
use crate::commands::sessions::{recall as stored, undo as stored_edits};
use crate::terminal::printable;

/// Lines of a text that are shown.
const SHOWN: usize = 200;

pub fn undo(conversation: &mut Conversation<'_>, number: &str) -> Result<(), String> {
    let session = conversation.agent.session_mut();
    let edit = match number {
        "" => stored_edits::newest(session).ok_or("there is no edit that can be taken back")?,
        number => edit_of(number)?,
    };
    let before = session.clone();
    let gone = session.undo(edit).map_err(|error| error.to_string())?;
    let told = thinking_told(&before, session);
    let names: Vec<String> = gone
        .iter()
        .filter_map(|id| session.ledger().get(*id).map(|edit| stored_edits::described(edit)))
        .collect();
    conversation.front.screen.line(format_args!("undone: {}", names.join("; ")));
    told.iter().for_each(|sentence| conversation.front.screen.line(format_args!("  {sentence}")));
    conversation.tell_context();
    Ok(())
}

pub fn redo(conversation: &mut Conversation<'_>, number: &str) -> Result<(), String> {
    let session = conversation.agent.session_mut();
    let edit = match number {
        "" => stored_edits::undone_last(session).ok_or("there is no edit that can be made again")?,
        number => edit_of(number)?,
    };
    let before = session.clone();
    session.redo(edit).map_err(|error| error.to_string())?;
    let told = thinking_told(&before, session);
    let name = session.ledger().get(edit).map(|edit| stored_edits::described(edit)).unwrap_or_default();
    conversation.front.screen.line(format_args!("made again: {name}"));
    told.iter().for_each(|sentence| conversation.front.screen.line(format_args!("  {sentence}")));
    conversation.tell_context();
    Ok(())
}

/// What the change does to thinking, where the model binds it.
fn thinking_told(before: &Session, after: &Session) -> Vec<String> {
    Difference::between(before, after).map(|difference| difference.thinking_told()).unwrap_or_default()
}

fn edit_of(number: &str) -> Result<EditId, String> {
    number.parse().map(EditId).map_err(|_| format!("`{number}` is no number of an edit"))
}

pub fn recall(conversation: &mut Conversation<'_>, asked: &str) -> Result<(), String> {
    let mut words = asked.split_whitespace();
    let Some(handle) = words.next() else {
        return list(conversation);
    };
    let part = match words.next() {
        None => RecallPart::Whole,
        Some(lines) => stored::lines(lines).map(|(first, last)| RecallPart::Lines(first, last))?,
    };
    let text = conversation.agent.session().recall(handle, &part).map_err(|error| error.to_string())?;
    let screen = &conversation.front.screen;
    let text = printable(&text);
    screen.lines(text.lines().take(SHOWN).map(str::to_owned));
    let more = text.lines().count().saturating_sub(SHOWN);
    if more > 0 {
        screen.faint(format_args!("… {more} lines more: /recall {handle} {}-", SHOWN + 1));
    }
    Ok(())
}

/// What can be recalled.
fn list(conversation: &Conversation<'_>) -> Result<(), String> {
    let screen = &conversation.front.screen;
    let mut any = false;
    for (edit, active) in conversation.agent.session().ledger().edits() {
        for handle in &edit.originals {
            any = true;
            let undone = if active { "" } else { ", undone" };
            screen.line(format_args!("  {}  {}{undone}", handle.short(), stored_edits::described(edit)));
        }
    }
    if !any {
        screen.line("nothing was taken out");
    }
    Ok(())
}
