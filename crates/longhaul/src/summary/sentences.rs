//! Sentences that tell something: what a model decided and found, its first words, what a person insists on and
//! wants. A heading tells nothing, nor does a line that leads to what follows it.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::Regex;

use super::facts::{LINE, one_line, shorten};
use super::own_words::own_words;
use crate::text::ansi;

/// What a sentence of a model tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    Decision,
    Finding,
}

/// The sentences of a model that tell something, each in about a line.
pub(super) fn told(text: &str) -> impl Iterator<Item = (Telling, String)> + '_ {
    let said =
        sentences(text, &TOLD).filter(|(line, sentence)| !line.starts_with('#') && !is_lead_in(sentence));
    // Some agents write what they think behind this word.
    let said = said.map(|(_, sentence)| sentence.strip_prefix("THOUGHT:").unwrap_or(sentence).trim_start());
    said.filter_map(|sentence| Some((telling_of(sentence)?, shorten(&plain(sentence), LINE))))
}

fn telling_of(line: &str) -> Option<Telling> {
    let plans = PLANS.iter().any(|start| line.starts_with(start)) || is_looking(line);
    let chooses = has_word(line, &CHOICES) && (plans || has_word(line, &WE)) && !is_looking(line);
    if has_word(line, &DECISIONS) || chooses {
        Some(Telling::Decision)
    } else if !plans && !wonders(line) && has_word(line, &FINDINGS) {
        // What somebody is about to do is not what they found.
        Some(Telling::Finding)
    } else {
        None
    }
}

/// True for a sentence that says what is looked at next: a step of the work, and nothing that was decided or found.
fn is_looking(line: &str) -> bool {
    NEXT.iter().any(|next| {
        line.match_indices(next).any(|(at, _)| {
            let verb = line[at + next.len()..].split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            LOOKING.contains(&verb)
        })
    })
}

/// True for a question, and for what somebody only thinks possible.
fn wonders(line: &str) -> bool {
    line.ends_with(['?', '？'])
        || ["Maybe ", "maybe ", "Perhaps ", "perhaps "].iter().any(|word| line.contains(word))
}

/// The first words of an answer that say something, in about a line: what a heading or a line with a colon at its end
/// leads to is told with it.
pub(super) fn answer(text: &str) -> Option<String> {
    let lines = || {
        text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some((*end - line.len(), line.trim()))
        })
    };
    let is_heading = |line: &str| line.starts_with('#') || (line.starts_with("**") && line.ends_with("**"));
    let has_words = |line: &str| line.chars().filter(|c| c.is_alphanumeric()).count() > 1;
    let first = lines().find(|(_, line)| has_words(line) && !is_heading(line) && !line.starts_with("```"));
    let (at, line) = first.or_else(|| lines().find(|(_, line)| has_words(line)))?;
    let said = if is_lead_in(line) { &text[at..] } else { line };
    Some(shorten(&plain(&said[..said.floor_char_boundary(LINE * 4)]), LINE))
}

/// The first words of the last of these answers that has any; a sign or a digit, where that is all that was said.
pub(super) fn answered<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let (mut words, mut signs) = (None, None);
    for text in texts {
        words = answer(text).or(words);
        signs = first_line(text).or(signs);
    }
    words.or_else(|| signs.map(one_line))
}

/// The first words of the last of these requests that has any; a sign or a digit, where that is all that was said.
pub(super) fn asked<'a>(texts: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (mut words, mut signs) = (None, None);
    for text in texts {
        words = first_words(text).or(words);
        signs = first_line(text).or(signs);
    }
    words.or(signs)
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// The first line that has words.
fn first_words(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| line.chars().filter(|c| c.is_alphanumeric()).count() > 1)
}

/// True for a line that only leads to what follows.
fn is_lead_in(line: &str) -> bool {
    line.trim_end_matches('*').ends_with([':', '：'])
}

