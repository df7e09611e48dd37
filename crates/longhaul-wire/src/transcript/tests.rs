//! The format as a whole: what is read is written again, and what cannot be read says why.

use std::io::Write;

use longhaul::conversation::{Image, Opaque, RecordedCompaction, Text, Thinking, Words};
use longhaul::{Block, Extra, Json, Message, Role, Seal, Time, ToolCall, ToolResult, Usage};
use proptest::prelude::*;

use super::*;

fn problem(line: &str) -> String {
    decode(line).unwrap_err().to_string()
}

#[test]
fn all_kinds_of_blocks() {
    let line = r#"{"role":"assistant","content":[{"type":"thinking","text":"hm","signature":"sig="},{"type":"thinking","text":"","redacted":true,"data":"xx"},{"type":"thinking","text":"s","encrypted":"gAA"},{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"tool_call","id":"c1","name":"Read","arguments":{"z":1,"a":2.10}},{"type":"tool_call","id":"s1","name":"web_search","arguments":{},"server":true},{"type":"tool_result","id":"s1","text":"t","content":[{"type":"text","text":"t"},{"type":"image","source":{},"width":10,"height":20}],"is_error":true},{"type":"opaque","value":{"k":[1]}}],"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5},"model":"m","ts":"2026-02-19T11:50:57.868Z","extra":{"x":1},"odd":null}"#;
    let message = decode(line).unwrap();
    assert_eq!(encode(&message), line);
    // From its parts too: this line is in the form that is written.
    assert_eq!(encode(&message.clone().without_raw()), line);
    assert_eq!(message.time(), Some(Time(1_771_501_857_868_000)));
    assert_eq!(message.usage().unwrap().extra.get("reasoning").unwrap().as_str(), "5");
    assert_eq!(message.calls().next().unwrap().arguments.as_str(), r#"{"z":1,"a":2.10}"#);
    let seals = message.blocks().iter().filter_map(|b| match b {
        Block::Thinking(t) => Some(t.seal.clone()),
        _ => None,
    });
    let expected =
        [Seal::Signed("sig=".into()), Seal::Redacted(Some("xx".into())), Seal::Encrypted("gAA".into())];
    assert!(seals.eq(expected));
}

#[test]
fn what_is_unknown_or_odd_is_kept() {
    for line in [
        r#"{"role": "user", "content": "plain", "ts": "yesterday", "usage": {"input": -1}}"#,
        r#"{"role":"user","content":[{"type":"future","n":1},"bare",{"no":"type"}]}"#,
        r#"{"role":"tool","content":[{"type":"tool_result","id":"c","text":"x","is_error":"maybe"}]}"#,
        r#"{"role":"user","content":[{"type":"image","source":"s","width":-1,"height":"tall"}]}"#,
        r#"{"role":"user","ts":"2026-03-02T09:00:00Z","ts":"never","content":"a","content":"b"}"#,
        r#"{"role":"user","content":null}"#,
        r#"{"role":"user"}"#,
        "{\"role\":\"user\",\"content\":\"\\ud83d\\ude00 \\u0000\"}",
    ] {
        let message = decode(line).unwrap();
        assert_eq!(encode(&message), line);
        let again = decode(&encode(&message.clone().without_raw())).unwrap();
        assert_eq!(again.without_raw(), message.without_raw(), "{line}");
    }
}

#[test]
fn what_only_a_transcript_says() {
    for (line, attachment, compaction) in [
        (r#"{"role":"user","content":[],"attachment":true}"#, true, None),
        (r#"{"role":"user","content":[],"attachment":"file","extra":{"x":1}}"#, true, None),
        (r#"{"role":"user","content":[],"attachment":false}"#, false, None),
        (r#"{"role":"user","content":[],"compact":true}"#, false, Some(RecordedCompaction::Boundary)),
        (r#"{"role":"system","content":[],"compact":{"n":1}}"#, false, Some(RecordedCompaction::Boundary)),
        (
            r#"{"role":"user","content":[],"compact_summary":true,"compact":true,"odd":1}"#,
            false,
            Some(RecordedCompaction::Summary),
        ),
        // The same names, as a client's fields.
        (r#"{"role":"user","content":[],"+attachment":true,"+compact":true,"++api":1}"#, false, None),
    ] {
        let message = decode(line).unwrap();
        assert_eq!((message.is_attachment(), message.recorded_compaction()), (attachment, compaction));
        assert_eq!(encode(&message), line);
        assert_eq!(encode(&message.without_raw()), line);
    }
    let escaped = decode(r#"{"role":"user","+extra":{"frame":{"model":"m"}}}"#).unwrap();
    assert_eq!((frame_of(&escaped), escaped.extra().get("extra").is_some()), (None, true));
    let carried = decode(r#"{"role":"user","extra":{"frame":{"model":"m"}}}"#).unwrap();
    assert_eq!(frame_of(&carried).unwrap().model.as_deref(), Some("m"));
}

#[test]
fn a_line_that_does_not_say_who_speaks_is_looked_at() {
    let host = r#"<task-notification>\n<status>done</status>\n</task-notification>"#;
    let mixed = r#"<system-reminder>Be brief.</system-reminder>\nGo on."#;
    for (line, said, attachment) in [
        (format!(r#"{{"role":"user","content":"{host}"}}"#), "", true),
        (format!(r#"{{"role":"user","content":"{mixed}"}}"#), "Go on.", false),
        (format!(r#"{{"role":"user","content":"{mixed}","attachment":true}}"#), "", true),
        // The line says it.
        (
            r#"{"role":"user","content":[{"type":"text","text":"Tool loaded.","words":[0,12]}]}"#.into(),
            "Tool loaded.",
            false,
        ),
        (r#"{"role":"user","content":"Tool loaded.","attachment":false}"#.into(), "Tool loaded.", false),
        (r#"{"role":"user","content":"Tool loaded."}"#.into(), "", true),
    ] {
        let message = decode(&line).unwrap();
        assert_eq!(message.is_attachment(), attachment, "{line}");
        if !attachment {
            assert_eq!(message.words().collect::<String>(), said, "{line}");
        }
        assert_eq!(encode(&message), line);
    }
    // What a person really typed is still the person's behind a file.
    let typed = Message::user("Tool loaded.");
    let again = decode(&encode(&typed)).unwrap();
    assert_eq!(again.without_raw(), typed);
}

#[test]
fn which_words_are_the_persons() {
    let line = |words: &str| {
        format!(r#"{{"role":"user","content":[{{"type":"text","text":"<e>é</e> Go on.",{words}}}]}}"#)
    };
    for (words, said) in [
        (r#""words":[10,16]"#, "Go on."),
        (r#""words":[]"#, ""),
        // No part of the text: an unknown field.
        (r#""+words":[4,10]"#, "<e>é</e> Go on."),
        (r#""+words":[10,17]"#, "<e>é</e> Go on."),
        (r#""+words":[10,10]"#, "<e>é</e> Go on."),
        (r#""+words":"mine""#, "<e>é</e> Go on."),
    ] {
        let message = decode(&line(&words.replace('+', ""))).unwrap();
        assert_eq!(message.words().collect::<String>(), said);
        assert_eq!(encode(&message), line(&words.replace('+', "")));
        assert_eq!(encode(&message.without_raw()), line(words));
    }
}

#[test]
fn a_picture_in_the_transcript_has_a_size() {
    // The first 24 bytes of a PNG of 640 × 480.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHg";
    let line = format!(r#"{{"role":"user","content":[{{"type":"image","source":{{"data":"{data}"}}}}]}}"#);
    let Block::Image(image) = &decode(&line).unwrap().blocks()[0].clone() else { panic!("no image") };
    assert_eq!(image.size, Some((640, 480)));
}

#[test]
fn the_text_of_a_result_is_complete() {
    let line = r#"{"role":"tool","content":[{"type":"tool_result","id":"c","content":[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b"}]}]}"#;
    assert_eq!(&*decode(line).unwrap().results().next().unwrap().text, "a\nb");
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(
        problem("[1]"),
        "the line is not an object: invalid type: sequence, expected an object, column 0"
    );
    assert!(problem("{\"role\":").starts_with("the line is not valid JSON: "));
    assert_eq!(problem("{}"), "`role` is missing");
    assert_eq!(
        problem(r#"{"role":"robot"}"#),
        "role \"robot\" is not one of system, user, assistant, tool, summary"
    );
    assert_eq!(problem(r#"{"role":"user","content":7}"#), "`content` is not a list of blocks: 7");
    assert_eq!(
        problem(r#"{"role":"user","content":[{"type":"text"}]}"#),
        "in a text block, `text` is missing"
    );
    assert_eq!(
        problem(r#"{"role":"user","content":[{"type":"tool_call","id":5}]}"#),
        "in a tool_call block, `id` is not a string: 5"
    );
}

#[test]
fn results_inside_results_are_read_only_so_deep() {
    let deep = r#"{"type":"tool_result","id":"a","content":["#.repeat(20_000) + &"]}".repeat(20_000);
    let line = format!(r#"{{"role":"tool","content":[{deep}]}}"#);
    let message = decode(&line).unwrap();
    assert!(encode(&message) == line);
    let again = decode(&encode(&message.clone().without_raw())).unwrap();
    assert!(again.without_raw() == message.without_raw());
}

fn read(bytes: &[u8]) -> (Vec<String>, Option<Cut>) {
    let mut reader = Reader::unpacked(std::io::Cursor::new(bytes.to_vec())).unwrap();
    let read = reader
        .by_ref()
        .map(|item| item.map_or_else(|e| e.to_string(), |m| encode(&m).into_owned()))
        .collect();
    (read, reader.cut())
}

const HI: &str = r#"{"role":"user","content":"hi"}"#;

#[test]
fn lines_are_numbered_and_reading_goes_on() {
    let text = format!("\u{feff}{HI}\r\n\n{{\"role\":1}}\n\u{0}\n{HI}\n");
    let (read, cut) = read(text.as_bytes());
    assert_eq!(read[0], HI);
    assert_eq!(read[1], "line 3: `role` is not a string: 1");
    assert!(read[2].starts_with("line 4: the line is not valid JSON"), "{}", read[2]);
    assert_eq!((read[3].as_str(), read.len(), cut), (HI, 4, None));
}

#[test]
fn bytes_that_are_no_text() {
    let (read, _) = read(b"\xff\xfe\n{\"role\":\"user\"}\n");
    assert_eq!(read, ["line 1: is not UTF-8 text", "{\"role\":\"user\"}"]);
}

#[test]
fn a_cut_last_line_is_said_and_a_whole_one_needs_no_newline() {
    for end in 1..HI.len() {
        let (read, cut) = read(format!("{HI}\n{}", &HI[..end]).as_bytes());
        assert_eq!((read.len(), cut), (1, Some(Cut { line: 2, bytes: end })));
    }
    assert_eq!(read(HI.as_bytes()), (vec![HI.to_owned()], None));
    // Whole, but wrong: that is an error.
    assert_eq!(read(b"{\"role\":1}").0, ["line 1: `role` is not a string: 1"]);
    assert_eq!(read(b""), (vec![], None));
    assert_eq!(read(b"\n \n  "), (vec![], None));
}

#[test]
fn gzip_is_found_by_content_and_may_be_cut() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let noise: Vec<String> = (0..2000).map(|n| format!("{}", n * 7919 % 10_007)).collect();
    for _ in 0..3 {
        writeln!(packed, "{{\"role\":\"user\",\"content\":\"{}\"}}", noise.join(" ")).unwrap();
    }
    let packed = packed.finish().unwrap();
    assert_eq!(read(&packed).0.len(), 3);
    let (cut_read, cut) = read(&packed[..packed.len() / 2]);
    assert!(cut_read.len() < 3 && cut.is_some());
    assert!(cut_read.iter().all(|line| line.starts_with("{\"role\"")));
    let padded = [packed.as_slice(), &[0; 512]].concat();
    assert_eq!(read(&padded).0.len(), 3);
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        Just("2.10".to_owned()),
        Just("1e400".to_owned()),
        any::<String>().prop_map(|s| serde_json::to_string(&s).unwrap()),
    ];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(("[a-z]{1,3}", inner), 0..3).prop_map(|fields| {
                let fields: Vec<_> = fields.into_iter().map(|(k, v)| format!("\"{k}\" :{v}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    });
    tree.prop_map(|text| Json::new(text).unwrap())
}

/// Fields that no block and no message knows.
fn extra() -> impl Strategy<Value = Extra> {
    prop::collection::vec(("x_[a-z\\PC]{0,4}", json()), 0..3).prop_map(|fields| {
        let mut extra = Extra::NONE;
        fields.into_iter().for_each(|(name, value)| extra.set(&name, value));
        extra
    })
}

fn text() -> impl Strategy<Value = Box<str>> {
    any::<String>().prop_map(String::into_boxed_str)
}

fn words() -> impl Strategy<Value = Words> {
    let part = (0u32..6, 1u32..12).prop_map(|(start, length)| Words::Part { start, end: start + length });
    prop_oneof![3 => Just(Words::All), 1 => Just(Words::None), 2 => part]
}

fn simple_block() -> impl Strategy<Value = Block> {
    let seal = prop_oneof![
        Just(Seal::Open),
        text().prop_map(Seal::Signed),
        prop::option::of(text()).prop_map(Seal::Redacted),
        text().prop_map(Seal::Encrypted),
    ];
    prop_oneof![
        (text(), words(), extra()).prop_map(|(text, words, extra)| {
            // A part that is not inside the text is never made, nor one that is all of it.
            let inside =
                |start: u32, end: u32| start < end && text.get(start as usize..end as usize).is_some();
            let words = match words {
                Words::Part { start, end } if !inside(start, end) => Words::None,
                Words::Part { start: 0, end } if end as usize == text.len() => Words::All,
                words => words,
            };
            Block::Text(Text { text: text.into(), words, extra })
        }),
        (text(), seal, extra()).prop_map(|(text, seal, extra)| Block::Thinking(Thinking {
            text,
            seal,
            extra
        })),
        (text(), text(), json(), any::<bool>(), extra()).prop_map(|(id, name, arguments, server, extra)| {
            Block::ToolCall(ToolCall { id, name, arguments, server, extra })
        }),
        (json(), prop::option::of(any::<(u32, u32)>()), extra())
            .prop_map(|(source, size, extra)| Block::Image(Image { source, size, extra })),
        (json(), extra()).prop_map(|(value, extra)| Block::Opaque(Opaque { value, extra })),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    let content =
        prop::option::of(prop::collection::vec(simple_block(), 0..3).prop_map(Vec::into_boxed_slice));
    let result = (text(), prop::option::of(text()), text(), content, any::<bool>(), extra()).prop_map(
        |(id, name, text, content, is_error, extra)| {
            Block::ToolResult(ToolResult { id, name, text: text.into(), content, is_error, extra })
        },
    );
    prop_oneof![3 => simple_block(), 1 => result]
}

fn message() -> impl Strategy<Value = Message> {
    let usage = (any::<[u64; 4]>(), extra()).prop_map(|([input, output, cache_read, cache_write], extra)| {
        Usage { input, output, cache_read, cache_write, extra }
    });
    let time = (-60_000_000_000_000_000i64..200_000_000_000_000_000).prop_map(Time);
    (
        prop::sample::select(Role::ALL.to_vec()),
        prop::collection::vec(block(), 0..4),
        (prop::option::of(usage), prop::option::of(text()), prop::option::of(time)),
        extra(),
    )
        .prop_map(|(role, blocks, (usage, model, time), extra)| {
            let mut message = Message::new(role, blocks).with_extra(extra);
            if let Some(usage) = usage {
                message = message.with_usage(usage);
            }
            if let Some(model) = model {
                message = message.with_model(model);
            }
            if let Some(time) = time {
                message = message.with_time(time);
            }
            message
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(message in message()) {
        let line = encode(&message).into_owned();
        prop_assert!(!line.contains('\n'));
        let read = decode(&line).unwrap();
        prop_assert_eq!(encode(&read), line.as_str());
        prop_assert_eq!(read.without_raw(), message);
    }

    #[test]
    fn what_is_read_is_written_byte_for_byte(message in message(), spaces in "[ \t]{0,3}") {
        // Another spacing than ours.
        let line = encode(&message).replacen("\"role\":", &format!("\"role\"{spaces}:{spaces}"), 1);
        let read = decode(&line).unwrap();
        prop_assert_eq!(encode(&read), line);
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), line in "[\\[\\]{}:,\"a-z0-9\\\\\n-]{0,80}") {
        read(&bytes);
        read(line.as_bytes());
    }
}

#[test]
fn half_a_character_stays_as_it_came() {
    for line in [
        r#"{"role":"assistant","content":[{"type":"thinking","text":"cut \ud83d","signature":"c2ln\udc00"},{"type":"text","text":"ok"}]}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","text":"","encrypted":"\ud83d gAAA"}]}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","text":"","redacted":true,"data":"\udbff"}],"mood":"\ud83d"}"#,
        r#"{"role":"user","content":"cut \ud83d"}"#,
    ] {
        let read: Vec<Message> = Reader::new(line.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(read.len(), 1);
        assert_eq!(encode(&read[0]), line);
        // And again from a store.
        let stored = serde_json::to_string(&read[0]).unwrap();
        let loaded: Message = serde_json::from_str(&stored).unwrap();
        assert_eq!(encode(&loaded), line);
    }
    // It can be read all the same.
    let line = r#"{"role":"user","content":"cut \ud83d"}"#;
    let read = Reader::new(line.as_bytes()).next().unwrap().unwrap();
    assert!(read.texts().eq(["cut \u{fffd}"]));
}
