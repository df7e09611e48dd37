//! Summaries by a model: the jobs of the engine, answered.

use std::sync::Arc;
use std::time::Duration;

use longhaul::summary::SummaryForm;
use longhaul::{Frame, Job, Outcome, Resolved, Session, Tokens, Usage};
use longhaul_wire::api::Request;
use tokio::time::timeout;

use crate::fault::Fault;
use crate::model::Model;
use crate::reply::{Reply, Stop};

/// How a model is asked for a summary.
#[derive(Debug, Clone)]
pub enum Ask {
    /// In new conversations that quote what is to be summarised, several if it does not fit at once.
    Fresh {
        /// The window of the model that writes.
        window: Tokens,
        /// The settings of these conversations. Its model gives way to the one that the job names.
        frame: Frame,
    },
    /// Behind the running conversation, as it was sent last: the provider has its prefix in its cache.
    /// For the model of the conversation alone.
    Warm(Box<Request>),
}

impl Ask {
    /// The form that costs less, by what the engine expects ([`Question::price`](longhaul::summary::Question)):
    /// behind the running conversation, or a new one with its model and this window.
    pub fn cheaper(job: &Job, session: &Session, window: Tokens) -> Self {
        match job.price.cheaper() {
            SummaryForm::Warm => Self::Warm(Box::new(Request::of(&session.outgoing()))),
            SummaryForm::Fresh => {
                let model = session.log().frame().and_then(|frame| frame.model.clone());
                Self::Fresh { window, frame: Frame { model, ..Frame::default() } }
            }
        }
    }
}

/// What came of a job, and what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summarised {
    /// The job.
    pub job: u64,
    /// The summary, or why there is none.
    pub outcome: Outcome,
    /// What each call was billed that was answered, as far as the provider said so.
    pub paid: Vec<Usage>,
}

impl Summarised {
    /// Tells the session what the summary cost, and resolves its job.
    pub fn resolve(self, session: &mut Session) -> Resolved {
        self.paid.iter().for_each(|usage| session.summary_paid(self.job, usage));
        session.resolve(self.job, self.outcome)
    }
}

/// A window that a provider refused is taken to be smaller, so often at most.
const SMALLER: usize = 3;

/// Has the summary of a job written. It takes no longer than the job allows, and whatever goes wrong is an
/// outcome: the profile knows what to do without a summary.
///
/// ```
/// use longhaul::{Frame, Message, Models, Outcome, Prepared, Profile, Resolved, Session, Summariser, Tokens};
/// use longhaul_model::{Ask, Scripted, write_summary};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let profile = Profile { summariser: Summariser::Host, ..Profile::archive() };
/// let mut session = Session::new(profile, Models::builtin().find("gpt-4o").clone()).with_window(Tokens(2_000));
/// for n in 0..40 {
///     session.push(Message::user(format!("Question {n}?")));
///     session.push(Message::assistant("An answer of some words. ".repeat(20)));
/// }
/// session.push(Message::user("Go on."));
/// let model = Scripted::new([Ok(Message::assistant("Thirty questions were answered."))]);
/// let Ok(Prepared::Summarise(job)) = session.prepare(None) else { panic!() };
/// let ask = Ask::Fresh { window: Tokens(128_000), frame: Frame::default() };
/// let summarised = write_summary(&job, &model, ask).await;
/// assert_eq!(summarised.outcome, Outcome::Parts(vec!["Thirty questions were answered.".to_owned()]));
/// assert!(matches!(summarised.resolve(&mut session), Resolved::Folded));
/// # });
/// ```
pub async fn write_summary(job: &Job, model: &dyn Model, ask: Ask) -> Summarised {
    let limit = Duration::from_secs(job.timeout.into());
    let mut paid = Vec::new();
    let written = timeout(limit, async {
        match ask {
            Ask::Fresh { window, frame } => fresh(job, model, window, frame, &mut paid).await,
            Ask::Warm(request) => warm(job, model, *request, &mut paid).await,
        }
    });
    let outcome = match written.await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(fault)) => Outcome::Failed(fault.to_string()),
        Err(_) => Outcome::TimedOut,
    };
    Summarised { job: job.id, outcome, paid }
}

async fn fresh(
    job: &Job,
    model: &dyn Model,
    window: Tokens,
    frame: Frame,
    paid: &mut Vec<Usage>,
) -> Result<Outcome, Fault> {
    let frame = Frame { model: job.model.clone().or(frame.model), ..frame };
    let mut window = window;
    for _ in 0..SMALLER {
        let mut parts = Vec::new();
        let mut refused = None;
        for conversation in job.fresh(window) {
            let messages = conversation.map(Arc::new).to_vec();
            match said(model, Request::new(frame.clone(), messages), paid).await {
                Ok(text) => parts.push(text),
                // The model's window is smaller than we thought: the next try has more, smaller parts.
                Err(Fault::TooLong { overflow, says }) => {
                    refused = Some(Fault::TooLong { overflow, says });
                    let half = Tokens(window.0 / 2);
                    window = overflow.window.filter(|named| *named < window).unwrap_or(half);
                    break;
                }
                Err(fault) => return Err(fault),
            }
        }
        if refused.is_none() {
            return Ok(Outcome::Parts(parts));
        }
    }
    Ok(Outcome::Failed("the summariser's window is too small for what is to be summarised".to_owned()))
}

async fn warm(
    job: &Job,
    model: &dyn Model,
    request: Request,
    paid: &mut Vec<Usage>,
) -> Result<Outcome, Fault> {
    said(model, request.followed_by(job.warm()), paid).await.map(Outcome::Summary)
}

/// What a model says to a request. An answer is paid for, whatever it is worth.
async fn said(model: &dyn Model, request: Request, paid: &mut Vec<Usage>) -> Result<String, Fault> {
    let reply = model.ask(request, &mut |_| {}).await?;
    paid.extend(reply.usage.clone());
    text(&reply)
}

/// What a reply says. A reply that only calls a tool is none, nor one that was cut off.
fn text(reply: &Reply) -> Result<String, Fault> {
    let said: Vec<&str> = reply.messages.iter().flat_map(|message| message.texts()).collect();
    let said = said.join("\n");
    match &reply.stop {
        Stop::Ended | Stop::Other(_) | Stop::Paused if !said.trim().is_empty() => Ok(said),
        Stop::Length | Stop::WindowFull => {
            Err(Fault::Unreadable("the summary was cut off at the longest answer".to_owned()))
        }
        Stop::Refused => Err(Fault::Unreadable("the model would not write a summary".to_owned())),
        Stop::Ended | Stop::Other(_) | Stop::Paused => {
            Err(Fault::Unreadable("the model called a tool instead of writing a summary".to_owned()))
        }
    }
}
