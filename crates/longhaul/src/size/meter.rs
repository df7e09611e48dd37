//! How big a conversation is for the model that reads it: [`Meter`]. Each message is counted
//! once, with a vocabulary, into a [`Measure`]; sums of measures become tokens of the model
//! by what usage has taught (`calibration`). The neutral meter counts bytes instead, so that
//! windows, costs and policies compare whatever the model.

use std::borrow::Cow;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::conversation::frame::{Frame, without_secrets};
use crate::conversation::json::{Extra, Json};
use crate::conversation::message::{Block, Message, Role, Seal};
use crate::size::calibration::Calibration;
use crate::size::image::{self, ImageRule};
use crate::size::models::Model;
use crate::size::tokenizer::Vocabulary;
use crate::size::tokens::{Count, CountKind, Tokens};

/// Every message costs this beside its text: role, separators.
const PER_MESSAGE: i64 = 4;

/// What was counted, before it is tokens of a model. Measures add up and can be taken from
/// each other: a view is the sum of its messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Tokens of the vocabulary; negative in a difference.
    pub counted: i64,
    /// Assistant messages, each of which brings a little that nobody can see.
    pub answers: i64,
    /// Some of it was cut or guessed.
    pub rough: bool,
}

impl Add for Measure {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            counted: self.counted.saturating_add(other.counted),
            answers: self.answers.saturating_add(other.answers),
            rough: self.rough || other.rough,
        }
    }
}

impl AddAssign for Measure {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Measure {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            counted: self.counted.saturating_sub(other.counted),
            answers: self.answers.saturating_sub(other.answers),
            rough: self.rough || other.rough,
        }
    }
}

impl std::iter::Sum for Measure {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

/// Counts what is sent to a model.
///
/// ```
/// use longhaul::{Message, Meter, Models, Tokens, Usage};
/// use longhaul::size::CountKind;
/// let mut meter = Meter::for_model(Models::builtin().find("gpt-4o"));
/// let view = meter.message(&Message::user("Count these five words."));
/// assert_eq!(meter.estimate(view).kind, CountKind::Exact);
///
/// // The provider saw more: its usage is the base from here on.
/// meter.observe(view, Tokens(30));
/// let longer = view + meter.message(&Message::user("And these."));
/// assert_eq!(meter.estimate(longer).kind, CountKind::Calibrated);
/// assert!(meter.estimate(longer).tokens > Tokens(30));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    scale: Scale,
    /// The newest reported prompt that is believed, and the view it was reported for.
    anchor: Option<Report>,
    /// A report that is far from what was expected: believed when the next one agrees with it.
    doubted: Option<Report>,
}

/// A prompt that a provider reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Report {
    view: Measure,
    prompt: Tokens,
}

/// A report this far from the expected prompt is a jump, in percent of it …
const JUMP: u8 = 25;
/// … and at least so many tokens.
const SMALL_JUMP: Tokens = Tokens(4_000);
/// No prompt is less than this share of what the tokenizer counts, in percent.
const LEAST: u8 = 30;
/// A prompt may hold so much that no message shows: tools of the provider, its own instructions.
const UNSEEN: Tokens = Tokens(50_000);

/// A way to count: vocabulary and rule for pictures, or neutral.
pub(crate) type CountingWay = Option<(Vocabulary, ImageRule)>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scale {
    Neutral,
    Model {
        vocabulary: Vocabulary,
        own: bool,
        image: ImageRule,
        calibration: Calibration,
        /// The ratio of the model's row, in millionths: what holds where reports contradict each other.
        ratio_ppm: u64,
    },
}

impl Meter {
    /// UTF-8 bytes / 4, and 4 per message. Learns nothing.
    pub fn neutral() -> Self {
        Self { scale: Scale::Neutral, anchor: None, doubted: None }
    }

    /// Counts for a model, starting from the ratio of its table.
    pub fn for_model(model: &Model) -> Self {
        Self::calibrated(model, Calibration::new(model.ratio_ppm))
    }

    /// Counts for a model, going on from what was learnt before.
    pub fn calibrated(model: &Model, calibration: Calibration) -> Self {
        let own = model.ratio_ppm == 1_000_000;
        let (vocabulary, image, ratio_ppm) = (model.vocabulary, model.image, model.ratio_ppm);
        let scale = Scale::Model { vocabulary, own, image, calibration, ratio_ppm };
        Self { scale, anchor: None, doubted: None }
    }

    /// What was learnt, to be stored for the model. `None` for the neutral meter.
    pub fn calibration(&self) -> Option<&Calibration> {
        match &self.scale {
            Scale::Neutral => None,
            Scale::Model { calibration, .. } => Some(calibration),
        }
    }

