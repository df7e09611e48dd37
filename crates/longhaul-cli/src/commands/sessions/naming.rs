//! How people name sessions: by the id, by the start of one, or `last`.

use longhaul_store::{Filter, Meta, SessionId, Store};

use crate::error::Failure;
use crate::place::Place;
use crate::terminal;

/// A start that is shorter names nothing.
const SHORTEST: usize = 4;
/// The shortest id that is shown.
const SHOWN: usize = 8;
/// So many sessions are named where a start names several.
const CANDIDATES: usize = 5;

/// The session of this name.
pub fn find(store: &dyn Store, name: &str, place: &Place) -> Result<Meta, Failure> {
    if name == "last" {
        let newest = store.list(&Filter::default(), 1)?.into_iter().next();
        return newest.ok_or_else(|| Failure::Input(format!("there are no sessions yet in {place}")));
    }
    if let Ok(id) = name.parse::<SessionId>() {
        return Ok(store.meta(id)?);
    }
    let start = name.to_lowercase();
    if !start.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        let known = "the id of a session, the start of one, or `last`";
        return Err(Failure::Input(format!("{name:?} is no session: give {known}")));
    }
    if start.len() < SHORTEST {
        return Err(Failure::Input(format!(
            "{name:?} is too short: give {SHORTEST} characters of an id or more"
        )));
    }
    let mut found = store.list(&Filter::default(), usize::MAX)?;
    found.retain(|meta| meta.id.to_string().starts_with(&start));
    if found.len() > 1 {
        let all: Vec<String> = found.iter().take(CANDIDATES).map(candidate).collect();
        let more = found.len().saturating_sub(CANDIDATES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let problem = format!("{name:?} names {} sessions: {}{more}", found.len(), all.join(", "));
        return Err(Failure::Input(problem));
    }
    let none = || Failure::Input(format!("no session in {place} has an id that starts with {name:?}"));
    found.pop().ok_or_else(none)
}

fn candidate(meta: &Meta) -> String {
    format!("{} ({})", meta.id, terminal::one_line(&meta.title, 24))
}

/// How many characters of an id name each of these sessions alone.
pub fn length(sessions: &[Meta]) -> usize {
    let mut ids: Vec<String> = sessions.iter().map(|meta| meta.id.to_string()).collect();
    ids.sort_unstable();
    let common = |pair: &[String]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    let longest = ids.windows(2).map(common).max().unwrap_or_default();
    // An id has 36 characters; none ends in a dash.
    let length = (longest + 1).max(SHOWN);
    if matches!(length, 9 | 14 | 19 | 24) { length + 1 } else { length }
}

/// The start of an id.
pub fn short(id: SessionId, length: usize) -> String {
    id.to_string().chars().take(length).collect()
}
