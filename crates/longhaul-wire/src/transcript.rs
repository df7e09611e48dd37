//! Longhaul's own transcript: JSON Lines, one message a line, gzip or plain. Read as a
//! stream, with line numbers in errors; a cut last line (a session still being written) is
//! normal and is said, not an error. What was read and not touched is written byte for byte.

mod decode;
mod encode;
mod frame;
mod read;

pub use decode::{DecodeError, decode};
pub(crate) use decode::{parse_time, sniffed_size, text_of};
pub use encode::encode;
pub(crate) use encode::time_text;
pub use frame::frame_of;
pub(crate) use frame::with_frame;
pub use read::{Cut, MAX_LINE, ReadError, Reader, open};
pub(crate) use read::{read_line, unpack};

/// Names that the format has a meaning for.
const NAMES: [&str; 25] = [
    "role",
    "content",
    "usage",
    "model",
    "ts",
    "type",
    "text",
    WORDS,
    "signature",
    "encrypted",
    "redacted",
    "data",
    "id",
    "name",
    "arguments",
    "server",
    "is_error",
    "source",
    "width",
    "height",
    "value",
    "input",
    "output",
    "cache_read",
    "cache_write",
];

/// Which part of a text is the person's own: a start and an end in bytes, or an empty list.
const WORDS: &str = "words";

/// Fields of a line that are Longhaul's own: who put the text there, what a recorded agent did,
/// the API a message came from, the frame. Only a transcript says these things. A field of such
/// a name that came from elsewhere is no more than an unknown field.
const OWN_NAMES: [&str; 6] = [ATTACHMENT, COMPACT, COMPACT_SUMMARY, EXTRA, ORIGIN, DEVELOPER];
const ATTACHMENT: &str = "attachment";
const COMPACT: &str = "compact";
const COMPACT_SUMMARY: &str = "compact_summary";
/// Holds the frame, and what else the writer of a transcript wanted to keep.
const EXTRA: &str = "extra";
/// Names the API that a message was read from.
pub(crate) const ORIGIN: &str = longhaul::conversation::API_FIELD;
/// The name that an API has for the role, where it has several for one of ours.
pub(crate) const DEVELOPER: &str = "developer";

/// An unknown field that has such a name (another format's item has an `id` beside the one
/// that names its call) is written with a `+` before it.
fn is_escaped(name: &str) -> bool {
    NAMES.contains(&name.trim_start_matches('+'))
}

/// The same for the fields of a line: more names have a meaning there.
fn is_escaped_in_line(name: &str) -> bool {
    is_escaped(name) || OWN_NAMES.contains(&name.trim_start_matches('+'))
}

/// The name of this format in [`longhaul::conversation::Raw`].
pub const FORMAT: &str = "longhaul";

#[cfg(test)]
mod tests;
