//! `longhaul sessions undo` and `redo`.

use longhaul::{EditId, LedgerError};
use longhaul_inspector::steering::Difference;
pub use longhaul_inspector::steering::{covers, described, newest, undone_last};
use longhaul_store::SessionId;
use serde::Serialize;

use super::Sessions;
use super::change::change;
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
    effect: Difference,
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
