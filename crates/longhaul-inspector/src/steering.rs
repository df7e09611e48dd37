//! What a person changes: pins, the goal, undo and redo, a compaction; and what that does to the next request, before
//! it is done. Every change is entries of the journal, as from anywhere else.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul::conversation::FactKind;
use longhaul::edits::LostWith;
use longhaul::{
    Block, Cursor, Edit, EditId, EditKind, Entry, LedgerError, LoadError, Position, Prepared, Profile,
    Session, Summariser, Time, Tokens,
};
use longhaul_store::{Keeper, SessionId, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::category::Category;
use crate::cost::Bill;
use crate::error::Refused;
use crate::parts::{self, PartEdit};
use crate::text::{self, grouped};

/// A pin or a goal has so many bytes at most: it stands in every request.
const MOST_OF_A_TEXT: usize = 100_000;

/// What a person wants changed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A text stays in every request.
    Pin {
        /// The text.
        text: String,
    },
    /// A text need not stay any longer.
    Unpin {
        /// The name of its pin.
        name: String,
    },
    /// What the work is for from now on.
    Goal {
        /// In words.
        text: String,
    },
    /// An edit is taken back, and those that were made from it.
    Undo {
        /// Its number.
        edit: u32,
    },
    /// An edit that was taken back is made again.
    Redo {
        /// Its number.
        edit: u32,
    },
    /// All edits over a message are taken back, the outermost first, until it is whole.
    Restore {
        /// Its number.
        message: u32,
    },
    /// The next request is compacted, whatever its size.
    Compact {
        /// What is kept first.
        #[serde(default)]
        focus: Option<String>,
    },
}

impl Change {
    /// Reads a change as a page sends it.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Refused> {
        serde_json::from_slice(body).map_err(|error| Refused::Bad(format!("this is no change: {error}")))
    }

    /// Changes a session, and says what was done.
    pub fn make(&self, session: &mut Session) -> Result<String, Refused> {
        match self {
            Self::Pin { text } => {
                is_sayable(text)?;
                let name = pin(session, text).map_err(Refused::Conflict)?;
                Ok(format!("Pinned as {name}."))
            }
            Self::Unpin { name } => {
                let pins = session.log().facts(FactKind::Pin);
                if !pins.iter().any(|(known, _)| known == name) {
                    return Err(Refused::Conflict(format!("there is no pin {name:?}")));
                }
                session.unpin(name.as_str());
                Ok(format!("Removed the pin {name}."))
            }
            Self::Goal { text } => {
                is_sayable(text)?;
                session.set_goal(text.as_str());
                Ok("Set the goal.".to_owned())
            }
            Self::Undo { edit } => {
                let gone = session.undo(EditId(*edit)).map_err(|error| refused(error, "taken back"))?;
                Ok(format!("Undone: {}.", names(session, &gone)))
            }
            Self::Redo { edit } => {
                session.redo(EditId(*edit)).map_err(|error| refused(error, "made again"))?;
                Ok(format!("Made again: {}.", names(session, &[EditId(*edit)])))
            }
            Self::Restore { message } => restore(session, Position(*message)),
            Self::Compact { focus } => {
                let focus = focus.as_deref().map(str::trim).filter(|focus| !focus.is_empty());
                focus.map(is_sayable).transpose()?;
                match focus {
                    Some(focus) => session.compact_now_on(focus),
                    None => session.compact_now(),
                }
                Ok("The next request is compacted.".to_owned())
            }
        }
    }
}

fn is_sayable(text: &str) -> Result<(), Refused> {
    match text.trim().len() {
        0 => Err(Refused::Bad("the text is empty".to_owned())),
        1..=MOST_OF_A_TEXT => Ok(()),
        _ => Err(Refused::Bad(format!("the text is longer than {} bytes", grouped(MOST_OF_A_TEXT as u64)))),
    }
}

