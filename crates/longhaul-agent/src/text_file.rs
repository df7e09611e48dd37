//! A file of text: read and written in its own encoding, with its own line endings, whole or not at all.

use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::path::Path;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::envelope::{Code, ToolError};
use crate::files_read::Stamp;
use crate::project::Place;

/// A file of text that was read whole.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) text: String,
    pub(crate) stamp: Stamp,
    encoding: &'static Encoding,
    /// It begins with a byte order mark.
    mark: bool,
    metadata: Metadata,
}

/// Larger files are not edited, and are read in parts.
pub(crate) const LARGEST: u64 = 16 << 20;

/// So many bytes at its start tell whether a file is text.
const SAMPLE: usize = 8_192;

impl TextFile {
    /// Reads a file of at most 16 MB.
    pub(crate) fn read(place: &Place) -> Result<Self, ToolError> {
        let file = place.open()?;
        let failed = |error: io::Error| ToolError::of_io(&error, place.shown());
        let metadata = file.metadata().map_err(failed)?;
        is_file(&metadata, place)?;
        if metadata.len() > LARGEST {
            return Err(ToolError::new(
                Code::TooLarge,
                format!(
                    "`{}` has {} bytes; files of more than {LARGEST} cannot be edited",
                    place.shown(),
                    metadata.len()
                ),
            ));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
        let (encoding, mark) = encoding(&bytes);
        if encoding == UTF_8 && is_binary(&bytes) {
            return Err(binary(place));
        }
        let stamp = Stamp::of(&metadata, Some(&bytes));
        let text = encoding.decode_without_bom_handling_and_without_replacement(
            &bytes[if mark { mark_of(encoding).len() } else { 0 }..],
        );
        let Some(text) = text else {
            return Err(ToolError::new(
                Code::Binary,
                format!(
                    "`{}` is neither UTF-8 nor UTF-16 text; use Bash to convert or change it",
                    place.shown()
                ),
            ));
        };
        Ok(Self { text: text.into_owned(), stamp, encoding, mark, metadata })
    }

    /// Writes another text into the file, in its encoding and with its mode.
    pub(crate) fn write(&self, place: &Place, text: &str) -> Result<Stamp, ToolError> {
        let mut bytes = if self.mark { mark_of(self.encoding).to_vec() } else { Vec::new() };
        if self.encoding == UTF_16LE {
            bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        } else if self.encoding == UTF_16BE {
            bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
        } else {
            bytes.extend_from_slice(text.as_bytes());
        }
        replace(place, &bytes, Some(&self.metadata))
    }
}

/// True for a path that is a plain file: neither a folder, nor a device or pipe.
pub(crate) fn is_file(metadata: &Metadata, place: &Place) -> Result<(), ToolError> {
    let what = match (metadata.is_dir(), metadata.is_file()) {
        (_, true) => return Ok(()),
        (true, _) => "is a folder; use LS",
        _ => "is no plain file",
    };
    Err(ToolError::new(Code::InvalidParam, format!("`{}` {what}", place.shown())))
}

/// The error for a file that is no text.
pub(crate) fn binary(place: &Place) -> ToolError {
    ToolError::new(Code::Binary, format!("`{}` is no text; use Bash to look at it", place.shown()))
}

/// True if bytes are no text in UTF-8 or the like: there is a NUL at their start.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(SAMPLE)].contains(&0)
}

/// The encoding that a byte order mark names, and whether there is one.
pub(crate) fn encoding(bytes: &[u8]) -> (&'static Encoding, bool) {
    Encoding::for_bom(bytes).map_or((UTF_8, false), |(encoding, _)| (encoding, true))
}

fn mark_of(encoding: &'static Encoding) -> &'static [u8] {
    if encoding == UTF_16LE {
        &[0xff, 0xfe]
    } else if encoding == UTF_16BE {
        &[0xfe, 0xff]
    } else {
        &[0xef, 0xbb, 0xbf]
    }
}

/// Puts a file in the place of another, whole or not at all, with the mode of the one that was there.
pub(crate) fn replace(place: &Place, bytes: &[u8], before: Option<&Metadata>) -> Result<Stamp, ToolError> {
    let failed = |error: io::Error| ToolError::of_io(&error, place.shown());
    let folder = place.path().parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(failed)?;
    // A folder that became a link since the path was resolved leads elsewhere.
    if folder.canonicalize().map_err(failed)? != folder {
        return Err(ToolError::new(
            Code::OutsideRoot,
            format!("`{}` was moved away meanwhile", place.shown()),
        ));
    }
    if before.is_some_and(|before| before.permissions().readonly()) {
        return Err(ToolError::new(Code::AccessDenied, format!("`{}` is read-only", place.shown())));
    }
    let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    match before {
        Some(before) => file.as_file().set_permissions(before.permissions()).map_err(failed)?,
        None => file.as_file().set_permissions(new_file_mode()).map_err(failed)?,
    }
    file.as_file().sync_all().map_err(failed)?;
    let file = file.persist(place.path()).map_err(|error| failed(error.error))?;
    Ok(Stamp::of(&file.metadata().map_err(failed)?, Some(bytes)))
}

/// The mode of a new file: as the user's mask says.
#[cfg(unix)]
fn new_file_mode() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666 & !mask())
}

/// The user's mask, without changing it: it is the same for all threads.
#[cfg(target_os = "linux")]
fn mask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn mask() -> u32 {
    0o022
}
