//! All but the newest results become their first and last lines (seed 001), before every call.

use super::Strategy;
use crate::conversation::log::Position;
use crate::conversation::message::Block;
use crate::digest;

/// All but the newest results are shortened.
pub static NEWEST_RESULTS: Strategy = Strategy {
    name: "newest-results",
    says: "all but the newest results, and those of the newest step, become their first and last lines",
    propose: |context| {
        let keep = context.profile.constants.keep_recent_tool_results;
        let lines =
            (context.profile.constants.summary_head_lines, context.profile.constants.summary_tail_lines);
        let newest = context.log.newest_step().map_or(context.log.end(), |step| step.span.start);
        let done = context.rules_seen.done(context.log);
        let (mut seen, mut seen_before) = (0, 0);
        let mut proposals = Vec::new();
        for at in (0..context.log.end().0).rev().map(Position) {
            // What was old at the last call is done; and if nothing came since, all of it.
            if at < done && (seen_before > keep || seen == seen_before) {
                break;
            }
            let Some(message) = context.message(at) else { continue };
            for (block, content) in message.blocks().iter().enumerate().rev() {
                let Block::ToolResult(result) = content else { continue };
                seen += 1;
                seen_before += usize::from(at < context.rules_seen.end);
                let stays = seen <= keep || at >= newest || at < context.kept_opening;
                if stays || context.is_digested(at, block) {
                    continue;
                }
                let said = context.result_at(at, block, result);
                let Some(text) = digest::by_position(said.text, lines, said.handle()) else { continue };
                // It may be shown shorter already.
                if text.len() < context.shown(at, block).map_or(said.text.len(), str::len) {
                    proposals.extend(said.digested(at, block, text));
                }
            }
        }
        proposals.reverse();
        proposals
    },
    ..Strategy::PLAIN
};
