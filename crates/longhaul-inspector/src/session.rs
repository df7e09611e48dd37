//! The answer about a session: its timeline in columns, its edits, its costs.

use std::collections::BTreeMap;

use longhaul::conversation::FactKind;
use longhaul::{EditId, Session};
use longhaul_store::Meta;
use serde::Serialize;

use crate::api::time;
use crate::category::{Category, scaled};
use crate::cost::{Bill, Prices};
use crate::history::{CallRow, CompactionRow, EditLife, History};
use crate::parts::{PartEdit, runs};
use crate::text::lost_thinking;

/// So many tools have a column of their own.
const TOOLS: usize = 7;
/// The column of all other tools.
const OTHER: &str = "other";

/// A session.
#[derive(Debug, Serialize)]
pub struct SessionAnswer {
    /// Its id.
    pub id: String,
    /// The first words of a person, or what the host called it.
    pub title: String,
    /// The program that works.
    pub agent: String,
    /// What it works on.
    pub project: String,
    /// The model that it goes on with.
    pub model: String,
    /// When it was made.
    pub created: Option<String>,
    /// When it was written to last.
    pub updated: Option<String>,
    /// A gateway has it in memory.
    pub live: bool,
    /// Nothing that was said is stored.
    pub without_content: bool,
    /// The session that it was forked from.
    pub parent: Option<String>,
    /// By which profile it is looked at.
    pub profile: String,
    /// How many messages there are.
    pub messages: usize,
    /// Where its journal ends.
    pub end: usize,
    /// Tokens that fit, as it stands.
    pub window: u64,
    /// The limits of the window.
    pub limits: Limits,
    /// What the work is for, if that was set.
    pub goal: Option<String>,
    /// What stays in every request.
    pub pins: Vec<Pin>,
    /// The model's prices.
    pub prices: Option<Prices>,
    /// The size of the next request, as it stands.
    pub next: u64,
    /// The calls, in columns.
    pub calls: Calls,
    /// Edits that were made at once.
    pub compactions: Vec<CompactionView>,
    /// All edits ever made.
    pub edits: Vec<EditRow>,
    /// All calls together.
    pub cost: Costs,
    /// Whether all figures of costs are what the provider billed.
    pub billed: bool,
}

/// Where the limits of a window are, in tokens.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// A person is warned.
    pub warn: u64,
    /// Compaction starts.
    pub trigger: u64,
    /// What it works to.
    pub target: u64,
    /// No request is larger.
    pub hard: u64,
}

