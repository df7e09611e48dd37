//! What the host says beside the messages: goal, pins, memories, rules, task list, git stat, technical
//! context, the frame, limits, and the kind of work.

use std::sync::Arc;

use super::Session;
use super::journal::{Allowed, Entry, RecallBy};
use super::reports::Overflow;
use crate::conversation::canonical::Head;
use crate::conversation::fact::{Fact, FactKind};
use crate::conversation::frame::Frame;
use crate::policy::task::Task;
use crate::size::meter::Measure;
use crate::size::tokens::Tokens;

impl Session {
    /// Sets what the work is for.
    pub fn set_goal(&mut self, goal: impl Into<Box<str>>) {
        self.note(Fact::new(FactKind::Goal, goal));
    }

    /// Text that must stay, under a name.
    pub fn pin(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        self.note(Fact::keyed(FactKind::Pin, name, text));
    }

    /// Text that need not stay any longer.
    pub fn unpin(&mut self, name: impl Into<Box<str>>) {
        self.note(Fact::gone(FactKind::Pin, name));
    }

    /// Something to remember, under a name; the newest ten are shown.
    pub fn remember(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        self.note(Fact::keyed(FactKind::Memory, name, text));
    }

    /// A file of project rules; `None` if it is gone. It shows at the next request: in the tail, where it says
    /// what it replaces, as long as the provider has the old text in its cache, and then before the history.
    pub fn set_rules(&mut self, path: impl Into<Box<str>>, text: Option<&str>) {
        self.note(Fact { kind: FactKind::Rules, key: path.into(), text: text.map(Into::into) });
    }

    /// The task list; `None` if there is none.
    pub fn set_todos(&mut self, text: Option<&str>) {
        self.note(Fact { kind: FactKind::Todos, key: "".into(), text: text.map(Into::into) });
    }

    /// What `git diff --stat` says; `None` if nothing.
    pub fn set_git_stat(&mut self, text: Option<&str>) {
        self.note(Fact { kind: FactKind::GitStat, key: "".into(), text: text.map(Into::into) });
    }

    /// Languages, frameworks and versions that the work is done with; `None` if nobody knows. A summary in
    /// the form `archive` says it; nobody guesses it.
    pub fn set_stack(&mut self, text: Option<&str>) {
        self.note(Fact { kind: FactKind::Stack, key: "".into(), text: text.map(Into::into) });
    }

    /// Operating system, shell and variables that matter; `None` if nobody knows. A summary in the form
    /// `archive` says it; nobody guesses it.
    pub fn set_environment(&mut self, text: Option<&str>) {
        self.note(Fact { kind: FactKind::Environment, key: "".into(), text: text.map(Into::into) });
    }

    /// A fact of the host, unless it says what is known already.
    pub(super) fn note(&mut self, fact: Fact) {
        if self.log().fact(fact.kind, &fact.key) != fact.text.as_deref() {
            self.record(Entry::Fact(Arc::new(fact)));
        }
    }

    /// System prompt, tools and settings, for every request from now on. A frame of the same
    /// [`key`](Frame::key) is the same prompt: the journal notes no more than the longest answer that it
    /// asks for, and the rest of it is sent as it came. For another model see [`switch`](Self::switch).
    pub fn set_frame(&mut self, frame: Frame) {
        let known = self.log().frame();
        if !known.is_some_and(|known| known.is_same_prompt(&frame)) {
            self.record(Entry::Frame(Arc::new(frame)));
            // Of a model that the table does not have, the frame says whose reasoning it can read.
            return self.mind_seals();
        }
        // A tool that waits until it is found is no part of the cached prompt, but what is thought after its name is bound
        // to it.
        let waits_other = |known: &Frame| {
            let is_equal = known.tools_deferred().eq(frame.tools_deferred());
            !is_equal && Head::of(known) != Head::of(&frame)
        };
        let is_other = self.model().signs() && known.is_some_and(waits_other);
        let max_output = frame.max_output();
        if is_other {
            self.record(Entry::Frame(Arc::new(frame.clone())));
        } else if max_output != self.state.limits.frame_output() {
            self.record(Entry::MaxOutput(max_output));
        }
        self.newest_frame = Some((self.log().frame_version(), frame));
    }

    /// What kind of work this is, for profiles that ask. Else it is found from the tool calls.
    pub fn set_task(&mut self, task: Task) {
        self.record(Entry::Task(task));
    }

    /// Nobody is there to answer: the run is not interactive. In a profile that heeds `<Pin>`
    /// ([`Profile::pin_mark`](crate::Profile)) the first request is then a pin as a whole, so that it stays
    /// word for word also when another goal is set. The other profiles keep it as the goal and nothing more.
    /// A pin that was made stays when somebody is there again; [`unpin`](Self::unpin) takes it back.
    pub fn set_unattended(&mut self, unattended: bool) {
        if unattended == self.state.unattended {
            return;
        }
        self.record(Entry::Unattended(unattended));
        if let Some(first) = self.log().goal_message() {
            self.pin_task(first);
        }
    }

    /// Another window than the one so far.
    pub fn set_window(&mut self, window: Tokens) {
        self.allow(Allowed { window: Some(window), ..self.state.limits.allowed() });
    }

    /// The longest answer that requests ask for: so much is kept free. Without it, the frame says it
    /// or the model's row.
    pub fn set_max_output(&mut self, tokens: Tokens) {
        self.allow(Allowed { max_output: Some(tokens), ..self.state.limits.allowed() });
    }

    /// The window in which the provider wants prompt and allowed answer together, as another conversation with this
    /// model has learnt from a refusal. The window is at most this large from now on, and answers are allowed less
    /// where both would pass it. Nothing happens if it has fewer than [`Overflow::SMALLEST_WINDOW`] tokens.
    pub fn set_shared_window(&mut self, window: Tokens) {
        let is_known = self.state.limits.learnt_shared_window() == Some(window);
        if window >= Overflow::SMALLEST_WINDOW && !is_known {
            self.record(Entry::AnswerCounts { window });
        }
    }

    /// How much of the log the client's newest request no longer has: messages that it has dropped or made shorter
    /// itself. Without us it would not be sent either, so that no fold is paid by leaving it out. It is in no journal:
    /// the host tells it with each request.
    pub fn set_taken_away(&mut self, taken_away: Measure) {
        self.taken_away = taken_away;
    }

    /// How long the provider is asked to remember prefixes. Without it, the model's row says it.
    pub fn set_cache_lifetime(&mut self, seconds: u64) {
        self.allow(Allowed { cache_lifetime_s: Some(seconds), ..self.state.limits.allowed() });
    }

    pub(super) fn allow(&mut self, allowed: Allowed) {
        if allowed != self.state.limits.allowed() {
            self.record(Entry::Limited(allowed));
        }
    }

    /// How the model gets back what was taken out: summaries say it behind `recall HANDLE`.
    pub fn set_recall(&mut self, by: RecallBy) {
        if by != self.state.recall_by {
            self.record(Entry::RecallBy(by));
        }
    }
}
