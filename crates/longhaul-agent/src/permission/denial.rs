//! Whether a command would start what a rule denies. The answer is in three steps: it would, it might, it would not. What
//! might is never run without a question.

use super::command::{Line, Word};
use super::git::after_global_options;
use super::reading;
use super::started::Started;

/// What a rule that denies says of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The command would start it.
    Yes,
    /// It cannot be known, for this reason.
    Perhaps(String),
    No,
}

/// Whether a command would start these words, which are a program and the start of its arguments.
pub(crate) fn denial(rule: &[String], command: &str, line: &Line, started: &Started) -> Denial {
    let mut denial = Denial::No;
    for words in &started.commands {
        match starts(rule, words) {
            Denial::Yes => return Denial::Yes,
            Denial::Perhaps(reason) if denial == Denial::No => denial = Denial::Perhaps(reason),
            _ => {}
        }
    }
    if line.opaque.is_some() && stand_in(rule, command) {
        return Denial::Yes;
    }
    if denial == Denial::No
        && let Some(reason) = &started.doubt
    {
        denial = Denial::Perhaps(reason.clone());
    }
    let named = || {
        let assigned =
            line.commands.iter().flat_map(|simple| simple.assignments.iter().map(|(_, value)| value));
        let passed = started.commands.iter().filter(|words| !keeps_to_itself(words));
        let passed = passed.map(|words| texts(&words[1..]));
        assigned.map(|word| word.text.clone()).chain(passed).any(|text| {
            // Another program may read quotes as a shell does.
            let plain: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
            follow_in(rule, &text) || follow_in(rule, &plain)
        })
    };
    if denial == Denial::No && named() {
        denial = Denial::Perhaps(format!("`{}` is named in it", rule.join(" ")));
    }
    denial
}

/// Whether a command is the one that a rule names.
fn starts(rule: &[String], words: &[Word]) -> Denial {
    let (Some((program, rest)), Some((name, arguments))) = (rule.split_first(), words.split_first()) else {
        return Denial::No;
    };
    let base = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
    if base(program) != base(&name.text) {
        return Denial::No;
    }
    let is_git = name.text == "git";
    let arguments = match after_global_options(arguments) {
        Some(after) if is_git => after,
        _ => arguments,
    };
    let (options, verbs): (Vec<&String>, Vec<&String>) = rest.iter().partition(|word| word.starts_with('-'));
    let unclear = || Denial::Perhaps(format!("it is not known what {} gets", name.text));
    let operands: Vec<&Word> =
        arguments.iter().filter(|word| !word.is_exact || !word.text.starts_with('-')).collect();
    // The verb of git comes first; of other programs an option before it may have a value.
    let is_first = operands.iter().zip(&verbs).all(|(word, verb)| word.is_exact && word.text == **verb)
        && operands.len() >= verbs.len();
    if !is_first {
        let verb = operands.first();
        if is_git
            && verb.is_some_and(|word| word.is_exact && verbs.first().is_some_and(|verb| word.text != **verb))
        {
            return Denial::No;
        }
        let mut rest = operands.iter();
        let is_later = verbs.iter().all(|verb| rest.any(|word| !word.is_exact || word.text == **verb));
        return if is_later || operands.iter().any(|word| !word.is_exact) { unclear() } else { Denial::No };
    }
    if options.iter().all(|option| has_option(arguments, option)) {
        Denial::Yes
    } else if arguments.iter().any(|word| !word.is_exact) {
        unclear()
    } else {
        Denial::No
    }
}

/// Whether an option is among the arguments, in a cluster or abbreviated too.
fn has_option(arguments: &[Word], option: &str) -> bool {
    let clusters = || arguments.iter().map(|word| word.text.as_str()).filter(|text| text.starts_with('-'));
    if let Some(name) = option.strip_prefix("--") {
        let given = clusters().filter_map(|text| text.strip_prefix("--"));
        let mut given = given.map(|text| text.split('=').next().unwrap_or_default());
        return given
            .any(|given| !given.is_empty() && name.split('=').next().unwrap_or_default().starts_with(given));
    }
    clusters().any(|text| text == option)
        || option[1..]
            .chars()
            .all(|letter| clusters().any(|text| !text.starts_with("--") && text.contains(letter)))
}

/// Whether the words of a rule stand in a text one behind the other, as words.
fn stand_in(rule: &[String], text: &str) -> bool {
    let plain = plain(text);
    let said: Vec<&str> = plain.split_whitespace().collect();
    said.windows(rule.len()).any(|run| run.iter().zip(rule).all(|(said, word)| is_same(said, word)))
}

/// Whether the words of a rule stand in a text in their order, with others between them.
fn follow_in(rule: &[String], text: &str) -> bool {
    let plain = plain(text);
    let mut said = plain.split_whitespace();
    rule.iter().all(|word| said.any(|said| is_same(said, word)))
}

/// A text without what parts words, for a shell or for other programs.
fn plain(text: &str) -> String {
    let is_word = |c: char| !c.is_whitespace() && !";&|()<>`\"'{}$\\,[]=!:".contains(c);
    text.chars().map(|c| if is_word(c) { c } else { ' ' }).collect()
}

fn is_same(said: &str, word: &str) -> bool {
    said == word || said.rsplit('/').next() == Some(word)
}

fn texts(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Builtins and programs that start nothing that their arguments name.
const KEEP_TO_THEMSELVES: [&str; 38] = [
    "echo", "printf", "cat", "ls", "head", "tail", "wc", "grep", "egrep", "fgrep", "cut", "tr", "uniq",
    "diff", "cmp", "stat", "file", "du", "df", "pwd", "cd", "mkdir", "rmdir", "touch", "rm", "test", "[",
    "[[", "true", "false", "basename", "dirname", "realpath", "readlink", "which", "type", "export", "git",
];

fn keeps_to_itself(words: &[Word]) -> bool {
    KEEP_TO_THEMSELVES.contains(&&*words[0].text) || reading::only_reads(words)
}
