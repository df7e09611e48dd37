//! The threads on which the desk works: a fixed number, since each of them keeps memory of its own; more only while some
//! of them hang. Whatever happens there, whoever waits gets an answer: a decision that is late or that panics is one to pass on.

mod asking_tools;
mod open_call;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use longhaul::session::Overflow;
use longhaul::{Tokens, Usage};
use longhaul_inspector::Inspector;
use longhaul_inspector::access::Access;
use longhaul_store::{Pruned, StoreError};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::books::Books;
use crate::desk::{
    AfterRefusal, Call, Called, Decision, Desk, DeskSettings, Incoming, KeptThinking, Reason, ToolCaller,
};
use crate::mcp::{self, ToolAnswer};
use crate::room::Place;
use crate::turns::Turns;

pub(crate) use open_call::{Brief, OpenCall};

/// What the gateway needs of a desk. Tests have desks of their own.
pub trait Decide: Send + Sync + 'static {
    /// Says what is done with a request.
    fn decide(&self, incoming: &Incoming) -> Decision;
    /// The same, as long as somebody waits for it: a decision that comes too late must not change a conversation that has
    /// gone on without it.
    fn decide_while(&self, incoming: &Incoming, _is_awaited: &dyn Fn() -> bool) -> Decision {
        self.decide(incoming)
    }
    /// The provider refused thinking in a call, from the block with this signature on if it named one: what to send
    /// instead, without it.
    fn refused_thinking(&self, _call: Call, _from: Option<&str>) -> Option<Call> {
        None
    }
    /// The provider refused what stands in a call, in these words, or found it too long in the form that was tried last:
    /// what is done with it.
    fn refused_content(&self, call: Call, _says: &str, _is_too_long: bool) -> AfterRefusal {
        AfterRefusal::Answer(call)
    }
    /// A call that was sent in another form ends, and whether the provider took it.
    fn retried(&self, _call: &mut Call, _is_taken: bool) {}
    /// Which messages of a request may keep their thinking if it is passed on as it came. Waits for nothing.
    fn thinking_outside(&self, _incoming: &Incoming) -> KeptThinking {
        KeptThinking::All
    }
    /// The same of a conversation that is stored and not in memory.
    fn thinking_outside_of_stored(&self, _incoming: &Incoming) -> KeptThinking {
        KeptThinking::All
    }
    /// What is sent where there was no decision, or where the client's own bytes were too long; `None` for the client's own
    /// bytes. Waits for no conversation and no store.
    fn fall_back(&self, _incoming: &Incoming, _overflow: Option<Overflow>) -> Option<Call> {
        None
    }
    /// Whether the client's own bytes fit, as far as that can be told at once.
    fn fits(&self, _incoming: &Incoming) -> bool {
        true
    }
    /// A call is sent now. Waits for nobody.
    fn is_sent(&self, _call: &Call) {}
    /// The provider answered a call: what it said of the price, and what thinking it signed, counts for the next request,
    /// however soon that comes. Waits for nobody; [`answered`](Self::answered) comes behind it.
    fn heard(&self, _call: &mut Call, _usage: Option<&Usage>, _seals: Vec<String>) {}
    /// The provider answered a call.
    fn answered(&self, call: Call, usage: Option<&Usage>);
    /// The provider refused a call as too long.
    fn overflowed(&self, call: Call, overflow: Overflow) -> Option<Call>;
    /// The provider refused a call as too long, and nothing is sent instead.
    fn refused(&self, call: Call, _overflow: Overflow) {
        self.answered(call, None);
    }
    /// Tokens of the view of a conversation, if it is a known one.
    fn count(&self, incoming: &Incoming) -> Option<Tokens>;
    /// An error, in a sentence, if it cannot store what it does.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }
    /// Does what could not be done before, as far as it can be done now. Called about once a second.
    fn tend(&self) {}
    /// It will be asked nothing more.
    fn close(&self) {}
    /// Goes by other settings from the next request on.
    fn change(&self, _settings: DeskSettings) {}
    /// Deletes some of the sessions that are not to be kept any longer.
    fn prune(&self) -> Result<Pruned, StoreError> {
        Ok(Pruned::default())
    }
    /// The inspector of its sessions, if it has any.
    fn inspector(self: Arc<Self>, _access: Access) -> Option<Inspector> {
        None
    }
    /// What its conversations cost.
    fn books(&self) -> Arc<Books> {
        Arc::default()
    }
    /// The provider answered a call with calls of our tools. Waits for nobody.
    fn called(&self, _call: &Call, _called: Called) {}
    /// Answers a message to our tools.
    fn tools(&self, _caller: &ToolCaller, _message: &str) -> ToolAnswer {
        ToolAnswer::Nothing
    }
}

impl Decide for Desk {
    fn decide(&self, incoming: &Incoming) -> Decision {
        Desk::decide(self, incoming)
    }

