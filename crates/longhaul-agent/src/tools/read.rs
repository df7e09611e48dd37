//! Read: lines of a file with their numbers, or a picture.

use std::io::{BufRead, BufReader, Read as _};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{BYTES, LINES, cut, walk};
use crate::envelope::{Code, Envelope, Image, ToolError};
use crate::files_read::Stamp;
use crate::project::{Place, Project};
use crate::text_file::{LARGEST, TextFile, binary, is_binary, is_file};
use crate::tool::{Effect, FileTool};

pub(crate) struct Read;

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(alias = "file_path")]
    path: String,
    /// The first line, from 1.
    #[serde(default, alias = "start_line")]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

/// Pictures that models look at, by the end of their names and how they begin.
const IMAGES: [(&str, &str, &[u8]); 5] = [
    ("png", "image/png", b"\x89PNG"),
    ("jpg", "image/jpeg", b"\xff\xd8\xff"),
    ("jpeg", "image/jpeg", b"\xff\xd8\xff"),
    ("gif", "image/gif", b"GIF8"),
    ("webp", "image/webp", b"RIFF"),
];
/// Bytes of a picture at most: providers take about five megabytes in base64.
const LARGEST_IMAGE: u64 = 3_750_000;
/// A line of a large file is read up to here.
const LONGEST_LINE: u64 = 1 << 20;

impl FileTool for Read {
    type Arguments = Arguments;
    const NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = "Reads a file of the project: lines with their numbers and a tab before them \
        (these are not part of the file), at most 2,000 lines or 50 KB at a time; `offset` and `limit` read a part. \
        Pictures (png, jpg, gif, webp) are shown. Read a file before changing it.";

    fn schema() -> (Value, &'static [&'static str]) {
        let properties = json!({
            "path": { "type": "string", "description": "The file, from the project root on" },
            "offset": { "type": "integer", "description": "The first line to read, from 1" },
            "limit": { "type": "integer", "description": "How many lines" },
        });
        (properties, &["path"])
    }

    fn effect(_: &Arguments) -> Effect {
        Effect::Reads
    }

    fn run(project: &Project, arguments: Arguments, stop: &CancellationToken) -> Result<Envelope, ToolError> {
        let place = project.place(&arguments.path)?;
        let file = place.open().map_err(|error| missing(project, error, &place))?;
        let metadata = file.metadata().map_err(|error| ToolError::of_io(&error, place.shown()))?;
        is_file(&metadata, &place)?;
        if let Some(media_type) = image_type(&place) {
            return image(&place, media_type, metadata.len());
        }
        let mut page = Page::new(&arguments);
        let stamp = if metadata.len() > LARGEST {
            page.take_large(file, &place, stop)?;
            Stamp::of(&metadata, None)
        } else {
            let file = TextFile::read(&place)?;
            for line in file.text.split_inclusive('\n') {
                page.take(line);
            }
            file.stamp
        };
        let mtime = stamp.mtime_ms();
        let is_other = project.read().see(place.path(), stamp);
        Ok(page.envelope(&place, mtime, is_other))
    }
}

/// Lines of a file on their way to the model.
struct Page {
    first: usize,
    most: usize,
    /// How many lines were looked at.
    seen: usize,
    shown: usize,
    text: String,
    /// Lines that were cut.
    cut: usize,
    /// There is no more room.
    full: bool,
}

impl Page {
    fn new(arguments: &Arguments) -> Self {
        Self {
            first: arguments.offset.unwrap_or(1).max(1),
            most: arguments.limit.unwrap_or(LINES).clamp(1, LINES),
            seen: 0,
            shown: 0,
            text: String::new(),
            cut: 0,
            full: false,
        }
    }

    fn take(&mut self, line: &str) {
        self.seen += 1;
        if self.seen < self.first || self.full {
            return;
        }
        let (line, is_cut) = cut(line.trim_end_matches('\n').trim_end_matches('\r'));
        if self.shown == self.most || (self.shown > 0 && self.text.len() + line.len() > BYTES) {
            self.full = true;
            return;
        }
        self.cut += usize::from(is_cut);
        self.shown += 1;
        self.text.push_str(&format!("{}\t{line}\n", self.seen));
    }

