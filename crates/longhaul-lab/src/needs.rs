//! What the next call of a recorded session needs, and whether it is in a view: retention, in
//! line, near, reachable. Definitions as in `docs/measuring.md`: a need is a path, a name that
//! nobody could guess, a number, or a line of an edit's old text, in the arguments of the next
//! tool calls, that occurred in the log before.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use longhaul::conversation::{Made, made_by};
use longhaul::digest::ToolKind;
use longhaul::{Block, Extra, Json, Message, ToolCall};
use regex::Regex;

use crate::Origin;
use crate::numbered::{LINE_MARK, LineIndex, Names};

/// Needs last seen more steps back than this are far.
const FAR: u32 = 6;
/// Lines and contexts shorter than this say nothing.
const LINE: usize = 12;

/// The text of a message as it is searched: blocks apart by newlines, a call as its name and
/// its argument values, a script as the calls in it.
pub fn text_of(message: &Message) -> String {
    let mut out: Vec<String> = Vec::new();
    for block in message.blocks() {
        match block {
            Block::Text(b) => out.push(b.text.to_string()),
            Block::Thinking(b) => out.push(b.text.to_string()),
            Block::ToolCall(b) => {
                for call in made_by(b).calls() {
                    let mut lines = vec![call.name.to_string()];
                    lines.extend(argument_values(&call.arguments).into_iter().map(|(_, value)| value));
                    out.push(lines.join("\n"));
                }
            }
            Block::ToolResult(b) => out.push(b.text.to_string()),
            Block::Opaque(b) => out.push(b.value.as_str().to_owned()),
            Block::Image(_) => {}
        }
    }
    out.join("\n")
}

/// The arguments of a call: names and values, strings as their text.
fn argument_values(arguments: &Json) -> Vec<(String, String)> {
    let text = |json: &Json| {
        serde_json::from_str::<String>(json.as_str()).unwrap_or_else(|_| json.as_str().to_owned())
    };
    let fields = |json: &str| serde_json::from_str::<Extra>(json).ok();
    // Some formats write the object as a string.
    let whole = text(arguments);
    match fields(arguments.as_str()).or_else(|| fields(&whole)) {
        Some(fields) => fields.iter().map(|(name, value)| (name.to_owned(), text(value))).collect(),
        None => vec![("_".to_owned(), whole)],
    }
}

/// Paths, numbers of four digits, and names that nobody could guess.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    static WORD: OnceLock<Regex> = OnceLock::new();
    const PATTERN: &str = r"[\w.@~-]*(?:/[\w.@~-]+)+|\d{4,}|[A-Za-z_][A-Za-z0-9_]{5,}";
    let word =
        WORD.get_or_init(|| Regex::new(PATTERN).unwrap_or_else(|_| unreachable!("a constant pattern")));
    word.find_iter(text).map(|found| found.as_str()).filter(|word| is_name(word))
}

fn is_name(word: &str) -> bool {
    if word.contains('/') || word.chars().nth(15).is_some() || word.chars().all(char::is_numeric) {
        return true;
    }
    let bytes = word.as_bytes();
    let snake = |w: &[u8]| {
        (w[0].is_ascii_lowercase() || w[0].is_ascii_digit()) && w[1] == b'_' && w[2].is_ascii_alphanumeric()
    };
    let camel = |w: &[u8]| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase();
    let digit = |w: &[u8]| w[0].is_ascii_alphabetic() && w[1].is_ascii_digit();
    bytes.windows(3).any(snake) || bytes.windows(2).any(|pair| camel(pair) || digit(pair))
}

/// A line without its number and margins.
fn bare(line: &str) -> &str {
    let trimmed = line.trim_start();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 {
        let rest = trimmed[digits..].trim_start_matches([' ', '\t']);
        if let Some(rest) = rest.strip_prefix(['→', ':', '|']) {
            return rest.trim();
        }
        // A tab alone is a separator too.
        if trimmed[digits..].contains('\t') && trimmed[digits..].trim_start_matches(' ').starts_with('\t') {
            return trimmed[digits..].trim();
        }
    }
    line.trim()
}

/// The lines of a text that say something, escaped newlines included, without numbers and margins.
fn telling_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split('\n').flat_map(|line| line.split("\\n")).map(bare);
    lines.filter(|line| line.chars().nth(LINE - 1).is_some())
}

/// A name that occurs in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u32);

