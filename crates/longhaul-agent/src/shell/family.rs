//! Everything that a command started: its process group, what bears its mark, and children of all these. So it is
//! found where it was forked while the group was being ended, where its parent is gone, and where it left the group.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable that marks a command and what it starts.
pub(crate) const VARIABLE: &str = "LONGHAUL_CALL";

/// A command has so long to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// A process that is killed is gone after so long.
const KILLED: Duration = Duration::from_millis(500);
/// So often what forks meanwhile is looked for again.
const ROUNDS: usize = 3;
/// A process has become another program after so long.
const BECOMING: Duration = Duration::from_millis(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Everything that a command started.
#[derive(Debug)]
pub(crate) struct Family {
    group: Pid,
    mark: String,
    /// All have ended: the number of the group may be somebody else's by now.
    is_over: AtomicBool,
}

impl Family {
    pub(crate) fn new(group: Pid, mark: String) -> Self {
        Self { group, mark, is_over: AtomicBool::new(false) }
    }

    /// A mark of no other command. `outer` is the one of the command that runs us: who looks for that finds ours too.
    pub(crate) fn new_mark(outer: Option<&str>) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        format!("{}{}-{now}-{count};", outer.unwrap_or_default(), std::process::id())
    }

    /// Ends all: asks them, waits for a moment, then kills those that stay. Gives how many there were.
    /// Takes up to four seconds, on a thread that may block.
    pub(crate) fn end(&self) -> usize {
        let there = self.signal(Signal::TERM);
        if there > 0 {
            // One that is halted would hear it later.
            self.signal(Signal::CONT);
            if !self.are_gone_within(GRACE) {
                self.kill();
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        there
    }

    /// Ends all at once.
    pub(crate) fn end_now(&self) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.kill();
        }
    }

    /// Halts them first, so that none forks while others are killed; what was forked before is found in the next round.
    fn kill(&self) {
        for _ in 0..ROUNDS {
            if self.signal(Signal::STOP) == 0 {
                return;
            }
            self.signal(Signal::KILL);
            if self.are_gone_within(KILLED) {
                return;
            }
        }
    }

    fn signal(&self, signal: Signal) -> usize {
        let members = self.members();
        if !members.is_empty() {
            // What has ended since needs no signal.
            _ = kill_process_group(self.group, signal);
            for member in &members {
                _ = kill_process(*member, signal);
            }
        }
        members.len()
    }

    fn are_gone_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.members().is_empty() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Those that live.
    #[cfg(target_os = "linux")]
    fn members(&self) -> Vec<Pid> {
        let living = living();
        let mark = format!("{VARIABLE}={}", self.mark);
        let environment = |stat: &Stat| std::fs::read(process(stat.pid).join("environ"));
        let is_marked = |environment: &[u8]| {
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()))
        };
        let mut found: std::collections::HashSet<Pid> = std::collections::HashSet::new();
        let mut unclear: Vec<&Stat> = Vec::new();
        for stat in &living {
            if stat.group == Some(self.group) {
                found.insert(stat.pid);
                continue;
            }
            // Those of other users cannot be read, nor ended.
            let Ok(environment) = environment(stat) else { continue };
            if is_marked(&environment) {
                found.insert(stat.pid);
            } else if environment.is_empty() && !stat.is_of_the_system() {
                unclear.push(stat);
            }
        }
        // A process that becomes another program has no environment for a moment.
        if !unclear.is_empty() {
            std::thread::sleep(BECOMING);
            let marked = |stat: &&&Stat| environment(stat).is_ok_and(|environment| is_marked(&environment));
            found.extend(unclear.iter().filter(marked).map(|stat| stat.pid));
        }
        // Children of those, whatever they did to their environment.
        loop {
            let is_child = |stat: &&Stat| stat.parent.is_some_and(|parent| found.contains(&parent));
            let more: Vec<Pid> = living.iter().filter(is_child).map(|stat| stat.pid).collect();
            let before = found.len();
            found.extend(more);
            if found.len() == before {
                return found.into_iter().collect();
            }
        }
    }

    /// Where there is no /proc, the group alone can be found.
    #[cfg(not(target_os = "linux"))]
    fn members(&self) -> Vec<Pid> {
        rustix::process::test_kill_process_group(self.group).map_or(Vec::new(), |()| vec![self.group])
    }
}

/// A process, as /proc has it.
#[cfg(target_os = "linux")]
struct Stat {
    pid: Pid,
    parent: Option<Pid>,
    group: Option<Pid>,
}

#[cfg(target_os = "linux")]
impl Stat {
    /// From a line such as `42 (name of the program) S 1 42 …`. None for one that has ended and was not waited for.
    fn read(line: &str) -> Option<Self> {
        let pid = |text: &str| text.parse().ok().and_then(Pid::from_raw);
        let (number, rest) = line.split_once(' ')?;
        // The name may hold anything, brackets too.
        let mut fields = rest.rsplit_once(')')?.1.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let (parent, group) = (fields.next()?, fields.next()?);
        Some(Self { pid: pid(number)?, parent: pid(parent), group: pid(group) })
    }

    /// A thread of the kernel: number 2, and its children.
    fn is_of_the_system(&self) -> bool {
        const THREADS: i32 = 2;
        let is = |pid: Pid| pid.as_raw_nonzero().get() == THREADS;
        is(self.pid) || self.parent.is_some_and(is)
    }
}

#[cfg(target_os = "linux")]
fn living() -> Vec<Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            // Other entries have no `stat`.
            let line = std::fs::read(entry.path().join("stat")).ok()?;
            Stat::read(&String::from_utf8_lossy(&line))
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn process(pid: Pid) -> std::path::PathBuf {
    std::path::Path::new("/proc").join(pid.as_raw_nonzero().to_string())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let stat = Stat::read("42 (a) R 7 (b)) S 1 41 40 0 -1").unwrap();
        let raw = |pid: Option<Pid>| pid.map(|pid| pid.as_raw_nonzero().get());
        assert_eq!((raw(Some(stat.pid)), raw(stat.parent), raw(stat.group)), (Some(42), Some(1), Some(41)));
        assert!(Stat::read("42 (gone) Z 1 41 40").is_none());
        assert!(Stat::read("").is_none());
    }

    #[test]
    fn a_mark_inside_a_mark_is_found_by_both_and_no_other() {
        let outer = Family::new_mark(None);
        let inner = Family::new_mark(Some(&outer));
        assert!(inner.starts_with(&outer) && inner != outer);
        assert!(!Family::new_mark(None).starts_with(&outer));
    }
}
