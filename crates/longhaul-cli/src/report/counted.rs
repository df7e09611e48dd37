//! Each call counted once. Sessions that were resumed or forked repeat what was billed before: the earliest file that
//! has a call keeps it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::conversation::{Call, Conversation};
use super::files::SessionFile;

/// Takes repeated calls out of later files. Gives how many there were.
pub fn once(files: &mut [SessionFile]) -> u64 {
    files.sort_by(|a, b| (begins(a), &a.path).cmp(&(begins(b), &b.path)));
    let parents: HashMap<String, String> = all(files)
        .filter_map(|conversation| Some((conversation.session.clone(), conversation.forked_from.clone()?)))
        .collect();
    let (mut seen, mut repeated) = (HashSet::new(), 0);
    for file in files {
        let agent = file.scanned.agent.clone();
        for conversation in &mut file.scanned.conversations {
            let family = family(&conversation.session, &parents).to_owned();
            // A fork shares its parent's names of calls; elsewhere a name is good for all files of an agent.
            let scope = if agent == "codex" { family } else { String::new() };
            let is_new = |call: &Call| {
                let mut hasher = DefaultHasher::new();
                (&agent, &scope, call.key).hash(&mut hasher);
                seen.insert(hasher.finish())
            };
            let (before, ended) =
                (conversation.calls.len() as u64, conversation.calls.last().map_or(0, |call| call.at));
            let gone = conversation.keep_calls(is_new);
            repeated += gone;
            // What is mostly a copy has no results of its own.
            if gone * 2 > before {
                conversation.largest.clear();
                conversation.repeated.clear();
                let new = conversation.calls.first().map_or(ended, |call| call.at);
                conversation.compactions.retain(|compaction| compaction.at >= new);
            }
        }
        // A conversation that is nothing but a copy is none.
        let is_own =
            |conversation: &Conversation| !conversation.calls.is_empty() || conversation.unbilled > 0;
        file.scanned.conversations.retain(is_own);
    }
    repeated
}

impl Conversation {
    /// Keeps some calls, and what filled them. Gives how many went.
    pub fn keep_calls(&mut self, keep: impl FnMut(&Call) -> bool) -> u64 {
        let prompts = |calls: &[Call]| calls.iter().map(Call::prompt).sum::<u64>();
        let (before, count) = (prompts(&self.calls), self.calls.len());
        self.calls.retain(keep);
        let after = prompts(&self.calls);
        if after < before {
            let mut left = after;
            let parts = self.filled.len();
            for (n, tokens) in self.filled.values_mut().enumerate() {
                let kept = (u128::from(*tokens) * u128::from(after) / u128::from(before)) as u64;
                // The last part takes what rounding left over.
                *tokens = if n + 1 == parts { left } else { kept.min(left) };
                left -= *tokens;
            }
        }
        (count - self.calls.len()) as u64
    }
}

fn all(files: &[SessionFile]) -> impl Iterator<Item = &Conversation> {
    files.iter().flat_map(|file| &file.scanned.conversations)
}

/// When a file's first call was; a file without times is last.
fn begins(file: &SessionFile) -> i64 {
    let calls = file.scanned.conversations.iter().flat_map(|conversation| &conversation.calls);
    calls.map(|call| call.at).filter(|at| *at > 0).min().unwrap_or(i64::MAX)
}

/// The session that all forks of a session come from.
fn family<'a>(session: &'a str, parents: &'a HashMap<String, String>) -> &'a str {
    let mut oldest = session;
    // A file may say that two sessions come from each other.
    for _ in 0..64 {
        match parents.get(oldest) {
            Some(parent) if parent != oldest => oldest = parent,
            _ => break,
        }
    }
    oldest
}
