//! Texts of ours in a request: summaries, markers and notes. One in the user's place says that it is not the user's words.
//! With OpenAI Chat it stands in one message with what is next to it: chat templates want user and assistant in turn, and
//! a system message first or nowhere.

use std::sync::Arc;

use longhaul::{Message, Role, Voice};

use super::format::Unit;
use super::write::{Object, list};
use crate::fields::FieldError;
use crate::scan::Scanner;

/// The name of the frame around a text that is not the user's words; `None` for a message that anybody else wrote.
pub(super) fn tag(message: &Message) -> Option<&'static str> {
    match message.role() {
        Role::System => Some("system-message"),
        Role::Summary => Some("summary-of-earlier-messages"),
        Role::User | Role::Assistant | Role::Tool => None,
    }
}

/// A text in the user's place, in a frame that says whose words it is not.
pub(super) fn framed(tag: &str, text: &str) -> String {
    format!("<{tag} note=\"not the user's words\">\n{text}\n</{tag}>")
}

/// How many of the first messages stand in one because a text of ours is among them: a system message with the notes
/// directly after it, user messages, or the last result of a step with the notes after it.
pub(super) fn joined(messages: &[Arc<Message>]) -> usize {
    let Some((first, others)) = messages.split_first() else { return 0 };
    let is_ours = |message: &&Arc<Message>, voice| message.voice() == Some(voice);
    let ours = |voice| others.iter().take_while(|message| is_ours(message, voice)).count();
    match (first.role(), first.voice()) {
        (Role::System, None) => 1 + ours(Voice::System),
        (Role::User, None) | (_, Some(Voice::User)) => {
            let is_user = |message: &&Arc<Message>| {
                let is_clients = message.role() == Role::User && message.voice().is_none();
                is_ours(message, Voice::User) || is_clients && message.extra().is_empty()
            };
            let run = 1 + others.iter().take_while(is_user).count();
            if messages[..run].iter().any(|message| is_ours(&message, Voice::User)) { run } else { 0 }
        }
        (Role::Tool, None) => {
            let ours = ours(Voice::User);
            // A note is better off with the user message after it.
            let before_user = others.get(ours).is_some_and(|next| next.role() == Role::User);
            if before_user { 0 } else { 1 + ours }
        }
        _ => 0,
    }
}

/// One message of several: the first that is not ours, or else the first, with the content of all. Its other bytes, and
/// all texts, stay as they were written.
pub(super) fn join(messages: &[Arc<Message>], units: Vec<Unit>) -> Unit {
    let base = messages.iter().position(|message| message.voice().is_none()).unwrap_or_default();
    join_contents(&units, base).unwrap_or_else(|| apart(&units))
}

/// The same, if each of these units is a message with a content.
fn join_contents(units: &[Unit], base: usize) -> Option<Unit> {
    let contents: Option<Vec<Content<'_>>> = units.iter().map(|unit| Content::of(&unit.json)).collect();
    let contents = contents?;
    let base = contents.get(base)?;
    let (content, ends) = if contents.iter().all(|content| content.is_text) {
        let texts: Vec<&str> = contents.iter().map(Content::inside).collect();
        (format!("\"{}\"", texts.join("\\n\\n")), (1..=units.len()).collect())
    } else {
        let parts: Vec<Vec<String>> = contents.iter().map(Content::parts).collect();
        let ends = parts.iter().scan(0, |end, parts| {
            *end += parts.len();
            Some(*end)
        });
        (list(&parts.concat()), ends.collect())
    };
    Some(Unit { json: [base.before, &content, base.after].concat(), ends })
}

/// Messages that cannot be one.
fn apart(units: &[Unit]) -> Unit {
    let written: Vec<&str> = units.iter().map(|unit| &*unit.json).filter(|json| !json.is_empty()).collect();
    Unit { json: written.join(","), ends: units.iter().flat_map(|unit| unit.ends.iter().copied()).collect() }
}

/// The content of a message that is written, and what stands around it.
struct Content<'a> {
    before: &'a str,
    raw: &'a str,
    after: &'a str,
    /// A string, not a list of parts.
    is_text: bool,
    parts: Vec<String>,
}

impl<'a> Content<'a> {
    fn of(json: &'a str) -> Option<Self> {
        let scanned = || -> Result<_, FieldError> {
            let mut scanner = Scanner::new(json, 0)?;
            let note = scanner.value()?;
            Ok((scanner.tape, note))
        };
        let (tape, note) = scanned().ok()?;
        let message = tape.value(json, note);
        // Several messages are not one.
        if message.end() < json.trim_end().len() {
            return None;
        }
        let content = message.get("content")?;
        let is_text = content.is_string();
        if !is_text && !content.is_array() {
            return None;
        }
        let parts = content.elements().map(|part| part.raw().to_owned()).collect();
        let (before, after) = (&json[..content.start()], &json[content.end()..]);
        Some(Self { before, raw: &json[content.start()..content.end()], after, is_text, parts })
    }

    /// A string without its quotes, escaped as it is.
    fn inside(&self) -> &str {
        self.raw.get(1..self.raw.len().saturating_sub(1)).unwrap_or_default()
    }

    fn parts(&self) -> Vec<String> {
        match self.is_text {
            true if self.inside().is_empty() => Vec::new(),
            true => vec![Object::new().text("type", "text").json("text", self.raw).end()],
            false => self.parts.clone(),
        }
    }
}
