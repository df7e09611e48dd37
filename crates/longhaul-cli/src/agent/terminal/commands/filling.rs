//! `/context` and `/compact`: what fills the window, and what could go.

use longhaul::{Edit, Prepared, Session};

use crate::agent::terminal::context_line::as_it_stands;
use crate::agent::terminal::conversation::Conversation;
use crate::filling::Filling;
use crate::terminal::{self, GOOD, grouped, short, width};

pub fn context(conversation: &mut Conversation<'_>, _: &str) -> Result<(), String> {
    let screen = &conversation.front.screen;
    let now = as_it_stands(conversation.agent.session());
    let session = now.as_ref().unwrap_or(conversation.agent.session());
    let budget = session.budget();
    let filling = Filling::of(session).scaled_to(session.size().tokens);
    let columns = (width() as u64).saturating_sub(4).min(72);
    screen.line(format_args!("│{}│", filling.bar(budget.hard, columns)));
    screen.lines(filling.lines());
    let whole = session.meter().estimate(session.full()).tokens;
    screen.line(format_args!(
        "{} tokens of {} at most; compaction starts at {}; the whole session has {}",
        grouped(session.size().tokens.0),
        grouped(budget.hard.0),
        grouped(budget.trigger.0),
        grouped(whole.0)
    ));
    let edits = session.ledger().edits().filter(|(_, active)| *active).count();
    if edits > 0 {
        let hold = if edits == 1 { "1 edit holds".to_owned() } else { format!("{edits} edits hold") };
        screen.line(format_args!("{hold}: /undo takes the newest back, /recall HANDLE shows what went"));
    }
    screen.lines(could_go(conversation.agent.session()).lines);
    Ok(())
}

pub fn compact(conversation: &mut Conversation<'_>, focus: &str) -> Result<(), String> {
    let would = could_go(conversation.agent.session());
    if !would.helps {
        conversation.front.screen.lines(would.lines);
        return Ok(());
    }
    match focus {
        "" => conversation.agent.session_mut().compact_now(),
        focus => conversation.agent.session_mut().compact_now_on(focus),
    }
    let screen = &conversation.front.screen;
    screen.line("room is made before the next request:");
    screen.lines(would.lines);
    Ok(())
}

/// What a compaction would take out now.
struct CouldGo {
    /// As a person sees it.
    lines: Vec<String>,
    /// There is something that would go.
    helps: bool,
}

/// Tries a compaction on a copy.
fn could_go(session: &Session) -> CouldGo {
    let mut tried = session.clone();
    let (from, before) = (tried.ledger().edits().count(), as_it_stands(session).map(|now| now.size().tokens));
    tried.compact_now();
    let prepared = tried.prepare(None);
    let made: Vec<&Edit> = tried.ledger().edits().skip(from).map(|(edit, _)| &**edit).collect();
    let mut lines: Vec<String> =
        terminal::edits(&made).iter().map(|line| format!("  {GOOD}└ {line}{GOOD:#}")).collect();
    let helps = !made.is_empty() || matches!(prepared, Ok(Prepared::Summarise(_)));
    match prepared {
        Ok(Prepared::Summarise(_)) => {
            lines.push("  a summary by the model would stand for older messages".to_owned())
        }
        Ok(Prepared::Send(_)) if made.is_empty() => lines.push("  nothing could go now".to_owned()),
        Ok(Prepared::Send(_)) => {
            let (before, after) = (before.unwrap_or_default(), tried.size().tokens);
            lines.push(format!("  /compact would make {} of {} tokens", short(after.0), short(before.0)));
        }
        Err(problem) => lines.push(format!("  {problem}")),
    }
    CouldGo { lines, helps }
}
