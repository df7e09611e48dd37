//! Folds and hides: runs of messages that become a summary or a marker, and what must be restated.

use super::Session;
use super::editing::Replacement;
use crate::conversation::log::{Position, Span};
use crate::conversation::message::Block;
use crate::edits::edit::{EditId, EditKind, Why};
use crate::edits::guard::Refusal;
use crate::edits::voice::Voice;
use crate::policy::strategy::FoldPlan;
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;
use crate::summary::covered::Covered;
use crate::summary::known::Known;
use crate::summary::{self, Around, Asked, FULL, Form, Language, Material, Restated, SummaryBill, Written};
use crate::text::names::{names, names_in_json};
use crate::view::Source;
use crate::view::keep::{self, KeepItem, KeepKey, Kept};

/// A word of a summary has at most so many tokens, about: paths and names are long.
pub(super) const TOKENS_OF_WORD: u64 = 3;

/// Opens what is said of requests that stand in the view and are answered where it does not show.
const ANSWERED: &str = "⟦Answered already:⟧";
/// What stands in the place of what was cut without one.
pub(super) const NO_SUMMARY: &str = "Summary generation timed out, keeping recent history only.";

impl Session {
    /// The language of the conversation.
    pub(super) fn language(&self) -> Language {
        /// Its start tells.
        const LOOKED_AT: usize = 2_000;
        Language::of(self.log().messages().iter().take(LOOKED_AT).map(|message| &**message))
    }

    /// How long a summary may be: its share of the window, and less than a third of what it
    /// stands for.
    pub(super) fn summary_room(&self, before: Tokens) -> Tokens {
        let most = match self.profile.dial {
            // Lines pay for themselves.
            Some(_) => Tokens(before.0 / 10 * 12),
            None => Tokens(before.0 / 3),
        };
        self.budget().shared.percent(self.profile.summary).min(most)
    }

    /// Folds runs into a summary that code writes.
    pub(super) fn fold(&mut self, plan: FoldPlan, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        self.fold_as(plan, None, None, strategy, why)
    }

    /// Folds runs into a summary: the one given, or one that code writes. `bill` is what it cost to ask for
    /// one.
    pub(super) fn fold_as(
        &mut self,
        plan: FoldPlan,
        written: Option<Written>,
        bill: Option<SummaryBill>,
        strategy: &str,
        why: Why,
    ) -> Result<EditId, Refusal> {
        let FoldPlan { spans, placement, template, limit, words, by_code, chain: _ } = plan;
        let covered = self.covered(&spans);
        let original = covered.original();
        let (handle, before) = (original.handle(), self.tokens(self.shown_size(&spans)));
        let keep = self.keep.restated_by(&spans, self.ledger(), *template == FULL);
        let kept: Vec<Kept> = keep.iter().map(Kept::of).collect();
        // What is restated whole anyway is not what the summary stands for.
        let restated: Vec<KeepItem> = keep.iter().filter(|item| item.source.is_some()).cloned().collect();
        let told = before - self.tokens(self.meter().text(&keep::render(&restated)));
        let room = match words {
            Some(words) => Tokens(words as u64 * TOKENS_OF_WORD).min(Tokens(told.0 / 2)),
            None => limit.map_or_else(|| self.summary_room(told), |limit| limit.min(before)),
        };
        // What the tail holds and the fold takes in leaves the tail.
        let moved: Vec<KeepItem> = keep
            .iter()
            .filter(|item| item.source.is_none() && !keep::is_shown(item, self.log(), self.ledger()))
            .cloned()
            .collect();
        let before = before + self.tokens(self.meter().text(&keep::render(&moved)));
        let write = |limit: usize| {
            // The goal is restated whole: once is enough.
            let goal = keep.iter().find(|item| item.key == KeepKey::Goal).and_then(|item| item.source);
            let material = covered.material(self.ledger());
            let is_goal = |told: &&Material| matches!(told, Material::Message(at, _) if goal == Some(*at));
            let material: Vec<&Material> = material.iter().filter(|told| !is_goal(told)).collect();
            let form = Form {
                template,
                language: self.language(),
                limit,
                words,
                goal: keep.iter().any(|item| item.key == KeepKey::Goal).then(|| template.restates()),
                focus: self.state.progress.focus.as_deref(),
                aliases: &self.profile.aliases,
                choose: self.profile.choose(),
                uses: &self.uses,
                known: Known::of(self.log(), &spans),
            };
            summary::write(&material, form, self.names_after(&spans))
        };
        let written = written.unwrap_or_else(|| {
            // The neutral measure of a token; what is over is refused or folded again.
            let written = write(usize::try_from(room.0).unwrap_or(usize::MAX).saturating_mul(3));
            // Where every line is worth its bytes, or a token has few of them, the best ones stay.
            match self.profile.dial.and_then(|_| self.shorter(&written, told)) {
                Some(limit) => write(limit),
                None => written,
            }
        });
        if written.says_nothing() {
            // Summaries that are merged say something already.
            return match by_code {
                true => Err(Refusal::Nothing("the summary would say nothing")),
                false => self.hide(spans, strategy, why),
            };
        }
        let (label, answered) = (handle.short(), self.answered(&spans, &written.text));
        let around = Around {
            restated: Restated { text: &keep::render(&keep), place: template.restates() },
            answered: answered.trim_start(),
            recall: &self.state.recall_by.says(&label),
            label: &label,
            count: covered.count(),
        };
        let (text, summary) = written.into_fold(around);
        let summary = match self.voice_of_quotes() {
            Voice::User => summary,
            Voice::System => summary.undivided(),
        };
        let mut depends = covered.folds();
        depends.extend(keep::hiders_of(&kept, &spans, self.ledger()));
        let summary = Some(summary);
        let kind = EditKind::Fold { spans, placement, kept, text: text.into(), summary };
        let voice = self.voice_of_folds();
        let made = Replacement { kind, voice, before, original: handle, depends, summary: bill };
        self.replace_runs(made, strategy, why)
    }