    fn decide_while(&self, incoming: &Incoming, is_awaited: &dyn Fn() -> bool) -> Decision {
        Desk::decide_while(self, incoming, is_awaited)
    }

    fn refused_thinking(&self, call: Call, from: Option<&str>) -> Option<Call> {
        Desk::refused_thinking(self, call, from)
    }

    fn refused_content(&self, call: Call, says: &str, is_too_long: bool) -> AfterRefusal {
        Desk::refused_content(self, call, says, is_too_long)
    }

    fn retried(&self, call: &mut Call, is_taken: bool) {
        Desk::retried(self, call, is_taken);
    }

    fn thinking_outside(&self, incoming: &Incoming) -> KeptThinking {
        Desk::thinking_outside(self, incoming)
    }

    fn thinking_outside_of_stored(&self, incoming: &Incoming) -> KeptThinking {
        Desk::thinking_outside_of_stored(self, incoming)
    }

    fn fall_back(&self, incoming: &Incoming, overflow: Option<Overflow>) -> Option<Call> {
        Desk::fall_back(self, incoming, overflow)
    }

    fn fits(&self, incoming: &Incoming) -> bool {
        Desk::fits(self, incoming)
    }

    fn is_sent(&self, call: &Call) {
        Desk::is_sent(self, call);
    }

    fn heard(&self, call: &mut Call, usage: Option<&Usage>, seals: Vec<String>) {
        Desk::heard(self, call, usage, seals);
    }

    fn answered(&self, call: Call, usage: Option<&Usage>) {
        Desk::answered(self, call, usage);
    }

    fn overflowed(&self, call: Call, overflow: Overflow) -> Option<Call> {
        Desk::overflowed(self, call, overflow)
    }

    fn refused(&self, call: Call, overflow: Overflow) {
        Desk::refused(self, call, overflow);
    }

    fn count(&self, incoming: &Incoming) -> Option<Tokens> {
        Desk::count(self, incoming)
    }

    fn ready(&self) -> Result<(), String> {
        Desk::ready(self).map_err(|error| error.to_string())
    }

    fn tend(&self) {
        Desk::tend(self);
    }

    fn close(&self) {
        Desk::close(self);
    }

    fn change(&self, settings: DeskSettings) {
        Desk::change(self, settings);
    }

    fn prune(&self) -> Result<Pruned, StoreError> {
        Desk::prune(self)
    }

    fn inspector(self: Arc<Self>, access: Access) -> Option<Inspector> {
        Some(Desk::inspector(self, access))
    }

    fn books(&self) -> Arc<Books> {
        self.books.clone()
    }

    fn called(&self, call: &Call, called: Called) {
        Desk::called(self, call, called);
    }

    fn tools(&self, caller: &ToolCaller, message: &str) -> ToolAnswer {
        mcp::answer(self, caller, message)
    }
}

type Job = Box<dyn FnOnce(&dyn Decide) + Send>;

/// What a thread does next.
enum Next {
    Work(Job),
    Stop,
}

/// The threads. Clones share them.
#[derive(Clone)]
pub(crate) struct Engine {
    work: Sender<Next>,
    queue: Arc<Queue>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// How many threads there are as long as none of them hangs.
    usual: usize,
    /// Questions that no thread has taken.
    waiting: Arc<AtomicUsize>,
    /// Tools answer one message at a time.
    one_tool: Arc<Semaphore>,
    /// Questions at once on threads beside those of the desk, and about large bodies on its own.
    beside: Turns,
    large: Turns,
    /// How long a question may take, in milliseconds.
    deadline: Arc<AtomicU64>,
}

/// A conversation that is folded takes its time, and the client waits for a model anyway.
const MOST_FOR_A_FOLD: Duration = Duration::from_secs(10);

/// What is done with a request.
pub(crate) enum Verdict {
    PassOn(Reason),
    Send(Box<OpenCall>),
}

impl Engine {
    pub(crate) fn start(desk: Arc<dyn Decide>, threads: usize, deadline: Duration) -> std::io::Result<Self> {
        let (work, waiting) = channel();
        let queue = Arc::new(Queue { desk, waiting: Mutex::new(waiting) });
        let usual = threads.max(1);
        let threads = (0..usual).map(|number| thread(&queue, number)).collect::<std::io::Result<Vec<_>>>()?;
        let (threads, one_tool) = (Arc::new(Mutex::new(threads)), Arc::new(Semaphore::new(1)));
        let (waiting, deadline_ms) = (Arc::default(), Arc::default());
        let (beside, large) = (Turns::new(), Turns::new());
        let engine =
            Self { work, queue, threads, waiting, one_tool, beside, large, usual, deadline: deadline_ms };
        engine.set_deadline(deadline);
        Ok(engine)
    }

