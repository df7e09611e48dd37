//! A session is stored by appending what is new, and goes on after every restart as if there had
//! been none: `cargo run -p longhaul --example save_and_load`.

use std::error::Error;

use longhaul::{
    Block, Cursor, Entry, Json, Known, Message, Models, Position, Prepared, Profile, Role, Session, Snapshot,
    Tokens,
};

/// Runs the conversation twice: once in memory, once with a restart before every call.
pub fn main() -> Result<(), Box<dyn Error>> {
    let model = Models::builtin().find("gpt-4o").clone();
    let mut stays = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
    stays.push(Message::user("Read all files and tell me which one defines `main`."));
    let mut file = File::default();
    file.save(&stays)?;
    for n in 0..40 {
        let mut restarted = file.load()?;
        for session in [&mut stays, &mut restarted] {
            step(session, n)?;
        }
        // The same request, to the byte, with the same ticket, price and reasons.
        assert!(restarted.outgoing().messages().eq(stays.outgoing().messages()));
        assert_eq!((restarted.last_ticket(), restarted.sent()), (stays.last_ticket(), stays.sent()));
        file.save(&restarted)?;
    }
    let written: Vec<String> = stays.since(Cursor(0)).map(serde_json::to_string).collect::<Result<_, _>>()?;
    assert_eq!(file.lines, written);

    // A journal that was cut short is the journal of an earlier moment.
    file.lines.truncate(30);
    file.load()?.prepare(None)?;

    // A fork is a journal of its own. What both share need not be stored twice: the fork begins to
    // differ at its entry `Forked`, the last one.
    let fork = stays.fork(Position(5))?;
    let shared = fork.cursor().0 - 1;
    assert!(fork.since(Cursor(0)).take(shared).eq(stays.since(Cursor(0)).take(shared)));
    println!("{} entries; the fork shares {shared} of them.", written.len());
    Ok(())
}

/// Stands for a file of JSON Lines, and one for sizes beside it.
#[derive(Default)]
struct File {
    lines: Vec<String>,
    /// Sizes of messages: they need not be counted again. What is missing is counted.
    sizes: String,
}

impl File {
    /// Appends what happened since the last time.
    fn save(&mut self, session: &Session) -> serde_json::Result<()> {
        for entry in session.since(Cursor(self.lines.len())) {
            self.lines.push(serde_json::to_string(entry)?);
        }
        self.sizes = serde_json::to_string(&session.snapshots())?;
        Ok(())
    }

    fn load(&self) -> Result<Session, Box<dyn Error>> {
        let entries: Vec<Entry> =
            self.lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?;
        let sizes: Vec<Snapshot> = serde_json::from_str(&self.sizes)?;
        // The profile is not in the journal: it may be another one by now.
        Ok(Session::load_with(Profile::longhaul(), entries, Known { sizes, store: None })?)
    }
}

/// A request, and what came of it.
fn step(session: &mut Session, n: usize) -> Result<(), Box<dyn Error>> {
    let Prepared::Send(_) = session.prepare(None)? else { return Err("the extractor asks for none".into()) };
    let id = format!("call_{n}");
    let path = Json::string(&format!("src/file_{n}.rs"));
    session.push(Message::new(Role::Assistant, vec![Block::call(id.as_str(), "Read", path)]));
    session.push(Message::result(id, format!("fn helper_{n}(value: u32) -> u32 {{ value }}\n").repeat(40)));
    Ok(())
}
