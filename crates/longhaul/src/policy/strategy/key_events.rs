//! Key events stay whole, the rest becomes a summary (seed 004).

use super::importance::{LEAST, has_word, is_of_person, said};
use super::{Context, FoldPlan, Proposal, Strategy, Visible, joined};
use crate::conversation::log::{Position, Span};
use crate::conversation::message::Block;
use crate::digest::ToolKind;
use crate::summary::exit_status;

/// All but key events become a summary.
pub static KEY_EVENTS: Strategy = Strategy {
    name: "key-events",
    says: "what a person said, decisions, errors and fixes, and changes of files stay whole; the rest becomes a summary",
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

fn is_key(context: &Context<'_>, item: &Visible) -> bool {
    if is_of_person(context, item) {
        return true;
    }
    let text = said(context, item);
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| has_word(&lower, word));
    let decides = has(&["decision", "decided", "decide", "chose", "instead", "决定", "选择", "采用"]);
    decides && text.chars().count() > DECISION
        || has(&[
            "error",
            "errors",
            "bug",
            "bugs",
            "fix",
            "fixes",
            "fixed",
            "failed",
            "failure",
            "exception",
            "错误",
            "修复",
            "异常",
            "失败",
        ])
        || has(&["completed", "finished", "all done", "任务完成", "已完成", "开始任务"])
        || item.spans.iter().flat_map(|span| span.range()).any(|at| changes(context, Position(at as u32)))
}

/// Failed, or changed a file.
fn changes(context: &Context<'_>, at: Position) -> bool {
    let Some(message) = context.message(at) else { return false };
    message.blocks().iter().any(|block| match block {
        Block::ToolCall(call) => {
            matches!(context.profile.aliases.kind_of(call), ToolKind::Edit | ToolKind::Write)
        }
        Block::ToolResult(result) => exit_status(result).map_or(result.is_error, |status| status != 0),
        _ => false,
    })
}
