//! An extract of what a run of messages said and did. It never invents: every line is a line of
//! the log, or says how much was left out.
//!
//! Which lines? The work needs names again (paths, identifiers, numbers), and of each name the
//! line that mentioned it last; and it needs lines that it is going to edit. So a line is worth the
//! chance of either (`weighing`), by what the whole log says of its names (`uses`). Lines are kept for
//! their price, or until the room is full (`choosing`). What people said comes first.

mod choosing;
mod entry;
mod utterances;
mod weighing;

use choosing::{keep_best, keep_people, that_pay};
use entry::LinesOf;
pub(crate) use entry::{Entry, Labels, Speaker, read};
use utterances::Utterances;
use weighing::worth_of_lines;
pub(crate) use weighing::{Judged, dead_bytes};

use super::harmless::harmless;
use super::uses::Uses;
use super::value::{Passage, SavedEntry, SavedLine};
use super::{Language, Material};
use crate::digest::Aliases;

/// What was said and done, in its order.
#[derive(Debug, Default)]
pub(crate) struct Extract {
    pub(crate) text: String,
    /// What stands in the text.
    pub(crate) entries: Vec<SavedEntry>,
}

/// What of earlier summaries goes into an extract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherited {
    /// Their extracts: the new summary has slots for the rest.
    Extracts,
    /// All that they say, in this language: the new summary has no slots.
    Everything(Language),
}

/// Which lines an extract keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Choose {
    /// The best ones, until the room is full.
    Fill,
    /// Those whose chance to be needed is worth their bytes, and no more than the room holds.
    Pay(LinePrice),
}

/// What lines must be worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinePrice {
    /// Of a byte: the chance of a need that pays for it.
    pub(crate) byte: f32,
    /// How much the chance counts that a line is edited.
    pub(crate) text: f32,
    /// What stands beside the lines has so many bytes.
    pub(crate) slots: usize,
    /// What people said has so many bytes of its own.
    pub(crate) people: usize,
}

/// What an extract is to be.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) inherited: Inherited,
    /// Bytes, about.
    pub(super) limit: usize,
    pub(super) choose: Choose,
    pub(super) focus: Option<&'a str>,
    pub(super) aliases: &'a Aliases,
    pub(super) uses: &'a Uses,
}

/// Makes an extract. `later` are names that what follows mentions anyway.
pub(super) fn extract<'a>(
    material: &[&Material],
    wanted: Wanted<'_>,
    later: impl Iterator<Item = &'a str>,
) -> Extract {
    let utterances = Utterances::of(material, wanted);
    let mut entries = utterances.entries();
    if let Some(focus) = wanted.focus {
        prefer(&mut entries, focus);
    }
    let text_weight = match wanted.choose {
        Choose::Fill => 0.0,
        Choose::Pay(price) => price.text,
    };
    let mut choices = worth_of_lines(&entries, wanted.uses, text_weight, later, |_| {});
    let mut left = wanted.limit.saturating_sub(60);
    // What people said comes first, in half of the room; then the rest; then what people said again.
    let of_people = match wanted.choose {
        Choose::Fill => left / 2,
        Choose::Pay(price) => price.people.min(left / 2),
    };
    left -= of_people - keep_people(&mut entries, of_people);
    if let Choose::Pay(price) = wanted.choose {
        choices = that_pay(&entries, choices, price.byte);
    }
    left = keep_best(&mut entries, choices, left);
    if wanted.choose == Choose::Fill {
        keep_people(&mut entries, left);
    }
    render(&entries)
}

/// Judges all names and lines, and keeps none.
pub(super) fn judge<'a>(
    material: &[&Material],
    wanted: Wanted<'_>,
    later: impl Iterator<Item = &'a str>,
    judged: impl FnMut(Judged<'_>),
) {
    worth_of_lines(&Utterances::of(material, wanted).entries(), wanted.uses, 1.0, later, judged);
}

/// What a model wrote where an extract stands in its form, all of it.
pub(super) fn of_model(lines: Vec<&str>) -> Extract {
    let mut entries = read(lines, Labels::Words);
    for entry in &mut entries {
        entry.kept = true;
        entry.lines.iter_mut().for_each(|line| line.kept = true);
    }
    render(&entries)
}

