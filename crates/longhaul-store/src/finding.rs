//! What a search gathers, whichever index it goes through: the newest messages, some of each session.

use std::collections::HashMap;

use longhaul::session::journal::Cursor;

use crate::fault::Fault;
use crate::packing::Unpacker;
use crate::store::{Hit, SessionId};
use crate::unpacking;
use crate::words::Query;

/// Hits of one session: more would hide others.
const OF_ONE_SESSION: usize = 3;

/// So many messages are looked at, from the newest on: a search for what is everywhere ends too.
pub(crate) const LOOKED_AT: usize = 20_000;

/// Sessions that hold the same message and are asked whether they are looked for.
pub(crate) const HOLDERS: usize = 100;

/// The hits of a search, as far as it has come.
pub(crate) struct Hits {
    pub(crate) query: Query,
    limit: usize,
    found: Vec<Hit>,
    of_session: HashMap<SessionId, usize>,
}

impl Hits {
    /// `None` if nothing can be found.
    pub(crate) fn of(query: &str, limit: usize) -> Option<Self> {
        let query = Query::of(query).filter(|_| limit > 0)?;
        Some(Self { query, limit, found: Vec::new(), of_session: HashMap::new() })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Whether another message of this session would be a hit.
    pub(crate) fn wants(&self, session: SessionId) -> bool {
        !self.is_full() && self.of_session.get(&session).is_none_or(|hits| *hits < OF_ONE_SESSION)
    }

    /// A message that has the words: it is a hit if they stand as they were asked for.
    pub(crate) fn offer(
        &mut self,
        unpacker: &mut Unpacker,
        (session, title): (SessionId, &str),
        at: Cursor,
        packed: &[u8],
    ) -> Result<(), Fault> {
        if !self.wants(session) {
            return Ok(());
        }
        let said = unpacking::said(unpacker, packed)?;
        if let Some((snippet, found)) = self.query.snippet(&said) {
            *self.of_session.entry(session).or_default() += 1;
            self.found.push(Hit { session, title: title.to_owned(), at, snippet, found });
        }
        Ok(())
    }

    pub(crate) fn into_found(self) -> Vec<Hit> {
        self.found
    }
}
