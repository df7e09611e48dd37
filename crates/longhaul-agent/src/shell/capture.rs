//! The start and the end of a stream, in bounded memory, and what is shown of them.

use std::borrow::Cow;

use super::screen;
use crate::tools::LINES;

/// Bytes kept at the start; at the end up to twice as many. As they came: progress bars shrink when they are shown.
const KEPT: usize = 256 << 10;

/// The start and the end of a stream.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
    lines: u64,
}

/// What is shown of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// More was there.
    pub(crate) is_cut: bool,
}

impl Capture {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let room = KEPT - self.head.len();
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > 2 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// Bytes that came.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lines that came to their end.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// All that came, while nothing of it was dropped.
    pub(crate) fn all(&self) -> Option<Cow<'_, [u8]>> {
        if self.kept() as u64 != self.bytes {
            return None;
        }
        Some(if self.tail.is_empty() {
            Cow::Borrowed(&self.head)
        } else {
            Cow::Owned([self.head.as_slice(), &self.tail].concat())
        })
    }

    /// What is shown in so many bytes: all, or two fifths from the start and three from the end, where errors are.
    pub(crate) fn excerpt(&self, room: usize) -> Excerpt {
        let (start, end) = match self.all() {
            Some(all) => {
                let text = screen::text(&all);
                if text.len() <= room && text.lines().count() <= LINES {
                    return Excerpt { text, is_cut: false };
                }
                (text.clone(), text)
            }
            // The tail begins somewhere in a line, or in a sequence of controls.
            None => {
                let line = memchr::memchr(b'\n', &self.tail).map_or(0, |at| at + 1);
                (screen::text(&self.head), screen::text(&self.tail[line..]))
            }
        };
        let head = first_lines(&start, LINES * 2 / 5, room * 2 / 5);
        let tail = last_lines(&end, LINES * 3 / 5, room * 3 / 5);
        let shown_lines = (head.lines().count() + tail.lines().count()) as u64;
        let shown_bytes = (head.len() + tail.len()) as u64;
        let left_out = match self.lines.saturating_sub(shown_lines) {
            0 => format!("{} bytes", self.bytes.saturating_sub(shown_bytes)),
            lines => format!("{lines} lines"),
        };
        let end_of_line = if head.ends_with('\n') { "" } else { "\n" };
        Excerpt {
            text: format!("{head}{end_of_line}… {left_out} are left out here …\n{tail}"), is_cut: true
        }
    }
}

/// Lines from the start; a part of the first, where it alone is too long.
fn first_lines(text: &str, lines: usize, bytes: usize) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            break;
        }
        end += line.len();
    }
    &text[..if end == 0 { text.floor_char_boundary(bytes) } else { end }]
}

/// Lines from the end; a part of the last, where it alone is too long.
fn last_lines(text: &str, lines: usize, bytes: usize) -> &str {
    let mut start = text.len();
    for line in text.split_inclusive('\n').rev().take(lines) {
        if text.len() - start + line.len() > bytes {
            break;
        }
        start -= line.len();
    }
    let cut = |from: usize| text.ceil_char_boundary(from);
    &text[if start == text.len() { cut(text.len().saturating_sub(bytes)) } else { start }..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::BYTES;

    fn captured(chunks: impl IntoIterator<Item = Vec<u8>>) -> Capture {
        let mut capture = Capture::default();
        chunks.into_iter().for_each(|chunk| capture.push(&chunk));
        capture
    }

    #[test]
    fn little_is_shown_as_it_is() {
        let excerpt = captured([b"one\n".to_vec(), b"two".to_vec()]).excerpt(BYTES);
        assert_eq!(excerpt, Excerpt { text: "one\ntwo".to_owned(), is_cut: false });
    }

    // covers: A-TRUNC
    #[test]
    fn much_is_shown_from_both_ends_and_memory_is_bounded() {
        let lines = (0..2_000_000).map(|n| format!("line {n}\n").into_bytes());
        let capture = captured(lines);
        assert!(capture.kept() <= 3 * KEPT);
        assert_eq!(capture.lines(), 2_000_000);
        let Excerpt { text, is_cut } = capture.excerpt(BYTES);
        assert!(is_cut && text.len() <= BYTES + 100 && text.lines().count() <= LINES + 1);
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 1999999\n"), "{text}");
        let mark = text.lines().find(|line| line.starts_with('…')).unwrap();
        assert_eq!(mark, "… 1998000 lines are left out here …");
        // Lines stand whole on both sides of the gap.
        assert!(text.lines().all(|line| line.starts_with("line ") || line == mark));
    }

    #[test]
    fn a_line_without_end_is_cut_between_characters() {
        let capture = captured((0..1_000).map(|_| "äöü€".repeat(1_000).into_bytes()));
        let Excerpt { text, is_cut } = capture.excerpt(BYTES);
        assert!(is_cut && text.len() <= BYTES + 100, "{}", text.len());
        assert!(text.starts_with("äöü€") && text.ends_with("äöü€"));
        assert!(text.contains("bytes are left out here"), "{text}");
    }

    #[test]
    fn a_long_progress_bar_is_a_short_line() {
        let capture = captured((0..20_000).map(|n| format!("\r{n} of 20000").into_bytes()));
        assert_eq!(capture.excerpt(BYTES), Excerpt { text: "19999 of 20000".to_owned(), is_cut: false });
    }
}
