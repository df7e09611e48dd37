//! A turn: what a person says, replies of the model and results of tools, until there is an answer.

use std::sync::Arc;

use longhaul::conversation::{Words, with_mentions};
use longhaul::summary::SummaryPaid;
use longhaul::{Block, Entry, Message, Position, Prepared, Resolved, Role, Ticket, Tokens, Why};
use longhaul_model::{Delta, Fault, Reply, Stop};
use longhaul_wire::api::Request;
use tokio_util::sync::CancellationToken;

use super::calls::{Interrupted, stopped};
use super::{Agent, AgentError, Ended, now};
use crate::event::{Compaction, Event};
use crate::front::Front;

/// The longest that a request is shortened anew because the provider refused it.
const OVERFLOWS: usize = 2;

/// How often a reply that says nothing is asked for again.
const EMPTY: usize = 2;

impl Agent {
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
        // A person may have changed files since the last turn.
        self.git.changed();
        let ended = self.work(front, stop).await;
        // Whatever happened, what was said is kept.
        let saved = self.save();
        let ended = ended?;
        saved?;
        Ok(ended)
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
        let (mut overflows, mut empty, mut without_thinking) = (0, 0, false);
        let mut steps = 0;
        loop {
            if self.run_calls(front, stop).await == Interrupted::Yes {
                return Ok(Ended::Interrupted);
            }
            if steps >= self.settings.steps {
                return Ok(Ended::StepLimit(steps));
            }
            self.rules.refresh(self.project.root(), &mut self.session);
            self.git.before(self.project.root(), &mut self.session).await;
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
                Err(fault) if fault.refuses_thinking() && !std::mem::replace(&mut without_thinking, true) => {
                    front.event(Event::Notice(
                        "the provider refused earlier thinking: the request is sent again without it",
                    ));
                    self.session.refused_thinking(Position(0));
                    continue;
                }
                Err(fault) => return Err(fault.into()),
            };
            without_thinking = false;
            (overflows, steps) = (0, steps + 1);
            front.event(Event::Replied { usage: reply.usage.as_ref() });
            reply.usage.iter().for_each(|usage| self.session.observe(ticket, usage));
            if is_empty(&reply) && empty < EMPTY {
                // Nothing was said and nothing called: it is asked again.
                empty += 1;
                continue;
            }
            // The newest message of a reply has its bill, so that a session knows what it cost when it goes on.
            for (at, message) in reply.messages.iter().enumerate() {
                match reply.usage.clone().filter(|_| at + 1 == reply.messages.len()) {
                    Some(usage) => self.session.push(Message::clone(message).with_bill(usage)),
                    None => self.session.push(message.clone()),
                };
            }
            self.git.take(&mut self.session).await;
            if let Some(resolved) = self.summaries.take(&mut self.session).await {
                said_of(&resolved).iter().for_each(|says| front.event(Event::Notice(says)));
                self.tell_paid(front);
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
                    self.git.beside(self.project.root(), &self.session);
                    return Ok(Some(ticket));
                }
                Prepared::Summarise(job) => {
                    front.event(Event::Summarising);
                    self.git.wait(self.project.root(), &mut self.session).await;
                    let written = self.summaries.wait(job, &mut self.session);
                    tokio::select! {
                        resolved = written => {
                            said_of(&resolved).iter().for_each(|says| front.event(Event::Notice(says)));
                            self.tell_paid(front);
                        }
                        () = stop.cancelled() => return Ok(None),
                    }
                }
            }
        }
    }

    /// Says what was paid for summaries since this was last said.
    fn tell_paid(&mut self, front: &mut dyn Front) {
        let from = std::mem::replace(&mut self.told_paid, self.session.cursor());
        let mut paid = SummaryPaid::default();
        for entry in self.session.since(from) {
            if let Entry::SummaryPaid { paid: one, .. } = entry {
                paid += *one;
            }
        }
        if paid.calls > 0 {
            front.event(Event::SummaryBilled(paid));
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
            Delta::Again { fault, pause } => {
                let says = format!("{fault}; it is tried again in {:.1} s", pause.as_secs_f64());
                front.event(Event::Notice(&says));
            }
            Delta::Call(_) | Delta::Arguments(_) => {}
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            reply = self.model.ask(request, &mut watch) => Some(reply),
        }
    }
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
