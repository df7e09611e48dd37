//! What a conversation really costs, by the bills of a provider, next to sending everything.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{model, observe, ready, reload, sent, step};
use longhaul::{EditKind, Message, Meter, Model, Models, Profile, Session, Usage};

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

/// The share of an extended prefix that a provider returns at a call, in percent.
type Returns = fn(usize) -> u64;

/// What sending everything costs, and what it costs with Longhaul, after each call.
fn costs(priced: &str, window: u64, bytes: usize, calls: usize, returns: Returns) -> Vec<(u64, u64)> {
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
        let percent = returns(n);
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

/// A router that loses most of the prefix (opencode: 77,935 new next to 24,064 read), always or now and then: whatever the
/// session is like, and whenever it ends, it costs hardly more than sending everything.
#[test]
fn a_provider_that_returns_a_quarter_of_the_prefix_is_not_paid_more_for_folds() {
    let deliveries: [(&str, &str, Returns); 6] = [
        // Reading costs a tenth of an ordinary token, a twentieth, and half of it.
        ("claude-sonnet-4-5", "a quarter", |_| 24),
        ("claude-opus-5-5", "a quarter", |_| 24),
        ("claude-sonnet-4-5", "nothing", |_| 0),
        ("gpt-4o", "60 %", |_| 60),
        ("claude-sonnet-4-5", "nothing at every third call", |call| if call % 3 == 0 { 0 } else { 100 }),
        ("claude-opus-5-5", "less and less", |call| 100 - (call as u64).min(100)),
    ];
    for (priced, returned, returns) in deliveries {
        for (window, bytes) in [(60_000, 3_000), (128_000, 6_000), (200_000, 2_000), (200_000, 10_000)] {
            for (call, (whole, ours)) in costs(priced, window, bytes, 90, returns).into_iter().enumerate() {
                let more = ours as f64 / whole as f64 - 1.0;
                // Before some reports came, only the price list is known.
                let most = if call < 59 { 0.05 } else { 0.02 };
                assert!(more <= most, "{priced}, {returned}, of {window}, {bytes}, call {call}: {more:.3}");
            }
        }
    }
}

/// The forecast of a fold can be compared with the bills later, also after a restart.
#[test]
fn each_fold_stores_what_it_is_expected_to_save() {
    let mut session = Session::new(Profile::longhaul(), model("m", 60_000)).with_meter(Meter::neutral());
    session.push(Message::user("Find the bug."));
    for n in 0..60 {
        ready(&mut session);
        step(&mut session, n, 3_000);
    }
    let reloaded = reload(&session);
    let folds = |session: &Session| {
        let edits = session.ledger().edits().map(|(edit, _)| edit.clone());
        edits.filter(|edit| matches!(edit.kind, EditKind::Fold { .. })).collect::<Vec<_>>()
    };
    let stored = folds(&reloaded);
    assert!(!stored.is_empty());
    for (fold, stored) in folds(&session).iter().zip(&stored) {
        assert_eq!(fold.price, stored.price);
        assert_eq!(fold.price.saves, fold.before - fold.after);
        // A session that has made some calls is expected to make as many again.
        assert!(fold.price.calls > 0 && fold.price.rewrites.0 > 0, "{:?}", fold.price);
    }
}
