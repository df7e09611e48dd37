//! A change of a stored session: load, act, save. Another writer that was there first is given way to, once.

use std::sync::Arc;

use longhaul::{Profile, Session};
use longhaul_store::{Keeper, SessionId, Store, StoreError};
use serde::Serialize;

use crate::error::Failure;
use crate::terminal;

/// What a change does to the next request, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Effect {
    tokens_before: u64,
    tokens_after: u64,
    /// What the provider's cache does not have any longer, if anything was sent before.
    billed_again: u64,
    /// No request may pass it: what is over it is compacted before the next one.
    hard_limit: u64,
}

/// Changes a session by `act`, and stores it.
pub fn change<T>(
    store: &Arc<dyn Store>,
    id: SessionId,
    profile: &Profile,
    act: impl Fn(&mut Session) -> Result<T, Failure>,
) -> Result<(T, Effect), Failure> {
    for _ in 0..2 {
        let (mut keeper, mut session) = Keeper::open(store.clone(), id, profile.clone())?;
        let before = session.clone();
        let done = act(&mut session)?;
        match keeper.save(&session) {
            Ok(()) => return Ok((done, Effect::of(&before, &session)?)),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let problem = "another program writes to it at the moment; nothing was changed, try again later";
    Err(Failure::Failed(format!("session {id}: {problem}")))
}

impl Effect {
    fn of(before: &Session, after: &Session) -> Result<Self, Failure> {
        // A view follows what was changed when it is made again, as a fork does.
        let after = after.fork(after.log().end()).map_err(|error| Failure::Failed(error.to_string()))?;
        let tokens = |session: &Session| session.size().tokens.0;
        let (old, new) = (before.view().parts(), after.view().parts());
        let same = old.iter().zip(new).take_while(|(old, new)| old.message == new.message).count();
        let behind = new[same..].iter().map(|part| part.measure).sum();
        let is_broken = before.sent().is_some() && same < old.len();
        Ok(Self {
            tokens_before: tokens(before),
            tokens_after: tokens(&after),
            billed_again: if is_broken { after.meter().tokens(behind).tokens.0 } else { 0 },
            hard_limit: after.budget().hard.0,
        })
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = terminal::grouped(self.tokens_after);
        let changed = match self.tokens_after.abs_diff(self.tokens_before) {
            0 => "as before".to_owned(),
            more if self.tokens_after > self.tokens_before => format!("{} more", terminal::grouped(more)),
            fewer => format!("{} fewer", terminal::grouped(fewer)),
        };
        write!(f, "The next request has {size} tokens, {changed}; ")?;
        match self.billed_again {
            0 => f.write_str("the provider's cache stays of use.")?,
            again => write!(f, "{} of them are billed again.", terminal::grouped(again))?,
        }
        if self.tokens_after > self.hard_limit {
            let limit = terminal::grouped(self.hard_limit);
            write!(f, "\nThat is over the limit of {limit}: it is compacted before it is sent.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use longhaul::{Message, Models};
    use longhaul_store::{About, SqliteStore};

    use super::*;

    /// Changes a session while another writer is there, so many times.
    fn beside_another_writer(times: u32) -> (Result<((), Effect), Failure>, usize) {
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
            let ((), effect) = changed.unwrap();
            assert!(effect.tokens_after > effect.tokens_before && effect.billed_again == 0, "{effect:?}");
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
