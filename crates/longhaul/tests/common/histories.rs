//! What random histories are made of.

use longhaul::conversation::{API_FIELD, Image, Opaque, Text, Thinking, ToolCall, Words};
use longhaul::{
    Block, Extra, Job, Json, Message, Outcome, PrepareError, Prepared, Profile, Role, Seal, Session,
    Summariser, Ticket, Time, Tokens, ToolResult,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::model;

pub const WINDOWS: [u64; 4] = [1_500, 3_000, 8_000, 40_000];

/// So many histories from a seed that is printed with a failure: the same ones each time, so
/// that a change is judged by its own faults. `HISTORIES_SEED=n` (and `PROPTEST_CASES=n`) look
/// for others.
pub fn histories(cases: u32) -> ProptestConfig {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let seed = number("HISTORIES_SEED").unwrap_or(20_260_302);
    let cases = number("PROPTEST_CASES").map_or(cases, |cases| cases as u32);
    println!("histories from seed {seed}");
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A session of one of the profiles, the default more often than the others.
pub fn start(profile: usize, window: usize, host: bool) -> Session {
    let mut profile = Profile::all().into_iter().nth(profile).unwrap_or_else(Profile::longhaul);
    if host {
        profile.summariser = Summariser::Host;
    }
    profile.triggers.calls = profile.triggers.calls.min(6);
    let mut session = Session::new(profile, model("start", WINDOWS[window]));
    // Of some, later messages are editions of the system prompt.
    if window % 2 == 1 {
        session.push(Message::system("word line ".repeat(100)));
    }
    session
}

fn fields(name: &str, value: &str) -> Extra {
    let mut fields = Extra::NONE;
    fields.set(name, Json::string(value));
    fields
}

/// A result that loads a tool.
pub fn loading(id: &str, text: &str) -> Message {
    let value = Json::new(r#"{"type":"tool_reference","tool_name":"WebFetch"}"#).unwrap();
    let result = ToolResult {
        id: id.into(),
        name: None,
        text: text.into(),
        content: Some(vec![Block::text(text), Block::Opaque(Opaque { value, extra: Extra::NONE })].into()),
        is_error: false,
        extra: Extra::NONE,
    };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}

/// Any message, with ids that collide and words that look like marks of the engine.
pub fn message() -> impl Strategy<Value = Message> {
    let id = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f", ""]);
    let words = |most: usize| {
        let word = vec!["word ", "line\n", "字", "fn a_name() {}\n", "<Pin>x", "!!!SUMMARY!!!\n"];
        (prop::sample::select(word), 0..most).prop_map(|(word, n)| word.repeat(n))
    };
    let seal = prop_oneof![
        Just(Seal::Redacted(None)),
        Just(Seal::Open),
        Just(Seal::Signed("s".into())),
        Just(Seal::Redacted(Some("x".into()))),
        Just(Seal::Encrypted("e".into()))
    ];
    let tool = prop::sample::select(vec!["Write", "Bash", "TodoWrite", "longhaul_recall"]);
    let arguments =
        words(300).prop_map(|text| Json::new(serde_json::json!({ "text": text }).to_string()).unwrap());
    let block = prop_oneof![
        5 => (id(), tool, arguments).prop_map(|(id, tool, arguments)| Block::call(id, tool, arguments)),
        3 => words(60).prop_map(Block::text),
        2 => (words(60), seal).prop_map(|(text, seal)| Block::Thinking(Thinking { text: text.into(), seal, extra: fields("id", "rs_1") })),
        1 => id().prop_map(|id| Block::ToolCall(ToolCall { id: id.into(), name: "web_search".into(), arguments: Json::empty_object(), server: true, extra: Extra::NONE })),
        1 => id().prop_map(|id| Block::result(id, "inside")),
    ];
    let image = Image { source: Json::empty_object(), size: Some((800, 600)), extra: Extra::NONE };
    let image = Just(Message::new(Role::User, vec![Block::Image(image)]));
    let attachment = words(40).prop_map(|text| Message::user(text).with_attachment());
    // A part that is not in the text too, as a broken store may have it.
    let part = (0u32..40, 0u32..200).prop_map(|(start, end)| Words::Part { start, end });
    let of_person = prop_oneof![Just(Words::None), part];
    prop_oneof![
        6 => prop::collection::vec(block, 0..4).prop_map(|blocks| Message::new(Role::Assistant, blocks)),
        9 => (id(), words(700)).prop_map(|(id, text)| Message::result(id, text)),
        1 => (id(), id(), words(300)).prop_map(|(a, b, text)| Message::new(Role::Tool, vec![Block::result(a, text.clone()), Block::text("t"), Block::result(b, text)])),
        3 => words(200).prop_map(Message::user),
        1 => attachment,
        2 => (words(40), of_person).prop_map(|(text, words)| {
            let text = Text { text: text.into(), words, extra: Extra::NONE };
            Message::new(Role::User, vec![Block::Text(text), Block::text("<Pin>y</Pin>")])
        }),
        1 => image,
        1 => words(20).prop_map(Message::system),
        1 => (0..4usize).prop_map(|n| Message::system("word line ".repeat(100 + n))),
        1 => Just(Message::new(Role::System, Vec::new()).with_wire_fields(fields(API_FIELD, "anthropic"))),
        1 => (id(), words(60)).prop_map(|(id, text)| loading(id, &text)),
    ]
}

/// The frame in force, if there is one, with a rest of its own: so a client sends it at every call.
pub fn other_rest(session: &mut Session, n: u8) {
    let Some(mut frame) = session.log().frame().cloned() else { return };
    let metadata = if n.is_multiple_of(2) { r#"{"a":1,"b":2}"# } else { r#"{"b":2, "a":1}"# };
    frame.settings.set("client_metadata", Json::new(metadata).unwrap());
    if n.is_multiple_of(3) {
        frame.settings.set("max_tokens", Json::new((u32::from(n) * 20).to_string()).unwrap());
    }
    session.set_frame(frame);
}

/// A summariser that is not always of use.
pub fn answer(job: &Job) -> Outcome {
    assert!(!job.fresh(Tokens(4_000)).is_empty());
    match job.id % 7 {
        0 => Outcome::Failed("overloaded".into()),
        1 => Outcome::TimedOut,
        2 => Outcome::Summary(" ".into()),
        3 => Outcome::Summary("far too long ".repeat(2_000)),
        4 => Outcome::Parts(vec!["### Done\n* one".into(), "two".into()]),
        _ => Outcome::Summary("What was done.".into()),
    }
}

/// Prepares, with every summary that is waited for; what is ready to be sent breaks no rule.
pub fn prepare(session: &mut Session, now: Time) -> Result<Ticket, PrepareError> {
    for _ in 0..200 {
        match session.prepare(Some(now))? {
            Prepared::Send(ticket) => {
                assert_eq!(session.audit(), [], "behind prepare");
                return Ok(ticket);
            }
            Prepared::Summarise(job) => _ = session.resolve(job.id, answer(&job)),
        }
    }
    panic!("it asks for summaries without end")
}
