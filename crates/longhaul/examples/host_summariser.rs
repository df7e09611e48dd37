//! A model of the host writes the summaries: beside the work as long as requests fit, and before
//! the next request when the hard limit is passed:
//! `cargo run -p longhaul --example host_summariser`.

use longhaul::{
    Block, Job, Json, Message, Models, Outcome, Prepared, Profile, Resolved, Role, Session, Summariser,
    Ticket, Tokens,
};

/// Runs the conversation.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profile = Profile { summariser: Summariser::Host, ..Profile::longhaul() };
    let model = Models::builtin().find("gpt-4o").clone();
    let mut session = Session::new(profile, model).with_window(Tokens(8_000));
    session.push(Message::user("Read all files and tell me which one defines `main`."));

    // When a fold pays back a job is open, and the request goes out all the same.
    let mut n = 0;
    while session.job().is_none() {
        step(&mut session, n, 12);
        send(&mut session)?;
        n += 1;
    }
    let job = session.job().ok_or("a job is open")?;
    assert!(session.size().tokens <= session.budget().hard);

    // A host starts a thread or a task here, and works on while the summary is written. It knows by
    // the number of the job that this one is being written already.
    let writing = std::thread::spawn({
        let job = job.clone();
        move || ask_model(&job)
    });
    step(&mut session, n, 4);
    send(&mut session)?;
    assert_eq!(session.job().map(|open| open.id), Some(job.id));

    // The answer is for the messages that the job covers: what came since does not matter.
    let answer = writing.join().map_err(|_| "the summariser panicked")?;
    let before = session.size().tokens;
    assert!(matches!(session.resolve(job.id, answer), Resolved::Folded));
    assert!(session.size().tokens < before);
    // An answer that comes twice, or to another question, does no harm.
    assert!(matches!(session.resolve(job.id, Outcome::TimedOut), Resolved::Dropped(_)));

    // So much at once that the next request would pass the hard limit: it waits for the summary.
    (20..50).for_each(|n| step(&mut session, n, 12));
    let Prepared::Summarise(job) = session.prepare(None)? else { return Err("nothing was asked for".into()) };
    // An answer that is no use is asked for once more, as another job that says what was wrong.
    let Resolved::Again(again, _) = session.resolve(job.id, Outcome::Failed("overloaded".into())) else {
        return Err("not asked again".into());
    };
    assert!(matches!(session.resolve(again.id, ask_model(&again)), Resolved::Folded));
    let ticket = send(&mut session)?;
    println!("Request {} has {} tokens.", ticket.0, session.size().tokens);
    Ok(())
}

/// A call and its result of so many lines.
fn step(session: &mut Session, n: usize, lines: usize) {
    let id = format!("call_{n}");
    let path = Json::string(&format!("src/file_{n}.rs"));
    session.push(Message::new(Role::Assistant, vec![Block::call(id.as_str(), "Read", path)]));
    session.push(Message::result(id, format!("fn helper_{n}(x: u32) -> u32 {{ x }}\n").repeat(lines)));
}

/// Sends what fits, whether or not a job is open beside it.
fn send(session: &mut Session) -> Result<Ticket, Box<dyn std::error::Error>> {
    match session.prepare(None)? {
        Prepared::Send(ticket) => Ok(ticket),
        Prepared::Summarise(job) => Err(format!("job {} comes first", job.id).into()),
    }
}

/// Stands for a model that writes summaries: it is sent each conversation, and answers each.
fn ask_model(job: &Job) -> Outcome {
    let answer = |_| "### Done\n* Files were read; none has `main`.".to_owned();
    Outcome::Parts(job.fresh(Tokens(32_000)).iter().map(answer).collect())
}
