//! The threads on which the desk works: a fixed number, since each of them keeps memory of its own. Whatever
//! happens there, whoever waits gets an answer: a decision that is late or that panics is one to pass on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use longhaul::session::{Cramped, Overflow};
use longhaul::{Tokens, Usage};
use longhaul_inspector::Inspector;
use longhaul_inspector::access::Access;
use longhaul_store::{Pruned, SessionId, StoreError};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::account::Costs;
use crate::ask_usage::Asking;
use crate::books::Books;
use crate::desk::{Break, Call, Decision, Desk, DeskSettings, How, Incoming, KeptThinking, Reason};
use crate::mcp;
use crate::reading::Heard;

/// What the gateway needs of a desk. Tests have desks of their own.
pub trait Decide: Send + Sync + 'static {
    /// Says what is done with a request.
    fn decide(&self, incoming: &Incoming) -> Decision;
    /// The provider refused thinking in a call, from the block with this signature on if it named one: what to send
    /// instead, without it.
    fn refused_thinking(&self, _call: Call, _from: Option<&str>) -> Option<Call> {
        None
    }
    /// Which messages of a request may keep their thinking if it is passed on as it came. Waits for nothing.
    fn thinking_outside(&self, _incoming: &Incoming) -> KeptThinking {
        KeptThinking::All
    }
    /// The same of a conversation that is stored and not in memory.
    fn thinking_outside_of_stored(&self, _incoming: &Incoming) -> KeptThinking {
        KeptThinking::All
    }
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
    /// True if it can work.
    fn is_ready(&self) -> bool {
        true
    }
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
    /// Answers a message to our tools; `None` if it wants no answer.
    fn tools(&self, _tenant: &str, _message: &str) -> Option<Value> {
        None
    }
}

impl Decide for Desk {
    fn decide(&self, incoming: &Incoming) -> Decision {
        Desk::decide(self, incoming)
    }

    fn refused_thinking(&self, call: Call, from: Option<&str>) -> Option<Call> {
        Desk::refused_thinking(self, call, from)
    }

    fn thinking_outside(&self, incoming: &Incoming) -> KeptThinking {
        Desk::thinking_outside(self, incoming)
    }

