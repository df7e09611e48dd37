//! Markdown as it streams, rendered for a terminal: lines that are finished are given out at once. A block that is still
//! open is rendered anew with each piece, and those of its lines that cannot change any longer are given out.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::terminal::{FAINT, STRONG, columns_of, cut, printable};

/// Source text.
const CODE: Style = AnsiColor::Cyan.on_default();

/// A text that streams in.
#[derive(Default)]
pub struct Markdown {
    /// The start of a line of which nobody can say yet what it is.
    undecided: String,
    /// The line that is coming belongs to the block that is open.
    in_block: bool,
    open: Open,
    /// The last line that was given out is blank, or there is none.
    after_blank: bool,
    begun: bool,
}

#[derive(Default)]
enum Open {
    #[default]
    Nothing,
    /// Source up to a fence like this one.
    Fence(String),
    /// Running text.
    Text(Block),
}

#[derive(Default)]
struct Block {
    text: String,
    /// What stands before its first line, and before the others.
    first: String,
    rest: String,
    /// How many of its lines were given out.
    given: usize,
}

/// What a line of the source is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Blank,
    Fence(String),
    Heading(String),
    Rule,
    /// Indent, mark and text of an item.
    Item(usize, String, String),
    Quote(String),
    Table,
    Text,
}

impl Markdown {
    /// More of the text; the lines that are finished by it, of at most so many columns.
    pub fn push(&mut self, text: &str, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        for piece in printable(text).split_inclusive('\n') {
            let ends = piece.ends_with('\n');
            let piece = piece.trim_end_matches('\n');
            if self.in_block {
                if let Open::Text(block) = &mut self.open {
                    block.text.push_str(piece);
                }
            } else {
                self.undecided.push_str(piece);
            }
            if ends {
                self.end_line(width, &mut out);
            } else if !self.in_block && self.is_decided() {
                let line = std::mem::take(&mut self.undecided);
                self.begin(&line, width, &mut out);
                self.in_block = true;
            }
        }
        self.give(width, false, &mut out);
        out
    }

    /// The rest of the lines: the text is at its end.
    pub fn finish(&mut self, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        if !self.undecided.is_empty() {
            self.end_line(width, &mut out);
        }
        self.close(width, &mut out);
        *self = Self::default();
        while out.last().is_some_and(String::is_empty) {
            out.pop();
        }
        out
    }

    fn end_line(&mut self, width: usize, out: &mut Vec<String>) {
        if self.in_block {
            self.in_block = false;
            return;
        }
        let line = std::mem::take(&mut self.undecided);
        if let Open::Fence(mark) = &self.open {
            if line.trim().starts_with(mark.as_str()) && line.trim().chars().all(|c| mark.contains(c)) {
                self.open = Open::Nothing;
            } else {
                self.line(out, format!("  {CODE}{}{CODE:#}", cut(&line, width.saturating_sub(2).max(1))));
            }
            return;
        }
        self.begin(&line, width, out);
    }

    /// Whether the line that is coming can only be running text, which need not wait for its end.
    fn is_decided(&self) -> bool {
        !matches!(self.open, Open::Fence(_))
            && match kind(&self.undecided) {
                Kind::Text => self.undecided.trim_start().starts_with(char::is_alphabetic),
                Kind::Item(_, _, text) => text.starts_with(char::is_alphabetic),
                _ => false,
            }
    }

