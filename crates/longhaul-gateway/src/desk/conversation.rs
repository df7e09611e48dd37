//! One conversation of a client with its provider: what was seen of it, its session, and where that is stored.

mod catching_up;
mod stored;
mod thinking;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul::conversation::{Block, FactKind};
use longhaul::session::Cramped;
use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::{Measure, Price};
use longhaul::{
    Frame, Job, Message, Models, Notice, Outcome, Overflow, Position, PrepareError, Prepared, Role, Seals,
    Session, Source, Ticket, Time, Tokens, Usage, Why,
};
use longhaul_inspector::{Act, steering};
use longhaul_model::Summarised;
use longhaul_store::{About, Keeper, SessionId, Store, StoreError};
use longhaul_wire::api::{Api, BodyText, Chain, Identity, Relay, Request, SharedText};

pub(super) mod otherwise;

use super::asking::{Action, AskError};
use super::fill;
use super::live::Hint;
use super::observing::Observer;
use super::overlap::overlap;
use super::{Break, DeskSettings, Recall};
use crate::account::{Account, Costs};
use crate::books::Books;

pub(super) use thinking::{is_signed, seals_of};

/// Why a conversation was not changed.
type ChangeError = steering::ChangeError<longhaul_inspector::Refused>;

/// A conversation that is live.
#[derive(Debug)]
pub(super) struct Conversation {
    /// What it goes by: that of its last request.
    settings: Arc<DeskSettings>,
    api: Api,
    relay: Relay,
    session: Session,
    keeper: Keeper,
    /// What it has cost.
    costs: Account,
    /// Looks on, where Longhaul only observes.
    observer: Option<Observer>,
    /// The messages that the session has.
    known: Vec<Identity>,
    /// By which hashes it is found: of the conversation up to each message.
    chains: Vec<Chain>,
    /// How many of these are stored.
    named: usize,
    /// The newest entries could not be stored.
    is_owing: bool,
    /// It has begun with a request that is not sent yet.
    is_unsent: bool,
    /// How often the store had another file when it was compared with what is known here.
    replaced: u64,
    /// By which it is found too: the end of what a client sends that has taken messages away, and how many it sends.
    also_named: Option<(usize, Chain)>,
    /// Bytes of all messages.
    said: usize,
    /// How little room there is, until it is reported.
    cramped: Option<Cramped>,
    /// Which key its requests came with, as a number of this process, and whether another one came too.
    account: Option<u64>,
    has_two_accounts: bool,
    /// The job that is being written.
    writing: Option<u64>,
    /// Up to where the journal was looked at for requests that broke the provider's cache.
    looked_at: Cursor,
    /// Its newest request asks for a window of a million tokens.
    asks_for_a_million: bool,
    /// What it was before the request was sent in another form, while nothing is known of that one.
    before_retry: Option<Box<otherwise::Before>>,
    /// The provider takes the client's own bytes and none of our edits: none is made as long as they fit.
    stays_whole: bool,
}

