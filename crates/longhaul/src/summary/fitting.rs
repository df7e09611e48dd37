//! For the fit of the weights alone (`examples/fit.rs` of the command line): names and lines of a log as the
//! formulas see them, so that they can be compared with what was needed later.

use super::Material;
use super::extract::{self, Choose, Inherited, Judged, Wanted};
use super::uses::Uses;
use super::worth::{NAME, TEXT};
use crate::conversation::log::{Log, Position};
use crate::conversation::message::{Block, Role};
use crate::digest::Aliases;
use crate::text::names::{names, names_in_json};

/// A name or a line that a fold would judge.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The name, or the line.
    pub text: Box<str>,
    /// A line as text that may be edited; else a name.
    pub is_line: bool,
    /// What is known of it.
    pub known: Vec<f32>,
    /// The kind of its line.
    pub kind: usize,
}

/// What a fold of all but the newest steps of this log would judge.
pub fn samples(log: &Log, newest_steps: usize) -> Vec<Sample> {
    let aliases = Aliases::default();
    let mut uses = Uses::default();
    uses.follow(log, &aliases);
    let answers = log.messages().iter().enumerate().filter(|(_, message)| message.role() == Role::Assistant);
    let answers: Vec<usize> = answers.map(|(at, _)| at).collect();
    let Some(end) = answers.len().checked_sub(newest_steps).map(|step| answers[step.min(answers.len() - 1)])
    else {
        return Vec::new();
    };
    let (old, newest) = log.messages().split_at(end);
    let material: Vec<Material> = old
        .iter()
        .enumerate()
        .map(|(at, message)| Material::Message(Position(at as u32), message.clone()))
        .collect();
    let material: Vec<&Material> = material.iter().collect();
    let later = newest.iter().flat_map(|message| message.blocks()).filter_map(|block| match block {
        Block::Text(b) => Some(names(&b.text)),
        Block::ToolCall(b) => Some(names_in_json(b.arguments.as_str())),
        Block::ToolResult(b) => Some(names(&b.text)),
        _ => None,
    });
    let wanted = Wanted {
        inherited: Inherited::Extracts,
        limit: usize::MAX,
        choose: Choose::Fill,
        focus: None,
        aliases: &aliases,
        uses: &uses,
    };
    let mut found = Vec::new();
    extract::judge(&material, wanted, later.flatten(), |judged| {
        found.push(match judged {
            Judged::Name { name, known, kind } => {
                Sample { text: name.into(), is_line: false, known: known.to_vec(), kind: kind.number() }
            }
            Judged::Text { line, known, kind } => {
                Sample { text: line.into(), is_line: true, known: known.to_vec(), kind: kind.number() }
            }
        });
    });
    found
}

/// The weights in use, of names and of lines: those of what is known, and those of the kinds.
pub fn weights() -> [(Vec<f32>, Vec<f32>); 2] {
    [(NAME.known.to_vec(), NAME.kinds.to_vec()), (TEXT.known.to_vec(), TEXT.kinds.to_vec())]
}
