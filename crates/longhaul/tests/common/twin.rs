//! A provider that binds thinking to its prefix, as far as a session shows requests: it signs what it answers, and refuses
//! what it has not signed for the messages that stand before it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use longhaul::conversation::Thinking;
use longhaul::{Block, Extra, Frame, Json, Message, Role, Seal, Session};

/// Signs and checks.
#[derive(Debug, Clone, Default)]
pub struct Twin {
    minted: usize,
    /// Blocks that were in requests.
    pub seen: usize,
}

/// A signature: its own name, the prefix, and the block before it.
fn signature(name: usize, prefix: u64, before: &str) -> String {
    format!("{name}|{prefix:x}|{before}")
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Definitions of tools, in order: of those that wait until they are found, or of the others.
fn tools(frame: Option<&Frame>, wait: bool) -> Vec<&str> {
    let definitions = frame.into_iter().flat_map(|frame| &frame.tools).map(|tool| tool.definition.as_str());
    let mut tools: Vec<&str> = definitions.filter(|tool| tool.contains("defer_loading") == wait).collect();
    tools.sort_unstable();
    tools
}

fn of_frame(frame: Option<&Frame>) -> u64 {
    let tools = tools(frame, false);
    let system = frame.map(|frame| format!("{:?}", frame.system)).unwrap_or_default();
    hash((system, tools))
}

/// What of a message counts: all but thinking, and nothing but its words.
fn of_message(message: &Message) -> String {
    let role = if message.role() == Role::Tool { Role::User } else { message.role() };
    let blocks = message.blocks().iter().filter_map(|block| match block {
        Block::Thinking(_) => None,
        Block::Text(text) => Some(format!("T{}", text.text.trim())),
        Block::ToolCall(call) => Some(format!("C{}{}{}", call.id, call.name, call.arguments.as_str())),
        Block::ToolResult(result) => Some(format!("R{}{}{:?}", result.id, result.text, result.content)),
        other => Some(format!("{other:?}")),
    });
    format!("{}{}", role.name(), blocks.filter(|text| text != "T").collect::<Vec<_>>().join("\n"))
}

impl Twin {
    /// What is wrong with a request, and what its answer is bound to.
    fn read<'a>(
        &mut self,
        frame: Option<&Frame>,
        messages: impl Iterator<Item = &'a Message>,
    ) -> (Vec<String>, u64, String) {
        let (mut prefix, mut wrong, mut last) = (of_frame(frame), Vec::new(), String::new());
        for (at, message) in messages.enumerate() {
            for block in message.blocks() {
                let Block::Thinking(Thinking { seal: Seal::Signed(seal), .. }) = block else { continue };
                self.seen += 1;
                let parts: Vec<&str> = seal.split('|').collect();
                if parts[1] != format!("{prefix:x}") {
                    wrong.push(format!("messages.{at}: {seal} is bound to a different conversation"));
                } else if !last.is_empty() && parts[2] != last {
                    wrong.push(format!("messages.{at}: {seal} follows {last}"));
                }
                last = parts[0].to_owned();
            }
            prefix = hash((prefix, of_message(message)));
            // One such tool is enough here.
            if of_message(message).contains("tool_reference") {
                prefix = hash((prefix, tools(frame, true)));
            }
        }
        (wrong, prefix, last)
    }

    /// Answers what a session sends: its thinking, signed. Panics where the provider would refuse.
    pub fn answer(&mut self, session: &Session, thinking: &str) -> Block {
        let sent: Vec<_> = session.outgoing().messages().cloned().collect();
        let (wrong, prefix, last) =
            self.read(session.outgoing().frame, sent.iter().map(|message| &**message));
        // A model that does not bind takes whatever it is given.
        assert!(wrong.is_empty() || !session.model().binds, "{wrong:?}");
        self.sign(prefix, &last, thinking)
    }

    /// The same by an answer that thinks three times.
    pub fn answer_thrice(&mut self, session: &Session) -> [Block; 3] {
        let first = self.answer(session, "First this.");
        let sent: Vec<_> = session.outgoing().messages().cloned().collect();
        let (_, prefix, _) = self.read(session.outgoing().frame, sent.iter().map(|message| &**message));
        let mut next = |before: &Block, thinking: &str| {
            let name = seal(before).and_then(|seal| seal.split('|').next()).unwrap_or_default().to_owned();
            self.sign(prefix, &name, thinking)
        };
        let second = next(&first, "Then that.");
        let third = next(&second, "And more.");
        [first, second, third]
    }

    /// Answers the client's own messages: what of their thinking is stale is not there.
    pub fn answer_client(&mut self, frame: Option<&Frame>, messages: &[Message], thinking: &str) -> Block {
        let (_, prefix, last) = self.read(frame, messages.iter());
        self.sign(prefix, &last, thinking)
    }

    fn sign(&mut self, prefix: u64, last: &str, thinking: &str) -> Block {
        self.minted += 1;
        let seal = Seal::Signed(signature(self.minted, prefix, last).into());
        Block::Thinking(Thinking { text: thinking.into(), seal, extra: Extra::NONE })
    }
}

/// The signature of a block.
pub fn seal(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking(thinking) => thinking.seal.data(),
        _ => None,
    }
}

/// An answer that thinks and calls a tool.
pub fn thinks(thinking: Block, id: &str) -> Message {
    let path = Json::new(format!(r#"{{"path":"src/{id}.rs"}}"#)).unwrap();
    Message::new(Role::Assistant, vec![thinking, Block::call(id, "Read", path)])
}
