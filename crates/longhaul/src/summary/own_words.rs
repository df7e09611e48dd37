//! What a person wrote themselves in a message: neither what they pasted nor what they quoted or
//! attached. A sentence of a pasted file is nobody's wish.

use std::collections::HashSet;

/// A text of more characters or lines than this holds a paste: people write above it or below it.
const LONG: (usize, usize) = (3_000, 40);
/// A paragraph of more characters or lines than this is a paste. Its first line may lead to it.
const LONG_PARAGRAPH: (usize, usize) = (1_200, 12);

/// The lines of a text that are a person's own words: without fenced, tagged and indented blocks, without
/// quoted lines, and without what is too long to have been typed.
pub(super) fn own_words(text: &str) -> String {
    let text = without_tagged(text);
    let paragraphs = paragraphs(&text);
    let is_long = is_longer(paragraphs.iter().flatten(), LONG);
    let last = paragraphs.len().saturating_sub(1);
    let typed = paragraphs.iter().enumerate().filter(|(at, _)| !is_long || *at == 0 || *at == last);
    let lines = typed.flat_map(|(_, lines)| match is_longer(lines.iter(), LONG_PARAGRAPH) {
        true => &lines[..1],
        false => lines,
    });
    let short = lines.filter(|line| line.chars().count() <= LONG_PARAGRAPH.0);
    short.copied().collect::<Vec<_>>().join("\n")
}

fn is_longer<'a>(lines: impl Iterator<Item = &'a &'a str>, (characters, count): (usize, usize)) -> bool {
    let sizes = lines.map(|line| line.chars().count());
    let (all, number) = sizes.fold((0, 0), |(all, number), size| (all + size, number + 1));
    all > characters || number > count
}

/// The runs of lines between empty lines, without lines that are quoted, fenced or code.
fn paragraphs(text: &str) -> Vec<Vec<&str>> {
    let mut paragraphs: Vec<Vec<&str>> = vec![Vec::new()];
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(open) = fence {
            if trimmed.starts_with(open) {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|sign| trimmed.starts_with(sign));
        if fence.is_some() || trimmed.is_empty() {
            paragraphs.push(Vec::new());
        } else if let Some(paragraph) = paragraphs.last_mut().filter(|_| !is_quoted(line)) {
            paragraph.push(trimmed);
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// True for a line that is marked as a quotation, stands in quotation marks, or is indented as code is.
fn is_quoted(line: &str) -> bool {
    let trimmed = line.trim();
    let in_marks =
        |[open, close]: [char; 2]| trimmed.len() > 1 && trimmed.starts_with(open) && trimmed.ends_with(close);
    let is_code = (line.starts_with("    ") || line.starts_with('\t')) && !trimmed.starts_with(['-', '*']);
    let marks = [['"', '"'], ['“', '”'], ['「', '」'], ['『', '』'], ['《', '》']];
    trimmed.starts_with(['>', '|']) || is_code || marks.into_iter().any(in_marks)
}

/// The text without blocks such as `<file>…</file>`. A tag that nothing closes is text.
fn without_tagged(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut unclosed: HashSet<&str> = HashSet::new();
    while let Some(at) = rest.find('<') {
        let (before, tagged) = rest.split_at(at);
        out.push_str(before);
        let name = tag_name(&tagged[1..]).filter(|name| !unclosed.contains(name));
        match name.map(|name| (name, end_of_block(tagged, name))) {
            Some((_, Some(end))) => rest = &tagged[end..],
            Some((name, None)) => {
                unclosed.insert(name);
                out.push('<');
                rest = &tagged[1..];
            }
            None => {
                out.push('<');
                rest = &tagged[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The name of a tag that opens here, behind its `<`.
fn tag_name(text: &str) -> Option<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let end = text.find(|c| !is_of_name(c))?;
    let opens = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let ends = text[end..].starts_with(['>', ' ', '\n']);
    (opens && ends).then_some(&text[..end])
}

/// Where the block ends that this tag opens: behind the tag that closes it, blocks of its own name inside
/// it included.
fn end_of_block(text: &str, name: &str) -> Option<usize> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut depth = 0;
    let mut at = 0;
    while let Some(next) = text[at..].find('<') {
        at += next;
        if text[at..].starts_with(&close) {
            depth -= 1;
            if depth == 0 {
                return Some(at + close.len());
            }
        } else if text[at..].starts_with(&open) && tag_name(&text[at + 1..]) == Some(name) {
            depth += 1;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_are_the_persons_own_in_any_language() {
        for text in [
            "Never touch the lock file.",
            "不要修改公开接口。\n尽量少用依赖。",
            "a < b, and Vec<String> stays",
        ] {
            assert_eq!(own_words(text), text);
        }
    }

    #[test]
    fn fenced_quoted_and_indented_lines_are_not() {
        let text = "Fix this:\n```toml\n# You must never edit this.\n```\nThanks.\n> You should always ask.\n\
                    \tmust_be_set()\n    // must be first\n    - only tabs\n“必须先编译。”\n请务必写测试。";
        assert_eq!(own_words(text), "Fix this:\nThanks.\n- only tabs\n请务必写测试。");
        // A fence of one kind inside the other, and one that nothing closes.
        assert_eq!(own_words("a\n~~~\n```\nmust\n~~~\nb\n```\nnever"), "a\nb");
    }

    #[test]
    fn tagged_blocks_are_not() {
        let text = "Look: <file path=\"a.md\">\nAlways use tabs.\n<file>x</file>\nNever.\n</file> and be brief.\n\
                    <文件> stays, <Pin> stays, and so does <br/>";
        assert_eq!(own_words(text), "Look:  and be brief.\n<文件> stays, <Pin> stays, and so does <br/>");
        assert_eq!(own_words("看这个：<log>\n必须重启。\n</log>\n不要重启。"), "看这个：\n不要重启。");
    }

    #[test]
    fn long_pastes_are_not() {
        let lines: String = (0..30).map(|n| format!("You must never do thing {n}.\n")).collect();
        // In one paragraph with what leads to it.
        assert_eq!(
            own_words(&format!("Sum this up:\n{lines}\nOnly in English.")),
            "Sum this up:\nOnly in English."
        );
        // In many paragraphs, between words above and below.
        let chapters: String = (0..30).map(|n| format!("第 {n} 条：\n\n员工必须戴帽子。\n\n")).collect();
        assert_eq!(own_words(&format!("请总结：\n\n{chapters}不要超过一页。")), "请总结：\n不要超过一页。");
        // On one line.
        assert_eq!(own_words(&format!("Read it.\n{}", "You must obey. ".repeat(100))), "Read it.");
    }

    #[test]
    fn a_text_full_of_tags_takes_no_time() {
        let text = "<a <b <c ".repeat(20_000);
        assert_eq!(own_words(&text), "");
    }
}
