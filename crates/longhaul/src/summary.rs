//! Summaries without a model: a template, filled from the log alone. What happened is found by
//! `facts`, the lines worth keeping by `extract`; the form is a `template`. Every statement
//! stands in a message. Written in the language of the conversation.

mod extract;
mod facts;
pub(crate) mod job;
mod template;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::message::{Block, Message, Role};
use crate::digest::Aliases;

pub(crate) use facts::exit_status;
use facts::{Facts, File};
use template::Values;

pub use job::{Job, Outcome, Question, Resolved};
pub use template::{ARCHIVE, FULL, HAND_OFF, LINES, REBUILD, TEMPLATES, Template};

/// Something to be told: a message, or the summary of messages that were folded before.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Summary(Box<str>),
    Message(Arc<Message>),
    /// Something that is not told stood here.
    Gap,
}

/// The language that a summary is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

/// Words that code writes itself.
struct Words {
    colon: &'static str,
    comma: &'static str,
    times: &'static str,
    read: &'static str,
    changed: &'static str,
    exit: &'static str,
    failed: &'static str,
    passed: &'static str,
    solved: &'static str,
    unsolved: &'static str,
    message: &'static str,
    goal_below: &'static str,
    left_out: fn(usize) -> String,
}

impl Language {
    /// The language of what people say here.
    pub(crate) fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> Self {
        /// So many letters tell.
        const ENOUGH: usize = 1_000;
        let (mut letters, mut chinese, mut kana) = (0, 0, 0);
        for message in messages.filter(|message| message.role() == Role::User) {
            let texts = message.blocks().iter().filter_map(|block| match block {
                Block::Text(text) => Some(&*text.text),
                _ => None,
            });
            for c in texts.flat_map(|text| text.chars().take(ENOUGH)).filter(|c| c.is_alphabetic()) {
                letters += 1;
                chinese += usize::from(('一'..='龥').contains(&c));
                kana += usize::from(('ぁ'..='ヺ').contains(&c));
            }
            if letters > ENOUGH {
                break;
            }
        }
        // A Chinese character says as much as several letters.
        if chinese * 6 > letters && kana * 10 < chinese { Self::Chinese } else { Self::English }
    }

    fn words(self) -> Words {
        match self {
            Self::English => Words {
                colon: ": ",
                comma: ", ",
                times: "×",
                read: "read",
                changed: "changed",
                exit: "exit",
                failed: "failed",
                passed: "no error",
                solved: "solved later",
                unsolved: "open",
                message: "message",
                goal_below: "see <goal> below",
                left_out: |count| format!("{count} older points"),
            },
            Self::Chinese => Words {
                colon: "：",
                comma: "，",
                times: " 次",
                read: "读取",
                changed: "修改",
                exit: "退出码",
                failed: "失败",
                passed: "无错误",
                solved: "之后已解决",
                unsolved: "未解决",
                message: "消息",
                goal_below: "见下方 <goal>",
                left_out: |count| format!("{count} 条较早的要点"),
            },
        }
    }
}

/// What a summary is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) template: &'static Template,
    pub(crate) language: Language,
    /// In bytes, about.
    pub(crate) limit: usize,
    /// The goal is restated behind the summary.
    pub(crate) goal_below: bool,
    /// What the summary is to be about.
    pub(crate) focus: Option<&'a str>,
    pub(crate) aliases: &'a Aliases,
    /// The first and the last message, by number, where they have no time.
    pub(crate) range: (u32, u32),
}

/// Fills a template from what is told. `later` are names that what follows mentions anyway.
pub(crate) fn write<'a>(told: &[&Told], form: Form<'_>, later: impl Iterator<Item = &'a str>) -> String {
    let Form { template, language, limit, .. } = form;
    if template.name == LINES.name {
        return extract::extract(told, limit, form.focus, later);
    }
    let mut values = facts_of(told, form);
    let earlier = values.take("lines").join("\n");
    values.keep_slots_of(template);
    let frame = template.render(language, &Values::default()).len() + 200;
    let room = limit.saturating_sub(frame);
    let gone = values.fit(if template.has("lines") { room / 5 } else { room });
    if gone > 0 {
        values.add("left_out", [(language.words().left_out)(gone)]);
    }
    if template.has("lines") {
        let used = template.render(language, &values).len();
        let room = limit.saturating_sub(used + 40);
        let earlier = Told::Summary(earlier.into());
        let messages = told.iter().copied().filter(|told| matches!(told, Told::Message(_)));
        let told: Vec<&Told> = std::iter::once(&earlier).chain(messages).collect();
        let lines = extract::extract(&told, room, form.focus, later);
        values.add("lines", (!lines.trim().is_empty()).then_some(lines));
    }
    template.render(language, &values)
}

