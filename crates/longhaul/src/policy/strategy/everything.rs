//! The whole history becomes one summary: in the system layer (seed 000), or in its place, with
//! everything that must be kept (seed 004).

use super::{Context, FoldPlan, Proposal, Strategy, joined};
use crate::conversation::log::Span;
use crate::edits::edit::Placement;
use crate::policy::task::Task;
use crate::summary::FULL;

/// The words of a full summary, at most.
const FULL_WORDS: usize = 500;
/// The words of a full summary of a task about code, at most.
const FULL_WORDS_OF_CODE: usize = 800;

/// The whole history becomes a hint in the system layer.
pub static REBUILD: Strategy = Strategy {
    name: "rebuild",
    says: "the whole history becomes one summary in the system layer",
    propose: |context| {
        let plan = |spans| FoldPlan { placement: Placement::SystemHint, ..FoldPlan::of(context, spans) };
        everything(context).map(|spans| Proposal::Fold(plan(spans))).into_iter().collect()
    },
    ..Strategy::PLAIN
};

/// The whole history becomes a full summary.
pub static FULL_SUMMARY: Strategy = Strategy {
    name: "full-summary",
    says: "the whole history becomes a full summary",
    propose: |context| {
        let code = context.task() == Task::Code;
        let words = Some(if code { FULL_WORDS_OF_CODE } else { FULL_WORDS });
        let plan = |spans| FoldPlan { template: &FULL, words, ..FoldPlan::of(context, spans) };
        everything(context).map(|spans| Proposal::Fold(plan(spans))).into_iter().collect()
    },
    full: true,
    ..Strategy::PLAIN
};

/// All that may go, earlier summaries included.
fn everything(context: &Context<'_>) -> Option<Vec<Span>> {
    let visible = context.visible();
    let all = visible.iter().filter(|item| !context.stays(item));
    // One summary alone is not worth another.
    let new = all.clone().filter(|item| item.kind.is_some()).count();
    let spans: Vec<Span> = all.flat_map(|item| item.spans.iter().copied()).collect();
    (new > 0).then(|| joined(spans))
}
