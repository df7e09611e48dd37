//! Summaries without a model: a template, filled from the log alone. What happened is found by
//! `facts`, the lines worth keeping by `extract`; the form is a `template`, whose slots are a
//! table (`slot`). Every statement stands in a message. A summary is a `value` beside its text, and
//! the next one is made from the value. Written in the language of the conversation.

mod completed;
pub(crate) mod covered;
mod extract;
mod facts;
mod failing;
mod filled;
#[doc(hidden)]
pub mod fitting;
mod harmless;
pub(crate) mod job;
pub(crate) mod known;
mod language;
mod own_words;
mod price;
mod sentences;
mod slot;
mod slot_values;
mod statement;
mod template;
pub(crate) mod uses;
mod value;
mod worth;

use std::sync::Arc;

use crate::conversation::log::{Log, Position};
use crate::conversation::message::Message;
use crate::digest::Aliases;

pub(crate) use completed::completed;
pub(crate) use extract::{Choose, LinePrice};
use extract::{Extract, Inherited, Wanted};
pub(crate) use failing::exit_status;
use filled::facts_of;
use harmless::harmless;
use known::Known;
use slot::Slot;
use slot_values::{Item, SlotValues};
pub(crate) use statement::Request;
use uses::Uses;

pub use job::{Job, Outcome, Question, Resolved};
pub use language::Language;
pub use price::{SummaryBill, SummaryForm, SummaryPaid, SummaryPrice};
pub use template::{ARCHIVE, FINISHED, FULL, HAND_OFF, LINES, REBUILD, TEMPLATES, Template};
pub use value::Summary;
pub(crate) use value::{Around, Earlier, Place, Restated, Written};

/// What a summary is made of: a message, or the summary of messages that were folded before.
#[derive(Debug, Clone)]
pub(crate) enum Material {
    Summary(Earlier),
    Message(Position, Arc<Message>),
    /// What a person asked.
    Asked(Asked),
}

/// What a person asked, and what was answered, if it was.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Position,
    message: Arc<Message>,
    answer: Option<Arc<Message>>,
}

impl Asked {
    /// What this message asks.
    pub(crate) fn of(log: &Log, at: Position) -> Self {
        let message = |at: Position| log.messages()[at.index()].clone();
        Self { at, message: message(at), answer: log.answer_to(at).map(message) }
    }

    /// A line that says that it is done, and what came of it; `None` if it is not done.
    pub(crate) fn done(&self) -> Option<String> {
        self.request()
            .filter(|request| request.answer.is_some())
            .map(|request| format!("[✓] {}", harmless(&request.say())))
    }

    /// In a few words; `None` if nothing is asked. Of several texts of one message the last says what is
    /// wanted: clients put context before.
    pub(crate) fn request(&self) -> Option<Request> {
        let asked = sentences::asked(self.message.words())?;
        // An answer may have no words: a picture.
        let answered = |answer: &Arc<Message>| sentences::answered(answer.texts()).unwrap_or("…".to_owned());
        let answer = self.answer.as_ref().map(answered);
        Some(Request { asked: facts::shorten(asked, facts::SHORT), answer })
    }
}

/// What a summary is to be.
#[derive(Debug, Clone)]
pub(crate) struct Form<'a> {
    pub(crate) template: &'static Template,
    pub(crate) language: Language,
    /// In bytes, about.
    pub(crate) limit: usize,
    /// The most words that it may have, where its form has such a limit.
    pub(crate) words: Option<usize>,
    /// Where the goal is restated beside the summary, if it is.
    pub(crate) goal: Option<Place>,
    /// What the summary is to be about.
    pub(crate) focus: Option<&'a str>,
    pub(crate) aliases: &'a Aliases,
    /// Which lines of the extract are kept.
    pub(crate) choose: Choose,
    /// What the whole log says of names.
    pub(crate) uses: &'a Uses,
    /// What is known of it beside its material.
    pub(crate) known: Known<'a>,
}

impl Form<'_> {
    /// What the extract is to be, in so many bytes.
    fn lines(&self, inherited: Inherited, limit: usize) -> Wanted<'_> {
        let Self { choose, focus, aliases, uses, .. } = *self;
        Wanted { inherited, limit, choose, focus, aliases, uses }
    }
}

