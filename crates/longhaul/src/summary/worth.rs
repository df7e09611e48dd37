//! What a line of the past is worth: the chance that the work needs it again. Two small formulas, for the
//! names in a line and for the line as text that is edited next; their numbers were fitted on recorded
//! sessions (docs/default-profile.md). The arithmetic is the same on every machine: no library's logarithm.

use super::uses::{FileUse, NameUse};

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Short arguments of a call that name a file.
    Path,
    /// What a tool said that changed a file.
    Changed,
    /// What an agent answered that the model had sent out.
    Agent,
    /// A command that was run.
    Command,
    /// Other arguments.
    Argument,
    /// Thinking.
    Thought,
    /// What was read from a file.
    Read,
    /// The model's own words.
    Own,
    /// What any other tool said, or nobody knows.
    Other,
    /// A person's words, or the host's.
    User,
    /// Text that the model wrote into a file.
    New,
    /// What a command printed.
    Shell,
    /// What a search found.
    Search,
    /// Text that the model replaced in a file.
    Old,
}

impl LineKind {
    /// All kinds, each with the letter that stands for it in a journal.
    const LETTERS: [(Self, char); 14] = [
        (Self::Path, 'p'),
        (Self::Changed, 'e'),
        (Self::Agent, 'a'),
        (Self::Command, 'c'),
        (Self::Argument, 'g'),
        (Self::Thought, 't'),
        (Self::Read, 'r'),
        (Self::Own, 'o'),
        (Self::Other, '-'),
        (Self::User, 'u'),
        (Self::New, 'n'),
        (Self::Shell, 's'),
        (Self::Search, 'f'),
        (Self::Old, 'd'),
    ];

    pub(crate) fn letter(self) -> char {
        Self::LETTERS.iter().find(|(kind, _)| *kind == self).map_or('-', |(_, letter)| *letter)
    }

    /// The kind that a letter stands for.
    pub(crate) fn of(letter: char) -> Self {
        Self::LETTERS.iter().find(|(_, known)| *known == letter).map_or(Self::Other, |(kind, _)| *kind)
    }

    /// What a name in such a line has over one elsewhere.
    fn of_name(self) -> f32 {
        match self {
            Self::Path => 1.41,
            Self::Changed => 0.99,
            Self::Agent => 0.93,
            Self::Command => 0.83,
            Self::Argument => 0.34,
            Self::Thought => 0.24,
            Self::Read => 0.19,
            Self::Own => 0.13,
            Self::Other => -0.06,
            Self::User => -0.17,
            Self::New => -0.20,
            Self::Shell => -0.26,
            Self::Search => -0.65,
            Self::Old => -1.87,
        }
    }

    /// What such a line has over another, as text that is edited next.
    fn of_text(self) -> f32 {
        match self {
            Self::Changed => 2.27,
            Self::New => 0.74,
            Self::User => 0.32,
            Self::Old => 0.16,
            Self::Read => 0.15,
            Self::Shell => -1.08,
            _ => -2.0,
        }
    }
}

/// The chance that a name is needed again, in a line of this kind that mentions it last. `now` is the step
/// that is running.
pub(crate) fn of_name(name: &str, known: &NameUse, kind: LineKind, now: u32) -> f32 {
    let mut logit = -1.79 - 0.62 * ln_1p(now.saturating_sub(known.last_step));
    if known.calls > 0 {
        logit += 0.47 + 0.93 * ln_1p(known.calls.into());
    }
    logit -= 0.70 * ln_1p(known.results.into());
    if known.messages <= 1 {
        logit -= 0.94;
    }
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        logit -= 0.64;
    }
    if known.written {
        logit += 0.35;
    }
    chance(logit + kind.of_name())
}

/// What is known of a line as text that may be edited next.
pub(crate) struct Editable {
    /// The steps since it was shown.
    pub(crate) age: u32,
    /// What the log says of its file, and when this line was read or written.
    pub(crate) file: Option<FileUse>,
    pub(crate) step: u32,
    /// A name near it was written by the model.
    pub(crate) near_written: bool,
    /// A name in it was used in a call.
    pub(crate) called: bool,
    pub(crate) bytes: usize,
}

/// The chance that a line is replaced by an edit.
pub(crate) fn of_text(line: &Editable, kind: LineKind, now: u32) -> f32 {
    let mut logit = -3.69 - 0.58 * ln_1p(line.age) - 0.33 * ln_1p(line.bytes as u32);
    if let Some(file) = line.file {
        logit += 1.40 - 0.36 * ln_1p(now.saturating_sub(file.last_step)) + 1.40;
        if file.last_step > line.step {
            logit -= 1.63;
        }
        if file.changed > line.step {
            logit += 0.34;
        }
    }
    if line.near_written {
        logit += 0.65;
    }
    if line.called {
        logit += 0.27;
    }
    chance(logit - 0.6 + kind.of_text())
}

/// The natural logarithm of `1 + n`, to a hundredth.
fn ln_1p(n: u32) -> f32 {
    let n = n.saturating_add(1);
    let whole = n.ilog2();
    let part = n as f32 / (1_u64 << whole) as f32 - 1.0;
    // A parabola through both ends of the octave.
    (whole as f32 + part * (1.342 - 0.342 * part)) * std::f32::consts::LN_2
}

/// The chance that has these odds, as their logarithm.
fn chance(logit: f32) -> f32 {
    let odds = exp(logit.clamp(-20.0, 20.0));
    odds / (1.0 + odds)
}

/// The exponential, to a hundredth of itself.
fn exp(x: f32) -> f32 {
    let power = x * std::f32::consts::LOG2_E;
    let whole = power.floor();
    let part = power - whole;
    // A parabola through both ends of the octave.
    let fraction = 1.0 + part * (0.656 + 0.344 * part);
    // The exponent of a number between 2^-30 and 2^30.
    fraction * f32::from_bits(((whole as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_are_close() {
        for n in 0..100_000_u32 {
            let exact = f64::from(n).ln_1p();
            assert!((f64::from(ln_1p(n)) - exact).abs() < 0.01, "{n}");
        }
        for n in -200..200 {
            let x = n as f32 / 10.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 0.01, "{x}");
        }
    }

    #[test]
    fn every_kind_has_its_letter() {
        for (kind, letter) in LineKind::LETTERS {
            assert_eq!((kind.letter(), LineKind::of(letter)), (letter, kind));
        }
    }

    #[test]
    fn what_is_used_is_worth_more_than_what_is_seen() {
        let seen = NameUse { last_step: 10, results: 1, messages: 1, ..NameUse::default() };
        let used = NameUse { calls: 3, messages: 4, ..seen };
        let worth = |known: &NameUse, now| of_name("parse_line", known, LineKind::Shell, now);
        assert!(worth(&used, 20) > 5.0 * worth(&seen, 20));
        assert!(worth(&seen, 20) > worth(&seen, 200));
        assert!(worth(&seen, 20) > of_name("4711", &seen, LineKind::Shell, 20));
    }
}
