//! Who speaks in the person's place. Harnesses write there too: reminders, environment, rules
//! files, the output of commands, instructions to compact. [`tell_apart`] says which part of each
//! text is the person's own.
//!
//! What is known of a client is rows of its table (`speakers/clients.rs`), never code. All tables
//! hold for all messages: a message does not say which client wrote it.
//!
//! The rule: a span of the host counts where it begins the text or follows such a span, and where
//! it begins a line and ends the text. What is left in between is the person's, as one run. So a
//! person may quote a tag in the middle of a sentence or of a text: it stays the person's.

mod clients;

use longhaul::Block;
use longhaul::conversation::Words;

use clients::CLIENTS;
use clients::Sign::{self, Begins, Behind, Between, Commands, Ends, Is, Own, Span};

/// Sets which words of a message in the person's place are the person's own. True if none are and
/// there is nothing else in it: then all of it is an attachment of the host.
pub(crate) fn tell_apart(blocks: &mut [Block]) -> bool {
    let (mut of_host, mut other) = (false, false);
    for block in blocks {
        match block {
            Block::Text(text) => {
                text.words = words_of(&text.text);
                of_host |= text.words == Words::None;
                other |= !text.words().trim_start().is_empty();
            }
            _ => other = true,
        }
    }
    of_host && !other
}

/// True if a text of which nothing is said would be taken for a host's, all of it or a part.
pub(crate) fn is_like_a_hosts(text: &str) -> bool {
    words_of(text) != Words::All
}

/// The person's words in a text. Blank text is left alone.
fn words_of(text: &str) -> Words {
    let whole = Run { text, start: 0, end: text.len() }.trimmed();
    if whole.is_empty() {
        return Words::All;
    }
    // What goes at the end may have been in the way of a sign for the whole text.
    let words = whole.without_front().without_end().without_front();
    if (words.start, words.end) == (whole.start, whole.end) {
        return Words::All;
    }
    Words::part(words.start, words.end)
}

/// No client writes more spans than this at one end of a text. It bounds the time.
const SPANS: usize = 64;

/// A part of a text.
#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Run<'a> {
    fn get(self) -> &'a str {
        &self.text[self.start..self.end]
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// A part of this run, without blanks around it.
    fn part(self, (start, end): (usize, usize)) -> Self {
        Self { start: self.start + start, end: self.start + end, ..self }.trimmed()
    }

    fn trimmed(self) -> Self {
        let start = self.end - self.get().trim_start().len();
        let run = Self { start, ..self };
        Self { end: start + run.get().trim_end().len(), ..run }
    }

    /// Without what the host wrote at its start.
    fn without_front(mut self) -> Self {
        for _ in 0..SPANS {
            let run = self.get();
            let Some(rest) = signs().find_map(|sign| sign.rest_of(run)).or_else(|| front_tag(run)) else {
                break;
            };
            match rest {
                Rest::Words(start, end) => return self.part((start, end)),
                Rest::Behind(start) => self = self.part((start, run.len())),
            }
        }
        self
    }

    /// Without what the host wrote at its end.
    fn without_end(mut self) -> Self {
        let run = self.get();
        let ends: Vec<&str> =
            signs().filter_map(|sign| if let Ends(line) = sign { Some(*line) } else { None }).collect();
        let mut lines = std::iter::once(0).chain(line_starts(run));
        if let Some(end) = lines.find(|at| ends.iter().any(|line| run[*at..].starts_with(line))) {
            self = self.part((0, end));
        }
        for _ in 0..SPANS {
            let Some(open) = end_tag(self.get()) else { break };
            self = self.part((0, open));
        }
        self
    }
}

/// What a span of the host at the start of a text leaves of it.
enum Rest {
    /// The person's words, known to be these.
    Words(usize, usize),
    /// What stands behind the span, whoever wrote it.
    Behind(usize),
}