    /// A line, or the decided start of one.
    fn begin(&mut self, line: &str, width: usize, out: &mut Vec<String>) {
        match (kind(line), &mut self.open) {
            (Kind::Text, Open::Text(block)) => {
                block.text.push('\n');
                block.text.push_str(line.trim_start());
                return;
            }
            (Kind::Quote(text), Open::Text(block)) if block.first == QUOTE => {
                block.text.push('\n');
                block.text.push_str(&text);
                return;
            }
            _ => {}
        }
        self.close(width, out);
        let block = |text: &str, first: String, rest: String| {
            Open::Text(Block { text: text.to_owned(), first, rest, given: 0 })
        };
        match kind(line) {
            Kind::Blank if self.after_blank || !self.begun => {}
            Kind::Blank => {
                self.line(out, String::new());
                self.after_blank = true;
            }
            Kind::Fence(mark) => self.open = Open::Fence(mark),
            Kind::Heading(text) => {
                for line in wrapped(&spans(&text, STRONG), "", "", width) {
                    self.line(out, line);
                }
            }
            Kind::Rule => self.line(out, format!("{FAINT}{}{FAINT:#}", "─".repeat(width.min(40)))),
            Kind::Table => self.line(out, cut(line, width)),
            Kind::Item(indent, mark, text) => {
                let indent = indent.min(12);
                let first = format!("{:indent$}{mark} ", "");
                let rest = " ".repeat(first.chars().count());
                self.open = block(&text, first, rest);
            }
            Kind::Quote(text) => self.open = block(&text, QUOTE.to_owned(), QUOTE.to_owned()),
            Kind::Text => self.open = block(line.trim_start(), String::new(), String::new()),
        }
    }

    fn close(&mut self, width: usize, out: &mut Vec<String>) {
        self.give(width, true, out);
        if matches!(self.open, Open::Text(_)) {
            self.open = Open::Nothing;
        }
    }

    /// Gives out the lines of the open block that cannot change any longer.
    fn give(&mut self, width: usize, all: bool, out: &mut Vec<String>) {
        let Open::Text(block) = &mut self.open else { return };
        if !all && !is_settled(&block.text) {
            return;
        }
        let lines = wrapped(&spans(&block.text, Style::new()), &block.first, &block.rest, width);
        let end = if all { lines.len() } else { lines.len().saturating_sub(1) };
        let new: Vec<String> = lines.into_iter().take(end).skip(block.given).collect();
        block.given += new.len();
        for line in new {
            self.line(out, line);
        }
    }

    fn line(&mut self, out: &mut Vec<String>, line: String) {
        (self.after_blank, self.begun) = (false, true);
        out.push(line);
    }
}

const QUOTE: &str = "│ ";

fn kind(line: &str) -> Kind {
    // The line may not be whole yet: a space at its end counts.
    let running = line.trim_start();
    let indent = line.len() - running.len();
    let text = running.trim_end();
    let run = |c: char| text.chars().take_while(|x| *x == c).count();
    for mark in ['`', '~'] {
        if run(mark) >= 3 {
            return Kind::Fence(mark.to_string().repeat(run(mark)));
        }
    }
    let hashes = run('#');
    if (1..=6).contains(&hashes) && text[hashes..].starts_with(' ') {
        return Kind::Heading(text[hashes..].trim().trim_end_matches('#').trim_end().to_owned());
    }
    if text.is_empty() {
        return Kind::Blank;
    }
    if ['-', '*', '_'].iter().any(|mark| {
        text.chars().all(|c| c == *mark || c == ' ') && text.chars().filter(|c| c == mark).count() >= 3
    }) {
        return Kind::Rule;
    }
    if let Some(text) = running.strip_prefix('>') {
        return Kind::Quote(text.trim_start().to_owned());
    }
    if text.starts_with('|') {
        return Kind::Table;
    }
    for mark in ["- ", "* ", "+ "] {
        if let Some(text) = running.strip_prefix(mark) {
            return Kind::Item(indent, "•".to_owned(), text.trim_start().to_owned());
        }
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    if (1..=4).contains(&digits)
        && let Some(rest) =
            running[digits..].strip_prefix(". ").or_else(|| running[digits..].strip_prefix(") "))
    {
        return Kind::Item(indent, text[..digits + 1].to_owned(), rest.trim_start().to_owned());
    }
    Kind::Text
}

/// Whether no mark is open that would change what stands before it.
fn is_settled(text: &str) -> bool {
    // What stands between backticks has no marks.
    let pieces: Vec<&str> = text.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return false;
    }
    let outside = pieces.into_iter().step_by(2).collect::<Vec<_>>().join("x");
    let is_even = |mark: char| {
        let double = outside.matches(&format!("{mark}{mark}")).count();
        let all = outside.matches(mark).count();
        double.is_multiple_of(2) && all.is_multiple_of(2)
    };
    // An underscore inside of a word is no mark.
    let words = |c: char| c.is_alphanumeric();
    let underscores = outside
        .match_indices('_')
        .filter(|(at, _)| !(outside[..*at].ends_with(words) && outside[at + 1..].starts_with(words)));
    let link = outside.rfind('[').is_some_and(|at| {
        let rest = &outside[at..];
        !rest.contains(']') || rest.ends_with(']') || (rest.contains("](") && !rest.contains(')'))
    });
    is_even('*') && is_even('~') && underscores.count().is_multiple_of(2) && !link
}

