//! Any lines, as the journal of a session: refused with a sentence, or a session that goes on, forks
//! and is stored again without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul::session::journal::read;
use longhaul::{Cursor, Message, Profile, RecallPart, Session};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(entries) = read(text.lines()) else { return };
    let Ok(mut session) = Session::load(Profile::longhaul(), entries) else { return };
    _ = session.prepare(None);
    session.push(Message::user("And now?"));
    _ = session.prepare(None);
    _ = session.audit();
    let handles: Vec<String> =
        session.ledger().edits().flat_map(|(edit, _)| &edit.originals).map(|handle| handle.short()).collect();
    handles.iter().for_each(|handle| _ = session.recall(handle, &RecallPart::Lines(1, 9)));
    let edits: Vec<_> = session.ledger().edits().map(|(edit, _)| edit.id).collect();
    edits.iter().for_each(|edit| _ = session.undo(*edit));
    _ = session.fork(longhaul::Position(3));
    let lines: Vec<String> =
        session.since(Cursor(0)).map(|entry| serde_json::to_string(entry).expect("it can be written")).collect();
    let stored = read(lines.iter().map(String::as_str)).expect("what was written can be read");
    _ = Session::load(Profile::longhaul(), stored);
});
