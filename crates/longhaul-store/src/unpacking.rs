//! Entries out of what is stored of them. Many are unpacked by several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;

use longhaul::session::journal::{self, Entry};
use longhaul::{Handle, LoadError, Message, Snapshot};

use crate::error::StoreError;
use crate::fault::Fault;
use crate::originals;
use crate::packing::Unpacker;
use crate::rows;
use crate::store::SessionId;
use crate::words;

/// So many entries are worth a thread of their own.
const OF_A_THREAD: usize = 1_000;

/// More threads than these wait for each other.
const THREADS: usize = 4;

/// The entries of a session that are stored like this. `first` is the number of the first one.
pub(crate) fn entries<T: AsRef<[u8]> + Sync>(
    unpacker: &mut Unpacker,
    id: SessionId,
    first: usize,
    packed: &[T],
) -> Result<Vec<Entry>, Fault> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    let threads = (packed.len() / OF_A_THREAD).clamp(1, cores);
    let chunk = packed.len().div_ceil(threads).max(1);
    let (here, rest) = packed.split_at(chunk.min(packed.len()));
    let mut all = std::thread::scope(|scope| {
        let chunks = rest.chunks(chunk).enumerate();
        let others: Vec<_> = chunks
            .map(|(n, packed)| {
                scope.spawn(move || read(&mut Unpacker::new()?, id, first + (n + 1) * chunk, packed))
            })
            .collect();
        let mut all = vec![read(unpacker, id, first, here)];
        all.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        all
    })
    .into_iter();
    let mut entries = all.next().transpose()?.unwrap_or_default();
    for more in all {
        entries.append(&mut more?);
    }
    Ok(entries)
}

fn read<T: AsRef<[u8]>>(
    unpacker: &mut Unpacker,
    id: SessionId,
    first: usize,
    packed: &[T],
) -> Result<Vec<Entry>, Fault> {
    let wrong = |problem| Fault::Store(StoreError::Journal { session: id, problem });
    let mut entries = Vec::with_capacity(packed.len());
    for (at, packed) in (first..).zip(packed) {
        let line = unpacker.unpack(packed.as_ref()).map_err(Fault::Damaged)?;
        let entry = match at {
            // What the first line says of the version comes before all else.
            0 => journal::read([line]).map(|mut entries| entries.pop()).map_err(wrong)?,
            _ => serde_json::from_str(line)
                .map(Some)
                .map_err(|error| wrong(LoadError::Line { at, problem: error.to_string() }))?,
        };
        entries.extend(entry);
    }
    Ok(entries)
}

/// What is said of a journal that lacks an entry.
pub(crate) fn missing() -> Fault {
    Fault::Damaged("an entry of a journal is missing".to_owned())
}

/// The model that a stored entry names.
pub(crate) fn model(unpacker: &mut Unpacker, packed: &[u8]) -> Result<Option<String>, Fault> {
    let json = unpacker.unpack(packed).map_err(Fault::Damaged)?;
    let entry: Entry = serde_json::from_str(json).map_err(|error| Fault::Damaged(error.to_string()))?;
    Ok(rows::model_of(&entry).map(str::to_owned))
}

/// The handles that a stored entry names. A damaged entry names none; loading its session reports it.
pub(crate) fn originals(unpacker: &mut Unpacker, packed: &[u8]) -> Vec<Handle> {
    let json = unpacker.unpack(packed).ok();
    let entry = json.and_then(|json| serde_json::from_str(json).ok());
    entry.map_or_else(Vec::new, |entry| originals::named_by(&entry))
}

/// Sizes of messages, and how many messages there were.
pub(crate) fn sizes(
    unpacker: &mut Unpacker,
    packed: &[u8],
    messages: usize,
) -> Result<(Vec<Snapshot>, usize), Fault> {
    let json = unpacker.unpack(packed).map_err(Fault::Damaged)?;
    // Sizes in the form of another version are counted again.
    Ok(serde_json::from_str(json).map_or((Vec::new(), 0), |sizes| (sizes, messages)))
}

/// The words of a stored message, with spaces between them. A damaged text has no words; who loads it is
/// told.
pub(crate) fn words(unpacker: &mut Unpacker, packed: &[u8]) -> String {
    match unpacker.unpack(packed).map(message) {
        Ok(Some(message)) => words::words_of(&words::said(&message)),
        _ => String::new(),
    }
}

/// What can be found of a stored message.
pub(crate) fn said(unpacker: &mut Unpacker, packed: &[u8]) -> Result<String, Fault> {
    let json = unpacker.unpack(packed).map_err(Fault::Damaged)?;
    Ok(message(json).map(|message| words::said(&message)).unwrap_or_default())
}

fn message(json: &str) -> Option<Arc<Message>> {
    match serde_json::from_str(json) {
        Ok(Entry::Message(message)) => Some(message),
        _ => None,
    }
}
