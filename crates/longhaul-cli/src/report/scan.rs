//! A file read into figures. A format is one file of `scan/` and one row of [`SCANNERS`]; which one a file has is
//! found by its first lines, never by its name. What no scanner knows is read as the lab reads it (`others`).

mod claude_code;
mod codex;
mod opencode;
mod others;
mod pi;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use jiff::Timestamp;
use longhaul_wire::mended_surrogates;
use serde::{Deserialize, Serialize};

use super::conversation::Conversation;
use super::node::Node;
use crate::file_start::{SQLITE, begins_with};

/// What a file said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scanned {
    /// Whose format it is; empty if it is no session.
    pub agent: String,
    pub conversations: Vec<Conversation>,
    /// Lines that could not be read.
    pub unread: u64,
}

/// Reads lines of one format.
trait Scan {
    fn line(&mut self, line: &Node<'_>);
    /// The conversations, when the file has ended.
    fn finish(self: Box<Self>) -> Vec<Conversation>;
}

struct Scanner {
    agent: &'static str,
    /// True if a line shows the format.
    fits: fn(&Node<'_>) -> bool,
    /// Reads a file of this name: some agents name sessions only there.
    new: fn(&str) -> Box<dyn Scan>,
}

static SCANNERS: [Scanner; 3] = [
    Scanner { agent: "claude-code", fits: claude_code::fits, new: claude_code::new },
    Scanner { agent: "codex", fits: codex::fits, new: codex::new },
    Scanner { agent: "pi", fits: pi::fits, new: pi::new },
];

/// Lines that are looked at to find the format.
const TELLING: usize = 8;

/// What stands for a line that is too long: nothing that could be read.
const TOO_LONG: &[u8] = b"(too long)\n";

/// A line longer than this is skipped.
const MAX_LINE: u64 = 64 << 20;

/// Reads a file. `done` is told of bytes as they are read.
pub fn scan(path: &Path, done: &dyn Fn(u64)) -> io::Result<Scanned> {
    if begins_with(path, SQLITE) {
        return opencode::scan(path);
    }
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
    let start = file.fill_buf()?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if start.starts_with(&[0x1f, 0x8b]) {
        let unpacked = BufReader::with_capacity(1 << 18, flate2::bufread::MultiGzDecoder::new(file));
        return lines(path, &name, unpacked, done);
    }
    lines(path, &name, file, done)
}

fn lines(path: &Path, name: &str, mut stream: impl BufRead, done: &dyn Fn(u64)) -> io::Result<Scanned> {
    let (mut head, mut line) = (Vec::new(), Vec::new());
    let mut found = None;
    while head.len() < TELLING && found.is_none() {
        if !read_line(&mut stream, &mut line)? {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        found = Node::read(text).and_then(|node| SCANNERS.iter().find(|scanner| (scanner.fits)(&node)));
        head.push(std::mem::take(&mut line));
    }
    let Some(scanner) = found else { return others::scan(path, name, done) };
    let mut scan = (scanner.new)(name);
    let mut unread = 0;
    let mut take = |line: &[u8]| {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if let Some(node) = Node::read(line) {
            return scan.line(&node);
        }
        // A program that cut a character in two wrote what is no text.
        let mended = mended_surrogates(line);
        match mended.as_deref().and_then(Node::read) {
            Some(node) => scan.line(&node),
            None if line.trim_ascii().is_empty() => {}
            None => unread += 1,
        }
    };
    for line in &head {
        take(line);
    }
    done(head.iter().map(|line| line.len() as u64).sum());
    loop {
        match read_line(&mut stream, &mut line) {
            Ok(true) => {}
            Ok(false) => break,
            // A packed file that is still being written ends anywhere, and so does one that was cut.
            Err(_) => {
                unread += 1;
                break;
            }
        }
        // A cut last line is one that is still being written.
        if line.ends_with(b"\n") || Node::read(&line).is_some() {
            take(&line);
        }
        done(line.len() as u64);
    }
    Ok(Scanned { agent: scanner.agent.to_owned(), conversations: scan.finish(), unread })
}

/// Reads a line; false at the end. One that is too long is skipped.
fn read_line(stream: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if (&mut *stream).take(MAX_LINE).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
        line.clear();
        line.shrink_to(1 << 16);
        stream.skip_until(b'\n')?;
        line.extend_from_slice(TOO_LONG);
    }
    Ok(true)
}

/// Seconds since 1970 of a time as agents write it; 0 if it is none.
fn seconds(time: &Node<'_>) -> i64 {
    match time {
        Node::Text(text) => text.parse::<Timestamp>().map_or(0, Timestamp::as_second),
        // Thousandths of seconds.
        Node::Number(number) => (*number / 1_000.0) as i64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of all formats, changed in places, cut and put in another order: whatever they are, they are read.
    #[test]
    fn no_line_is_too_odd() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../longhaul-wire/tests/agents");
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for name in [
            "claude-code.jsonl",
            "claude-code-speakers.jsonl",
            "codex.jsonl",
            "pi.jsonl",
            "pi-branches.jsonl",
        ] {
            let text = std::fs::read(samples.join(name)).unwrap();
            lines.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |most: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % most.max(1) as u64) as usize
        };
        for round in 0..2_000 {
            let scanner = &SCANNERS[round % SCANNERS.len()];
            let mut scan = (scanner.new)("name");
            for _ in 0..20 {
                let mut line = lines[next(lines.len())].clone();
                for _ in 0..next(4) {
                    let at = next(line.len());
                    match next(3) {
                        0 if !line.is_empty() => line[at] = b"0123456789\"{}[],:ntf-e"[next(22)],
                        1 => line.truncate(at),
                        _ => line.splice(at..at, *b"99999999999999999").for_each(drop),
                    }
                }
                if let Some(node) = Node::read(&line) {
                    scan.line(&node);
                }
            }
            for conversation in scan.finish() {
                let prompts: u64 = conversation.calls.iter().map(|call| call.prompt()).sum();
                let filled: u64 = conversation.filled.values().sum();
                assert!(prompts == 0 || filled >= prompts, "{prompts} {filled}");
            }
        }
    }
}