/// Pieces of a running text, with the style of each.
fn spans(text: &str, base: Style) -> Vec<(Style, String)> {
    let mut spans: Vec<(Style, String)> = Vec::new();
    let (mut strong, mut italic, mut struck) = (0, 0, 0);
    let mut links: Vec<String> = Vec::new();
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        let mut style = base;
        if strong > 0 {
            style = style.bold();
        }
        if italic > 0 {
            style = style.italic();
        }
        if struck > 0 {
            style = style.strikethrough();
        }
        match event {
            Event::Start(Tag::Strong) => strong += 1,
            Event::End(TagEnd::Strong) => strong -= 1,
            Event::Start(Tag::Emphasis) => italic += 1,
            Event::End(TagEnd::Emphasis) => italic -= 1,
            Event::Start(Tag::Strikethrough) => struck += 1,
            Event::End(TagEnd::Strikethrough) => struck -= 1,
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string());
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let url = links.pop().unwrap_or_default();
                if spans.last().is_none_or(|(_, text)| *text != url) {
                    spans.push((FAINT, format!(" ({url})")));
                }
            }
            Event::Code(code) => spans.push((CODE, code.into_string())),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                spans.push((style, text.into_string()));
            }
            Event::SoftBreak => spans.push((style, " ".to_owned())),
            Event::HardBreak => spans.push((style, "\n".to_owned())),
            _ => {}
        }
    }
    // An entity such as &#27; is a character only now.
    spans.into_iter().map(|(style, text)| (style, printable(&text).replace('\t', " "))).collect()
}

/// A run of characters that no line ends in.
#[derive(Default)]
struct Word {
    pieces: Vec<(Style, String)>,
    columns: usize,
}

impl Word {
    fn push(&mut self, style: Style, c: char) {
        self.columns += columns_of(c);
        match self.pieces.last_mut() {
            Some((last, text)) if *last == style => text.push(c),
            _ => self.pieces.push((style, c.to_string())),
        }
    }
}

