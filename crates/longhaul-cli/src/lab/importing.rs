//! Recorded sessions on their way into a store: transcripts taken through the engine as if Longhaul had been there,
//! journals as they are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use longhaul::session::journal;
use longhaul::{Message, Profile, Role, Session};
use longhaul_store::{About, Keeper, Meta, SessionId, Store, StoreError};
use longhaul_wire::transcript;

use crate::error::Failure;
use crate::lab::inputs::Input;
use crate::lab::recorded::{MeterKind, RecordedSession, window_of};
use crate::lab::transcript_file::TranscriptFile;
use crate::terminal;

/// How journals begin.
const JOURNAL: &[u8] = b"{\"began\":";

/// The progress is shown after so many messages.
const SHOWN: usize = 100;

/// What sessions are taken through the engine with.
pub struct Import<'a> {
    pub profile: Profile,
    /// Tokens that fit, if somebody said so.
    pub window: Option<u64>,
    /// The model, where a transcript does not say; empty if nobody does.
    pub model: &'a str,
}

/// A conversation that was taken through the engine.
pub struct Taken {
    pub name: String,
    /// The program whose format it has.
    pub agent: String,
    pub session: Session,
    /// The journal that it is of, if it is of one.
    journal: Option<blake3::Hash>,
    /// Calls for which nothing could be sent.
    pub errors: u64,
}

impl Taken {
    /// Stores it once, whole, and says whether it was new. All who import it at the same time write one session together,
    /// and whoever imports it after one of them was killed writes the rest.
    pub fn keep_once(&self, store: &Arc<dyn Store>, about: &About) -> Result<(Meta, bool), StoreError> {
        if let Some(meta) = self.stored(store)? {
            return Ok((meta, false));
        }
        let id = self.own_id();
        let is_whole = || Ok::<_, StoreError>(store.meta(id)?.end >= self.session.cursor());
        let was_whole = match is_whole() {
            Err(StoreError::NoSession(_)) => false,
            looked => looked?,
        };
        match self.keep_in(Keeper::begin_as(store.clone(), id, about)) {
            // Somebody has changed it since another import wrote it, and before that import has named it.
            Err(StoreError::Conflict { .. }) if is_whole()? => {
                store.keep_prefixes(id, 0, &[self.import_hash()])?;
            }
            kept => kept?,
        }
        Ok((store.meta(id)?, !was_whole))
    }

    /// Stores it, whole, whether it is there already or not.
    pub fn keep(&self, store: &Arc<dyn Store>, about: &About) -> Result<Meta, StoreError> {
        let keeper = Keeper::begin(store.clone(), about);
        let id = keeper.id();
        self.keep_in(keeper)?;
        store.meta(id)
    }

    /// It has its name when all of it is stored.
    fn keep_in(&self, mut keeper: Keeper) -> Result<(), StoreError> {
        keeper.finish(&self.session)?;
        keeper.keep_prefixes(0, &[self.import_hash()])
    }

    /// The id that the session gets: every import of the same messages, in the same way, gives it the same. What another
    /// version has begun and not finished is another session, for its edits may be others.
    fn own_id(&self) -> SessionId {
        let mut hasher = blake3::Hasher::new_derive_key("longhaul sessions import, id");
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes()).update(&self.import_hash());
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        SessionId::of_hash(hash)
    }

    /// The session that an earlier import of the same messages, in the same way, has stored.
    fn stored(&self, store: &Arc<dyn Store>) -> Result<Option<Meta>, StoreError> {
        let alike = store.find_prefix(&[self.import_hash()])?;
        Ok(alike.and_then(|alike| alike.sessions.into_iter().next()))
    }

    /// Names what was taken in, and how. No request of a client has this name.
    fn import_hash(&self) -> [u8; 16] {
        let (session, mut hasher) =
            (&self.session, blake3::Hasher::new_derive_key("longhaul sessions import"));
        match &self.journal {
            Some(journal) => _ = hasher.update(journal.as_bytes()),
            None => {
                let way = (session.profile(), &session.model().name, session.budget().window);
                hasher.update(format!("{way:?}").as_bytes());
                for message in session.log().messages() {
                    hasher.update(b"\n").update(transcript::encode(message).as_bytes());
                }
            }
        }
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        hash
    }
}

impl Import<'_> {
    /// The conversations of a file.
    pub fn take(&self, input: &Input) -> Result<Vec<Taken>, Failure> {
        let taken = match is_journal(input)? {
            true => self.journal(&input.path).map(|taken| vec![taken]),
            false => self.transcript(input),
        };
        terminal::clear_progress();
        taken
    }

    /// The conversations of a transcript.
    fn transcript(&self, input: &Input) -> Result<Vec<Taken>, Failure> {
        let mut file = TranscriptFile::open(input)?;
        let mut recorded: BTreeMap<usize, (RecordedSession, u64)> = BTreeMap::new();
        let mut count = 0;
        for (number, message) in file.by_ref() {
            if message.is_recorded_compaction() {
                continue;
            }
            let (session, errors) = recorded.entry(number).or_insert_with(|| (self.new_session(), 0));
            take(session, errors, message);
            count += 1;
            if count % SHOWN == 0 {
                terminal::show_progress(format_args!("{}: {count} messages", terminal::path(&input.path)));
            }
        }
        file.finish(recorded.is_empty())?;
        let agent = file.format();
        let taken = recorded.into_iter().map(|(number, (recorded, errors))| Taken {
            name: file.name(number),
            agent: agent.to_owned(),
            session: recorded.into_session(),
            journal: None,
            errors,
        });
        Ok(taken.collect())
    }

    fn new_session(&self) -> RecordedSession {
        let window = window_of(self.window, self.model, &self.profile);
        RecordedSession::new(self.profile.clone(), self.model, window, MeterKind::Model)
    }

    /// The session of a journal.
    fn journal(&self, path: &Path) -> Result<Taken, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
        let entries = journal::read(text.lines()).map_err(|error| Failure::file(path, error))?;
        let session = Session::load(self.profile.clone(), entries);
        let session = session.map_err(|error| Failure::file(path, error))?;
        let (name, journal) = (path.display().to_string(), Some(blake3::hash(text.as_bytes())));
        Ok(Taken { name, agent: "longhaul".to_owned(), session, journal, errors: 0 })
    }
}

/// Takes a message in; an answer is preceded by its call.
fn take(recorded: &mut RecordedSession, errors: &mut u64, message: Message) {
    if message.role() == Role::Assistant {
        *errors += u64::from(recorded.prepare_for(&message).is_err());
        recorded.learn(&message);
    }
    recorded.push(message);
}

fn is_journal(input: &Input) -> Result<bool, Failure> {
    let path = &input.path;
    // A pipe is read once: its first bytes would be gone.
    if input.is_stdin() || !path.is_file() {
        return Ok(false);
    }
    let failed = |error| Failure::file(path, error);
    let mut start = Vec::new();
    let file = BufReader::new(File::open(path).map_err(failed)?);
    file.take(JOURNAL.len() as u64).read_until(b'\n', &mut start).map_err(failed)?;
    Ok(start == JOURNAL)
}
