//! A conversation while it is read: what is in the context now, what each call was billed, what came
//! twice. Sizes are counted in bytes and become tokens at the end, by what the prompts say: how many
//! tokens a byte was, and how much was there before the first word.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use longhaul::conversation::made_by;
use longhaul::{Extra, Json, ToolCall};

use super::conversation::{Call, Compaction, Conversation, LargeResult, Part, Repeated};
use super::node::Node;

/// How many of the largest results and repetitions are kept.
const LARGEST: usize = 10;
const REPEATED: usize = 20;

/// What a picture counts, in bytes of text.
pub const PICTURE: u64 = 6_000;

/// Results shorter than this are no waste, however often they come.
const SHORT: u64 = 200;

/// Tokens of a byte, in millionths, where the prompts do not tell, and what no text is beyond.
const USUAL_RATIO: f64 = 0.3;
const LEAST_RATIO: f64 = 0.12;
const MOST_RATIO: f64 = 1.0;

/// Puts the figures of a conversation together.
#[derive(Default)]
pub struct Recorder {
    conversation: Conversation,
    /// Parts of the context by number, with their bytes.
    parts: Vec<Part>,
    now: Vec<u64>,
    /// The context as the model was asked, where its bill comes later.
    asked: Option<Vec<u64>>,
    stretches: Vec<Stretch>,
    /// Calls of the conversation by their key.
    keys: HashMap<u64, (usize, usize)>,
    /// Calls of tools that were made: by id, which tool, and what it was asked.
    made: HashMap<String, Asked>,
    /// Results by their question.
    results: HashMap<u64, Seen>,
    large: Vec<Large>,
    compaction: Option<Compaction>,
    calls: u64,
}

/// Between two compactions.
#[derive(Default, Clone)]
struct Stretch {
    calls: u64,
    /// The prompts of all calls.
    prompts: u64,
    /// Bytes of each part, over all calls.
    carried: Vec<u64>,
    /// Prompt and bytes of the first call and of the last.
    first: Option<(u64, u64)>,
    last: (u64, u64),
}

struct Asked {
    tool: String,
    what: String,
    repeats: Repeats,
    /// A script asked, not the model.
    is_script: bool,
}

/// Results of one question.
struct Seen {
    tool: String,
    what: String,
    times: u64,
    unchanged: u64,
    bytes_again: u64,
    texts: Vec<u64>,
}

struct Large {
    tool: String,
    what: String,
    bytes: u64,
    stretch: usize,
    before: u64,
    at: i64,
}

impl Recorder {
    pub fn new(session: &str) -> Self {
        let conversation = Conversation { session: session.to_owned(), ..Conversation::default() };
        Self { conversation, stretches: vec![Stretch::default()], ..Self::default() }
    }

