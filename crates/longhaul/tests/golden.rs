//! Ledgers that an older version wrote must render the same for ever: the providers have cached
//! what was sent. A file for each profile, with every kind of edit and event among them.
//! (`UPDATE_GOLDEN=1` writes files that are missing; what is there must not change.)

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use longhaul::{
    Block, EditKind, Event, Extra, Json, Message, Meter, Model, Models, Prepared, Profile, Role, Seal,
    Session, Thinking, Tokens, Usage,
};

fn model(window: u64) -> Model {
    Model { name: "m".into(), window: Tokens(window), ..Models::builtin().find("gpt-4o").clone() }
}

/// A conversation with everything that edits do something with. What happens to it depends on
/// the window; the log does not.
fn conversation(profile: &Profile, window: u64) -> Session {
    let mut session = Session::new(profile.clone(), model(window)).with_meter(Meter::neutral());
    session.set_rules("AGENTS.md", Some("Never change the public interface."));
    session.push(Message::system("You mend parsers."));
    session.push(Message::user("Mend the parser of dates. <Pin>The year is 1900.</Pin>"));
    for n in 0..60 {
        let id = format!("call_{n}");
        let thinking = Thinking {
            text: format!("I think about step {n}. ").repeat(8).into(),
            seal: if n % 2 == 0 { Seal::Open } else { Seal::Signed("sig".into()) },
            extra: Extra::NONE,
        };
        let file = format!("src/file_{n}.rs");
        let arguments = match n % 4 {
            // One is so long that it must be cut.
            3 => {
                serde_json::json!({ "path": file, "content": format!("fn new_{n}() {{}}\n").repeat(if n == 51 { 2_000 } else { 30 }) })
            }
            _ => serde_json::json!({ "path": file }),
        };
        let name = if n % 4 == 3 { "Write" } else { "Read" };
        let call = Block::call(id.as_str(), name, Json::new(arguments.to_string()).unwrap());
        session.push(Message::new(Role::Assistant, vec![Block::Thinking(thinking), call]));
        // One result is late: its call is answered by a placeholder.
        if n == 20 {
            _ = session.prepare(None);
        }
        session
            .push(Message::result(id, format!("fn old_{n}(value_{n}: u32) {{}}\n").repeat(20 + n % 7 * 9)));
        if n % 8 == 7 {
            session.push(Message::assistant(format!("Step {n} is done. I decided to keep old_{n}.")));
            session.push(Message::user(format!("Go on with part {n}, please.")));
        }
        if let Ok(Prepared::Ready(_)) = session.prepare(None) {
            session.observe(&Usage { input: 2_000 + 10 * n as u64, ..Usage::default() });
        }
        if n == 40 {
            session.set_goal("Mend the printer of dates.");
            session.set_todos(Some("[ ] printer"));
            session.remember("port", "The port is 8473.");
            let edits: Vec<_> = session.ledger().edits().filter(|(_, on)| *on).map(|(e, _)| e.id).collect();
            if let Some(edit) = edits.last() {
                session.undo(*edit).ok();
                session.redo(*edit).ok();
            }
            session = session.fork(session.log().end());
        }
    }
    session
}

fn text(session: &Session) -> String {
    let block = |block: &Block| match block {
        Block::Text(b) => format!("{}\n", b.text),
        Block::Thinking(b) => format!("({:?}) {}\n", b.seal, b.text),
        Block::ToolCall(b) => format!("{} {} {}\n", b.id, b.name, b.arguments.as_str()),
        Block::ToolResult(b) => format!("{}: {}\n", b.id, b.text),
        Block::Image(_) | Block::Opaque(_) => String::new(),
    };
    let parts = session.view().parts().iter().chain(session.view().tail());
    let part = |message: &Message| {
        let blocks: String = message.blocks().iter().map(block).collect();
        format!("--- {}\n{blocks}", message.role().name())
    };
    parts.map(|shown| part(&shown.message)).collect()
}

fn kinds(events: &[Event]) -> BTreeSet<&'static str> {
    let name = |event: &Event| match event {
        Event::Apply(edit) => match &edit.kind {
            EditKind::Fold { placement: longhaul::Placement::SystemHint, .. } => "hint",
            kind => kind.name(),
        },
        Event::Undo { .. } => "undo",
        Event::Redo { .. } => "redo",
        Event::Forked { .. } => "forked",
        Event::PlaceholderSent { .. } => "placeholder",
        Event::RulesShown { .. } => "rules",
        Event::Usage { .. } => "usage",
    };
    events.iter().map(name).collect()
}

#[test]
fn ledgers_of_every_profile_render_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut all = BTreeSet::new();
    for profile in Profile::all() {
        let file = |ending: &str| -> PathBuf { folder.join(format!("{}.{ending}", profile.name)) };
        if std::env::var_os("UPDATE_GOLDEN").is_some() && !file("jsonl").exists() {
            let made = conversation(&profile, 6_000);
            let lines =
                made.ledger().events().iter().map(|event| serde_json::to_string(event).unwrap() + "\n");
            std::fs::write(file("jsonl"), lines.collect::<String>()).unwrap();
        }
        let lines = std::fs::read_to_string(file("jsonl")).unwrap();
        let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let again: String = events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
        assert!(again == lines, "{}: events are written otherwise", profile.name);
        all.extend(kinds(&events));
        // The same log; what the ledger says is all that was done to it.
        let mut saved = conversation(&profile, 1 << 30).save();
        (saved.events, saved.state) = (events, Default::default());
        let loaded = Session::load(profile.clone(), model(6_000), saved).unwrap();
        let shown = text(&loaded);
        if std::env::var_os("UPDATE_GOLDEN").is_some() && !file("txt").exists() {
            std::fs::write(file("txt"), &shown).unwrap();
        }
        let expected = std::fs::read_to_string(file("txt")).unwrap();
        let differs = shown.lines().zip(expected.lines()).position(|(a, b)| a != b);
        assert!(shown == expected, "{}: line {differs:?} is another", profile.name);
    }
    let every = [
        "digest",
        "digest of arguments",
        "fold",
        "forked",
        "hide",
        "hint",
        "placeholder",
        "redo",
        "rules",
        "thinking dropped",
        "undo",
        "usage",
    ];
    assert_eq!(all.into_iter().collect::<Vec<_>>(), every);
}
