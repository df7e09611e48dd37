//! Thinking stays on the newest messages that have any (seed 001), before every call. Sealed
//! thinking of the running turn stays: the guard sees to it.

use super::{Context, Proposal, Strategy};
use crate::conversation::log::Position;
use crate::conversation::message::Block;
use crate::edits::archive::Original;
use crate::edits::edit::EditKind;

/// Old thinking goes.
pub static OLD_THINKING: Strategy = Strategy {
    name: "old-thinking",
    says: "thinking stays only on the newest message that has any",
    propose: |context: &Context<'_>| {
        let keep = context.profile.constants.keep_recent_thinking;
        let running = context.log.running_turn().map_or(context.log.end(), |turn| turn.start);
        // Sealed thinking of a turn can go when the turn has ended.
        let done = context.rules_seen.done(context.log);
        let (mut seen, mut seen_before) = (0, 0);
        let mut proposals = Vec::new();
        for at in (0..context.log.end().0).rev().map(Position) {
            // What was old at the last call is done; and if none came since, all of it.
            if at < done && (seen_before > keep || seen == seen_before) {
                break;
            }
            let Some(message) = context.message(at) else { continue };
            if !message.blocks().iter().any(|block| matches!(block, Block::Thinking(_))) {
                continue;
            }
            seen += 1;
            seen_before += usize::from(at < context.rules_seen.end);
            let sealed =
                |block: &Block| matches!(block, Block::Thinking(thinking) if thinking.seal.is_sealed());
            let stays = at >= running && message.blocks().iter().any(sealed);
            let gone = context.ledger.dropped_thinking(at) || context.ledger.is_unbound(at);
            if seen > keep && !stays && !gone {
                let original = Original::Thinking(message.clone());
                proposals.push(Proposal::Inside(EditKind::DropThinking { at }, original));
            }
        }
        proposals.reverse();
        proposals
    },
    ..Strategy::PLAIN
};
