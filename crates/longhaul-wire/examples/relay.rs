//! Relays the requests of a client through engine and wire, as a gateway does, and says what became of
//! them: `cargo run --release -p longhaul-wire --example relay [-- RECORDED [WINDOW]]`. RECORDED is a
//! file with one body a line, or a folder with one body a file (`001.body` …).

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use longhaul::{Cursor, Entry};

// docs/requests.md: from here
use longhaul::{Models, Position, Prepared, Profile, Session, Tokens};
use longhaul_wire::api::{Api, BodyText, Identity, Relay};

/// A client's conversation with its provider.
struct Conversation {
    relay: Relay,
    session: Session,
    /// The messages that the session has.
    known: Vec<Identity>,
}

impl Conversation {
    /// The body to send in the place of the one that the client sent.
    fn next(&mut self, body: &str) -> Result<BodyText, Box<dyn Error>> {
        let request = self.relay.read(body)?;
        if request.is_stateful() {
            return Err("a part of it is with the provider: it is passed on as it came".into());
        }
        self.session.set_frame(request.frame().clone());
        for message in &request.messages()[self.known.len()..] {
            self.session.push(message.clone());
        }
        self.known = request.identities().into_owned();
        match self.session.prepare(None)? {
            Prepared::Send(_) => Ok(self.relay.write(&request.sending(&self.session.outgoing())).body),
            Prepared::Summarise(job) => Err(format!("job {} is to be answered first", job.id).into()),
        }
    }
}

/// The conversation that a request belongs to, last in the list: the one that it goes on with, a fork of
/// one that it goes back in, or a new one.
fn find(all: &mut Vec<Conversation>, new: &Session, api: Api, body: &str) -> Result<(), Box<dyn Error>> {
    let read = all.last().map_or_else(|| Relay::new(api).read(body), |last| last.relay.read(body))?;
    let identities = read.identities();
    let common = |known: &[Identity]| known.iter().zip(&*identities).take_while(|(a, b)| a == b).count();
    let best = (0..all.len()).max_by_key(|at| common(&all[*at].known));
    let best = best.map(|at| (at, common(&all[at].known))).filter(|(_, count)| *count > 0);
    let next = match best {
        Some((at, count)) if count == all[at].known.len() => all.remove(at),
        Some((at, count)) => {
            let session = all[at].session.fork(Position(count as u32))?;
            let relay = Relay::of(api, session.log().messages());
            Conversation { relay, session, known: identities[..count].to_vec() }
        }
        None => Conversation { relay: Relay::new(api), session: new.clone(), known: Vec::new() },
    };
    all.push(next);
    Ok(())
}
// docs/requests.md: to here

/// A conversation of Claude Code, in short words.
pub const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/claude-messages.jsonl");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let recorded = args.next().unwrap_or_else(|| SAMPLE.to_owned());
    run(&recorded, args.next().map_or(Ok(8_000), |window| window.parse())?)
}

/// Relays all requests, and prints what became of them.
pub fn run(recorded: &str, window: u64) -> Result<(), Box<dyn Error>> {
    let bodies = read(Path::new(recorded))?;
    let api = bodies.first().and_then(|body| Api::guess(body)).ok_or("it has no request that we know")?;
    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let new = Session::new(Profile::longhaul(), model).with_window(Tokens(window));
    let (mut all, mut times, mut own, mut marks) = (Vec::new(), Vec::new(), 0, 0);
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for (number, body) in bodies.iter().enumerate() {
        let start = Instant::now();
        find(&mut all, &new, api, body)?;
        let sent = all.last_mut().map(|conversation| conversation.next(body)).transpose();
        let Some(sent) = sent.map_err(|error| format!("request {}: {error}", number + 1))? else { continue };
        times.push(start.elapsed());
        own += usize::from(sent.is_clients());
        marks = marks.max(Relay::new(api).read(&sent)?.marks().len());
        (bytes_in, bytes_out) = (bytes_in + body.len(), bytes_out + sent.len());
    }
    times.sort();
    println!("{} requests, {bytes_out} of {bytes_in} bytes sent, {own} bodies as they came", bodies.len());
    println!(
        "{} conversations, at most {marks} marks, {:?} in the middle",
        all.len(),
        times[times.len() / 2]
    );
    let longest = all.iter().max_by_key(|conversation| conversation.known.len());
    let Some(Conversation { session, .. }) = longest else { return Ok(()) };
    let goal = session.log().goal_message().map(|at| session.log().messages()[at.index()].words().collect());
    let goal: Vec<&str> = goal.unwrap_or_default();
    let frames = session.since(Cursor(0)).filter(|entry| matches!(entry, Entry::Frame(_))).count();
    let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
    println!(
        "the longest: {} messages, {folds} folds, {frames} frames, goal: {}",
        session.log().messages().len(),
        goal.join(" ")
    );
    Ok(())
}

fn read(path: &Path) -> Result<Vec<String>, std::io::Error> {
    if path.is_file() {
        return Ok(std::fs::read_to_string(path)?.lines().map(str::to_owned).collect());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "body"));
    files.sort();
    files.iter().map(std::fs::read_to_string).collect()
}
