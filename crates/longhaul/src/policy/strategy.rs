//! Strategies: each proposes edits and knows nothing of providers, stores or clocks. One file
//! each, and one row of this table. A profile puts them in order; every ladder ends alike.

mod common_end;
mod drop_oldest;
mod everything;
mod finished_results;
mod fold;
mod importance;
mod increments;
mod key_events;
mod newest_results;
mod old_results;
mod old_thinking;
mod rounds;
mod sliding_window;

use std::fmt;
use std::sync::Arc;

use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Message, Role, ToolCall, ToolResult};
use crate::conversation::step::UnitKind;
use crate::edits::archive::{Handle, Original};
use crate::edits::edit::{EditId, EditKind, Placement, Why};
use crate::edits::ledger::Ledger;
use crate::policy::profile::Profile;
use crate::policy::task::{Task, Work};
use crate::size::budget::Budget;
use crate::size::meter::{Measure, Meter};
use crate::size::tokens::Tokens;
use crate::summary::{Asked, Template};
use crate::text::names::{NameSet, names, names_in_json};
use crate::view::{Source, View};

pub use common_end::{CUT_NEWEST, DIGEST_RUNNING, HIDE_OLD, HIDE_OPENING};
pub use drop_oldest::DROP_OLDEST;
pub use everything::{FULL_SUMMARY, REBUILD};
pub use finished_results::FINISHED_RESULTS;
pub use fold::{FOLD_STEPS, FOLD_TURNS};
pub use importance::IMPORTANCE;
pub use increments::INCREMENTS;
pub use key_events::KEY_EVENTS;
pub use newest_results::NEWEST_RESULTS;
pub use old_results::OLD_RESULTS;
pub use old_thinking::OLD_THINKING;
pub use rounds::{ARCHIVE_KEPT, ARCHIVE_ROUNDS, FOLD_RUNNING, MERGE_SUMMARIES};
pub use sliding_window::SLIDING_WINDOW;

/// A way to make a view smaller.
pub struct Strategy {
    /// Its name.
    pub name: &'static str,
    /// What it does, for people.
    pub says: &'static str,
    /// What it makes is the full summary of the history.
    pub(crate) full: bool,
    /// It cuts texts and does no more: what it shortened may still become a digest.
    pub(crate) cuts: bool,
    /// It takes what is old, in the last resort: it makes room for the next steps too.
    pub(crate) takes_old: bool,
    /// It folds what is finished: what is done when a fold pays back.
    pub(crate) folds: bool,
    /// When no summary comes, the extractor writes it whatever the profile says: this is one of many,
    /// or of what must be kept.
    pub(crate) extracts: bool,
    pub(crate) propose: fn(&Context<'_>) -> Vec<Proposal>,
}

impl Strategy {
    /// What most strategies are.
    const PLAIN: Self = Self {
        name: "",
        says: "",
        full: false,
        cuts: false,
        takes_old: false,
        folds: false,
        extracts: false,
        propose: |_| Vec::new(),
    };

    /// The strategy of this name, or the one that has taken its place: journals name those of their time.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = if name == "fold-kept-rounds" { FOLD_RUNNING.name } else { name };
        STRATEGIES.iter().find(|strategy| strategy.name == name).copied()
    }
}

impl PartialEq for Strategy {
    /// Each is one row of the table: its name is its own.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All strategies.
pub static STRATEGIES: [&Strategy; 21] = [
    &OLD_RESULTS,
    &NEWEST_RESULTS,
    &FINISHED_RESULTS,
    &OLD_THINKING,
    &FOLD_TURNS,
    &FOLD_STEPS,
    &DROP_OLDEST,
    &ARCHIVE_ROUNDS,
    &MERGE_SUMMARIES,
    &ARCHIVE_KEPT,
    &FOLD_RUNNING,
    &SLIDING_WINDOW,
    &IMPORTANCE,
    &KEY_EVENTS,
    &INCREMENTS,
    &FULL_SUMMARY,
    &REBUILD,
    &DIGEST_RUNNING,
    &HIDE_OLD,
    &CUT_NEWEST,
    &HIDE_OPENING,
];

/// The end of every ladder, for the hard limit alone: digest older results of the running
/// turn, hide what is old, cut the newest step, hide the opening.
pub(crate) static COMMON_END: [&Strategy; 4] = [&DIGEST_RUNNING, &HIDE_OLD, &CUT_NEWEST, &HIDE_OPENING];

/// What a strategy would do.
#[derive(Debug)]
pub(crate) enum Proposal {
    /// An edit inside a message.
    Inside(EditKind, Original),
    /// Runs become a summary, which the session has written.
    Fold(FoldPlan),
    /// These runs become a marker.
    Hide(Vec<Span>),
}

/// A summary that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct FoldPlan {
    pub(crate) spans: Vec<Span>,
    pub(crate) placement: Placement,
    pub(crate) template: &'static Template,
    /// Another limit than the profile's.
    pub(crate) limit: Option<Tokens>,
    /// A limit in words, in the place of the profile's.
    pub(crate) words: Option<usize>,
    /// No model is asked.
    pub(crate) by_code: bool,
    /// Folds before it that may be taken in, in their order.
    pub(crate) chain: Vec<Link>,
}

