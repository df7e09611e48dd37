//! Fits the weights of `crates/longhaul/src/summary/worth.rs` on recorded sessions, and cross-validates them
//! by session: `cargo run --release -p longhaul-cli --example fit -- FOLDER`.
//!
//! At every tenth step of each session all names and lines that a fold would judge are samples. A sample
//! counts as needed if the next time that the session mentions it, it is in the arguments of a call (a name) or
//! in the old text of an edit (a line). Logistic regression by Newton's method, with a small penalty.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use longhaul::conversation::Log;
use longhaul::summary::fitting::{Sample, samples, weights};
use longhaul::{Message, Role};
use longhaul_lab::needs;

/// Samples are taken at every so many steps.
const EVERY: usize = 10;
/// The newest steps, which no fold takes.
const NEWEST: usize = 7;
/// Of lines that were not needed one in so many is looked at: there are many.
const LINES: usize = 20;
/// Parts of the cross-validation.
const PARTS: usize = 5;
/// Kinds of lines.
const KINDS: usize = 14;

/// A sample with what became of it.
struct Row {
    session: usize,
    known: Vec<f64>,
    needed: bool,
    weight: f64,
}

/// When something was mentioned: the message, and whether it was needed there.
type Mentions<'a> = HashMap<&'a str, Vec<(usize, bool)>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut files = Vec::new();
    for folder in &folders {
        for entry in std::fs::read_dir(folder)? {
            files.push(entry?.path());
        }
    }
    if files.is_empty() {
        return Err("which folder of recorded sessions?".into());
    }
    files.sort();
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    for (session, path) in files.iter().enumerate() {
        let Ok(reader) = longhaul_wire::agents::open(path) else { continue };
        let mut conversations: BTreeMap<usize, Vec<Arc<Message>>> = BTreeMap::new();
        for (number, message) in reader.flatten().filter(|(_, message)| !message.is_recorded_compaction()) {
            conversations.entry(number).or_default().push(Arc::new(message));
        }
        for messages in conversations.values() {
            collect(session, messages, &mut names, &mut lines);
        }
    }
    let [of_names, of_lines] = weights();
    report("names", &names, of_names);
    report("lines", &lines, of_lines);
    Ok(())
}

/// The samples of a conversation, and what became of each.
fn collect(session: usize, messages: &[Arc<Message>], names: &mut Vec<Row>, lines: &mut Vec<Row>) {
    let texts: Vec<String> = messages.iter().map(|message| needs::text_of(message)).collect();
    let wanted: Vec<(Vec<String>, Vec<String>)> = messages
        .iter()
        .map(|message| match message.role() {
            Role::Assistant => needs::wanted_by(message),
            _ => Default::default(),
        })
        .collect();
    let (mut of_names, mut of_lines) = (Mentions::new(), Mentions::new());
    for (at, text) in texts.iter().enumerate() {
        for name in needs::words(text) {
            let needed = wanted[at].0.iter().any(|wanted| wanted == name);
            mention(&mut of_names, name, at, needed);
        }
        for line in text.lines().map(str::trim).filter(|line| line.len() >= 12) {
            let needed = wanted[at].1.iter().any(|wanted| wanted == line);
            mention(&mut of_lines, line, at, needed);
        }
    }
    let (mut log, mut steps) = (Log::new(), 0);
    for (at, message) in messages.iter().enumerate() {
        if message.role() == Role::Assistant {
            steps += 1;
            if steps > NEWEST && steps % EVERY == 0 {
                for (number, sample) in samples(&log, NEWEST).into_iter().enumerate() {
                    let mentions = if sample.is_line { &of_lines } else { &of_names };
                    let needed = is_needed(mentions, &sample.text, at);
                    let skipped = sample.is_line && !needed && number % LINES != 0;
                    if !skipped {
                        let rows = if sample.is_line { &mut *lines } else { &mut *names };
                        rows.push(row(session, &sample, needed));
                    }
                }
            }
        }
        log.push(message.clone());
    }
}

fn mention<'a>(mentions: &mut Mentions<'a>, text: &'a str, at: usize, needed: bool) {
    let known = mentions.entry(text).or_default();
    match known.last_mut() {
        Some(last) if last.0 == at => last.1 |= needed,
        _ => known.push((at, needed)),
    }
}

/// Whether the next mention from this message on is a need.
fn is_needed(mentions: &Mentions<'_>, text: &str, from: usize) -> bool {
    let Some(known) = mentions.get(text) else { return false };
    known.get(known.partition_point(|(at, _)| *at < from)).is_some_and(|(_, needed)| *needed)
}

