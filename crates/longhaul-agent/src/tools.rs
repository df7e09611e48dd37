//! The tools, one file each. A new one is added here, in `toolbox.rs`, and nowhere else.

pub(crate) mod bash;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod ls;
pub(crate) mod multi_edit;
pub(crate) mod nearest;
pub(crate) mod read;
pub(crate) mod replacing;
pub(crate) mod walk;
pub(crate) mod write;

/// Lines of a result at most.
pub(crate) const LINES: usize = 2_000;
/// Bytes of a result at most.
pub(crate) const BYTES: usize = 50 << 10;
/// Characters of a line at most.
pub(crate) const WIDE: usize = 2_000;

/// A line that is not too long to be shown, and whether something was cut off.
pub(crate) fn cut(line: &str) -> (std::borrow::Cow<'_, str>, bool) {
    if line.len() <= WIDE {
        return (line.into(), false);
    }
    match line.char_indices().nth(WIDE) {
        None => (line.into(), false),
        Some((at, _)) => {
            let more = line[at..].chars().count();
            (format!("{}… ({more} characters more)", &line[..at]).into(), true)
        }
    }
}
