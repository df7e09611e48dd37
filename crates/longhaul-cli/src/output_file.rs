//! Files that commands write: what may be replaced, what stays whatever was asked, and who may read it. A new file is its
//! user's alone, since conversations are in it; one that is there keeps its mode.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::file_start::{SQLITE, begins_with};

/// Where a file is to be written. Follows links, so that a link stays one. An error if something is there that is not to
/// be replaced: anything without `force`; and folders, devices, pipes and databases in any case.
pub fn place(path: &Path, force: bool) -> Result<PathBuf, Failure> {
    let Ok(about) = fs::metadata(path) else { return Ok(path.to_owned()) };
    if about.is_dir() {
        return Err(Failure::file(path, "is a folder: name a file"));
    }
    if !about.is_file() {
        return Err(Failure::file(path, "is no file that could be replaced; `-` is standard output"));
    }
    if !force {
        return Err(Failure::file(path, "is there already (--force replaces it)"));
    }
    if begins_with(path, SQLITE) {
        return Err(Failure::file(path, "is a database, such as a store of sessions: it stays"));
    }
    path.canonicalize().map_err(|error| Failure::file(path, error))
}

/// How a file is opened that is made for its user alone if it is not there.
pub fn private() -> OpenOptions {
    let mut options = File::options();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a file, or empties the one that is there.
pub fn create(path: &Path) -> io::Result<File> {
    private().write(true).truncate(true).open(path)
}

/// Writes a file, or replaces what is in the one that is there.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// True if two paths name the same file.
pub fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("file"), "x").unwrap();
        fs::write(at("store.db"), b"SQLite format 3\0...").unwrap();
        assert_eq!(place(&at("new"), false).unwrap(), at("new"));
        for (name, force, says) in [
            ("folder", true, "is a folder"),
            ("file", false, "is there already (--force replaces it)"),
            ("store.db", true, "is a database"),
        ] {
            assert!(place(&at(name), force).unwrap_err().to_string().contains(says), "{name}");
        }
        assert!(place(Path::new("/dev/null"), true).unwrap_err().to_string().contains("is no file"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
            assert_eq!(place(&at("link"), true).unwrap(), at("file").canonicalize().unwrap());
        }
    }
}
