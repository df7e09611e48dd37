//! The first line of defence: a result that is too large enters cut, with a hint that names its
//! tool, its size, what was kept and where the rest is.

use std::ops::Range;

use crate::edits::archive::Handle;
use crate::text::cut::{middle_by_bytes, middle_by_characters, middle_by_lines, with_mark};

/// What a result may have when it enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Characters.
    pub characters: usize,
    /// Bytes.
    pub bytes: usize,
    /// Lines.
    pub lines: usize,
    /// What of it is kept.
    pub ends: Ends,
}

/// Which ends of a text are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The start.
    Head,
    /// The end.
    Tail,
    /// Two thirds from the start, one from the end: exit codes and last errors stand there.
    Both,
}

impl Cut {
    /// Nothing is cut.
    pub const NONE: Self =
        Self { characters: usize::MAX, bytes: usize::MAX, lines: usize::MAX, ends: Ends::Both };

    /// The text cut; `None` if it fits, or if the cut would not be shorter.
    pub(crate) fn apply(self, text: &str, tool: &str, handle: impl Fn() -> Handle) -> Option<String> {
        // A text of few bytes has few characters and few lines.
        if text.len() <= self.characters.min(self.bytes).min(self.lines) {
            return None;
        }
        let characters = text.chars().count();
        let lines = text.lines().count();
        if characters <= self.characters && text.len() <= self.bytes && lines <= self.lines {
            return None;
        }
        let share = |of: usize| match self.ends {
            Ends::Head => (of, 0),
            Ends::Tail => (0, of),
            Ends::Both => (of - of / 3, of / 3),
        };
        // Where each limit that is passed lets the head end and the tail begin.
        let (mut start, mut end) = (text.len(), 0);
        let mut leave_out =
            |middle: Range<usize>| (start, end) = (start.min(middle.start), end.max(middle.end));
        if text.len() > self.bytes {
            let (head, tail) = share(self.bytes);
            leave_out(middle_by_bytes(text, head, tail));
        }
        if characters > self.characters {
            let (head, tail) = share(self.characters);
            leave_out(middle_by_characters(text, characters, head, tail));
        }
        if lines > self.lines {
            let (head, tail) = share(self.lines);
            leave_out(middle_by_lines(text, lines, head, tail));
        }
        let handle = handle().short();
        let mark = |middle: &Range<usize>| {
            let gone = text[middle.clone()].chars().count();
            let kept = characters - gone;
            format!(
                "⟦{tool}: {characters} characters in {lines} lines, {kept} kept, {gone} left out; recall {handle}⟧"
            )
        };
        let middle = start..end.max(start);
        let (head, tail) = share(missing(&middle, &mark(&middle)));
        let start = text.floor_char_boundary(middle.start.saturating_sub(head));
        let end = text.ceil_char_boundary((middle.end + tail).min(text.len()));
        with_mark(text, start..end, &mark(&(start..end)))
    }
}

/// How many bytes more must be left out so that the mark, on a line of its own, is shorter than what it
/// stands for: or a text that is a little over a limit would enter whole.
fn missing(middle: &Range<usize>, mark: &str) -> usize {
    /// Two line ends, and digits that the figures of the mark may gain.
    const MORE: usize = 8;
    (mark.len() + MORE).saturating_sub(middle.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(limits: Cut, text: &str) -> Option<String> {
        limits.apply(text, "Bash", || Handle::of(text))
    }

    // covers: M-TRUNC
    #[test]
    fn eight_thousand_characters_enter_and_one_more_does_not() {
        let mini = Cut { characters: 8_000, ..Cut::NONE };
        assert_eq!(cut(mini, &"字".repeat(8_000)), None);
        assert!(cut(mini, &"字".repeat(8_001)).unwrap().matches('字').count() < 8_000);
        let text = format!("{}exit code 1", "x".repeat(9_000));
        let short = cut(mini, &text).unwrap();
        assert!(
            short.contains("\n⟦Bash: 9011 characters in 1 lines, 8000 kept, 1011 left out; recall "),
            "{short}"
        );
        assert!(short.ends_with("exit code 1"));
    }

    // covers: T-CAP A-TRUNC
    #[test]
    fn fifty_kilobytes_and_two_thousand_lines() {
        let cap = Cut { bytes: 50 << 10, lines: 2_000, ..Cut::NONE };
        assert_eq!(cut(cap, &"y".repeat(51_200)), None);
        assert!(cut(cap, &"y".repeat(51_201)).unwrap().len() < 51_201);
        assert!(cut(cap, &"y".repeat(52_000)).unwrap().len() < 51_400);
        assert_eq!(cut(cap, &"z\n".repeat(2_000)), None);
        assert!(cut(cap, &"z\n".repeat(2_001)).unwrap().lines().count() < 2_000);
        let text: String = (0..2_500).map(|n| format!("row {n}\n")).collect();
        let short = cut(cap, &text).unwrap();
        assert!(short.contains("row 1333\n⟦Bash: ") && short.contains("⟧\nrow 1834\n"), "{short}");
        let head = cut(Cut { ends: Ends::Head, ..cap }, &text).unwrap();
        assert!(head.contains("row 1999\n⟦") && head.ends_with("⟧\n"), "{head}");
        let tail = cut(Cut { ends: Ends::Tail, ..cap }, &text).unwrap();
        assert!(tail.starts_with('⟦') && tail.contains("⟧\nrow 500\n"), "{tail}");
    }

    proptest! {
        #[test]
        fn what_is_kept_is_of_the_text_and_within_all_limits(
            text in "(\\PC{0,40}\n|[a-z ]{0,30}\r\n|中{0,30}){0,40}",
            characters in 0usize..400, bytes in 0usize..900, lines in 0usize..30, pick in 0usize..3,
        ) {
            let limits = Cut { characters, bytes, lines, ends: [Ends::Head, Ends::Tail, Ends::Both][pick] };
            if let Some(short) = cut(limits, &text) {
                prop_assert!(short.len() < text.len());
                let at = short.find("⟦Bash: ").unwrap();
                let end = at + short[at..].find("⟧\n").unwrap() + "⟧\n".len();
                let head = &short[..at];
                let head = if text.starts_with(head) { head } else { head.strip_suffix('\n').unwrap() };
                prop_assert!(text.starts_with(head) && text.ends_with(&short[end..]));
                // A line end before the mark may be the text's own or not.
                let kept = format!("{head}{}", &short[end..]);
                prop_assert!(kept.chars().count() <= characters + 1 && kept.len() <= bytes + 1 && kept.lines().count() <= lines + 1, "{:?}", short);
            }
        }
    }
}