/// Fills a template from the material. `later` are names that what follows mentions anyway.
pub(crate) fn write<'a>(
    material: &[&Material],
    form: Form<'_>,
    later: impl Iterator<Item = &'a str>,
) -> Written {
    let Some(most) = form.words else { return fill(material, form, later) };
    let later: Vec<&str> = later.collect();
    let mut limit = form.limit;
    loop {
        let written = fill(material, Form { limit, ..form.clone() }, later.iter().copied());
        let count = written.words();
        if count <= most || limit == 0 {
            return written;
        }
        // Fewer bytes hold fewer words; a little less than the share, so that few tries are needed.
        limit = (limit * most / count).saturating_sub(limit / 16 + 1);
    }
}

/// Fills a template from the material, to about the limit in bytes.
fn fill<'a>(material: &[&Material], form: Form<'_>, later: impl Iterator<Item = &'a str>) -> Written {
    let Form { template, language, .. } = form;
    let none = Extract::default();
    let frame = template.render(language, &SlotValues::default(), &none);
    // The fence takes no room from what it fences.
    let (limit, frame) = (form.limit.saturating_add(frame.fence_bytes()), frame.text.len());
    if template.name == LINES.name {
        let wanted = form.lines(Inherited::Everything(language), limit);
        let lines = extract::extract(material, wanted, later);
        return template.render(language, &SlotValues::default(), &lines);
    }
    let mut values = facts_of(material, &form);
    values.keep_slots_of(template);
    // The headings of a fixed form are there anyway: they must not take all the room from what they head.
    let room = match template.is_fixed() {
        true => limit.saturating_sub(frame + 100).max(limit / 3),
        false => limit.saturating_sub(frame + 200),
    };
    let for_slots = match form.choose {
        Choose::Fill => template.room_for_slots(room),
        // Beside lines that pay for themselves the rest is short.
        Choose::Pay(price) => template.room_for_slots(room).min(price.slots),
    };
    // What the work has changed and left broken is named whatever it takes, as far as there is room.
    let trail = match form.choose {
        Choose::Fill => None,
        Choose::Pay(_) => Some(values.take_trail(room, language)),
    };
    let gone = values.fit_form(for_slots, language);
    trail.into_iter().for_each(|trail| values.put_trail(trail));
    if gone > 0 {
        values.add(Slot::LeftOut, [Item::words(None, (language.words().left_out)(gone))]);
    }
    if !template.has(Slot::Lines) {
        return template.render(language, &values, &none);
    }
    let used = template.render(language, &values, &none).text.len();
    let room = limit.saturating_sub(used + 40);
    // What earlier summaries say stands first.
    let mut material = material.to_vec();
    material.sort_by_key(|material| !matches!(material, Material::Summary(_)));
    let lines = extract::extract(&material, form.lines(Inherited::Extracts, room), later);
    template.render(language, &values, &lines)
}

#[cfg(test)]
mod tests {
    use super::covered::Covered;
    use super::*;
    use crate::conversation::json::Json;
    use crate::conversation::log::Span;
    use crate::conversation::message::{Block, Role};
    use crate::edits::ledger::Ledger;

    /// What a summary of all these messages is made of.
    fn told(messages: Vec<Message>) -> Vec<Material> {
        let (mut log, ledger) = (Log::new(), Ledger::default());
        messages.into_iter().for_each(|message| _ = log.push(message));
        let all = Span { start: Position(0), end: log.end() };
        Covered::of(&log, &ledger, &[all]).material(&ledger)
    }

    /// The same behind an earlier summary.
    fn told_behind(earlier: Written, messages: Vec<Message>) -> Vec<Material> {
        let mut all = told(messages);
        all.insert(0, folded(earlier));
        all
    }

    /// The summary of a fold that was written so.
    fn folded(written: Written) -> Material {
        let restated = Restated { text: "", place: Place::Behind };
        let around = Around { restated, answered: "", recall: "recall x", label: "0123456789ab", count: 1 };
        let (text, value) = written.into_fold(around);
        Material::Summary(Earlier::of_fold(&text, Some(&value), false))
    }

    fn call(id: &str, name: &str, json: &str) -> Message {
        Message::new(Role::Assistant, vec![Block::call(id, name, Json::new(json).unwrap())])
    }