    fn thinking_outside_of_stored(&self, incoming: &Incoming) -> KeptThinking {
        Desk::thinking_outside_of_stored(self, incoming)
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

    fn is_ready(&self) -> bool {
        Desk::is_ready(self)
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

    fn tools(&self, tenant: &str, message: &str) -> Option<Value> {
        mcp::answer(self, tenant, message)
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
    /// Questions that no thread has taken.
    waiting: Arc<AtomicUsize>,
    /// Tools answer one message at a time.
    one_tool: Arc<Semaphore>,
    /// How long a question may take, in milliseconds.
    deadline: Arc<AtomicU64>,
}

/// What is done with a request.
pub(crate) enum Verdict {
    PassOn(Reason),
    Send(Box<OpenCall>),
}

impl Engine {
    pub(crate) fn start(desk: Arc<dyn Decide>, threads: usize, deadline: Duration) -> std::io::Result<Self> {
        let (work, waiting) = channel();
        let queue = Arc::new(Queue { desk, waiting: Mutex::new(waiting) });
        let thread = |number| {
            let (queue, name) = (queue.clone(), format!("longhaul-{number}"));
            Builder::new().name(name).spawn(move || queue.work_until_stopped())
        };
        let threads = (0..threads.max(1)).map(thread).collect::<std::io::Result<Vec<_>>>()?;
        let (threads, one_tool) = (Arc::new(Mutex::new(threads)), Arc::new(Semaphore::new(1)));
        let engine =
            Self { work, queue, threads, waiting: Arc::default(), one_tool, deadline: Arc::default() };
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

    /// Decides. Too late or with a panic, it is passed on.
    pub(crate) async fn decide(&self, incoming: Incoming) -> Verdict {
        let engine = self.clone();
        let decided = self.ask(self.deadline(), move |desk| match desk.decide(&incoming) {
            Decision::PassOn(reason) => Verdict::PassOn(reason),
            Decision::Send(call) => Verdict::Send(Box::new(OpenCall::new(call, engine))),
        });
        match decided.await {
            Ok(verdict) => verdict,
            Err(reason) => Verdict::PassOn(reason),
        }
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

    /// True if the desk can work, and says so in time.
    pub(crate) async fn is_ready(&self) -> bool {
        self.ask(self.deadline(), |desk| desk.is_ready()).await.unwrap_or(false)
    }

    /// The answer to a message to our tools; `None` if it wants none. An error says why there is no answer. Looking
    /// through stored conversations takes long: it is done on a thread beside those that requests wait for, one
    /// message after the other.
    pub(crate) async fn tools(&self, tenant: Arc<str>, message: String) -> Result<Option<Value>, Reason> {
        let _turn = self.one_tool.acquire().await.map_err(|_| Reason::Slow)?;
        let queue = self.queue.clone();
        let answer = tokio::task::spawn_blocking(move || queue.desk.tools(&tenant, &message));
        answer.await.map_err(|_| Reason::Panic)
    }

    /// Waits until what was begun is done, and ends the threads.
    pub(crate) fn stop(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for _ in &threads {
            _ = self.work.send(Next::Stop);
        }
        for thread in threads {
            _ = thread.join();
        }
        // A question whose answer nobody waited for may have left the end of a call to be told.
        self.queue.work_off();
    }

    async fn ask<T: Send + 'static>(
        &self,
        deadline: Duration,
        question: impl FnOnce(&dyn Decide) -> T + Send + 'static,
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
                _ = tell.send(catch_unwind(AssertUnwindSafe(|| question(desk))).map_err(|_| Reason::Panic));
            }
        }));
        let result = match timeout(deadline, &mut told).await {
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
    asked.lock().unwrap_or_else(PoisonError::into_inner).take()
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

/// What is said of a call in headers and logs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brief {
    pub(crate) session: SessionId,
    pub(crate) how: How,
    pub(crate) view: Tokens,
    pub(crate) full: Tokens,
    pub(crate) edits: usize,
    pub(crate) broke: Option<Break>,
    /// What the answer may have at most, where that is less than the client asks for.
    pub(crate) shorter_answer: Option<Tokens>,
    /// How little room there is for the next steps, when it is noticed.
    pub(crate) cramped: Option<Cramped>,
    /// The thinking of its answer would be refused if the client went on without Longhaul.
    pub(crate) is_tied: bool,
    /// What the conversation has cost up to the call before, and what it would have cost otherwise.
    pub(crate) costs: Costs,
    /// The client's own bytes are sent, whatever was decided.
    pub(crate) is_observed: bool,
}

/// A call that is on its way. The desk hears of its end once, however it ends: also when this is dropped.
pub(crate) struct OpenCall {
    call: Option<Call>,
    engine: Engine,
    pub(crate) brief: Brief,
    /// The body to send; `None` if it is the client's own.
    pub(crate) body: Option<Bytes>,
    /// Whether usage is asked for where the client does not.
    pub(crate) asking: Asking,
}

impl OpenCall {
    fn new(call: Call, engine: Engine) -> Self {
        let Call { session, how, view, full, edits, broke, asking, .. } = call;
        let Call { shorter_answer, cramped, is_tied, costs, is_observed, .. } = call;
        let brief = Brief {
            session,
            how,
            view,
            full,
            edits,
            broke,
            shorter_answer,
            cramped,
            is_tied,
            costs,
            is_observed,
        };
        let body = call.body.clone();
        Self { call: Some(call), engine, brief, body, asking }
    }

    /// The call is not sent again: what it was made of goes, and what is needed for its end stays.
    pub(crate) fn settled(mut self) -> Self {
        self.body = None;
        self.call.iter_mut().for_each(Call::settle);
        self
    }

    /// The provider answered.
    pub(crate) fn answered(mut self, heard: Heard) {
        self.tell(heard);
    }

    /// The provider refused thinking in the call, from the block with this signature on if it named one. What to send
    /// instead.
    pub(crate) async fn refused_thinking(mut self, from: Option<String>) -> Option<Self> {
        const MOST: Duration = Duration::from_secs(10);
        let (call, engine) = (self.call.take()?, self.engine.clone());
        let next = self.engine.ask(MOST, move |desk| {
            desk.refused_thinking(call, from.as_deref()).map(|call| OpenCall::new(call, engine))
        });
        next.await.ok().flatten()
    }

    /// The provider refused the call as too long. What to send instead.
    pub(crate) async fn overflowed(mut self, overflow: Overflow) -> Option<Self> {
        /// A conversation that is folded takes its time, and the client waits for a model anyway.
        const MOST: Duration = Duration::from_secs(10);
        let (call, engine) = (self.call.take()?, self.engine.clone());
        let next = self
            .engine
            .ask(MOST, move |desk| desk.overflowed(call, overflow).map(|call| OpenCall::new(call, engine)));
        next.await.ok().flatten()
    }

    /// The provider refused the call as too long, and nothing is sent instead.
    pub(crate) fn refused(mut self, overflow: Overflow) {
        if let Some(call) = self.call.take() {
            self.engine.run(Box::new(move |desk| desk.refused(call, overflow)));
        }
    }

    fn tell(&mut self, heard: Heard) {
        /// What is stored behind an answer does not take the processor from the client that reads the answer.
        const WHILE_IT_IS_READ: Duration = Duration::from_micros(500);
        let Some(mut call) = self.call.take() else { return };
        let Heard { usage, seals } = heard;
        let desk = &self.engine.queue.desk;
        _ = catch_unwind(AssertUnwindSafe(|| desk.heard(&mut call, usage.as_ref(), seals)));
        let waiting = self.engine.waiting.clone();
        self.engine.run(Box::new(move |desk| {
            if waiting.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(WHILE_IT_IS_READ);
            }
            desk.answered(call, usage.as_ref());
        }));
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.tell(Heard::default());
    }
}
