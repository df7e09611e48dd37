//! Places inside writable folders that a command may not write, or not even read.
//!
//! Landlock grants rights to a folder with everything in it and takes nothing away below. So the command gets a mount
//! namespace of its own, in which such a place is mounted over itself read-only, or over with something empty. Without
//! the privilege to mount this takes a user namespace, in which the user keeps their number and gains nothing
//! outside. Landlock refuses every change of mounts afterwards, so nothing undoes it.

use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{StatVfsMountFlags, statvfs};

const NONE: Option<&str> = None;

/// Gives this process, which has one thread, mounts of its own.
pub(super) fn separate() -> io::Result<()> {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    if unshare(CloneFlags::CLONE_NEWNS).is_err() {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        // Groups cannot be mapped while they may still be dropped.
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    // What is mounted here stays here; what is mounted outside is seen here.
    Ok(mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)?)
}

/// Makes a file or a folder read-only. One that is not there is left out, as is a link that leads nowhere.
pub(super) fn read_only(path: &Path) -> io::Result<()> {
    match mount(Some(path), path, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE) {
        Ok(()) => {}
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    // Flags that the outer mount has cannot be dropped by a user namespace.
    let found = statvfs(path)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| found.contains(*flag)).map(|(_, flag)| flag);
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    Ok(mount(NONE, path, NONE, kept.fold(flags, |all, flag| all | flag), NONE)?)
}

/// Mounts something empty over a file or a folder.
pub(super) fn cover(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(data) if data.is_dir() => {
            let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            Ok(mount(Some("none"), path, Some("tmpfs"), flags, Some("size=0,mode=0555"))?)
        }
        Ok(_) => {
            mount(Some("/dev/null"), path, NONE, MsFlags::MS_BIND, NONE)?;
            Ok(())
        }
        Err(_) => Ok(()),
    }
}
