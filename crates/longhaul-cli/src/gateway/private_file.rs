//! A file that an agent reads and nobody else: in a folder of its own, which goes when the agent has ended.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file in a folder of its own. Both are removed when this is dropped.
pub struct PrivateFile {
    folder: PathBuf,
    path: PathBuf,
}

impl PrivateFile {
    /// Writes a file of this name. `unique` makes the folder's name one that is not there yet.
    pub fn new(unique: &str, name: &str, text: &str) -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("longhaul-{unique}"));
        let mut make = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
        make.create(&folder)?;
        let file = Self { path: folder.join(name), folder };
        let mut options = fs::File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&file.path)?.write_all(text.as_bytes())?;
        Ok(file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // A folder of temporary files is emptied by others too.
        _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nobody_else_reads_it_and_it_goes() {
        let unique = crate::gateway::secret::new().unwrap();
        let file = PrivateFile::new(&unique, "a.js", "text").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let (path, folder) = (file.path().to_owned(), file.folder.clone());
        assert_eq!((mode(&path), mode(&folder)), (0o600, 0o700));
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        // What is there is somebody else's.
        assert!(PrivateFile::new(&unique, "a.js", "text").is_err());
        assert!(path.exists());
        drop(file);
        assert!(!folder.exists());
    }
}