/// The values of all slots: those of earlier summaries, and what is new.
fn facts_of(told: &[&Told], form: Form<'_>) -> Values {
    let Form { template, language, .. } = form;
    let mut values = Values::default();
    // By path, with where it came last.
    let mut files: HashMap<String, (usize, File)> = HashMap::new();
    let mut add_file = |file: File| {
        let count = files.len();
        let (at, known) = files
            .entry(file.path.clone())
            .or_insert_with(|| (count, File { path: file.path.clone(), reads: 0, changes: 0 }));
        *at = count.max(*at + 1);
        (known.reads, known.changes) = (known.reads + file.reads, known.changes + file.changes);
    };
    let mut lines = Vec::new();
    let facts = Facts::of(told.iter().copied(), form.aliases);
    // What the summaries before said of where the work stood.
    const STOOD: [&str; 3] = ["state", "open", "todos"];
    let mut stood: [Vec<String>; 3] = Default::default();
    for told in told {
        let Told::Summary(text) = told else { continue };
        let (written, spoken) = Template::of(text).unwrap_or((template, language));
        let mut earlier = written.parse(spoken, text);
        for slot in ["files", "read"] {
            earlier.take(slot).iter().filter_map(|said| File::heard(said, spoken)).for_each(&mut add_file);
        }
        lines.extend(earlier.take("lines"));
        // Where the work stood then holds until something newer is said.
        for (last, slot) in stood.iter_mut().zip(STOOD) {
            let said = earlier.take(slot);
            if !said.is_empty() {
                *last = said;
            }
        }
        // An error that was open then may have been solved since.
        let (was, is) =
            (format!(" → {}", spoken.words().unsolved), format!(" → {}", language.words().solved));
        let call = |error: &str| error.rsplit_once("(`")?.1.split_once("`)").map(|(call, _)| call.to_owned());
        let now = |error: String| match call(&error) {
            Some(call) if facts.went_well.contains(&call) => error.replace(&was, &is),
            _ => error,
        };
        values.add("errors", earlier.take("errors").into_iter().map(now));
        for slot in
            ["goal", "technical", "done", "commands", "decisions", "learnings", "preferences", "notes"]
        {
            values.add(slot, earlier.take(slot));
        }
    }
    facts.files.iter().cloned().for_each(&mut add_file);
    let mut files: Vec<(usize, File)> = files.into_values().collect();
    files.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
    let files = files.iter().map(|(_, file)| file);
    let (changed, read): (Vec<&File>, Vec<&File>) = files.partition(|file| file.changes > 0);
    values.add("files", changed.iter().map(|file| file.say(language)));
    values.add("read", read.iter().map(|file| file.say(language)));
    // What only looks around says nothing of what was done.
    let telling = facts.commands.iter().filter(|command| command.failed || !is_look(&command.line));
    values.add("commands", telling.map(|command| command.say(language)));
    values.add("errors", facts.errors.iter().map(|problem| problem.say(language)));
    values.add("decisions", facts.decisions);
    values.add("learnings", facts.learnings);
    values.add("preferences", facts.preferences);
    let done_or_open = facts.requests.len();
    let (done, open): (Vec<_>, Vec<_>) =
        facts.requests.into_iter().partition(|request| request.answer.is_some());
    let said =
        done.into_iter().map(|request| format!("{} - {}", request.asked, request.answer.unwrap_or_default()));
    values.add("done", said);
    values.add("open", open.into_iter().map(|request| request.asked));
    values.add(
        "open",
        facts
            .errors
            .iter()
            .filter(|problem| !problem.solved)
            .map(|problem| problem.say(language))
            .next_back(),
    );
    let [state, was_open, todos] = stood;
    if done_or_open == 0 {
        values.add("open", was_open);
    }
    values.add("state", facts.last_words.map_or(state, |words| vec![words]));
    // Once is enough.
    values.take("goal");
    values.add("goal", form.goal_below.then(|| language.words().goal_below.to_owned()));
    values.add("todos", facts.todos.map_or(todos, |tasks| vec![tasks]));
    values.add("lines", lines);
    values.add("range", range(told, form));
    values
}

