//! What others do when a window is full, beside the session of the demo: cutting off the oldest messages, and
//! writing a summary of all. Both are given the best case: they compact in large steps, so that the cache holds in
//! between, and the summary is made of the user's own words and the model's own answers.

use std::sync::Arc;

use longhaul::{Message, Meter, Role, Tokens};

use crate::lab::needs::{Found, Holdings, Needs, paths_of, text_of};

/// Compacts when a request would be larger than this share of the window, in percent.
const TRIGGER: u64 = 80;
/// Cutting off leaves this share of the window.
const LEFT: u64 = 50;
/// Beside a summary this share of the window stays as it is.
const NEWEST: u64 = 20;
/// The summary has at most so many tokens, as agents ask their models for.
const SUMMARY: u64 = 2_500;
/// A token that a model writes costs so many that it reads.
const OUTPUT_PRICE: f64 = 5.0;

/// A message of the log with its size.
#[derive(Clone)]
pub struct Measured {
    pub message: Arc<Message>,
    pub tokens: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    CutOff,
    SummariseAll,
}

/// Another way to keep inside the window, on its way through the session.
pub struct Other {
    /// In a word, and in some.
    pub name: &'static str,
    pub says: &'static str,
    how: How,
    /// The system prompt and, where one was written, a summary.
    head: Vec<Measured>,
    /// Where the messages begin that are sent as they are.
    start: usize,
    /// What was sent last.
    sent: Vec<Measured>,
    /// Tokens × price so far, summaries included.
    pub cost: f64,
    pub largest: u64,
    /// Compactions: each breaks the prefix that the provider has in its cache.
    pub breaks: u64,
    held: Holdings,
    /// What the calls needed, and found.
    pub found: Found,
}

impl Other {
    /// Those that the demo shows.
    pub fn all() -> [Self; 2] {
        let other = |name, says, how| Self {
            name,
            says,
            how,
            head: Vec::new(),
            start: 0,
            sent: Vec::new(),
            cost: 0.0,
            largest: 0,
            breaks: 0,
            held: Holdings::default(),
            found: Found::default(),
        };
        [
            other("cut off", "cut off the oldest", How::CutOff),
            other("summarise", "summarise all", How::SummariseAll),
        ]
    }

    /// A request of all that the log holds now, and how much of what its answer needs is in it.
    pub fn call(
        &mut self,
        log: &[Measured],
        window: Tokens,
        meter: &Meter,
        (answer, needs): (&Message, &mut Needs),
    ) {
        if self.start == 0 {
            let system = log.iter().take_while(|part| part.message.role() == Role::System).count();
            self.head = log[..system].to_vec();
            self.start = system;
        }
        let mut view = self.view(log);
        if size(&view) * 100 > window.0 * TRIGGER {
            let before = size(&view);
            let keep = match self.how {
                How::CutOff => (window.0 * LEFT / 100).saturating_sub(size(&self.head)),
                How::SummariseAll => window.0 * NEWEST / 100,
            };
            self.start = newest(log, self.start, keep);
            if self.how == How::SummariseAll {
                let summary = summary_of(&log[..self.start], meter);
                self.cost += 0.1 * before as f64 + OUTPUT_PRICE * summary.tokens as f64;
                self.head.retain(|part| part.message.role() == Role::System);
                self.head.push(summary);
            }
            self.breaks += 1;
            view = self.view(log);
        }
        let common = self.sent.iter().zip(&view).take_while(|(a, b)| Arc::ptr_eq(&a.message, &b.message));
        let common = common.count();
        self.cost += 0.1 * size(&view[..common]) as f64 + 1.25 * size(&view[common..]) as f64;
        self.largest = self.largest.max(size(&view));
        self.sent = view;
        let pieces: Vec<_> = self.sent.iter().map(|part| needs.piece(&text_of(&part.message))).collect();
        self.held.change(0, &pieces, Vec::new());
        self.found.add(self.held.judge(needs, answer, |_| false));
    }

