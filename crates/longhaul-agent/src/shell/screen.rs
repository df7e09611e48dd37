//! What a terminal would show of output: lines as they stand at last, without colours and other control sequences.

use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// ESC [ as one character.
const CONTROL_SEQUENCE: char = '\u{9b}';

/// The text that a terminal would show. Bytes that are no UTF-8 are replaced, controls are not passed on.
pub(crate) fn text(bytes: &[u8]) -> String {
    let all = String::from_utf8_lossy(bytes);
    if !all.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return all.into_owned();
    }
    let mut screen = Screen { done: String::with_capacity(all.len()), line: Vec::new(), column: 0 };
    let mut chars = all.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ESCAPE => screen.escape(&mut chars),
            CONTROL_SEQUENCE => screen.control_sequence(&mut chars),
            '\n' => screen.end_line(true),
            '\r' => screen.column = 0,
            '\u{8}' => screen.column = screen.column.saturating_sub(1),
            '\t' => screen.put('\t'),
            c if c.is_control() => {}
            c => screen.put(c),
        }
    }
    screen.end_line(false);
    screen.done
}

struct Screen {
    done: String,
    line: Vec<char>,
    /// Where the next character goes.
    column: usize,
}

impl Screen {
    fn put(&mut self, c: char) {
        match self.line.get_mut(self.column) {
            Some(before) => *before = c,
            None => self.line.push(c),
        }
        self.column += 1;
    }

    fn end_line(&mut self, is_ended: bool) {
        self.done.extend(self.line.drain(..));
        if is_ended {
            self.done.push('\n');
        }
        self.column = 0;
    }

    fn escape(&mut self, chars: &mut Peekable<Chars>) {
        match chars.peek() {
            Some('[') => {
                chars.next();
                self.control_sequence(chars);
            }
            // A title, a link and the like: up to a bell or ESC \. One that is broken takes no more than its line.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    if c == BELL || (c == ESCAPE && chars.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            // A set of characters: one more tells which.
            Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                chars.next();
                chars.next_if(|c| c.is_ascii_graphic());
            }
            _ => {
                chars.next_if(|c| c.is_ascii_graphic());
            }
        }
    }

    /// Parameters and a letter, behind ESC [.
    fn control_sequence(&mut self, chars: &mut Peekable<Chars>) {
        let mut parameters = String::new();
        while let Some(c) = chars.next_if(|c| matches!(c, ' '..='?')) {
            parameters.push(c);
        }
        let number: Option<usize> = parameters.parse().ok();
        match chars.next_if(|c| matches!(c, '@'..='~')) {
            // Erases the line: from here on, up to here, or all of it.
            Some('K') => match number {
                Some(1) => self.line.iter_mut().take(self.column + 1).for_each(|c| *c = ' '),
                Some(2) => self.line.iter_mut().for_each(|c| *c = ' '),
                _ => self.line.truncate(self.column),
            },
            Some('G') => self.column = number.unwrap_or(1).saturating_sub(1).min(self.line.len()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_bar_is_its_last_state() {
        assert_eq!(text(b"a\r\nb\r\n"), "a\nb\n");
        assert_eq!(text(b" 10 %\r 50 %\r100 %\ndone\n"), "100 %\ndone\n");
        assert_eq!(text(b"Downloading 12 crates\r\x1b[KDone\n"), "Done\n");
        assert_eq!(text(b"long line\rshort\n"), "shortline\n");
        assert_eq!(text(b"tick\x1b[1G\x1b[0Ktock"), "tock");
        assert_eq!(text(b"ab\x08\x08cd"), "cd");
    }

    #[test]
    fn colours_titles_and_controls_are_left_out() {
        assert_eq!(text(b"\x1b[1;31merror\x1b[0m: no\n"), "error: no\n");
        assert_eq!(text(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"), "alink\n");
        assert_eq!(text(b"a\0b\x01c\x07\td\x1b(Be\x1b=f"), "abc\tdef");
        assert_eq!(text("\u{9b}31mred\u{9b}0m\u{85}".as_bytes()), "red");
        assert_eq!(text(b"caf\xe9 \xff"), "caf\u{fffd} \u{fffd}");
    }

    #[test]
    fn a_sequence_that_is_broken_off_takes_no_line_with_it() {
        assert_eq!(text(b"a\x1b]0;never ended\nb\n"), "a\nb\n");
        assert_eq!(text(b"a\x1b[31\nb\n"), "a\nb\n");
        assert_eq!(text(b"a\x1b"), "a");
        assert_eq!(text(b"a\x1b["), "a");
    }
}
