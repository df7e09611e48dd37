//! `/help`, `/cost`, `/quit`.

use super::{COMMANDS, Command};
use crate::agent::spent::{Before, Spent};
use crate::agent::terminal::conversation::Conversation;
use crate::terminal::grouped;

pub fn help(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    let screen = &conversation.front.screen;
    screen.lines(COMMANDS.iter().map(help_line));
    screen.faint("@path names a file; a line goes on behind a \\ at its end or an open ``` fence");
    screen.faint("Ctrl-C interrupts, twice leaves; what is typed meanwhile waits its turn");
    Ok(())
}

pub fn help_line(command: &Command) -> String {
    format!("  {:22} {}", format!("/{} {}", command.name, command.takes), command.does)
}

pub fn cost(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    let Spent { calls, input, cache_read, cache_write, output, .. } = conversation.front.spent;
    let spent = &conversation.front.spent;
    let screen = &conversation.front.screen;
    let share = spent.share_read().map(|share| format!(" ({:.0} %)", share * 100.0)).unwrap_or_default();
    for (name, tokens, more) in [
        ("calls", calls, String::new()),
        ("read from cache", cache_read, share),
        ("written to cache", cache_write, String::new()),
        ("not cached", input, String::new()),
        ("answers", output, String::new()),
    ] {
        screen.line(format_args!("  {name:18}{:>12}{more}", grouped(tokens)));
    }
    let summaries = conversation.agent.session().paid_for_summaries();
    if summaries.calls > 0 {
        let tokens = grouped(summaries.prompt.written.0 + summaries.prompt.read.0 + summaries.output.0);
        let more = format!(" by {} calls", summaries.calls);
        screen.line(format_args!("  {:18}{tokens:>12}{more}", "for summaries"));
    }
    match spent.dollars() {
        Some(sum) => {
            screen.line(format_args!("  {:18}{:>12}", "dollars", format!("{sum:.4}")));
            match spent.before() {
                Before::Nothing => {}
                Before::Dollars(sum) => {
                    screen.line(format_args!("  {:18}{:>12}", "before this run", format!("{sum:.4}")));
                }
                Before::Unknown => screen.faint("  what the session cost before this run is not known"),
            }
        }
        None => screen.faint("  the prices of this model are not known"),
    }
    Ok(())
}

pub fn quit(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    conversation.leaving = true;
    Ok(())
}
