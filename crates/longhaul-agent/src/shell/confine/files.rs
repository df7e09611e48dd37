//! Landlock: the files that a command may write, those that it may read, and, on a kernel that knows the right, the
//! sockets that it may connect to.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, path_beneath_rules,
};

use super::Writing;

/// Devices that every program may write to.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// What Landlock enforces.
pub(super) struct Landlocked {
    pub(super) writing: Writing,
    /// Hidden files cannot be read.
    pub(super) hidden: bool,
    /// Unix sockets of other programs cannot be connected to.
    pub(super) sockets: bool,
}

/// Confines this thread, as far as the system can. `hidden` are resolved paths.
pub(super) fn confine(writable: &[PathBuf], hidden: &[PathBuf]) -> io::Result<Landlocked> {
    // All kinds of writing; later versions are about devices and sockets.
    let writing = AccessFs::from_write(ABI::V3);
    let folders = writable.iter().map(PathBuf::as_path).chain(DEVICES.iter().map(Path::new));
    let enforce = || -> Result<LandlockStatus, RulesetError> {
        let reading = if hidden.is_empty() { None } else { Some(AccessFs::ReadFile) };
        let handled = reading.map_or(writing, |reading| writing | reading) | AccessFs::ResolveUnix;
        let rules = Ruleset::default().handle_access(handled)?.scope(Scope::AbstractUnixSocket)?.create()?;
        // A folder that is not there is left out.
        let mut rules = rules.add_rules(path_beneath_rules(folders, writing))?;
        if reading.is_some() {
            for path in all_but(hidden) {
                // What is gone by now, or cannot be opened, cannot be read either.
                let Ok(place) = PathFd::new(&path) else { continue };
                rules = rules.add_rule(PathBeneath::new(place, AccessFs::ReadFile))?;
            }
            // A folder of ours inside a hidden one that commands are given.
            let given = |folder: &&PathBuf| hidden.iter().any(|hidden| folder.starts_with(hidden));
            rules = rules.add_rules(path_beneath_rules(writable.iter().filter(given), AccessFs::ReadFile))?;
        }
        Ok(rules.restrict_self()?.landlock)
    };
    let version = match enforce().map_err(io::Error::other)? {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    };
    Ok(Landlocked {
        writing: match version {
            Some(version) if version >= ABI::V3 => Writing::Confined,
            Some(_) => Writing::ConfinedInPart,
            None => Writing::Everywhere,
        },
        hidden: version.is_some(),
        sockets: version.is_some_and(|version| version >= ABI::V9),
    })
}

/// The places that together are all but these: whatever lies beside a folder on the way to one of them. Rights cannot
/// be taken away below a folder that has them, so these folders get none. Symbolic links are left out, as they may lead
/// to what is hidden; where they lead is a place of its own.
fn all_but(hidden: &[PathBuf]) -> BTreeSet<PathBuf> {
    let on_the_way: BTreeSet<&Path> = hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let is_hidden =
        |path: &PathBuf| hidden.contains(path) || hidden.iter().any(|hidden| path.starts_with(hidden));
    let mut places = BTreeSet::new();
    for folder in &on_the_way {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let path = entry.path();
            if !is_link && !on_the_way.contains(&*path) && !is_hidden(&path) {
                places.insert(path);
            }
        }
    }
    places
}
