//! Whether a call may run: what permissions say of it, and the person, where they leave it open. What a person agreed to
//! is what runs.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::calls::interrupted;
use crate::consent::{Answer, Asked, Consent};
use crate::envelope::{Code, ToolError};
use crate::front::Front;
use crate::permission::{Verdict, rule_for};
use crate::tool::Effect;

impl Agent {
    /// The arguments that a call may run with, or what it gets instead of a result.
    pub(super) async fn may(
        &mut self,
        tool: &str,
        arguments: &Value,
        front: &mut dyn Front,
        stop: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let effect = self.resolved_effect(tool, arguments)?;
        let why = match self.permissions.verdict(tool, &effect) {
            Verdict::Allow => return Ok(arguments.clone()),
            Verdict::Deny(reason) => return Err(denied(reason)),
            Verdict::Ask(_) if stop.is_cancelled() => return Err(interrupted()),
            Verdict::Ask(why) => why,
        };
        let rule = rule_for(tool, &effect).filter(|rule| self.would_allow(rule, tool, &effect));
        let what = self.tools.asked(tool, arguments);
        let consent = Consent { tool: tool.to_owned(), what, why, rule };
        let answer = tokio::select! {
            answer = front.ask(&consent) => answer,
            () = stop.cancelled() => return Err(interrupted()),
        };
        match answer {
            Answer::Yes => {}
            Answer::Always(_) => {
                if let Some(rule) = &consent.rule {
                    // It was read when it was offered.
                    _ = self.permissions.allow(rule);
                }
            }
            Answer::Edited(command) => return self.edited(tool, arguments, &consent, command),
            Answer::No(said) => {
                let said = said.map(|said| format!(" and says: {said}")).unwrap_or_default();
                return Err(denied(format!("the user does not allow it{said}")));
            }
        }
        // The person may have taken an hour: a link can lead elsewhere by now, and a file have another text.
        if self.resolved_effect(tool, arguments)? != effect
            || self.tools.asked(tool, arguments) != consent.what
        {
            return Err(denied(
                "what it would change is not what the user has agreed to any longer".to_owned(),
            ));
        }
        Ok(arguments.clone())
    }

    /// A command that the person put in the place of another. Rules that deny hold for it too.
    fn edited(
        &self,
        tool: &str,
        arguments: &Value,
        consent: &Consent,
        command: String,
    ) -> Result<Value, ToolError> {
        if !matches!(consent.what, Asked::Command { .. }) {
            return Err(denied("only a command can be edited".to_owned()));
        }
        let mut arguments = arguments.clone();
        arguments["command"] = Value::from(command);
        match self.permissions.verdict(tool, &self.resolved_effect(tool, &arguments)?) {
            Verdict::Deny(reason) => Err(denied(reason)),
            Verdict::Allow | Verdict::Ask(_) => Ok(arguments),
        }
    }

    /// What a call would do. Rules are about the place that a path leads to.
    fn resolved_effect(&self, tool: &str, arguments: &Value) -> Result<Effect, ToolError> {
        match self.tools.effect(tool, arguments) {
            Effect::Changes(path) => {
                let place = self.project.place_to_write(&path)?;
                Ok(Effect::Changes(place.shown().to_owned()))
            }
            effect => Ok(effect),
        }
    }

    /// Whether a rule would let this call run.
    fn would_allow(&self, rule: &str, tool: &str, effect: &Effect) -> bool {
        let mut permissions = self.permissions.clone();
        permissions.allow(rule).is_ok() && permissions.verdict(tool, effect) == Verdict::Allow
    }
}

fn denied(message: String) -> ToolError {
    ToolError::new(Code::Denied, message)
}
