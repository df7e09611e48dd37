//! A digest by content: whole lines, the best ones, in their order, with marks where others
//! were.

use std::collections::HashSet;
use std::fmt::Write;

use super::content::ContentKind;
use super::rank::{NOISE, PLAIN, ranks};
use crate::archive::Handle;

/// A line longer than this is not kept: it is data, not words.
const LONGEST: usize = 1_000;

/// How much of a text is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// In bytes, marks not counted.
    pub bytes: usize,
    /// Lines that stay whatever they are: from the start, and from the end.
    pub head: usize,
    pub tail: usize,
}

/// The best lines of a text in at most about `room`; `None` if that would not be shorter.
pub(crate) fn select(
    text: &str,
    kind: ContentKind,
    room: Room,
    names: &HashSet<&str>,
    handle: Handle,
) -> Option<String> {
    if text.len() <= room.bytes || is_digest(text) {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut ranks = ranks(kind, &lines, names);
    let count = lines.len();
    let edge = ranks.iter_mut().enumerate().filter(|(at, _)| *at < room.head || at + room.tail >= count);
    edge.filter(|(at, _)| lines[*at].len() <= LONGEST).for_each(|(_, rank)| *rank = u8::MAX);
    // The best first, the earlier first among equals.
    let mut order: Vec<usize> =
        (0..count).filter(|at| ranks[*at] > PLAIN && lines[*at].len() <= LONGEST).collect();
    order.sort_by_key(|at| std::cmp::Reverse(ranks[*at]));
    let (mut kept, mut left) = (vec![false; count], room.bytes);
    for at in order {
        if lines[at].len() <= left {
            left -= lines[at].len();
            kept[at] = true;
        }
    }
    render(text, &lines, &kept, kind, handle)
}

/// The text without its noise: what nobody misses. `None` if that is little.
pub(crate) fn without_noise(text: &str, kind: ContentKind, handle: Handle) -> Option<String> {
    if is_digest(text) {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ranks = ranks(kind, &lines, &HashSet::new());
    let mut kept: Vec<bool> = ranks.iter().map(|rank| *rank != NOISE).collect();
    // One of a run stays, so that it is seen what there was.
    let mut gone = 0;
    for at in 0..lines.len() {
        if !kept[at] && (at == 0 || ranks[at - 1] != NOISE) && lines[at].len() <= LONGEST {
            kept[at] = true;
        }
        gone += if kept[at] { 0 } else { lines[at].len() };
    }
    (gone >= 400 && gone * 5 >= text.len()).then(|| render(text, &lines, &kept, kind, handle)).flatten()
}

/// True if the text is a digest already: it is not made shorter again.
pub(crate) fn is_digest(text: &str) -> bool {
    text.contains("⟦") && text.contains(" left out; recall ")
}

fn render(text: &str, lines: &[&str], kept: &[bool], kind: ContentKind, handle: Handle) -> Option<String> {
    let mut out = String::with_capacity(text.len() / 4);
    let mut first = true;
    let mut at = 0;
    while at < lines.len() {
        let run = kept[at..].iter().take_while(|k| **k == kept[at]).count();
        let part = &lines[at..at + run];
        let bytes: usize = part.iter().map(|line| line.len()).sum();
        // A mark is not shorter than a short line.
        if kept[at] || bytes < 20 && !first {
            out.extend(part.iter().copied());
        } else {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            let lines = if run == 1 { "1 line".to_owned() } else { format!("{run} lines") };
            let long = if run == 1 && bytes > LONGEST { format!(" ({bytes} bytes)") } else { String::new() };
            _ = if first {
                writeln!(out, "⟦{lines}{long} of {} left out; recall {}⟧", kind.name(), handle.short())
            } else {
                writeln!(out, "⟦{lines}{long}⟧")
            };
            first = false;
        }
        at += run;
    }
    (!first && out.len() < text.len()).then_some(out)
}
