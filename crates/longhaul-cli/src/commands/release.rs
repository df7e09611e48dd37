//! `longhaul release`: an agent's own session file without the thinking that the model would refuse once the agent goes on
//! without Longhaul. Answers that were produced from our views do not follow the agent's own messages.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use longhaul::{Block, Position, Seal, Session};
use longhaul_config::Config;
use longhaul_store::Keeper;
use longhaul_wire::agents::resume::Resumable;
use serde_json::Value;

use crate::commands::sessions::naming;
use crate::error::Failure;
use crate::lab::inputs;
use crate::lab::recorded::without_model;
use crate::lab::transcript_file::TranscriptFile;
use crate::output_file;
use crate::place::Place;
use crate::terminal;

/// Write an agent's session file without the thinking that fails without Longhaul
#[derive(clap::Args)]
#[command(after_help = "\
Newer Claude models accept thinking only after the exact messages that produced
it. After a fold those are messages of Longhaul, not of your agent. Before you
go on with the same session without Longhaul, release it: the file keeps every
word, and loses the thinking that would fail. Claude Code and pi are known;
Codex has no such thinking.

Examples:
  longhaul release last ~/.claude/projects/-home-me-parser/1d2c….jsonl
  longhaul release last session.jsonl -o released.jsonl
  longhaul release 3f9a51c0 session.jsonl -o released.jsonl --force")]
pub struct Args {
    /// The stored session: its id, the start of one, or `last` (`longhaul sessions list`)
    #[arg(value_name = "SESSION")]
    session: String,
    /// The agent's own file of that session, of Claude Code, Codex or pi
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the file without that thinking goes; `-` is standard output. Without it, only what would go is printed
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it is there
    #[arg(long)]
    force: bool,
    /// Where sessions are kept: the path of a file, or postgres://…
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let session = stored(args, config)?;
    let thought = Thought::of(&session);
    let file = AgentFile::read(&args.file)?;
    let signed = file.signatures();
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    let say = |text: &str| match to_stdout {
        true => writeln!(io::stderr(), "{text}"),
        false => writeln!(anstream::stdout(), "{text}"),
    };
    if signed.is_empty() {
        return Ok(say(
            "There is no signed thinking in it: nothing would fail, and the file can be used as it is.",
        )?);
    }
    if !signed.iter().any(|signature| thought.known.contains(signature)) {
        let problem =
            format!("has no thinking of the session {}: it is the file of another one", args.session);
        return Err(Failure::file(&args.file, problem));
    }
    if !session.model().binds {
        let model = &session.model().name;
        return Ok(say(&format!(
            "{model} does not bind thinking: nothing would fail, and the file can be used as it is."
        ))?);
    }
    let released = file.without(&thought.stale);
    if released.blocks == 0 {
        return Ok(say(
            "All thinking in it follows your agent's own messages: nothing would fail, and the file can be used as it is.",
        )?);
    }
    let blocks = terminal::counted(released.blocks, "block", "blocks");
    let all = terminal::grouped(signed.len() as u64);
    let Some(output) = &args.output else {
        say(&format!("{blocks} of {all} would fail without Longhaul. -o OUT writes the file without them."))?;
        return Ok(());
    };
    write(args, output, &released.text)?;
    say(&format!(
        "{blocks} of {all} are left out. Keep a copy of {}, put the new file in its place, and go on.",
        terminal::path(&args.file)
    ))?;
    Ok(())
}

fn stored(args: &Args, config: &Config) -> Result<Session, Failure> {
    let place = Place::new(args.store.clone().unwrap_or_else(|| config.store()))?;
    let store = place.open()?;
    let meta = naming::find(&*store, &args.session, &place)?;
    let profile = without_model(config.profile(config.profile_name())?);
    Ok(Keeper::open(store, meta.id, profile)?.1)
}

fn write(args: &Args, output: &Path, text: &str) -> Result<(), Failure> {
    if output == Path::new("-") {
        return Ok(io::stdout().lock().write_all(text.as_bytes())?);
    }
    if output_file::is_same(&args.file, output) {
        return Err(Failure::file(output, "is the session file itself: name another, and keep this one"));
    }
    let place = output_file::place(output, args.force)?;
    output_file::write(&place, text)
        .map_err(|error| Failure::Failed(format!("{}: {error}", output.display())))
}

/// The signatures of a stored session.
struct Thought {
    known: HashSet<String>,
    /// Signatures that the model would refuse after the agent's own messages.
    stale: HashSet<String>,
}

impl Thought {
    fn of(session: &Session) -> Self {
        let signed = session.log().messages().iter().enumerate().flat_map(|(at, message)| {
            let signatures = message.blocks().iter().filter_map(|block| match block {
                Block::Thinking(thinking) => match &thinking.seal {
                    Seal::Signed(data) | Seal::Redacted(Some(data)) => Some(data.to_string()),
                    _ => None,
                },
                _ => None,
            });
            signatures.map(move |signature| (Position(at as u32), signature))
        });
        let signed: Vec<(Position, String)> = signed.collect();
        let first =
            if has_our_tools(session) { signed.first().map(|(at, _)| *at) } else { session.stale_outside() };
        let stale = signed.iter().filter(|(at, _)| first.is_some_and(|first| *at >= first));
        let stale = stale.map(|(_, signature)| signature.clone()).collect();
        Self { known: signed.into_iter().map(|(_, signature)| signature).collect(), stale }
    }
}

/// Requests had tools of ours, under whatever name the agent gave them: without Longhaul they are gone, and all thinking
/// follows other tools.
fn has_our_tools(session: &Session) -> bool {
    let mut tools = session.log().frame().map(|frame| frame.tools.iter()).unwrap_or_default();
    tools.any(|tool| tool.name.contains("longhaul"))
}

