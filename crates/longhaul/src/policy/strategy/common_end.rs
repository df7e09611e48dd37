//! The end of every ladder, when the hard limit is passed and nothing else helped: digest
//! older results of the running turn, hide what is old, cut what is newest, hide the opening. Needs no
//! model and no luck.

use super::old_results::digests;
use super::{Context, Proposal, Strategy, Visible, joined};
use crate::conversation::fact::FactKind;
use crate::conversation::log::{Position, Span};
use crate::conversation::message::{Block, Role, ToolCall};
use crate::conversation::step::UnitKind;
use crate::digest;
use crate::edits::archive::Original;
use crate::edits::edit::EditKind;
use crate::size::tokens::Tokens;
use crate::view::Source;

/// Older results of the running turn become digests.
pub static DIGEST_RUNNING: Strategy = Strategy {
    name: "digest-running",
    says: "results of all steps but the newest are cut to their best lines: failures, definitions, names in use",
    propose: |context| {
        let visible = context.visible();
        let steps =
            visible.iter().filter(|item| item.kind == Some(UnitKind::Step) && !context.stays_whole(item));
        digests(context, steps.flat_map(|item| item.spans.iter().flat_map(|span| span.range())))
    },
    takes_old: true,
    ..Strategy::PLAIN
};

/// What is old is hidden, oldest first.
pub static HIDE_OLD: Strategy = Strategy {
    name: "hide-old",
    says: "the oldest steps, messages and summaries are hidden",
    propose: |context| hide(context, |item| !context.stays(item)),
    takes_old: true,
    ..Strategy::PLAIN
};

/// What stands before the first answer is hidden too, oldest first.
pub static HIDE_OPENING: Strategy = Strategy {
    name: "hide-opening",
    says: "what stands before the first answer is hidden, oldest first",
    propose: |context| hide(context, |item| !context.stays_anyway(item)),
    ..Strategy::PLAIN
};

/// Hides what may go, oldest first, until enough is gone.
fn hide(context: &Context<'_>, may_go: impl Fn(&Visible) -> bool) -> Vec<Proposal> {
    let visible = context.visible();
    let (mut gone, mut spans): (Tokens, Vec<Span>) = Default::default();
    // The marker needs room too, and what is restated elsewhere.
    let wanted = context.excess + context.excess.scaled(50_000) + Tokens(MARK);
    // The goal comes last: it stands in the tail then, shorter if it is long.
    let goal = context.log.goal_message().filter(|_| context.log.fact(FactKind::Goal, "").is_none());
    let is_goal = |item: &&Visible| goal.is_some_and(|goal| item.source == Source::Message(goal));
    let old = || visible.iter().filter(|item| may_go(item));
    for item in old().filter(|item| !is_goal(item)).chain(old().filter(is_goal)) {
        if gone > wanted && gone > wanted + context.told_of(&spans) {
            break;
        }
        gone += item.tokens;
        spans.extend(&item.spans);
    }
    if spans.is_empty() { Vec::new() } else { vec![Proposal::Hide(joined(spans))] }
}

/// The newest step and the current input are cut, head and tail.
pub static CUT_NEWEST: Strategy = Strategy {
    name: "cut-newest",
    says: "texts of the newest step and the current input are cut, head and tail",
    propose: |context| {
        let ats = context.log.protected().flat_map(|span| span.range()).map(|at| Position(at as u32));
        let texts: Vec<Long> = ats.flat_map(|at| long_texts(context, at)).collect();
        let all: Tokens = texts.iter().map(|text| text.shown).sum();
        let most = level(&texts, all - (context.excess + Tokens(MARK)));
        let thinking = context.log.newest_step().and_then(|step| drop_thinking(context, step.span.start));
        let long = texts.iter().filter(|text| text.shown > most);
        thinking.into_iter().chain(long.filter_map(|text| cut(context, text, most))).collect()
    },
    cuts: true,
    ..Strategy::PLAIN
};

/// About what a mark takes, in tokens.
const MARK: u64 = 40;

/// A text or arguments that may be cut.
struct Long {
    at: Position,
    block: usize,
    /// Its size as it is shown now.
    shown: Tokens,
    /// Its size as it came.
    came: Tokens,
}

fn long_texts(context: &Context<'_>, at: Position) -> Vec<Long> {
    let Some(message) = context.message(at).filter(|message| message.role() != Role::System) else {
        return Vec::new();
    };
    let blocks = message.blocks().iter().enumerate();
    let sized = blocks.filter_map(|(block, content)| {
        let text = match content {
            Block::Text(b) => &*b.text,
            // A program reads it: half of it would be data that is wrong.
            Block::ToolResult(b) if context.log.call_of(at, b).is_some_and(ToolCall::is_made_by_program) => {
                return None;
            }
            Block::ToolResult(b) => context.ledger.answer(at, block).unwrap_or(&b.text),
            Block::ToolCall(b) => b.arguments.as_str(),
            _ => return None,
        };
        let came = context.text_tokens(text);
        let shown = context.shown(at, block).map_or(came, |text| context.text_tokens(text));
        Some(Long { at, block, shown, came })
    });
    sized.collect()
}

/// Thinking that nobody sealed can go.
fn drop_thinking(context: &Context<'_>, at: Position) -> Option<Proposal> {
    let message = context.message(at)?;
    let any = message.blocks().iter().any(|block| matches!(block, Block::Thinking(_)));
    any.then(|| Proposal::Inside(EditKind::DropThinking { at }, Original::Thinking(message.clone())))
}

/// The size at which all texts, none longer than it, have `room`.
fn level(texts: &[Long], room: Tokens) -> Tokens {
    let mut sizes: Vec<u64> = texts.iter().map(|text| text.shown.0).collect();
    sizes.sort_unstable();
    let mut room = room.0;
    for (at, size) in sizes.iter().enumerate() {
        let share = room / (sizes.len() - at) as u64;
        if *size > share {
            return Tokens(share);
        }
        room -= size;
    }
    Tokens(u64::MAX)
}

/// A text cut to about `most` tokens, its mark included.
fn cut(context: &Context<'_>, long: &Long, most: Tokens) -> Option<Proposal> {
    let Long { at, block, came, .. } = *long;
    let message = context.message(at)?;
    let original = match context.ledger.answer(at, block) {
        Some(answer) => Original::Text(answer.into()),
        None => Original::Block(message.clone(), block),
    };
    let text = match &message.blocks()[block] {
        Block::Text(b) => &*b.text,
        Block::ToolResult(b) => context.ledger.answer(at, block).unwrap_or(&b.text),
        Block::ToolCall(b) => {
            let arguments = digest::arguments(&b.arguments, original.handle())?;
            return Some(Proposal::Inside(EditKind::DigestArgs { at, block, arguments }, original));
        }
        _ => return None,
    };
    // Bytes for the tokens wanted, a little less: text is not even.
    let wanted =
        u128::from(most.0.saturating_sub(MARK)) * text.len() as u128 * 9 / 10 / u128::from(came.0.max(1));
    let wanted = wanted as usize;
    let short = digest::head_and_tail(text, wanted * 2 / 3, wanted / 3, original.handle())?;
    Some(Proposal::Inside(EditKind::Digest { at, block, text: short.into() }, original))
}
