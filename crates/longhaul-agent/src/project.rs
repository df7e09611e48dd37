//! The project that the tools work in: its root, which no path leaves, and the files that were read in it.
//!
//! A path is resolved first, symbolic links and all, and must then be inside the root. What is opened is the
//! resolved path, and the system is told to follow no link in it: one that is put there in between leads nowhere.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::envelope::{Code, ToolError};
use crate::files_read::FilesRead;

/// Where the tools work.
#[derive(Debug)]
pub struct Project {
    root: PathBuf,
    /// A folder of ours that may be read too: whole outputs of commands are in it.
    outputs: Option<PathBuf>,
    read: Mutex<FilesRead>,
}

/// A place inside the project, resolved: no part of it was a symbolic link when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
    shown: String,
}

impl Project {
    /// The project in this folder.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = root.as_ref().canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "the project is no folder"));
        }
        // Who may not look into it has no project.
        std::fs::read_dir(&root)?;
        Ok(Self { root, outputs: None, read: Mutex::default() })
    }

    /// With a folder outside the root that may be read too.
    pub fn with_outputs(mut self, outputs: impl AsRef<Path>) -> io::Result<Self> {
        self.outputs = Some(outputs.as_ref().canonicalize()?);
        Ok(self)
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for whole outputs.
    pub(crate) fn outputs(&self) -> Option<&Path> {
        self.outputs.as_deref()
    }

    /// The files that were read.
    pub(crate) fn read(&self) -> MutexGuard<'_, FilesRead> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path that a model wrote: inside the root, or an error. It need not exist. An empty one is the root.
    pub fn place(&self, path: &str) -> Result<Place, ToolError> {
        let asked = named(path.trim());
        let resolved =
            resolve(&self.root.join(&asked)).map_err(|error| ToolError::of_io(&error, &short(path)))?;
        let inside = |folder: &PathBuf| resolved.starts_with(folder);
        if !inside(&self.root) && !self.outputs.as_ref().is_some_and(inside) {
            return Err(ToolError::new(
                Code::OutsideRoot,
                format!("`{}` is outside the project; only paths inside of it can be used", short(path)),
            ));
        }
        Ok(self.at(resolved))
    }

    /// A place to be written: outputs of commands are none.
    pub fn place_to_write(&self, path: &str) -> Result<Place, ToolError> {
        let place = self.place(path)?;
        if !place.path.starts_with(&self.root) {
            return Err(ToolError::new(
                Code::OutsideRoot,
                format!("`{}` is outside the project and cannot be changed", short(path)),
            ));
        }
        Ok(place)
    }

    /// A path that a walk inside the root has found.
    pub(crate) fn at(&self, path: PathBuf) -> Place {
        let shown = match path.strip_prefix(&self.root) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => shown(inside),
            Err(_) => shown(&path),
        };
        Place { path, shown }
    }
}

impl Place {
    /// The resolved path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As it is shown: from the root on.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Opens the file to be read. No link is followed: the path was resolved before.
    pub(crate) fn open(&self) -> Result<File, ToolError> {
        open(&self.path).map_err(|error| ToolError::of_io(&error, &self.shown))
    }
}

#[cfg(target_os = "linux")]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    // A pipe without a writer is not waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(file.into()),
        // An older system, or one that filters calls.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => File::open(path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The path without links: as far as it exists, the system resolves it; what is missing is appended, and has no `..`.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut existing = path.to_path_buf();
    let mut missing: Vec<OsString> = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok(resolved);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere is there all the same: what is written through it would be elsewhere.
                if existing.symlink_metadata().is_ok() {
                    return Err(io::Error::other("it is a symbolic link that leads nowhere"));
                }
                match existing.components().next_back() {
                    Some(Component::Normal(name)) => missing.push(name.to_owned()),
                    Some(Component::CurDir) => {}
                    _ => return Err(error),
                }
                if !existing.pop() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// A path as it is shown. Bytes that are no text are written as `\xHH`.
pub(crate) fn shown(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The path that is shown so.
fn named(text: &str) -> PathBuf {
    #[cfg(unix)]
    if text.contains("\\x") {
        use std::os::unix::ffi::OsStringExt;
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("\\x") {
            let (before, escape) = rest.split_at(at);
            bytes.extend_from_slice(before.as_bytes());
            let byte = escape.get(2..4).and_then(|hex| u8::from_str_radix(hex, 16).ok());
            let (byte, length): (&[u8], usize) = match &byte {
                Some(byte) if !byte.is_ascii() => (std::slice::from_ref(byte), 4),
                _ => (b"\\x", 2),
            };
            bytes.extend_from_slice(byte);
            rest = &escape[length..];
        }
        bytes.extend_from_slice(rest.as_bytes());
        return PathBuf::from(OsString::from_vec(bytes));
    }
    PathBuf::from(text)
}

/// A path in an error: not longer than a line.
fn short(path: &str) -> String {
    const MOST: usize = 300;
    let line: String = path.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect();
    if path.chars().count() > MOST { format!("{line}…") } else { line }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn project() -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/src")).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::fs::write(folder.path().join("root/src/a.rs"), "a").unwrap();
        let project = Project::new(folder.path().join("root")).unwrap();
        (folder, project)
    }

    #[test]
    fn no_path_leaves_the_root() {
        let (folder, project) = project();
        let root = project.root().to_owned();
        symlink(folder.path(), root.join("out")).unwrap();
        symlink(folder.path().join("nowhere"), root.join("dangling")).unwrap();
        symlink("src", root.join("in")).unwrap();
        let absolute = folder.path().join("secret").display().to_string();
        for bad in [
            "..",
            "../secret",
            "src/../../secret",
            "/etc/passwd",
            &absolute,
            "out/secret",
            "out/new",
            "dangling",
            "dangling/new",
            "missing/../../secret",
            "src/a.rs/../../../secret",
            "~/../../etc/passwd\0",
        ] {
            assert!(project.place(bad).is_err(), "{bad}");
        }
        for (good, shown) in [
            ("", "."),
            (".", "."),
            ("src/a.rs", "src/a.rs"),
            ("./src/../src/a.rs", "src/a.rs"),
            ("in/a.rs", "src/a.rs"),
            ("new/deep/file", "new/deep/file"),
            (&root.join("src").display().to_string(), "src"),
        ] {
            assert_eq!(project.place(good).unwrap().shown(), shown, "{good}");
        }
    }

    #[test]
    fn a_link_that_is_put_in_the_way_is_not_followed() {
        let (folder, project) = project();
        let place = project.place("src/a.rs").unwrap();
        std::fs::remove_file(place.path()).unwrap();
        symlink(folder.path().join("secret"), place.path()).unwrap();
        assert!(place.open().is_err());
    }

    #[test]
    fn names_that_are_no_text_can_be_shown_and_found() {
        let (_folder, project) = project();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9\xff.txt");
        std::fs::write(project.root().join(name), "x").unwrap();
        let place = project.at(project.root().join(name));
        assert_eq!(place.shown(), "caf\\xe9\\xff.txt");
        assert_eq!(project.place(place.shown()).unwrap(), place);
        // What only looks like it is itself.
        assert_eq!(project.place("a\\x41b").unwrap().shown(), "a\\x41b");
    }
}