/// A text that stays in every request.
#[derive(Debug, Serialize)]
pub struct Pin {
    /// Its name, by which it is removed.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The calls of a session, in columns: each has an element for each call.
#[derive(Debug, Default, Serialize)]
pub struct Calls {
    /// How many there are.
    pub count: usize,
    /// The number of the first one in the columns.
    pub from: usize,
    /// When.
    pub at: Vec<Option<String>>,
    /// Messages before it.
    pub upto: Vec<u32>,
    /// Tokens that were sent.
    pub view: Vec<u64>,
    /// Tokens of the whole log.
    pub full: Vec<u64>,
    /// Tokens of the view by category, results apart.
    pub shares: BTreeMap<&'static str, Vec<u64>>,
    /// Tokens of results by tool: those of most tokens, and `other`.
    pub results: BTreeMap<String, Vec<u64>>,
    /// Tokens read from the provider's cache.
    pub read: Vec<u64>,
    /// Tokens written to it.
    pub written: Vec<u64>,
    /// Tokens of the prompt that are neither.
    pub fresh: Vec<u64>,
    /// Tokens of the answer.
    pub output: Vec<u64>,
    /// What it cost.
    pub usd: Vec<Option<f64>>,
    /// Whether the provider said so; else it is expected.
    pub billed: Vec<bool>,
    /// Edits that were made for it and the messages before it.
    pub edits: Vec<usize>,
    /// Whether it did not extend the request before.
    pub broke: Vec<bool>,
    /// Why something was compacted before it.
    pub why: Vec<Option<&'static str>>,
}

/// Edits that were made at once, before a call.
#[derive(Debug, Serialize)]
pub struct CompactionView {
    /// The call.
    pub call: usize,
    /// Which edits.
    pub edits: Vec<u32>,
    /// Why, in words.
    pub why: &'static str,
    /// Tokens of the view before.
    pub before: u64,
    /// Tokens of the view after.
    pub after: u64,
    /// Tokens that were billed again, once.
    pub rewrites: u64,
    /// Tokens that each later request is smaller by.
    pub saves: u64,
    /// Steps whose thinking went with it, where the model binds thinking to what stands before it.
    pub thinking_steps: u64,
    /// The tokens of that thinking.
    pub thinking_tokens: u64,
    /// All of it in a sentence.
    pub says: String,
}

/// An edit, and what became of it.
#[derive(Debug, Serialize)]
pub struct EditRow {
    /// What it is.
    #[serde(flatten)]
    pub edit: PartEdit,
    /// The first call that shows it.
    pub call: usize,
    /// It holds now.
    pub active: bool,
    /// Only the hard limit may make such an edit again.
    pub held: bool,
    /// A person took it back.
    pub undone_by_person: bool,
    /// The messages that it covers: first, and one past the last.
    pub messages: Vec<(u32, u32)>,
}

/// What all calls of a session cost.
#[derive(Debug, Serialize)]
pub struct Costs {
    /// In dollars, with summaries.
    pub usd: Option<f64>,
    /// What sending the whole log at each call would have cost.
    pub full_usd: Option<f64>,
    /// In tokens.
    #[serde(flatten)]
    pub bill: Bill,
    /// Of it, what models were paid for summaries.
    pub summaries_usd: Option<f64>,
}

impl SessionAnswer {
    /// With the calls from number `from` on.
    pub(crate) fn of(history: &History, meta: &Meta, live: bool, from: usize) -> Self {
        let (session, trace) = (&history.session, &history.trace);
        let budget = session.budget();
        let pins = session.log().facts(FactKind::Pin).into_iter();
        Self {
            id: meta.id.to_string(),
            title: meta.title.clone(),
            agent: meta.agent.clone(),
            project: meta.project.clone(),
            model: meta.model.clone(),
            created: time(meta.created),
            updated: time(meta.updated),
            live,
            without_content: false,
            parent: meta.parent.map(|parent| parent.to_string()),
            profile: session.profile().name.to_string(),
            messages: session.log().messages().len(),
            end: session.cursor().0,
            window: budget.window.0,
            limits: Limits {
                warn: budget.warn.0,
                trigger: budget.trigger.0,
                target: budget.target.0,
                hard: budget.hard.0,
            },
            goal: goal(session),
            pins: pins.map(|(name, text)| Pin { name: name.to_owned(), text: text.to_owned() }).collect(),
            prices: session.model().price.as_ref().map(Prices::from),
            next: session.size().tokens.0,
            calls: Calls::of(history, from.max(1)),
            compactions: trace.compactions.iter().map(CompactionView::of).collect(),
            edits: trace.edits.iter().map(EditRow::of).collect(),
            cost: Costs::of(history),
            billed: trace.calls.iter().all(|row| row.billed) && !trace.calls.is_empty(),
        }
    }
}

/// What the work is for, if that was set.
fn goal(session: &Session) -> Option<String> {
    session.log().fact(FactKind::Goal, "").map(str::to_owned)
}

impl Calls {
    fn of(history: &History, from: usize) -> Self {
        let all = &history.trace.calls;
        let rows = all.get(from - 1..).unwrap_or_default();
        let mut calls = Self {
            count: all.len(),
            from,
            at: column(rows, |row| row.at.and_then(time)),
            upto: column(rows, |row| row.upto),
            view: column(rows, |row| row.view),
            full: column(rows, |row| row.full),
            read: column(rows, |row| row.bill.read),
            written: column(rows, |row| row.bill.written),
            fresh: column(rows, |row| row.bill.fresh),
            output: column(rows, |row| row.bill.output),
            usd: column(rows, CallRow::usd),
            billed: column(rows, |row| row.billed),
            edits: column(rows, |row| row.edits),
            broke: column(rows, |row| row.broke),
            why: column(rows, |row| row.why.map(|why| why.name())),
            ..Self::default()
        };
        calls.fill(history, rows);
        calls
    }

