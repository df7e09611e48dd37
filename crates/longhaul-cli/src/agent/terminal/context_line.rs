//! One line that says how full the context is and what was paid.

use longhaul::{Session, Tokens};

use crate::agent::spent::Spent;
use crate::filling::Filling;
use crate::terminal::{columns, short};

/// The view as the next request would have it: one that is made again follows what was said since.
pub fn as_it_stands(session: &Session) -> Option<Session> {
    session.fork(session.log().end()).ok()
}

/// The line, of at most so many columns.
pub fn context_line(session: &Session, spent: &Spent, width: usize) -> String {
    let now = as_it_stands(session);
    let session = now.as_ref().unwrap_or(session);
    let used = session.size().tokens;
    line(used, session.budget().hard, &Filling::of(session).scaled_to(used), spent, width)
}

fn line(used: Tokens, limit: Tokens, filling: &Filling, spent: &Spent, width: usize) -> String {
    let percent = used.0 * 100 / limit.0.max(1);
    let mut parts = vec![format!("context {} of {} ({percent} %)", short(used.0), short(limit.0))];
    parts.extend(spent.told(2));
    parts.extend(spent.share_read().map(|share| format!("{:.0} % from cache", share * 100.0)));
    let mut whole = parts.join(" · ");
    // Categories as far as they fit, the largest first.
    for (number, (name, tokens)) in filling.largest().into_iter().enumerate() {
        let more = format!("{}{name} {}", if number == 0 { " · " } else { ", " }, short(tokens));
        if columns(&whole) + columns(&more) > width {
            break;
        }
        whole += &more;
    }
    whole
}

#[cfg(test)]
mod tests {
    use longhaul::{Message, Models, Profile, Usage};

    use super::*;

    #[test]
    fn the_line_says_what_is_used_and_what_was_paid() {
        let model = Models::builtin().find("gpt-4o").clone();
        let mut spent = Spent::on(&model);
        let mut session = Session::new(Profile::longhaul(), model);
        session.push(Message::user("word ".repeat(2_000)));
        session.push(Message::assistant("Done."));
        spent.add(Some(&Usage { input: 10_000, cache_read: 90_000, ..Usage::default() }));
        let wide = context_line(&session, &spent, 80);
        assert!(
            wide.starts_with("context 2.") && wide.contains(" %) · $0.14 · 90 % from cache · user 2."),
            "{wide}"
        );
        let narrow = context_line(&session, &spent, 60);
        assert!(narrow.ends_with("from cache") && columns(&wide) <= 80, "{narrow}");
    }
}