    /// Counts a message.
    pub fn message(&self, message: &Message) -> Measure {
        let blocks: Measure = match &self.scale {
            Scale::Neutral => neutral(message.blocks()),
            Scale::Model { vocabulary, image, .. } => {
                message.blocks().iter().map(|block| block_measure(*vocabulary, *image, block)).sum()
            }
        };
        let answers = i64::from(message.role() == Role::Assistant);
        blocks + Measure { counted: PER_MESSAGE, answers, rough: false }
    }

    /// What the only block of a message counts, by what the message does.
    pub(crate) fn only_block(&self, message: Measure) -> Measure {
        message - Measure { counted: PER_MESSAGE, answers: message.answers, rough: false }
    }

    /// Counts a block.
    pub fn block(&self, block: &Block) -> Measure {
        match &self.scale {
            Scale::Neutral => neutral(std::slice::from_ref(block)),
            Scale::Model { vocabulary, image, .. } => block_measure(*vocabulary, *image, block),
        }
    }

    /// How it counts, before what it learnt: two meters of one way give the same measures.
    pub(crate) fn way(&self) -> CountingWay {
        match &self.scale {
            Scale::Neutral => None,
            Scale::Model { vocabulary, image, .. } => Some((*vocabulary, *image)),
        }
    }

    /// Counts system prompt and tools of a frame.
    pub fn frame(&self, frame: &Frame) -> Measure {
        let system = if frame.system.is_empty() {
            Measure::default()
        } else {
            self.message(&Message::new(Role::System, frame.system.clone()))
        };
        system
            + frame
                .tools
                .iter()
                .map(|tool| self.text(without_secrets(&tool.definition).as_str()))
                .sum::<Measure>()
    }

    /// Counts a text.
    pub fn text(&self, text: &str) -> Measure {
        match &self.scale {
            Scale::Neutral => bytes(text.len()),
            Scale::Model { vocabulary, .. } => text_measure(*vocabulary, text),
        }
    }

    /// Tokens of the model, for what was counted alone: no reported prompt is taken as base.
    pub fn tokens(&self, measure: Measure) -> Count {
        let (tokens, kind) = match &self.scale {
            Scale::Neutral => (measure.counted, CountKind::Estimated),
            Scale::Model { own, calibration, .. } => {
                let kind = match () {
                    () if calibration.has_learnt() => CountKind::Calibrated,
                    () if *own && !measure.rough => CountKind::Exact,
                    () => CountKind::Estimated,
                };
                (calibration.tokens(measure.counted, measure.answers), kind)
            }
        };
        Count { tokens: Tokens(u64::try_from(tokens).unwrap_or(0)), kind }
    }

    /// Tokens of a view: the newest reported prompt, and what was added or taken since.
    pub fn estimate(&self, view: Measure) -> Count {
        self.anchor.map_or_else(|| self.tokens(view), |base| self.since(base, view))
    }

    /// Tokens of a view, from what was reported for another.
    fn since(&self, base: Report, view: Measure) -> Count {
        let change = view - base.view;
        if (change.counted, change.answers) == (0, 0) {
            return Count { tokens: base.prompt, kind: CountKind::Reported };
        }
        let grown = self.tokens(change);
        let shrunk = self.tokens(Measure::default() - change);
        // A base that counts less than we do must not make what is left of it nothing.
        let least = self.tokens(view).tokens.percent(LEAST);
        let tokens = (base.prompt + grown.tokens - shrunk.tokens).max(least);
        Count { tokens, kind: grown.kind.max(CountKind::Calibrated) }
    }

    /// Learns what the provider reported for the prompt that this view was. A figure that cannot be is
    /// ignored, and a jump is believed when two reports in a row agree; false for a report that is not
    /// believed.
    ///
    /// ```
    /// use longhaul::{Message, Meter, Models, Tokens};
    /// let mut meter = Meter::for_model(Models::builtin().find("gpt-4o"));
    /// let view = meter.message(&Message::user("word ".repeat(40_000)));
    /// assert!(meter.observe(view, Tokens(40_100)));
    /// assert!(!meter.observe(view, Tokens(90_000)));
    /// assert_eq!(meter.estimate(view).tokens, Tokens(40_100));
    /// assert!(meter.observe(view, Tokens(90_100)));
    /// assert_eq!(meter.estimate(view).tokens, Tokens(90_100));
    /// ```
    pub fn observe(&mut self, view: Measure, prompt: Tokens) -> bool {
        if let Scale::Neutral = self.scale {
            return true;
        }
        let report = Report { view, prompt };
        if !is_possible(report) {
            return false;
        }
        let agrees = |base: Report| {
            let expected = self.since(base, view).tokens;
            let off = (expected - prompt).max(prompt - expected);
            off <= expected.percent(JUMP).max(SMALL_JUMP)
        };
        match self.anchor {
            Some(base) if agrees(base) => {
                self.teach(view - base.view, prompt.change_since(base.prompt));
            }
            Some(_) if !self.doubted.is_some_and(agrees) => {
                self.doubted = Some(report);
                return false;
            }
            // Two reports contradict those before: what the earlier ones taught is as wrong as they were.
            Some(_) => {
                if let Scale::Model { calibration, ratio_ppm, .. } = &mut self.scale {
                    *calibration = Calibration::new(*ratio_ppm);
                }
            }
            // The first prompt teaches nothing: it may hold text that the log has not.
            None => {}
        }
        (self.anchor, self.doubted) = (Some(report), None);
        true
    }

