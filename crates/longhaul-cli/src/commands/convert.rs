//! `longhaul convert`: transcripts of other agents into Longhaul's own, and any transcript into
//! a request of an API.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use longhaul::Log;
use longhaul::conversation::Shown;
use longhaul_wire::api::{Api, Request};
use longhaul_wire::transcript;

use crate::error::Failure;
use crate::lab::inputs::{self, Input, Unread};
use crate::lab::transcript_file::TranscriptFile;
use crate::output_file;
use crate::place::make_private;
use crate::terminal;

/// Convert a transcript of another agent into Longhaul's format, or into a request
#[derive(clap::Args)]
#[command(after_help = "\
The format of IN is found by its content. A file with several conversations
(side chains too) goes to a folder, one file each. An OUT that ends in .gz is
packed. A request is the body that an API takes; what it has no place for is
said.

Examples:
  longhaul convert rollout-2026-03-02.jsonl session.jsonl.gz
  longhaul convert output.jsonl sessions
  longhaul convert session.jsonl - | head -3
  longhaul convert session.jsonl request.json --to anthropic")]
pub struct Args {
    /// The transcript, or a folder of them; `path#2` is one conversation of a file; `-` reads standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where it goes; `-` is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The format to write
    #[arg(long, value_enum, default_value_t = To::Longhaul)]
    to: To,
    /// Replace OUT if it is there
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// JSON Lines, one message a line (docs/transcript.md)
    Longhaul,
    /// A request of OpenAI Chat Completions
    Openai,
    /// A request of OpenAI Responses
    OpenaiResponses,
    /// A request of Anthropic Messages
    Anthropic,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let api = match args.to {
        To::Longhaul => None,
        To::Openai => Some(Api::Chat),
        To::OpenaiResponses => Some(Api::Responses),
        To::Anthropic => Some(Api::Anthropic),
    };
    if args.input.is_dir() {
        return folder(args, api);
    }
    let [input] = inputs::find(std::slice::from_ref(&args.input))?
        .try_into()
        .map_err(|_| Failure::file(&args.input, "is no file"))?;
    let source = TranscriptFile::open(&input)?;
    if args.output == Path::new("-") {
        return match api {
            None => to_stdout(source, &args.input),
            Some(api) => Ok(writeln!(io::stdout().lock(), "{}", request(source, &input, api)?)?),
        };
    }
    if let (Ok(from), Ok(output)) = (input.path.canonicalize(), args.output.canonicalize())
        && from.starts_with(&output)
    {
        let problem = if from == output { "is the transcript itself" } else { "holds the transcript itself" };
        return Err(Failure::file(&args.output, problem));
    }
    let output = match args.force && is_earlier_output(&args.output) {
        true => args.output.clone(),
        false => output_file::place(&args.output, args.force)?,
    };
    convert(source, &input, &output, api)
}

/// True for a folder that an earlier conversion of several conversations has made: all in it is numbered.
fn is_earlier_output(path: &Path) -> bool {
    let is_numbered = |entry: io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.trim_end_matches(".gz").strip_suffix(".jsonl").unwrap_or_default().to_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        // As we write it, and no day or time.
        is_file && number.parse::<usize>().is_ok_and(|n| n.to_string() == number && n < 100_000)
    };
    let is_folder = path.symlink_metadata().is_ok_and(|about| about.is_dir());
    is_folder && fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_numbered))
}

/// Converts one file.
fn convert(source: TranscriptFile, input: &Input, output: &Path, api: Option<Api>) -> Result<(), Failure> {
    let Some(api) = api else { return to_files(source, input, output) };
    let body = request(source, input, api)?;
    let failed = |error: io::Error| Failure::file(output, error);
    let mut out = Out::create(output, is_packed(output)).map_err(failed)?;
    out.line(&body).and_then(|()| out.finish()).map_err(failed)
}

/// Converts all sessions of a folder, into a folder of the same shape.
fn folder(args: &Args, api: Option<Api>) -> Result<(), Failure> {
    let output = &args.output;
    if output == Path::new("-") {
        return Err(Failure::file(&args.input, "is a folder: name a folder to write its sessions to"));
    }
    if output.exists() {
        return Err(Failure::file(output, "is there already: the sessions of a folder go to a new one"));
    }
    let inputs = inputs::find(std::slice::from_ref(&args.input))?;
    let (mut read, mut unread) = (0, Unread::default());
    for input in &inputs {
        let name = input.path.strip_prefix(&args.input).unwrap_or(&input.path);
        let out = match api {
            Some(_) => Some(output.join(name).with_extension("json")).filter(|out| !out.exists()),
            None => Some(output.join(name)),
        };
        // Of two names that differ in their ending the second keeps its own.
        let out = out.unwrap_or_else(|| output.join(format!("{}.json", name.display())));
        let converted = TranscriptFile::open(input).and_then(|mut source| {
            // A file that is no session leaves no folder behind.
            let Some(first) = source.next() else {
                return source.finish(true);
            };
            let folder = out.parent().unwrap_or(output);
            make_private(folder)
                .map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
            convert(source.again(first), input, &out, api)
        });
        match converted {
            Ok(()) => read += 1,
            Err(failure) => unread.add(input, failure)?,
        }
    }
    unread.finish(read)
}

