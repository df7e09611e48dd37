//! The conversation that a call of one of our tools belongs to. The server of tools is asked apart from the requests to the
//! model: the call says nothing of its conversation. It is the one whose newest answer contains this very call, or the one that
//! the client names; where that is not exactly one, nothing is done.

use std::sync::Arc;

use http::HeaderMap;
use longhaul_wire::api::Api;
use serde_json::Value;

use super::live::{Hint, Shared};
use super::{AskError, Call, Desk, incoming};
use crate::scope::Scope;

/// Our tools that concern one conversation.
const TOOLS: [&str; 4] = ["pin", "unpin", "goal", "context"];

/// Who calls a tool of ours, as far as the request tells.
#[derive(Debug, Clone)]
pub struct ToolCaller {
    pub(crate) tenant: Arc<str>,
    scope: Option<Scope>,
    /// The conversations that it names.
    named: Vec<Hint>,
}

impl ToolCaller {
    /// The caller of a request of this tenant.
    pub fn of(tenant: Arc<str>, headers: &HeaderMap) -> Self {
        let apis = [Api::Anthropic, Api::Chat, Api::Responses].into_iter();
        let named = apis.flat_map(|api| incoming::named(&tenant, api, headers)).collect();
        Self { scope: Scope::of(headers), named, tenant }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CalledTool {
    name: String,
    arguments: Value,
    /// It was served.
    is_served: bool,
}

impl CalledTool {
    /// A call that came to our server of tools.
    pub fn new(name: &str, arguments: Value) -> Self {
        let arguments = if arguments.is_null() { Value::Object(Default::default()) } else { arguments };
        Self { name: name.to_owned(), arguments, is_served: false }
    }

    /// A call of an answer, if it may be of one of our tools that concern a conversation. Clients put the name of the
    /// server before that of the tool.
    pub(crate) fn in_answer(name: &str, arguments: &str) -> Option<Self> {
        TOOLS.iter().find(|tool| is_named(name, tool))?;
        let arguments = if arguments.trim().is_empty() { "null" } else { arguments };
        Some(Self::new(name, serde_json::from_str(arguments).ok()?))
    }

    /// The error of a call that no conversation is known to have made.
    pub(super) fn without_caller(&self) -> AskError {
        AskError::NoCaller(self.name.clone())
    }

    /// True for what a client makes of a call that stands in an answer.
    fn is_made_of(&self, answered: &Self) -> bool {
        is_named(&answered.name, &self.name) && answered.arguments == self.arguments
    }
}

/// True if a tool has this name, or this name after that of its server.
fn is_named(name: &str, tool: &str) -> bool {
    let server = name.strip_suffix(tool);
    server.is_some_and(|server| !server.ends_with(|last: char| last.is_alphanumeric()))
}

/// The calls of our tools that an answer contains.
#[derive(Debug, Clone, Default)]
pub struct Called {
    pub(crate) scope: Option<Scope>,
    pub(crate) tools: Vec<CalledTool>,
}

impl Desk {
    /// The provider answered a call with calls of our tools.
    pub fn called(&self, call: &Call, called: Called) {
        self.live.called(call.session, called);
    }

    /// The conversation that a call of a tool belongs to.
    pub(super) fn conversation_of(&self, caller: &ToolCaller, call: &CalledTool) -> Result<Shared, AskError> {
        let mut named: Vec<Shared> = Vec::new();
        for shared in caller.named.iter().flat_map(|hint| self.live.hinted(hint)) {
            if !named.iter().any(|known| Arc::ptr_eq(known, &shared)) {
                named.push(shared);
            }
        }
        let may_be = |shared: &Shared, called: &Called| match caller.named.is_empty() {
            true => called.scope == caller.scope,
            false => called.scope == caller.scope && named.iter().any(|named| Arc::ptr_eq(named, shared)),
        };
        // A call that was served already is that of an older answer, unless there is no other.
        for is_served in [false, true] {
            let is_it = |tool: &CalledTool| tool.is_served == is_served && call.is_made_of(tool);
            let mut calling: Vec<Shared> = Vec::new();
            self.live.look_at_calls(&caller.tenant, |shared, called| {
                if may_be(shared, called) && called.tools.iter().any(is_it) {
                    calling.push(shared.clone());
                }
            });
            match &*calling {
                [] => {}
                [one] => {
                    self.live.look_at_calls(&caller.tenant, |shared, called| {
                        let served = called.tools.iter_mut().filter(|_| Arc::ptr_eq(shared, one));
                        served.filter(|tool| is_it(tool)).take(1).for_each(|tool| tool.is_served = true);
                    });
                    return Ok(one.clone());
                }
                [..] => return Err(AskError::SeveralCallers(call.name.clone())),
            }
        }
        match &*named {
            [one] => Ok(one.clone()),
            [] => Err(call.without_caller()),
            [..] => Err(AskError::SeveralCallers(call.name.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_put_the_name_of_the_server_before_that_of_the_tool() {
        for name in ["pin", "mcp__longhaul__pin", "longhaul_pin", "longhaul.pin", "longhaul-pin"] {
            assert!(is_named(name, "pin"), "{name}");
        }
        for name in ["unpin", "mcp__longhaul__unpin", "pins", "spin", ""] {
            assert!(!is_named(name, "pin"), "{name}");
        }
    }

    #[test]
    fn a_call_is_known_again_by_its_name_and_arguments() {
        let answered = CalledTool::in_answer("mcp__longhaul__pin", r#"{"text": "a"}"#).unwrap();
        let came = |name, arguments| CalledTool::new(name, arguments).is_made_of(&answered);
        assert!(came("pin", json!({"text": "a"})));
        assert!(!came("pin", json!({"text": "b"})) && !came("goal", json!({"text": "a"})));
        let none = CalledTool::in_answer("longhaul_context", "").unwrap();
        assert!(CalledTool::new("context", Value::Null).is_made_of(&none));
        assert!(CalledTool::new("context", json!({})).is_made_of(&none));
        assert_eq!(CalledTool::in_answer("Read", "{}"), None);
        assert_eq!(CalledTool::in_answer("pin", r#"{"text": "a"#), None);
    }
}
