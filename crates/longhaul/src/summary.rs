//! Summaries without a model: a template, filled from the log alone. What happened is found by
//! `facts`, the lines worth keeping by `extract`; the form is a `template`, whose slots are a
//! table (`slot`). Every statement stands in a message. A summary is a `value` beside its text, and
//! the next one is made from the value. Written in the language of the conversation.

pub(crate) mod covered;
mod extract;
mod facts;
mod failing;
#[doc(hidden)]
pub mod fitting;
pub(crate) mod job;
pub(crate) mod known;
mod own_words;
mod price;
mod sentences;
mod slot;
mod statement;
mod template;
pub(crate) mod uses;
mod value;
mod worth;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::log::{Log, Position};
use crate::conversation::message::Message;
use crate::digest::Aliases;
use crate::text::count::words;

pub(crate) use extract::{Choose, LinePrice};
use extract::{Extract, Inherited, Wanted};
use facts::{Facts, Found};
pub(crate) use failing::exit_status;
use known::Known;
use slot::{Inherit, Slot};
pub(crate) use statement::Request;
use statement::{File, Statement, TodoState};
use template::{Item, SlotValues};
use uses::Uses;

pub use job::{Job, Outcome, Question, Resolved};
pub use price::{SummaryBill, SummaryForm, SummaryPaid, SummaryPrice};
pub use template::{ARCHIVE, FINISHED, FULL, HAND_OFF, LINES, REBUILD, TEMPLATES, Template};
pub use value::Summary;
pub(crate) use value::{Earlier, Place, Restated, Written};

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
            .map(|request| format!("[✓] {}", request.say()))
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
    goal_above: &'static str,
    goal_below: &'static str,
    left_out: fn(usize) -> String,
}

impl Language {
    const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// The language of what people say here.
    pub(crate) fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> Self {
        /// So many letters tell.
        const ENOUGH: usize = 1_000;
        let (mut letters, mut chinese, mut kana) = (0, 0, 0);
        for message in messages {
            let letters_said = message.words().flat_map(|words| words.chars().take(ENOUGH));
            for c in letters_said.filter(|c| c.is_alphabetic()) {
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
                goal_above: "see <goal> above",
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
                goal_above: "见上方 <goal>",
                goal_below: "见下方 <goal>",
                left_out: |count| format!("{count} 条较早的要点"),
            },
        }
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
        let count = words(&written.text);
        if count <= most || limit == 0 {
            return written;
        }
        // Fewer bytes hold fewer words; a little less than the share, so that few tries are needed.
        limit = (limit * most / count).saturating_sub(limit / 16 + 1);
    }
}

/// Fills a template from the material, to about the limit in bytes.
fn fill<'a>(material: &[&Material], form: Form<'_>, later: impl Iterator<Item = &'a str>) -> Written {
    let Form { template, language, limit, .. } = form;
    let none = Extract::default();
    if template.name == LINES.name {
        let wanted = form.lines(Inherited::Everything(language), limit);
        let lines = extract::extract(material, wanted, later);
        return template.render(language, &SlotValues::default(), &lines);
    }
    let mut values = facts_of(material, &form);
    values.keep_slots_of(template);
    let frame = template.render(language, &SlotValues::default(), &none).text.len();
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
    // What the work has changed and left broken is named whatever it takes, up to half of the room.
    let trail = match form.choose {
        Choose::Fill => Vec::new(),
        Choose::Pay(_) => values.take_trail(room / 2, language),
    };
    let gone = values.fit_form(for_slots, language);
    trail.into_iter().for_each(|(slot, items)| values.push(slot, items));
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

/// Files, each with its counts added up, in the order in which they came last.
#[derive(Debug, Default)]
struct FileCounts {
    by_path: HashMap<String, FileCount>,
}

#[derive(Debug)]
struct FileCount {
    /// Grows with each mention.
    order: usize,
    at: Option<Position>,
    file: File,
}

impl FileCounts {
    fn add(&mut self, at: Option<Position>, file: File) {
        let count = self.by_path.len();
        let none =
            || FileCount { order: count, at, file: File { path: file.path.clone(), reads: 0, changes: 0 } };
        let known = self.by_path.entry(file.path.clone()).or_insert_with(none);
        known.order = count.max(known.order + 1);
        known.at = at.or(known.at);
        known.file.reads += file.reads;
        known.file.changes += file.changes;
    }

    fn into_items(self) -> impl Iterator<Item = (Option<Position>, File)> {
        let mut files: Vec<FileCount> = self.by_path.into_values().collect();
        files.sort_by(|a, b| (a.order, &a.file.path).cmp(&(b.order, &b.file.path)));
        files.into_iter().map(|count| (count.at, count.file))
    }
}

