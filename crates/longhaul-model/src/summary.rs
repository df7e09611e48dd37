//! Summaries by a model: the jobs of the engine, answered.

use std::sync::Arc;
use std::time::Duration;

use longhaul::{Frame, Job, Message, Outcome, Tokens};
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

/// A window that a provider refused is taken to be smaller, so often at most.
const SMALLER: usize = 3;

/// Has the summary of a job written. It takes no longer than the job allows, and whatever goes wrong is an
/// outcome: the profile knows what to do without a summary.
///
/// ```
/// use longhaul::{Frame, Message, Models, Outcome, Prepared, Profile, Session, Summariser, Tokens};
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
/// let outcome = write_summary(&job, &model, ask).await;
/// assert_eq!(outcome, Outcome::Parts(vec!["Thirty questions were answered.".to_owned()]));
/// # });
/// ```
pub async fn write_summary(job: &Job, model: &dyn Model, ask: Ask) -> Outcome {
    let limit = Duration::from_secs(job.timeout.into());
    let written = timeout(limit, async {
        match ask {
            Ask::Fresh { window, frame } => fresh(job, model, window, frame).await,
            Ask::Warm(request) => warm(job, model, *request).await,
        }
    });
    match written.await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(fault)) => Outcome::Failed(fault.to_string()),
        Err(_) => Outcome::TimedOut,
    }
}

async fn fresh(job: &Job, model: &dyn Model, window: Tokens, frame: Frame) -> Result<Outcome, Fault> {
    let frame = Frame { model: job.model.clone().or(frame.model), ..frame };
    let mut window = window;
    for _ in 0..SMALLER {
        let mut parts = Vec::new();
        let mut refused = None;
        for conversation in job.fresh(window) {
            let messages = conversation.map(Arc::new).to_vec();
            match model.ask(Request::new(frame.clone(), messages), &mut |_| {}).await {
                Ok(reply) => parts.push(text(&reply)?),
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

async fn warm(job: &Job, model: &dyn Model, request: Request) -> Result<Outcome, Fault> {
    let asked: Message = job.warm();
    let messages = request.messages().iter().cloned().chain([Arc::new(asked)]).collect();
    let reply = model.ask(request.with_messages(messages), &mut |_| {}).await?;
    text(&reply).map(Outcome::Summary)
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
