//! `/model`, `/profile`, `/permissions`: how the agent goes on.

use longhaul::Models;
use longhaul_agent::Mode;
use longhaul_config::nearest;

use crate::agent::terminal::conversation::Conversation;
use crate::agent::thinking::Thinking;
use crate::terminal::{one_line, width};

pub fn model(conversation: &mut Conversation<'_>, name: &str) -> Result<(), String> {
    if name.is_empty() {
        let row = conversation.agent.session().model();
        let name = one_line(conversation.agent.model_name(), 60);
        conversation.front.screen.line(format_args!("{name}, with a window of {} tokens", row.window.0));
        return Ok(());
    }
    let model = conversation.options.model_named(name).map_err(|failure| failure.to_string())?;
    let row = Models::builtin().find(name).clone();
    conversation.front.spent.switch(&row);
    conversation.agent.switch_model(model, name, row);
    conversation.front.screen.line(format_args!("{} goes on from here", one_line(name, 60)));
    conversation.tell_unknown_model();
    conversation.tell_context();
    Ok(())
}

pub fn profile(conversation: &mut Conversation<'_>, name: &str) -> Result<(), String> {
    let screen = conversation.front.screen.clone();
    let config = conversation.config;
    if name.is_empty() {
        let now = conversation.agent.session().profile().name.to_string();
        for known in config.names() {
            screen.line(format_args!("{} {known}", if known == now { '●' } else { ' ' }));
        }
        return Ok(());
    }
    if !config.names().any(|known| known == name) {
        return Err(format!("there is no profile {name}; is {} meant?", nearest(name, config.names())));
    }
    let set = conversation.options.set_profile(name, config, &mut conversation.agent);
    set.map_err(|failure| failure.to_string())?;
    screen.line(format_args!("the profile {name} goes on from here"));
    conversation.tell_context();
    Ok(())
}

pub fn permissions(conversation: &mut Conversation<'_>, name: &str) -> Result<(), String> {
    if name.is_empty() {
        let permissions = conversation.agent.permissions();
        let screen = &conversation.front.screen;
        screen.line(format_args!("{}: {}", permissions.mode.name(), says(permissions.mode)));
        permissions
            .rules()
            .for_each(|(kind, rule)| screen.line(format_args!("  {kind} {}", one_line(rule, width()))));
        conversation.commands.lines().iter().for_each(|line| screen.line(line));
        return Ok(());
    }
    let Some((_, mode)) = Mode::NAMES.into_iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = Mode::NAMES.iter().map(|(known, _)| *known).collect();
        return Err(format!("{name} is none of {}", names.join(", ")));
    };
    conversation.agent.permissions_mut().mode = mode;
    conversation.front.screen.line(format_args!("{}: {}", mode.name(), says(mode)));
    Ok(())
}

pub fn thinking(conversation: &mut Conversation<'_>, name: &str) -> Result<(), String> {
    if !name.is_empty() {
        let Some((_, shown)) = Thinking::NAMES.into_iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = Thinking::NAMES.iter().map(|(known, _)| *known).collect();
            return Err(format!("{name} is none of {}", names.join(", ")));
        };
        conversation.front.thought.shown = shown;
    }
    let shown = conversation.front.thought.shown;
    let says = match shown {
        Thinking::None => "nothing is shown of what the model thinks",
        Thinking::Short => "the first line is shown of what the model thinks",
        Thinking::Whole => "what the model thinks is shown as a whole",
    };
    conversation.front.screen.line(format_args!("{}: {says}", shown.name()));
    Ok(())
}

fn says(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "looking at files is allowed, all else is asked for",
        Mode::Edits => {
            "looking at files and changing them is allowed, all else and protected files are asked for"
        }
        Mode::ReadOnly => "looking at files is allowed, and nothing else",
        Mode::All => "everything is allowed, unless a rule denies it or a file is protected",
    }
}
