//! Replacing text in a file: exact, once or everywhere, in the line endings that the file has.

use std::ops::Range;

use serde::Deserialize;

use super::nearest::nearest;
use crate::envelope::{Code, ToolError};

/// One replacement.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Replacement {
    #[serde(alias = "old_string")]
    pub(crate) old: String,
    #[serde(alias = "new_string")]
    pub(crate) new: String,
    #[serde(default, alias = "replace_all")]
    pub(crate) all: bool,
}

/// A text with a replacement made, and the lines that changed, from 1.
#[derive(Debug, PartialEq)]
pub(crate) struct Replaced {
    pub(crate) text: String,
    pub(crate) lines: Vec<Range<usize>>,
}

impl Replacement {
    /// Makes it in a text of the file that is shown as `path`.
    pub(crate) fn make(&self, text: &str, path: &str) -> Result<Replaced, ToolError> {
        if self.old.is_empty() {
            let message = "`old` is empty: say which text is to be replaced, or use Write for a whole file";
            return Err(ToolError::new(Code::InvalidParam, message));
        }
        if self.old == self.new {
            return Err(ToolError::new(
                Code::InvalidParam,
                "`old` and `new` are the same: nothing would change",
            ));
        }
        let found: Vec<usize> = text.match_indices(self.old.as_str()).map(|(at, _)| at).collect();
        if found.is_empty() && text.contains("\r\n") && !self.old.contains("\r\n") && self.old.contains('\n')
        {
            // The file ends its lines as Windows does, and the model does not.
            let as_in_file = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
            let same = Self { old: as_in_file(&self.old), new: as_in_file(&self.new), all: self.all };
            if text.contains(&same.old) {
                return same.make(text, path);
            }
        }
        let new = if text.contains("\r\n") && !text.replace("\r\n", "").contains('\n') {
            self.new.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            self.new.clone()
        };
        match found.as_slice() {
            [] => Err(self.not_found(text, path)),
            [_, _, ..] if !self.all => {
                let lines: Vec<String> =
                    found.iter().take(5).map(|at| line_at(text, *at).to_string()).collect();
                let message = format!(
                    "`old` stands {} times in `{path}` (lines {}{}): add lines around it that only one place has, or set `all`",
                    found.len(),
                    lines.join(", "),
                    if found.len() > 5 { " …" } else { "" }
                );
                Err(ToolError::new(Code::NotUnique, message))
            }
            _ => Ok(self.replaced(text, &found, &new)),
        }
    }

    fn replaced(&self, text: &str, found: &[usize], new: &str) -> Replaced {
        let mut out = String::with_capacity(text.len() + found.len() * new.len());
        let (mut from, mut line, mut lines) = (0, 1, Vec::new());
        let breaks = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        for at in found {
            out.push_str(&text[from..*at]);
            line += breaks(&text[from..*at]);
            out.push_str(new);
            let inside = breaks(new.strip_suffix('\n').unwrap_or(new));
            lines.push(line..line + inside + 1);
            line += breaks(new);
            from = at + self.old.len();
        }
        out.push_str(&text[from..]);
        Replaced { text: out, lines }
    }

    fn not_found(&self, text: &str, path: &str) -> ToolError {
        let numbered = |line: usize, text: &str| {
            (line..)
                .zip(text.lines())
                .map(|(number, line)| format!("{number}\t{line}"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let hint = match nearest(text, &self.old) {
            Some(near) if near.only_space => format!(
                "; only white space differs from lines {} on, which are:\n{}",
                near.line,
                numbered(near.line, &near.text)
            ),
            Some(near) => format!("; the nearest text is:\n{}", numbered(near.line, &near.text)),
            None => "; read the file again, and copy the text as it stands".to_owned(),
        };
        ToolError::new(Code::NoMatch, format!("`old` is not in `{path}`{hint}"))
    }
}

fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}
