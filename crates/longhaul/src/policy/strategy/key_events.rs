//! Key events stay whole, the rest becomes a summary (seed 004).

use super::importance::{ERROR_OR_FIX, LEAST, has_any, is_of_person, said};
use super::{Context, FoldPlan, Proposal, Strategy, Visible, joined};
use crate::conversation::log::{Position, Span};
use crate::conversation::message::Block;
use crate::conversation::script::made_by;
use crate::conversation::step::UnitKind;
use crate::digest::ToolKind;
use crate::summary::exit_status;

/// All but key events become a summary.
pub static KEY_EVENTS: Strategy = Strategy {
    name: "key-events",
    says: "what a person said, starts and finishes of tasks, decisions, errors and fixes, and changes of files stay whole; the rest becomes a summary",
    propose: |context: &Context<'_>| {
        let visible = context.visible();
        if context.messages(&visible) < LEAST {
            return Vec::new();
        }
        let open = visible.iter().filter(|item| item.kind.is_some() && !context.stays(item));
        let mut rest: Vec<&Visible> = open.filter(|item| !is_key(context, item)).collect();
        rest.truncate(rest.len().saturating_sub(context.profile.constants.keep_recent_others));
        let spans: Vec<Span> = rest.iter().flat_map(|item| item.spans.iter().copied()).collect();
        if rest.len() < 2 { Vec::new() } else { vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))] }
    },
    ..Strategy::PLAIN
};

/// A decision has more characters than this.
const DECISION: usize = 100;

const DECISIONS: &[&str] =
    &["decision", "decided", "decide", "chose", "instead", "决定", "决策", "选择", "采用"];
const STARTS: &[&str] =
    &["start the task", "starting the task", "started the task", "task started", "开始任务", "任务开始"];
const FINISHES: &[&str] =
    &["completed", "finished", "all done", "task done", "任务完成", "完成任务", "已完成"];

/// A person's words, the start or the finish of a task, a decision, an error or its fix, a failed outcome
/// or a changed file.
fn is_key(context: &Context<'_>, item: &Visible) -> bool {
    if is_of_person(context, item) || finishes_turn(context, item) {
        return true;
    }
    let text = said(context, item);
    let lower = text.to_lowercase();
    let decides = has_any(&lower, &[DECISIONS]) && text.trim_end().chars().count() > DECISION;
    decides
        || has_any(&lower, &ERROR_OR_FIX)
        || has_any(&lower, &[STARTS, FINISHES])
        || item.spans.iter().flat_map(|span| span.range()).any(|at| changes(context, Position(at as u32)))
}

/// The answer that ends a turn of several steps is the finish of a task. One that came at once is an
/// answer in a conversation, and no event.
fn finishes_turn(context: &Context<'_>, item: &Visible) -> bool {
    let Some(at) = item.spans.first().map(|span| span.start) else { return false };
    let number = context.log.turns().partition_point(|turn| turn.start <= at);
    let Some(turn) = number.checked_sub(1).and_then(|number| context.log.turns().get(number)) else {
        return false;
    };
    let end = context.log.turns().get(number).map_or(context.log.end(), |next| next.start);
    let units = context.log.units();
    let later = &units[units.partition_point(|unit| unit.span.start <= at)..];
    let mut later = later.iter().take_while(|unit| unit.span.start < end);
    item.kind == Some(UnitKind::Step)
        && turn.ended
        && turn.first_step.is_some_and(|first| first < at)
        && !later.any(|unit| unit.kind == UnitKind::Step)
}

/// Failed, or changed a file.
fn changes(context: &Context<'_>, at: Position) -> bool {
    let Some(message) = context.message(at) else { return false };
    message.blocks().iter().any(|block| match block {
        Block::ToolCall(call) => {
            let changes =
                |call| matches!(context.profile.aliases.kind_of(call), ToolKind::Edit | ToolKind::Write);
            made_by(call).calls().iter().any(changes)
        }
        Block::ToolResult(result) => exit_status(result).map_or(result.is_error, |status| status != 0),
        _ => false,
    })
}
