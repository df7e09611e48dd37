//! What a command writes: both streams apart, and together in the order in which they came.

use std::path::{Path, PathBuf};

use super::capture::{Capture, Excerpt};
use super::whole::Whole;
use crate::tools::{BYTES, LINES};

/// A stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// When the whole output goes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// When it is more than can be shown.
    IfLarge,
    /// From the first byte on: it is shown in parts.
    Always,
}

/// A line that is not ended waits for its end up to here, so that the other stream does not break it.
const WAITS: usize = 8 << 10;

/// What a command writes.
#[derive(Debug)]
pub(crate) struct Output {
    both: Capture,
    stdout: Capture,
    stderr: Capture,
    /// The start of a line of each stream.
    begun: [Vec<u8>; 2],
    whole: Whole,
    keep: Keep,
}

/// What came since the last look.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) both: Excerpt,
    pub(crate) stdout: Excerpt,
    pub(crate) stderr: Excerpt,
    /// Bytes that came.
    pub(crate) bytes: u64,
    /// Bytes of them that were kept in memory.
    pub(crate) kept: usize,
    /// The whole output.
    pub(crate) file: Option<PathBuf>,
    /// Where what is not shown can be found.
    pub(crate) note: Option<String>,
}

impl Output {
    /// Whole outputs are files of this name in a folder.
    pub(crate) fn new(keep: Keep, folder: Option<&Path>, name: &str) -> Self {
        Self {
            both: Capture::default(),
            stdout: Capture::default(),
            stderr: Capture::default(),
            begun: Default::default(),
            whole: Whole::new(folder, name),
            keep,
        }
    }

    pub(crate) fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.push(bytes),
            Stream::Stderr => self.stderr.push(bytes),
        }
        let begun = &mut self.begun[stream as usize];
        let last = bytes.len().saturating_sub(WAITS);
        let lines = match memchr::memrchr(b'\n', &bytes[last..]) {
            Some(at) => last + at + 1,
            None if begun.len() + bytes.len() > WAITS => bytes.len(),
            None => 0,
        };
        let (lines, rest) = bytes.split_at(lines);
        if lines.is_empty() {
            begun.extend_from_slice(rest);
            return;
        }
        let before = std::mem::replace(begun, rest.to_vec());
        self.push(&before);
        self.push(lines);
    }

    fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.both.push(bytes);
        if self.keep == Keep::Always || self.whole.is_begun() {
            self.whole.append(bytes);
        } else if self.both.bytes() > BYTES as u64 || self.both.lines() > LINES as u64 {
            // The first time that it is: everything is still there.
            self.whole.append(&self.both.all().unwrap_or_default());
        }
    }

    /// What came since the last look.
    pub(crate) fn look(&mut self) -> Heard {
        for begun in std::mem::take(&mut self.begun) {
            self.push(&begun);
        }
        let both = std::mem::take(&mut self.both);
        let (stdout, stderr) = (std::mem::take(&mut self.stdout), std::mem::take(&mut self.stderr));
        let shown = both.excerpt(BYTES);
        match (self.keep, shown.is_cut) {
            // Bytes that are no text take more room when they are shown.
            (Keep::IfLarge, true) if !self.whole.is_begun() => {
                self.whole.append(&both.all().unwrap_or_default());
            }
            (Keep::IfLarge, false) => self.whole.discard(),
            _ => {}
        }
        // Both apart take no more room than both together.
        let room = if stdout.bytes() > 0 && stderr.bytes() > 0 && shown.is_cut { BYTES / 2 } else { BYTES };
        Heard {
            stdout: stdout.excerpt(room),
            stderr: stderr.excerpt(room),
            bytes: both.bytes(),
            kept: both.kept() + stdout.kept() + stderr.kept(),
            file: self.whole.path().map(Path::to_owned),
            note: shown.is_cut.then(|| self.whole.told()),
            both: shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(pieces: &[(Stream, &[u8])]) -> Heard {
        let mut output = Output::new(Keep::IfLarge, None, "bash");
        for (stream, bytes) in pieces {
            output.take(*stream, bytes);
        }
        output.look()
    }

    #[test]
    fn both_streams_come_line_by_line() {
        use Stream::{Stderr, Stdout};
        let heard = output(&[
            (Stdout, b"one\ntw"),
            (Stderr, b"bad\n"),
            (Stdout, b"o\n"),
            (Stderr, b"wor"),
            (Stderr, b"se\nend"),
        ]);
        assert_eq!(heard.both.text, "one\nbad\ntwo\nworse\nend");
        assert_eq!(
            (heard.stdout.text.as_str(), heard.stderr.text.as_str()),
            ("one\ntwo\n", "bad\nworse\nend")
        );
        assert_eq!(heard.note, None);
    }

    #[test]
    fn a_line_without_end_does_not_wait_for_ever() {
        let long = vec![b'x'; 5_000];
        let heard = output(&[
            (Stream::Stdout, &long),
            (Stream::Stderr, b"e\n"),
            (Stream::Stdout, &long),
            (Stream::Stderr, b"f\n"),
        ]);
        let order: String = heard.both.text.chars().filter(|c| *c != 'x').collect();
        assert_eq!(order, "e\nf\n");
        assert!(heard.both.text.ends_with("xf\n"));
    }

    #[test]
    fn a_look_shows_only_what_is_new_and_the_file_has_all() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::new(Keep::Always, Some(folder.path()), "job-1");
        output.take(Stream::Stdout, b"one\n");
        assert_eq!(output.look().both.text, "one\n");
        output.take(Stream::Stdout, b"two\n");
        let heard = output.look();
        assert_eq!(heard.both.text, "two\n");
        assert_eq!(std::fs::read(heard.file.unwrap()).unwrap(), b"one\ntwo\n");
    }

    // covers: A-TRUNC
    #[test]
    fn a_file_is_made_only_where_something_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let run = |bytes: &[u8]| {
            let mut output = Output::new(Keep::IfLarge, Some(folder.path()), "bash");
            bytes.chunks(10_000).for_each(|chunk| output.take(Stream::Stdout, chunk));
            output.look()
        };
        assert_eq!(run(b"short\n").file, None);
        // A progress bar that is long only before it is shown.
        let bar: String = (0..20_000).map(|n| format!("\r{n}")).collect();
        assert_eq!(run(bar.as_bytes()).file, None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // Bytes that are long only when they are shown, lines, and bytes.
        for large in [vec![0xff; 20_000], b"\n".repeat(2_001), vec![b'x'; 60_000]] {
            let heard = run(&large);
            assert_eq!(std::fs::read(heard.file.unwrap()).unwrap(), large);
            assert!(heard.note.unwrap().starts_with("The whole output is in "));
        }
    }
}
