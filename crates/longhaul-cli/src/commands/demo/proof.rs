//! What is left of early facts at the last call of the demo: in what each way sends, or recalled. Questions are
//! written here; whether each way can answer them is looked up in what it really sent.

use longhaul::{Message, RecallPart, Session};
use regex::Regex;

use crate::commands::demo::others::Other;
use crate::lab::needs::text_of;

/// Facts that are shown.
const SHOWN: usize = 3;

/// Something that an early message of the session said.
struct Fact {
    /// What a person would ask at the end of the day.
    question: &'static str,
    /// What is looked for to answer it: words that one knows who asks.
    sought: &'static str,
    /// What the answer is.
    answer: &'static str,
}

const fn fact(question: &'static str, sought: &'static str, answer: &'static str) -> Fact {
    Fact { question, sought, answer }
}

/// All are of the first third of the session, and the last request asks for most of them.
const FACTS: [Fact; 8] = [
    fact("May an old migration be edited?", "Migrations", "append-only"),
    fact("What happens to the databases tonight?", "databases", "get rebuilt tonight"),
    fact("When did gw-03 page before the fix?", "upstream-timeouts gw-03", "06:14:23.904"),
    fact("When does gw-07 page after the fix?", "upstream-timeouts gw-07", "06:15:11.687"),
    fact("How often was gw-07 suppressed?", "gw-07.*suppressed", "suppressed 35"),
    fact("Where do the errors of gw-07 begin?", "gw-07's at line", "line 941"),
    fact("How many errors had gw-07 in its peak?", "gw-07 errors", "peak in 120s 40"),
    fact("How large is the log, in bytes?", "var/edge.log", "310026"),
];

/// Where an answer is at the last call.
#[derive(Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// In what is sent.
    There,
    /// Under a handle in what is sent, and read back by it.
    Recalled {
        handle: String,
        line: String,
    },
    Lost,
}

/// A fact, and who still has it.
pub struct Finding {
    pub question: &'static str,
    pub answer: &'static str,
    /// The call before which it was said, counted from 1.
    pub call: usize,
    /// In the order of the others.
    pub others: Vec<Whereabouts>,
    pub longhaul: Whereabouts,
}

/// What is known and by whom, of all facts.
pub struct Proof(Vec<Finding>);

impl Proof {
    /// Looks for the facts in what was sent last.
    pub fn of(session: &Session, others: &[Other]) -> Self {
        let messages = session.log().messages();
        let view = session.view();
        let parts =
            view.parts().iter().map(|part| &part.message).chain(view.tail().map(|part| &part.message));
        let view = parts.map(|message| text_of(message)).collect::<Vec<_>>().join("\n");
        let sent: Vec<String> = others.iter().map(Other::sent).collect();
        let findings = FACTS.iter().filter_map(|fact| {
            let in_text = |text: &String| {
                if text.contains(fact.answer) { Whereabouts::There } else { Whereabouts::Lost }
            };
            let longhaul = match in_text(&view) {
                Whereabouts::Lost => recalled(session, &view, fact),
                found => found,
            };
            Some(Finding {
                question: fact.question,
                answer: fact.answer,
                call: said_before(messages.iter().map(AsRef::as_ref), fact.answer)?,
                others: sent.iter().map(in_text).collect(),
                longhaul,
            })
        });
        Self(findings.collect())
    }

    /// Those to show: first one that is still there, then one that is recalled, and of each kind those first that
    /// most of the others lost. In the order in which they were said.
    pub fn shown(&self) -> Vec<&Finding> {
        let lost =
            |finding: &Finding| finding.others.iter().filter(|place| **place == Whereabouts::Lost).count();
        let (mut there, mut rest): (Vec<&Finding>, Vec<&Finding>) =
            self.0.iter().partition(|finding| finding.longhaul == Whereabouts::There);
        there.sort_by_key(|finding| std::cmp::Reverse(lost(finding)));
        rest.sort_by_key(|finding| (finding.longhaul == Whereabouts::Lost, std::cmp::Reverse(lost(finding))));
        let first = usize::from(!there.is_empty());
        let mut shown: Vec<&Finding> = there.drain(..first).collect();
        shown.extend(rest.into_iter().chain(there).take(SHOWN - first));
        shown.sort_by_key(|finding| finding.call);
        shown
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many one of the others still sends, and how many Longhaul sends or recalls.
    pub fn kept(&self) -> (Vec<usize>, usize, usize) {
        let others = self.0.first().map_or(0, |finding| finding.others.len());
        let others = (0..others)
            .map(|at| self.0.iter().filter(|finding| finding.others[at] == Whereabouts::There).count())
            .collect();
        let there = self.0.iter().filter(|finding| finding.longhaul == Whereabouts::There).count();
        let recalled = self.0.iter().filter(|f| matches!(f.longhaul, Whereabouts::Recalled { .. })).count();
        (others, there, recalled)
    }
}

/// Reads what is sought under the handles that stand in the view, as a model would.
fn recalled(session: &Session, view: &str, fact: &Fact) -> Whereabouts {
    let Ok(marks) = Regex::new(r"recall ([0-9a-f]{12})\b") else { return Whereabouts::Lost };
    for mark in marks.captures_iter(view) {
        let found = session.recall(&mark[1], &RecallPart::Pattern(fact.sought.to_owned()));
        let Ok(found) = found else { continue };
        if let Some(line) = found.lines().find(|line| line.contains(fact.answer)) {
            return Whereabouts::Recalled { handle: mark[1].to_owned(), line: line.to_owned() };
        }
    }
    Whereabouts::Lost
}

/// The call before which a text stood in the log for the first time.
fn said_before<'a>(messages: impl Iterator<Item = &'a Message>, text: &str) -> Option<usize> {
    let mut calls = 0;
    for message in messages {
        if text_of(message).contains(text) {
            return Some(calls + 1);
        }
        calls += usize::from(message.role() == longhaul::Role::Assistant);
    }
    None
}
