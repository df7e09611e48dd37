//! Relays the requests of a client through engine and wire, as a gateway does, and says what became of
//! them: `cargo run --release -p longhaul-wire --example relay [-- FILE [WINDOW]]`. The file has one body
//! a line.

use std::error::Error;
use std::time::Instant;

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
        self.relay.keep(&request);
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
    let mut args = std::env::args().skip(1);
    let recorded = args.next().unwrap_or_else(|| SAMPLE.to_owned());
    run(&recorded, args.next().map_or(Ok(3_000), |window| window.parse())?)
}

/// Relays all requests of a file, one a line, and prints what became of them.
pub fn run(recorded: &str, window: u64) -> Result<(), Box<dyn Error>> {
    let bodies = std::fs::read_to_string(recorded)?;
    let api = bodies.lines().next().and_then(Api::guess).ok_or("it has no request that we know")?;
    let model = Models::builtin().find("claude-sonnet-4-5").clone();
    let new = Session::new(Profile::longhaul(), model).with_window(Tokens(window));
    let (mut all, mut times, mut own, mut marks, mut bytes) = (Vec::new(), Vec::new(), 0, 0, 0);
    for body in bodies.lines() {
        let start = Instant::now();
        find(&mut all, &new, api, body)?;
        let Some(conversation) = all.last_mut() else { continue };
        let sent = conversation.next(body)?;
        times.push(start.elapsed());
        own += usize::from(sent.is_clients());
        bytes += sent.len();
        marks = marks.max(Relay::new(api).read(&*sent)?.marks().len());
    }
    times.sort();
    println!("{} requests, {bytes} of {} bytes sent, {own} bodies as they came", times.len(), bodies.len());
    println!("{} conversations, at most {marks} marks, median {:?}", all.len(), times[times.len() / 2]);
    for Conversation { session, .. } in &all {
        let log = session.log();
        let goal = log.goal_message().and_then(|at| log.messages()[at.index()].words().next());
        let folds = session.ledger().edits().filter(|(edit, _)| edit.kind.replaces_runs()).count();
        println!("{} messages, {folds} folds, goal: {}", log.messages().len(), goal.unwrap_or("none"));
    }
    Ok(())
}
