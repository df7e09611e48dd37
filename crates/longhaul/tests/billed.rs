//! What a conversation really costs, by the bills of a provider, next to sending everything.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{model, observe, ready, sent, step};
use longhaul::{Message, Meter, Model, Models, Profile, Session, Usage};

/// What a provider bills that returns so many percent of a prefix that it was sent before, by its price list. Gives what
/// it read, and the cost.
fn billed(before: &[Message], now: &[Message], percent: u64, session: &Session) -> (Usage, u64) {
    let meter = session.meter();
    let tokens = |messages: &[Message]| {
        meter.tokens(messages.iter().map(|message| meter.message(message)).sum()).tokens.0
    };
    let extended = before.iter().zip(now).take_while(|(before, now)| before == now).count();
    let read = tokens(&now[..extended]) * percent / 100;
    let new = tokens(now) - read;
    let price = session.model().price.unwrap();
    let usage = Usage { input: new, cache_read: read, output: 100, ..Usage::default() };
    (usage, read * price.cache_read + new * price.cache_write)
}

/// What sending everything costs, and what it costs with Longhaul, after each call.
fn costs(priced: &str, window: u64, bytes: usize, calls: usize, percent: u64) -> Vec<(u64, u64)> {
    let price = Models::builtin().find(priced).price;
    let model = Model { price, ..model("m", window) };
    let mut session = Session::new(Profile::longhaul(), model).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    let (mut before, mut before_whole) = (Vec::new(), Vec::new());
    let (mut whole, mut ours) = (0, 0);
    let mut costs = Vec::new();
    for n in 0..calls {
        ready(&mut session);
        let messages = sent(&session);
        let all: Vec<Message> = session.log().messages().iter().map(|message| (**message).clone()).collect();
        let (usage, cost) = billed(&before, &messages, percent, &session);
        ours += cost;
        whole += billed(&before_whole, &all, percent, &session).1;
        observe(&mut session, &usage);
        (before, before_whole) = (messages, all);
        costs.push((whole, ours));
        step(&mut session, n, bytes / 2 + bytes * (n % 5) / 4);
    }
    costs
}

/// A router that loses most of the prefix (opencode: 77,935 new next to 24,064 read): whatever the session is like, and
/// whenever it ends, it costs no more than sending everything.
#[test]
fn a_provider_that_returns_a_quarter_of_the_prefix_is_not_paid_more_for_folds() {
    // Reading costs a tenth of an ordinary token, a twentieth, and half of it.
    for (priced, percent) in
        [("claude-sonnet-4-5", 24), ("claude-opus-5-5", 24), ("claude-sonnet-4-5", 0), ("gpt-4o", 60)]
    {
        for (window, bytes) in [(60_000, 3_000), (128_000, 6_000), (200_000, 2_000), (200_000, 10_000)] {
            for (call, (whole, ours)) in
                costs(priced, window, bytes, 90, percent).into_iter().enumerate().skip(59)
            {
                let more = ours as f64 / whole as f64 - 1.0;
                assert!(more <= 0.02, "{priced}, {percent} % of {window}, {bytes}, call {call}: {more:.3}");
            }
        }
    }
}
