//! A session written out: the transcript of its messages, or its journal with all texts in their places.

use std::io::Write;
use std::sync::Arc;

use longhaul::edits::EditText;
use longhaul::session::journal::Entry;
use longhaul::{Archive, EditKind, Handle};
use longhaul_wire::transcript;

use crate::error::StoreError;

/// Writes a line for each message, in the transcript format.
pub(crate) fn transcript(entries: &[Entry], out: &mut dyn Write) -> Result<(), StoreError> {
    for entry in entries {
        if let Entry::Message(message) = entry {
            writeln!(out, "{}", transcript::encode(message)).map_err(StoreError::Export)?;
        }
    }
    out.flush().map_err(StoreError::Export)
}

/// Writes a line for each entry, with the texts that were kept apart.
pub(crate) fn journal(entries: &[Entry], texts: &dyn Archive, out: &mut dyn Write) -> Result<(), StoreError> {
    for entry in entries {
        let line = serde_json::to_string(&whole(entry, texts)?).map_err(StoreError::Entry)?;
        writeln!(out, "{line}").map_err(StoreError::Export)?;
    }
    out.flush().map_err(StoreError::Export)
}

/// The entry with its text, as it was before [`Entry::apart`].
pub(crate) fn whole(entry: &Entry, texts: &dyn Archive) -> Result<Entry, StoreError> {
    let Some(handle) = handle_apart(entry) else { return Ok(entry.clone()) };
    let text = texts.get(handle).ok_or(StoreError::LostText(handle))?;
    Ok(with_text(entry, text))
}

/// The entry with this text in its edit.
pub(crate) fn with_text(entry: &Entry, text: String) -> Entry {
    let mut entry = entry.clone();
    if let Entry::Edit(edit) = &mut entry
        && let Some(place) = text_of(&mut Arc::make_mut(edit).kind)
    {
        *place = EditText::Here(text.into());
    }
    entry
}

/// The handle of the text that an entry lacks.
pub(crate) fn handle_apart(entry: &Entry) -> Option<Handle> {
    let Entry::Edit(edit) = entry else { return None };
    match edit.kind.text()? {
        EditText::Apart { apart } => Some(*apart),
        EditText::Here(_) => None,
    }
}

fn text_of(kind: &mut EditKind) -> Option<&mut EditText> {
    match kind {
        EditKind::Digest { text, .. }
        | EditKind::Answer { text, .. }
        | EditKind::Fold { text, .. }
        | EditKind::Hide { text, .. } => Some(text),
        EditKind::DigestArgs { .. } | EditKind::DropThinking { .. } => None,
    }
}
