//! What README, docs/ and the help texts say: commands that they show exist with their flags, and those that need
//! nothing but a file are run; links lead somewhere; files that they name are there; figures that stand on several
//! pages are the same on all, and the picture of the demo is what the demo says.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages, by their path from the root.
fn pages() -> BTreeMap<String, String> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs =
        docs.map(|name| format!("docs/{}", name.to_str().unwrap())).filter(|name| name.ends_with(".md"));
    let names = docs.chain(["README.md".to_owned(), "CHANGELOG.md".to_owned()]);
    names.map(|name| (name.clone(), fs::read_to_string(root().join(name)).unwrap())).collect()
}

/// The lines of a page that are code: indented by four behind an empty line, or fenced.
fn code_lines(page: &str) -> Vec<&str> {
    let (mut fenced, mut open, mut code) = (false, true, Vec::new());
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            code.push(line);
        } else if let Some(line) = line.strip_prefix("    ").filter(|_| open) {
            code.push(line);
        } else {
            open = line.trim().is_empty();
        }
    }
    code
}

/// Spans of a page between single backticks, over the ends of lines too.
fn spans(page: &str) -> Vec<String> {
    let text = page.lines().filter(|line| !line.starts_with("    ")).collect::<Vec<_>>().join(" ");
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The command line in a line of code, without its prompt, comment, pipe, or what it is said to do.
fn shown_command(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("$ ");
    let line = line.strip_prefix("eval \"$(").unwrap_or(line);
    let rest = line.strip_prefix("longhaul")?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let ends = ["  ", " # ", " | ", " > ", " && ", ")\"", " …"];
    let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
    Some(line[..end].trim())
}

/// Words as a shell takes them; quotes are the only thing that it knows.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars() {
        match (quote, c) {
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// What each command's help says, asked for once.
#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, Option<String>>);

impl Helps {
    fn of(&mut self, command: &[String]) -> Option<String> {
        let ask = || {
            let output = longhaul().args(command).arg("--help").output().unwrap();
            output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
        };
        self.0.entry(command.to_vec()).or_insert_with(ask).clone()
    }

    /// What is wrong with a command line, if something is.
    fn problem(&mut self, words: &[String]) -> Option<String> {
        let top = self.of(&[])?;
        let is_command = |help: &str, word: &str| {
            help.lines()
                .any(|line| line.strip_prefix("  ").is_some_and(|line| line.split(' ').next() == Some(word)))
        };
        let mut command: Vec<String> = Vec::new();
        let mut help = top;
        for word in &words[1..] {
            let has_commands = help.contains("\nCommands:");
            if has_commands && is_command(&help, word) {
                command.push(word.clone());
                help = self.of(&command)?;
            } else if has_commands && command.is_empty() && !word.starts_with('-') && word != "COMMAND" {
                // A hidden one has a help of its own.
                command.push(word.clone());
                match self.of(&command) {
                    Some(own) => help = own,
                    None => return Some(format!("there is no command {word}")),
                }
            } else {
                break;
            }
        }
        for word in words[1..].iter().take_while(|word| *word != "--") {
            let flag = word.split('=').next().unwrap_or(word);
            let named = help.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '='));
            if flag.len() > 2 && flag.starts_with("--") && !named.clone().any(|name| name == flag) {
                return Some(format!("{} has no {flag}", command.join(" ")));
            }
        }
        None
    }
}

fn longhaul() -> Command {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    command.env_clear().env("HOME", "/nowhere");
    command
}

#[test]
fn every_command_that_is_shown_exists_with_its_flags() {
    let mut helps = Helps::default();
    let mut problems = Vec::new();
    let mut checked = 0;
    for (name, page) in pages().iter().filter(|(name, _)| *name != "CHANGELOG.md") {
        let code = code_lines(page).into_iter().map(str::to_owned);
        for line in code.chain(spans(page)) {
            let Some(command) = shown_command(&line) else { continue };
            checked += 1;
            problems
                .extend(helps.problem(&words(command)).map(|problem| format!("{name}: {line}: {problem}")));
        }
    }
    assert!(checked > 100, "{checked}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_example_of_a_help_text_exists_with_its_flags() {
    let mut helps = Helps::default();
    let top = helps.of(&[]).unwrap();
    let (_, commands) = top.split_once("\nCommands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands: Vec<String> =
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned)).collect();
    let mut examples = 0;
    for command in [Vec::new()].into_iter().chain(commands.into_iter().map(|name| vec![name])) {
        let Some(help) = helps.of(&command) else { continue };
        let Some((_, shown)) = help.split_once("Example") else { continue };
        for line in shown.lines().filter_map(|line| line.strip_prefix("  ")) {
            let Some(line) = shown_command(line.trim_start()) else { continue };
            examples += 1;
            assert_eq!(helps.problem(&words(line)), None, "longhaul {} --help: {line}", command.join(" "));
        }
    }
    assert!(examples > 40, "{examples}");
}