/// The answers of a model, in the form, with what code knows: the files that were changed and
/// the task list, where the model does not name them.
pub(crate) fn completed(
    template: &'static Template,
    language: Language,
    parts: &[String],
    told: &[Told],
    aliases: &Aliases,
) -> String {
    /// No more files are added.
    const FILES: usize = 20;
    let template = if template.name == LINES.name { &HAND_OFF } else { template };
    let mut values = Values::default();
    for part in parts {
        let (written, spoken) = Template::of(part).unwrap_or((template, language));
        let mut more = written.parse(spoken, part);
        // Where the work stands, the last part that speaks of it says.
        for slot in ["state", "open", "todos"] {
            if !more.get(slot).is_empty() {
                values.take(slot);
            }
        }
        for slot in template.slots() {
            values.add(slot, more.take(slot));
        }
        values.add("notes", more.take("notes"));
    }
    let facts = Facts::of(told.iter(), aliases);
    // Files of earlier summaries too: what is merged is all there will be of them.
    let mut files: Vec<File> = Vec::new();
    for told in told {
        let Told::Summary(text) = told else { continue };
        let (written, spoken) = Template::of(text).unwrap_or((template, language));
        let mut earlier = written.parse(spoken, text);
        files.extend(earlier.take("files").iter().filter_map(|said| File::heard(said, spoken)));
    }
    files.retain(|file| facts.files.iter().all(|newer| newer.path != file.path));
    files.extend(facts.files.iter().cloned());
    let named = |file: &File| parts.iter().any(|part| names_file(part, &file.path));
    let missing = files.iter().filter(|file| file.changes > 0 && !named(file)).map(|file| file.say(language));
    let missing: Vec<String> = missing.collect();
    values.add("files", missing.into_iter().rev().take(FILES).rev());
    if values.get("todos").is_empty() {
        values.add("todos", facts.todos);
    }
    template.render(language, &values)
}

/// Whether a text names a file: its path, or its name where no other path ends in it.
fn names_file(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let alone = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
        !before.is_some_and(|c| joins(c) || c == '.') && !after.is_some_and(joins)
    };
    text.contains(path) || text.match_indices(name).any(|(at, _)| alone(at))
}

/// A command that changes nothing.
fn is_look(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or_default();
    matches!(
        first,
        "ls" | "cat" | "sed" | "head" | "tail" | "grep" | "rg" | "find" | "pwd" | "cd" | "wc" | "nl" | "echo"
    )
}

