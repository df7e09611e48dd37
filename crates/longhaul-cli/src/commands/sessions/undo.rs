//! `longhaul sessions undo` and `redo`.

use longhaul::{Edit, EditId, Entry, LedgerError, Session, Why};
use longhaul_store::SessionId;
use serde::Serialize;

use super::Sessions;
use super::change::{Effect, change};
use crate::error::Failure;

/// Take an edit back: what it took out stands in the next request again
#[derive(clap::Args)]
#[command(after_help = "\
Edits that were made from it go too. `longhaul sessions show` has the numbers.

Examples:
  longhaul sessions undo last
  longhaul sessions undo last 12")]
pub struct UndoArgs {
    /// The session
    session: String,
    /// The number of the edit; without it, the newest that can be taken back
    edit: Option<u32>,
}

/// Make an edit again that was taken back
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longhaul sessions redo last
  longhaul sessions redo last 12")]
pub struct RedoArgs {
    /// The session
    session: String,
    /// The number of the edit; without it, the one that was taken back last
    edit: Option<u32>,
}

#[derive(Serialize)]
struct Changed {
    session: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undone: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redone: Vec<u32>,
    #[serde(flatten)]
    effect: Effect,
}

pub fn undo(sessions: &Sessions<'_>, args: &UndoArgs) -> Result<(), Failure> {
    let (store, meta) = sessions.find(&args.session)?;
    let (gone, effect) = change(&store, meta.id, &sessions.profile()?, |session| {
        let edit = match args.edit {
            Some(edit) => EditId(edit),
            None => newest(session).ok_or_else(|| nothing(meta.id, "taken back"))?,
        };
        let gone = session.undo(edit).map_err(|error| refused(error, "taken back"))?;
        Ok(gone.iter().filter_map(|id| session.ledger().get(*id).cloned()).collect::<Vec<_>>())
    })?;
    let undone = gone.iter().map(|edit| edit.id.0).collect();
    let names: Vec<String> = gone.iter().map(|edit| described(edit)).collect();
    let said = format!("Undone: {}. {effect}", names.join("; "));
    sessions.say(&Changed { session: meta.id.to_string(), undone, redone: Vec::new(), effect }, said)
}

pub fn redo(sessions: &Sessions<'_>, args: &RedoArgs) -> Result<(), Failure> {
    let (store, meta) = sessions.find(&args.session)?;
    let (edit, effect) = change(&store, meta.id, &sessions.profile()?, |session| {
        let edit = match args.edit {
            Some(edit) => EditId(edit),
            None => undone_last(session).ok_or_else(|| nothing(meta.id, "made again"))?,
        };
        session.redo(edit).map_err(|error| refused(error, "made again"))?;
        session.ledger().get(edit).cloned().ok_or_else(|| nothing(meta.id, "made again"))
    })?;
    let said = format!("Made again: {}. {effect}", described(&edit));
    let changed =
        Changed { session: meta.id.to_string(), undone: Vec::new(), redone: vec![edit.id.0], effect };
    sessions.say(&changed, said)
}

/// The newest edit that holds. What a switch of models dropped comes and goes with the model.
pub fn newest(session: &Session) -> Option<EditId> {
    let edits = session.ledger().edits().filter(|(edit, active)| *active && edit.why != Why::Switched);
    edits.last().map(|(edit, _)| edit.id)
}

/// The edit that was taken back last, and does not hold.
pub fn undone_last(session: &Session) -> Option<EditId> {
    let undone = session.since(longhaul::Cursor(0)).filter_map(|entry| match entry {
        Entry::Undo { edit, .. } => Some(*edit),
        _ => None,
    });
    undone.filter(|edit| !session.ledger().is_active(*edit)).last()
}

/// An edit, and what it covers.
pub fn described(edit: &Edit) -> String {
    let (name, id) = (edit.kind.name(), edit.id.0);
    format!("{name} {id} ({})", covers(edit))
}

/// `message 4`, `messages 4–9`.
pub fn covers(edit: &Edit) -> String {
    let spans = edit.kind.spans();
    match (spans.first(), spans.last()) {
        (Some(first), Some(last)) if last.end.0 - first.start.0 == 1 => format!("message {}", first.start.0),
        (Some(first), Some(last)) => format!("messages {}–{}", first.start.0, last.end.0 - 1),
        _ => "nothing".to_owned(),
    }
}

fn nothing(id: SessionId, what: &str) -> Failure {
    Failure::Input(format!("session {id} has no edit that can be {what}"))
}

fn refused(error: LedgerError, what: &str) -> Failure {
    match error {
        LedgerError::Lost { .. } => Failure::Failed(error.to_string()),
        // The engine says it of both ways.
        LedgerError::Protected(edit) => Failure::Input(format!("edit {} cannot be {what}", edit.0)),
        error => Failure::Input(error.to_string()),
    }
}