    /// The columns of what views are made of.
    fn fill(&mut self, history: &History, rows: &[CallRow]) {
        let apart = Category::ALL.iter().filter(|category| **category != Category::Results);
        let mut shares: Vec<(Category, Vec<u64>)> =
            apart.map(|category| (*category, Vec::with_capacity(rows.len()))).collect();
        let named = named_tools(history);
        let mut results = vec![Vec::with_capacity(rows.len()); named.len() + 1];
        for row in rows {
            let by_category = scaled(&row.counted.by_category, row.view);
            for (category, column) in &mut shares {
                column.push(by_category[*category as usize]);
            }
            let mut by_tool = vec![0; named.len() + 1];
            for (tool, counted) in &row.counted.by_tool {
                let at = named.iter().position(|(number, _)| number == tool).unwrap_or(named.len());
                by_tool[at] += counted;
            }
            let of_results = scaled(&by_tool, by_category[Category::Results as usize]);
            results.iter_mut().zip(of_results).for_each(|(column, tokens)| column.push(tokens));
        }
        self.shares = shares.into_iter().map(|(category, column)| (category.name(), column)).collect();
        let names = named.into_iter().map(|(_, name)| name).chain([OTHER.to_owned()]);
        let columns = names.zip(results);
        self.results =
            columns.filter(|(name, column)| name != OTHER || column.iter().any(|n| *n > 0)).collect();
    }
}

/// The tools whose results took the most, over all calls.
fn named_tools(history: &History) -> Vec<(u32, String)> {
    let mut sums: Vec<(u32, i128, &str)> =
        history.trace.filling.tools.names().enumerate().map(|(at, name)| (at as u32, 0, name)).collect();
    for (tool, counted) in history.trace.calls.iter().flat_map(|row| &row.counted.by_tool) {
        if let Some((_, sum, _)) = sums.get_mut(*tool as usize) {
            *sum += i128::from(*counted);
        }
    }
    sums.sort_by_key(|(_, sum, _)| std::cmp::Reverse(*sum));
    // A tool of that name is counted with the others.
    let named = sums.into_iter().filter(|(_, sum, name)| *sum > 0 && *name != OTHER);
    named.take(TOOLS).map(|(at, _, name)| (at, name.to_owned())).collect()
}

fn column<T>(rows: &[CallRow], of: impl Fn(&CallRow) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

impl CompactionView {
    fn of(row: &CompactionRow) -> Self {
        let (rewrites, saves) = (row.price.rewrites.0, row.price.saves.0);
        let kinds: Vec<String> = row.kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        let again = match rewrites {
            0 => "nothing was billed again for it".to_owned(),
            again => format!("{again} tokens were billed again for it, once"),
        };
        let lost = lost_thinking(row.price.thinking);
        let lost = lost.map_or(String::new(), |lost| format!(", and {lost}, went"));
        let says = format!(
            "Before call {}, {}: {}. {} tokens became {}{lost}; {again}, and each later request is {saves} tokens smaller.",
            row.call,
            row.why.name(),
            kinds.join(", "),
            row.before,
            row.after
        );
        Self {
            call: row.call,
            edits: row.edits.iter().map(|EditId(id)| *id).collect(),
            why: row.why.name(),
            before: row.before,
            after: row.after,
            rewrites,
            saves,
            thinking_steps: row.price.thinking.messages.into(),
            thinking_tokens: row.price.thinking.tokens.0,
            says,
        }
    }
}

impl EditRow {
    pub(crate) fn of(life: &EditLife) -> Self {
        Self {
            edit: PartEdit::of(&life.edit),
            call: life.call,
            active: life.is_active(),
            held: life.is_held(),
            undone_by_person: life.is_held(),
            messages: runs(&life.edit),
        }
    }
}

impl Costs {
    pub(crate) fn of(history: &History) -> Self {
        let calls = &history.trace.calls;
        let mut bill = Bill::default();
        calls.iter().for_each(|row| bill += row.bill);
        let sum = |of: fn(&CallRow) -> Option<f64>| {
            let priced: Vec<f64> = calls.iter().filter_map(of).collect();
            (!priced.is_empty()).then(|| priced.iter().sum::<f64>())
        };
        let summaries = history.trace.summaries_usd;
        let usd = sum(CallRow::usd);
        Self {
            usd: usd.map(|usd| usd + summaries),
            full_usd: sum(CallRow::full_usd),
            bill,
            summaries_usd: usd.map(|_| summaries),
        }
    }
}