    /// The bytes that a summary may have, where it is hardly shorter than what it stands for.
    fn shorter(&self, written: &Written, told: Tokens) -> Option<usize> {
        let (size, most) = (self.tokens(self.meter().text(&written.text)), told.percent(60));
        let bytes = u128::try_from(written.text.len()).ok()? * u128::from(most.0) / u128::from(size.0.max(1));
        (size > told.percent(90)).then(|| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Names that are mentioned behind these runs, as far as it is shown.
    fn names_after(&self, spans: &[Span]) -> impl Iterator<Item = &str> {
        let end = spans.last().map_or(Position(0), |span| span.end);
        let after = self
            .state
            .view
            .parts()
            .iter()
            .filter(move |part| matches!(part.source, Source::Message(at) if at >= end));
        let texts = after.flat_map(|part| part.message.blocks()).filter_map(|block| match block {
            Block::Text(b) => Some(names(&b.text)),
            Block::ToolCall(b) => Some(names_in_json(b.arguments.as_str())),
            Block::ToolResult(b) => Some(names(&b.text)),
            _ => None,
        });
        texts.flatten()
    }

    /// Hides runs that nobody summarised.
    pub(super) fn cut(&mut self, spans: Vec<Span>, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        self.hide_as(spans, NO_SUMMARY, strategy, why)
    }

    pub(super) fn hide(&mut self, spans: Vec<Span>, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        self.hide_as(spans, "", strategy, why)
    }

    /// Hides runs, and says why.
    fn hide_as(&mut self, spans: Vec<Span>, says: &str, strategy: &str, why: Why) -> Result<EditId, Refusal> {
        let covered = self.covered(&spans);
        let original = covered.original();
        // What must be kept and is shown nowhere else moves to the tail.
        let items = self.keep.restated_by(&spans, self.ledger(), false).into_iter();
        let moved: Vec<KeepItem> =
            items.filter(|item| keep::is_shown(item, self.log(), self.ledger())).collect();
        let moved = self.tokens(self.meter().text(&keep::render(&moved)));
        let (handle, before) = (original.handle(), self.tokens(self.shown_size(&spans)) - moved);
        let space = if says.is_empty() { "" } else { " " };
        let recall = self.state.recall_by.says(&handle.short());
        let mut text = format!("⟦{says}{space}{} earlier messages hidden; {recall}⟧", covered.count());
        let answered = self.answered(&spans, "");
        // Words of others gain no rank.
        let voice = if answered.is_empty() { self.voice_of_folds() } else { self.voice_of_quotes() };
        text.push_str(&answered);
        let kind = EditKind::Hide { spans, text: text.into() };
        let made = Replacement { kind, voice, before, original: handle, depends: Vec::new(), summary: None };
        self.replace_runs(made, strategy, why)
    }

    /// Says of requests that are answered inside these runs, and stand elsewhere, that they are done. `said`
    /// is what is said of these runs already.
    pub(super) fn answered(&self, spans: &[Span], said: &str) -> String {
        let requests = self.log().answered_by(spans).into_iter();
        let lines = requests.filter_map(|at| Asked::of(self.log(), at).done());
        let missing: Vec<String> = lines.filter(|line| !said.contains(line)).collect();
        if missing.is_empty() { String::new() } else { format!("\n{ANSWERED}\n{}", missing.join("\n")) }
    }

    /// What these runs hold.
    pub(super) fn covered(&self, spans: &[Span]) -> Covered {
        Covered::of(self.log(), self.ledger(), spans)
    }

    /// The size of what the view shows of these runs.
    pub(super) fn shown_size(&self, spans: &[Span]) -> Measure {
        let inside = |at: Position| spans.iter().any(|span| span.contains(at));
        let shown = self.state.view.parts().iter().filter(|part| match part.source {
            Source::Message(_) | Source::Edit(_) => inside(part.source.start(self.ledger())),
            Source::HostNote(_) => {
                part.source.start(self.ledger()).0.checked_sub(1).map(Position).is_some_and(inside)
            }
            Source::Note | Source::Rules | Source::Tail => false,
        });
        shown.map(|part| part.measure).sum()
    }
}