/// Pins a text under a name that no pin has, and gives that name; or says why not.
pub fn pin(session: &mut Session, text: &str) -> Result<String, String> {
    let pins = session.log().facts(FactKind::Pin);
    if let Some(known) = pins.iter().position(|(_, known)| *known == text) {
        return Err(format!("this text is pinned already, as number {}", known + 1));
    }
    let name = |number: usize| format!("pin-{number}");
    let free = (1..).map(name).find(|name| pins.iter().all(|(known, _)| known != name)).unwrap_or_default();
    session.pin(free.as_str(), text);
    Ok(free)
}

/// Takes back what stands in the place of a message.
fn restore(session: &mut Session, at: Position) -> Result<String, Refused> {
    if session.log().get(at).is_none() {
        return Err(Refused::Conflict(format!("there is no message {}", at.0)));
    }
    let mut gone = Vec::new();
    // The widest run shows; what was done inside the message shows when no run is left.
    let over = |session: &Session| {
        let edits = session.ledger().edits().filter(|(_, active)| *active).map(|(edit, _)| edit);
        let reach =
            |edit: &Edit| edit.kind.spans().iter().find(|span| span.contains(at)).map(|span| span.len());
        let over = edits.filter_map(|edit| Some((edit.kind.replaces_runs(), reach(edit)?, edit.id)));
        over.max().map(|(_, _, id)| id)
    };
    while let Some(edit) = over(session) {
        match session.undo(edit) {
            Ok(undone) => gone.extend(undone),
            // Reasoning that the model cannot read comes back with its own model.
            Err(LedgerError::Protected(_)) if !gone.is_empty() => break,
            Err(error) => return Err(refused(error, "taken back")),
        }
    }
    match gone.as_slice() {
        [] => Err(Refused::Conflict(format!("message {} is whole already", at.0))),
        gone => Ok(format!("Undone, so that message {} is whole: {}.", at.0, names(session, gone))),
    }
}

/// An edit, and what it covers: `fold 3 (messages 4–9)`.
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

fn names(session: &Session, edits: &[EditId]) -> String {
    /// So many are named; of the others the number is said.
    const NAMED: usize = 5;
    let known = edits.iter().filter_map(|id| session.ledger().get(*id));
    let mut names: Vec<String> = known.take(NAMED).map(|edit| described(edit)).collect();
    if edits.len() > NAMED {
        names.push(format!("{} more", edits.len() - NAMED));
    }
    names.join("; ")
}

fn refused(error: LedgerError, what: &str) -> Refused {
    match error {
        LedgerError::Lost { .. } => Refused::Failed(error.to_string()),
        // The engine says it of both ways.
        LedgerError::Protected(edit) => Refused::Conflict(format!("edit {} cannot be {what}", edit.0)),
        error => Refused::Conflict(error.to_string()),
    }
}

/// What a change does to the next request, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its size without the change.
    pub tokens_before: u64,
    /// Its size with it.
    pub tokens_after: u64,
    /// What the provider's cache does not have any longer, if anything was sent before.
    pub billed_again: u64,
    /// No request may pass it: what is over it is compacted before the next one.
    pub hard_limit: u64,
    /// Steps whose thinking goes with it, for good: their model binds thinking to what stands before it.
    #[serde(skip_serializing_if = "parts::is_zero")]
    pub thinking_steps: u64,
    /// The tokens of that thinking.
    #[serde(skip_serializing_if = "parts::is_zero")]
    pub thinking_tokens: u64,
    /// Thinking that an edit took earlier, and that its undo does not bring back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub thinking_stays_gone: bool,
}

impl Difference {
    /// Between a session and the same after a change.
    pub fn between(before: &Session, after: &Session) -> Result<Self, LoadError> {
        Ok(Self::of_views(before, &next_of(before, after)?))
    }

    fn of_views(before: &Session, after: &Session) -> Self {
        let tokens = |session: &Session| session.size().tokens.0;
        let (old, new) = (before.view().parts(), after.view().parts());
        let same = old.iter().zip(new).take_while(|(old, new)| old.message == new.message).count();
        let behind = new[same..].iter().map(|part| part.measure).sum();
        let is_broken = before.sent().is_some() && same < old.len();
        let lost =
            first_turned(before, after).map_or((0, Tokens::ZERO), |first| before.thinking_after(first));
        Self {
            tokens_before: tokens(before),
            tokens_after: tokens(after),
            billed_again: if is_broken { after.meter().tokens(behind).tokens.0 } else { 0 },
            hard_limit: after.budget().hard.0,
            thinking_steps: lost.0 as u64,
            thinking_tokens: lost.1.0,
            thinking_stays_gone: undone(before, after).any(|edit| stays_without_thinking(before, edit)),
        }
    }

