//! The desk: every conversation that is known, and what goes out in the place of a client's request. Calls of the
//! desk block; they are made on threads that may.

mod arrears;
mod asking;
mod call;
mod caller;
mod conversation;
mod falling_back;
mod fill;
mod finding;
mod how;
mod incoming;
mod inspecting;
mod kept_thinking;
mod last_sent;
mod live;
mod observing;
mod overlap;
mod pruning;
mod refusals;
mod summarising;
mod turns;
mod upstream_limits;
mod watched;

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, mpsc};

use longhaul::policy::OnFailure;
use longhaul::{Overflow, Profile, Summariser, Ticket, Tokens, Usage, Vocabulary};
use longhaul_inspector::events::News;
use longhaul_store::{Patience, Retention, Store, StoreError};
use longhaul_wire::api::Request;

use crate::books::Books;

pub use asking::{Action, AskError};
pub use call::Call;
use call::{At, call};
pub use caller::{Called, CalledTool, ToolCaller};
use conversation::{Conversation, Refused, asks_for_a_million, now};
pub use falling_back::Rung;
use finding::{Found, Search};
pub use how::{Break, How};
pub use incoming::Incoming;
pub use kept_thinking::KeptThinking;
use live::{Heard, Hint, Live, Shared, Used};
pub use observing::Observed;
pub use refusals::AfterRefusal;
use refusals::UpstreamRefusals;
pub use summarising::SummaryModel;
use summarising::Writer;
use turns::Turns;
use upstream_limits::UpstreamLimits;
use watched::Watched;

/// How conversations are kept small, and where.
#[derive(Debug, Clone)]
pub struct DeskSettings {
    /// Where sessions are stored: a file, or `postgres://…`.
    pub store: String,
    /// How to compact.
    pub profile: Profile,
    /// What a session may be replayed under in the inspector.
    pub profiles: Vec<Profile>,
    /// What fits into the window, if it is not the model's own.
    pub window: Option<Tokens>,
    /// Bytes that conversations may take in memory.
    pub memory: usize,
    /// How long a request waits for the store before it goes on without it.
    pub patience: Patience,
    /// Which sessions are kept. Those that are in use stay, and those that were used within the last hour.
    pub retention: Retention,
    /// Nothing that anybody says is stored: no message, no text of an edit, no pin, no system prompt and no tool, only
    /// hashes and figures. Conversations are in memory alone: one that is not there begins anew.
    pub without_content: bool,
    /// Who writes summaries beside the requests; without one, code does.
    pub summaries: Option<SummaryModel>,
    /// How models get back what was left out, in conversations that begin from now on.
    pub recall: Recall,
    /// Everything is decided, and the client's own bytes are sent. Requests that are observed are those of a tenant of their
    /// own: the gateway sees to that.
    pub observe: bool,
}

/// How models get back what was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    /// By the tools at `/mcp`, where a client is told of them. Nothing is added to requests.
    #[default]
    Mcp,
    /// By one tool more behind those of the client, whose results are filled in.
    Fill,
}

impl DeskSettings {
    /// The default profile, the models' own windows, 96 MB for conversations, nothing added to requests; all sessions
    /// are kept.
    pub fn new(store: impl Into<String>) -> Self {
        Self {
            store: store.into(),
            profile: Profile::longhaul(),
            profiles: Profile::all(),
            window: None,
            memory: 96 << 20,
            patience: Patience::Brief,
            retention: Retention::default(),
            without_content: false,
            summaries: None,
            recall: Recall::Mcp,
            observe: false,
        }
    }
}

/// What is done with a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one a request, and nearly all are sent")]
pub enum Decision {
    /// The client's own bytes go out, and nothing is learnt from the answer.
    PassOn(Reason),
    /// A request of a known conversation.
    Send(Call),
}

/// Why a request is passed on as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The client asked for it, by the header `x-longhaul: off`.
    Off,
    /// It cannot be read.
    Unreadable,
    /// A part of the conversation is with the provider.
    Stateful,
    /// It begins a thread: the client is asked to send whole conversations.
    NewThread,
    /// No conversation of an agent: a title, a classifier.
    Side,
    /// There is no view that fits, or the engine failed.
    NoView,
    /// Other replicas changed the conversation again and again.
    Store,
    /// It took too long to decide.
    Slow,
    /// All room for requests was taken by others.
    NoRoom,
    /// A bug: a thread of ours panicked.
    Panic,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Off,
        Self::Unreadable,
        Self::Stateful,
        Self::NewThread,
        Self::Side,
        Self::NoView,
        Self::Store,
        Self::Slow,
        Self::NoRoom,
        Self::Panic,
    ];

    /// A word for headers, logs and counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unreadable => "unreadable",
            Self::Stateful => "stateful",
            Self::NewThread => "new-thread",
            Self::Side => "side",
            Self::NoView => "no-view",
            Self::Store => "store",
            Self::Slow => "slow",
            Self::NoRoom => "no-room",
            Self::Panic => "panic",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How often a request is looked at again, if others are in its way.