impl Sign {
    /// What the sign leaves of a text, if it stands at its start.
    fn rest_of(&self, text: &str) -> Option<Rest> {
        const NO_WORDS: Rest = Rest::Words(0, 0);
        match *self {
            Is(whole) => (text == whole).then_some(NO_WORDS),
            Begins(begins) => text.starts_with(begins).then_some(NO_WORDS),
            Span(from, to) => {
                let end = text.strip_prefix(from)?.find(to)?;
                Some(Rest::Behind(from.len() + end + to.len()))
            }
            Behind { begins, line } => {
                text.strip_prefix(begins)?;
                let mut lines = std::iter::once(0).chain(line_starts(text));
                let found = lines.find(|at| text[*at..].starts_with(line));
                Some(found.map_or(NO_WORDS, |at| Rest::Words(at + line.len(), text.len())))
            }
            Between { begins, ends } => {
                let words = text.strip_prefix(begins)?;
                let end = ends.iter().filter_map(|end| words.find(end)).min()?;
                Some(Rest::Words(begins.len(), begins.len() + end))
            }
            Own { begins, open, close } => {
                text.strip_prefix(begins)?;
                let mut opens = text.match_indices(open).map(|(at, _)| at);
                let start = opens.find(|at| is_behind_tag(&text[..*at]))? + open.len();
                let words = &text[start..start + text[start..].rfind(close)?];
                // Behind it stand tags of the host or nothing: a person who quotes it goes on.
                let behind = text[start + words.len() + close.len()..].trim_start();
                let is_own = behind.is_empty() || behind.starts_with('<');
                let is_blank = words.trim_start().is_empty();
                (is_own && !is_blank).then_some(Rest::Words(start, start + words.len()))
            }
            Commands(names) => {
                let name = text.strip_prefix("<command-name>/")?.split('<').next()?;
                names.contains(&name).then_some(NO_WORDS)
            }
            Ends(_) => None,
        }
    }
}

fn signs() -> impl Iterator<Item = &'static Sign> {
    CLIENTS.iter().flat_map(|client| client.signs)
}

fn is_host_tag(name: &str) -> bool {
    CLIENTS.iter().flat_map(|client| client.tags).any(|tag| match tag.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *tag,
    })
}

/// Where lines begin, but for the first.
fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| at + 1)
}

/// Whether what follows begins a line, blanks aside.
fn is_line_start(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

/// Whether what follows begins the text, or stands behind a tag.
fn is_behind_tag(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with('>')
}

/// The name of the tag that a text begins with, behind its `<`.
fn tag_name(text: &str) -> &str {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    &text[..text.bytes().take_while(|b| is_name(b)).count()]
}

/// Whether a tag's name ends here.
fn ends_name(rest: &str) -> bool {
    rest.starts_with(['>', ' ', '\n'])
}

/// The end of the host's tag that a text begins with. A tag that opens on a line of its own closes
/// at the start of a line, if it can: a file in it may hold the same tag.
fn front_tag(text: &str) -> Option<Rest> {
    let name = tag_name(text.strip_prefix('<')?);
    if !ends_name(&text[1 + name.len()..]) || !is_host_tag(name) {
        return None;
    }
    let open = text.find('>')? + 1;
    let close = format!("</{name}>");
    let mut closes = text[open..].match_indices(&close).map(|(at, _)| open + at);
    let first = closes.next()?;
    let stands_alone = text[open..].starts_with('\n');
    let mut of_line = std::iter::once(first).chain(closes).filter(|at| is_line_start(&text[..*at]));
    let end = if stands_alone { of_line.next().unwrap_or(first) } else { first };
    Some(Rest::Behind(end + close.len()))
}

/// Where the host's tag begins that a text ends with, if it begins a line.
fn end_tag(text: &str) -> Option<usize> {
    let close = text.strip_suffix('>')?.rfind("</")?;
    let name = tag_name(&text[close + 2..]);
    if close + 2 + name.len() + 1 != text.len() || !is_host_tag(name) {
        return None;
    }
    let open = format!("<{name}");
    let opens = |at: &usize| ends_name(&text[at + open.len()..]) && is_line_start(&text[..*at]);
    text[..close].rmatch_indices(&open).map(|(at, _)| at).find(opens)
}

#[cfg(test)]
mod tests;
