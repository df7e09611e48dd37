//! When a turn has ended, its results become digests by tool, in one batch (seed 003). While it
//! runs, the model sees them whole.

use super::{Context, Proposal, Strategy};
use crate::conversation::log::Position;
use crate::conversation::message::Block;
use crate::digest::{self, Outputs};

/// Results of finished turns become digests by tool.
pub static FINISHED_RESULTS: Strategy = Strategy {
    name: "finished-results",
    says: "when a turn has ended, its results become digests by tool",
    propose: |context: &Context<'_>| {
        if context.profile.constants.raw_rounds {
            return Vec::new();
        }
        let running = context.log.running_turn().map_or(context.log.end(), |turn| turn.start);
        let first = context.rules_seen.done(context.log).max(context.kept_opening);
        let ats = (first.0..running.0).map(Position);
        ats.flat_map(|at| digests(context, at)).collect()
    },
    ..Strategy::PLAIN
};

fn digests(context: &Context<'_>, at: Position) -> Vec<Proposal> {
    let Some(message) = context.message(at) else { return Vec::new() };
    let results = message.blocks().iter().enumerate().filter_map(|(block, content)| match content {
        Block::ToolResult(result) if !context.is_digested(at, block) => Some((block, result)),
        _ => None,
    });
    let short = results.filter_map(|(block, result)| {
        let call = context.call_of(at, result);
        let said = context.result_at(at, block, result);
        let outputs = Outputs::of(call, said.text, result.content.as_deref(), &context.profile.aliases);
        let handle = said.handle();
        let text = outputs
            .digest(said.text, |text, tool, subject| digest::by_tool(text, tool, &subject(), handle))?;
        // It may be shown shorter already, as it entered.
        let shown = context.shown(at, block).map_or(said.text.len(), str::len);
        if text.len() < shown { said.digested(at, block, text) } else { None }
    });
    short.collect()
}