/// Words without marks of emphasis and of headings, and without colours of a terminal.
fn plain(text: &str) -> Cow<'_, str> {
    let text = ansi::stripped(text);
    if !text.contains("**") && !text.contains('#') {
        return text;
    }
    let lines = text.lines().map(|line| match line.trim_start().trim_start_matches('#').strip_prefix(' ') {
        Some(heading) if line.trim_start().starts_with('#') => heading,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n").replace("**", "").into()
}

/// The lines that hold one of these words, each with its sentences.
fn sentences<'a>(text: &'a str, words: &'static Sign) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut found = words.find(text);
    let mut next = found.as_mut().and_then(Iterator::next);
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    let telling = lines.filter(move |(end, _)| {
        let has = next.is_some_and(|at| at < *end);
        while next.is_some_and(|at| at < *end) {
            next = found.as_mut().and_then(Iterator::next);
        }
        has
    });
    let lines = telling.map(|(_, line)| line.trim());
    let parts = lines.flat_map(|line| {
        let sentences = line.trim_start_matches(['-', '*', '#', '>', ' ']).split_inclusive(". ");
        let parts = sentences.flat_map(|part| part.split_inclusive('。'));
        parts.map(move |part| (line, part.trim()))
    });
    parts.filter(|(_, part)| part.len() >= 12 && !part.starts_with("```") && !part.starts_with('|'))
}

/// Words to be looked for in one pass.
struct Sign {
    words: &'static [&'static [&'static str]],
    pattern: OnceLock<Option<Regex>>,
}

impl Sign {
    const fn new(words: &'static [&'static [&'static str]]) -> Self {
        Self { words, pattern: OnceLock::new() }
    }

    /// Whether one of them is there.
    fn is_in(&'static self, text: &str) -> bool {
        self.find(text).is_some_and(|mut found| found.next().is_some())
    }

    /// Where they stand.
    fn find<'a>(&'static self, text: &'a str) -> Option<impl Iterator<Item = usize> + use<'a>> {
        let made = self.pattern.get_or_init(|| {
            let words: Vec<String> = self.words.concat().into_iter().map(regex::escape).collect();
            Regex::new(&words.join("|")).ok()
        });
        made.as_ref().map(|pattern| pattern.find_iter(text).map(|found| found.start()))
    }
}

static TOLD: Sign = Sign::new(&[&DECISIONS, &CHOICES, &FINDINGS]);
static WISHED: Sign = Sign::new(&[&WISHES]);

/// Whether one of these words is there, as a word. Chinese has no spaces.
fn has_word(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !word.is_ascii() || !before.is_some_and(|c| c.is_ascii_alphanumeric())
        })
    })
}

/// Words of a decision.
const DECISIONS: [&str; 19] = [
    "decided",
    "chose",
    "I'll use",
    "I will use",
    "We'll use",
    "we'll use",
    "going with",
    "Decision:",
    "opted",
    "ruled out",
    "决定",
    "选择",
    "采用",
    "改用",
    "放弃",
    "不采用",
    "选用",
    "改为",
    "方案",
];

/// Words of a decision, if somebody speaks of what they do: else they tell what is.
const CHOICES: [&str; 3] = ["instead of", "rather than", "rejected"];

/// Somebody speaks of what they do.
const WE: [&str; 12] =
    ["I ", "I'", "I’", "we ", "We ", "we'", "We'", "we’", "We’", "Let me", "let's", "Let's"];

/// How somebody begins who says what comes next.
const PLANS: [&str; 18] = [
    "I'll ", "I’ll ", "I'm ", "I’m ", "I will ", "I am ", "Let me ", "Let's ", "Let’s ", "We'll ", "We’ll ",
    "Now ", "Next", "Using ", "Launch", "Update ", "Reuse ", "Use ",
];

/// Behind these words stands what is done next.
const NEXT: [&str; 12] = [
    "I'll ",
    "I’ll ",
    "I will ",
    "I'm ",
    "I’m ",
    "I am ",
    "Let me ",
    "let me ",
    "We'll ",
    "we'll ",
    "should ",
    "going to ",
];

/// Looking, and waiting.
const LOOKING: [&str; 26] = [
    "check",
    "checking",
    "read",
    "reading",
    "look",
    "looking",
    "inspect",
    "inspecting",
    "verify",
    "verifying",
    "search",
    "searching",
    "wait",
    "waiting",
    "see",
    "trace",
    "tracing",
    "find",
    "finding",
    "review",
    "reviewing",
    "explore",
    "exploring",
    "examine",
    "examining",
    "letting",
];

/// Words of a finding.
const FINDINGS: [&str; 20] = [
    "turns out",
    "root cause",
    "The problem",
    "the problem",
    "The issue",
    "the issue is",
    "found that",
    "Found that",
    "because",
    "Note that",
    "note that",
    "actually",
    "requires",
    "原因",
    "发现",
    "注意",
    "问题是",
    "问题在于",
    "原来",
    "需要",
];