    /// Another time that a question may take.
    pub(crate) fn set_deadline(&self, deadline: Duration) {
        self.deadline.store(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline.load(Ordering::Relaxed))
    }

    /// The desk goes by other settings from the next request on.
    pub(crate) fn change(&self, settings: DeskSettings) {
        self.queue.desk.change(settings);
    }

    /// Deletes some of the sessions that are not to be kept any longer, on a thread beside those that requests wait
    /// for.
    pub(crate) async fn prune(&self) -> Result<Pruned, String> {
        let queue = self.queue.clone();
        let pruned = tokio::task::spawn_blocking(move || queue.desk.prune()).await;
        pruned.map_err(|_| "a panic".to_owned())?.map_err(|error| error.to_string())
    }

    /// Decides. Too late or with a panic, it is passed on. The request keeps its place until the desk is done with it.
    pub(crate) async fn decide(&self, incoming: Incoming, place: Arc<Place>) -> Verdict {
        let turn = self.large.of_large(incoming.body.len(), self.deadline()).await;
        let Ok(turn) = turn else { return Verdict::PassOn(Reason::Slow) };
        let engine = self.clone();
        let decided = self.ask_while(self.deadline(), move |desk, is_awaited| {
            let _until_done = (place, turn);
            match desk.decide_while(&incoming, is_awaited) {
                Decision::PassOn(reason) => Verdict::PassOn(reason),
                Decision::Send(call) => Verdict::Send(Box::new(OpenCall::new(call, engine))),
            }
        });
        match decided.await {
            Ok(verdict) => verdict,
            Err(reason) => Verdict::PassOn(reason),
        }
    }

    /// What is sent where there was no decision, or where the client's own bytes were too long; `None` for the client's own
    /// bytes. It gets the time that a decision has; more, if the client's own bytes would not fit.
    pub(crate) async fn fall_back(
        &self,
        incoming: &Incoming,
        why: Reason,
        overflow: Option<Overflow>,
    ) -> Option<OpenCall> {
        let desk = &self.queue.desk;
        let fits = || catch_unwind(AssertUnwindSafe(|| desk.fits(incoming))).unwrap_or(true);
        let most = if overflow.is_none() && fits() { self.deadline() } else { MOST_FOR_A_FOLD };
        let (incoming, bytes) = (incoming.clone(), incoming.body.len());
        let call = self.beside(most, bytes, move |desk| desk.fall_back(&incoming, overflow)).await?;
        Some(OpenCall::fallen(call, self.clone(), why))
    }