    /// What becomes of thinking, in sentences; nothing where the model does not bind it.
    pub fn thinking_told(&self) -> Vec<String> {
        let messages = u32::try_from(self.thinking_steps).unwrap_or(u32::MAX);
        let lost = text::lost_thinking(LostWith { messages, tokens: Tokens(self.thinking_tokens) });
        let lost =
            lost.map(|lost| format!("With it goes {lost}, since then: the model accepts it no longer."));
        let gone = "Thinking that the edit took does not come back.";
        lost.into_iter().chain(self.thinking_stays_gone.then(|| gone.to_owned())).collect()
    }
}

/// The session as its next request will show it: a view follows what was changed when it is made again, as a fork does.
/// Thinking after an edit that was turned goes.
fn next_of(before: &Session, after: &Session) -> Result<Session, LoadError> {
    let mut next = after.fork(after.log().end())?;
    if let Some(first) = first_turned(before, after).filter(|first| before.thinking_after(*first).0 > 0) {
        next.unbind_from(first);
    }
    Ok(next)
}

/// Where the first edit begins that was taken back or made again, if it changes what stands before thinking.
fn first_turned(before: &Session, after: &Session) -> Option<Position> {
    let edits = after.ledger().edits();
    // A new edit is priced with the thinking that goes with it.
    let turned = edits.filter(|(edit, active)| {
        before.ledger().get(edit.id).is_some() && before.ledger().is_active(edit.id) != *active
    });
    let turned = turned.filter(|(edit, _)| !matches!(edit.kind, EditKind::DropThinking { .. }));
    turned.filter_map(|(edit, _)| Some(edit.kind.spans().first()?.start)).min()
}

/// Edits that were taken back.
fn undone<'a>(before: &'a Session, after: &'a Session) -> impl Iterator<Item = &'a Edit> {
    let edits = after.ledger().edits().filter(|(edit, active)| !active && before.ledger().is_active(edit.id));
    edits.map(|(edit, _)| &**edit)
}

/// What the edit covers, or what comes after it, has lost thinking for good.
fn stays_without_thinking(session: &Session, edit: &Edit) -> bool {
    let thought = |at: u32| {
        let message = session.log().get(Position(at)).filter(|_| session.ledger().is_unbound(Position(at)));
        message
            .is_some_and(|message| message.blocks().iter().any(|block| matches!(block, Block::Thinking(_))))
    };
    !edit.price.thinking.is_nothing()
        || edit.kind.spans().iter().any(|span| (span.start.0..span.end.0).any(thought))
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = grouped(self.tokens_after);
        let changed = match self.tokens_after.abs_diff(self.tokens_before) {
            0 => "as before".to_owned(),
            more if self.tokens_after > self.tokens_before => format!("{} more", grouped(more)),
            fewer => format!("{} fewer", grouped(fewer)),
        };
        write!(f, "The next request has {size} tokens, {changed}; ")?;
        match self.billed_again {
            0 => f.write_str("the provider's cache stays of use.")?,
            again => write!(f, "{} of them are billed again.", grouped(again))?,
        }
        self.thinking_told().iter().try_for_each(|sentence| write!(f, " {sentence}"))?;
        if self.tokens_after > self.hard_limit {
            let limit = grouped(self.hard_limit);
            write!(f, "\nThat is over the limit of {limit}: it is compacted before it is sent.")?;
        }
        Ok(())
    }
}

