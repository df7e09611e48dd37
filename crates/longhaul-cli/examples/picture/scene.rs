//! The scene of docs/agent.md: the agent mends a parser in a small window. What the model says is written down here; the
//! program, its tools and its compactions are real.

use std::path::Path;

use longhaul_fake::{Answer, Fake, Settings};
use serde_json::json;

use crate::watched::{Size, Watched};

/// Shown in the first line, so it is the same wherever the picture is made.
const PROJECT: &str = "/tmp/longhaul-picture/lines";

const PARSER: &str = "\
pub fn all(text: &str) -> Vec<&str> {
    let lines = text.lines().count();
    text.lines().take(lines - 1).collect()
}
";

/// The screen at the end of the scene.
pub fn agent(size: Size) -> anyhow::Result<vt100::Screen> {
    let folder = Path::new(PROJECT);
    let home = folder.parent().unwrap_or(folder).to_owned();
    _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::create_dir_all(folder.join("tests"))?;
    std::fs::write(folder.join("src/parser.rs"), PARSER)?;
    for (name, seed) in [("short.txt", 7), ("long.txt", 11)] {
        let line = |n: usize| format!("{n}: {} of the sample {name}\n", n * seed % 97);
        std::fs::write(folder.join("tests").join(name), (1..280).map(line).collect::<String>())?;
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let fake = runtime.block_on(script().start());
    let shown = play(&fake, folder, &home, size);
    _ = std::fs::remove_dir_all(&home);
    shown
}

fn play(fake: &Fake, folder: &Path, home: &Path, size: Size) -> anyhow::Result<vt100::Screen> {
    let variables = [
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("HOME", home.display().to_string()),
        ("OPENAI_API_KEY", "a-key-for-the-scene".to_owned()),
        ("OPENAI_BASE_URL", fake.base_url() + "/v1"),
    ];
    let arguments = ["--api", "openai", "--model", "gpt-4o", "--window", "10000"];
    let watched = Watched::start("longhaul", &arguments, Some(folder), &variables, size)?;
    watched.rests_at(">")?;
    watched.types("The last line of a file is dropped. Why? Look at the samples too.\r")?;
    watched.rests_at(">")?;
    watched.types("Mend it.\r")?;
    watched.rests_at("?")?;
    watched.types("y\r")?;
    watched.rests_at(">")?;
    watched.types("/context\r")?;
    watched.rests_at(">")?;
    Ok(watched.screen())
}

fn script() -> Settings {
    let read = |path: &str| Answer::new().call("Read", json!({ "path": path }));
    Settings::new()
        .answer(
            Answer::new()
                .thinking("Something counts one too few, probably where the lines are taken.")
                .text("I look at the parser first.")
                .call("Read", json!({ "path": "src/parser.rs" })),
        )
        .answer(read("tests/short.txt"))
        .answer(read("tests/long.txt"))
        .answer(
            "`take(lines - 1)` takes **one line too few**:\n\n\
             1. `src/parser.rs:3` leaves out the last line of every file\n\
             2. the samples are fine: all of them end in a newline\n",
        )
        .answer(
            Answer::new().call(
                "Edit",
                json!({ "path": "src/parser.rs", "old": "take(lines - 1)", "new": "take(lines)" }),
            ),
        )
        .answer("Mended: all lines are taken now.")
}
