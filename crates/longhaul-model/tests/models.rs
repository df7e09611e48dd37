//! The models without a network: a script, and a person who types.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use longhaul::{Block, Frame, Json, Message, Role};
use longhaul_model::{Delta, Fault, Human, Model, Scripted, Stop};
use longhaul_wire::api::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

fn request(messages: Vec<Message>) -> Request {
    Request::new(Frame::default(), messages.into_iter().map(Into::into).collect())
}

/// Somebody who has typed this and then hangs up, if so said; and what is printed.
async fn human(typed: &str) -> (Human, DuplexStream) {
    let (ours, theirs) = duplex(1 << 16);
    let (printed, output) = duplex(1 << 16);
    let mut ours = ours;
    ours.write_all(typed.as_bytes()).await.unwrap();
    drop(ours);
    let (input, _) = split(theirs);
    (Human::new(BufReader::new(input), output), printed)
}

/// All that was printed: the other end is gone.
async fn printed(human: Human, mut printed: DuplexStream) -> String {
    drop(human);
    let mut text = String::new();
    printed.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn words_and_a_call_are_typed() {
    let (human, output) =
        human("I will look.\r\nAt once.\n\ncall Read {\"path\": \"a.rs\"}\ncall List\n.\n").await;
    let mut seen = Vec::new();
    let mut watch = |delta: Delta<'_>| seen.push(format!("{delta:?}"));
    let reply = human.ask(request(vec![Message::user("Which file?")]), &mut watch).await.unwrap();
    assert_eq!((reply.messages.len(), &reply.stop), (1, &Stop::Ended));
    let message = &reply.messages[0];
    assert_eq!(message.role(), Role::Assistant);
    assert_eq!(message.texts().collect::<Vec<_>>(), ["I will look.\nAt once."]);
    let calls: Vec<_> =
        message.calls().map(|call| (&*call.id, &*call.name, call.arguments.as_str())).collect();
    assert_eq!(calls, [("typed_1", "Read", r#"{"path": "a.rs"}"#), ("typed_2", "List", "{}")]);
    assert!(reply.usage.unwrap().output > 0);
    assert_eq!(seen[..2], ["Text(\"I will look.\\nAt once.\")", "Call(\"Read\")"]);
    let output = printed(human, output).await;
    assert!(output.starts_with("[user]\nWhich file?\n(Answer; "), "{output}");
}

#[tokio::test]
async fn a_line_that_is_no_call_is_said() {
    let (human, output) = human("call Read [1]\ncall Read {nonsense\ncall Read {\"path\":1}\n.\n").await;
    let reply = human.ask(request(Vec::new()), &mut |_| {}).await.unwrap();
    assert_eq!(reply.messages[0].calls().count(), 1);
    let output = printed(human, output).await;
    assert_eq!(output.matches("That is no call").count(), 2, "{output}");
}

#[tokio::test]
async fn the_end_of_the_input_ends_a_reply_and_then_everything() {
    let (human, _output) = human(".\nCut in the midd").await;
    assert_eq!(human.ask(request(Vec::new()), &mut |_| {}).await, Err(Fault::Empty));
    let reply = human.ask(request(Vec::new()), &mut |_| {}).await.unwrap();
    assert_eq!(reply.messages[0].texts().next(), Some("Cut in the midd"));
    let fault = human.ask(request(Vec::new()), &mut |_| {}).await.unwrap_err();
    assert!(matches!(fault, Fault::Unreachable(_)), "{fault:?}");
}

#[tokio::test]
async fn nobody_who_reads_is_a_fault() {
    let (human, output) = human("Hello.\n.\n").await;
    drop(output);
    let fault = human.ask(request(vec![Message::user("Hi")]), &mut |_| {}).await.unwrap_err();
    assert!(matches!(fault, Fault::Unreachable(_)), "{fault:?}");
}

#[tokio::test]
async fn only_what_is_new_is_printed() {
    let (human, output) = human("One.\n.\nTwo.\n.\nThree.\n.\n").await;
    let call = Block::call("c", "Read", Json::new(r#"{"path":"a"}"#).unwrap());
    let first = vec![Message::user("first"), Message::new(Role::Assistant, vec![call])];
    let second = [first.clone(), vec![Message::result("c", "second")]].concat();
    // As long as the one before, but it begins otherwise: a compaction.
    let third = [vec![Message::user("folded")], second[1..].to_vec()].concat();
    for messages in [first, second, third] {
        human.ask(request(messages), &mut |_| {}).await.unwrap();
    }
    let output = printed(human, output).await;
    let parts: Vec<&str> = output.split("(Answer;").collect();
    assert!(parts[0].contains("first") && parts[0].contains("call Read {\"path\":\"a\"}"), "{output}");
    assert!(parts[1].contains("second") && !parts[1].contains("first"), "{output}");
    assert!(parts[2].contains("folded") && parts[2].contains("second"), "{output}");
}

#[tokio::test]
async fn a_script_gives_replies_and_faults_in_their_order() {
    let call = Block::call("c", "Read", Json::new("{}").unwrap());
    let blocks = vec![Block::thinking("Hm."), Block::text("I look."), call];
    let model = Scripted::new([
        Ok(Message::new(Role::Assistant, blocks)),
        Err(Fault::Cut),
        Ok(Message::assistant("Done.")),
    ]);
    assert_eq!(model.name(), "scripted");
    let mut seen = Vec::new();
    let mut watch = |delta: Delta<'_>| seen.push(format!("{delta:?}"));
    let asked = || request(vec![Message::user("x".repeat(400))]);
    let reply = model.ask(asked(), &mut watch).await.unwrap();
    assert!(reply.usage.unwrap().input >= 100);
    assert_eq!(seen, ["Thinking(\"Hm.\")", "Text(\"I look.\")", "Call(\"Read\")", "Arguments(\"{}\")"]);
    assert_eq!(model.ask(asked(), &mut |_| {}).await, Err(Fault::Cut));
    let reply = model.ask(asked(), &mut |_| {}).await.unwrap();
    assert_eq!(reply.messages[0].texts().next(), Some("Done."));
    let end = model.ask(asked(), &mut |_| {}).await.unwrap_err();
    assert!(!end.passes(), "{end:?}");
}