/// What a change does, or would do.
#[derive(Debug, Serialize)]
pub struct Effect {
    /// All of it in words.
    pub says: String,
    /// Tokens of the next request without it.
    pub view_before: u64,
    /// Tokens of the next request with it.
    pub view_after: u64,
    /// Tokens that the provider bills again for it.
    pub billed_again: u64,
    /// What the prompt of the next request costs with it, in dollars.
    pub usd: Option<f64>,
    /// What it would cost without.
    pub usd_before: Option<f64>,
    /// The next request would be over this: it is compacted before it is sent.
    pub over_limit: Option<u64>,
    /// Edits that are made, or taken back, or made again.
    pub edits: Vec<PartEdit>,
    /// What the next request is made of.
    pub parts: Vec<NextPart>,
    /// It was done and stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

/// A part of the next request.
#[derive(Debug, Serialize)]
pub struct NextPart {
    /// `note`, `rules`, `message`, `edit`, `host_note` or `tail`.
    pub source: &'static str,
    /// What most of it is.
    pub category: &'static str,
    /// Who speaks.
    pub role: &'static str,
    /// The messages that it is, or stands for.
    pub messages: Vec<(u32, u32)>,
    /// Its size.
    pub tokens: u64,
    /// The beginning of its text.
    pub head: String,
    /// It is not in the next request without the change.
    pub new: bool,
}

impl Effect {
    /// Of a session and the same after a change; `says` is what was done.
    pub(crate) fn of(
        before: &Session,
        after: &Session,
        change: &Change,
        says: &str,
    ) -> Result<Self, Refused> {
        /// The beginning of a part, in characters.
        const HEAD: usize = 300;
        let next = match change {
            Change::Compact { .. } => compacted(after)?,
            _ => next_of(before, after)?,
        };
        let difference = Difference::of_views(before, &next);
        let old: Vec<_> = before.view().parts().iter().chain(before.view().tail()).collect();
        let known: std::collections::HashSet<*const longhaul::Message> =
            old.iter().map(|part| Arc::as_ptr(&part.message)).collect();
        let is_known = |part: &longhaul::Part| {
            known.contains(&Arc::as_ptr(&part.message)) || old.iter().any(|old| old.message == part.message)
        };
        let rows = parts::rows(&next).map(|(part, row)| NextPart {
            source: row.source,
            category: Category::of_part(part).name(),
            role: row.role,
            messages: row.messages,
            tokens: row.tokens,
            head: text::head_of(&part.message, HEAD).0,
            new: !is_known(part),
        });
        let usd = |session: &Session, written: u64| {
            let price = session.model().price?;
            let prompt = session.size().tokens;
            let read = longhaul::Tokens(prompt.0.saturating_sub(written));
            Some(Bill::of_prompt(prompt, read, session.model()).usd(&price))
        };
        // Without the change, what came since the last request is new.
        let unsent = before.view().parts().get(before.view().unchanged()..).unwrap_or_default();
        let unsent = before.meter().tokens(unsent.iter().map(|part| part.measure).sum()).tokens.0;
        let again = difference.billed_again;
        let over = Some(difference.hard_limit).filter(|limit| difference.tokens_after > *limit);
        Ok(Self {
            says: format!("{says} {difference}"),
            view_before: difference.tokens_before,
            view_after: difference.tokens_after,
            billed_again: again,
            usd: usd(&next, if again > 0 { again } else { unsent }),
            usd_before: usd(before, unsent),
            over_limit: over,
            edits: turned(before, &next),
            parts: rows.collect(),
            done: false,
        })
    }
}

/// The session as its next request would be, with a compaction that was asked for.
fn compacted(session: &Session) -> Result<Session, Refused> {
    let mut next = session.clone();
    // No model is asked for what nobody has decided yet.
    next.set_profile(Profile { summariser: Summariser::Extractor, ..session.profile().clone() });
    match next.prepare(Some(now())) {
        Ok(Prepared::Send(_)) => Ok(next),
        Ok(Prepared::Summarise(_)) => Err(Refused::Failed("a summary is needed from a model".to_owned())),
        Err(error) => Err(Refused::Conflict(error.to_string())),
    }
}

/// Edits that hold in one of both only.
fn turned(before: &Session, after: &Session) -> Vec<PartEdit> {
    let edits = after.ledger().edits();
    let turned = edits.filter(|(edit, active)| before.ledger().is_active(edit.id) != *active);
    let row =
        |(edit, active): (&Arc<Edit>, bool)| PartEdit { active_now: Some(active), ..PartEdit::of(edit) };
    turned.map(row).collect()
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Why a stored session was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError<E> {
    /// What was to be done cannot be done.
    #[error(transparent)]
    Act(E),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another writer was there first, twice.
    #[error("session {0}: another program writes to it at the moment; nothing was changed, try again later")]
    Busy(SessionId),
}

/// A session that was changed: as it was, as it is, and what the change gave.
#[derive(Debug)]
pub struct Changed<T> {
    /// As it was.
    pub before: Session,
    /// As it is stored now.
    pub after: Session,
    /// What the change gave.
    pub done: T,
}

/// Changes a stored session by `act`: loads, acts and saves. Another writer that was there first is given way to, once.
pub fn change<T, E>(
    store: &Arc<dyn Store>,
    id: SessionId,
    profile: &Profile,
    act: impl Fn(&mut Session) -> Result<T, E>,
) -> Result<Changed<T>, ChangeError<E>> {
    for _ in 0..2 {
        let (mut keeper, mut session) = Keeper::open(store.clone(), id, profile.clone())?;
        let before = session.clone();
        let done = act(&mut session).map_err(ChangeError::Act)?;
        match keeper.save(&session) {
            Ok(()) => return Ok(Changed { before, after: session, done }),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ChangeError::Busy(id))
}

impl From<ChangeError<Refused>> for Refused {
    fn from(error: ChangeError<Refused>) -> Self {
        match error {
            ChangeError::Act(refused) => refused,
            ChangeError::Store(error) => error.into(),
            ChangeError::Busy(_) => Self::Conflict(error.to_string()),
        }
    }
}

/// The newest edit that a person can take back. What a switch of models dropped comes and goes with the model.
pub fn newest(session: &Session) -> Option<EditId> {
    let edits = session.ledger().edits();
    let own = edits.filter(|(edit, active)| *active && edit.why != longhaul::Why::Switched);
    own.last().map(|(edit, _)| edit.id)
}

/// The edit that was taken back last, and does not hold.
pub fn undone_last(session: &Session) -> Option<EditId> {
    let undone = session.since(Cursor(0)).filter_map(|entry| match entry {
        Entry::Undo { edit, .. } => Some(*edit),
        _ => None,
    });
    undone.filter(|edit| !session.ledger().is_active(*edit)).last()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use longhaul::{Message, Models};
    use longhaul_store::{About, SqliteStore};

    use super::*;

    /// Changes a session while another writer is there, so many times.
    fn beside_another_writer(times: u32) -> (Result<Changed<()>, ChangeError<Refused>>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("s.db")).unwrap());
        let profile = Profile::longhaul();
        let mut session = Session::new(profile.clone(), Models::builtin().find("gpt-4o").clone());
        session.push(Message::user("Hello."));
        let id = Keeper::create(store.clone(), &About::default(), &session).unwrap().id();
        let left = Cell::new(times);
        let changed = change(&store, id, &profile, |session| {
            if left.replace(left.get().saturating_sub(1)) > 0 {
                let (mut other, mut theirs) = Keeper::open(store.clone(), id, profile.clone()).unwrap();
                theirs.push(Message::user("I am faster."));
                other.save(&theirs).unwrap();
            }
            session.pin("pin-1", "Keep this.");
            Ok(())
        });
        (changed, Keeper::open(store, id, profile).unwrap().1.log().messages().len())
    }

    #[test]
    fn another_writer_is_given_way_to_once() {
        for times in [0, 1] {
            let (changed, messages) = beside_another_writer(times);
            let changed = changed.unwrap();
            let difference = Difference::between(&changed.before, &changed.after).unwrap();
            assert!(difference.tokens_after > difference.tokens_before, "{difference:?}");
            assert_eq!(difference.billed_again, 0);
            assert_eq!(messages, 1 + times as usize);
        }
        let (changed, messages) = beside_another_writer(2);
        let problem = changed.unwrap_err().to_string();
        assert!(
            problem.ends_with(
                "another program writes to it at the moment; nothing was changed, try again later"
            )
        );
        assert_eq!((messages, problem.lines().count()), (3, 1));
    }
}