const LOOKS: usize = 8;

/// Every conversation that is known.
#[derive(Debug)]
pub struct Desk {
    /// They may change while it works: each request goes by those that it finds.
    settings: RwLock<Arc<DeskSettings>>,
    store: Arc<Watched>,
    live: Arc<Live>,
    turns: Turns,
    /// Who wants to know of calls that ended.
    news: Arc<News>,
    upstream_limits: UpstreamLimits,
    pub(crate) books: Arc<Books>,
    refusals: UpstreamRefusals,
    /// Made when a model is first to write summaries.
    writer: OnceLock<Writer>,
}

impl Desk {
    /// With the store that the settings name.
    pub fn open(settings: DeskSettings) -> Result<Self, StoreError> {
        // The vocabulary of most models is loaded while the store is opened, so that the first request does not wait
        // for it. What its Chinese, Japanese and Korean take longer for is made ready behind that.
        let (tell, loaded) = mpsc::channel();
        let loading = std::thread::Builder::new().spawn(move || {
            Vocabulary::O200k.count("");
            _ = tell.send(());
            Vocabulary::O200k.warm();
        });
        let store = Arc::new(Watched::new(longhaul_store::open_with(&settings.store, settings.patience)?));
        if loading.is_ok() {
            _ = loaded.recv();
        }
        let live = Arc::new(Live::new(settings.memory));
        let (writer, turns, news) = (OnceLock::new(), Turns::new(), Arc::default());
        let upstream_limits = UpstreamLimits::open(store.clone())?;
        let refusals = UpstreamRefusals::open(store.clone())?;
        let current = RwLock::new(Arc::new(settings.clone()));
        let books = Arc::default();
        let desk =
            Self { settings: current, store, live, turns, news, upstream_limits, refusals, books, writer };
        desk.change(settings);
        Ok(desk)
    }

