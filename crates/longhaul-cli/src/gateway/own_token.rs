//! The token of this user's gateways. It is made once and kept in a file that nobody else can read, so that clients that
//! were told it can still use the gateway after a restart.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::gateway::secret;
use crate::place::{data_folder, make_private};

/// The token, and the file that it is in.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnToken {
    pub text: String,
    pub path: PathBuf,
}

impl OwnToken {
    /// The token of this user, which is made if there is none.
    pub fn get() -> Result<Self, Failure> {
        let path = Self::place().ok_or_else(|| {
            Failure::Input("there is no folder for the gateway's token: set HOME, or give --token".to_owned())
        })?;
        Self::made_at(path)
    }

    /// The token of this user, if there is one.
    pub fn known() -> Result<Option<Self>, Failure> {
        Self::place().map_or(Ok(None), Self::at)
    }

    fn place() -> Option<PathBuf> {
        data_folder().map(|folder| folder.join("token"))
    }

    fn made_at(path: PathBuf) -> Result<Self, Failure> {
        if let Some(known) = Self::at(path.clone())? {
            return Ok(known);
        }
        write_new(&path, &secret::new()?).map_err(|error| Failure::file(&path, error))?;
        // Another process may have been faster: its token is the one that counts.
        Self::at(path.clone())?.ok_or_else(|| Failure::file(&path, "the token was deleted while it was made"))
    }

    fn at(path: PathBuf) -> Result<Option<Self>, Failure> {
        let file = match open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::file(&path, error)),
        };
        if let Some(problem) = not_private(&file).map_err(|error| Failure::file(&path, error))? {
            return Err(Failure::file(&path, problem));
        }
        let mut text = String::new();
        let read = file.take(1_000).read_to_string(&mut text);
        let text = text.trim().to_owned();
        if read.is_err() || !secret::fits_a_path(&text) {
            return Err(Failure::file(
                &path,
                "this is no token: delete the file, and `longhaul serve` makes a new one",
            ));
        }
        Ok(Some(Self { text, path }))
    }
}

/// Opens a file to read. A link is not followed, and nothing is waited for.
fn open(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options.open(path)
}

/// Why others may know what is in a file, and what to do then.
fn not_private(file: &fs::File) -> io::Result<Option<&'static str>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Some("this is no file: remove it, and `longhaul serve` makes a new token"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Ok(Some(
                "the token belongs to another user: delete the file, and `longhaul serve` makes a new one",
            ));
        }
        if metadata.mode() & 0o077 != 0 {
            return Ok(Some(
                "other users may read the token: delete the file, and `longhaul serve` makes a new one (or `chmod 600` it if nobody else has seen it)",
            ));
        }
    }
    Ok(None)
}

/// Writes a new file that nobody else can read: all of it or nothing. One that is there stays.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    make_private(folder)?;
    // Such a file is its owner's alone from its first moment on.
    let mut file = tempfile::Builder::new().prefix(".token-").tempfile_in(folder)?;
    writeln!(file, "{text}")?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn it_is_made_once_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("share/longhaul/token");
        assert_eq!(OwnToken::at(path.clone()).unwrap(), None);
        let made = OwnToken::made_at(path.clone()).unwrap();
        assert!(secret::fits_a_path(&made.text) && made.text.len() == 48);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(OwnToken::made_at(path.clone()).unwrap(), made);
        // Nothing else is left.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn all_who_make_it_at_once_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul/token");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || OwnToken::made_at(path).unwrap().text)
            })
            .collect();
        let mut all: Vec<String> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        all.dedup();
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn one_that_others_may_know_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let problem = || OwnToken::made_at(path.clone()).unwrap_err().to_string();
        OwnToken::made_at(path.clone()).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(problem().contains("other users may read the token"), "{mode:o} {}", problem());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for text in ["", "\n", "two words", "a/b"] {
            fs::write(&path, text).unwrap();
            assert!(problem().contains("this is no token: delete the file"), "{text:?}");
        }
        // One of the user's own is as good.
        fs::write(&path, "my-own-token\n").unwrap();
        assert_eq!(OwnToken::made_at(path.clone()).unwrap().text, "my-own-token");
        // A link may lead to a file of somebody else.
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(problem().contains("token: "), "{}", problem());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(problem().contains("this is no file"), "{}", problem());
    }
}
