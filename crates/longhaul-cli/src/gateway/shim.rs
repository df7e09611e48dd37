//! A shim: a small script named like an agent's program that runs the agent behind a gateway. The program itself is
//! in it by its path, so that the shim does not find itself again. Without our binary it runs the program alone.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::gateway::shell::quoted;

/// How the second line of every shim begins. A file without it is not ours.
const MARK: &str = "# longhaul shim of ";

/// A shim of an agent.
pub struct Shim<'a> {
    /// Our own binary.
    pub longhaul: &'a str,
    /// The agent's program.
    pub program: &'a str,
    /// The name of the agent.
    pub agent: &'a str,
}

impl Shim<'_> {
    /// True if the file there is a shim of ours. What cannot be read is none.
    pub fn is_at(path: &Path) -> bool {
        let mut start = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut start));
        let start = String::from_utf8_lossy(&start);
        read.is_ok() && start.lines().nth(1).is_some_and(|line| line.starts_with(MARK))
    }

    /// Writes the shim, all of it or nothing.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = path.with_file_name(name);
        let written = self.write_new(&new).and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            // What was begun shall not stay. That it cannot be removed is not worth a word beside the error.
            _ = fs::remove_file(&new);
        }
        written
    }

    fn write_new(&self, path: &PathBuf) -> io::Result<()> {
        let mut options = fs::File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
        options.open(path)?.write_all(self.text().as_bytes())
    }

    fn text(&self) -> String {
        let Self { longhaul, program, agent } = self;
        let [longhaul, program, name] = [longhaul, program, agent].map(|text| quoted(text));
        format!(
            "#!/bin/sh\n\
             {MARK}{agent}; `longhaul unpersist {agent}` takes it away.\n\
             if [ -x {longhaul} ]; then\n  \
               exec {longhaul} wrap --program {program} {name} -- \"$@\"\n\
             fi\n\
             exec {program} \"$@\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_known_again_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("claude");
        let shim = Shim { longhaul: "/opt/long haul", program: "/opt/it's", agent: "claude" };
        shim.write(&path).unwrap();
        assert!(Shim::is_at(&path));
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains(r#"exec '/opt/long haul' wrap --program '/opt/it'\''s' claude -- "$@""#),
            "{text}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        for other in ["", "#!/bin/sh\n", "#!/bin/sh\necho # longhaul shim of claude\n"] {
            fs::write(&path, other).unwrap();
            assert!(!Shim::is_at(&path), "{other}");
        }
        assert!(!Shim::is_at(&folder.path().join("missing")));
    }
}
