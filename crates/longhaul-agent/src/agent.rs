//! The loop: a person says something, the model answers and calls tools, until it has nothing more to call. Each request
//! is prepared by the engine, each step is stored before the next one begins, and the person may interrupt at any point:
//! the log is whole then too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul::conversation::{Image, Words, with_mentions};
use longhaul::{
    Block, Cursor, Entry, Frame, Json, Message, PrepareError, Prepared, Profile, RecallBy, Resolved, Role,
    Session, Ticket, Time, Tokens, ToolCall, ToolResult, Why,
};
use longhaul_model::{Delta, Fault, Model, Reply, Stop, SummaryWriter};
use longhaul_store::{Keeper, StoreError};
use longhaul_wire::api::Request;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::envelope::{Code, Envelope, Form, ToolError};
use crate::event::{Compaction, Event};
use crate::permission::{Permissions, Verdict};
use crate::project::Project;
use crate::project_rules::ProjectRules;
use crate::repeated::RepeatedFailures;
use crate::session_tools::{RECALL, SESSION_TOOLS, SessionTool};
use crate::task::{self, TASK};
use crate::tool::{Definition, Effect, Tool};
use crate::toolbox::Toolbox;

/// Who watches an agent and answers its questions.
pub trait Front: Send {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);

    /// May this call run?
    fn ask<'a>(&'a mut self, question: Question<'a>)
    -> Pin<Box<dyn Future<Output = Permission> + Send + 'a>>;
}

/// A call that nobody has allowed yet.
#[derive(Debug)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// What it would do.
    pub effect: &'a Effect,
    /// The rule that would let calls like this one run from now on.
    pub rule: Option<&'a str>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// This call may run.
    Once,
    /// Calls like this one may run from now on.
    Always,
    /// It may not; what the user says of it goes to the model.
    No(Option<String>),
}

/// How an agent works.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// The model's name, as the provider knows it.
    pub model: String,
    /// The longest answer, if it is not the provider's own limit.
    pub max_output: Option<u64>,
    /// Replies of the model to one input at most.
    pub steps: usize,
    /// How the model sees results.
    pub form: Form,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The model has answered.
    Answered(String),
    /// The person interrupted it.
    Interrupted,
    /// The model has used all the steps that it has.
    StepLimit(usize),
}

