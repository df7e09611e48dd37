//! A window over the messages (seed 001): the first user message and the newest stay, the oldest
//! others go, whole steps, until enough is gone.

use super::{Context, Proposal, Strategy, joined};
use crate::conversation::log::Span;
use crate::size::tokens::Tokens;

/// The oldest messages go.
pub static DROP_OLDEST: Strategy = Strategy {
    name: "drop-oldest",
    says: "the oldest messages are hidden, whole steps; the first of the user and the newest stay",
    propose: |context: &Context<'_>| {
        let visible = context.visible();
        let kept = context.newest_messages(&visible, context.profile.constants.keep_recent_messages);
        let first = context.log.goal_message();
        let (mut gone, mut spans): (Tokens, Vec<Span>) = Default::default();
        for item in &visible[..visible.len() - kept] {
            let is_first = first.is_some_and(|first| item.spans.iter().any(|span| span.contains(first)));
            if context.stays(item) || is_first {
                continue;
            }
            // The mark needs a little room, and what it must say.
            let wanted = context.excess + Tokens(40);
            if gone > wanted && gone > wanted + context.told_of(&spans) {
                break;
            }
            gone += item.tokens;
            spans.extend(&item.spans);
        }
        if spans.is_empty() { Vec::new() } else { vec![Proposal::Hide(joined(spans))] }
    },
    ..Strategy::PLAIN
};