    /// The conversation, for what is said once.
    pub fn about(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    /// This entered the context.
    pub fn add(&mut self, part: Part, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let at = self.parts.iter().position(|known| *known == part).unwrap_or_else(|| {
            self.parts.push(part);
            self.now.push(0);
            self.parts.len() - 1
        });
        self.now[at] += bytes;
    }

    /// The model called a tool.
    pub fn call_tool(&mut self, id: &str, tool: &str, arguments: &Node<'_>) {
        let mut bytes = tool.len() as u64;
        arguments.texts(&mut |text| bytes += text.len() as u64 + 8);
        self.add(Part::Calls, bytes);
        let asked = of_script(tool, arguments).unwrap_or_else(|| {
            let (what, repeats) = question(tool, arguments);
            Asked { tool: tool.to_owned(), what, repeats, is_script: false }
        });
        self.made.insert(id.to_owned(), asked);
    }

    /// A tool answered.
    pub fn result(&mut self, id: &str, tool: Option<&str>, content: &Node<'_>, at: i64) {
        let bytes = size(content);
        let asked = self.made.remove(id);
        let asked = asked.unwrap_or_else(|| Asked {
            tool: String::new(),
            what: String::new(),
            repeats: Repeats::Never,
            is_script: false,
        });
        let tool = match tool.filter(|tool| !tool.is_empty() && !asked.is_script) {
            Some(tool) => tool.to_owned(),
            None if asked.tool.is_empty() => "unknown tool".to_owned(),
            None => asked.tool,
        };
        self.note_large(&tool, &asked.what, bytes, at);
        if asked.repeats != Repeats::Never && bytes >= SHORT {
            self.note_repeated(&tool, asked.what, asked.repeats, content, bytes);
        }
        self.add(Part::Results(tool), bytes);
    }

    fn note_large(&mut self, tool: &str, what: &str, bytes: u64, at: i64) {
        let smallest = self.large.last().map_or(0, |large| large.bytes);
        if bytes == 0 || (self.large.len() == LARGEST && bytes <= smallest) {
            return;
        }
        let place = self.large.partition_point(|large| large.bytes >= bytes);
        let stretch = self.stretches.len() - 1;
        let before = self.stretches[stretch].calls;
        let (tool, what) = (tool.to_owned(), what.to_owned());
        self.large.insert(place, Large { tool, what, bytes, stretch, before, at });
        self.large.truncate(LARGEST);
    }

    fn note_repeated(&mut self, tool: &str, what: String, repeats: Repeats, content: &Node<'_>, bytes: u64) {
        let mut hasher = DefaultHasher::new();
        content.texts(&mut |text| text.hash(&mut hasher));
        let text = hasher.finish();
        let question = key(&[tool, &what]);
        let Some(seen) = self.results.get_mut(&question) else {
            let (tool, texts) = (tool.to_owned(), vec![text]);
            let first = Seen { tool, what, times: 1, unchanged: 0, bytes_again: 0, texts };
            self.results.insert(question, first);
            return;
        };
        let unchanged = seen.texts.contains(&text);
        if !unchanged {
            seen.texts.push(text);
        }
        if !unchanged && repeats == Repeats::IfUnchanged {
            return;
        }
        seen.times += 1;
        seen.unchanged += u64::from(unchanged);
        seen.bytes_again += bytes;
        if let Some(compaction) = &mut self.compaction {
            // In bytes, until tokens are known.
            compaction.read_again += bytes;
        }
    }

    /// The model is asked now; its bill comes later.
    pub fn ask(&mut self) {
        self.asked = Some(self.now.clone());
    }

    /// True if the model was asked and nothing was billed for it yet.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// A call was billed. One with a key that is known is the same call: the more complete bill holds.
    pub fn bill(&mut self, mut call: Call, model: &str) {
        call.model = self.model(model);
        if let Some((stretch, index)) = self.keys.get(&call.key).copied() {
            let old = self.conversation.calls[index];
            if call.output >= old.output && call.prompt() >= old.prompt() {
                let stretch = &mut self.stretches[stretch];
                stretch.prompts = stretch.prompts - old.prompt() + call.prompt();
                self.conversation.calls[index] = Call { at: old.at, ..call };
            }
            return;
        }
        let context = self.asked.take().unwrap_or_else(|| self.now.clone());
        self.carry(&context, call.prompt());
        if call.is_empty() {
            self.conversation.unbilled += 1;
            return;
        }
        self.keys.insert(call.key, (self.stretches.len() - 1, self.conversation.calls.len()));
        if let Some(compaction) = self.compaction.take_if(|compaction| compaction.after == 0) {
            let rewritten = call.input + call.write;
            let known = Compaction { after: call.prompt(), rewritten, model: call.model, ..compaction };
            self.compaction = Some(known);
        }
        self.conversation.calls.push(call);
    }

    /// A call carried this context.
    fn carry(&mut self, context: &[u64], prompt: u64) {
        let Some(stretch) = self.stretches.last_mut() else { return };
        stretch.carried.resize(self.parts.len(), 0);
        for (sum, bytes) in stretch.carried.iter_mut().zip(context) {
            *sum += bytes;
        }
        let bytes = context.iter().sum();
        stretch.calls += 1;
        stretch.prompts += prompt;
        if prompt > 0 {
            stretch.first.get_or_insert((prompt, bytes));
            stretch.last = (prompt, bytes);
        }
        self.calls += 1;
    }

    /// The agent made its history shorter: what follows is a new context.
    pub fn compact(&mut self, at: i64, automatic: Option<bool>, before: u64) {
        let last = self.conversation.calls.last();
        let before = if before > 0 { before } else { last.map_or(0, |call| call.prompt() + call.output) };
        let model = last.map_or(0, |call| call.model);
        self.close_compaction();
        self.compaction = Some(Compaction { at, automatic, before, model, ..Compaction::default() });
        self.now.iter_mut().for_each(|bytes| *bytes = 0);
        self.asked = None;
        self.stretches.push(Stretch::default());
    }

    /// The summary that took the place of the history.
    pub fn summary(&mut self, bytes: u64) {
        if let Some(compaction) = &mut self.compaction {
            compaction.summary += bytes;
        }
        self.add(Part::Summaries, bytes);
    }

    fn close_compaction(&mut self) {
        self.conversation.compactions.extend(self.compaction.take());
    }

    fn model(&mut self, name: &str) -> u32 {
        let models = &mut self.conversation.models;
        let at = models.iter().position(|known| known == name).unwrap_or_else(|| {
            models.push(name.to_owned());
            models.len() - 1
        });
        at as u32
    }

    /// True if no call and no word was recorded.
    pub fn is_empty(&self) -> bool {
        self.calls == 0 && self.parts.is_empty() && self.conversation.calls.is_empty()
    }

    /// The figures. Bytes become tokens.
    pub fn finish(mut self) -> Conversation {
        self.close_compaction();
        let ratio = self.ratio();
        let tokens = |bytes: u64| (bytes as f64 * ratio).round() as u64;
        for compaction in &mut self.conversation.compactions {
            compaction.summary = tokens(compaction.summary);
            compaction.read_again = tokens(compaction.read_again);
        }
        for stretch in &self.stretches {
            stretch.fill(&self.parts, ratio, &mut self.conversation);
        }
        self.conversation.largest = (self.large.iter())
            .map(|large| LargeResult {
                tool: large.tool.clone(),
                what: large.what.clone(),
                tokens: tokens(large.bytes),
                carried: self.stretches[large.stretch].calls - large.before,
                at: large.at,
            })
            .collect();
        let mut repeated: Vec<Seen> = self.results.into_values().filter(|seen| seen.times > 1).collect();
        repeated.sort_by(|a, b| b.bytes_again.cmp(&a.bytes_again).then_with(|| a.what.cmp(&b.what)));
        repeated.truncate(REPEATED);
        let repeated = repeated.into_iter().map(|seen| Repeated {
            tokens: tokens(seen.bytes_again),
            tool: seen.tool,
            what: seen.what,
            times: seen.times,
            unchanged: seen.unchanged,
        });
        self.conversation.repeated = repeated.collect();
        self.conversation
    }

    /// Tokens of a byte: how much the prompts grew when these bytes were added.
    fn ratio(&self) -> f64 {
        let (mut tokens, mut bytes) = (0, 0);
        for stretch in &self.stretches {
            let Some(first) = stretch.first else { continue };
            let grown = (stretch.last.0.checked_sub(first.0), stretch.last.1.checked_sub(first.1));
            if let (Some(more_tokens), Some(more_bytes)) = grown {
                tokens += more_tokens;
                bytes += more_bytes;
            }
        }
        // Little growth says little.
        if bytes < 4_000 {
            USUAL_RATIO
        } else {
            (tokens as f64 / bytes as f64).clamp(LEAST_RATIO, MOST_RATIO)
        }
    }
}

impl Stretch {
    /// Adds what its prompts were filled with. The parts that are in the file share what the prompts were beyond the
    /// system prompt, so that all parts together are the prompts.
    fn fill(&self, parts: &[Part], ratio: f64, into: &mut Conversation) {
        let bytes: u64 = self.carried.iter().sum();
        let visible = bytes as f64 * ratio;
        let Some((prompt, before)) = self.first else {
            // Nothing was billed: sizes alone, four bytes a token.
            for (part, bytes) in parts.iter().zip(&self.carried).filter(|(_, bytes)| **bytes > 3) {
                *into.filled.entry(part.clone()).or_default() += bytes / 4;
            }
            return;
        };
        let overhead = (prompt as f64 - before as f64 * ratio).max(0.0) * self.calls as f64;
        let prompts = self.prompts as f64;
        let scale = match overhead + visible {
            all if all <= 0.0 => 0.0,
            // Less was sent than the file holds: all parts shrink.
            all if all > prompts => prompts / all,
            _ if visible > 0.0 => (prompts - overhead) / visible,
            _ => 0.0,
        };
        let mut rest = self.prompts;
        for (part, bytes) in parts.iter().zip(&self.carried).filter(|(_, bytes)| **bytes > 0) {
            let tokens = ((*bytes as f64 * ratio * scale).round() as u64).min(rest);
            rest -= tokens;
            *into.filled.entry(part.clone()).or_default() += tokens;
        }
        *into.filled.entry(Part::System).or_default() += rest;
    }
}

/// Bytes of the text that a content has for the model; a picture counts as much as a page.
pub fn size(content: &Node<'_>) -> u64 {
    match content {
        Node::Text(text) => text.len() as u64,
        Node::List(blocks) => blocks.iter().map(size).sum(),
        Node::Fields(_) => match content.get("type").text() {
            "image" | "input_image" | "image_url" => PICTURE,
            "text" | "input_text" | "output_text" => content.get("text").text().len() as u64,
            _ => {
                let mut bytes = 0;
                content.texts(&mut |text| bytes += text.len() as u64);
                bytes
            }
        },
        Node::Nothing | Node::Flag(_) | Node::Number(_) => 0,
    }
}

/// The longest question that is kept.
const QUESTION: usize = 160;

/// When the same question is a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    /// It reads: a file that came twice.
    Always,
    /// It runs something: tests that fail in another way are no repetition.
    IfUnchanged,
    Never,
}