    /// True if a provider may count a view of this size as this prompt.
    pub(crate) fn can_be(&self, view: Measure, prompt: Tokens) -> bool {
        matches!(self.scale, Scale::Neutral) || is_possible(Report { view, prompt })
    }

    /// Learns how much the prompt grew when this was added, without taking it as base.
    pub fn teach(&mut self, added: Measure, growth: i64) {
        if let Scale::Model { calibration, .. } = &mut self.scale {
            calibration.learn(added.counted, added.answers, growth);
        }
    }

    /// Forgets the reported prompt, as a change of model or frame demands.
    pub fn forget_base(&mut self) {
        (self.anchor, self.doubted) = (None, None);
    }

    /// True if sizes go by what usage has taught, not by the model's row alone.
    pub(crate) fn goes_by_usage(&self) -> bool {
        self.anchor.is_some() || self.calibration().is_some_and(Calibration::has_learnt)
    }
}

/// False for a prompt that no tokenizer makes of such a view.
fn is_possible(report: Report) -> bool {
    let counted = Tokens(u64::try_from(report.view.counted).unwrap_or(0));
    // Of data that is counted by its bytes the provider may bill next to nothing.
    let least = if report.view.rough { Tokens(1) } else { counted.percent(LEAST) };
    (least..=counted.scaled(3_000_000) + UNSEEN).contains(&report.prompt)
}

/// A text longer than this is counted by samples: nobody sends it whole.
const GIANT: usize = 8 << 20;

fn text_measure(vocabulary: Vocabulary, text: &str) -> Measure {
    if text.len() > GIANT {
        return giant_measure(vocabulary, text);
    }
    let count = vocabulary.count(text);
    Measure { counted: i64::try_from(count.tokens).unwrap_or(i64::MAX), answers: 0, rough: !count.exact }
}

/// The tokens of evenly spaced samples, scaled to the whole.
fn giant_measure(vocabulary: Vocabulary, text: &str) -> Measure {
    const SAMPLES: usize = 64;
    const SAMPLE: usize = 32 << 10;
    let (mut tokens, mut bytes) = (0, 0);
    for n in 0..SAMPLES {
        let start = text.floor_char_boundary(n * (text.len() / SAMPLES));
        let sample = &text[start..text.floor_char_boundary(start + SAMPLE)];
        tokens += vocabulary.count(sample).tokens;
        bytes += sample.len();
    }
    let scaled = u128::from(tokens) * text.len() as u128 / bytes.max(1) as u128;
    guess(u64::try_from(scaled).unwrap_or(u64::MAX))
}

fn guess(tokens: u64) -> Measure {
    Measure { counted: i64::try_from(tokens).unwrap_or(i64::MAX), answers: 0, rough: true }
}

fn block_measure(vocabulary: Vocabulary, rule: ImageRule, block: &Block) -> Measure {
    let text = |text: &str| text_measure(vocabulary, text);
    match block {
        Block::Text(b) => text(&b.text),
        Block::Thinking(b) => match &b.seal {
            Seal::Open | Seal::Signed(_) => text(&b.text),
            // The provider bills the reasoning inside, of which only the sealed size is known:
            // base64 of roughly three characters of text in four.
            Seal::Redacted(data) => guess(data.as_deref().unwrap_or_default().len() as u64 * 3 / 16),
            Seal::Encrypted(data) => guess(data.len() as u64 * 3 / 16),
        },
        Block::ToolCall(b) => text(&b.name) + text(b.arguments.as_str()),
        Block::ToolResult(b) => {
            let others =
                b.content.as_deref().unwrap_or_default().iter().filter(|b| !matches!(b, Block::Text(_)));
            text(&b.text) + others.map(|b| block_measure(vocabulary, rule, b)).sum()
        }
        Block::Image(b) => guess(b.size.map_or(image::UNKNOWN, |size| rule.tokens(size)).0),
        Block::Opaque(b) => Measure { rough: true, ..text(b.value.as_str()) },
    }
}