/// Lines that speak of the focus are worth more.
fn prefer(entries: &mut [Entry<'_>], focus: &str) {
    /// More than any name.
    const WORTH: f32 = 1.0;
    let words = focus.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '/' | '.')));
    let words: Vec<String> = words.filter(|word| word.len() > 3).map(str::to_lowercase).collect();
    let speaks = |text: &str| {
        let text = text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    for entry in entries {
        entry.worth += if speaks(&entry.heading) { WORTH } else { 0.0 };
        for line in &mut entry.lines {
            line.worth += if speaks(line.text) { WORTH } else { 0.0 };
        }
    }
}

fn render(entries: &[Entry<'_>]) -> Extract {
    let (mut gone, mut all) = (0, 0);
    for entry in entries {
        let kept = entry.lines.iter().filter(|line| line.kept).count();
        let heading = usize::from(!entry.heading.is_empty());
        all += entry.lines.len() + heading;
        gone += entry.lines.len() - kept + if entry.kept { 0 } else { heading };
    }
    let mut text = if gone == 0 { String::new() } else { format!("({gone} of {all} lines left out)\n") };
    let mut saved = Vec::new();
    for entry in entries.iter().filter(|entry| entry.kept) {
        let (label, said) = entry.heading.split_at(entry.speaker.label().len());
        text.push_str(label);
        let start = text.len();
        text.push_str(&harmless(said));
        let heading = Passage::new(start, text.len());
        if !entry.heading.is_empty() {
            text.push('\n');
        }
        let mut lines = Vec::new();
        let mut kinds = String::from(entry.kind.letter());
        let mut first = 0;
        for LinesOf { at, end, .. } in &entry.texts {
            for line in entry.lines[first..*end].iter().filter(|line| line.kept) {
                text.push_str("  ");
                let start = text.len();
                text.push_str(&harmless(line.text));
                lines.push(SavedLine(*at, Passage::new(start, text.len())));
                kinds.push(line.kind.letter());
                text.push('\n');
            }
            first = *end;
        }
        saved.push(SavedEntry { speaker: entry.speaker, at: entry.at, heading, lines, kinds });
    }
    Extract { text, entries: saved }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conversation::json::{Extra, Json};
    use crate::conversation::log::{Log, Position};
    use crate::conversation::message::{Block, Message, Role, Text, Words};
    use crate::summary::value::Earlier;

    fn told(message: Message) -> Material {
        Material::Message(Position(0), Arc::new(message))
    }

    fn earlier(text: &str) -> Material {
        Material::Summary(Earlier::without_values(text))
    }

    fn extract_of(all: &[Material], limit: usize, choose: Choose, later: &[&str]) -> Extract {
        let mut log = Log::new();
        for material in all {
            if let Material::Message(_, message) = material {
                log.push(message.clone());
            }
        }
        let (mut uses, aliases) = (Uses::default(), Aliases::default());
        uses.follow(&log, &aliases);
        let inherited = Inherited::Extracts;
        let wanted = Wanted { inherited, limit, choose, focus: None, aliases: &aliases, uses: &uses };
        extract(&all.iter().collect::<Vec<_>>(), wanted, later.iter().copied())
    }

    fn extracted(all: &[Material], limit: usize) -> String {
        extract_of(all, limit, Choose::Fill, &[]).text
    }

    #[test]
    fn what_people_said_goes_last() {
        let mut all = vec![told(Message::user("The port is 8473."))];
        all.extend((0..50).map(|n| told(Message::assistant(format!("word_{n} ").repeat(30)))));
        let text = extracted(&all, 1_000);
        assert!(text.contains("The port is 8473.") && text.contains("word_49"), "{text}");
    }

    #[test]
    fn what_was_said_and_done_in_order() {
        let call = Block::call("c", "Read", Json::new(r#"{"path":"src/parse.rs","from":10}"#).unwrap());
        let asked = Message::user("Fix parse_line, please.");
        let ask = Message::new(Role::Assistant, vec![Block::thinking("hm"), Block::text("I look."), call]);
        let answer = Message::result("c", "// nothing here\npub fn parse_line(s: &str) {\n    call();\n}\n");
        assert_eq!(
            extracted(&[told(asked), told(ask), told(answer)], 10_000),
            "(2 of 6 lines left out)\nUser: Fix parse_line, please.\nAssistant: I look.\nCall Read: src/parse.rs · 10\n  pub fn parse_line(s: &str) {\n"
        );
    }

    #[test]
    fn an_earlier_summary_keeps_its_form() {
        let before = "(5 of 9 lines left out)\nUser: Fix it.\n  And the docs.\nAssistant: I look.\nCall Read: src/parse.rs\n  fn parse_line(s: &str) {\n";
        let all = [earlier(before), told(Message::assistant("Now the store_index."))];
        let text = extracted(&all, 10_000);
        assert_eq!(text, format!("{}Assistant: Now the store_index.\n", before.split_once('\n').unwrap().1));
        // What people said stays to the last.
        let text = extracted(&all, 140);
        assert!(text.contains("User: Fix it.\n  And the docs.\n") && !text.contains("I look"), "{text}");
    }

    #[test]
    fn of_a_name_the_last_line_is_kept() {
        let call = |id: &str| Block::call(id, "Read", Json::new(r#"{"path":"src/parse.rs"}"#).unwrap());
        let ask = |id: &str| told(Message::new(Role::Assistant, vec![call(id)]));
        let all = [
            ask("a"),
            told(Message::result("a", "fn parse_line(old: u8) {}\nfn other_name() {}\n")),
            ask("b"),
            told(Message::result("b", "fn parse_line(new: u16) {}\n")),
        ];
        let text = extracted(&all, 10_000);
        assert!(
            text.contains("new: u16") && !text.contains("old: u8") && text.contains("other_name"),
            "{text}"
        );
        // What follows mentions it anyway.
        let text = extract_of(&all, 10_000, Choose::Fill, &["parse_line"]).text;
        assert!(!text.contains("new: u16") && text.contains("other_name"), "{text}");
    }

    #[test]
    fn nothing_of_the_host_stands_under_the_persons_name() {
        let text = "<env>\npath_of_host\n</env>\nFix parse_line.\n<env>\nmore_of_host\n</env>";
        let start = text.find("Fix").unwrap();
        let words = Words::part(start, start + "Fix parse_line.".len());
        let mixed = Text { text: text.into(), words, extra: Extra::NONE };
        let all = [
            told(Message::user("A file: attached_name").with_attachment()),
            told(Message::new(Role::User, vec![Block::Text(mixed)])),
        ];
        assert_eq!(
            extracted(&all, 10_000),
            "(2 of 8 lines left out)\nHost: A file: attached_name\nHost: <env>\n  path_of_host\nUser: Fix parse_line.\nHost: <env>\n  more_of_host\n"
        );
        // And it stays so in the next summary.
        let again = extracted(&[earlier("Host: <env>\n  path_of_host\nUser: Fix it.\n")], 10_000);
        assert_eq!(again, "Host: <env>\n  path_of_host\nUser: Fix it.\n");
    }

    #[test]
    fn it_fits_whatever_comes() {
        let long: Vec<Message> =
            (0..300).map(|n| Message::user(format!("message {n} {}", "字".repeat(n)))).collect();
        let mut all = vec![earlier(&"earlier_line 1234\n".repeat(500))];
        all.extend(long.into_iter().map(told));
        for limit in [0, 100, 1_000, 20_000] {
            let text = extracted(&all, limit);
            assert!(text.len() <= limit + 100, "{limit}: {}", text.len());
        }
    }

    // An agent that says its limits at every call says them once here.
    #[test]
    fn limits_of_commands_are_said_once() {
        let call = |n: usize| {
            let arguments =
                format!(r#"{{"cmd":"make part_{n}","yield_time_ms":10000,"max_output_tokens":12000}}"#);
            let call = Block::call(format!("c{n}"), "exec_command", Json::new(&arguments).unwrap());
            told(Message::new(Role::Assistant, vec![call]))
        };
        let text = extracted(&[call(1), call(2), call(3)], 2_000);
        assert_eq!(text.matches("10000").count(), 1, "{text}");
        assert!(text.contains("make part_1\n") && text.contains("make part_3 · 10000 · 12000"), "{text}");
    }
}
