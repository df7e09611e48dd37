//! Units are scored by what they say; those of little score become a summary (seed 004).

use super::old_results::digests;
use super::{Context, FoldPlan, Proposal, Strategy, Visible, joined};
use crate::conversation::log::{Position, Span};
use crate::conversation::message::Role;
use crate::conversation::step::UnitKind;
use crate::size::tokens::Tokens;

/// Units of little score become a summary.
pub static IMPORTANCE: Strategy = Strategy {
    name: "importance",
    says: "what scores little becomes a summary; older results of the rest become digests",
    propose: |context: &Context<'_>| {
        let visible = context.visible();
        if context.messages(&visible) < LEAST {
            return Vec::new();
        }
        let open = visible.iter().filter(|item| item.kind.is_some() && !context.stays(item));
        let scored: Vec<(u32, &Visible)> = open.map(|item| (score(context, item), item)).collect();
        let threshold = context.profile.constants.importance_score_threshold;
        let mut low: Vec<usize> = (0..scored.len()).filter(|at| scored[*at].0 < threshold).collect();
        low.truncate(low.len().saturating_sub(context.profile.constants.keep_recent_others));
        // What a summary takes is not gone.
        let wanted = context.excess + context.excess.scaled(250_000);
        let mut gone: Tokens = low.iter().map(|at| scored[*at].1.tokens).sum();
        let mut folded = vec![false; scored.len()];
        low.iter().for_each(|at| folded[*at] = true);
        let mut order: Vec<usize> = (0..scored.len()).filter(|at| !folded[*at]).collect();
        order.sort_by_key(|at| (scored[*at].0, *at));
        // The newest stay: there must be something to go on from.
        let newest = scored.len().saturating_sub(context.profile.constants.keep_recent_others);
        for at in order {
            if gone > wanted {
                break;
            }
            if scored[at].0 >= threshold && at < newest {
                gone += scored[at].1.tokens;
                low.push(at);
                folded[at] = true;
            }
        }
        let kept = (0..scored.len()).filter(|at| !folded[*at]).map(|at| scored[at].1);
        let steps = kept.filter(|item| item.kind == Some(UnitKind::Step));
        let ats: Vec<usize> =
            steps.flat_map(|item| item.spans.iter().flat_map(|span| span.range())).collect();
        let mut proposals = digests(context, ats.into_iter());
        let spans: Vec<Span> = low.iter().flat_map(|at| scored[*at].1.spans.iter().copied()).collect();
        if low.len() > 1 {
            proposals.push(Proposal::Fold(FoldPlan::of(context, joined(spans))));
        }
        proposals
    },
    ..Strategy::PLAIN
};

/// So many messages are needed.
pub(super) const LEAST: usize = 10;

/// Words that say that something matters; each counts once.
const WORDS: [&[&str]; 18] = [
    &["error", "errors", "错误"],
    &["failure", "failed", "失败"],
    &["exception", "exceptions", "异常"],
    &["bug", "bugs", "缺陷"],
    &["fix", "fixes", "fixed", "修复"],
    &["done", "完成"],
    &["success", "successfully", "成功"],
    &["task", "任务"],
    &["goal", "目标"],
    &["decision", "决定", "决策"],
    &["plan", "计划"],
    &["problem", "problems", "问题"],
    &["solve", "solved", "解决"],
    &["key", "关键"],
    &["important", "重要"],
    &["must", "必须"],
    &["note", "注意"],
    &["warning", "警告"],
];
const ERROR_OR_FIX: [&str; 11] =
    ["error", "failure", "failed", "exception", "bug", "fix", "fixed", "错误", "失败", "异常", "修复"];
const COMPLETION: [&str; 7] = ["done", "completed", "finished", "success", "完成", "成功", "结束"];
const MUST: [&str; 8] = ["<pin>", "important", "key", "must", "重要", "关键", "必须", "固定"];

/// 0 to 10, in tenths.
fn score(context: &Context<'_>, item: &Visible) -> u32 {
    let text = said(context, item).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| has_word(&text, word));
    let mut score: i32 = if is_of_person(context, item) { 50 } else { 20 };
    score += 5 * WORDS.iter().filter(|words| has(words)).count() as i32;
    score += if has(&ERROR_OR_FIX) { 20 } else { 0 };
    score += if has(&COMPLETION) { 15 } else { 0 };
    score += if has(&MUST) { 30 } else { 0 };
    score -= if text.trim_end().chars().count() < 50 { 5 } else { 0 };
    score.clamp(0, 100) as u32
}

/// What a person or the model says in a unit: not what tools print.
pub(super) fn said(context: &Context<'_>, item: &Visible) -> String {
    let mut said = String::new();
    for at in item.spans.iter().flat_map(|span| span.range()) {
        let Some(message) = context.message(Position(at as u32)) else { continue };
        let texts = message.texts().filter(|_| message.role() == Role::Assistant);
        for text in message.words().chain(texts) {
            said.push_str(text);
            said.push('\n');
        }
    }
    said
}

/// Whether a person sent this unit. What the host puts in the person's place is not the person's.
pub(super) fn is_of_person(context: &Context<'_>, item: &Visible) -> bool {
    let mut messages = item.spans.iter().flat_map(|span| span.range());
    item.kind == Some(UnitKind::User)
        && messages
            .any(|at| context.message(Position(at as u32)).is_some_and(|message| !message.is_attachment()))
}

/// Whether a word is there, as a whole word; Chinese has no spaces.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !word.is_ascii()
            || !is_letter(text[..at].chars().next_back())
                && !is_letter(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::has_word;

    // covers: P-TYPE P-IMP
    #[test]
    fn whole_words_only() {
        assert!(has_word("run rg in src", "rg") && !has_word("arguments", "rg"));
        assert!(has_word("已修复错误", "修复") && !has_word("keyboard", "key"));
    }
}
