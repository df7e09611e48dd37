//! The pieces of a session's view, and what can be reached from it.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul::{EditId, Message, Part, Session};

use crate::lab::needs::{Needs, Piece, text_of};

/// Pieces of the messages of a view, each made once.
#[derive(Default)]
pub struct PieceCache(HashMap<usize, (Arc<Message>, Arc<Piece>)>);

impl PieceCache {
    /// The piece of a part. The message is kept, so that its address stays its own.
    pub fn get(&mut self, part: &Part, needs: &mut Needs) -> Arc<Piece> {
        let known = self.0.entry(Arc::as_ptr(&part.message) as usize);
        known.or_insert_with(|| (part.message.clone(), needs.piece(&text_of(&part.message)))).1.clone()
    }
}

/// True if the message is under a handle in the view.
pub fn is_recallable(session: &Session, at: u32) -> bool {
    let at = longhaul::At(at);
    let has_handle = |id: &EditId| session.ledger().get(*id).is_some_and(|edit| !edit.originals.is_empty());
    session.ledger().covering(at).is_some_and(|(_, id)| has_handle(&id))
        || session.ledger().inside(at).iter().any(has_handle)
}