/// A text that can be in a view, with what it holds.
pub struct Piece {
    /// Its size.
    pub tokens: f64,
    /// Its names and lines, each once.
    marks: Vec<u32>,
    /// It is a list of its marks, all names, in their order.
    is_list: bool,
}

/// The log of a recorded session, as far as it was read, and what each call needs of it.
pub struct Needs {
    measure: fn(&str) -> f64,
    names: Names,
    /// What is known of each mark, by its number.
    known: Vec<Known>,
    lines: LineIndex,
    step: u32,
    /// Where what each message says comes from.
    origins: Vec<Origin>,
    /// What the results of calls are, by their ids.
    calls: HashMap<Box<str>, Origin>,
    /// Files that the session has changed, in the order in which it did so first.
    changed: Vec<u32>,
    pieces: HashMap<Box<str>, Arc<Piece>>,
}

/// What is known of a name or a line.
#[derive(Clone, Default)]
struct Known {
    /// Step and message in which it was last seen.
    last: Option<(u32, u32)>,
    /// The line that a name last stood in.
    origin: Option<u32>,
    /// Names in a line.
    names: Box<[u32]>,
    /// A file that the session has changed.
    is_changed: bool,
}

/// Something that a call needs.
struct Need {
    mark: u32,
    /// Its characters.
    name: usize,
    far: bool,
    /// The message it was last seen in.
    at: u32,
    /// The line it stood in, if that said more than the name.
    line: Option<u32>,
}

/// Near needs, and those of them that were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Near {
    all: u64,
    found: u64,
}

/// Shares of needs that were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Found {
    far: u64,
    far_found: u64,
    /// Of each origin.
    near: [Near; Origin::ALL.len()],
    lines: u64,
    lines_found: u64,
    reachable: u64,
}