fn bytes(len: usize) -> Measure {
    Measure { counted: len.div_ceil(4) as i64, answers: 0, rough: true }
}

/// The bytes of all texts, blocks apart by one byte, as `tools/judge.py` counts them.
fn neutral(blocks: &[Block]) -> Measure {
    let mut len = blocks.len().saturating_sub(1);
    let mut images = Measure::default();
    for block in blocks {
        len += match block {
            Block::Text(b) => b.text.len(),
            Block::Thinking(b) => b.text.len(),
            Block::ToolCall(b) => b.name.len() + argument_values(&b.arguments, |value| 1 + value.len()),
            Block::ToolResult(b) => {
                let content = b.content.as_deref().unwrap_or_default();
                images += content
                    .iter()
                    .filter(|b| matches!(b, Block::Image(_)))
                    .map(|_| guess(image::UNKNOWN.0))
                    .sum();
                b.text.len()
            }
            Block::Image(_) => {
                images += guess(image::UNKNOWN.0);
                0
            }
            Block::Opaque(b) => b.value.as_str().len(),
        };
    }
    bytes(len) + images
}

/// Adds up `size` over the values of a call's arguments: strings as their text, the rest as
/// JSON.
fn argument_values(arguments: &Json, size: impl Fn(&str) -> usize) -> usize {
    let Ok(fields) = serde_json::from_str::<Extra>(arguments.as_str()) else {
        return size(&json_text(arguments));
    };
    fields.iter().map(|(_, value)| size(&json_text(value))).sum()
}

fn json_text(json: &Json) -> Cow<'_, str> {
    let text = json.as_str();
    if !text.starts_with('"') {
        return Cow::Borrowed(text);
    }
    serde_json::from_str(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::models::Models;

    #[test]
    fn neutral_counts_bytes_as_the_judge_does() {
        let meter = Meter::neutral();
        let call = Json::new(r#"{"path": "a\n.rs", "n": [1, 2]}"#).unwrap();
        let message =
            Message::new(Role::Assistant, vec![Block::text("abcd"), Block::call("c", "Read", call)]);
        // "abcd\nRead\na\n.rs\n[1, 2]" has 22 bytes.
        assert_eq!(meter.message(&message).counted, 22_i64.div_euclid(4) + 1 + 4);
        assert_eq!(meter.tokens(meter.message(&Message::user("中文"))).tokens, Tokens(6));
    }

    #[test]
    fn pictures_are_counted_by_pixels() {
        let meter = Meter::for_model(Models::builtin().find("claude-opus-4-5"));
        let data = format!("{{\"data\":\"{}\"}}", "A".repeat(1 << 20));
        let image = |size| {
            let image = crate::conversation::message::Image {
                source: Json::new(data.clone()).unwrap(),
                size,
                extra: Extra::NONE,
            };
            meter.message(&Message::new(Role::User, vec![Block::Image(image)])).counted
        };
        assert_eq!(image(Some((1000, 750))), 1004);
        assert_eq!(image(None), 89);
    }

    #[test]
    fn a_giant_is_counted_by_samples() {
        let meter = Meter::for_model(Models::builtin().find("gpt-4o"));
        let line = "2026-03-02 09:00:00 INFO request handled\n";
        let small = meter.text(&line.repeat(10_000)).counted;
        let giant = meter.text(&line.repeat(400_000));
        assert!(giant.rough && (giant.counted - small * 40).abs() < small, "{giant:?} {small}");
    }

    // covers: S-2, T-COUNT
    #[test]
    fn reported_usage_is_the_base_and_edits_lower_it() {
        let mut meter = Meter::for_model(Models::builtin().find("gpt-4o"));
        let view = Measure { counted: 1000, answers: 3, rough: false };
        meter.observe(view, Tokens(1500));
        assert_eq!(meter.estimate(view), Count { tokens: Tokens(1500), kind: CountKind::Reported });
        let less = view - Measure { counted: 400, answers: 0, rough: false };
        assert_eq!(meter.estimate(less).tokens, Tokens(1100));
        meter.forget_base();
        assert_eq!(meter.estimate(view).tokens, Tokens(1000));
    }

    #[test]
    fn system_and_tools_count() {
        let meter = Meter::for_model(Models::builtin().find("gpt-4o"));
        let frame = Frame {
            system: vec![Block::text("You are helpful.")],
            tools: vec![crate::conversation::frame::Tool::from_definition(
                Json::new(r#"{"name":"Read"}"#).unwrap(),
            )],
            ..Frame::default()
        };
        assert!(meter.frame(&frame).counted > 8);
        assert_eq!(meter.frame(&Frame::default()), Measure::default());
    }
}