/// Commands that need a network, a key, an agent, a terminal or a person, or go on until they are stopped: looked at above,
/// not run.
const NOT_RUN: [&str; 9] = ["wrap", "serve", "inspect", "run", "persist", "unpersist", "doctor", "man", ""];

#[test]
fn commands_that_need_nothing_but_files_run_as_they_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let session = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.jsonl")).unwrap();
    // What the pages call their files.
    for name in
        ["session.jsonl", "session.jsonl.gz", "FILE", "FOLDER/a.jsonl", "DIR/a.jsonl", "home/old/a.jsonl"]
    {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &session).unwrap();
    }
    let mut run = BTreeSet::new();
    for (name, page) in pages().iter().filter(|(name, _)| *name != "CHANGELOG.md") {
        for line in code_lines(page) {
            let Some(command) = shown_command(line) else { continue };
            let words = words(&command.replace('~', home.to_str().unwrap()));
            let first = words.get(1).map_or("", String::as_str);
            if NOT_RUN.contains(&first) || first.starts_with('-') || !run.insert(command.to_owned()) {
                continue;
            }
            let mut longhaul = longhaul();
            longhaul.args(&words[1..]).env("HOME", &home).current_dir(folder.path());
            // One that waits for somebody belongs to those that are not run.
            longhaul.timeout(std::time::Duration::from_secs(300));
            if first == "demo" {
                longhaul.arg("--fast");
            }
            let output = longhaul.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // A home folder in which no agent ever worked has nothing to report.
            let empty =
                first == "report" && (said.contains("no sessions") || said.contains("no call is left"));
            assert!(output.status.success() || empty, "{name}: {command}\n{said}");
        }
    }
    assert!(run.len() >= 12, "{run:?}");
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut links = 0;
    for (name, page) in &pages {
        let folder = root().join(name).parent().unwrap().to_owned();
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.contains(char::is_whitespace) || target.is_empty() {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root().join(name) } else { folder.join(file) };
            assert!(path.exists(), "{name}: {target}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&path).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let known = headings.any(|line| anchor(line.trim_start_matches('#')) == heading);
                assert!(known, "{name}: {target}: no such heading");
            }
        }
    }
    assert!(links > 100, "{links}");
}

/// Paths of all files of the repository.
fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        if entry.file_type().unwrap().is_dir() {
            if !matches!(name, "target" | ".git" | "dist" | "node_modules") {
                files(&entry.path(), found);
            }
        } else {
            found.push(entry.path().to_str().unwrap_or_default().replace('\\', "/"));
        }
    }
}