impl Found {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.far += other.far;
        self.far_found += other.far_found;
        for (near, other) in self.near.iter_mut().zip(other.near) {
            near.all += other.all;
            near.found += other.found;
        }
        self.lines += other.lines;
        self.lines_found += other.lines_found;
        self.reachable += other.reachable;
    }

    /// Of far needs, those in the view.
    pub fn retention(&self) -> Option<f64> {
        share(self.far_found, self.far)
    }

    /// Of far needs that stood in a telling line, those whose whole line is in the view.
    pub fn in_line(&self) -> Option<f64> {
        share(self.lines_found, self.lines)
    }

    /// Of near needs, those in the view.
    pub fn near(&self) -> Option<f64> {
        share(self.near.iter().map(|near| near.found).sum(), self.near.iter().map(|near| near.all).sum())
    }

    /// The same of needs of each origin that there are any of: how many, and the share in the view.
    pub fn near_by_origin(&self) -> impl Iterator<Item = (Origin, u64, f64)> {
        let all = Origin::ALL.into_iter().zip(self.near);
        all.filter_map(|(origin, Near { all, found })| Some((origin, all, share(found, all)?)))
    }

    /// Of far needs, those in the view or under a handle in it.
    pub fn reachable(&self) -> Option<f64> {
        share(self.reachable, self.far)
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

impl Needs {
    /// Nothing read yet; texts are sized by `measure`.
    pub fn new(measure: fn(&str) -> f64) -> Self {
        Self {
            measure,
            names: Names::default(),
            known: Vec::new(),
            lines: LineIndex::default(),
            step: 0,
            origins: Vec::new(),
            calls: HashMap::new(),
            changed: Vec::new(),
            pieces: HashMap::new(),
        }
    }

    /// A text that can be in a view. The same text is looked at once.
    pub fn piece(&mut self, text: &str) -> Arc<Piece> {
        if let Some(piece) = self.pieces.get(text) {
            return piece.clone();
        }
        let mut marks: Vec<u32> = words(text).map(|word| self.names.name(word)).collect();
        for line in telling_lines(text) {
            marks.push(self.line_mark(line));
        }
        marks.sort_unstable();
        marks.dedup();
        let piece = Arc::new(Piece { tokens: (self.measure)(text), marks, is_list: false });
        self.pieces.insert(text.into(), piece.clone());
        piece
    }

    /// A list of different names, apart by spaces, which is another one each time: it is not remembered. Its size is that
    /// of its bytes, by four, whatever the measure: nobody reads it.
    pub fn list(&self, names: impl Iterator<Item = Name>, bytes: usize) -> Arc<Piece> {
        let marks = names.map(|Name(mark)| mark).collect();
        Arc::new(Piece { tokens: bytes as f64 / 4.0 + 4.0, marks, is_list: true })
    }

    /// Bytes of a name.
    pub fn bytes_of(&self, name: Name) -> usize {
        self.names.text(name.0).len()
    }

    /// The names in a text, in their order.
    pub fn names(&mut self, text: &str) -> Vec<Name> {
        words(text).map(|word| Name(self.names.name(word))).collect()
    }

    /// A line is a mark of its own, apart from the name that may stand alone on it.
    fn line_mark(&mut self, line: &str) -> u32 {
        let (mark, is_new) = self.names.number(&format!("{LINE_MARK}{line}"));
        if is_new {
            let names: Vec<u32> = words(line).map(|word| self.names.name(word)).collect();
            self.known_of(mark).names = names.into();
            self.lines.add(line, mark);
        }
        mark
    }

    fn known_of(&mut self, mark: u32) -> &mut Known {
        let most = self.known.len().max(mark as usize + 1);
        self.known.resize_with(most, Known::default);
        &mut self.known[mark as usize]
    }

    /// Takes in the next message of the log.
    pub fn push(&mut self, message: &Message, text: &str) {
        if message.role() == longhaul::Role::Assistant {
            self.step += 1;
        }
        for call in message.calls() {
            self.calls.insert((*call.id).into(), Origin::of_result(call));
            for path in changed_files(call) {
                // A path without a slash is not a name that could be looked for.
                let path = words(&path).find(|word| word.contains('/'));
                if let Some(mark) = path.map(|path| self.names.name(path))
                    && !std::mem::replace(&mut self.known_of(mark).is_changed, true)
                {
                    self.changed.push(mark);
                }
            }
        }
        let piece = self.piece(text);
        let answered = message.results().find_map(|result| self.calls.get(&*result.id).copied());
        let now = (self.step, u32::try_from(self.origins.len()).unwrap_or(u32::MAX));
        self.origins.push(Origin::of(message.role(), answered));
        for mark in &piece.marks {
            self.known_of(*mark).last = Some(now);
        }
        for line in telling_lines(text) {
            let origin = self.line_mark(line);
            let names = std::mem::take(&mut self.known_of(origin).names);
            names.iter().for_each(|name| self.known_of(*name).origin = Some(origin));
            self.known_of(origin).names = names;
        }
    }

    /// Where what a message says comes from.
    fn origin(&self, at: u32) -> Origin {
        self.origins.get(at as usize).copied().unwrap_or(Origin::Said)
    }

    /// True if a text stands in a list.
    fn lists(&self, list: &Piece, text: &str) -> bool {
        let names: Vec<&str> = list.marks.iter().map(|mark| self.names.text(*mark)).collect();
        names.join(" ").contains(text)
    }

    /// What the answer's calls need, of what was in the log before it.
    fn of(&self, answer: &Message) -> Vec<Need> {
        let (names, lines) = wanted_by(answer);
        let known = |name: &str| self.names.known(name);
        let mut wanted: HashMap<u32, usize> = HashMap::new();
        wanted.extend(names.iter().filter_map(|name| Some((known(name)?, name.chars().count()))));
        wanted.extend(lines.iter().filter_map(|line| Some((known(&format!("{LINE_MARK}{line}"))?, 0))));
        let needs = wanted.into_iter().filter_map(|(mark, name)| {
            let known = self.known.get(mark as usize)?;
            let (step, at) = known.last?;
            let far = self.step - step > FAR;
            let is_line = self.names.line(mark).is_some();
            let line = known.origin.filter(|_| far && !is_line);
            Some(Need { mark, name, far, at, line })
        });
        needs.collect()
    }
}

/// The files that a call changes. Of a script, those that each call in it changes, patches included.
fn changed_files(call: &ToolCall) -> Vec<String> {
    let made = made_by(call);
    let files = made.calls().iter().flat_map(|call| {
        let tool = ToolKind::of(&call.name, &call.arguments);
        match tool {
            ToolKind::Edit | ToolKind::Write => tool.files(&call.arguments),
            ToolKind::Bash if made.is_script() => tool.files(&call.arguments),
            _ => Vec::new(),
        }
    });
    files.collect()
}

/// Needs of an answer, as text: names, and lines of an edit's old text. A script needs what the calls in it
/// need.
pub fn wanted_by(answer: &Message) -> (Vec<String>, Vec<String>) {
    let (mut names, mut lines) = (Vec::new(), Vec::new());
    let made: Vec<Made<'_>> = answer.calls().map(made_by).collect();
    for (name, value) in made.iter().flat_map(Made::calls).flat_map(|call| argument_values(&call.arguments)) {
        // What the model writes new is no need.
        if matches!(&*name, "content" | "new_string" | "new_str" | "newText" | "file_text" | "description") {
            continue;
        }
        names.extend(words(&value).map(str::to_owned));
        if matches!(&*name, "old_string" | "old_str" | "oldText" | "old_text" | "search") {
            let old = value.split('\n').map(str::trim).filter(|line| line.chars().nth(LINE - 1).is_some());
            lines.extend(old.map(str::to_owned));
        }
    }
    (names, lines)
}

/// Paths that an answer's calls name.
pub fn paths_of(answer: &Message) -> Vec<String> {
    wanted_by(answer).0.into_iter().filter(|name| name.contains('/')).collect()
}

/// For the oracle, which knows the future: of each message, the lines that are the newest
/// source of something a later call needs.
pub fn needed_lines(messages: &[Arc<Message>], texts: &[String]) -> HashMap<usize, HashSet<usize>> {
    let mut newest: HashMap<String, (usize, usize)> = HashMap::new();
    let mut wanted: HashMap<usize, HashSet<usize>> = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        if message.role() == longhaul::Role::Assistant {
            let (names, lines) = wanted_by(message);
            for need in names.into_iter().chain(lines.into_iter().map(|line| format!("{LINE_MARK}{line}"))) {
                if let Some((message, line)) = newest.get(&need) {
                    wanted.entry(*message).or_default().insert(*line);
                }
            }
        }
        for (number, line) in texts[at].split('\n').enumerate() {
            for word in words(line) {
                newest.insert(word.to_owned(), (at, number));
            }
            let bare = bare(line);
            if bare.chars().nth(LINE - 1).is_some() {
                newest.insert(format!("{LINE_MARK}{bare}"), (at, number));
            }
        }
    }
    wanted
}