    /// Goes through a file that is too large to be held.
    fn take_large(
        &mut self,
        file: std::fs::File,
        place: &Place,
        stop: &CancellationToken,
    ) -> Result<(), ToolError> {
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let failed = |error| ToolError::of_io(&error, place.shown());
            if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(failed)? == 0 {
                return Ok(());
            }
            if self.seen == 0 && is_binary(&line) {
                return Err(binary(place));
            }
            if !line.ends_with(b"\n") {
                reader.skip_until(b'\n').map_err(failed)?;
            }
            self.take(&String::from_utf8_lossy(&line));
            if stop.is_cancelled() {
                return Err(walk::interrupted(Read::NAME));
            }
        }
    }

    fn envelope(self, place: &Place, mtime: Option<u64>, is_other: bool) -> Envelope {
        let Self { first, seen, shown, cut, .. } = self;
        let last = (first + shown).saturating_sub(1);
        let more = shown > 0 && last < seen;
        let mut plain = self.text;
        let text = match (shown, seen) {
            (_, 0) => format!("{} is empty", place.shown()),
            (0, _) => format!("{} has only {seen} lines", place.shown()),
            _ => format!("Lines {first} to {last} of {seen} of {}", place.shown()),
        };
        if shown == 0 {
            plain = text.clone();
        } else if more {
            plain.push_str(&format!("… {} lines more: offset {} goes on\n", seen - last, last + 1));
        }
        if cut > 0 {
            plain.push_str(&format!("… {cut} long lines are cut\n"));
        }
        let note = is_other.then(|| format!("Note: {} was modified externally.", place.shown()));
        if let Some(note) = &note {
            plain = format!("{note}\n{plain}");
        }
        let content = plain.clone();
        Envelope::success(note.map_or(text.clone(), |note| format!("{text}. {note}")))
            .with("path", place.shown())
            .with("content", content)
            .with("start_line", first)
            .with("end_line", last)
            .with("total_lines", seen)
            .with("truncated", more || cut > 0)
            .with("mtime", mtime)
            .with("modified_externally", is_other)
            .plain(plain)
            .partial_if(more || cut > 0)
    }
}

fn image_type(place: &Place) -> Option<&'static str> {
    let end = place.path().extension()?.to_str()?.to_ascii_lowercase();
    let (_, media_type, start) = IMAGES.iter().find(|(name, ..)| *name == end)?;
    let mut begins = vec![0; start.len()];
    place.open().ok()?.read_exact(&mut begins).ok()?;
    (begins == *start).then_some(*media_type)
}

fn image(place: &Place, media_type: &'static str, size: u64) -> Result<Envelope, ToolError> {
    if size > LARGEST_IMAGE {
        let message = format!(
            "`{}` has {size} bytes; pictures of more than {LARGEST_IMAGE} cannot be shown",
            place.shown()
        );
        return Err(ToolError::new(Code::TooLarge, message));
    }
    let mut bytes = Vec::new();
    let read = place.open()?.take(LARGEST_IMAGE + 1).read_to_end(&mut bytes);
    read.map_err(|error| ToolError::of_io(&error, place.shown()))?;
    let mut envelope =
        Envelope::success(format!("{} is a picture ({media_type}, {size} bytes)", place.shown()))
            .with("path", place.shown())
            .with("media_type", media_type)
            .with("bytes", size);
    envelope.images.push(Image { media_type, bytes });
    Ok(envelope)
}

/// A file that is not there: with names in its folder that are like it.
fn missing(project: &Project, error: ToolError, place: &Place) -> ToolError {
    if error.code != Code::NotFound {
        return error;
    }
    let near = super::nearest::names_like(project, place);
    let hint = match near.as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    ToolError::new(Code::NotFound, format!("{error}{hint}"))
}
