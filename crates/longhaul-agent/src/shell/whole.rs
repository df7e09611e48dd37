//! The file that has the whole output of a command, up to a size.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::project::shown;

/// Bytes of the file at most.
pub(crate) const LARGEST: u64 = 64 << 20;

/// The whole output of a command, in a file that is made when the first piece comes.
#[derive(Debug)]
pub(crate) struct Whole {
    folder: Option<PathBuf>,
    /// The start of its name.
    name: String,
    file: Option<(File, PathBuf)>,
    bytes: u64,
    end: Option<End>,
}

/// Why nothing more is written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Full,
    Failed(String),
}

impl Whole {
    /// Without a folder nothing is kept.
    pub(crate) fn new(folder: Option<&Path>, name: &str) -> Self {
        Self { folder: folder.map(Path::to_owned), name: name.to_owned(), file: None, bytes: 0, end: None }
    }

    /// Writes to the page cache: no slower than the pipe that the bytes came from.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        let room = usize::try_from(LARGEST - self.bytes).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        match self.write(fits) {
            Err(error) => self.end = Some(End::Failed(error.to_string())),
            Ok(()) if fits.len() < bytes.len() => self.end = Some(End::Full),
            Ok(()) => {}
        }
        self.bytes += fits.len() as u64;
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if self.file.is_none() {
            let prefix = format!("{}-", self.name);
            let new = tempfile::Builder::new().prefix(&prefix).suffix(".txt").tempfile_in(folder)?;
            self.file = Some(new.keep().map_err(|error| error.error)?);
        }
        match &mut self.file {
            Some((file, _)) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    /// True once a piece has come.
    pub(crate) fn is_begun(&self) -> bool {
        self.bytes > 0 || self.end.is_some()
    }

    /// The file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(_, path)| path.as_path())
    }

    /// Takes the file away: nothing was left out of what is shown.
    pub(crate) fn discard(&mut self) {
        if let Some((_, path)) = self.file.take() {
            // One that stays harms nobody.
            _ = std::fs::remove_file(path);
        }
    }

    /// Where what is not shown can be found.
    pub(crate) fn told(&self) -> String {
        match (self.path(), &self.end) {
            (Some(path), None) => format!("The whole output is in {}: use Read or Grep.", shown(path)),
            (Some(path), Some(End::Full)) => {
                let size = LARGEST >> 20;
                format!("The first {size} MB of the output are in {}: use Read or Grep.", shown(path))
            }
            (Some(path), Some(End::Failed(why))) => {
                format!("A part of the output is in {}, the rest could not be kept: {why}.", shown(path))
            }
            (None, Some(End::Failed(why))) => format!("What is left out could not be kept: {why}."),
            (None, _) => "What is left out was not kept: ask for less, or write it to a file.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_grows_up_to_its_limit_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut whole = Whole::new(Some(folder.path()), "bash");
        assert!(!whole.is_begun() && whole.path().is_none());
        let piece = vec![b'x'; 1_000_000];
        for _ in 0..70 {
            whole.append(&piece);
        }
        let path = whole.path().unwrap().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LARGEST);
        assert!(whole.told().starts_with("The first 64 MB of the output are in "), "{}", whole.told());
        whole.discard();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_is_gone_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut whole = Whole::new(Some(&folder.path().join("gone")), "bash");
        whole.append(b"x");
        assert!(whole.is_begun() && whole.path().is_none());
        assert!(whole.told().starts_with("What is left out could not be kept: "), "{}", whole.told());
    }
}