/// What a view holds, kept up to date as it changes.
#[derive(Default)]
pub struct Holdings {
    parts: Vec<Arc<Piece>>,
    /// Tokens up to and including each part.
    sums: Vec<f64>,
    tail: Vec<Arc<Piece>>,
    /// How many parts hold each mark.
    counts: Vec<u32>,
    /// Marks that are files which the session has changed; so many of those files are known here, and so many of them
    /// are in a part.
    is_file: Vec<bool>,
    files: usize,
    named: u64,
}

/// What became of a view.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Tokens of the parts in common with the view before, at the start.
    pub warm: f64,
    /// All other tokens.
    pub cold: f64,
    /// The view before was cut.
    pub broke: bool,
}

impl Holdings {
    /// Puts another view in the place of this one: the first `kept` parts are the same, then come these. Costs what
    /// differs.
    pub fn change(&mut self, kept: usize, parts: &[Arc<Piece>], tail: Vec<Arc<Piece>>) -> Change {
        let kept = kept.min(self.parts.len());
        let same = self.parts[kept..].iter().zip(parts).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let (common, new) = (kept + same, &parts[same..]);
        let broke = common < self.parts.len();
        let gone: Vec<Arc<Piece>> = self.parts.drain(common..).chain(self.tail.drain(..)).collect();
        for piece in gone {
            for mark in &piece.marks {
                self.counts[*mark as usize] -= 1;
                self.named -= u64::from(!self.has(*mark) && self.is_file(*mark));
            }
        }
        self.sums.truncate(common);
        let warm = self.sums.last().copied().unwrap_or_default();
        let mut sum = warm;
        for piece in new.iter().chain(&tail) {
            let most = piece.marks.iter().max().map_or(0, |mark| *mark as usize + 1);
            self.counts.resize(self.counts.len().max(most), 0);
            for mark in &piece.marks {
                self.named += u64::from(!self.has(*mark) && self.is_file(*mark));
                self.counts[*mark as usize] += 1;
            }
        }
        for piece in new {
            sum += piece.tokens;
            self.parts.push(piece.clone());
            self.sums.push(sum);
        }
        let behind: f64 = tail.iter().map(|piece| piece.tokens).sum();
        self.tail = tail;
        Change { warm, cold: sum - warm + behind, broke }
    }

    /// How many files that the session has changed are named here, of how many.
    pub fn named_files(&mut self, needs: &Needs) -> (u64, u64) {
        for file in &needs.changed[self.files..] {
            let most = self.is_file.len().max(*file as usize + 1);
            self.is_file.resize(most, false);
            self.is_file[*file as usize] = true;
            self.named += u64::from(self.has(*file));
        }
        self.files = needs.changed.len();
        (self.named, self.files as u64)
    }

