//! What a person is asked to agree to before a call runs, and the answers that there are. It is a value: whoever draws it
//! has all of it, and none of it can be read as something else.

use std::fmt::Write;

use serde_json::{Value, json};

/// A call that nobody has allowed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Consent {
    /// The tool.
    pub tool: String,
    /// What would be done, whole.
    pub what: Asked,
    /// Why it is asked for, if it is not only that no rule allows it.
    pub why: Option<String>,
    /// The rule that would let calls like this one run from now on.
    pub rule: Option<String>,
}

/// What a call would do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Asked {
    /// It would run this command.
    Command {
        /// All of it.
        command: String,
        /// It would run on in the background.
        background: bool,
        /// What the command may touch.
        reach: Reach,
    },
    /// It would change a file.
    Change(Change),
    /// It would do whatever the tool does with these arguments.
    Call(Value),
}

/// What a command may touch. It may read whatever the user may, and reach the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The folders that it may write below; everywhere if `None`.
    pub writes: Option<Vec<String>>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, from the project root on.
    pub path: String,
    /// Its text before; `None` for a file that is new.
    pub before: Option<String>,
    /// Its text afterwards.
    pub after: String,
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This call may run.
    Yes,
    /// This command may run in place of the one that was asked for.
    Edited(String),
    /// This call may run, and those that fit the rule from now on.
    Always(Keep),
    /// It may not; what the person says of it goes to the model.
    No(Option<String>),
}

/// How long a rule holds that a person agrees to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// For the rest of the session.
    Session,
    /// In this project, in later sessions too.
    Project,
}

/// What a line of a consent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Words of ours.
    Note,
    /// Part of what is asked for.
    Text,
    /// A line of a file that would be new.
    Added,
    /// A line of a file that would go.
    Removed,
}

impl Consent {
    /// All lines, none of them cut. What a terminal would obey or not show is made visible.
    pub fn lines(&self) -> Vec<(LineKind, String)> {
        let note = |text: String| (LineKind::Note, text);
        let mut lines = Vec::new();
        match &self.what {
            Asked::Command { command, background, reach } => {
                let where_to = if *background { " in the background" } else { "" };
                lines.push(note(format!("{} would run{where_to}:", visible(&self.tool))));
                lines.extend(command.split('\n').map(|line| (LineKind::Text, visible(line))));
                lines.push(note(reach.says()));
            }
            Asked::Change(change) => {
                let verb = if change.before.is_some() { "change" } else { "create" };
                lines.push(note(format!("{} would {verb} {}:", visible(&self.tool), visible(&change.path))));
                lines.extend(change.diff().split('\n').map(|line| {
                    let kind = match line.as_bytes().first() {
                        Some(b'+') => LineKind::Added,
                        Some(b'-') => LineKind::Removed,
                        _ => LineKind::Text,
                    };
                    (kind, visible(line))
                }));
            }
            Asked::Call(arguments) => {
                lines.push(note(format!("{} would be called with:", visible(&self.tool))));
                let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
                lines.extend(text.split('\n').map(|line| (LineKind::Text, visible(line))));
            }
        }
        if let Some(why) = &self.why {
            lines.push(note(format!("It is asked for because {}", visible(why))));
        }
        lines
    }

    /// As an object, for programs.
    pub fn to_json(&self) -> Value {
        let mut object = json!({ "tool": self.tool, "why": self.why, "rule": self.rule });
        match &self.what {
            Asked::Command { command, background, reach } => {
                object["command"] = command.as_str().into();
                object["background"] = (*background).into();
                object["writes"] = json!(reach.writes);
            }
            Asked::Change(change) => {
                object["path"] = change.path.as_str().into();
                object["new"] = change.before.is_none().into();
                object["diff"] = change.diff().into();
            }
            Asked::Call(arguments) => object["arguments"] = arguments.clone(),
        }
        object
    }
}

impl Reach {
    /// What it may touch, in a sentence.
    fn says(&self) -> String {
        let writes = match &self.writes {
            Some(folders) => format!("It may write only below {}", visible(&folders.join(", "))),
            None => "Nothing confines it: it may write wherever you may".to_owned(),
        };
        format!("{writes}. It may read what you may, and use the network.")
    }
}

