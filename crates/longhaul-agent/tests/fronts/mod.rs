//! Somebody who watches an agent, and agents to watch.
#![allow(dead_code, clippy::unwrap_used)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use longhaul::{Message, Models, Profile, Role, Session};
use longhaul_agent::{
    Agent, AgentSettings, Answer, Asked, Consent, Event, Form, Front, Mode, Permissions, Toolbox,
};
use longhaul_model::{Fault, Model, Scripted};
use longhaul_store::{About, Filter, Keeper};
use tokio_util::sync::CancellationToken;

use crate::common::Ground;

/// An event, without what it borrows.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Text(String),
    Void,
    Replied,
    Called(String),
    Answered(String),
    Summarising,
    Compacted(usize),
    Sending,
    SummaryBilled(u64),
    Notice(String),
    Other,
}

#[derive(Default)]
pub struct Recorder {
    pub heard: Vec<Heard>,
    /// Questions that were asked.
    pub asked: Vec<String>,
    /// Answers to questions, the last first.
    pub answers: Vec<Answer>,
    /// What was asked last.
    pub consent: Option<Consent>,
    /// Cancelled by the first question.
    pub stops: Option<CancellationToken>,
}

impl Front for Recorder {
    fn event(&mut self, event: Event<'_>) {
        let heard = match event {
            Event::Text(text) => match self.heard.last_mut() {
                Some(Heard::Text(before)) => return before.push_str(text),
                _ => Heard::Text(text.to_owned()),
            },
            Event::Void => Heard::Void,
            Event::Replied { .. } => Heard::Replied,
            Event::Called { tool, .. } => Heard::Called(tool.to_owned()),
            Event::Answered { tool, .. } => Heard::Answered(tool.to_owned()),
            Event::Summarising => Heard::Summarising,
            Event::Compacted(told) => Heard::Compacted(told.edits),
            Event::Sending { .. } => Heard::Sending,
            Event::SummaryBilled(paid) => Heard::SummaryBilled(paid.calls),
            Event::Notice(text) => Heard::Notice(text.to_owned()),
            _ => Heard::Other,
        };
        self.heard.push(heard);
    }

    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let what = match &consent.what {
            Asked::Command { command, .. } => command.clone(),
            Asked::Change(change) => change.path.clone(),
            _ => String::new(),
        };
        self.asked.push(format!("{} {what}", consent.tool));
        self.consent = Some(consent.clone());
        if let Some(stop) = &self.stops {
            stop.cancel();
            return Box::pin(std::future::pending());
        }
        let answer = self.answers.pop().unwrap_or(Answer::No(None));
        Box::pin(async move { answer })
    }
}

pub fn settings() -> AgentSettings {
    AgentSettings { model: "gpt-4o".to_owned(), max_output: None, steps: 30, form: Form::Plain }
}

/// An agent whose model follows a script.
pub fn agent(
    ground: &Ground,
    script: impl IntoIterator<Item = Result<Message, Fault>>,
    mode: Mode,
    profile: Profile,
) -> Agent {
    let session = Session::new(profile, Models::builtin().find("gpt-4o").clone());
    let model: Arc<dyn Model> = Arc::new(Scripted::new(script));
    let tools = Toolbox::files(&ground.project);
    Agent::new(session, None, model, ground.project.clone(), tools, Permissions::new(mode), settings())
}

/// An agent that goes on with the newest session of a store, or begins one.
pub fn stored(
    ground: &Ground,
    script: impl IntoIterator<Item = Result<Message, Fault>>,
    place: &str,
) -> Agent {
    let model: Arc<dyn Model> = Arc::new(Scripted::new(script));
    kept(ground, model, place, Profile::longhaul(), settings())
}

pub fn kept(
    ground: &Ground,
    model: Arc<dyn Model>,
    place: &str,
    profile: Profile,
    settings: AgentSettings,
) -> Agent {
    let store = longhaul_store::open(place).unwrap();
    let (keeper, session) = match store.list(&Filter::default(), 1).unwrap().first() {
        Some(stored) => Keeper::open(store.clone(), stored.id, profile).unwrap(),
        None => {
            let session = Session::new(profile, Models::builtin().find(&settings.model).clone());
            (Keeper::create(store, &About::default(), &session).unwrap(), session)
        }
    };
    let tools = Toolbox::files(&ground.project);
    let permissions = Permissions::new(Mode::All);
    Agent::new(session, Some(keeper), model, ground.project.clone(), tools, permissions, settings)
}

/// The same agent with another script.
pub fn going_on(mut agent: Agent, script: impl IntoIterator<Item = Result<Message, Fault>>) -> Agent {
    let row = agent.session().model().clone();
    agent.switch_model(Arc::new(Scripted::new(script)), "gpt-4o", row);
    agent
}

/// The texts of all results, as the log has them.
pub fn answered(agent: &Agent) -> Vec<String> {
    let messages = agent.session().log().messages().iter();
    let results =
        messages.filter(|message| message.role() == Role::Tool).flat_map(|message| message.results());
    results.map(|result| result.text.to_string()).collect()
}

/// All text of the request that was made last.
pub fn sent(agent: &Agent) -> String {
    let outgoing = agent.session().outgoing();
    let texts = outgoing.messages().flat_map(|message| {
        let results = message.results().map(|result| result.text.to_string());
        message.texts().map(str::to_owned).chain(results).collect::<Vec<_>>()
    });
    texts.collect::<Vec<_>>().join("\n")
}