/// Lines of at most so many columns. Between wide characters a line may end anywhere.
fn wrapped(spans: &[(Style, String)], first: &str, rest: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(first.chars().count()).max(8);
    let mut lines: Vec<Word> = vec![Word::default()];
    let (mut word, mut space) = (Word::default(), None);
    let end_word = |lines: &mut Vec<Word>, word: &mut Word, space: &mut Option<Style>| {
        if word.pieces.is_empty() {
            return;
        }
        let mut word = std::mem::take(word);
        let Some(line) = lines.last_mut() else { return };
        let gap = usize::from(space.is_some() && line.columns > 0);
        if line.columns > 0 && line.columns + gap + word.columns > room {
            lines.push(word);
        } else {
            if let (Some(style), 1) = (*space, gap) {
                line.push(style, ' ');
            }
            line.columns += word.columns;
            line.pieces.append(&mut word.pieces);
        }
        *space = None;
    };
    for (style, text) in spans {
        for c in text.chars() {
            match c {
                '\n' => {
                    end_word(&mut lines, &mut word, &mut space);
                    lines.push(Word::default());
                    space = None;
                }
                // Two columns are one character where a space may be wide.
                ' ' => {
                    end_word(&mut lines, &mut word, &mut space);
                    space = Some(*style);
                }
                c => {
                    let wide = columns_of(c) > 1;
                    if wide || word.columns + columns_of(c) > room {
                        end_word(&mut lines, &mut word, &mut space);
                    }
                    word.push(*style, c);
                    if wide {
                        end_word(&mut lines, &mut word, &mut space);
                    }
                }
            }
        }
    }
    end_word(&mut lines, &mut word, &mut space);
    let drawn = |(number, line): (usize, Word)| {
        let before = if number == 0 { first } else { rest };
        let text = line.pieces.iter().map(|(style, text)| format!("{style}{text}{style:#}"));
        format!("{before}{}", text.collect::<String>())
    };
    lines.into_iter().enumerate().map(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of a text that comes in pieces of so many characters, without colours.
    fn rendered(text: &str, piece: usize, width: usize) -> String {
        let mut markdown = Markdown::default();
        let characters: Vec<char> = text.chars().collect();
        let mut lines = Vec::new();
        for piece in characters.chunks(piece) {
            lines.extend(markdown.push(&piece.iter().collect::<String>(), width));
        }
        lines.extend(markdown.finish(width));
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    const TEXT: &str = "\
# What was done

The parser **drops** the last line of a file that has no newline at its end, see `src/parser.rs:12` and [the issue](https://example.org/17).

1. First a test, which fails.
2. Then the mend:

```rust
fn last_line() {
\tlet a = *b;
```

- one
  - two, with *emphasis* and a text that is longer than a line of the terminal
* three

> Quoted, and
> still quoted.

| a | b |
|---|---|

---
2 * 3 is 6. 时间区域时间区域时间区域时间区域时间区域时间区域
";

    #[test]
    fn blocks_are_rendered_for_a_terminal() {
        insta::assert_snapshot!(rendered(TEXT, usize::MAX, 40));
    }

    #[test]
    fn pieces_make_no_difference() {
        let whole = rendered(TEXT, usize::MAX, 40);
        for piece in [1, 2, 3, 7, 20] {
            assert_eq!(rendered(TEXT, piece, 40), whole, "{piece}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [20, 33, 80] {
            for line in rendered(TEXT, 5, width).lines() {
                assert!(crate::terminal::columns(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn finished_lines_do_not_wait_for_the_end_of_a_block() {
        let mut markdown = Markdown::default();
        assert_eq!(markdown.push("These words are more than", 20), ["These words are more"]);
        assert_eq!(markdown.push(" one line.\n", 20), Vec::<String>::new());
        assert_eq!(markdown.push("\n", 20), ["than one line.", ""]);
        // What a mark may still change waits for it.
        assert_eq!(markdown.push("A **mark that is open over lines", 20), Vec::<String>::new());
        assert_eq!(markdown.finish(20).len(), 2);
        assert!(is_settled("a snake_case and `b_c * d` **e** *f* [g](h)") && is_settled("a [1] b"));
        for open in ["a `b", "a *b", "a **b", "_a", "a [b", "a [b](c"] {
            assert!(!is_settled(open), "{open}");
        }
        assert_eq!(markdown.push("```\nlet a;\n", 20).len(), 1);
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_there() {
        let hostile =
            "a \x1b[2J b\r\x07 &#27;[31m `\x1b]0;t\x07`\n```\n\x1b[1mcode\n```\n# \u{9b}31m\n| \x1b |\n";
        for piece in [1, 1_000] {
            let mut markdown = Markdown::default();
            let mut lines = Vec::new();
            for piece in hostile.chars().collect::<Vec<_>>().chunks(piece) {
                lines.extend(markdown.push(&piece.iter().collect::<String>(), 80));
            }
            lines.extend(markdown.finish(80));
            let plain = anstream::adapter::strip_str(&lines.join("\n")).to_string();
            assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{plain:?}");
            // Of ours there are styles alone.
            let all = lines.join("");
            assert!(
                all.split('\x1b').skip(1).all(|rest| rest.starts_with('[') && rest.contains('m')),
                "{all:?}"
            );
            assert!(plain.contains("[2J b"), "{plain:?}");
        }
    }
}
