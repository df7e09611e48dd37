//! Messages to our tools, and the conversations whose answers call them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Decide, Engine};
use crate::desk::{Call, Called, Reason, ToolCaller};
use crate::mcp::ToolAnswer;

/// An agent may run a tool while the answer that calls it still comes: the end of that answer is waited for so long.
const MOST_FOR_AN_ANSWER: Duration = Duration::from_secs(2);

/// How often it is looked for.
const PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// The answer to a message to our tools; `None` if it wants none. An error says why there is no answer. Looking
    /// through stored conversations takes long: it is done on a thread beside those that requests wait for, one
    /// message after the other.
    pub(crate) async fn tools(&self, caller: ToolCaller, message: String) -> Result<Option<Value>, Reason> {
        let until = Instant::now() + MOST_FOR_AN_ANSWER;
        loop {
            let turn = self.one_tool.acquire().await.map_err(|_| Reason::Slow)?;
            let (queue, caller, message) = (self.queue.clone(), caller.clone(), message.clone());
            let answer = tokio::task::spawn_blocking(move || queue.desk.tools(&caller, &message));
            let answer = answer.await.map_err(|_| Reason::Panic)?;
            drop(turn);
            match answer {
                ToolAnswer::Nothing => return Ok(None),
                ToolAnswer::NoCaller(_) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                ToolAnswer::Answer(answer) | ToolAnswer::NoCaller(answer) => return Ok(Some(answer)),
            }
        }
    }
}

/// Tells the desk which of our tools an answer calls, if it calls any or is of an agent with a scope.
pub(super) fn tell(desk: &dyn Decide, call: &Call, called: Called) {
    if called.scope.is_some() || !called.tools.is_empty() {
        _ = catch_unwind(AssertUnwindSafe(|| desk.called(call, called)));
    }
}