/// Why a request is not one of a conversation, or its conversation did not take it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// It cannot be read.
    #[error("it is no request that can be read")]
    Unreadable,
    /// A part of the conversation is with the provider.
    #[error("a part of the conversation is with the provider")]
    Stateful,
    /// It begins a thread, in which later requests would not show what stands before them.
    #[error("it begins a thread with the provider")]
    NewThread,
    /// No conversation of an agent.
    #[error("it is no conversation of an agent")]
    Side,
    /// A panic left the conversation half done.
    #[error("a panic left the conversation half done")]
    Broken,
    /// Another request has gone on with the conversation meanwhile.
    #[error("other requests are in its way")]
    Moved,
    /// Nobody waits for it any longer.
    #[error("nobody waits for it any longer")]
    TooLate,
    /// There is no view that fits.
    #[error("{0}")]
    NoView(PrepareError),
    /// Another replica was here.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl Conversation {
    /// A conversation that nobody has seen.
    pub(super) fn create(
        store: Arc<dyn Store>,
        settings: &Arc<DeskSettings>,
        about: &About,
        api: Api,
        request: &Request,
    ) -> Result<Self, StoreError> {
        let mut new = Self::begin(store, settings, about, api, request);
        new.was_sent();
        new.save()?;
        Ok(new)
    }

    /// The same for one that may come to nothing: nothing of it is stored before its first request is sent.
    pub(super) fn begin(
        store: Arc<dyn Store>,
        settings: &Arc<DeskSettings>,
        about: &About,
        api: Api,
        request: &Request,
    ) -> Self {
        let frame = request.frame();
        let model = Models::builtin().find(frame.model.as_deref().unwrap_or_default()).clone();
        // Thinking that was produced without a tool of ours would be refused after it.
        let is_bound = model.binds && request.messages().iter().any(|message| is_signed(message));
        let mut session = Session::new(settings.profile.clone(), model);
        if settings.recall == Recall::Fill && fill::is_wanted(frame) && !is_bound {
            fill::begin(&mut session);
        }
        session.read_signatures();
        let keeper = Keeper::begin(store, about);
        let new = Self::of(settings.clone(), &about.tenant, api, session, keeper);
        Self { is_unsent: true, ..new }
    }

    /// A stored conversation.
    pub(super) fn open(
        store: Arc<dyn Store>,
        settings: &Arc<DeskSettings>,
        tenant: &str,
        api: Api,
        id: SessionId,
    ) -> Result<Self, StoreError> {
        let (keeper, mut session) = Keeper::open(store, id, settings.profile.clone())?;
        session.read_signatures();
        // The table may know more of its model than when the session was stored.
        let row = Models::builtin()
            .find(session.log().frame().and_then(|f| f.model.as_deref()).unwrap_or_default());
        if row.name == session.model().name && row != session.model() {
            session.switch(row.clone(), Seals::Client);
        }
        Ok(Self::of(settings.clone(), tenant, api, session, keeper))
    }

    fn of(settings: Arc<DeskSettings>, tenant: &str, api: Api, session: Session, keeper: Keeper) -> Self {
        let known: Vec<Identity> =
            session.log().messages().iter().map(|message| Identity::of(message)).collect();
        let chains: Vec<Chain> = Chain::start(tenant, api).over(&known).collect();
        let relay = Relay::of(api, session.log().messages());
        let (named, replaced) = (chains.len(), keeper.store().replaced());
        let said = session.log().messages().iter().map(|message| message.bytes()).sum();
        let looked_at = session.cursor();
        let mut costs = Account::of(&session, price_of_summaries(&settings));
        let observer = settings.observe.then(Observer::default);
        if observer.is_some() {
            costs = costs.observing();
        }
        Self {
            settings,
            costs,
            observer,
            looked_at,
            api,
            relay,
            session,
            keeper,
            known,
            chains,
            named,
            is_owing: false,
            is_unsent: false,
            replaced,
            also_named: None,
            said,
            cramped: None,
            account: None,
            has_two_accounts: false,
            writing: None,
            asks_for_a_million: false,
            before_retry: None,
            stays_whole: false,
        }
    }

    /// A conversation of its own that shares the first messages with this one.
    pub(super) fn fork(&self, tenant: &str, shared: usize, frame: &Frame) -> Result<Self, StoreError> {
        let end = Position(u32::try_from(shared).unwrap_or(u32::MAX));
        let journal = |problem| StoreError::Journal { session: self.id(), problem };
        // aider, for one, puts the files of the moment and its rules behind the history, anew in each request.
        let mut session = self.session.fork_with_edits(end).map_err(journal)?;
        let model = Models::builtin().find(frame.model.as_deref().unwrap_or_default());
        if model.name != session.model().name {
            session.switch(model.clone(), Seals::Client);
        }
        let keeper = self.keeper.begin_fork(&session);
        let mut fork = Self::of(self.settings.clone(), tenant, self.api, session, keeper);
        fork.costs = Account::of_fork(&fork.session, price_of_summaries(&self.settings));
        if fork.observer.is_some() {
            fork.costs = fork.costs.observing();
        }
        fork.save()?;
        // It may be gone on with where it leaves this one: the hash of all that both say names it too. What names this one
        // and is not stored names it alone.
        fork.named = fork.chains.len().saturating_sub(1).min(self.named);
        Ok(fork)
    }

    /// The stored session.
    pub(super) fn id(&self) -> SessionId {
        self.keeper.id()
    }

    /// What the client speaks.
    pub(super) fn api(&self) -> Api {
        self.api
    }

    /// Its session, to be looked at.
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Does something that a person or a model asked for, and stores it.
    pub(super) fn act(&mut self, action: &Action) -> Result<(), AskError> {
        self.settle_retry();
        match action {
            // What is pinned already stays pinned.
            Action::Pin(text) => _ = steering::pin(&mut self.session, text),
            Action::Unpin(number) => {
                let pins = self.session.log().facts(FactKind::Pin).into_iter();
                let names: Vec<String> = pins.map(|(name, _)| name.to_owned()).collect();
                let name = number.checked_sub(1).and_then(|at| names.get(at));
                self.session.unpin(name.ok_or(AskError::NoPin(*number))?.as_str());
            }
            Action::Goal(text) => self.session.set_goal(text.as_str()),
        }
        Ok(self.save()?)
    }

    /// Does something to its session, and stores it. What cannot be done whole is not done.
    pub(super) fn change(&mut self, act: Act<'_>) -> Result<(), ChangeError> {
        self.settle_retry();
        let before = self.session.clone();
        if let Err(refused) = act(&mut self.session) {
            self.session = before;
            return Err(ChangeError::Act(refused));
        }
        Ok(self.save()?)
    }

    /// The summary that is asked for, if it is not being written already. It is from now on.
    pub(super) fn job_to_write(&mut self) -> Option<Job> {
        let job = self.session.job().filter(|job| self.writing != Some(job.id))?;
        self.writing = Some(job.id);
        Some(job)
    }

    /// A summary was written, or will not come.
    pub(super) fn summarised(&mut self, summarised: Summarised) -> Result<(), StoreError> {
        self.settle_retry();
        summarised.resolve(&mut self.session);
        self.save()
    }

    /// How the client says it: its request, read with what is known.
    pub(super) fn read(&self, body: SharedText) -> Option<Request> {
        self.relay.read(body).ok().map(|request| self.offering(request))
    }

    /// A request of this conversation, with the tool that the conversation began with. Its sizes, and whether the same
    /// agent goes on, are those of the request with the tool.
    pub(super) fn offering(&self, request: Request) -> Request {
        match fill::is_on(&self.session) && fill::is_wanted(request.frame()) {
            true => request.offering(fill::tool(&self.session, self.api)),
            false => request,
        }
    }

    /// How many messages at the start of a request are known here.
    pub(super) fn common(&self, identities: &[Identity]) -> usize {
        self.known.iter().zip(identities).take_while(|(known, new)| known == new).count()
    }

    /// The first message of a request that is new here; `None` if the request does not go on where this conversation
    /// ends. It goes on too if the client itself has made old results shorter, or has dropped its oldest messages: what
    /// it sent before is known here, and stays as it was sent.
    pub(super) fn new_from(&self, request: &Request) -> Option<usize> {
        let identities = request.identities();
        let common = self.common(&identities);
        if common == self.len() {
            return Some(common);
        }
        let cleared = self.is_cleared_in(request, &identities, common).then_some(self.len());
        cleared.or_else(|| self.behind_dropped(&identities, common))
    }

    /// True if a request has all messages that are known, but for results that are shorter now. A result that no model
    /// has answered is not an old one: the client has another one for the model to see.
    fn is_cleared_in(&self, request: &Request, identities: &[Identity], common: usize) -> bool {
        let is_answer = |message: &Arc<Message>| message.role() == Role::Assistant;
        let answered = request.messages().iter().rposition(is_answer).unwrap_or_default();
        let same_or_shorter = |at: usize| {
            let is_shorter = || shorter_results(&self.session.log().messages()[at], &request.messages()[at]);
            self.known[at] == identities[at] || (at < answered && is_shorter())
        };
        identities.len() >= self.len() && (common..self.len()).all(same_or_shorter)
    }

    /// The first new message of a request from which messages behind the first `common` ones are missing.
    fn behind_dropped(&self, identities: &[Identity], common: usize) -> Option<usize> {
        /// So many messages must be known again behind what is missing: fewer may be the same by chance.
        const KNOWN_AGAIN: usize = 4;
        let kept = overlap(self.known.get(common + 1..)?, &identities[common..]);
        (kept >= KNOWN_AGAIN).then_some(common + kept)
    }

    /// How many messages there are.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The hash of all that is said in it.
    pub(super) fn end(&self) -> Option<Hint> {
        self.chains.last().map(|chain| Hint(chain.bytes()))
    }

    /// True if the same agent goes on.
    pub(super) fn is_of(&self, frame: &Frame) -> bool {
        self.session.log().frame().is_none_or(|before| before.is_same_agent(frame))
    }

    /// True if a model has answered among the first messages: what stands before the first answer is said in
    /// many conversations.
    pub(super) fn is_answered_in(&self, first: usize) -> bool {
        let messages = &self.session.log().messages()[..first.min(self.len())];
        messages.iter().any(|message| message.role() == Role::Assistant)
    }

    /// Bytes that it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        let said = self.said + self.session.log().frame().map_or(0, frame_bytes);
        // The text of a message, and what it was read from.
        said * 2 + self.session.bytes_beside_messages() + self.known.len() * 200
    }

    /// Takes in what a request has more than is known, and makes what is to be sent ready. What could not be made
    /// again after a crash is stored when this returns.
    pub(super) fn take(
        &mut self,
        settings: &Arc<DeskSettings>,
        tenant: &str,
        request: &Request,
        shared_window: Option<Tokens>,
    ) -> Result<Ticket, Refused> {
        self.take_in(settings, tenant, request, shared_window)?;
        let ticket = self.prepare()?;
        let is_tied = self.is_tied();
        if let Some(observer) = &mut self.observer {
            observer.prepared(&self.session, is_tied);
        }
        Ok(ticket)
    }

    /// Takes in what a request has more than is known.
    pub(super) fn take_in(
        &mut self,
        settings: &Arc<DeskSettings>,
        tenant: &str,
        request: &Request,
        shared_window: Option<Tokens>,
    ) -> Result<(), Refused> {
        let new_from = self.new_from(request).ok_or(Refused::Moved)?;
        // Nobody waits for the form that was tried last.
        self.take_back_retry();
        if !Arc::ptr_eq(&self.settings, settings) || self.stays_whole {
            self.settings = settings.clone();
            self.set_profile();
        }
        self.session.set_frame(request.frame().clone());
        if let Some(window) = window(settings, request, &self.session)
            && self.session.budget().window != window
        {
            self.session.set_window(window);
        }
        self.share_window(request, shared_window);
        let identities = request.identities();
        if self.common(&identities) < self.len() {
            let end = Chain::start(tenant, self.api).over(&identities).last();
            self.also_named = end.map(|end| (identities.len(), end));
        }
        self.session.set_taken_away(self.taken_away(request, &identities, new_from));
        if let Some(observer) = &mut self.observer {
            observer.came(&self.session, &request.messages()[new_from..]);
        }
        // A client that has a tool of that name itself runs it.
        let is_ours = request.is_offering() || !fill::has_recall(request.frame());
        let fills = is_ours && fill::is_on(&self.session);
        for (message, identity) in request.messages().iter().zip(&*identities).skip(new_from) {
            let at = self.push(tenant, message, *identity);
            if fills {
                fill::fill(&mut self.session, at);
            }
        }
        self.relay.keep(request);
        Ok(())
    }

    /// Whether the client's own bytes are sent, whatever the view is.
    pub(super) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// The window in which the provider wants prompt and allowed answer together. A request that asks for a million tokens
    /// has another one than the model's other requests: what was learnt before holds for it no more, until it is refused.
    fn share_window(&mut self, request: &Request, learnt: Option<Tokens>) {
        let before = std::mem::replace(&mut self.asks_for_a_million, asks_for_a_million(request));
        if !self.asks_for_a_million {
            if let Some(window) = learnt {
                self.session.set_shared_window(window);
            }
        } else if !before && self.session.shared_window().is_some_and(|window| window < MILLION) {
            self.session.set_shared_window(MILLION);
        }
    }

    /// How much of what is known here a request no longer has: the client has dropped messages, or made results shorter.
    fn taken_away(&self, request: &Request, identities: &[Identity], new_from: usize) -> Measure {
        let (common, sizes) = (self.common(identities), self.session.sizes());
        if new_from < self.len() {
            let kept = new_from - common;
            return sizes[common..self.len() - kept].iter().copied().sum();
        }
        let shorter = (common..self.len()).filter(|at| self.known[*at] != identities[*at]);
        let meter = self.session.meter();
        shorter.map(|at| sizes[at] - meter.message(&request.messages()[at])).sum()
    }

    fn push(&mut self, tenant: &str, message: &Arc<Message>, identity: Identity) -> Position {
        self.knows(tenant, message, identity);
        self.session.push(message.clone())
    }

    /// The session is about to have this message.
    fn knows(&mut self, tenant: &str, message: &Message, identity: Identity) {
        let before = self.chains.last().copied().unwrap_or_else(|| Chain::start(tenant, self.api));
        self.said += message.bytes();
        self.known.push(identity);
        self.chains.push(before.then(identity));
    }

    pub(super) fn prepare(&mut self) -> Result<Ticket, Refused> {
        let ticket = self.prepare_unsaved()?;
        if self.session.since(self.keeper.stored()).any(cannot_be_made_again) {
            self.save()?;
        }
        Ok(ticket)
    }

    /// The same, with nothing stored: it may not stay so.
    fn prepare_unsaved(&mut self) -> Result<Ticket, Refused> {
        let ticket = loop {
            match self.session.prepare(Some(now())).map_err(Refused::NoView)? {
                Prepared::Send(ticket) => break ticket,
                // A request never waits for a summary: the profile says what is done without one.
                Prepared::Summarise(job) => {
                    self.session.resolve(job.id, Outcome::TimedOut);
                }
            }
        };
        for notice in self.session.take_notices() {
            if let Notice::Cramped(cramped) = notice {
                tracing::warn!(session = %self.id(), "{cramped}");
                self.cramped = Some(cramped);
            }
        }
        Ok(ticket)
    }

    /// The body to send in the place of the client's, and whether it is the client's own.
    pub(super) fn body(&mut self, request: &Request) -> BodyText {
        if self.is_as_it_came(request) {
            return self.relay.write(request).body;
        }
        let sent = request.clone().sending(&self.session.outgoing());
        self.relay.write(&sent).body
    }

    /// True if nothing was done to a request: no edit stands, nothing stands before or behind its messages, and it has
    /// all of them. Then what is wrong in it is for the provider to say.
    fn is_as_it_came(&self, request: &Request) -> bool {
        let sent = self.session.outgoing();
        sent.tail.is_none()
            && sent.parts.iter().all(|part| matches!(part.source, Source::Message(_)))
            && self.session.ledger().is_untouched()
            && *request.identities() == *self.known
    }

    /// Tokens that are sent, tokens of the whole conversation, and how many edits stand.
    pub(super) fn figures(&self) -> (Tokens, Tokens, usize) {
        // From the same reported prompt as the view: where nothing is left out, both are the same.
        let full = self.session.meter().estimate(self.session.full()).tokens;
        let edits = self.session.ledger().edits().filter(|(_, active)| *active).count();
        (self.session.size().tokens, full, edits)
    }

    /// What it has cost so far, and what it would have cost otherwise. What is new of that goes into the books.
    pub(super) fn settle(&mut self, books: &Books) -> Costs {
        let new = self.costs.settle(&self.session);
        if let Some(observer) = &mut self.observer {
            books.observed(observer.take());
        }
        books.add(self.api, self.session.model(), new);
        let window = self.session.budget().window.0.max(1);
        books.filled(self.session.size().tokens.0.saturating_mul(100) / window);
        self.costs.total
    }

    /// Tokens of a request of this conversation, as they would be sent.
    pub(super) fn count(&self, request: &Request) -> Option<Tokens> {
        let new = request.messages().iter().skip(self.new_from(request)?);
        let new = new.map(|message| self.session.meter().message(message)).sum();
        Some(self.session.size().tokens + self.session.meter().tokens(new).tokens)
    }

    /// Why the newest request does not go on from the one before it, if it does not: what the provider has in its
    /// cache is of no use behind that place. Each request is told of once.
    pub(super) fn broke(&mut self) -> Option<Break> {
        let new = || self.session.since(self.looked_at);
        let broke = new().any(|entry| matches!(entry, Entry::Sent(sent) if sent.broke));
        let why = new().filter_map(Break::of).min().unwrap_or(Break::Other);
        self.looked_at = self.session.cursor();
        broke.then_some(why)
    }

    /// How little room there is, when it is noticed.
    pub(super) fn cramped(&mut self) -> Option<Cramped> {
        self.cramped.take()
    }

    /// What the answer may have at most, where the provider refuses what the client asks for.
    pub(super) fn shorter_answer(&self) -> Option<Tokens> {
        self.session.shorter_answer()
    }

    /// A request came with this key. Thinking that one account has made another cannot read: it is dropped in silence.
    pub(super) fn came_with(&mut self, account: Option<u64>) {
        let Some(account) = account else { return };
        let before = self.account.replace(account);
        let is_other = before.is_some_and(|before| before != account) && self.session.model().binds;
        if is_other && !self.has_two_accounts {
            self.has_two_accounts = true;
            tracing::warn!(
                session = %self.id(),
                "one conversation comes with two keys: of two organizations, each loses the other's thinking"
            );
        }
    }

    /// What an answer said of its price counts from now on.
    pub(super) fn heard(&mut self, ticket: Ticket, usage: &Usage) {
        if self.is_observed() {
            let usage = self.costs.as_if_sent(&self.session, ticket, usage);
            self.session.observe(ticket, &usage);
        } else {
            self.session.observe(ticket, usage);
        }
    }

    /// The provider answered.
    pub(super) fn answered(&mut self, ticket: Ticket, usage: Option<&Usage>) -> Result<(), StoreError> {
        // Another call may end while a form is tried.
        if self.session.last_ticket() == Some(ticket) {
            self.take_back_retry();
        }
        usage.into_iter().for_each(|usage| self.heard(ticket, usage));
        self.save()
    }

    /// The provider refused a request as too long: the next one is smaller.
    pub(super) fn overflowed(&mut self, ticket: Ticket, overflow: Overflow) -> Result<Ticket, Refused> {
        self.session.overflowed(ticket, overflow);
        self.prepare()
    }

    /// The provider refused a request as too long, and nothing is sent instead: the window is learnt from it.
    pub(super) fn refused(&mut self, ticket: Ticket, overflow: Overflow) -> Result<(), StoreError> {
        self.session.overflowed(ticket, overflow);
        self.save()
    }
}