impl Change {
    /// The whole difference, with three lines around; of a new file all of it.
    pub fn diff(&self) -> String {
        let config = similar::TextDiff::configure().timeout(std::time::Duration::from_millis(500)).clone();
        let diff = config.diff_lines(self.before.as_deref().unwrap_or_default(), self.after.as_str());
        let text = diff.unified_diff().context_radius(3).to_string();
        text.strip_suffix('\n').unwrap_or(&text).to_owned()
    }
}

/// A text in which nothing hides: control characters, marks that turn the order of others around, and spaces or letters
/// that cannot be seen are written out (`^[`, `⟨U+202E⟩`). Line breaks are too; tabs stay.
///
/// ```
/// use longhaul_agent::visible;
/// assert_eq!(visible("a\u{1b}[2J\u{202e}b\r\u{a0}"), "a^[[2J⟨U+202E⟩b^M⟨U+00A0⟩");
/// ```
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            '\0'..='\x1f' => out.extend(['^', char::from(c as u8 + b'@')]),
            '\x7f' => out.push_str("^?"),
            c if is_hidden(c) => _ = write!(out, "⟨U+{:04X}⟩", c as u32),
            c => out.push(c),
        }
    }
    out
}

/// Whether a character is drawn as nothing, as a space, or moves others.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(consent: &Consent) -> String {
        let lines = consent.lines();
        lines.iter().map(|(kind, text)| format!("{kind:?} {text}")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_command_is_shown_whole_and_nothing_in_it_hides() {
        let hidden = format!(
            "echo tidy  # comment\ntouch PWN{}; rm x\u{202e}\u{200b}\x1b[2J\nend\r",
            " ".repeat(3_000)
        );
        let reach = Reach { writes: Some(vec![".".to_owned(), "/tmp".to_owned()]) };
        let what = Asked::Command { command: hidden, background: true, reach };
        let why = Some("it may be what a rule denies".to_owned());
        let consent = Consent { tool: "Bash".to_owned(), what, why, rule: None };
        let want = format!(
            "Note Bash would run in the background:\nText echo tidy  # comment\nText touch PWN{}; rm x⟨U+202E⟩⟨U+200B⟩^[[2J\nText end^M\n\
             Note It may write only below ., /tmp. It may read what you may, and use the network.\n\
             Note It is asked for because it may be what a rule denies",
            " ".repeat(3_000)
        );
        assert_eq!(shown(&consent), want);
    }

    #[test]
    fn a_change_is_shown_whole() {
        let after: String = (0..500).map(|line| format!("line {line}\n")).collect();
        let change = |before: Option<&str>| {
            let change = Change {
                path: "a\u{202e}".to_owned(),
                before: before.map(str::to_owned),
                after: after.clone(),
            };
            Consent { tool: "Write".to_owned(), what: Asked::Change(change), why: None, rule: None }
        };
        let new = shown(&change(None));
        assert!(
            new.starts_with("Note Write would create a⟨U+202E⟩:\nText @@ -0,0 +1,500 @@\nAdded +line 0\n"),
            "{new}"
        );
        assert!(new.ends_with("Added +line 499"), "{new}");
        assert_eq!(new.lines().count(), 502);
        let changed = shown(&change(Some(&after.replace("line 250\n", "old\x1b\n"))));
        assert!(changed.contains("Removed -old^[\nAdded +line 250"), "{changed}");
    }

    #[test]
    fn every_character_that_cannot_be_seen_is_written_out() {
        for c in [
            '\0',
            '\x07',
            '\x1b',
            '\r',
            '\n',
            '\x7f',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{200b}',
            '\u{2028}',
            '\u{2066}',
            '\u{3000}',
            '\u{e0041}',
            '\u{fe0f}',
        ] {
            let shown = visible(&c.to_string());
            assert!(!shown.contains(c) && shown.chars().all(|c| !is_hidden(c)), "{c:?} is {shown:?}");
        }
        assert_eq!(visible("né 中文 🙂 ~^"), "né 中文 🙂 ~^");
    }
}