/// The values of all slots but the extract: those of earlier summaries, and what is new.
fn facts_of(material: &[&Material], form: &Form<'_>) -> SlotValues {
    let language = form.language;
    let mut values = SlotValues::default();
    let mut files = FileCounts::default();
    let mut facts = Facts::of(material.iter().copied(), form.aliases);
    // What the summaries before said of where the work stood holds until something newer is said.
    let mut stood: BTreeMap<Slot, Vec<Item>> = BTreeMap::new();
    for material in material {
        let Material::Summary(earlier) = material else { continue };
        let mut earlier = earlier.slots();
        for item in Slot::that(Inherit::Count).flat_map(|slot| earlier.take(slot)) {
            item.statement.into_file().into_iter().for_each(|file| files.add(item.at, file));
        }
        for slot in Slot::that(Inherit::Newest) {
            let said = earlier.take(slot);
            if !said.is_empty() {
                stood.insert(slot, said);
            }
        }
        for slot in Slot::that(Inherit::Append) {
            let mut said = earlier.take(slot);
            // An error that was open then may have been solved since.
            for item in &mut said {
                if let Statement::Problem(problem) = &mut item.statement {
                    problem.solved |= facts.went_well.contains(&problem.call);
                }
            }
            values.add(slot, said);
        }
    }
    facts.files.into_iter().for_each(|(at, file)| files.add(Some(at), file));
    let (changed, read): (Vec<_>, Vec<_>) = files.into_items().partition(|(_, file)| file.changes > 0);
    let item = |(at, file)| Item { at, statement: Statement::File(file) };
    values.add(Slot::Files, changed.into_iter().map(item));
    values.add(Slot::Read, read.into_iter().map(item));
    // What only looks around says nothing of what was done.
    let telling = facts
        .commands
        .into_iter()
        .filter(|(_, command)| command.failed || !failing::only_looks(&command.line));
    values.add(Slot::Commands, telling.map(found(Statement::Command)));
    values.add(Slot::Errors, facts.errors.into_iter().map(found(Statement::Problem)));
    values.add(Slot::Decisions, facts.decisions.into_iter().map(found(Statement::Words)));
    values.add(Slot::Learnings, facts.learnings.into_iter().map(found(Statement::Words)));
    if form.template.is_fixed() {
        values.add(Slot::Preferences, wishes_of_requests(material));
    }
    values.add(Slot::Preferences, facts.preferences.into_iter().map(found(Statement::Words)));
    // What an earlier summary says to be done is done, also if what was asked is taken in later.
    let is_told = |(at, request): &(Position, Request)| {
        let same = |item: &Item| match &item.statement {
            Statement::Request(told) => item.at == Some(*at) && told.asked == request.asked,
            _ => false,
        };
        values.get(Slot::Done).iter().any(same)
    };
    facts.requests.retain(|request| !is_told(request));
    let nothing_asked = facts.requests.is_empty();
    let (done, open): (Vec<_>, Vec<_>) =
        facts.requests.into_iter().partition(|(_, request)| request.answer.is_some());
    values.add(Slot::Done, done.into_iter().map(found(Statement::Request)));
    values.add(Slot::Unanswered, open.iter().cloned().map(found(Statement::Request)));
    values.add(Slot::Open, open.into_iter().map(found(Statement::Request)));
    let mut stood = |slot| stood.remove(&slot).unwrap_or_default();
    if nothing_asked {
        values.add(Slot::Open, stood(Slot::Open));
    }
    let state = facts.last_words.map(found(Statement::Words));
    values.add(Slot::State, state.map_or_else(|| stood(Slot::State), |state| vec![state]));
    // A list of which all is done says nothing of what is left.
    let todos = facts.todos.map(|(at, todos)| match todos.iter().all(|todo| todo.state == TodoState::Done) {
        true => Vec::new(),
        false => vec![found(Statement::Todos)((at, todos))],
    });
    values.add(Slot::Todos, todos.unwrap_or_else(|| stood(Slot::Todos)));
    // The goal is restated beside the summary: once is enough.
    let goal = form.goal.map(|place| match place {
        Place::InFront => Item::words(None, language.words().goal_above),
        Place::Behind => Item::words(None, language.words().goal_below),
    });
    values.add(Slot::Goal, goal);
    for slot in [Slot::Stack, Slot::Environment] {
        values.add(slot, stood(slot));
    }
    add_known(&mut values, &form.known);
    let [from, to] = form.known.range(language);
    // A moment is no range.
    values.range = (from != to || form.template.is_fixed()).then_some([from, to]);
    values
}