/// Why an agent cannot go on. What was said so far is stored, as far as the store works.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The provider did not answer.
    #[error("{0}")]
    Model(#[from] Fault),
    /// No request fits.
    #[error("{0}")]
    NoRoom(#[from] PrepareError),
    /// The session could not be stored.
    #[error("the session could not be stored: {0}")]
    Store(#[from] StoreError),
}

/// The longest that a request is shortened anew because the provider refused it.
const OVERFLOWS: usize = 2;
/// How often a reply that says nothing is asked for again.
const EMPTY: usize = 2;

/// An agent at work on a project.
pub struct Agent {
    session: Session,
    keeper: Option<Keeper>,
    model: Arc<dyn Model>,
    project: Arc<Project>,
    tools: Toolbox,
    permissions: Permissions,
    settings: AgentSettings,
    rules: ProjectRules,
    summaries: SummaryWriter,
    failures: RepeatedFailures,
    /// It may have sub-agents.
    has_tasks: bool,
    /// Edits before this place of the journal were told.
    told: Cursor,
}

impl Agent {
    /// An agent that goes on with a session, or begins one. With a keeper, each step is stored.
    pub fn new(
        session: Session,
        keeper: Option<Keeper>,
        model: Arc<dyn Model>,
        project: Arc<Project>,
        tools: Toolbox,
        permissions: Permissions,
        settings: AgentSettings,
    ) -> Self {
        let mut agent = Self {
            summaries: SummaryWriter::new(model.clone(), session.budget().window),
            told: session.cursor(),
            session,
            keeper,
            model,
            project,
            tools,
            permissions,
            settings,
            rules: ProjectRules::default(),
            failures: RepeatedFailures::default(),
            has_tasks: true,
        };
        agent.settle();
        agent
    }

    /// The same agent without sub-agents in another session.
    pub(crate) fn another(&self, session: Session, keeper: Option<Keeper>) -> Self {
        let mut agent = Self::new(
            session,
            keeper,
            self.model.clone(),
            self.project.clone(),
            self.tools.clone(),
            self.permissions.clone(),
            self.settings.clone(),
        );
        agent.has_tasks = false;
        agent.set_frame();
        agent
    }

    /// Takes over what another one was allowed.
    pub(crate) fn take_permissions(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.permissions, &mut other.permissions);
    }

    /// Gives it more tools. Before its first request: a tool that comes later is a new prompt for the provider's cache.
    pub fn add_tools(&mut self, tools: impl IntoIterator<Item = Box<dyn Tool>>) {
        tools.into_iter().for_each(|tool| self.tools.add(tool));
        self.set_frame();
    }

    /// Tells the session what comes before its messages.
    fn set_frame(&mut self) {
        let frame = frame(&self.session, &self.project, &self.tools, &self.settings, self.has_tasks);
        self.session.set_frame(frame);
    }

    /// Where it works.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// The same agent, whose questions another model answers. The session is told by
    /// [`switch`](Session::switch) if it is one of another name.
    pub fn with_model(mut self, model: Arc<dyn Model>) -> Self {
        self.summaries = SummaryWriter::new(model.clone(), self.session.budget().window);
        self.model = model;
        self
    }

    /// Goes on with another model: `name` is how the provider knows it, `row` what is known of it. The next request is
    /// counted for it, and compacted if its window is smaller.
    pub fn switch_model(&mut self, model: Arc<dyn Model>, name: &str, row: longhaul::Model) {
        self.session.switch(row, longhaul::Seals::Engine);
        self.settings.model = name.to_owned();
        self.model = model;
        self.settle();
    }

    /// Goes on with another session, with the same tools, permissions and model.
    pub fn set_session(&mut self, session: Session, keeper: Option<Keeper>) {
        self.told = session.cursor();
        self.session = session;
        self.keeper = keeper;
        (self.rules, self.failures) = (ProjectRules::default(), RepeatedFailures::default());
        self.settle();
    }

    /// Compacts in another way from here on, and shows the model results in this form.
    pub fn set_profile(&mut self, profile: Profile, form: Form) {
        self.session.set_profile(profile);
        self.settings.form = form;
        self.settle();
    }

    /// Tells the session what the agent is, and has the model write its summaries.
    fn settle(&mut self) {
        self.session.set_recall(RecallBy::Tool(RECALL.into()));
        self.set_frame();
        self.summaries = SummaryWriter::new(self.model.clone(), self.session.budget().window);
    }

    /// The name of its model, as the provider knows it.
    pub fn model_name(&self) -> &str {
        &self.settings.model
    }

    /// Its session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Its session, for what a person does to it between two turns.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// What its calls may do.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// What its calls may do, to be changed.
    pub fn permissions_mut(&mut self) -> &mut Permissions {
        &mut self.permissions
    }

    /// Its keeper, if it is stored.
    pub fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// Takes in what a person says, and works until there is an answer. A turn that failed or was interrupted goes on
    /// with `None`.
    pub async fn turn(
        &mut self,
        input: Option<&str>,
        front: &mut dyn Front,
        stop: &CancellationToken,
    ) -> Result<Ended, AgentError> {
        if let Some(input) = input {
            // Calls that a crash left without results get them before anything else is said.
            self.run_calls(front, &stopped()).await;
            self.hear(input);
        }
        let ended = self.work(front, stop).await;
        // Whatever happened, what was said is kept.
        let saved = self.save();
        let ended = ended?;
        saved?;
        Ok(ended)
    }

    /// Stores what a person did to the session between two turns.
    pub fn keep(&mut self) -> Result<(), StoreError> {
        self.save()
    }

    /// Stores all that is left to be stored: the agent ends.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        match &mut self.keeper {
            Some(keeper) => tokio::task::block_in_place(|| keeper.finish(&self.session)),
            None => Ok(()),
        }
    }

    fn hear(&mut self, input: &str) {
        let exists = |path: &str| self.project.place(path).is_ok_and(|place| place.path().exists());
        let mut text = with_mentions(input, exists);
        let changed = self.project.read().changed_outside(self.project.root());
        if !changed.is_empty() {
            // The host's words stand behind the person's, and are not taken for theirs.
            let note = format!(
                "\n\n<system-reminder>\nChanged since they were read: {}. Read them again before changing them.\n</system-reminder>",
                changed.join(", ")
            );
            if text.words == Words::All {
                text.words = Words::part(0, text.text.len());
            }
            text.text = format!("{}{note}", text.text).into();
        }
        self.session.push(Message::new(Role::User, vec![Block::Text(text)]).with_time(now()));
    }

    async fn work(&mut self, front: &mut dyn Front, stop: &CancellationToken) -> Result<Ended, AgentError> {
        let (mut overflows, mut empty) = (0, 0);
        let mut steps = 0;
        loop {
            if self.run_calls(front, stop).await == Interrupted::Yes {
                return Ok(Ended::Interrupted);
            }
            if steps >= self.settings.steps {
                return Ok(Ended::StepLimit(steps));
            }
            self.rules.refresh(self.project.root(), &mut self.session);
            let Some(ticket) = self.prepare(front, stop).await? else { return Ok(Ended::Interrupted) };
            let Some(replied) = self.ask(front, stop).await else { return Ok(Ended::Interrupted) };
            let reply = match replied {
                Ok(reply) => reply,
                Err(Fault::TooLong { overflow, .. }) if overflows < OVERFLOWS => {
                    overflows += 1;
                    front.event(Event::Notice(
                        "the provider says that the request is too long: it is shortened",
                    ));
                    self.session.overflowed(ticket, overflow);
                    continue;
                }
                Err(fault) => return Err(fault.into()),
            };
            (overflows, steps) = (0, steps + 1);
            front.event(Event::Replied { usage: reply.usage.as_ref() });
            reply.usage.iter().for_each(|usage| self.session.observe(ticket, usage));
            if is_empty(&reply) && empty < EMPTY {
                // Nothing was said and nothing called: it is asked again.
                empty += 1;
                continue;
            }
            for message in &reply.messages {
                self.session.push(message.clone());
            }
            if let Some(resolved) = self.summaries.take(&mut self.session).await {
                said_of(&resolved).iter().for_each(|says| front.event(Event::Notice(says)));
            }
            self.save()?;
            self.session
                .take_notices()
                .iter()
                .for_each(|notice| front.event(Event::Notice(&notice.to_string())));
            match &reply.stop {
                Stop::Paused => continue,
                Stop::Length => {
                    front.event(Event::Notice("the answer was cut off: it was as long as it may be"))
                }
                Stop::Refused => front.event(Event::Notice("the model would not answer")),
                Stop::Ended | Stop::WindowFull | Stop::Other(_) => {}
            }
            if self.session.log().waiting_calls().is_empty() {
                let answer: Vec<&str> = reply.messages.iter().flat_map(|message| message.texts()).collect();
                return Ok(Ended::Answered(answer.concat()));
            }
        }
    }

    /// Makes the next request ready, and stores all that it was made from. `None` if the person interrupts.
    async fn prepare(
        &mut self,
        front: &mut dyn Front,
        stop: &CancellationToken,
    ) -> Result<Option<Ticket>, AgentError> {
        loop {
            match self.session.prepare(Some(now()))? {
                Prepared::Send(ticket) => {
                    self.save()?;
                    self.tell_compaction(front);
                    let (size, limit) = (self.session.size().tokens, self.session.budget().hard);
                    let whole = self.session.meter().tokens(self.session.full()).tokens;
                    front.event(Event::Sending { prompt: size, limit, whole });
                    self.summaries.begin(&self.session);
                    return Ok(Some(ticket));
                }
                Prepared::Summarise(job) => {
                    front.event(Event::Summarising);
                    let written = self.summaries.wait(job, &mut self.session);
                    tokio::select! {
                        resolved = written => {
                            said_of(&resolved).iter().for_each(|says| front.event(Event::Notice(says)));
                        }
                        () = stop.cancelled() => return Ok(None),
                    }
                }
            }
        }
    }

    /// Says what was taken out since this was last said: by a `prepare`, or by a summary that came in between.
    fn tell_compaction(&mut self, front: &mut dyn Front) {
        let from = std::mem::replace(&mut self.told, self.session.cursor());
        let edits = self.session.since(from).filter_map(|entry| match entry {
            Entry::Edit(edit) if edit.why != Why::Entry => Some(edit),
            _ => None,
        });
        let mut told: Option<Compaction> = None;
        for edit in edits {
            let told = told.get_or_insert_with(|| Compaction {
                edits: 0,
                before: Tokens(0),
                after: Tokens(0),
                strategies: Vec::new(),
                why: edit.why.name().to_owned(),
            });
            told.edits += 1;
            told.before += edit.before;
            told.after += edit.after;
            if !told.strategies.iter().any(|name| **name == *edit.strategy) {
                told.strategies.push(edit.strategy.to_string());
            }
        }
        told.into_iter().for_each(|told| front.event(Event::Compacted(told)));
    }

    /// Asks the model; `None` if the person interrupts. Nothing of the reply is kept then.
    async fn ask(&self, front: &mut dyn Front, stop: &CancellationToken) -> Option<Result<Reply, Fault>> {
        let request = Request::of(&self.session.outgoing());
        let mut watch = |delta: Delta<'_>| match delta {
            Delta::Text(text) => front.event(Event::Text(text)),
            Delta::Thinking(text) => front.event(Event::Thinking(text)),
            Delta::Void => front.event(Event::Void),
            Delta::Call(_) | Delta::Arguments(_) => {}
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            reply = self.model.ask(request, &mut watch) => Some(reply),
        }
    }

    /// Runs the calls that have no results yet. Every call gets a result, also one that was interrupted.
    async fn run_calls(&mut self, front: &mut dyn Front, stop: &CancellationToken) -> Interrupted {
        let calls: Vec<ToolCall> = self.session.log().waiting_calls().into_iter().cloned().collect();
        let mut allowed: Vec<Result<Value, Envelope>> = Vec::with_capacity(calls.len());
        for call in &calls {
            let arguments = call.arguments.value();
            front.event(Event::Called { id: &call.id, tool: &call.name, arguments: &arguments });
            let verdict = self.may(&call.name, &arguments, front, stop).await;
            allowed.push(verdict.map(|()| arguments));
        }
        // Calls that only look run together; one that changes something runs alone, in its turn.
        let reads = |(call, allowed): (&ToolCall, &Result<Value, Envelope>)| match allowed {
            Ok(arguments) => matches!(self.tools.effect(&call.name, arguments), Effect::Reads),
            Err(_) => true,
        };
        let together = calls.iter().zip(&allowed).all(reads)
            && calls.iter().all(|call| SessionTool::find(&call.name).is_none());
        let mut ended: Vec<Envelope> = Vec::with_capacity(calls.len());
        if together {
            let running = calls.iter().zip(allowed).map(|(call, allowed)| self.answer(call, allowed, stop));
            ended.extend(join_all(running.collect()).await);
        } else {
            for (call, allowed) in calls.iter().zip(allowed) {
                let envelope = match (SessionTool::find(&call.name), allowed) {
                    (Some(tool), Ok(arguments)) => tool.run(&mut self.session, arguments),
                    (None, Ok(arguments)) if &*call.name == TASK && self.has_tasks => {
                        self.do_task(arguments, front, stop).await
                    }
                    (_, allowed) => self.answer(call, allowed, stop).await,
                };
                ended.push(envelope);
            }
        }
        for (call, envelope) in calls.iter().zip(ended) {
            front.event(Event::Answered { id: &call.id, tool: &call.name, envelope: &envelope });
            let note = self.failures.note(&call.name, &call.arguments, envelope.is_error());
            if let Some(note) = &note {
                front.event(Event::Notice(note));
            }
            let message = result(call, &envelope, self.settings.form, note.as_deref());
            self.session.push(message.with_time(now()));
        }
        if !calls.is_empty() && stop.is_cancelled() { Interrupted::Yes } else { Interrupted::No }
    }

    async fn answer(
        &self,
        call: &ToolCall,
        allowed: Result<Value, Envelope>,
        stop: &CancellationToken,
    ) -> Envelope {
        match allowed {
            Err(refused) => refused,
            Ok(_) if stop.is_cancelled() => Envelope::error(interrupted()),
            Ok(arguments) => self.tools.run(&call.name, arguments, stop).await,
        }
    }

    /// Whether a call may run, or what it gets instead of a result.
    async fn may(
        &mut self,
        tool: &str,
        arguments: &Value,
        front: &mut dyn Front,
        stop: &CancellationToken,
    ) -> Result<(), Envelope> {
        let effect = self.tools.effect(tool, arguments);
        // Rules are about the place that a path leads to.
        let effect = match effect {
            Effect::Changes(path) => match self.project.place_to_write(&path) {
                Ok(place) => Effect::Changes(place.shown().to_owned()),
                Err(error) => return Err(Envelope::error(error)),
            },
            effect => effect,
        };
        let denied = |message: String| Envelope::error(ToolError::new(Code::Denied, message));
        match self.permissions.verdict(tool, &effect) {
            Verdict::Allow => return Ok(()),
            Verdict::Deny(reason) => return Err(denied(reason)),
            Verdict::Ask if stop.is_cancelled() => return Err(Envelope::error(interrupted())),
            Verdict::Ask => {}
        }
        let rule = Permissions::rule_for(tool, &effect);
        let question = Question { tool, arguments, effect: &effect, rule: rule.as_deref() };
        let permission = tokio::select! {
            permission = front.ask(question) => permission,
            () = stop.cancelled() => return Err(Envelope::error(interrupted())),
        };
        match (permission, rule) {
            (Permission::Once, _) => Ok(()),
            (Permission::Always, rule) => {
                // A rule that we offer can be read.
                rule.into_iter().for_each(|rule| _ = self.permissions.allow(&rule));
                Ok(())
            }
            (Permission::No(said), _) => {
                let said = said.map(|said| format!(" and says: {said}")).unwrap_or_default();
                Err(denied(format!("the user does not allow it{said}")))
            }
        }
    }

    fn save(&mut self) -> Result<(), StoreError> {
        match &mut self.keeper {
            Some(keeper) => tokio::task::block_in_place(|| keeper.save(&self.session)),
            None => Ok(()),
        }
    }
}