fn row(session: usize, sample: &Sample, needed: bool) -> Row {
    let mut known: Vec<f64> = sample.known.iter().map(|value| f64::from(*value)).collect();
    known.extend((0..KINDS).map(|kind| f64::from(u8::from(kind == sample.kind))));
    let weight = if sample.is_line && !needed { LINES as f64 } else { 1.0 };
    Row { session, known, needed, weight }
}

/// Fits, cross-validates, and says both.
fn report(what: &str, rows: &[Row], (known, kinds): (Vec<f32>, Vec<f32>)) {
    let in_use: Vec<f64> = known.iter().chain(&kinds).map(|weight| f64::from(*weight)).collect();
    let needed = rows.iter().filter(|row| row.needed).count();
    println!("{what}: {} samples, {needed} needed", rows.len());
    let all: Vec<&Row> = rows.iter().collect();
    let [loss, precision] = quality(&all, |_| &in_use);
    println!("  in use:          loss {loss:.5}, average precision {precision:.4}");
    let parts: Vec<Vec<f64>> = (0..PARTS)
        .map(|part| fit(&rows.iter().filter(|row| row.session % PARTS != part).collect::<Vec<_>>()))
        .collect();
    let [loss, precision] = quality(&all, |row| &parts[row.session % PARTS]);
    println!("  cross-validated: loss {loss:.5}, average precision {precision:.4}");
    let fitted = fit(&all);
    let print = |weights: &[f64]| {
        let weights: Vec<String> = weights.iter().map(|weight| format!("{weight:.2}")).collect();
        weights.join(", ")
    };
    let (known, kinds) = fitted.split_at(known.len());
    println!("  known: [{}],\n  kinds: [{}],", print(known), print(kinds));
}

fn score(weights: &[f64], row: &Row) -> f64 {
    weights.iter().zip(&row.known).map(|(weight, value)| weight * value).sum()
}

/// The mean loss, and the average precision.
fn quality<'a>(rows: &[&'a Row], weights: impl Fn(&'a Row) -> &'a Vec<f64>) -> [f64; 2] {
    let mut scored: Vec<(f64, &Row)> = rows.iter().map(|row| (score(weights(row), row), *row)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut loss, mut total, mut found, mut seen, mut precision) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (score, row) in scored {
        let chance = 1.0 / (1.0 + (-score).exp());
        let right = if row.needed { chance } else { 1.0 - chance };
        loss -= row.weight * right.max(1e-12).ln();
        total += row.weight;
        seen += row.weight;
        if row.needed {
            found += 1.0;
            precision += found / seen;
        }
    }
    [loss / total, precision / f64::max(found, 1.0)]
}

/// Logistic regression by Newton's method.
fn fit(rows: &[&Row]) -> Vec<f64> {
    /// Keeps weights of rare kinds near nothing.
    const PENALTY: f64 = 5.0;
    let size = rows.first().map_or(0, |row| row.known.len());
    let mut weights = vec![0.0; size];
    for _ in 0..20 {
        let mut gradient: Vec<f64> = weights.iter().map(|weight| -PENALTY * weight).collect();
        let mut curvature = vec![vec![0.0; size]; size];
        (0..size).for_each(|at| curvature[at][at] = PENALTY);
        for row in rows {
            let chance = 1.0 / (1.0 + (-score(&weights, row)).exp());
            let error = row.weight * (f64::from(u8::from(row.needed)) - chance);
            let bend = row.weight * chance * (1.0 - chance);
            for (at, value) in row.known.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                gradient[at] += error * value;
                for (bent, with) in curvature[at].iter_mut().zip(&row.known) {
                    *bent += bend * value * with;
                }
            }
        }
        let step = solve(curvature, gradient);
        weights.iter_mut().zip(&step).for_each(|(weight, step)| *weight += step);
        if step.iter().all(|step| step.abs() < 1e-6) {
            break;
        }
    }
    weights
}

/// Solves equations whose matrix is positive definite.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for at in 0..size {
        for below in at + 1..size {
            let factor = matrix[below][at] / matrix[at][at];
            let above = matrix[at].clone();
            matrix[below].iter_mut().zip(&above).skip(at).for_each(|(value, above)| *value -= factor * above);
            right[below] -= factor * right[at];
        }
    }
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|column| matrix[at][column] * right[column]).sum();
        right[at] = (right[at] - known) / matrix[at][at];
    }
    right
}
