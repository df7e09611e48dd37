//! The calls of a reply: asked for, run, and answered, each with a result, also when the person interrupts.

use std::future::Future;
use std::pin::Pin;

use longhaul::conversation::Image;
use longhaul::{Block, Json, Message, Role, ToolCall, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Agent, now};
use crate::envelope::{Code, Envelope, Form, ToolError};
use crate::event::Event;
use crate::front::{Front, Permission, Question};
use crate::permission::{Verdict, rule_for};
use crate::session_tools::SessionTool;
use crate::task::TASK;
use crate::tool::Effect;

impl Agent {
    /// Runs the calls that have no results yet. Every call gets a result, also one that was interrupted.
    pub(super) async fn run_calls(&mut self, front: &mut dyn Front, stop: &CancellationToken) -> Interrupted {
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
        if !together {
            self.git.changed();
        }
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
            Verdict::Ask(_) if stop.is_cancelled() => return Err(Envelope::error(interrupted())),
            Verdict::Ask(_) => {}
        }
        let rule = rule_for(tool, &effect);
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
}

/// Whether the person interrupted.
#[derive(PartialEq, Eq)]
pub(super) enum Interrupted {
    Yes,
    No,
}

/// A token that is cancelled already: calls get results without being run.
pub(super) fn stopped() -> CancellationToken {
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