    /// What was sent last, as text.
    pub fn sent(&self) -> String {
        self.sent.iter().map(|part| text_of(&part.message)).collect::<Vec<_>>().join("\n")
    }

    fn view(&self, log: &[Measured]) -> Vec<Measured> {
        self.head.iter().chain(&log[self.start..]).cloned().collect()
    }
}

fn size(parts: &[Measured]) -> u64 {
    parts.iter().map(|part| part.tokens).sum()
}

/// Where the newest messages begin that have at most so many tokens; never between a call and its result.
fn newest(log: &[Measured], start: usize, keep: u64) -> usize {
    let (mut at, mut sum) = (log.len(), 0);
    while at > start && sum + log[at - 1].tokens <= keep {
        at -= 1;
        sum += log[at].tokens;
    }
    while log.get(at).is_some_and(|part| part.message.role() == Role::Tool) {
        at += 1;
    }
    at
}

/// A stand-in for a model's summary of all that is gone: the user's words, the answers that ended each turn, the
/// newest first, and the files, as far as they fit.
fn summary_of(gone: &[Measured], meter: &Meter) -> Measured {
    let answers =
        |part: &&Measured| part.message.role() == Role::Assistant && part.message.calls().next().is_none();
    let users = gone.iter().filter(|part| part.message.role() == Role::User).rev();
    let mut files: Vec<String> = Vec::new();
    for path in gone.iter().flat_map(|part| paths_of(&part.message)) {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    let pieces = users.chain(gone.iter().filter(answers).rev()).map(|part| text_of(&part.message));
    let mut text = String::from("Summary of the conversation so far.");
    for piece in pieces.chain([files.join(" ")]) {
        let longer = format!("{text}\n\n{piece}");
        if tokens(&longer, meter) <= SUMMARY {
            text = longer;
        }
    }
    Measured { tokens: tokens(&text, meter), message: Arc::new(Message::user(text)) }
}

fn tokens(text: &str, meter: &Meter) -> u64 {
    meter.tokens(meter.message(&Message::user(text))).tokens.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longhaul::{Block, Models};

    use super::*;

    fn log(steps: usize) -> Vec<Measured> {
        let sized = |message| Measured { message: Arc::new(message), tokens: 100 };
        let mut log = vec![sized(Message::system("be brief")), sized(Message::user("the first wish"))];
        for step in 0..steps {
            let arguments = serde_json::from_str(r#"{"path":"src/a.rs"}"#).unwrap();
            log.push(sized(Message::new(Role::Assistant, vec![Block::call("c", "Read", arguments)])));
            log.push(sized(Message::result("c", format!("result {step}"))));
        }
        log
    }

    #[test]
    fn the_oldest_is_cut_off_in_large_steps_and_no_result_stands_alone() {
        let meter = Meter::for_model(Models::builtin().find("gpt-4o"));
        let answer = Message::assistant("done");
        for mut other in Other::all() {
            let log = log(40);
            for upto in (2..=log.len()).step_by(2) {
                let mut needs = Needs::new(|_| 0.0);
                other.call(&log[..upto], Tokens(2_000), &meter, (&answer, &mut needs));
                let roles: Vec<Role> = other.sent.iter().map(|part| part.message.role()).collect();
                assert_eq!(roles[0], Role::System);
                assert!(size(&other.sent) <= 1_600, "{}", other.name);
                for pair in roles.windows(2) {
                    assert!(pair[1] != Role::Tool || pair[0] == Role::Assistant, "{}", other.name);
                }
            }
            // A cut leaves half of the window, a summary a fifth: not one compaction a call.
            assert!((3..=10).contains(&other.breaks), "{} {}", other.name, other.breaks);
            assert_eq!(other.sent().contains("the first wish"), other.how == How::SummariseAll);
            assert!(!other.sent().contains("result 3\n"));
        }
    }
}