    /// A small session with a turn that ended and one that goes on.
    fn session(chinese: bool) -> Vec<Message> {
        let say = |english: &str, chinese_text: &str| {
            if chinese { chinese_text.to_owned() } else { english.to_owned() }
        };
        vec![
            Message::user(say(
                "The date parser fails on leap years. Fix it, and never change the public API.",
                "日期解析在闰年会出错，请修复。不要修改公开接口。",
            )),
            call("a", "Read", r#"{"path":"src/date.rs"}"#),
            Message::result("a", "pub fn is_leap(year: u32) -> bool {\n    year % 4 == 0\n}\n"),
            call("b", "Bash", r#"{"command":"cargo test leap"}"#),
            Message::result(
                "b",
                "test leap_1900 ... FAILED\nassertion failed: !is_leap(1900)\nexit code: 101",
            ),
            Message::assistant(say(
                "The problem is the rule of centuries. I decided to write the rule out instead of a table.",
                "问题在于没有处理整百年份。我决定直接写出规则，不采用查表。",
            )),
            call(
                "c",
                "Edit",
                r#"{"path":"src/date.rs","old":"year % 4 == 0","new":"year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)"}"#,
            ),
            Message::result("c", "ok"),
            call("d", "Bash", r#"{"command":"cargo test leap"}"#),
            Message::result("d", "test result: ok. 4 passed\nexit code: 0"),
            Message::assistant(say(
                "Fixed: 1900 is no leap year any more.",
                "已修复：1900 年不再被当作闰年。",
            )),
            Message::user(say(
                "Now the time zones: parse_offset ignores minutes.",
                "接下来是时区：parse_offset 忽略了分钟。",
            )),
            call(
                "t",
                "TodoWrite",
                r#"{"todos":[{"content":"leap years","status":"completed"},{"content":"time zones","status":"in_progress"}]}"#,
            ),
            Message::result("t", "ok"),
            call("e", "Grep", r#"{"pattern":"parse_offset"}"#),
            Message::result("e", "src/zone.rs:12:pub fn parse_offset(text: &str) -> Option<i32> {\n"),
            Message::assistant(say("I look at src/zone.rs next.", "接下来看 src/zone.rs。")),
        ]
    }

    fn written(template: &'static Template, chinese: bool, limit: usize) -> Written {
        let language = Language::of(session(chinese).iter());
        let all = told(session(chinese));
        let material: Vec<&Material> = all.iter().collect();
        let form = Form {
            template,
            language,
            limit,
            words: None,
            goal: Some(template.restates()),
            focus: None,
            aliases: &Aliases::default(),
            choose: Choose::Fill,
            uses: &Uses::default(),
            known: Known {
                goal: Some(if chinese {
                    "修复日期解析。".to_owned()
                } else {
                    "Fix the date parser.".to_owned()
                }),
                stack: Some("Rust 1.90"),
                ..Known::of_numbers(1, 15)
            },
        };
        write(&material, form, std::iter::empty())
    }

    // covers: A-SUM M-SUM P-FULL S-6 S-7
    #[test]
    fn every_template_in_both_languages() {
        for template in TEMPLATES {
            for (chinese, language) in [(false, "en"), (true, "zh")] {
                insta::assert_snapshot!(
                    format!("{}.{language}", template.name),
                    written(template, chinese, 4_000).text
                );
            }
        }
    }

    #[test]
    fn a_later_summary_takes_the_earlier_in() {
        for template in [&ARCHIVE, &HAND_OFF, &REBUILD, &FULL] {
            let first = written(template, false, 12_000);
            let all = told_behind(
                first.clone(),
                vec![
                    Message::user("And the docs."),
                    call("x", "Edit", r#"{"path":"src/date.rs"}"#),
                    Message::result("x", "ok"),
                    Message::assistant("The docs are written."),
                ],
            );
            let material: Vec<&Material> = all.iter().collect();
            let form = Form {
                template,
                language: Language::English,
                limit: 12_000,
                words: None,
                goal: None,
                focus: None,
                aliases: &Aliases::default(),
                choose: Choose::Fill,
                uses: &Uses::default(),
                known: Known::of_numbers(1, 20),
            };
            let text = write(&material, form, std::iter::empty()).text;
            assert!(text.contains("And the docs. - The docs are written."), "{text}");
            assert!(text.contains("Fixed: 1900 is no leap year any more."), "{text}");
            assert!(text.contains("`src/date.rs`: changed 2×, read 1×"), "{text}");
            assert_eq!(
                text.matches("never change the public API").count(),
                first.text.matches("never change the public API").count(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_was_not_answered_is_not_done_and_words_go_with_their_questions() {
        let all = told(vec![
            Message::user("First question?"),
            call("a", "Read", r#"{"path":"src/lib.rs"}"#),
            Message::result("a", "pub mod parse;"),
            // The first was broken off; both of these were answered.
            Message::user("And the docs, please"),
            Message::user("`cargo test` fails, fix it"),
            Message::assistant("Fixed."),
        ]);
        let material: Vec<&Material> = all.iter().collect();
        let form = Form {
            template: &HAND_OFF,
            language: Language::English,
            limit: 12_000,
            words: None,
            goal: None,
            focus: None,
            aliases: &Aliases::default(),
            choose: Choose::Fill,
            uses: &Uses::default(),
            known: Known::of_numbers(1, 5),
        };
        let text = write(&material, form.clone(), std::iter::empty()).text;
        let done =
            "### Done\n* [✓] And the docs, please - Fixed.\n* [✓] `cargo test` fails, fix it - Fixed.\n";
        assert!(text.contains(done), "{text}");
        assert!(text.contains("### Remaining\n* First question?\n"), "{text}");
        // It is read back as what it is.
        let again = [Material::Summary(Earlier::without_values(&text))];
        let text = write(&again.iter().collect::<Vec<_>>(), form, std::iter::empty()).text;
        assert!(text.contains("* [✓] `cargo test` fails, fix it - Fixed."), "{text}");
    }

    fn hand_off(all: &[Material]) -> Written {
        let form = Form {
            template: &HAND_OFF,
            language: Language::English,
            limit: 12_000,
            words: None,
            goal: None,
            focus: None,
            aliases: &Aliases::default(),
            choose: Choose::Fill,
            uses: &Uses::default(),
            known: Known::of_numbers(1, 5),
        };
        write(&all.iter().collect::<Vec<_>>(), form, std::iter::empty())
    }

    #[test]
    fn tasks_hold_until_there_are_newer_ones_and_errors_until_they_are_solved() {
        let run = |id: &str| call(id, "Bash", r#"{"command":"cargo test storage"}"#);
        let first = hand_off(&told(vec![
            Message::user("Mend the storage."),
            call("t", "TodoWrite", r#"{"todos":[{"content":"ALPHA","status":"in_progress"}]}"#),
            Message::result("t", "ok"),
            run("a"),
            Message::result("a", "Process exited with code 101\nOutput:\nassertion failed: rows == 3\n"),
        ]));
        assert!(
            first.text.contains("* Error: assertion failed: rows == 3 (`Bash cargo test storage`) → open"),
            "{}",
            first.text
        );
        let second = hand_off(&told_behind(
            first,
            vec![
                call("r", "Read", r#"{"path":"src/storage.rs"}"#),
                Message::result("r", "fn rows() {}\n// exit code 2 is for bad input\n"),
            ],
        ));
        assert!(
            second.text.contains("Tasks: [>] ALPHA")
                && second.text.contains("### Remaining\n* Mend the storage."),
            "{}",
            second.text
        );
        assert!(second.text.contains("→ open"), "{}", second.text);
        let third = hand_off(&told_behind(
            second,
            vec![
                run("b"),
                Message::result(
                    "b",
                    "Process exited with code 0\nOutput:\nok: the child had exit code 7 as expected\n",
                ),
            ],
        ));
        assert!(
            third.text.contains("assertion failed: rows == 3 (`Bash cargo test storage`) → solved later"),
            "{}",
            third.text
        );
        assert!(
            third.text.contains("Tasks: [>] ALPHA") && third.text.contains("`cargo test storage` → exit 0"),
            "{}",
            third.text
        );
    }

    #[test]
    fn a_message_of_several_texts_is_one_request() {
        let asked = Message::new(
            Role::User,
            vec![Block::text("Background: the zebra feature."), Block::text("Fix the parser.")],
        );
        let text = hand_off(&told(vec![asked, Message::assistant("Fixed.")])).text;
        assert!(
            text.contains("* [✓] Fix the parser. - Fixed.\n") && !text.contains("### Remaining"),
            "{text}"
        );
    }

    #[test]
    fn a_template_fits_whatever_comes() {
        let long = (0..400).flat_map(|n| {
            [
                Message::user(format!("Never do thing {n}, please, in any case at all.")),
                Message::assistant(format!("I decided against thing_{n} because of reasons.")),
            ]
        });
        let all = told(long.collect());
        for template in TEMPLATES {
            for limit in [1_000, 4_000, 20_000] {
                let material: Vec<&Material> = all.iter().collect();
                let form = Form {
                    template,
                    language: Language::English,
                    limit,
                    words: None,
                    goal: None,
                    focus: None,
                    aliases: &Aliases::default(),
                    choose: Choose::Fill,
                    uses: &Uses::default(),
                    known: Known::of_numbers(1, 800),
                };
                let text = write(&material, form, std::iter::empty()).text;
                assert!(text.len() <= limit + 400, "{} {limit}: {}", template.name, text.len());
            }
        }
    }
}
