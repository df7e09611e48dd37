//! Where the store is, and whether there is one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_config::without_password;
use longhaul_store::{Store, StoreError};

use crate::error::Failure;
use crate::output_file;
use crate::terminal;

/// The path of a file, or a URL. What is shown of it has no password.
pub struct Place(String);

impl Place {
    pub fn new(place: String) -> Result<Self, Failure> {
        if place.trim().is_empty() {
            let problem =
                "nobody says where sessions are kept: give --store, LONGHAUL_STORE or the setting `store`";
            return Err(Failure::Input(problem.to_owned()));
        }
        let scheme = place.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| !matches!(scheme, "postgres" | "postgresql")) {
            let problem = "no store of this kind is known: give the path of a file, or postgres://…";
            return Err(Failure::Input(format!("{}: {problem}", Self(place))));
        }
        Ok(Self(place))
    }

    /// False if it is a file that is not there. A server is there, or says itself what is wrong.
    pub fn is_there(&self) -> bool {
        self.is_url() || Path::new(&self.0).exists()
    }

    /// The store, which must be there.
    pub fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        if !self.is_there() {
            let problem = "there is no store here yet; `longhaul sessions import FILE` makes one";
            return Err(Failure::Input(format!("{self}: {problem}")));
        }
        Ok(longhaul_store::open(&self.0)?)
    }

    /// The store, which is made if it is not there.
    pub fn open_or_make(&self) -> Result<Arc<dyn Store>, Failure> {
        self.make_folder()?;
        Ok(longhaul_store::open(&self.0)?)
    }

    fn make_folder(&self) -> Result<(), Failure> {
        let folder = Path::new(&self.0).parent().filter(|_| !self.is_there());
        folder.map_or(Ok(()), make_private).map_err(|error| {
            let folder = folder.unwrap_or(Path::new("")).display();
            Failure::Failed(format!("{folder}: {error}"))
        })
    }

    /// As `open_or_make`. A file that is damaged is moved aside, and another is made: gives where the old one is now.
    pub fn open_or_replace(&self) -> Result<Option<PathBuf>, Failure> {
        let problem = match self.make_folder().map(|()| longhaul_store::open(&self.0))? {
            Ok(_) => return Ok(None),
            Err(problem) => problem,
        };
        if self.is_url() || !matches!(problem, StoreError::Damaged { .. }) {
            return Err(problem.into());
        }
        let cannot =
            |error: io::Error| Failure::Failed(format!("{problem}; it cannot be moved aside: {error}"));
        // One process at a time: what another one has just made in its place is whole.
        let lock = output_file::private().append(true).open(format!("{}.lock", self.0));
        let lock = lock.map_err(cannot)?;
        lock.lock().map_err(cannot)?;
        match longhaul_store::open(&self.0) {
            Ok(_) => return Ok(None),
            Err(StoreError::Damaged { .. }) => {}
            // Such a file may be whole, and in use at this moment.
            Err(other) => return Err(other.into()),
        }
        let aside = self.move_aside().map_err(cannot)?;
        longhaul_store::open(&self.0)?;
        Ok(Some(aside))
    }

    /// Gives the file, and those that SQLite keeps beside it, another name.
    fn move_aside(&self) -> io::Result<PathBuf> {
        let named = |name: &str, end: &str| PathBuf::from(format!("{name}{end}"));
        let free = (1..).map(|n| format!("{}.damaged-{n}", self.0));
        let aside = free.into_iter().find(|name| !Path::new(name).exists()).unwrap_or_default();
        // The file itself goes last: a new one must never find the log of the old one beside it.
        for end in ["-wal", "-shm"] {
            match std::fs::rename(named(&self.0, end), named(&aside, end)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.0, &aside)?;
        Ok(aside.into())
    }

    /// The place as it was said, with its password.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is on a server.
    pub fn is_url(&self) -> bool {
        self.0.contains("://")
    }
}

/// The folder of this user's sessions and token, if nobody names another.
pub fn data_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
    Some(base.join("longhaul"))
}

/// Makes a folder that nobody else may look into: conversations are in it.
pub fn make_private(folder: &Path) -> std::io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let mut make = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.recursive(true).create(folder)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name may hold anything; messages stay one line.
        let shown = without_password(&self.0);
        f.write_str(&terminal::one_line(&shown, usize::MAX))
    }
}