    /// Goes by other settings from the next request of each conversation on. The store stays the one that it is.
    pub fn change(&self, mut settings: DeskSettings) {
        if settings.observe {
            // No model is paid for what nobody is sent, and no tool is added.
            (settings.summaries, settings.recall) = (None, Recall::Mcp);
        }
        if settings.summaries.is_some()
            && self.writer.get().is_none()
            && let Ok(writer) = Writer::new()
        {
            _ = self.writer.set(writer);
        }
        let has_model = settings.summaries.is_some() && self.writer.get().is_some();
        settings.profile = beside_requests(settings.profile, has_model);
        self.live.set_limit(settings.memory);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    fn settings(&self) -> Arc<DeskSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says what is done with a request. Whatever goes wrong is a reason to pass it on.
    pub fn decide(&self, incoming: &Incoming) -> Decision {
        self.decide_while(incoming, &|| true)
    }

    /// The same as long as somebody waits for it: what comes too late changes no conversation that has gone on without it.
    pub fn decide_while(&self, incoming: &Incoming, is_awaited: &dyn Fn() -> bool) -> Decision {
        self.sent(incoming, is_awaited).map_or_else(Decision::PassOn, Decision::Send)
    }

    fn sent(&self, incoming: &Incoming, is_awaited: &dyn Fn() -> bool) -> Result<Call, Reason> {
        if incoming.is_off() {
            return Err(Reason::Off);
        }
        // Another request, or another replica, may have been here in between: it is looked at again.
        let mut looks = 0..LOOKS;
        loop {
            match (self.taken(incoming, is_awaited), looks.next()) {
                (Err(Refused::Moved | Refused::Broken), Some(_)) => {}
                (Err(Refused::Store(StoreError::Conflict { .. } | StoreError::NoSession(_))), Some(_)) => {}
                (taken, _) => {
                    return taken.map_err(|refused| {
                        tracing::debug!(%refused, "a request is passed on");
                        refused.into()
                    });
                }
            }
        }
    }

    /// The call that a request becomes.
    fn taken(&self, incoming: &Incoming, is_awaited: &dyn Fn() -> bool) -> Result<Call, Refused> {
        let hints = incoming.hints();
        let begun = self.turns.begun();
        let beginning = match self.find(incoming, &hints)? {
            Search::Found(found) => return self.take(incoming, found, &hints, is_awaited),
            Search::Begins(beginning) if beginning.is_side() => return Err(Refused::Side),
            Search::Begins(beginning) => beginning,
        };
        let _turn = self.turns.wait(beginning.end);
        let beginning = match self.turns.begun() == begun {
            true => beginning,
            // The same request may have come twice, and the other one was faster.
            false => match self.find(incoming, &hints)? {
                Search::Found(found) => return self.take(incoming, found, &hints, is_awaited),
                Search::Begins(beginning) => beginning,
            },
        };
        if !is_awaited() {
            return Err(Refused::TooLate);
        }
        let call = self.take(incoming, self.begin(incoming, beginning)?, &hints, is_awaited)?;
        self.turns.has_begun();
        Ok(call)
    }

    /// The call that a request becomes in its conversation.
    fn take(
        &self,
        incoming: &Incoming,
        found: Found,
        hints: &[Hint],
        is_awaited: &dyn Fn() -> bool,
    ) -> Result<Call, Refused> {
        let Found { conversation, request, how } = found;
        self.learn_from_others(&incoming.tenant, &conversation, &request)?;
        let mut locked = self.lock(&conversation)?;
        if !is_awaited() {
            if matches!(how, How::New | How::Forks) {
                // Nothing was sent of it.
                _ = self.store.delete(conversation.id);
            }
            return Err(Refused::TooLate);
        }
        let model = request.frame().model.as_deref().unwrap_or_default();
        let shared_window = self.upstream_limits.window(&incoming.upstream, model, now());
        locked.speak_as(self.refusals.voice(&incoming.upstream, model, now()));
        match locked.take(&self.settings(), &incoming.tenant, &request, shared_window) {
            Ok(ticket) => {
                locked.came_with(incoming.account);
                let upstream = incoming.upstream.clone();
                let at = At::new(ticket, conversation.clone(), upstream);
                let call = call(&self.books, &mut locked, request, how, at);
                let used =
                    Used { bytes: locked.bytes(), outside: locked.thinking_outside(), end: locked.end() };
                self.live.used(&conversation, hints, used);
                self.summarise(&conversation, &mut locked);
                Ok(call)
            }
            Err(Refused::Moved) => Err(Refused::Moved),
            Err(refused) => {
                // What is in memory may be another than what is stored.
                self.live.leave(&conversation, &locked, &refused);
                if matches!(how, How::New | How::Forks) && locked.is_begun() {
                    // Nothing was sent of it. What cannot be deleted now goes with its age.
                    _ = self.store.delete(conversation.id);
                }
                Err(refused)
            }
        }
    }

    /// A conversation that goes on with answers of another one learns what produced them: a client that goes back to an
    /// earlier model brings what it did with a later one.
    fn learn_from_others(&self, tenant: &str, shared: &Shared, request: &Request) -> Result<(), Refused> {
        /// So many are asked, those that were used last.
        const MOST: usize = 8;
        let unknown = shared.lock()?.unknown_seals(request);
        if unknown.is_empty() {
            return Ok(());
        }
        let others = self.live.of_tenant(tenant).into_iter().filter(|other| other.id != shared.id);
        let produced = others.take(MOST).find_map(|other| {
            let produced = other.lock().ok()?.session().produced(&unknown);
            (!produced.is_empty()).then_some(produced)
        });
        if let Some(produced) = produced {
            shared.lock()?.learn_produced(produced);
        }
        Ok(())
    }

    /// Has the summary written that a conversation asks for, if it is not being written already.
    fn summarise(&self, shared: &Shared, conversation: &mut Conversation) {
        let settings = self.settings();
        let (Some(writer), Some(by)) = (self.writer.get(), &settings.summaries) else { return };
        let Some(job) = conversation.job_to_write() else { return };
        let (shared, live, books) = (shared.clone(), self.live.clone(), self.books.clone());
        writer.write(by.clone(), job, move |summarised| {
            live.store_with(&shared, |conversation| {
                let stored = conversation.summarised(summarised);
                conversation.settle(&books);
                stored
            });
        });
    }

    /// The provider refused thinking in a call: it is left out of this and of every later request, from the message with
    /// this signature on.
    pub fn refused_thinking(&self, call: Call, from: Option<&str>) -> Option<Call> {
        if let Some(alone) = &call.alone {
            self.refused_alone(alone);
            return self.stateless(alone.incoming.as_ref()?, None);
        }
        let mut at = call.at?;
        let request = at.request.take()?;
        let shared = at.conversation.clone();
        let mut conversation = shared.lock().ok()?;
        if conversation.new_from(&request) != Some(request.messages().len()) {
            // Another request has gone on from here meanwhile.
            return None;
        }
        at.ticket = conversation.refused_thinking(from).ok()?;
        self.live.keeps(shared.id, conversation.thinking_outside());
        let next = self::call(&self.books, &mut conversation, request, call.how, at);
        Some(Call { rung: call.rung, ..next })
    }

    /// The provider answered a call: what it said of its price, and what thinking it signed. It counts for the next request,
    /// and nothing is stored: [`answered`](Self::answered) does that. Waits for no request.
    pub fn heard(&self, call: &mut Call, usage: Option<&Usage>, seals: Vec<String>) {
        let heard = |ticket| Heard { ticket, usage: usage.cloned(), seals: seals.clone() };
        match (&call.at, &call.alone) {
            (Some(at), _) => {
                self.live.answered_with(at.conversation.id, &seals);
                at.conversation.hears(heard(at.ticket));
            }
            (None, Some(alone)) => self.heard_alone(alone, heard(Ticket(0))),
            (None, None) => return,
        }
        call.is_heard = usage.is_some();
    }

    /// The provider answered a call; `usage` is what it said of its price. All that is known of the conversation is
    /// stored when this returns.
    pub fn answered(&self, call: Call, usage: Option<&Usage>) {
        call.alone.iter().for_each(|alone| self.answered_alone(alone));
        let Some(at) = call.at else { return };
        let usage = usage.filter(|_| !call.is_heard);
        self.live.store_with(&at.conversation, |conversation| {
            let stored = conversation.answered(at.ticket, usage);
            conversation.settle(&self.books);
            stored
        });
        self.news.tell(call.session);
    }

    /// The provider refused a call as too long. What to send instead, if there is anything smaller.
    pub fn overflowed(&self, call: Call, overflow: Overflow) -> Option<Call> {
        if let Some(alone) = &call.alone {
            return self.overflowed_alone(alone, overflow);
        }
        let mut at = call.at?;
        let request = at.request.take()?;
        self.learn(&at.upstream, &request, overflow);
        let shared = at.conversation.clone();
        let mut conversation = shared.lock().ok()?;
        if conversation.new_from(&request) != Some(request.messages().len()) {
            // Another request has gone on from here meanwhile.
            return None;
        }
        at.ticket = conversation.overflowed(at.ticket, overflow).ok()?;
        self.live.keeps(shared.id, conversation.thinking_outside());
        let next = self::call(&self.books, &mut conversation, request, call.how, at);
        let smaller = Call { rung: call.rung, ..next };
        let is_shorter = smaller.shorter_answer.is_some() && smaller.shorter_answer != call.shorter_answer;
        (smaller.view < call.view || is_shorter).then_some(smaller)
    }

    /// A refusal teaches all conversations with this upstream and model. A window that a beta asks for is not theirs.
    fn learn(&self, upstream: &str, request: &Request, overflow: Overflow) {
        if asks_for_a_million(request) {
            return;
        }
        let model = request.frame().model.as_deref().unwrap_or_default();
        self.upstream_limits.refused(upstream, model, overflow, now());
    }

    /// The provider refused a call as too long, and nothing is sent instead.
    pub fn refused(&self, call: Call, overflow: Overflow) {
        call.alone.iter().for_each(|alone| self.refused_alone(alone));
        let Some(at) = call.at else { return };
        if let Some(request) = &at.request {
            self.learn(&at.upstream, request, overflow);
        }
        self.live.store_with(&at.conversation, |conversation| conversation.refused(at.ticket, overflow));
    }

    /// Tokens of the view of a conversation, if it is a known one: for clients that ask how large it is.
    pub fn count(&self, incoming: &Incoming) -> Option<Tokens> {
        if incoming.is_off() || self.settings().observe {
            return None;
        }
        incoming.hints().iter().flat_map(|hint| self.live.hinted(hint)).find_map(|shared| {
            let conversation = shared.lock().ok()?;
            let request = conversation.read(incoming.body.clone())?;
            if conversation.common(&request.identities()) == 0 { None } else { conversation.count(&request) }
        })
    }

    /// How many conversations are in memory, and their bytes.
    pub fn live(&self) -> (usize, usize) {
        self.live.size()
    }
}

/// A profile for requests that wait for nobody: a model writes summaries beside them, if there is one, and where
/// one is needed at once code writes it.
fn beside_requests(profile: Profile, has_model: bool) -> Profile {
    let summariser = if has_model { Summariser::Host } else { Summariser::Extractor };
    Profile { summariser, background: true, on_failure: OnFailure::Extract, ..profile }
}

impl From<Refused> for Reason {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unreadable => Self::Unreadable,
            Refused::Stateful => Self::Stateful,
            Refused::NewThread => Self::NewThread,
            Refused::Side => Self::Side,
            Refused::NoView(_) => Self::NoView,
            Refused::Store(_) => Self::Store,
            Refused::Broken => Self::Panic,
            Refused::Moved | Refused::TooLate => Self::Slow,
        }
    }
}