/// What a tool was asked, in one line, and when that is a repetition.
fn question(tool: &str, arguments: &Node<'_>) -> (String, Repeats) {
    const NAMES: [&str; 12] = [
        "file_path",
        "filePath",
        "path",
        "notebook_path",
        "command",
        "cmd",
        "pattern",
        "url",
        "query",
        "input",
        "prompt",
        "description",
    ];
    // Some agents write the arguments as a text.
    let parsed = if let Node::Text(text) = arguments { Node::read(text.as_bytes()) } else { None };
    let fields = parsed.as_ref().unwrap_or(arguments);
    let found = NAMES
        .iter()
        .find_map(|name| Some((*name, fields.get(name))).filter(|(_, value)| !value.is_nothing()));
    let mut what = String::new();
    match found {
        Some((_, value)) => value.texts(&mut |text| join(&mut what, text)),
        None => fields.texts(&mut |text| join(&mut what, text)),
    }
    // Which lines of a file were asked for makes another question.
    for name in ["offset", "limit", "start_line", "end_line", "view_range"] {
        match fields.get(name) {
            Node::Number(number) => join(&mut what, &format!("{name} {number}")),
            Node::List(list) => {
                let numbers: Vec<String> = list.iter().map(|number| number.number().to_string()).collect();
                join(&mut what, &format!("{name} {}", numbers.join("-")));
            }
            _ => {}
        }
    }
    let is_command = matches!(found, Some(("command" | "cmd", _)));
    let tool = tool.to_lowercase();
    let reading = ["read", "view", "cat", "open", "fetch", "grep", "glob", "search", "list", "find"];
    let repeats = match () {
        () if what.is_empty() => Repeats::Never,
        () if is_command => Repeats::IfUnchanged,
        () if reading.iter().any(|word| tool.contains(word)) => Repeats::Always,
        () => Repeats::Never,
    };
    (what, repeats)
}

