//! The file of `replay --views`: one JSON line per call with what would be sent.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use longhaul::view::View;
use longhaul::{EditId, Part, Tokens};
use longhaul_wire::transcript;

use crate::error::Failure;
use crate::lab::inputs::Input;
use crate::output_file;

/// The file that views go to.
pub struct ViewsFile {
    path: PathBuf,
    out: BufWriter<File>,
}

/// A line of it: one call.
pub struct ViewLine<'a> {
    pub transcript: &'a str,
    pub number: u64,
    pub upto: usize,
    pub tokens: Tokens,
    pub full_tokens: Tokens,
    /// Edits made for this call.
    pub edits: Vec<EditId>,
    /// What summaries cost that were written for this call, in tokens × price.
    pub summary_cost: u64,
    pub prepare_us: u64,
    /// What is sent, or why nothing can be.
    pub view: Result<&'a View, String>,
}

impl ViewsFile {
    /// Creates the file, unless it is one of those that are read.
    pub fn create(path: &Path, inputs: &[Input]) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let problem = "--views needs a file: standard output is for the figures (try /dev/stderr)";
            return Err(Failure::Input(problem.to_owned()));
        }
        let same = |input: &Input| match (input.path.canonicalize(), path.canonicalize()) {
            (Ok(input), Ok(path)) => input == path,
            _ => false,
        };
        if inputs.iter().any(same) {
            return Err(Failure::file(path, "is one of the transcripts; views go to another file"));
        }
        let file = output_file::create(path).map_err(|error| Failure::file(path, error))?;
        Ok(Self { path: path.to_owned(), out: BufWriter::with_capacity(1 << 20, file) })
    }

    /// Writes a line.
    pub fn write(&mut self, line: &ViewLine<'_>) -> Result<(), Failure> {
        let written = self.write_line(line);
        written.map_err(|error| self.failure(error))
    }

    /// Writes what is still in memory.
    pub fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        flushed.map_err(|error| self.failure(error))
    }

    fn failure(&self, error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Output(error),
            _ => Failure::Output(std::io::Error::new(
                error.kind(),
                format!("{}: {error}", self.path.display()),
            )),
        }
    }

    fn write_line(&mut self, line: &ViewLine<'_>) -> std::io::Result<()> {
        let out = &mut self.out;
        write!(out, "{{\"transcript\":{}", serde_json::to_string(line.transcript)?)?;
        write!(out, ",\"call\":{},\"upto\":{}", line.number, line.upto)?;
        write!(out, ",\"tokens\":{},\"full_tokens\":{}", line.tokens, line.full_tokens)?;
        out.write_all(b",\"messages\":[")?;
        let view = line.view.as_ref().ok();
        write_messages(out, view.iter().flat_map(|view| view.parts()))?;
        out.write_all(b"],\"volatile\":[")?;
        write_messages(out, view.and_then(|view| view.tail()).into_iter())?;
        write!(out, "],\"edits\":{}", serde_json::to_string(&line.edits)?)?;
        write!(out, ",\"summary_cost\":{},\"prepare_us\":{}", line.summary_cost, line.prepare_us)?;
        if let Err(error) = &line.view {
            write!(out, ",\"error\":{}", serde_json::to_string(error)?)?;
        }
        out.write_all(b"}\n")
    }
}

fn write_messages<'a>(out: &mut impl Write, parts: impl Iterator<Item = &'a Part>) -> std::io::Result<()> {
    for (n, part) in parts.enumerate() {
        if n > 0 {
            out.write_all(b",")?;
        }
        out.write_all(transcript::encode(&part.message).as_bytes())?;
    }
    Ok(())
}
