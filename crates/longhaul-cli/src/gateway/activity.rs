//! Whether the programs that a process has started are at work.

/// Less than this much of a second's processor time is waiting for a person: blinking, looking at the clock.
const IDLE: f64 = 0.03;

/// How long the programs that a process has started have been at work.
#[derive(Debug)]
pub struct Activity {
    process: u32,
    before: f64,
    seconds: u64,
}

impl Activity {
    /// That of the programs which this process has started.
    pub fn below(process: u32) -> Self {
        Self { process, before: 0.0, seconds: 0 }
    }

    /// The seconds in which they were.
    pub fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Looks once a second what they have used.
    pub fn look(&mut self) {
        let now = used_below(self.process).unwrap_or_default();
        self.seconds += u64::from(now - self.before > IDLE);
        self.before = now;
    }
}

/// Processor time, in seconds, of all programs that a process has started, including those that have ended. `None`
/// except on Linux.
#[cfg(target_os = "linux")]
fn used_below(process: u32) -> Option<f64> {
    // Of the processor time in /proc, a tick is a hundredth of a second on every platform of Linux.
    const TICKS: f64 = 100.0;
    let mut ticks = 0;
    let mut open = children(process);
    while let Some(id) = open.pop() {
        ticks +=
            ticks_of(&std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default()).unwrap_or(0);
        open.extend(children(id));
    }
    Some(f64::from(u32::try_from(ticks).unwrap_or(u32::MAX)) / TICKS)
}

#[cfg(not(target_os = "linux"))]
fn used_below(_: u32) -> Option<f64> {
    None
}

/// The processes that a process has started and that have not ended.
#[cfg(target_os = "linux")]
fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    listed
        .flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The ticks that a process, and those of its children that have ended, have used: fields 14 to 17 of its line in /proc.
#[cfg(target_os = "linux")]
fn ticks_of(stat: &str) -> Option<u64> {
    // The name of the program, the second field, may have spaces and brackets in it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_of_a_process_are_found_behind_any_name() {
        let stat = "42 (a (b) c d) S 1 42 42 0 -1 4194304 100 0 0 0 7 5 3 2 20 0 1 0 1234 1000";
        assert_eq!(ticks_of(stat), Some(17));
        assert_eq!(ticks_of(""), None);
    }

    #[test]
    fn a_program_that_works_is_seen_and_one_that_waits_is_not() {
        // A shell with a child of its own: other tests start programs too.
        let start = |script: &str| std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut waits = start("sleep 60 & wait");
        let mut activity = Activity::below(waits.id());
        while children(waits.id()).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        activity.look();
        activity.look();
        assert_eq!(activity.seconds(), 0);
        let mut works = start("(while :; do :; done) & wait");
        let mut activity = Activity::below(works.id());
        // However busy the machine is, it gets some processor time in the end.
        while activity.seconds() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            activity.look();
        }
        for shell in [&mut waits, &mut works] {
            for child in children(shell.id()) {
                std::process::Command::new("kill").arg(child.to_string()).status().unwrap();
            }
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }
}