/// Bytes of what comes before the messages.
fn frame_bytes(frame: &Frame) -> usize {
    let tools = frame.tools.iter().map(|tool| tool.name.len() + tool.definition.as_str().len());
    frame.system.iter().map(Block::bytes).sum::<usize>() + tools.sum::<usize>() + frame.settings.bytes()
}

/// True if both messages have results of the same calls, and the new one is shorter.
fn shorter_results(old: &Message, new: &Message) -> bool {
    let ids = |message: &Message| message.results().map(|result| result.id.clone()).collect::<Vec<_>>();
    old.role() == Role::Tool && new.role() == Role::Tool && ids(old) == ids(new) && new.bytes() < old.bytes()
}

/// True if the entry is not a function of what the client sends again: after a crash it would be another.
fn cannot_be_made_again(entry: &Entry) -> bool {
    match entry {
        Entry::Edit(edit) => edit.why != Why::Entry,
        Entry::Sent(sent) => sent.closed,
        Entry::Undo { .. }
        | Entry::Redo { .. }
        | Entry::NoteShown { .. }
        | Entry::RulesShown { .. }
        | Entry::HostNote { .. }
        | Entry::Voiced(_)
        | Entry::Unbound(_)
        | Entry::StepClosed
        | Entry::Refused { .. }
        | Entry::Fact(_)
        | Entry::Asked { .. }
        | Entry::Switched { .. } => true,
        _ => false,
    }
}

/// The price list of the model that writes summaries, if there is one.
fn price_of_summaries(settings: &DeskSettings) -> Option<Price> {
    let model = settings.summaries.as_ref()?.frame.model.as_deref()?;
    Models::builtin().find(model).price
}

/// What fits into the window: as set, or a million where the client asks for it; else the model's own.
fn window(settings: &DeskSettings, request: &Request, session: &Session) -> Option<Tokens> {
    let million =
        Some(MILLION).filter(|window| asks_for_a_million(request) && *window > session.model().window);
    settings.window.or(million)
}

/// The window that a beta asks for.
const MILLION: Tokens = Tokens(1_000_000);

/// True if the request asks for a window of a million tokens by a beta.
pub(super) fn asks_for_a_million(request: &Request) -> bool {
    /// A part of the beta's name. The date after it changes.
    const BETA: &str = "context-1m";
    request.betas().is_some_and(|betas| betas.contains(BETA))
}

pub(super) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