/// Whether the person interrupted.
#[derive(PartialEq, Eq)]
enum Interrupted {
    Yes,
    No,
}

/// A token that is cancelled already: calls get results without being run.
fn stopped() -> CancellationToken {
    let stop = CancellationToken::new();
    stop.cancel();
    stop
}

fn interrupted() -> ToolError {
    ToolError::new(Code::Interrupted, "it was stopped by the user before it ended")
}

/// Waits for all of them, in their order.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut ended: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, ended) in running.iter_mut().zip(&mut ended) {
            if ended.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *ended = Some(output);
            }
        }
        if ended.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    ended.into_iter().flatten().collect()
}

/// What a person may want to know of a summary.
fn said_of(resolved: &Resolved) -> Option<String> {
    match resolved {
        Resolved::Folded | Resolved::Dropped(_) => None,
        Resolved::Again(_, why) => Some(format!("the summary is written once more: {why}")),
        Resolved::Extracted(why) => Some(format!("the summary was put together without the model: {why}")),
        Resolved::Cut(why) | Resolved::Kept(why) => Some(format!("there is no summary: {why}")),
    }
}

fn is_empty(reply: &Reply) -> bool {
    let says = |message: &Arc<Message>| {
        message.calls().next().is_some() || message.texts().any(|text| !text.trim().is_empty())
    };
    reply.stop == Stop::Ended && !reply.messages.iter().any(says)
}

