//! Which session files a command works on: those that it was given, those in folders that it was
//! given, and single conversations by their name (`path#2`). Knows what could not be read, and
//! says it when the others are done.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::Failure;
use crate::lab::opencode_store;
use crate::lab::transcript_file::TranscriptFile;
use crate::terminal;

/// A session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub path: PathBuf,
    /// The one conversation of the file that is wanted; without it, all.
    pub conversation: Option<usize>,
    /// True if it was found in a folder: nobody said that it is a session.
    pub found: bool,
}

impl Input {
    /// A path as a person gave it: `path#2` is a conversation of `path`, unless a file has that name.
    fn named(path: &Path) -> Self {
        let split = || {
            let (path, number) = path.to_str()?.rsplit_once('#')?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then_some((PathBuf::from(path), number.parse().ok()?))
        };
        let taken = if path.exists() { None } else { split() };
        match taken {
            Some((path, number)) => Self { path, conversation: Some(number), found: false },
            None => Self { path: path.to_owned(), conversation: None, found: false },
        }
    }

    /// True if it is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path == Path::new("-")
    }
}

/// The files of some paths, folders with all that is in them, in the order of the paths and of names. An error
/// names a path that is not there: a typing error costs no work on the others.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    let named: Vec<Input> = paths.iter().map(|path| Input::named(path)).collect();
    if let Some(missing) = named.iter().find(|input| !input.is_stdin() && !input.path.exists()) {
        return Err(Failure::file(&missing.path, "no such file"));
    }
    let mut files = Vec::new();
    for input in named {
        match input.path.is_dir() {
            true => files.extend(files_in(&input.path)?),
            false => files.push(input),
        }
    }
    Ok(files)
}

/// The session of a path: the file itself, or the newest session of a folder or of opencode's store, which is said.
pub fn find_one(path: &Path) -> Result<Input, Failure> {
    let input = Input::named(path);
    if !input.is_stdin() && !input.path.exists() {
        return Err(Failure::file(&input.path, "no such file"));
    }
    if !input.path.is_dir() {
        let newest = if input.conversation.is_none() { opencode_store::newest(&input.path) } else { None };
        if let Some(number) = newest {
            _ = writeln!(io::stderr(), "{}#{number}: the newest session here", terminal::path(&input.path));
        }
        return Ok(Input { conversation: input.conversation.or(newest), ..input });
    }
    let age = |input: &Input| {
        fs::metadata(&input.path).and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files = files_in(&input.path)?;
    files.sort_by_key(|input| std::cmp::Reverse(age(input)));
    let has_messages =
        |input: &Input| TranscriptFile::open(input).is_ok_and(|mut file| file.next().is_some());
    let newest = files.into_iter().find(has_messages);
    let newest = newest.ok_or_else(|| Failure::file(path, "holds no session"))?;
    _ = writeln!(io::stderr(), "{}: the newest session here", terminal::path(&newest.path));
    Ok(newest)
}

/// All files below a folder. An error if it may not be looked into; folders below it that may not are said.
fn files_in(folder: &Path) -> Result<Vec<Input>, Failure> {
    fs::read_dir(folder).map_err(|error| Failure::file(folder, error))?;
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(true)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build();
    let (mut files, mut closed) = (Vec::new(), Vec::new());
    for entry in walk {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                files.push(Input { path: entry.into_path(), conversation: None, found: true });
            }
            Ok(_) => {}
            Err(error) => closed.extend(denied(&error).map(Path::to_owned)),
        }
    }
    if let [first, more @ ..] = closed.as_slice() {
        let more = match more.len() {
            0 => String::new(),
            more => format!(", and {} more", terminal::counted(more as u64, "folder", "folders")),
        };
        _ = writeln!(io::stderr(), "skipped: {}: permission denied{more}", terminal::path(first));
    }
    Ok(files)
}

/// The folder that may not be looked into. A link that leads nowhere, or back to where it came from, hides nothing.
fn denied(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithDepth { err, .. } => denied(err),
        ignore::Error::WithPath { path, err } => {
            let is_denied =
                err.io_error().is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
            is_denied.then_some(path)
        }
        _ => None,
    }
}

/// What could not be read.
#[derive(Default)]
pub struct Unread {
    skipped: u64,
    failures: Vec<Failure>,
}

impl Unread {
    /// A file could not be read: the others go on. An error if none can, as when the output is full.
    pub fn add(&mut self, input: &Input, failure: Failure) -> Result<(), Failure> {
        match failure {
            Failure::NoMessages(_) if input.found => self.skipped += 1,
            failure @ (Failure::NoMessages(_) | Failure::Input(_)) => self.failures.push(failure),
            failure => return Err(failure),
        }
        Ok(())
    }

    /// All files were looked at. Says how many were skipped, and gives the last problem with a file that was named.
    pub fn finish(mut self, read: usize) -> Result<(), Failure> {
        let last = self.failures.pop();
        terminal::clear_progress();
        for failure in self.failures {
            _ = writeln!(anstream::stderr(), "{}error:{:#} {failure}", terminal::BAD, terminal::BAD);
        }
        if self.skipped > 0 && (read > 0 || last.is_some()) {
            let files = terminal::counted(self.skipped, "file", "files");
            _ = writeln!(io::stderr(), "{files} without messages skipped");
        }
        match last {
            Some(last) => Err(last),
            None if read == 0 => Err(Failure::Input(match self.skipped {
                0 => "there are no files here".to_owned(),
                files => format!(
                    "no session found: {} no messages",
                    terminal::counted(files, "file has", "files have")
                ),
            })),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_and_conversations_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("deep/.hidden")).unwrap();
        for name in ["b.jsonl", "deep/.hidden/a", "c#7"] {
            fs::write(at(name), "").unwrap();
        }
        let found = find(&[folder.path().to_owned(), at("b.jsonl#2"), at("c#7")]).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|input| {
                let name = input.path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
                (name, input.conversation, input.found)
            })
            .collect();
        let expected = [
            ("b.jsonl", None, true),
            ("c#7", None, true),
            ("deep/.hidden/a", None, true),
            ("b.jsonl", Some(2), false),
            ("c#7", None, false),
        ];
        assert_eq!(shown, expected.map(|(name, number, found)| (name.to_owned(), number, found)));
        assert!(find(&[at("none#x")]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_may_not_be_looked_into_is_said() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        // The others are found all the same.
        assert_eq!(find(&[folder.path().to_owned()]).unwrap().len(), 1);
        match fs::read_dir(&closed) {
            Ok(_) => eprintln!("SKIPPED: a folder that may not be looked into (root may look into all)"),
            Err(_) => assert!(find(&[closed]).unwrap_err().to_string().contains("ermission denied")),
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_holds_itself_is_searched_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        assert_eq!(find(&[folder.path().to_owned()]).unwrap().len(), 1);
    }
}