/// From when to when: by time where it is known, else by number.
fn range(told: &[&Told], form: Form<'_>) -> [String; 2] {
    let times = || {
        told.iter().filter_map(|told| match told {
            Told::Message(message) => message.time(),
            Told::Summary(_) | Told::Gap => None,
        })
    };
    let word = form.language.words().message;
    match (times().next(), times().next_back()) {
        (Some(first), Some(last)) => [first.to_string(), last.to_string()],
        _ => [format!("{word} {}", form.range.0), format!("{word} {}", form.range.1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::Json;

    fn told(message: Message) -> Told {
        Told::Message(Arc::new(message))
    }

    fn call(id: &str, name: &str, json: &str) -> Told {
        told(Message::new(Role::Assistant, vec![Block::call(id, name, Json::new(json).unwrap())]))
    }

    /// A small session with a turn that ended and one that goes on.
    fn session(chinese: bool) -> Vec<Told> {
        let say = |english: &str, chinese_text: &str| {
            if chinese { chinese_text.to_owned() } else { english.to_owned() }
        };
        vec![
            told(Message::user(say(
                "The date parser fails on leap years. Fix it, and never change the public API.",
                "日期解析在闰年会出错，请修复。不要修改公开接口。",
            ))),
            call("a", "Read", r#"{"path":"src/date.rs"}"#),
            told(Message::result("a", "pub fn is_leap(year: u32) -> bool {\n    year % 4 == 0\n}\n")),
            call("b", "Bash", r#"{"command":"cargo test leap"}"#),
            told(Message::result(
                "b",
                "test leap_1900 ... FAILED\nassertion failed: !is_leap(1900)\nexit code: 101",
            )),
            told(Message::assistant(say(
                "The problem is the rule of centuries. I decided to write the rule out instead of a table.",
                "问题在于没有处理整百年份。我决定直接写出规则，不采用查表。",
            ))),
            call(
                "c",
                "Edit",
                r#"{"path":"src/date.rs","old":"year % 4 == 0","new":"year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)"}"#,
            ),
            told(Message::result("c", "ok")),
            call("d", "Bash", r#"{"command":"cargo test leap"}"#),
            told(Message::result("d", "test result: ok. 4 passed\nexit code: 0")),
            told(Message::assistant(say(
                "Fixed: 1900 is no leap year any more.",
                "已修复：1900 年不再被当作闰年。",
            ))),
            told(Message::user(say(
                "Now the time zones: parse_offset ignores minutes.",
                "接下来是时区：parse_offset 忽略了分钟。",
            ))),
            call(
                "t",
                "TodoWrite",
                r#"{"todos":[{"content":"leap years","status":"completed"},{"content":"time zones","status":"in_progress"}]}"#,
            ),
            told(Message::result("t", "ok")),
            call("e", "Grep", r#"{"pattern":"parse_offset"}"#),
            told(Message::result("e", "src/zone.rs:12:pub fn parse_offset(text: &str) -> Option<i32> {\n")),
            told(Message::assistant(say("I look at src/zone.rs next.", "接下来看 src/zone.rs。"))),
        ]
    }

    fn written(template: &'static Template, chinese: bool, limit: usize) -> String {
        let all = session(chinese);
        let told: Vec<&Told> = all.iter().collect();
        let language = Language::of(all.iter().filter_map(|told| match told {
            Told::Message(message) => Some(&**message),
            Told::Summary(_) | Told::Gap => None,
        }));
        let form = Form {
            template,
            language,
            limit,
            goal_below: true,
            focus: None,
            aliases: &Aliases::default(),
            range: (1, 15),
        };
        write(&told, form, std::iter::empty())
    }

    // covers: A-SUM M-SUM P-FULL S-6 S-7
    #[test]
    fn every_template_in_both_languages() {
        for template in TEMPLATES {
            for (chinese, language) in [(false, "en"), (true, "zh")] {
                insta::assert_snapshot!(
                    format!("{}.{language}", template.name),
                    written(template, chinese, 4_000)
                );
            }
        }
    }

    #[test]
    fn a_later_summary_takes_the_earlier_in() {
        for template in [&ARCHIVE, &HAND_OFF, &REBUILD, &FULL] {
            let first = written(template, false, 12_000);
            let all = [
                Told::Summary(first.as_str().into()),
                told(Message::user("And the docs.")),
                call("x", "Edit", r#"{"path":"src/date.rs"}"#),
                told(Message::result("x", "ok")),
                told(Message::assistant("The docs are written.")),
            ];
            let told: Vec<&Told> = all.iter().collect();
            let form = Form {
                template,
                language: Language::English,
                limit: 12_000,
                goal_below: false,
                focus: None,
                aliases: &Aliases::default(),
                range: (1, 20),
            };
            let text = write(&told, form, std::iter::empty());
            assert!(text.contains("And the docs. - The docs are written."), "{text}");
            assert!(text.contains("Fixed: 1900 is no leap year any more."), "{text}");
            assert!(text.contains("`src/date.rs`: changed 2×, read 1×"), "{text}");
            assert_eq!(
                text.matches("never change the public API").count(),
                first.matches("never change the public API").count(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_was_not_answered_is_not_done_and_words_go_with_their_questions() {
        let all = [
            told(Message::user("First question?")),
            told(Message::user("`cargo test` fails, fix it")),
            told(Message::assistant("Fixed.")),
            Told::Gap,
            told(Message::assistant("An answer to something else.")),
        ];
        let told: Vec<&Told> = all.iter().collect();
        let form = Form {
            template: &HAND_OFF,
            language: Language::English,
            limit: 12_000,
            goal_below: false,
            focus: None,
            aliases: &Aliases::default(),
            range: (1, 5),
        };
        let text = write(&told, form, std::iter::empty());
        assert!(text.contains("### Done\n* `cargo test` fails, fix it - Fixed.\n"), "{text}");
        assert!(text.contains("### Remaining\n* First question?\n"), "{text}");
        // It is read back as what it is.
        let again = [Told::Summary(text.as_str().into())];
        let text = write(&again.iter().collect::<Vec<_>>(), form, std::iter::empty());
        assert!(text.contains("* `cargo test` fails, fix it - Fixed."), "{text}");
    }

    fn hand_off(all: &[Told]) -> String {
        let form = Form {
            template: &HAND_OFF,
            language: Language::English,
            limit: 12_000,
            goal_below: false,
            focus: None,
            aliases: &Aliases::default(),
            range: (1, 5),
        };
        write(&all.iter().collect::<Vec<_>>(), form, std::iter::empty())
    }

    #[test]
    fn tasks_hold_until_there_are_newer_ones_and_errors_until_they_are_solved() {
        let run = |id: &str| call(id, "Bash", r#"{"command":"cargo test storage"}"#);
        let first = hand_off(&[
            told(Message::user("Mend the storage.")),
            call("t", "TodoWrite", r#"{"todos":[{"content":"ALPHA","status":"in_progress"}]}"#),
            told(Message::result("t", "ok")),
            run("a"),
            told(Message::result(
                "a",
                "Process exited with code 101\nOutput:\nassertion failed: rows == 3\n",
            )),
        ]);
        assert!(
            first.contains("* Error: assertion failed: rows == 3 (`Bash cargo test storage`) → open"),
            "{first}"
        );
        let second = hand_off(&[
            Told::Summary(first.as_str().into()),
            call("r", "Read", r#"{"path":"src/storage.rs"}"#),
            told(Message::result("r", "fn rows() {}\n// exit code 2 is for bad input\n")),
        ]);
        assert!(
            second.contains("Tasks: [>] ALPHA") && second.contains("### Remaining\n* Mend the storage."),
            "{second}"
        );
        assert!(second.contains("→ open"), "{second}");
        let third = hand_off(&[
            Told::Summary(second.as_str().into()),
            run("b"),
            told(Message::result(
                "b",
                "Process exited with code 0\nOutput:\nok: the child had exit code 7 as expected\n",
            )),
        ]);
        assert!(
            third.contains("assertion failed: rows == 3 (`Bash cargo test storage`) → solved later"),
            "{third}"
        );
        assert!(
            third.contains("Tasks: [>] ALPHA") && third.contains("`cargo test storage` → exit 0"),
            "{third}"
        );
    }

    #[test]
    fn a_message_of_several_texts_is_one_request() {
        let asked = Message::new(
            Role::User,
            vec![Block::text("Background: the zebra feature."), Block::text("Fix the parser.")],
        );
        let text = hand_off(&[told(asked), told(Message::assistant("Fixed."))]);
        assert!(text.contains("* Fix the parser. - Fixed.\n") && !text.contains("### Remaining"), "{text}");
    }

    #[test]
    fn files_are_named_by_their_paths() {
        assert!(names_file("I changed src/core/mod.rs.", "src/core/mod.rs"));
        assert!(names_file("I changed `mod.rs` too", "src/core/mod.rs"));
        assert!(!names_file("I changed util/mod.rs and data.rs", "src/core/mod.rs"));
        assert!(!names_file("data.rs", "src/a.rs"));
    }

    #[test]
    fn a_template_fits_whatever_comes() {
        let long = (0..400).flat_map(|n| {
            [
                told(Message::user(format!("Never do thing {n}, please, in any case at all."))),
                told(Message::assistant(format!("I decided against thing_{n} because of reasons."))),
            ]
        });
        let all: Vec<Told> = long.collect();
        for template in TEMPLATES {
            for limit in [1_000, 4_000, 20_000] {
                let told: Vec<&Told> = all.iter().collect();
                let form = Form {
                    template,
                    language: Language::English,
                    limit,
                    goal_below: false,
                    focus: None,
                    aliases: &Aliases::default(),
                    range: (1, 800),
                };
                let text = write(&told, form, std::iter::empty());
                assert!(text.len() <= limit + 400, "{} {limit}: {}", template.name, text.len());
            }
        }
    }

    #[test]
    fn the_language_is_that_of_the_people() {
        let of = |text: &str| Language::of([Message::user(text)].iter());
        assert_eq!(of("Fix the parser"), Language::English);
        assert_eq!(of("修复 src/parse.rs 中的解析错误"), Language::Chinese);
        assert_eq!(of("パーサーを修正してください"), Language::English);
        assert_eq!(
            of("What does 中文 mean in this otherwise English question about characters?"),
            Language::English
        );
    }
}