/// A fold that a new one may take in, with all that stands between them.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) fold: EditId,
    /// What the new fold then stands for.
    pub(crate) spans: Vec<Span>,
}

impl FoldPlan {
    /// In place, in the form that the profile has for finished turns or for running steps.
    fn of(context: &Context<'_>, spans: Vec<Span>) -> Self {
        let running = context.log.running_turn().map_or(context.log.end(), |turn| turn.start);
        let templates = context.profile.templates;
        let finished = spans.iter().all(|span| span.end <= running);
        let template = if finished { templates.finished } else { templates.running };
        Self {
            spans,
            placement: Placement::InPlace,
            template,
            limit: None,
            words: None,
            by_code: false,
            chain: Vec::new(),
        }
    }
}

/// How far the rules of a profile have come: what they need not look at again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RulesSeen {
    /// The end of the log then.
    pub(crate) end: Position,
    /// Where its newest step began: the guard kept it whole.
    step: Position,
    /// Where its running turn began: the guard kept its input whole, and its sealed thinking.
    running: Position,
}

impl RulesSeen {
    pub(crate) fn all_of(log: &Log) -> Self {
        let end = log.end();
        let step = log.newest_step().map_or(end, |step| step.span.start);
        Self { end, step, running: running(log) }
    }

    /// Before this message the guard kept nothing whole then that it would let go now.
    pub(crate) fn done(&self, log: &Log) -> Position {
        if running(log) == self.running { self.step } else { self.running.min(self.step) }
    }
}

/// Where the running turn begins.
fn running(log: &Log) -> Position {
    log.running_turn().map_or(log.end(), |turn| turn.start)
}

/// What a strategy may look at.
pub(crate) struct Context<'a> {
    pub(crate) log: &'a Log,
    pub(crate) ledger: &'a Ledger,
    pub(crate) view: &'a View,
    pub(crate) meter: &'a Meter,
    /// What each message of the log counts.
    pub(crate) sizes: &'a [Measure],
    pub(crate) budget: &'a Budget,
    pub(crate) profile: &'a Profile,
    /// What rules have looked at before.
    pub(crate) rules_seen: RulesSeen,
    /// Messages before this one are the opening, and stay.
    pub(crate) kept_opening: Position,
    /// The kind of work, if the host says so.
    pub(crate) declared: Option<Task>,
    /// What the log shows of it.
    pub(crate) work: &'a Work,
    /// The size of the request as it stands.
    pub(crate) size: Tokens,
    /// A summary that this strategy asked for came in the same compaction: it goes on.
    pub(crate) goes_on: bool,
    /// A person or the model asked for it.
    pub(crate) asked: bool,
    /// How much must go.
    pub(crate) excess: Tokens,
    /// What the newest part may have at most, where a limit demands that it is less than the profile's.
    pub(crate) newest: Option<Tokens>,
    /// What a user took back may be taken again: the hard limit demands it.
    pub(crate) takes_held: bool,
}

/// What a tool result says.
pub(crate) struct ResultText<'a> {
    pub(crate) text: &'a str,
    original: Option<Original>,
    /// The text is all there is.
    alone: bool,
}

impl ResultText<'_> {
    /// The handle of all that the result says. Reads all of it.
    pub(crate) fn handle(&self) -> Handle {
        match &self.original {
            Some(original) if !self.alone => original.handle(),
            _ => Handle::of(self.text),
        }
    }

    /// A shorter text in its place.
    pub(crate) fn digested(self, at: Position, block: usize, text: String) -> Option<Proposal> {
        let kind = EditKind::Digest { at, block, text: text.into() };
        self.original.map(|original| Proposal::Inside(kind, original))
    }
}

