//! Unix sockets of other programs, which a command must not connect to: a tmux server, Docker, D-Bus, or an agent of
//! keys would do outside what the command may not do itself.
//!
//! Where Landlock has no right for this, a system call filter refuses to make such sockets. Connected pairs remain, as
//! they lead nowhere else; pairs of datagram sockets do not, since they can send to any address.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// The bit that marks system calls of the x32 ABI, which enter the kernel as x86-64 does.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Keeps this process and all that it starts from making Unix sockets. False if there is no filter for this
/// architecture, or the kernel takes none. A program of another architecture (32-bit) is killed by the filter.
pub(super) fn refuse() -> bool {
    filter().is_ok_and(|program| apply_filter(&program).is_ok())
}

fn filter() -> io::Result<BpfProgram> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let argument = |number: u8, operator: SeccompCmpOp, value: i32| {
        SeccompCondition::new(number, SeccompCmpArgLen::Dword, operator, value as u64)
            .map_err(io::Error::other)
    };
    let rule = |conditions: Vec<SeccompCondition>| SeccompRule::new(conditions).map_err(io::Error::other);
    let unix = || argument(0, SeccompCmpOp::Eq, libc::AF_UNIX);
    // The upper bits of the type are flags.
    let of_type = |kind: i32| argument(1, SeccompCmpOp::MaskedEq(0xf), kind);
    let refused = [
        (libc::SYS_socket, vec![rule(vec![unix()?])?]),
        (
            libc::SYS_socketpair,
            vec![
                rule(vec![unix()?, of_type(libc::SOCK_DGRAM)?])?,
                rule(vec![unix()?, of_type(libc::SOCK_RAW)?])?,
            ],
        ),
        // A ring makes sockets without system calls.
        (libc::SYS_io_uring_setup, Vec::new()),
    ];
    #[cfg(target_arch = "x86_64")]
    let refused = {
        let x32 = refused.clone().map(|(call, rules)| (call | X32, rules));
        refused.into_iter().chain(x32)
    };
    let rules: BTreeMap<i64, Vec<SeccompRule>> = refused.into_iter().collect();
    // The error is the one that Landlock gives.
    let refuse = SeccompAction::Errno(libc::EACCES as u32);
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_filter_for_this_architecture() {
        assert!(!filter().unwrap().is_empty());
    }
}