/// What the calls in a script asked, if the arguments are a script. Where all are of one tool, that is the tool.
fn of_script(tool: &str, arguments: &Node<'_>) -> Option<Asked> {
    // Some agents write the arguments as a text.
    let parsed = if let Node::Text(text) = arguments { Node::read(text.as_bytes()) } else { None };
    let fields = parsed.as_ref().unwrap_or(arguments);
    let texts = [fields.get("input").text(), fields.get("code").text(), arguments.text()];
    let source = texts.into_iter().find(|text| !text.is_empty())?;
    let call = ToolCall {
        id: "".into(),
        name: tool.into(),
        arguments: Json::from(&serde_json::json!({ "input": source })),
        server: false,
        extra: Extra::NONE,
    };
    let made = made_by(&call);
    let (first, others) = made.calls().split_first().filter(|_| made.is_script())?;
    let mut asked = Asked {
        tool: first.name.to_string(),
        what: String::new(),
        repeats: Repeats::Always,
        is_script: true,
    };
    if others.iter().any(|call| call.name != first.name) {
        tool.clone_into(&mut asked.tool);
    }
    for call in made.calls() {
        let fields = Node::read(call.arguments.as_str().as_bytes()).unwrap_or(Node::Nothing);
        let (what, repeats) = question(&call.name, &fields);
        join(&mut asked.what, &what);
        asked.repeats = match (asked.repeats, repeats) {
            (Repeats::Never, _) | (_, Repeats::Never) => Repeats::Never,
            (Repeats::IfUnchanged, _) | (_, Repeats::IfUnchanged) => Repeats::IfUnchanged,
            (Repeats::Always, Repeats::Always) => Repeats::Always,
        };
    }
    Some(asked)
}

/// Adds a text, in one line and cut.
fn join(to: &mut String, text: &str) {
    for word in text.split_whitespace() {
        if to.len() > QUESTION {
            return;
        }
        if !to.is_empty() {
            to.push(' ');
        }
        to.push_str(&word[..word.floor_char_boundary(QUESTION)]);
    }
}