/// A unit of the log, or a fold, as the view shows it.
#[derive(Debug, Clone)]
pub(crate) struct Visible {
    pub(crate) source: Source,
    /// `None` for a fold.
    pub(crate) kind: Option<UnitKind>,
    pub(crate) spans: Vec<Span>,
    pub(crate) tokens: Tokens,
}

impl Visible {
    /// How many messages of the conversation it is: none for a fold, and none for a system message,
    /// which stays whatever is counted.
    fn messages(&self) -> usize {
        match self.kind {
            None | Some(UnitKind::System) => 0,
            Some(_) => self.spans.iter().map(|span| span.len()).sum(),
        }
    }
}

impl Context<'_> {
    /// What the view shows of the history, in order.
    pub(crate) fn visible(&self) -> Vec<Visible> {
        let mut visible: Vec<Visible> = Vec::new();
        let mut measures: Vec<Measure> = Vec::new();
        for part in self.view.parts() {
            let (source, kind, spans) = match part.source {
                Source::Message(at) => match self.log.unit_of(at) {
                    Some(unit) => (Source::Message(unit.span.start), Some(unit.kind), vec![unit.span]),
                    None => continue,
                },
                Source::Edit(id) => match self.ledger.get(id) {
                    Some(edit) => (part.source, None, edit.kind.spans()),
                    None => continue,
                },
                Source::Note | Source::Rules | Source::HostNote(_) | Source::Tail => continue,
            };
            match (visible.last(), measures.last_mut()) {
                (Some(last), Some(measure)) if last.source == source => *measure += part.measure,
                _ => {
                    visible.push(Visible { source, kind, spans, tokens: Tokens::ZERO });
                    measures.push(part.measure);
                }
            }
        }
        for (item, measure) in visible.iter_mut().zip(measures) {
            item.tokens = self.meter.tokens(measure).tokens;
        }
        visible
    }

    /// The kind of work: what the host says, else what the log shows.
    pub(crate) fn task(&self) -> Task {
        self.declared.unwrap_or_else(|| self.work.task())
    }

    /// True if the request is still where a compaction starts.
    pub(crate) fn is_over_trigger(&self) -> bool {
        self.profile.triggers.is_reached(self.size, self.budget)
    }

    /// How long the summary of so much may be: its share of the window, and less than a third of what it
    /// stands for.
    pub(crate) fn longest_summary(&self, of: Tokens) -> Tokens {
        self.budget.shared.percent(self.profile.summary).min(Tokens(of.0 / 3))
    }

    /// How many of the last ones are the newest part that stays, by its tokens.
    pub(crate) fn recent(&self, visible: &[Visible]) -> usize {
        let mut room = self.profile.newest_part(self.budget).min(self.newest.unwrap_or(Tokens(u64::MAX)));
        if self.asked {
            // Who asks wants something gone, however short the conversation is.
            room = room.min(Tokens(self.size.0 / 4));
        }
        let most = if self.profile.keep_steps == 0 { usize::MAX } else { self.profile.keep_steps };
        let (mut sum, mut steps) = (Tokens::ZERO, 0);
        visible
            .iter()
            .rev()
            .take_while(|item| {
                sum += item.tokens;
                steps += usize::from(item.kind == Some(UnitKind::Step));
                sum <= room && steps <= most
            })
            .count()
    }

    /// True if this must stay: a unit that holds what no edit may take, the opening, and what stays
    /// whole.
    pub(crate) fn stays(&self, item: &Visible) -> bool {
        self.is_opening(item) || self.stays_anyway(item)
    }

    /// The same where the opening may go too.
    pub(crate) fn stays_anyway(&self, item: &Visible) -> bool {
        item.spans.iter().any(|span| self.log.stays_in(*span).is_some()) || self.stays_whole(item)
    }

    /// True for a message of the opening that stays. A summary that has taken some of it is none.
    fn is_opening(&self, item: &Visible) -> bool {
        item.kind.is_some() && item.spans.iter().any(|span| span.start < self.kept_opening)
    }

    /// True if nothing of this may be edited: the current input, the newest step, what a user took
    /// back.
    pub(crate) fn stays_whole(&self, item: &Visible) -> bool {
        let protected = self.log.protected();
        let hits = |span: &Span| protected.clone().any(|kept| span.overlaps(kept));
        let open = self.log.waiting();
        let waits = |span: &Span| open.is_some_and(|open| span.end > open);
        let held = |span: &Span| !self.takes_held && self.ledger.holds(*span);
        item.spans.iter().any(|span| hits(span) || waits(span) || held(span))
    }

    pub(crate) fn message(&self, at: Position) -> Option<&Arc<Message>> {
        self.log.get(at)
    }

    /// How many messages of the log are shown, without system messages.
    pub(crate) fn messages(&self, visible: &[Visible]) -> usize {
        visible.iter().map(Visible::messages).sum()
    }

    /// How many of the last ones hold the newest messages, at least so many.
    pub(crate) fn newest_messages(&self, visible: &[Visible], count: usize) -> usize {
        let mut messages = 0;
        let newest = visible.iter().rev().take_while(|item| {
            let more = messages < count;
            messages += item.messages();
            more
        });
        newest.count()
    }

    /// True if a digest stands for this block that was not a mere cut.
    pub(crate) fn is_digested(&self, at: Position, block: usize) -> bool {
        self.ledger.inside(at).iter().filter_map(|id| self.ledger.get(*id)).any(|edit| {
            let cut = || Strategy::find(&edit.strategy).is_some_and(|strategy| strategy.cuts);
            matches!(edit.kind, EditKind::Digest { block: b, .. } if b == block)
                && edit.why != Why::Entry
                && !cut()
        })
    }

    /// The call that a result answers.
    pub(crate) fn call_of(&self, at: Position, result: &ToolResult) -> Option<&ToolCall> {
        self.log.call_of(at, result)
    }

    /// What a result says: as it came, or as the host answered.
    pub(crate) fn result_at<'a>(
        &'a self,
        at: Position,
        block: usize,
        result: &'a ToolResult,
    ) -> ResultText<'a> {
        if let Some(text) = self.ledger.answer(at, block) {
            return ResultText { text, original: Some(Original::Text(text.into())), alone: true };
        }
        let original = self.message(at).map(|message| Original::Block(message.clone(), block));
        ResultText { text: &result.text, original, alone: result.content.is_none() }
    }

    /// Names that the model wrote itself, in its words and its calls, as far as they are shown.
    pub(crate) fn used_names(&self) -> NameSet<'_> {
        let shown = || {
            self.view.parts().iter().filter_map(|part| match part.source {
                Source::Message(at) => self.log.get(at),
                _ => None,
            })
        };
        let own = || shown().filter(|message| message.role() == Role::Assistant);
        let texts = own().flat_map(|message| message.texts());
        let calls = own().flat_map(|message| message.calls());
        texts.flat_map(names).chain(calls.flat_map(|call| names_in_json(call.arguments.as_str()))).collect()
    }

    /// The text that an edit shows in the place of this block.
    pub(crate) fn shown(&self, at: Position, block: usize) -> Option<&str> {
        self.ledger.shown(at, block)
    }

    /// About what is said in the place of these runs of requests that are answered in them: it is not gone.
    pub(crate) fn told_of(&self, spans: &[Span]) -> Tokens {
        let asked = self.log.answered_by(&joined(spans.to_vec())).into_iter();
        let lines = asked.filter_map(|at| Asked::of(self.log, at).done());
        lines.map(|line| self.text_tokens(&line)).sum()
    }

    pub(crate) fn text_tokens(&self, text: &str) -> Tokens {
        self.meter.tokens(self.meter.text(text)).tokens
    }

    /// What shortening a message's text to so many bytes of it would save, about.
    pub(crate) fn saving(&self, at: Position, before: usize, after: usize) -> Tokens {
        let size = self.sizes.get(at.index()).copied().unwrap_or_default();
        let bytes = self.message(at).map_or(1, |message| message.bytes()).max(1) as u128;
        let gone =
            u128::from(self.meter.tokens(size).tokens.0) * before.saturating_sub(after) as u128 / bytes;
        Tokens(u64::try_from(gone).unwrap_or(u64::MAX))
    }
}

/// Joins runs that touch, and sorts them.
pub(crate) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.start);
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if last.end >= span.start => last.end = last.end.max(span.end),
            _ => out.push(span),
        }
    }
    out
}