/// What a person insists on in requests that stand elsewhere too: a fixed form says it in its place.
fn wishes_of_requests(material: &[&Material]) -> Vec<Item> {
    let asked = material.iter().filter_map(|material| match material {
        Material::Asked(asked) => Some(asked),
        Material::Summary(_) | Material::Message(..) => None,
    });
    let wishes = asked.flat_map(|asked| {
        let wishes = asked.message.words().flat_map(sentences::wishes);
        wishes.map(|wish| Item::words(Some(asked.at), wish))
    });
    wishes.collect()
}

/// Adds what is known beside the material. It stands in the place of what a model or an earlier summary
/// says of it.
fn add_known(values: &mut SlotValues, known: &Known<'_>) {
    let said = [
        (Slot::OriginalGoal, known.goal.as_deref()),
        (Slot::Stack, known.stack),
        (Slot::Environment, known.environment),
    ];
    for (slot, text) in said.into_iter().filter_map(|(slot, text)| Some((slot, text?))) {
        values.take(slot);
        values.add(slot, [Item::words(None, facts::one_line(text))]);
    }
}

/// Makes items of what was found.
fn found<T>(statement: impl Fn(T) -> Statement) -> impl Fn(Found<T>) -> Item {
    move |(at, value)| Item { at: Some(at), statement: statement(value) }
}

/// The answers of a model, in the form, with what code knows: goal, technical context and range of a
/// fixed form; the files that were changed and the task list, where the model does not name them. Where the
/// form has a limit in words, as many files as it leaves room for, the newest.
pub(crate) fn completed(
    template: &'static Template,
    language: Language,
    parts: &[String],
    material: &[Material],
    known: &Known<'_>,
    aliases: &Aliases,
    most_words: Option<usize>,
) -> Written {
    /// No more files are added.
    const FILES: usize = 20;
    let template = if template.name == LINES.name { &HAND_OFF } else { template };
    let mut values = SlotValues::default();
    let mut lines = Vec::new();
    for part in parts {
        let (written, spoken) = Template::of(part, language).unwrap_or((template, language));
        let mut more = written.read(spoken, part);
        // Where the work stands, the last part that speaks of it says.
        for slot in Slot::that(Inherit::Newest) {
            if !more.slots.get(slot).is_empty() {
                values.take(slot);
            }
        }
        for slot in template.slots() {
            values.add(slot, more.slots.take(slot));
        }
        values.add(Slot::Notes, more.slots.take(Slot::Notes));
        lines.extend(more.lines);
    }
    let facts = Facts::of(material.iter(), aliases);
    // Files of earlier summaries too: what is merged is all there will be of them.
    let mut files: Vec<(Option<Position>, File)> = Vec::new();
    for material in material {
        let Material::Summary(earlier) = material else { continue };
        let said = earlier.slots().take(Slot::Files).into_iter();
        files.extend(said.filter_map(|item| Some((item.at, item.statement.into_file()?))));
    }
    if template.is_fixed() {
        values.range = Some(known.range(language));
        add_known(&mut values, known);
        let open = facts.requests.into_iter().filter(|(_, request)| request.answer.is_none());
        values.add(Slot::Unanswered, open.map(found(Statement::Request)));
        // It lists what was changed: what was only read is none of it.
        let read = facts.files.iter().filter(|(_, file)| file.changes == 0);
        values.retain(Slot::Files, |item| !read.clone().any(|(_, file)| item.statement.is_of(file)));
    }
    files.retain(|(_, file)| facts.files.iter().all(|(_, newer)| newer.path != file.path));
    files.extend(facts.files.into_iter().map(|(at, file)| (Some(at), file)));
    let named = |file: &File| parts.iter().any(|part| names_file(part, &file.path));
    files.retain(|(_, file)| file.changes > 0 && !named(file));
    files.drain(..files.len().saturating_sub(FILES));
    if values.get(Slot::Todos).is_empty() {
        values.add(Slot::Todos, facts.todos.map(found(Statement::Todos)));
    }
    let lines = extract::of_model(lines);
    loop {
        let mut values = values.clone();
        let item = |(at, file): &(_, File)| Item { at: *at, statement: Statement::File(file.clone()) };
        values.add(Slot::Files, files.iter().map(item));
        let written = template.render(language, &values, &lines);
        // What code adds has the words that the model left over.
        if files.is_empty() || most_words.is_none_or(|most| words(&written.text) <= most) {
            return written;
        }
        files.remove(0);
    }
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
        let nothing = Restated { text: "", place: Place::Behind };
        let (text, value) = written.into_fold(nothing, "recall x", 1);
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