/// Words of somebody who insists.
const WISHES: [&str; 24] = [
    "always",
    "Always",
    "never",
    "Never",
    "must",
    "Must",
    "prefer",
    "Prefer",
    "don't",
    "Don't",
    "do not",
    "Do not",
    "make sure",
    "Make sure",
    "only",
    "should",
    "please keep",
    "不要",
    "必须",
    "务必",
    "始终",
    "尽量",
    "只能",
    "不得",
];

/// What a person insists on, sentence by sentence, in their own words.
pub(super) fn wishes(text: &str) -> Vec<String> {
    if !WISHED.is_in(text) {
        return Vec::new();
    }
    let own = own_words(text);
    let wishes = sentences(&own, &WISHED).map(|(_, line)| line).filter(|line| has_word(line, &WISHES));
    wishes.map(one_line).collect()
}

/// What a person wants in a message, in about a line: their own words, if there are any.
pub(super) fn wanted(text: &str) -> Option<String> {
    let own = own_words(text);
    let said = if own.is_empty() { first_words(text)? } else { &own };
    Some(one_line(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(Telling, String)> {
        told(text).collect()
    }

    #[test]
    fn decisions_and_findings_are_told_apart_from_headings_and_plans() {
        use Telling::{Decision, Finding};
        for (text, telling) in [
            ("I decided to use a slice.", Some(Decision)),
            ("We keep the index rather than the slice.", Some(Decision)),
            ("Reuse the existing path instead of copying the result model.", Some(Decision)),
            ("我决定采用切片，不再使用下标。", Some(Decision)),
            ("The root cause is an off-by-one in the parser.", Some(Finding)),
            ("It fails because the table is never made.", Some(Finding)),
            ("Decision: one table for all tenants.", Some(Decision)),
            ("We rejected the cache, it hides failures.", Some(Decision)),
            ("I'll squash everything rather than leave a broken trail.", Some(Decision)),
            ("THOUGHT: It fails because the line moved.", Some(Finding)),
            // Steps of the work are neither, nor is what somebody only wonders.
            ("Let me verify rather than speculate.", None),
            ("So I’ll read the files instead of relying on the name.", None),
            ("I’m checking the commit before deciding what to do.", None),
            ("First I’m checking the branch because this repo expects that.", None),
            ("The server rejected the path.", None),
            ("The renderer decides what each contains.", None),
            ("Maybe it works because the parent is nullable.", None),
            ("Does it fail because of the lock?", None),
            // What is, what comes next, and what leads to something are neither.
            ("The page asks the staging server instead of the local one.", None),
            ("I’m checking whether the prompts actually arrived.", None),
            ("To show messages instead of prompts, we'd need to either:", None),
            ("## Key Decisions Made", None),
            ("**Where it actually matters:**", None),
        ] {
            assert_eq!(all(text).first().map(|(telling, _)| *telling), telling, "{text}");
        }
        assert_eq!(
            all("- **Upper bound**: now, because a rebase makes it newer"),
            [(Finding, "Upper bound: now, because a rebase makes it newer".to_owned())]
        );
    }

    #[test]
    fn an_answer_says_something() {
        for (text, said) in [
            ("Fixed: the parser takes empty lines.\n\nMore.", "Fixed: the parser takes empty lines."),
            ("# Code Review Report\n\nTwo problems were found.", "Two problems were found."),
            (
                "Confirmed. Report:\n\n- **a.rs**: fine\n- b.rs: broken",
                "Confirmed. Report: - a.rs: fine - b.rs: broken",
            ),
            ("## Analysis", "Analysis"),
            ("**Done**\nAll pass.", "All pass."),
            ("完成。更新如下：\n1. 解析器", "完成。更新如下： 1. 解析器"),
        ] {
            assert_eq!(answer(text).as_deref(), Some(said), "{text}");
        }
        assert_eq!(answered(["", "42", "👍"].into_iter()).as_deref(), Some("42"));
        assert_eq!(answered(["👍"].into_iter()).as_deref(), Some("👍"));
        let long = format!("Here:\n{}", "word ".repeat(1_000));
        assert!(answer(&long).unwrap().len() <= LINE + '…'.len_utf8());
    }
}
