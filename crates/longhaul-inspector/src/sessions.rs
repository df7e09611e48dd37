//! All sessions, and search over what was said in them.

use std::collections::BTreeSet;

use longhaul_store::{Filter, Hit, Meta};
use serde::Serialize;

use crate::api::time;
use crate::history::History;
use crate::session::Costs;

/// Sessions.
#[derive(Debug, Serialize)]
pub struct Sessions {
    /// The one that was written to last first.
    pub sessions: Vec<SessionRow>,
    /// All programs that have sessions.
    pub agents: Vec<String>,
    /// All that was worked on.
    pub projects: Vec<String>,
    /// How many sessions there are of this agent and project.
    pub total: usize,
}

/// What a list says of a session. What would need its journal is null until somebody has looked at it.
#[derive(Debug, Serialize)]
pub struct SessionRow {
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
    /// How many messages there are.
    pub messages: u64,
    /// How many requests were sent.
    pub calls: u64,
    /// A gateway has it in memory.
    pub live: bool,
    /// Nothing that was said is stored.
    pub without_content: bool,
    /// The session that it was forked from.
    pub parent: Option<String>,
    /// Figures of its calls.
    #[serde(flatten)]
    pub known: KnownFigures,
}

/// Figures that are known of a session whose journal was read.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct KnownFigures {
    /// Tokens of the last request.
    pub view: Option<u64>,
    /// Tokens of the whole log then.
    pub full: Option<u64>,
    /// Tokens that fit.
    pub window: Option<u64>,
    /// What it cost, in dollars.
    pub cost: Option<f64>,
    /// Tokens that were not sent, over all calls.
    pub saved_tokens: Option<u64>,
    /// Whether the cost is what the provider billed.
    pub billed: Option<bool>,
    /// Where the journal ended then.
    pub end: Option<usize>,
}

impl KnownFigures {
    pub(crate) fn of(history: &History) -> Self {
        let calls = &history.trace.calls;
        Self {
            view: calls.last().map(|row| row.view),
            full: calls.last().map(|row| row.full),
            window: calls.last().map(|row| row.window),
            cost: Costs::of(history).usd,
            saved_tokens: Some(
                calls.iter().fold(0, |sum: u64, row| sum.saturating_add(row.full.saturating_sub(row.view))),
            ),
            billed: Some(!calls.is_empty() && calls.iter().all(|row| row.billed)),
            end: Some(history.session.cursor().0),
        }
    }
}

impl SessionRow {
    pub(crate) fn of(meta: &Meta, live: bool, known: KnownFigures) -> Self {
        Self {
            id: meta.id.to_string(),
            title: meta.title.clone(),
            agent: meta.agent.clone(),
            project: meta.project.clone(),
            model: meta.model.clone(),
            created: time(meta.created),
            updated: time(meta.updated),
            messages: meta.messages,
            calls: meta.calls,
            live,
            without_content: meta.without_content,
            parent: meta.parent.map(|parent| parent.to_string()),
            known,
        }
    }
}

/// What a list is narrowed by, and what it could be narrowed by.
pub(crate) fn narrowed(all: Vec<Meta>, filter: &Filter) -> (Vec<Meta>, Vec<String>, Vec<String>) {
    let names = |of: fn(&Meta) -> &String| {
        let names: BTreeSet<&String> = all.iter().map(of).filter(|name| !name.is_empty()).collect();
        names.into_iter().cloned().collect::<Vec<String>>()
    };
    let (agents, projects) = (names(|meta| &meta.agent), names(|meta| &meta.project));
    let fits = |wanted: &Option<String>, has: &String| wanted.as_ref().is_none_or(|wanted| wanted == has);
    let mut all = all;
    all.retain(|meta| fits(&filter.agent, &meta.agent) && fits(&filter.project, &meta.project));
    (all, agents, projects)
}

/// Messages that a search found.
#[derive(Debug, Serialize)]
pub struct SearchHits {
    /// The newest first.
    pub hits: Vec<SearchHit>,
}

/// A message that a search found.
#[derive(Debug, Serialize)]
pub struct SearchHit {
    /// The session.
    pub session: String,
    /// Its title.
    pub title: String,
    /// The number of the entry in the journal.
    pub at: usize,
    /// The number of the message; null in a session that cannot be read.
    pub message: Option<u32>,
    /// The first call that was sent behind it; null if none was.
    pub call: Option<usize>,
    /// Some text around the first word that was found.
    pub snippet: String,
    /// Where the words are in the snippet, in UTF-16 units.
    pub found: Vec<(usize, usize)>,
}

impl SearchHit {
    pub(crate) fn of(hit: &Hit, place: Option<(u32, Option<usize>)>) -> Self {
        let units = |bytes: usize| crate::text::chars(hit.snippet.get(..bytes).unwrap_or(&hit.snippet));
        Self {
            session: hit.session.to_string(),
            title: hit.title.clone(),
            at: hit.at.0,
            message: place.map(|(message, _)| message),
            call: place.and_then(|(_, call)| call),
            snippet: hit.snippet.clone(),
            found: hit.found.iter().map(|found| (units(found.start), units(found.end))).collect(),
        }
    }
}
