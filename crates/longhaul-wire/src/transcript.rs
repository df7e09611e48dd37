//! Longhaul's own transcript: JSON Lines, one message a line, gzip or plain. Read as a
//! stream, with line numbers in errors; a cut last line (a session still being written) is
//! normal and is said, not an error. What was read and not touched is written byte for byte.

mod decode;
mod encode;
mod read;

pub use decode::{DecodeError, decode};
pub(crate) use decode::{parse_time, sniffed_size, text_of};
pub use encode::encode;
pub use read::{Cut, MAX_LINE, ReadError, Reader, open};
pub(crate) use read::{read_line, unpack};

/// Names that the format has a meaning for.
const NAMES: [&str; 24] = [
    "role",
    "content",
    "usage",
    "model",
    "ts",
    "type",
    "text",
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

/// An unknown field that has such a name (another format's item has an `id` beside the one
/// that names its call) is written with a `+` before it.
fn is_escaped(name: &str) -> bool {
    NAMES.contains(&name.trim_start_matches('+'))
}

/// The name of this format in [`longhaul::Raw`].
pub const FORMAT: &str = "longhaul";

#[cfg(test)]
mod tests;
