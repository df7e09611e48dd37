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
use crate::front::Front;
use crate::session_tools::SessionTool;
use crate::task::TASK;
use crate::tool::Effect;

impl Agent {
    /// Runs the calls that have no results yet. Every call gets a result, also one that was interrupted.
    pub(super) async fn run_calls(&mut self, front: &mut dyn Front, stop: &CancellationToken) -> Interrupted {
        let calls: Vec<ToolCall> = self.session.log().waiting_calls().into_iter().cloned().collect();
        // Calls that only look run together; one that changes something is asked for and runs alone, in its turn, so that
        // a person sees what it finds.
        let reads = |call: &ToolCall| {
            let effect = self.tools.effect(&call.name, &call.arguments.value());
            matches!(effect, Effect::Reads) && SessionTool::find(&call.name).is_none()
        };
        let together = calls.iter().all(reads);
        if !together {
            self.git.changed();
        }
        let mut ended: Vec<Ran> = Vec::with_capacity(calls.len());
        if together {
            let mut allowed = Vec::with_capacity(calls.len());
            for call in &calls {
                allowed.push(self.called(call, front, stop).await);
            }
            let running = calls.iter().zip(allowed).map(|(call, allowed)| self.answer(call, allowed, stop));
            let envelopes = join_all(running.collect()).await;
            ended.extend(envelopes.into_iter().map(|envelope| Ran { envelope, edited: None }));
        } else {
            for call in &calls {
                let allowed = self.called(call, front, stop).await;
                let is_edited = allowed.as_ref().is_ok_and(|arguments| *arguments != call.arguments.value());
                let edited = allowed.as_ref().ok().filter(|_| is_edited).map(edited_note);
                let envelope = match (SessionTool::find(&call.name), allowed) {
                    (Some(tool), Ok(arguments)) => tool.run(&mut self.session, arguments),
                    (None, Ok(arguments)) if &*call.name == TASK && self.has_tasks => {
                        self.do_task(arguments, front, stop).await
                    }
                    (_, allowed) => self.answer(call, allowed, stop).await,
                };
                ended.push(Ran { envelope, edited });
            }
        }
        for (call, Ran { envelope, edited }) in calls.iter().zip(ended) {
            front.event(Event::Answered { id: &call.id, tool: &call.name, envelope: &envelope });
            let note = self.failures.note(&call.name, &call.arguments, envelope.is_error());
            if let Some(note) = &note {
                front.event(Event::Notice(note));
            }
            let notes: Vec<String> = edited.into_iter().chain(note).collect();
            let notes = Some(notes.join("\n")).filter(|notes| !notes.is_empty());
            let message = result(call, &envelope, self.settings.form, notes.as_deref());
            self.session.push(message.with_time(now()));
        }
        if !calls.is_empty() && stop.is_cancelled() { Interrupted::Yes } else { Interrupted::No }
    }

    /// Tells of a call, and asks for it.
    async fn called(
        &mut self,
        call: &ToolCall,
        front: &mut dyn Front,
        stop: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let arguments = call.arguments.value();
        front.event(Event::Called { id: &call.id, tool: &call.name, arguments: &arguments });
        self.may(&call.name, &arguments, front, stop).await
    }

    async fn answer(
        &self,
        call: &ToolCall,
        allowed: Result<Value, ToolError>,
        stop: &CancellationToken,
    ) -> Envelope {
        match allowed {
            Err(refused) => Envelope::error(refused),
            Ok(_) if stop.is_cancelled() => Envelope::error(interrupted()),
            Ok(arguments) => self.tools.run(&call.name, arguments, stop).await,
        }
    }
}

/// What came of a call.
struct Ran {
    envelope: Envelope,
    /// What the model is told if the person has changed the call.
    edited: Option<String>,
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

/// The model must not take the result for that of its own command.
fn edited_note(arguments: &Value) -> String {
    let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
    format!("Note: the user has changed the command before it ran. This is what ran: {command}")
}

pub(super) fn interrupted() -> ToolError {
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