#[test]
fn every_source_file_that_is_named_is_there() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let mut named = 0;
    for (name, page) in pages() {
        for span in spans(&page) {
            let is_path = span.ends_with(".rs") && span.contains('/') && !span.contains([' ', '*', '…', '{']);
            // Paths in a made-up project of an example have no crate above them.
            if !is_path || span.starts_with("src/") || span.starts_with("tests/") {
                continue;
            }
            named += 1;
            assert!(all.iter().any(|file| file.ends_with(&format!("/{span}"))), "{name}: {span}");
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn every_command_is_in_the_readme_and_every_page_in_the_list_of_pages() {
    let pages = pages();
    let help = Helps::default().of(&[]).unwrap();
    let (_, commands) = help.split_once("\nCommands:\n").unwrap();
    let (_, table) = pages["README.md"].split_once("## Commands").unwrap();
    let table = table.split("\n## ").next().unwrap();
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let Some(name) = line.strip_prefix("  ").and_then(|line| line.split(' ').next()) else { continue };
        if matches!(name, "" | "help" | "run") {
            continue;
        }
        assert!(
            table.contains(&format!("`{name}`")) || table.contains(&format!("`{name} ")),
            "{name}\n{table}"
        );
    }
    for name in pages.keys().filter_map(|name| name.strip_prefix("docs/")).filter(|name| *name != "README.md")
    {
        assert!(pages["docs/README.md"].contains(&format!("]({name})")), "{name} is not in docs/README.md");
    }
}

#[test]
fn pages_name_ideas_and_no_numbers_of_where_they_come_from() {
    for (name, page) in pages() {
        let page = page.to_lowercase();
        assert!(!page.contains("seed 00") && !page.contains("seeds 00"), "{name}");
    }
}

/// Rows of figures in the tables of a page by their first cell, without emphasis.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let rows = rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.replace('*', "").trim().to_owned());
        (cells.next().unwrap_or_default(), cells.collect::<Vec<String>>())
    });
    rows.filter(|(_, cells)| cells.first().is_some_and(|cell| cell.parse::<f64>().is_ok())).collect()
}

/// Figures of `bench` stand on four pages; CI compares those of docs/measuring.md with a run over the corpus.
#[test]
fn figures_of_the_comparison_are_the_same_on_every_page() {
    let pages = pages();
    let measured = rows(&pages["docs/measuring.md"]);
    // cost, in line, retention, near at 200,000; the same at 64,000.
    let mut compared = 0;
    for (name, row) in rows(&pages["docs/profiles.md"]) {
        if let Some(measured) = measured.get(&name).filter(|_| row.len() == 8) {
            assert_eq!(&row, measured, "docs/profiles.md: {name}");
            compared += 1;
        }
    }
    for (name, row) in rows(&pages["README.md"]) {
        let name = if name.starts_with("the agents' own") { "recorded agent".to_owned() } else { name };
        if let Some(measured) = measured.get(&name).filter(|_| row.len() == 4) {
            let few: Vec<String> = [0, 1, 4, 5].map(|at| measured[at].clone()).into();
            assert_eq!(row, few, "README.md: {name}");
            compared += 1;
        }
    }
    let dials = rows(&pages["docs/default-profile.md"]);
    for (name, at, window) in
        ["thrifty", "longhaul", "safe"].into_iter().flat_map(|name| [(name, 0, "200k"), (name, 4, "64k")])
    {
        // cost, real, in line, retention.
        let row = &dials[&format!("`{name}`, {window}")];
        let few = [&row[0], &row[2], &row[3]];
        let same = [&measured[name][at], &measured[name][at + 1], &measured[name][at + 2]];
        assert_eq!(few, same, "docs/default-profile.md: {name} at {window}");
    }
    let default = &measured["longhaul"];
    for (page, said) in [
        ("README.md", format!("it pays {} % of what sending everything costs", default[0])),
        ("README.md", format!("{} % of the lines that later calls needed", default[1])),
        ("docs/compare.md", format!("with Longhaul {} % with {} %", default[0], default[1])),
    ] {
        let text = pages[page].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&said), "{page} does not say: {said}");
    }
    assert!(compared >= 13, "{compared}");
}

#[test]
fn the_picture_of_the_demo_is_what_the_demo_says() {
    let output = longhaul().args(["demo", "--fast"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let picture = fs::read_to_string(root().join("docs/pictures/demo.svg")).unwrap();
    let texts = picture.split("lengthAdjust=\"spacingAndGlyphs\">").skip(1);
    let texts = texts.map(|rest| rest.split("</text>").next().unwrap());
    let mut drawn = 0;
    for text in texts {
        let text =
            text.replace("&gt;", ">").replace("&lt;", "<").replace("&quot;", "\"").replace("&amp;", "&");
        let text = text.replace("&#39;", "'").replace('\u{a0}', " ");
        assert!(
            said.contains(text.trim()),
            "{text:?}: make the picture again (cargo run -p longhaul-cli --example picture -- docs/pictures/demo.svg \
             --rows 33 --columns 82 -- longhaul demo --fast)\n{said}"
        );
        drawn += 1;
    }
    assert!(drawn > 30, "{drawn}");
}
