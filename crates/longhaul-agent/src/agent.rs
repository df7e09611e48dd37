//! The agent: a session, a model, tools and permissions, and what is done with them. Each step is stored before the next
//! one begins, and the person may interrupt at any point: the log is whole then too.

mod calls;
mod consenting;
mod frame;
mod turn;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul::{Cursor, PrepareError, Profile, RecallBy, Session, Time};
use longhaul_model::{Fault, Model, SummaryWriter};
use longhaul_store::{Keeper, StoreError};

use self::frame::frame;
use crate::envelope::Form;
use crate::git_stat::GitStat;
use crate::permission::Permissions;
use crate::project::Project;
use crate::project_rules::ProjectRules;
use crate::repeated::RepeatedFailures;
use crate::session_tools::RECALL;
use crate::surroundings;
use crate::tool::Tool;
use crate::toolbox::Toolbox;

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
    git: GitStat,
    summaries: SummaryWriter,
    failures: RepeatedFailures,
    /// It may have sub-agents.
    has_tasks: bool,
    /// Edits before this place of the journal were told.
    told: Cursor,
    /// What was paid for summaries before this place of the journal was told.
    told_paid: Cursor,
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
            told_paid: session.cursor(),
            session,
            keeper,
            model,
            project,
            tools,
            permissions,
            settings,
            rules: ProjectRules::default(),
            git: GitStat::default(),
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
        (self.told, self.told_paid) = (session.cursor(), session.cursor());
        self.session = session;
        self.keeper = keeper;
        (self.rules, self.failures) = (ProjectRules::default(), RepeatedFailures::default());
        self.git = GitStat::default();
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
        surroundings::tell(&mut self.session, self.project.root());
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

    fn save(&mut self) -> Result<(), StoreError> {
        match &mut self.keeper {
            Some(keeper) => tokio::task::block_in_place(|| keeper.save(&self.session)),
            None => Ok(()),
        }
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
