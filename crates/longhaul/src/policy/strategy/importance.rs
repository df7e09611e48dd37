//! Units are scored by what they say; those of little score become a summary (seed 004).

use super::old_results::digests_and_savings;
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
        let units: Vec<Scored<'_>> = open.map(|item| Scored { score: score(context, item), item }).collect();
        let Chosen { low, rest } = choose(context, &units);
        let kept = rest.iter().map(|at| units[*at].item).filter(|item| item.kind == Some(UnitKind::Step));
        let (digests, saved) = digests_and_savings(context, kept.flat_map(messages_of));
        let gone: Tokens = low.iter().map(|at| units[*at].item.tokens).sum();
        let more = next_lowest(context, &units, &rest, gone + saved);
        let folded: Vec<&Visible> = low.iter().chain(&more).map(|at| units[*at].item).collect();
        let stays = |proposal: &Proposal| match proposal {
            Proposal::Inside(kind, _) => !kind.spans().iter().any(|span| takes(&folded, *span)),
            Proposal::Fold(_) | Proposal::Hide(_) => true,
        };
        let mut proposals: Vec<Proposal> = digests.into_iter().filter(stays).collect();
        if folded.len() > 1 {
            let spans = folded.iter().flat_map(|item| item.spans.iter().copied()).collect();
            proposals.push(Proposal::Fold(FoldPlan::of(context, joined(spans))));
        }
        proposals
    },
    ..Strategy::PLAIN
};

/// A unit with its score, in tenths.
struct Scored<'a> {
    score: u32,
    item: &'a Visible,
}

/// Which units become a summary for their score, and which do not, by number.
struct Chosen {
    low: Vec<usize>,
    rest: Vec<usize>,
}

/// Units under the threshold go, but for the newest of them.
fn choose(context: &Context<'_>, units: &[Scored<'_>]) -> Chosen {
    let constants = &context.profile.constants;
    let is_low = |at: &usize| units[*at].score < constants.importance_score_threshold;
    let mut low: Vec<usize> = (0..units.len()).filter(is_low).collect();
    low.truncate(low.len().saturating_sub(constants.keep_recent_others));
    let rest = (0..units.len()).filter(|at| low.binary_search(at).is_err()).collect();
    Chosen { low, rest }
}

/// The units that go too while too little is gone: the lowest score first, and the oldest of equals.
fn next_lowest(context: &Context<'_>, units: &[Scored<'_>], rest: &[usize], mut gone: Tokens) -> Vec<usize> {
    let constants = &context.profile.constants;
    // What a summary takes is not gone.
    let wanted = context.excess + context.excess.scaled(250_000);
    // The newest stay: there must be something to go on from.
    let newest = units.len().saturating_sub(constants.keep_recent_others);
    let mut order: Vec<usize> = rest.iter().copied().filter(|at| *at < newest).collect();
    order.retain(|at| units[*at].score >= constants.importance_score_threshold);
    order.sort_by_key(|at| (units[*at].score, *at));
    let is_needed = |at: &usize| {
        let more = gone <= wanted;
        gone += units[*at].item.tokens;
        more
    };
    order.into_iter().take_while(is_needed).collect()
}

fn messages_of(item: &Visible) -> impl Iterator<Item = usize> {
    item.spans.iter().flat_map(|span| span.range())
}

/// True if one of the units holds this.
fn takes(units: &[&Visible], span: Span) -> bool {
    units.iter().any(|item| item.spans.iter().any(|own| own.overlaps(span)))
}

/// So many messages are needed.
pub(super) const LEAST: usize = 10;

/// The forms of one keyword, English and Chinese: together they count once.
type Keyword = &'static [&'static str];

const ERROR: Keyword = &["error", "errors", "错误"];
const FAILURE: Keyword = &["failure", "failures", "failed", "失败"];
const EXCEPTION: Keyword = &["exception", "exceptions", "异常"];
const BUG: Keyword = &["bug", "bugs", "缺陷"];
const FIX: Keyword = &["fix", "fixes", "fixed", "修复"];
const DONE: Keyword = &["done", "完成"];
const ENDED: Keyword = &["completed", "finished", "结束"];
const SUCCESS: Keyword = &["success", "successful", "successfully", "成功"];
const KEY: Keyword = &["key", "关键"];
const IMPORTANT: Keyword = &["important", "重要"];
const MUST: Keyword = &["must", "必须"];
const PIN: Keyword = &["<pin>", "固定"];

/// Words that say that something matters.
const KEYWORDS: [Keyword; 18] = [
    ERROR,
    FAILURE,
    EXCEPTION,
    BUG,
    FIX,
    DONE,
    SUCCESS,
    &["task", "tasks", "任务"],
    &["goal", "goals", "目标"],
    &["decision", "decisions", "决定", "决策"],
    &["plan", "plans", "计划"],
    &["problem", "problems", "问题"],
    &["solve", "solves", "solved", "解决"],
    KEY,
    IMPORTANT,
    MUST,
    &["note", "notes", "注意"],
    &["warning", "warnings", "警告"],
];
/// Something went wrong, or was put right.
pub(super) const ERROR_OR_FIX: [Keyword; 5] = [ERROR, FAILURE, EXCEPTION, BUG, FIX];
/// Something came to its end.
const COMPLETION: [Keyword; 3] = [DONE, ENDED, SUCCESS];
/// Somebody says that it matters.
const EMPHASIS: [Keyword; 4] = [PIN, IMPORTANT, KEY, MUST];

/// Points of a unit, in tenths.
const OF_PERSON: i32 = 50;
const OF_MODEL: i32 = 20;
const FOR_KEYWORD: i32 = 5;
const FOR_ERROR_OR_FIX: i32 = 20;
const FOR_COMPLETION: i32 = 15;
const FOR_EMPHASIS: i32 = 30;
const FOR_LITTLE_TEXT: i32 = -5;
/// A text of fewer characters is little.
const LITTLE_TEXT: usize = 50;

/// 0 to 10, in tenths.
fn score(context: &Context<'_>, item: &Visible) -> u32 {
    let text = said(context, item).to_lowercase();
    let points = |keywords: &[Keyword], points: i32| if has_any(&text, keywords) { points } else { 0 };
    let mut score = if is_of_person(context, item) { OF_PERSON } else { OF_MODEL };
    score += FOR_KEYWORD * KEYWORDS.iter().filter(|keyword| has_any(&text, &[**keyword])).count() as i32;
    score += points(&ERROR_OR_FIX, FOR_ERROR_OR_FIX);
    score += points(&COMPLETION, FOR_COMPLETION);
    score += points(&EMPHASIS, FOR_EMPHASIS);
    score += if text.trim_end().chars().count() < LITTLE_TEXT { FOR_LITTLE_TEXT } else { 0 };
    score.clamp(0, 100) as u32
}

/// Whether any form of these keywords is in a text, which is in lower case.
pub(super) fn has_any(text: &str, keywords: &[Keyword]) -> bool {
    keywords.iter().copied().flatten().any(|word| has_word(text, word))
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

/// Whether a word is there, as a whole word; Chinese has no spaces, and a mark ends by itself.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let (first, last) = (word.chars().next(), word.chars().next_back());
    text.match_indices(word).any(|(at, _)| {
        let joined_before = is_letter(first) && is_letter(text[..at].chars().next_back());
        let joined_behind = is_letter(last) && is_letter(text[at + word.len()..].chars().next());
        !joined_before && !joined_behind
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
        assert!(has_word("mind<pin>the port", "<pin>") && !has_word("monkey", "key"));
    }
}
