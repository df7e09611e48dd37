//! Task: a sub-agent does a part of the work in a conversation of its own. Only its answer comes back.

use std::future::Future;
use std::pin::Pin;

use longhaul::Session;
use longhaul_store::{About, Keeper, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Ended};
use crate::consent::{Answer, Consent};
use crate::envelope::{Code, Envelope, ToolError};
use crate::event::Event;
use crate::front::Front;
use crate::tool::{Definition, Running, read_arguments};

/// The name of the tool.
pub(crate) const TASK: &str = "Task";

#[derive(Deserialize)]
struct Arguments {
    #[serde(alias = "task")]
    prompt: String,
    #[serde(default)]
    description: String,
}

/// What the model is told.
pub(crate) fn definition() -> Definition {
    Definition {
        name: TASK.to_owned(),
        description: "Has a sub-agent do a part of the work with the same tools, in a conversation of its own: good for \
            searching widely or reading much where only the result matters. It knows nothing of this conversation, so \
            `prompt` must say everything: what to find or do, where, and what to answer. Only its answer comes back."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "description": { "type": "string", "description": "What it is about, in a few words" },
                "prompt": { "type": "string", "description": "All that the sub-agent must know" },
            },
            "required": ["prompt"],
        }),
    }
}

impl Agent {
    /// Has a sub-agent do a task. The future of a turn holds this one, and this one that of a turn: one of them needs a
    /// place of its own.
    pub(crate) fn do_task<'a>(
        &'a mut self,
        arguments: Value,
        front: &'a mut dyn Front,
        stop: &'a CancellationToken,
    ) -> Running<'a> {
        Box::pin(async move { Envelope::from(self.try_task(arguments, front, stop).await) })
    }

    async fn try_task(
        &mut self,
        arguments: Value,
        front: &mut dyn Front,
        stop: &CancellationToken,
    ) -> Result<Envelope, ToolError> {
        let Arguments { prompt, description } = read_arguments(TASK, arguments)?;
        if prompt.trim().is_empty() {
            return Err(ToolError::new(
                Code::InvalidParam,
                "`prompt` is empty: say what the sub-agent shall do",
            ));
        }
        let failed = |message: String| ToolError::new(Code::Failed, message);
        let mut agent = self.sub_agent(&description).map_err(|error| failed(error.to_string()))?;
        let mut quiet = Quiet { front };
        let ended = agent.turn(Some(&prompt), &mut quiet, stop).await;
        // What the user allowed the sub-agent for good, the agent may do too.
        let calls =
            agent.session().log().messages().iter().map(|message| message.calls().count()).sum::<usize>();
        let session = agent.keeper().map(|keeper| keeper.id().to_string());
        self.take_permissions(&mut agent);
        let stored = agent.finish();
        let envelope = |text: String| {
            let envelope = Envelope::success(text.clone()).with("content", text.clone()).with("calls", calls);
            envelope.with("session", session).plain(text)
        };
        match ended {
            Ok(Ended::Answered(answer)) => {
                stored.map_err(|error| failed(error.to_string()))?;
                Ok(envelope(answer))
            }
            Ok(Ended::Interrupted) => {
                Err(ToolError::new(Code::Interrupted, "the sub-agent was stopped by the user"))
            }
            Ok(Ended::StepLimit(steps)) => Err(failed(format!(
                "the sub-agent has used its {steps} steps without an answer: give it a smaller task"
            ))),
            Err(error) => Err(failed(format!("the sub-agent failed: {error}"))),
        }
    }

    /// An agent with the same model and tools that knows nothing yet, and has no sub-agents of its own.
    fn sub_agent(&self, description: &str) -> Result<Agent, StoreError> {
        let before = self.session();
        let session = Session::new(before.profile().clone(), before.model().clone())
            .with_window(before.budget().window);
        let title =
            Some(description.trim()).filter(|title| !title.is_empty()).map(|title| format!("Task: {title}"));
        let about = About {
            agent: "longhaul-task".to_owned(),
            project: self.project().root().display().to_string(),
            title,
            ..About::default()
        };
        let keeper = match self.keeper() {
            Some(keeper) => {
                let store = keeper.store().clone();
                Some(tokio::task::block_in_place(|| Keeper::create(store, &about, &session))?)
            }
            None => None,
        };
        Ok(self.another(session, keeper))
    }
}

/// What is heard of a sub-agent: its calls, not its words.
struct Quiet<'a> {
    front: &'a mut dyn Front,
}

impl Front for Quiet<'_> {
    fn event(&mut self, event: Event<'_>) {
        if !matches!(event, Event::Text(_) | Event::Thinking(_) | Event::Void | Event::Sending { .. }) {
            self.front.event(event);
        }
    }

    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        self.front.ask(consent)
    }
}
