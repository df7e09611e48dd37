//! A text without its middle: where a head ends and a tail begins, counted in bytes, characters
//! or lines, and the two with a mark between them. What the mark says is for the caller.

use std::ops::Range;

/// All but the first `head` and the last `tail` bytes; less is kept where a character would be
/// cut in two.
pub(crate) fn middle_by_bytes(text: &str, head: usize, tail: usize) -> Range<usize> {
    text.floor_char_boundary(head)..text.ceil_char_boundary(text.len().saturating_sub(tail))
}

/// All but the first `head` and the last `tail` of `all` characters.
pub(crate) fn middle_by_characters(text: &str, all: usize, head: usize, tail: usize) -> Range<usize> {
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    at(head)..at(all.saturating_sub(tail))
}

/// All but the first `head` and the last `tail` of `all` lines. A line goes with its end.
pub(crate) fn middle_by_lines(text: &str, all: usize, head: usize, tail: usize) -> Range<usize> {
    let end_of = |n: usize| text.match_indices('\n').nth(n).map_or(text.len(), |(at, _)| at + 1);
    let at = |n: usize| n.checked_sub(1).map_or(0, end_of);
    at(head)..at(all.saturating_sub(tail))
}

/// The text with a mark, on a line of its own, in place of its middle; `None` if that would not
/// be shorter.
pub(crate) fn with_mark(text: &str, middle: Range<usize>, mark: &str) -> Option<String> {
    let (head, tail) = (&text[..middle.start], &text[middle.end..]);
    let before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let short = [head, before, mark, "\n", tail].concat();
    (short.len() < text.len()).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_middle_lies_between_characters_and_lines() {
        let text = "äb\ncd\nef\ngh";
        assert_eq!(middle_by_bytes(text, 1, 1), 0..text.len() - 1);
        assert_eq!(&text[middle_by_characters(text, 11, 2, 1)], "\ncd\nef\ng");
        assert_eq!(&text[middle_by_lines(text, 4, 1, 1)], "cd\nef\n");
        assert_eq!(middle_by_lines(text, 4, 0, 0), 0..text.len());
        assert_eq!(middle_by_bytes(text, 0, 99), 0..0);
    }

    #[test]
    fn a_mark_has_its_own_line_and_its_price() {
        let text = "head and what follows\ntail";
        assert_eq!(with_mark(text, 4..22, "[…]").as_deref(), Some("head\n[…]\ntail"));
        assert_eq!(with_mark("one\ntwo and three\n", 4..18, "[…]").as_deref(), Some("one\n[…]\n"));
        assert_eq!(with_mark(text, 4..8, "[…]"), None);
    }
}