    fn is_file(&self, mark: u32) -> bool {
        self.is_file.get(mark as usize).is_some_and(|is_file| *is_file)
    }

    fn has(&self, mark: u32) -> bool {
        self.counts.get(mark as usize).is_some_and(|count| *count > 0)
    }

    /// True if a line is here, by itself or inside another.
    fn has_line(&self, mark: u32, line: &str, needs: &Needs) -> bool {
        let inside =
            |other: u32| self.has(other) && needs.names.line(other).is_some_and(|other| other.contains(line));
        self.has(mark)
            || needs.lines.candidates(line).any(inside)
            || self
                .parts
                .first()
                .is_some_and(|first| first.is_list && may_be_listed(line) && needs.lists(first, line))
    }

    /// How much of what the answer needs is here. `reachable` says whether a message that is
    /// not can be recalled.
    pub fn judge(&self, needs: &Needs, answer: &Message, reachable: impl Fn(u32) -> bool) -> Found {
        let mut found = Found::default();
        for need in needs.of(answer) {
            let here = self.has(need.mark);
            if !need.far {
                let near = &mut found.near[needs.origin(need.at) as usize];
                near.all += 1;
                near.found += u64::from(here);
                continue;
            }
            found.far += 1;
            found.far_found += u64::from(here);
            found.reachable += u64::from(here || reachable(need.at));
            let line = need.line.and_then(|mark| Some((mark, needs.names.line(mark)?)));
            // A name that stood alone on its line has no line to keep.
            let Some((mark, line)) = line.filter(|(_, line)| line.chars().count() >= need.name + LINE - 2)
            else {
                continue;
            };
            found.lines += 1;
            found.lines_found += u64::from(self.has_line(mark, line, needs));
        }
        found
    }
}

/// True if a line may stand in a list of names, which are apart by single spaces.
fn may_be_listed(line: &str) -> bool {
    line.chars().all(|c| c.is_alphanumeric() || " _.@~/-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul::Role;

    fn script(source: &str) -> Message {
        let arguments = Json::from(&serde_json::json!({ "input": source }));
        Message::new(Role::Assistant, vec![Block::call("c", "exec", arguments)])
    }

    const SOURCE: &str = "const max_output_tokens = 9000; const results_of_all = await Promise.all([\n\
        tools.exec_command({cmd: \"sed -n 1,80p shop/src/cart.rs\\nrg total_of_cart\"}),\n\
        tools.edit_file({path: 'shop/src/tax.rs', old_string: 'let rate_of_tax = 19;\\nlet b', new_string: 'let new_rate_2 = 20;'}),\n\
        tools.apply_patch(`*** Begin Patch\n*** Update File: shop/src/cart.rs\n+x\n*** Add File: shop/src/order.rs\n*** End Patch`)]);";

    #[test]
    fn a_script_needs_what_the_calls_in_it_need() {
        let (names, lines) = wanted_by(&script(SOURCE));
        for name in ["shop/src/cart.rs", "total_of_cart", "shop/src/tax.rs", "rate_of_tax"] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        for name in ["max_output_tokens", "results_of_all", "nrg", "new_rate_2"] {
            assert!(!names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        assert_eq!(lines, ["let rate_of_tax = 19;"]);
        assert!(
            text_of(&script(SOURCE))
                .contains("exec_command\nsed -n 1,80p shop/src/cart.rs\nrg total_of_cart\n")
        );
    }

    #[test]
    fn files_that_a_script_patched_are_changed_files() {
        let mut needs = Needs::new(|text| text.len() as f64);
        let message = script(SOURCE);
        needs.push(&message, &text_of(&message));
        assert_eq!(Holdings::default().named_files(&needs), (0, 3));
        let mut holdings = Holdings::default();
        let piece = needs.piece("`shop/src/tax.rs`: changed 1×, `shop/src/order.rs`: changed 1×");
        holdings.change(0, &[piece], Vec::new());
        assert_eq!(holdings.named_files(&needs), (2, 3));
        // A patch outside of a script counts as well.
        let patch = serde_json::json!({"input": "*** Begin Patch\n*** Update File: shop/src/list.rs\n+x\n"});
        let call = Block::call("p", "apply_patch", Json::from(&patch));
        let message = Message::new(Role::Assistant, vec![call]);
        needs.push(&message, &text_of(&message));
        assert_eq!(holdings.named_files(&needs), (2, 4));
    }
}