/// The conversation as the body of a request. Says what the API has no place for.
fn request(mut source: TranscriptFile, input: &Input, api: Api) -> Result<String, Failure> {
    let (mut log, mut wanted) = (Log::new(), None);
    for (number, message) in source.by_ref() {
        if *wanted.get_or_insert(number) != number {
            let problem =
                format!("holds several conversations: name one, such as {}#1", terminal::path(&input.path));
            return Err(Failure::file(&input.path, problem));
        }
        // What a recorded agent made of its own history is no part of the conversation.
        if !message.is_recorded_compaction() {
            let frame = transcript::frame_of(&message);
            log.push(message);
            frame.into_iter().for_each(|frame| _ = log.note_frame(frame));
        }
    }
    source.finish(log.messages().is_empty())?;
    let mut frame = log.frame().cloned().unwrap_or_default();
    if frame.model.is_none() {
        frame.model = log
            .messages()
            .iter()
            .rev()
            .find_map(|message| message.model().filter(|name| !name.starts_with('<')))
            .map(Into::into);
    }
    log.close_step();
    let said = log.show(log.units()).map(|shown| match shown {
        Shown::AsIs(at) => log.messages()[at.index()].clone(),
        Shown::Made(_, message) => message,
    });
    let (request, changed) = Request::acceptable(api, frame, said.collect());
    if request.messages().is_empty() {
        return Err(Failure::file(&input.path, "has no message that a request could hold"));
    }
    for what in &changed {
        _ = writeln!(
            io::stderr(),
            "{}: changed: {}",
            input.path.display(),
            terminal::one_line(what, usize::MAX)
        );
    }
    let encoded = request.encode(api);
    for what in &encoded.left_out {
        _ = writeln!(io::stderr(), "{}: left out: {what}", terminal::path(&input.path));
    }
    Ok(encoded.body.into())
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

fn to_stdout(mut source: TranscriptFile, path: &Path) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut empty, mut wanted) = (true, None);
    for (number, message) in source.by_ref() {
        if *wanted.get_or_insert(number) != number {
            return Err(Failure::file(path, "holds several conversations: name a folder to write them to"));
        }
        empty = false;
        writeln!(out, "{}", transcript::encode(&message))?;
    }
    out.flush()?;
    source.finish(empty)
}

/// Writes to a folder beside the output, which takes its place when all is written.
fn to_files(mut source: TranscriptFile, input: &Input, output: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(output, error);
    let name = output.file_name().ok_or_else(|| Failure::file(output, "names no file"))?;
    let mut partial = name.to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    let partial = output.with_file_name(partial);
    let packed = is_packed(output);
    make_private(&partial).map_err(failed)?;
    // By conversation: where it is, and how many messages it has.
    let mut files: BTreeMap<usize, (PathBuf, u64)> = BTreeMap::new();
    // One file is open at a time: a store may hold more sessions than files can be open.
    let mut open: Option<(usize, Out)> = None;
    let written = source.by_ref().try_for_each(|(number, message)| {
        let new = || (partial.join(format!("{number}.jsonl{}", if packed { ".gz" } else { "" })), 0);
        let (path, count) = files.entry(number).or_insert_with(new);
        *count += 1;
        let out = match &mut open {
            Some((current, out)) if *current == number => out,
            _ => {
                if let Some((_, mut out)) = open.take() {
                    out.finish()?;
                }
                &mut open.insert((number, Out::append(path, packed)?)).1
            }
        };
        out.line(&transcript::encode(&message))
    });
    let finished = written.and_then(|()| open.map_or(Ok(()), |(_, mut out)| out.finish()));
    let format = source.format();
    let ended = finished.map_err(failed).and_then(|()| source.finish(files.is_empty()));
    if ended.is_err() {
        _ = fs::remove_dir_all(&partial);
        return ended;
    }
    let counts: u64 = files.values().map(|(_, count)| count).sum();
    let only = files.len() == 1;
    // What was written there by an earlier conversion, or a file that is replaced by a folder.
    match output.is_dir() {
        true => fs::remove_dir_all(output).map_err(failed)?,
        false if !only && output.exists() => fs::remove_file(output).map_err(failed)?,
        false => {}
    }
    match files.first_key_value().filter(|_| only) {
        Some((_, (path, _))) => {
            fs::rename(path, output).map_err(failed)?;
            fs::remove_dir_all(&partial).map_err(failed)?;
        }
        None => fs::rename(&partial, output).map_err(failed)?,
    }
    let conversations = if only { String::new() } else { format!(" of {} conversations", files.len()) };
    _ = writeln!(
        io::stderr(),
        "{}: {} messages{conversations} of {format} to {}",
        terminal::path(&input.path),
        terminal::grouped(counts),
        terminal::path(output)
    );
    Ok(())
}

/// A file, packed or plain.
enum Out {
    Plain(BufWriter<File>),
    Packed(Box<flate2::write::GzEncoder<BufWriter<File>>>),
}

impl Out {
    fn create(path: &Path, packed: bool) -> io::Result<Self> {
        Ok(Self::to(output_file::create(path)?, packed))
    }

    /// Goes on behind what the file has. Packed parts one behind the other are one packed file.
    fn append(path: &Path, packed: bool) -> io::Result<Self> {
        Ok(Self::to(output_file::private().append(true).open(path)?, packed))
    }

    fn to(file: File, packed: bool) -> Self {
        let file = BufWriter::new(file);
        if packed {
            Self::Packed(Box::new(flate2::write::GzEncoder::new(file, flate2::Compression::default())))
        } else {
            Self::Plain(file)
        }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let out: &mut dyn Write = match self {
            Self::Plain(file) => file,
            Self::Packed(file) => file,
        };
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Packed(file) => {
                file.try_finish()?;
                file.get_mut().flush()
            }
        }
    }
}
