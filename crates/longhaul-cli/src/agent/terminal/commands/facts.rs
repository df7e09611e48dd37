//! `/pin`, `/pins`, `/unpin`, `/goal`, `/remember`: what stays, whatever is taken out.

use longhaul::conversation::FactKind;

use crate::agent::terminal::conversation::Conversation;
use crate::commands::sessions::pin as stored;
use crate::terminal::{one_line, width};

pub fn pin(conversation: &mut Conversation<'_>, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a text is wanted: /pin never touch the migrations".to_owned());
    }
    stored::pin(conversation.agent.session_mut(), text).map_err(|failure| failure.to_string())?;
    conversation.front.screen.line("pinned: it stays in every request");
    Ok(())
}

pub fn pins(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    let mut lines = Vec::new();
    stored::write(&mut lines, &stored::pins(conversation.agent.session()))
        .map_err(|error| error.to_string())?;
    match lines.is_empty() {
        true => conversation.front.screen.line("nothing is pinned; /pin TEXT does it"),
        false => conversation.front.screen.line(String::from_utf8_lossy(&lines).trim_end()),
    }
    Ok(())
}

pub fn unpin(conversation: &mut Conversation<'_>, number: &str) -> Result<(), String> {
    let number = number.parse().map_err(|_| "the number of a pin is wanted: /pins says which".to_owned())?;
    let text = stored::pins(conversation.agent.session()).into_iter().find(|pin| pin.number() == number);
    let text = text.map(|pin| one_line(pin.text(), width().saturating_sub(20))).unwrap_or_default();
    stored::remove(conversation.agent.session_mut(), number).map_err(|failure| failure.to_string())?;
    conversation.front.screen.line(format_args!("no longer pinned: {text}"));
    Ok(())
}

pub fn goal(conversation: &mut Conversation<'_>, text: &str) -> Result<(), String> {
    let screen = &conversation.front.screen;
    if !text.is_empty() {
        conversation.agent.session_mut().set_goal(text);
        screen.line("the goal is set: summaries keep to it");
        return Ok(());
    }
    let session = conversation.agent.session();
    let set = session.log().facts(FactKind::Goal).last().map(|(_, text)| (*text).to_owned());
    match set {
        Some(goal) => screen.line(one_line(&goal, 5 * width())),
        None => screen.line("no goal is set: the first message stands for it; /goal TEXT sets one"),
    }
    Ok(())
}

pub fn remember(conversation: &mut Conversation<'_>, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a text is wanted: /remember the tests need --test-threads=1".to_owned());
    }
    let name = text.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
    conversation.agent.session_mut().remember(name.as_str(), text);
    conversation.front.screen.line("remembered for this session");
    Ok(())
}
