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

    pub(super) fn number(self) -> usize {
        Self::LETTERS.iter().position(|(kind, _)| *kind == self).unwrap_or_default()
    }
}

/// What speaks for a name or a line, and how much: a number for each thing that is known of it, in the order of
/// its weights, and one for the kind of its line, in the order of [`LineKind::LETTERS`].
pub(super) struct Weights<const N: usize> {
    pub(super) known: [f32; N],
    pub(super) kinds: [f32; 14],
}

impl<const N: usize> Weights<N> {
    pub(super) fn chance(&self, known: [f32; N], kind: LineKind) -> f32 {
        let sum: f32 = self.known.iter().zip(known).map(|(weight, value)| weight * value).sum();
        chance(sum + self.kinds[kind.number()])
    }
}

/// A name that is needed again.
pub(super) const NAME: Weights<8> = Weights {
    known: [-1.38, -0.57, 0.38, 0.98, -0.75, -0.83, 0.00, 0.08],
    kinds: [0.91, 0.81, 0.36, 0.43, 0.51, 0.13, -0.35, 0.14, -0.20, -0.27, -0.92, -0.41, -0.86, -1.66],
};

/// A line that an edit replaces.
pub(super) const TEXT: Weights<9> = Weights {
    known: [-3.43, -0.66, -0.21, 0.25, -0.29, -0.95, 0.27, 0.75, 0.44],
    kinds: [0.0, 2.69, -1.34, -2.06, -0.81, -1.61, 2.62, -1.48, -1.84, 0.83, 2.86, -1.80, -2.31, 0.81],
};

/// What is known of a name: one; the age of its last mention in steps; whether the model used it in a call,
/// in how many messages, and in how many results it stands; whether one message alone mentions it; whether it
/// is a number; whether the model wrote it outside of calls. Counts by their logarithms. `now` is the
/// step that is running.
pub(super) fn known_of_name(name: &str, known: &NameUse, now: u32) -> [f32; 8] {
    let yes = |is: bool| f32::from(u8::from(is));
    [
        1.0,
        ln_1p(now.saturating_sub(known.last_step)),
        yes(known.calls > 0),
        ln_1p(known.calls.into()),
        ln_1p(known.results.into()),
        yes(known.messages <= 1),
        yes(name.bytes().all(|byte| byte.is_ascii_digit())),
        yes(known.written),
    ]
}

/// The chance that a name is needed again, in a line of this kind that mentions it last.
pub(crate) fn of_name(name: &str, known: &NameUse, kind: LineKind, now: u32) -> f32 {
    NAME.chance(known_of_name(name, known, now), kind)
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

/// What is known of a line as text: one; its age in steps, and its bytes; whether it is of a file, how
/// many steps ago the file was read or changed, whether that was since, and whether it was a change;
/// whether a name near it is the model's, and whether one in it was used in a call. Counts by their logarithms.
pub(super) fn known_of_text(line: &Editable, now: u32) -> [f32; 9] {
    let yes = |is: bool| f32::from(u8::from(is));
    let of_file = |found: fn(&FileUse, u32) -> f32| line.file.map_or(0.0, |file| found(&file, line.step));
    [
        1.0,
        ln_1p(line.age),
        ln_1p(u32::try_from(line.bytes).unwrap_or(u32::MAX)),
        yes(line.file.is_some()),
        line.file.map_or(0.0, |file| ln_1p(now.saturating_sub(file.last_step))),
        of_file(|file, step| f32::from(u8::from(file.last_step > step))),
        of_file(|file, step| f32::from(u8::from(file.changed > step))),
        yes(line.near_written),
        yes(line.called),
    ]
}

/// The chance that a line is replaced by an edit.
pub(crate) fn of_text(line: &Editable, kind: LineKind, now: u32) -> f32 {
    TEXT.chance(known_of_text(line, now), kind)
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
        assert!(of_name("src/a.rs", &seen, LineKind::Path, 20) > worth(&seen, 20));
    }
}