/// The session file of an agent: a JSON value a line.
struct AgentFile {
    lines: Vec<String>,
}

/// A file without some of its thinking.
struct Released {
    text: String,
    /// How many blocks are gone.
    blocks: u64,
}

impl AgentFile {
    fn read(path: &Path) -> Result<Self, Failure> {
        let input = inputs::find_one(path)?;
        let mut file = TranscriptFile::open(&input)?;
        let format = file.format();
        if Resumable::from_name(format).is_none() {
            let problem = format!(
                "is a session of the format {format}: release knows those of Claude Code, Codex and pi"
            );
            return Err(Failure::file(path, problem));
        }
        let empty = file.by_ref().next().is_none();
        file.finish(empty)?;
        let text = std::fs::read_to_string(&input.path).map_err(|error| Failure::file(&input.path, error))?;
        Ok(Self { lines: text.lines().map(str::to_owned).collect() })
    }

    /// All signatures in it.
    fn signatures(&self) -> Vec<String> {
        let values = self.lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values
            .flat_map(|line| {
                content(&line).iter().filter_map(signature).map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The file from the first of these signatures on without signed thinking: what was kept before is valid, and what
    /// comes after a gap is not. Conversations beside the main one lose these signatures alone. Every other line stays as
    /// it is; a line that has nothing else goes, and those that name it name the line before it.
    fn without(&self, stale: &HashSet<String>) -> Released {
        let (mut text, mut blocks, mut begun) = (String::new(), 0, false);
        let mut gone: HashMap<String, Value> = HashMap::new();
        for raw in &self.lines {
            let Ok(mut line) = serde_json::from_str::<Value>(raw) else {
                text += raw;
                text += "\n";
                continue;
            };
            let beside = line["isSidechain"] == true;
            begun |=
                !beside && content(&line).iter().filter_map(signature).any(|known| stale.contains(known));
            let fails = |block: &Value| {
                signature(block).is_some_and(|known| stale.contains(known) || begun && !beside)
            };
            let failing = content(&line).iter().filter(|block| fails(block)).count();
            let renamed = relinked(&mut line, &gone);
            if failing == 0 {
                text += &if renamed { line.to_string() } else { raw.clone() };
                text += "\n";
                continue;
            }
            blocks += failing as u64;
            if failing == content(&line).len() {
                for (own, before) in NAMES {
                    if let (Some(name), Some(parent)) = (line[own].as_str(), line.get(before)) {
                        gone.insert(name.to_owned(), parent.clone());
                    }
                }
                continue;
            }
            if let Some(content) = line["message"]["content"].as_array_mut() {
                content.retain(|block| !fails(block));
            }
            text += &line.to_string();
            text += "\n";
        }
        Released { text, blocks }
    }
}

/// How lines name themselves, and the line before: Claude Code, pi.
const NAMES: [(&str, &str); 2] = [("uuid", "parentUuid"), ("id", "parentId")];

/// Has a line that names one which is gone name the line before that. True if it did.
fn relinked(line: &mut Value, gone: &HashMap<String, Value>) -> bool {
    let Some(fields) = line.as_object_mut() else { return false };
    let mut changed = false;
    for (_, value) in fields.iter_mut().filter(|(name, _)| NAMES.iter().all(|(own, _)| name != own)) {
        if let Some(before) = value.as_str().and_then(|named| gone.get(named)) {
            (*value, changed) = (before.clone(), true);
        }
    }
    changed
}

/// The blocks of a line's message.
fn content(line: &Value) -> &[Value] {
    line["message"]["content"].as_array().map_or(&[], Vec::as_slice)
}

/// The signature of a block of thinking, as Claude Code and pi write it.
fn signature(block: &Value) -> Option<&str> {
    let field = match block["type"].as_str()? {
        "thinking" if block.get("thinkingSignature").is_some() => "thinkingSignature",
        "thinking" => "signature",
        "redacted_thinking" => "data",
        _ => return None,
    };
    block[field].as_str().filter(|signature| !signature.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: &[&str]) -> AgentFile {
        AgentFile { lines: lines.iter().map(|line| (*line).to_owned()).collect() }
    }

    #[test]
    fn thinking_goes_from_the_first_that_fails_on_and_nothing_else_changes() {
        let thinks = |uuid: &str, parent: &str, signature: &str| {
            format!(
                r#"{{"uuid":"{uuid}","parentUuid":"{parent}","message":{{"content":[{{"type":"thinking","thinking":"Hm.","signature":"{signature}"}}]}}}}"#
            )
        };
        let says =
            r#"{ "uuid":"d", "parentUuid":"c","message":{"content":[{"type":"text","text":"Done."}]}}"#;
        let beside = thinks("s", "a", "other").replacen('{', r#"{"isSidechain":true,"#, 1);
        let (first, second, third) =
            (thinks("a", "0", "one"), thinks("b", "a", "two"), thinks("c", "b", "unknown"));
        let lines = [&*first, &*second, "no json", &*beside, &*third, says];
        let released = file(&lines).without(&HashSet::from(["two".to_owned()]));
        let expected = [&*first, "no json", &*beside, &says.replace(' ', "")];
        let expected: Vec<String> =
            expected.iter().map(|line| line.replace(r#""parentUuid":"c""#, r#""parentUuid":"a""#)).collect();
        assert_eq!(released.text.lines().collect::<Vec<_>>(), expected);
        assert_eq!(released.blocks, 2);
    }
}
