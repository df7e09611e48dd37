//! `/resume`, `/fork`, `/clear`, `/export`: other sessions.

use std::path::PathBuf;

use longhaul_store::{Form, SessionId};

use crate::agent::options::sessions_of;
use crate::agent::spent::Spent;
use crate::agent::terminal::conversation::Conversation;
use crate::commands::sessions::{export as stored_export, naming, when};
use crate::terminal::{one_line, width};

/// Sessions that are listed.
const LISTED: usize = 15;

pub fn resume(conversation: &mut Conversation<'_>, name: &str) -> Result<(), String> {
    let (place, store) =
        conversation.options.store(conversation.config).map_err(|failure| failure.to_string())?;
    let screen = conversation.front.screen.clone();
    if name.is_empty() {
        let mut found =
            sessions_of(&*store, conversation.agent.project()).map_err(|error| error.to_string())?;
        found.truncate(LISTED);
        if found.is_empty() {
            screen.line("nothing was said in this project yet");
            return Ok(());
        }
        let length = naming::length(&found);
        let now = conversation.agent.keeper().map(longhaul_store::Keeper::id);
        for meta in &found {
            let mark = if Some(meta.id) == now { '●' } else { ' ' };
            let (id, ago) = (naming::short(meta.id, length), when::ago(meta.updated));
            let room = width().saturating_sub(length + 20);
            screen.line(format_args!("{mark} {id}  {ago:>10}  {}", one_line(&meta.title, room)));
        }
        screen.faint("/resume and the start of an id goes on with it");
        return Ok(());
    }
    let meta = naming::find(&*store, name, &place).map_err(|failure| failure.to_string())?;
    open(conversation, meta.id)?;
    screen.line(format_args!("going on with: {}", one_line(&meta.title, width().saturating_sub(20))));
    conversation.tell_context();
    Ok(())
}

/// Goes on with a stored session.
fn open(conversation: &mut Conversation<'_>, id: SessionId) -> Result<(), String> {
    // What is here must be stored before it is left.
    conversation.agent.finish().map_err(|error| error.to_string())?;
    let opened = conversation.options.stored(conversation.config, id, conversation.agent.model_name());
    let (keeper, session) = opened.map_err(|failure| failure.to_string())?;
    conversation.agent.set_session(session, Some(keeper));
    conversation.front.spent = Spent::going_on(conversation.agent.session());
    Ok(())
}

pub fn fork(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    conversation.agent.finish().map_err(|error| error.to_string())?;
    let session = conversation.agent.session();
    let fork = session.fork(session.log().end()).map_err(|error| error.to_string())?;
    let keeper = conversation.agent.keeper().ok_or("the session is not stored, so it cannot be forked")?;
    let (before, keeper) = (keeper.id(), keeper.fork(&fork).map_err(|error| error.to_string())?);
    conversation.agent.set_session(fork, Some(keeper));
    conversation.front.spent = Spent::going_on(conversation.agent.session());
    conversation.front.screen.line(format_args!("going on in a copy; /resume {before} goes back"));
    Ok(())
}

pub fn clear(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    conversation.agent.finish().map_err(|error| error.to_string())?;
    let agent = &conversation.agent;
    let before = agent.keeper().map(longhaul_store::Keeper::id);
    let fresh = conversation.options.fresh(conversation.config, agent.project(), agent.model_name());
    let (keeper, session) = fresh.map_err(|failure| failure.to_string())?;
    conversation.agent.set_session(session, Some(keeper));
    conversation.front.spent = Spent::going_on(conversation.agent.session());
    let back = before.map(|id| format!("; /resume {id} goes back")).unwrap_or_default();
    conversation.front.screen.line(format_args!("a new session{back}"));
    conversation.tell_context();
    Ok(())
}

pub fn export(conversation: &mut Conversation<'_>, file: &str) -> Result<(), String> {
    conversation.agent.keep().map_err(|error| error.to_string())?;
    let id = conversation.agent.keeper().ok_or("the session is not stored")?.id();
    let name =
        if file.is_empty() { format!("session-{}.jsonl", naming::short(id, 8)) } else { file.to_owned() };
    let path = conversation.agent.project().root().join(PathBuf::from(&name));
    if path.exists() {
        return Err(format!("{name} is there already: name another file"));
    }
    let (_, store) =
        conversation.options.store(conversation.config).map_err(|failure| failure.to_string())?;
    stored_export::to_file(&*store, id, Form::Transcript, &path).map_err(|failure| failure.to_string())?;
    conversation.front.screen.line(format_args!("written to {name}; `longhaul replay` reads it"));
    Ok(())
}
