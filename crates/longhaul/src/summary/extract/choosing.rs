//! Which lines are kept: what people said, and lines that are worth their bytes or fit into the room.

use super::entry::{Entry, Speaker};
use super::weighing::{Choice, LINE};

/// The choices that are worth their bytes; lines of an entry only if together they pay for its heading.
/// The choices of an entry stand together, its heading last.
pub(super) fn that_pay(entries: &[Entry<'_>], choices: Vec<Choice>, byte: f32) -> Vec<Choice> {
    let gain = |&(at, number, worth): &Choice| worth - byte * size_of(entries, at, number) as f32;
    let mut paying = Vec::with_capacity(choices.len() / 2);
    for of_entry in choices.chunk_by(|a, b| a.0 == b.0) {
        let at = of_entry[0].0;
        let heading = of_entry.iter().find(|choice| choice.1 == 0).copied().unwrap_or((at, 0, 0.0));
        let lines = || of_entry.iter().filter(|choice| choice.1 > 0 && gain(choice) > 0.0);
        let of_lines: f32 = lines().map(gain).sum();
        let of_heading = if entries[at].heading.is_empty() { 0.0 } else { gain(&heading) };
        if of_lines + of_heading > 0.0 {
            paying.extend(lines());
            paying.extend(neighbours(&entries[at], of_entry, lines(), byte));
            if of_heading > 0.0 {
                paying.push(heading);
            }
        }
    }
    paying
}

/// Lines beside those that are kept, which are worth a share of them: what stands around a line says what it
/// means.
fn neighbours<'c>(
    entry: &Entry<'_>,
    of_entry: &[Choice],
    kept: impl Iterator<Item = &'c Choice>,
    byte: f32,
) -> Vec<Choice> {
    const SHARE: f32 = 0.03;
    // By number of the line, with an empty place at both ends.
    let (mut own, mut shared) = (vec![0.0; entry.lines.len() + 2], vec![0.0_f32; entry.lines.len() + 2]);
    of_entry.iter().for_each(|(_, number, worth)| own[*number] = *worth);
    let mut is_kept = vec![false; entry.lines.len() + 2];
    for (_, number, worth) in kept {
        is_kept[*number] = true;
        for beside in [number - 1, number + 1] {
            shared[beside] = shared[beside].max(SHARE * worth);
        }
    }
    let (at, mut beside) = (of_entry[0].0, Vec::new());
    for (number, line) in (1..).zip(&entry.lines) {
        let worth = own[number] + shared[number];
        let pays = worth > byte * (line.text.len() + 3) as f32;
        if shared[number] > 0.0 && pays && !is_kept[number] && line.text.len() <= LINE {
            beside.push((at, number, worth));
        }
    }
    beside
}

/// Keeps what people said, the newest first. Gives what is left of the room.
pub(super) fn keep_people(entries: &mut [Entry<'_>], mut room: usize) -> usize {
    for entry in entries.iter_mut().rev().filter(|entry| entry.speaker == Speaker::Person && !entry.kept) {
        let size = entry.heading.len() + 1;
        if size <= room {
            room -= size;
            entry.kept = true;
        }
    }
    room
}

/// Keeps the lines that are worth most for their length, until the room is full. Gives what is
/// left of it.
pub(super) fn keep_best(entries: &mut [Entry<'_>], choices: Vec<Choice>, mut left: usize) -> usize {
    let mut order: Vec<(f32, Choice)> = choices
        .into_iter()
        .filter(|(_, _, worth)| *worth > 0.0 && worth.is_finite())
        .map(|choice| (choice.2 / (size_of(entries, choice.0, choice.1) as f32 + 16.0), choice))
        .collect();
    // The order is the same wherever it is made: by worth, then by place.
    order.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| (x.0, x.1).cmp(&(y.0, y.1))));
    for (_, choice) in order {
        let (at, number, _) = choice;
        let mut cost = size_of(entries, at, number);
        // A line stands under its heading.
        if number > 0 && !entries[at].kept && !entries[at].heading.is_empty() {
            cost += entries[at].heading.len() + 1;
        }
        if number == 0 && entries[at].kept || cost > left {
            continue;
        }
        left -= cost;
        entries[at].kept = true;
        if number > 0 {
            entries[at].lines[number - 1].kept = true;
        }
    }
    left
}

/// What a line takes in an extract, in bytes.
fn size_of(entries: &[Entry<'_>], at: usize, number: usize) -> usize {
    let entry = &entries[at];
    if number == 0 { entry.heading.len() + 1 } else { entry.lines[number - 1].text.len() + 3 }
}
