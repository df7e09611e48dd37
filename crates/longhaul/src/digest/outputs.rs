//! The outputs in a result: of most results there is one, of a script's result one for each call in it, where
//! the script prints them apart. Each is digested as if it were a result of its own.

use std::borrow::Cow;
use std::ops::Range;

use super::tool::{Aliases, ToolKind};
use crate::conversation::message::{Block, ToolCall};
use crate::conversation::script::{Made, made_by};

/// Which call printed which part of a result's text.
pub(crate) struct Outputs<'a> {
    made: Option<Made<'a>>,
    ranges: Vec<Range<usize>>,
    aliases: &'a Aliases,
}

impl<'a> Outputs<'a> {
    /// The outputs in this text, which answers the call. `blocks` are those of the result, if it has several.
    pub(crate) fn of(
        call: Option<&'a ToolCall>,
        text: &str,
        blocks: Option<&[Block]>,
        aliases: &'a Aliases,
    ) -> Self {
        let made = call.map(made_by);
        let ranges = match &made {
            Some(made) => made.outputs_in(text, blocks),
            None => vec![Range { start: 0, end: text.len() }],
        };
        Self { made, ranges, aliases }
    }

    /// The text with a shorter one in the place of each output for which there is one; `None` if there is none.
    /// `short` is given the output, the kind of the tool, and what it was asked for.
    pub(crate) fn digest<'t>(
        &self,
        text: &'t str,
        mut short: impl FnMut(&'t str, ToolKind, &dyn Fn() -> String) -> Option<String>,
    ) -> Option<String> {
        let (mut out, mut at, mut is_shorter) = (String::new(), 0, false);
        for (number, range) in self.ranges.iter().enumerate() {
            let output = text.get(range.clone())?;
            let calls = self.calls(number);
            let tool = self.kind(calls);
            let digest = short(output, tool, &|| subject(tool, calls));
            if output.len() == text.len() {
                return digest;
            }
            is_shorter |= digest.is_some();
            let digest = digest.map_or(Cow::Borrowed(output), Cow::Owned);
            out.push_str(text.get(at..range.start)?);
            out.push_str(&digest);
            if output.ends_with('\n') && !digest.ends_with('\n') {
                out.push('\n');
            }
            at = range.end;
        }
        out.push_str(text.get(at..)?);
        (is_shorter && out.len() < text.len()).then_some(out)
    }

    /// The calls that printed this output.
    fn calls(&self, number: usize) -> &[ToolCall] {
        let calls = self.made.as_ref().map_or(&[][..], |made| made.calls());
        if self.ranges.len() == calls.len() { &calls[number..=number] } else { calls }
    }

    /// The kind of the tool. What several kinds of tools printed is the output of a script.
    fn kind(&self, calls: &[ToolCall]) -> ToolKind {
        let Some((first, others)) = calls.split_first() else { return ToolKind::Other };
        let kind = self.aliases.kind_of(first);
        if others.iter().all(|call| self.aliases.kind_of(call) == kind) { kind } else { ToolKind::Bash }
    }
}

fn subject(tool: ToolKind, calls: &[ToolCall]) -> String {
    match calls {
        [call] => tool.subject(&call.arguments),
        calls => calls.iter().map(|call| tool.subject(&call.arguments)).collect::<Vec<_>>().join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::Json;
    use crate::edits::archive::Handle;

    /// A script that runs the tests and reads a file, and what it printed.
    fn script() -> (ToolCall, String) {
        let source = r#"
            const [tests, file] = await Promise.all([
              tools.exec_command({cmd: "cargo test -p shop"}),
              tools.mcp__files__read_file({path: "shop/src/cart.rs"}),
            ]);
            text(`== tests ==\n${tests.output}`); text(`== source ==\n${file}`);
        "#;
        let arguments = Json::from(&serde_json::json!({ "input": source }));
        let Block::ToolCall(call) = Block::call("c", "exec", arguments) else { unreachable!() };
        let mut text = "Script completed\nWall time 9.1 seconds\nOutput:\n\n== tests ==\n".to_owned();
        (0..200).for_each(|n| text += &format!("test cart::case_{n} ... ok\n"));
        text +=
            "test cart::rounding ... FAILED\n\ntest result: FAILED. 200 passed; 1 failed\n\n== source ==\n";
        (0..200).for_each(|n| text += &format!("    work({n});\n"));
        text += "pub fn total_of(items: &[Item]) -> Cents {\n    round(items)\n}\n";
        (0..200).for_each(|n| text += &format!("    more({n});\n"));
        (call, text)
    }

    #[test]
    fn each_output_of_a_script_has_a_digest_of_its_own() {
        let (call, text) = script();
        let short = super::super::of_call(&call, &text, Handle::of(&text)).unwrap();
        assert!(
            short.starts_with("Script completed\nWall time 9.1 seconds\nOutput:\n\n== tests ==\n"),
            "{short}"
        );
        let (tests, source) = short.split_once("== source ==\n").unwrap();
        assert!(
            tests.contains("test cart::rounding ... FAILED") && tests.contains(" of test output left out"),
            "{tests}"
        );
        assert!(source.contains("pub fn total_of") && source.contains(" of source left out"), "{source}");
        assert!(short.len() < text.len() / 2, "{short}");
        assert_eq!(super::super::of_call(&call, &short, Handle::of(&text)), None);
        let by_tool = super::super::of_call_by_tool(&call, &text, Handle::of(&text)).unwrap();
        assert!(
            by_tool.contains("== source ==\n") && by_tool.contains("cart::rounding ... FAILED"),
            "{by_tool}"
        );
    }

    #[test]
    fn outputs_that_cannot_be_told_apart_are_one() {
        let (call, text) = script();
        let text = text.replace("== source ==\n", "");
        let aliases = Aliases::default();
        let outputs = Outputs::of(Some(&call), &text, None, &aliases);
        let mut seen = Vec::new();
        outputs.digest(&text, |output, tool, subject| {
            seen.push((output.len(), tool, subject()));
            None
        });
        let header = "Script completed\nWall time 9.1 seconds\nOutput:\n\n".len();
        let subject = "cargo test -p shop\n".to_owned();
        assert_eq!(seen, [(text.len() - header, ToolKind::Bash, subject)]);
        // Without a call nobody knows what printed it.
        let outputs = Outputs::of(None, &text, None, &aliases);
        let short = outputs.digest(&text, |output, tool, _| Some(format!("{} {tool:?}", output.len())));
        assert_eq!(short, Some(format!("{} Other", text.len())));
    }
}