/// A key of a call, from what names it.
pub fn key(parts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// A key of a call, from when it was made and what it was billed: for agents that give calls no name.
pub fn key_of(when: &str, model: &str, call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    (when, model, call.input, call.read, call.write, call.output).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: u64, prompt: u64, output: u64) -> Call {
        Call { read: prompt, output, key, at: 1, ..Call::default() }
    }

    #[test]
    fn parts_add_up_to_the_prompts() {
        let mut recorder = Recorder::new("s");
        recorder.add(Part::Person, 400);
        for n in 0..20 {
            recorder.bill(call(n, 10_100 + n * 1_000, 10), "m");
            let arguments = Node::read(br#"{"path":"a.rs"}"#).unwrap();
            recorder.call_tool("c", "Read", &arguments);
            recorder.result("c", None, &Node::Text("x".repeat(4_000).into()), 5);
        }
        let done = recorder.finish();
        let prompts: u64 = done.calls.iter().map(Call::prompt).sum();
        assert_eq!(done.filled.values().sum::<u64>(), prompts);
        // Ten thousand tokens were there before the first word, at each of twenty calls.
        let system = done.filled[&Part::System];
        assert!((195_000..205_000).contains(&system), "{system}");
        assert!(done.filled[&Part::Results("Read".to_owned())] > 150_000, "{:?}", done.filled);
        // A result of 4,000 bytes grew the prompt by about a thousand tokens, and the first was sent with 19 calls.
        assert_eq!(done.largest.len(), 10);
        assert!(
            (950..1_050).contains(&done.largest[0].tokens) && done.largest[0].carried == 19,
            "{:?}",
            done.largest[0]
        );
        let again = &done.repeated[0];
        assert_eq!((again.times, again.unchanged, &*again.what), (20, 19, "a.rs"));
    }

    #[test]
    fn a_script_is_the_calls_in_it() {
        let recorder = |arguments: Node<'_>| {
            let mut recorder = Recorder::new("s");
            for n in 0..3 {
                recorder.bill(call(n, 9_000, 10), "m");
                recorder.call_tool("c", "exec", &arguments);
                recorder.result("c", Some("exec"), &Node::Text("x".repeat(4_000).into()), 5);
            }
            recorder.bill(call(9, 9_000, 10), "m");
            recorder.finish()
        };
        let source = "const r = await tools.exec_command({cmd: 'cat a.rs', workdir: '/srv'}); text(r.output)";
        let json = serde_json::json!({ "input": source }).to_string();
        for arguments in
            [Node::Text(source.into()), Node::Text(json.clone().into()), Node::read(json.as_bytes()).unwrap()]
        {
            let done = recorder(arguments);
            assert!(done.filled.contains_key(&Part::Results("exec_command".to_owned())), "{:?}", done.filled);
            assert_eq!((&*done.largest[0].tool, &*done.largest[0].what), ("exec_command", "cat a.rs"));
            assert_eq!((done.repeated[0].times, &*done.repeated[0].what), (3, "cat a.rs"));
        }
        let source = "tools.exec_command({cmd: 'make'}); tools.apply_patch('*** Begin Patch')";
        let done = recorder(Node::Text(source.into()));
        assert_eq!((&*done.largest[0].tool, &*done.largest[0].what), ("exec", "make *** Begin Patch"));
        assert!(done.repeated.is_empty());
    }

    #[test]
    fn a_bill_that_comes_in_pieces_is_counted_once() {
        let mut recorder = Recorder::new("s");
        for output in [1, 1, 90, 40] {
            recorder.bill(call(7, 500, output), "m");
        }
        let done = recorder.finish();
        assert_eq!((done.calls.len(), done.calls[0].output), (1, 90));
        assert_eq!(done.filled.values().sum::<u64>(), 500);
    }

    #[test]
    fn a_compaction_knows_what_came_before_and_after() {
        let mut recorder = Recorder::new("s");
        recorder.add(Part::Person, 40_000);
        recorder.bill(call(1, 10_000, 100), "m");
        recorder.compact(9, Some(true), 0);
        recorder.summary(400);
        recorder.bill(Call { write: 2_000, read: 500, key: 2, ..Call::default() }, "m");
        let done = recorder.finish();
        let compaction = &done.compactions[0];
        assert_eq!((compaction.before, compaction.after, compaction.rewritten), (10_100, 2_500, 2_000));
        assert!(compaction.summary > 0);
        assert_eq!(done.filled.values().sum::<u64>(), 12_500);
    }
}