/// The result of a call as the log keeps it.
fn result(call: &ToolCall, envelope: &Envelope, form: Form, note: Option<&str>) -> Message {
    let mut text = envelope.shown(form);
    if let Some(note) = note {
        text = match form {
            Form::Plain => format!("{text}\n{note}"),
            Form::Json => {
                let mut json = envelope.to_json();
                json["context"]["note"] = Value::from(note);
                json.to_string()
            }
        };
    }
    let pictures = envelope.images.iter().map(|image| {
        use base64::Engine;
        let data = base64::engine::general_purpose::STANDARD.encode(&image.bytes);
        let source = json!({ "type": "base64", "media_type": image.media_type, "data": data });
        Block::Image(Image { source: Json::from(&source), size: None, extra: longhaul::Extra::NONE })
    });
    let pictures: Vec<Block> = pictures.collect();
    let content = (!pictures.is_empty())
        .then(|| [Block::text(text.as_str())].into_iter().chain(pictures).collect::<Vec<_>>().into());
    Message::new(
        Role::Tool,
        vec![Block::ToolResult(ToolResult {
            id: call.id.clone(),
            name: Some(call.name.clone()),
            text: text.into(),
            content,
            is_error: envelope.is_error(),
            extra: longhaul::Extra::NONE,
        })],
    )
}

/// What comes before the messages: the same bytes as long as folder, tools and settings are the same.
fn frame(
    session: &Session,
    project: &Project,
    tools: &Toolbox,
    settings: &AgentSettings,
    has_tasks: bool,
) -> Frame {
    let folder =
        project.root().file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut system = include_str!("../templates/system.md")
        .trim_end()
        .replace("{folder}", &folder)
        .replace("{platform}", std::env::consts::OS);
    if let Some(note) = session.profile().system_note() {
        system = format!("{system}\n\n{note}");
    }
    let mut own: Vec<Definition> = SESSION_TOOLS.iter().map(SessionTool::definition).collect();
    own.extend(has_tasks.then(task::definition));
    let definition = |definition: &Definition| {
        let Definition { name, description, schema } = definition;
        longhaul::Tool::from_definition(Json::from(
            &json!({ "name": name, "description": description, "input_schema": schema }),
        ))
    };
    let mut frame = Frame {
        model: Some(settings.model.as_str().into()),
        system: vec![Block::text(system)],
        tools: tools.definitions().chain(&own).map(definition).collect(),
        ..Frame::default()
    };
    if let Some(most) = settings.max_output {
        frame.settings.set("max_tokens", Json::from(&Value::from(most)));
    }
    frame
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