    /// Asks about so many bytes on a thread beside those of the desk, which may hang. Nobody waits longer than `most`.
    async fn beside<T: Send + 'static>(
        &self,
        most: Duration,
        bytes: usize,
        question: impl FnOnce(&dyn Decide) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let answer = async {
            // A question that hangs keeps its place: there is no end of threads otherwise.
            let place = self.beside.of(bytes).await?;
            let queue = self.queue.clone();
            let asked = tokio::task::spawn_blocking(move || {
                let answer = catch_unwind(AssertUnwindSafe(|| question(&*queue.desk)));
                drop(place);
                answer.ok().flatten()
            });
            asked.await.ok().flatten()
        };
        timeout(most, answer).await.ok().flatten()
    }

    /// How many messages of a request may keep their thinking if it is passed on as it came; `None` if all may. The store
    /// is asked only where it was not the store, or the time, that was missing.
    pub(crate) async fn thinking_outside(&self, incoming: Incoming, reason: Reason) -> Option<usize> {
        let desk = &self.queue.desk;
        let known = catch_unwind(AssertUnwindSafe(|| desk.thinking_outside(&incoming)));
        let kept = match (known, reason) {
            (Ok(KeptThinking::Unknown), Reason::Off | Reason::NoView) => {
                self.ask(self.deadline(), move |desk| desk.thinking_outside_of_stored(&incoming)).await
            }
            (known, _) => known.map_err(|_| Reason::Panic),
        };
        match kept {
            Ok(KeptThinking::First(messages)) => Some(messages),
            Ok(KeptThinking::All | KeptThinking::Unknown) | Err(_) => None,
        }
    }

    /// The size of a known conversation.
    pub(crate) async fn count(&self, incoming: Incoming) -> Option<Tokens> {
        self.ask(self.deadline(), move |desk| desk.count(&incoming)).await.ok().flatten()
    }

    /// Why the desk cannot store what it does, or that it does not answer in time.
    pub(crate) async fn ready(&self) -> Result<(), String> {
        let ready = self.ask(self.deadline(), |desk| desk.ready()).await;
        ready.map_err(|_| "the gateway does not answer in time".to_owned())?
    }

    /// Has the desk do what could not be done before, on a thread beside those that requests wait for.
    pub(crate) async fn tend(&self) {
        let queue = self.queue.clone();
        _ = tokio::task::spawn_blocking(move || queue.desk.tend()).await;
    }

    /// Waits until what was begun is done, and ends the threads.
    pub(crate) fn stop(&self) {
        let threads = std::mem::take(&mut *self.all_threads());
        for _ in &threads {
            _ = self.work.send(Next::Stop);
        }
        for thread in threads {
            _ = thread.join();
        }
        // A question whose answer nobody waited for may have left the end of a call to be told.
        self.queue.work_off();
        _ = catch_unwind(AssertUnwindSafe(|| self.queue.desk.close()));
    }

    async fn ask<T: Send + 'static>(
        &self,
        deadline: Duration,
        question: impl FnOnce(&dyn Decide) -> T + Send + 'static,
    ) -> Result<T, Reason> {
        self.ask_while(deadline, move |desk, _| question(desk)).await
    }

    /// The same for a question that may ask whether somebody still waits for its answer.
    async fn ask_while<T: Send + 'static>(
        &self,
        deadline: Duration,
        question: impl FnOnce(&dyn Decide, &dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, Reason> {
        /// More questions wait only if the desk hangs.
        const MOST_WAITING: usize = 1_024;
        if self.waiting.load(Ordering::Relaxed) >= MOST_WAITING {
            return Err(Reason::Slow);
        }
        let (tell, mut told) = oneshot::channel();
        let asked = Arc::new(Mutex::new(Some(question)));
        let withdrawn = Withdrawn(asked.clone());
        let waiting = self.waiting.clone();
        waiting.fetch_add(1, Ordering::Relaxed);
        self.run(Box::new(move |desk| {
            waiting.fetch_sub(1, Ordering::Relaxed);
            if let Some(question) = taken(&asked) {
                let is_awaited = || !tell.is_closed();
                let answer = catch_unwind(AssertUnwindSafe(|| question(desk, &is_awaited)));
                _ = tell.send(answer.map_err(|_| Reason::Panic));
            }
        }));
        // Others may take long, or hang: who waits behind them gets a thread.
        let answered = match timeout(deadline / 2, &mut told).await {
            Ok(answered) => Ok(answered),
            Err(_) => {
                if lock(&withdrawn.0).is_some() {
                    self.add_thread();
                }
                timeout(deadline - deadline / 2, &mut told).await
            }
        };
        let result = match answered {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Reason::Panic),
            Err(_) => {
                told.close();
                told.try_recv().unwrap_or(Err(Reason::Slow))
            }
        };
        drop(withdrawn);
        result
    }

    /// One thread more, if all of them have been at work for long.
    fn add_thread(&self) {
        /// So many may hang before nothing more is decided. They stay.
        const MOST_MORE: usize = 8;
        let mut threads = self.all_threads();
        // There are none when the engine stops.
        if threads.is_empty() || threads.len() >= self.usual + MOST_MORE {
            return;
        }
        match thread(&self.queue, threads.len()) {
            Ok(new) => threads.push(new),
            Err(error) => tracing::warn!(%error, "there is no thread more to decide on"),
        }
    }

    fn all_threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, job: Job) {
        // Without a thread nothing is decided, and whoever waits is told so by the end of the channel.
        _ = self.work.send(Next::Work(job));
    }
}

/// Takes a question back, with all that it holds, when nobody waits for its answer any more.
struct Withdrawn<Q>(Arc<Mutex<Option<Q>>>);

impl<Q> Drop for Withdrawn<Q> {
    fn drop(&mut self) {
        drop(taken(&self.0));
    }
}

fn taken<Q>(asked: &Mutex<Option<Q>>) -> Option<Q> {
    lock(asked).take()
}

fn lock<Q>(asked: &Mutex<Option<Q>>) -> MutexGuard<'_, Option<Q>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread on which the desk works.
fn thread(queue: &Arc<Queue>, number: usize) -> std::io::Result<JoinHandle<()>> {
    let queue = queue.clone();
    Builder::new().name(format!("longhaul-{number}")).spawn(move || queue.work_until_stopped())
}

/// What waits for a thread, and whom it is asked.
struct Queue {
    desk: Arc<dyn Decide>,
    waiting: Mutex<Receiver<Next>>,
}

impl Queue {
    fn work_until_stopped(&self) {
        loop {
            // The lock is not kept while the job runs.
            let next = self.lock().recv();
            let Ok(Next::Work(job)) = next else { return };
            self.run(job);
        }
    }

    fn work_off(&self) {
        loop {
            let next = self.lock().try_recv();
            let Ok(Next::Work(job)) = next else { return };
            self.run(job);
        }
    }

    fn run(&self, job: Job) {
        _ = catch_unwind(AssertUnwindSafe(|| job(&*self.desk)));
    }

    fn lock(&self) -> MutexGuard<'_, Receiver<Next>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
