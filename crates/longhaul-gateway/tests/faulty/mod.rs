//! A desk to which things happen.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use longhaul::session::Overflow;
use longhaul::{Tokens, Usage};
use longhaul_gateway::{
    Call, Called, Decide, Decision, Desk, DeskSettings, Incoming, KeptThinking, Reason, ToolAnswer,
    ToolCaller,
};
use longhaul_inspector::access::Access;
use longhaul_inspector::{Host, Inspector};

/// What happens to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    Panics,
    /// There is none.
    Fails(Reason),
    /// It comes when nobody waits for it any longer.
    ComesLate,
    /// It is made in time, and comes when nobody waits for it any longer: the conversation believes that it was sent.
    IsNotHeard,
    /// It waits for a thread that hangs in the conversation.
    Hangs,
    /// So does the next one, and the conversation is left half done.
    Poisoned,
}

/// A desk to which things happen.
pub struct Faulty {
    pub desk: Arc<Desk>,
    fault: Mutex<Option<Fault>>,
    /// Calls are made without a decision only where the client's own bytes were too long.
    pub only_after_overflow: bool,
    /// What lets go of what hangs.
    go: Mutex<Vec<Sender<()>>>,
}

impl Faulty {
    pub fn new(settings: DeskSettings) -> Arc<Self> {
        let desk = Arc::new(Desk::open(settings).unwrap());
        Arc::new(Self { desk, fault: Mutex::default(), only_after_overflow: false, go: Mutex::default() })
    }

    /// From the next decision on.
    pub fn meets(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap() = fault;
    }

    /// What hangs goes on.
    pub fn lets_go(&self) {
        self.go.lock().unwrap().clear();
    }

    /// A thread works with every live conversation until it is let go of.
    fn hang_in_conversations(&self, until: &Receiver<()>, panics: bool) {
        let id = Host::live(&*self.desk).into_iter().next().unwrap();
        let hang = || {
            Host::change(&*self.desk, id, &mut |_| {
                _ = until.recv();
                assert!(!panics, "half done");
                Ok(())
            })
        };
        _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(hang));
    }
}

impl Decide for Faulty {
    fn decide(&self, _: &Incoming) -> Decision {
        panic!("nobody waits")
    }

    fn decide_while(&self, incoming: &Incoming, is_awaited: &dyn Fn() -> bool) -> Decision {
        let fault = *self.fault.lock().unwrap();
        match fault {
            None => self.desk.decide_while(incoming, is_awaited),
            Some(Fault::Panics) => panic!("decide"),
            Some(Fault::Fails(reason)) => Decision::PassOn(reason),
            Some(Fault::ComesLate) => {
                let (go, wait) = channel();
                self.go.lock().unwrap().push(go);
                _ = wait.recv();
                self.desk.decide_while(incoming, is_awaited)
            }
            Some(Fault::IsNotHeard) => {
                let decision = self.desk.decide_while(incoming, is_awaited);
                let (go, wait) = channel();
                self.go.lock().unwrap().push(go);
                _ = wait.recv();
                decision
            }
            Some(Fault::Hangs) => {
                let (go, wait) = channel();
                self.go.lock().unwrap().push(go);
                self.hang_in_conversations(&wait, false);
                self.desk.decide_while(incoming, is_awaited)
            }
            Some(Fault::Poisoned) => {
                let (go, wait) = channel();
                drop(go);
                self.hang_in_conversations(&wait, true);
                panic!("decide");
            }
        }
    }

    fn refused_thinking(&self, call: Call, from: Option<&str>) -> Option<Call> {
        self.desk.refused_thinking(call, from)
    }

    fn thinking_outside(&self, incoming: &Incoming) -> KeptThinking {
        self.desk.thinking_outside(incoming)
    }

    fn thinking_outside_of_stored(&self, incoming: &Incoming) -> KeptThinking {
        self.desk.thinking_outside_of_stored(incoming)
    }

    fn fall_back(&self, incoming: &Incoming, overflow: Option<Overflow>) -> Option<Call> {
        if self.only_after_overflow && overflow.is_none() {
            return None;
        }
        self.desk.fall_back(incoming, overflow)
    }

    fn fits(&self, incoming: &Incoming) -> bool {
        self.desk.fits(incoming)
    }

    fn is_sent(&self, call: &Call) {
        self.desk.is_sent(call);
    }

    fn heard(&self, call: &mut Call, usage: Option<&Usage>, seals: Vec<String>) {
        self.desk.heard(call, usage, seals);
    }

    fn answered(&self, call: Call, usage: Option<&Usage>) {
        self.desk.answered(call, usage);
    }

    fn overflowed(&self, call: Call, overflow: Overflow) -> Option<Call> {
        self.desk.overflowed(call, overflow)
    }

    fn refused(&self, call: Call, overflow: Overflow) {
        self.desk.refused(call, overflow);
    }

    fn count(&self, incoming: &Incoming) -> Option<Tokens> {
        self.desk.count(incoming)
    }

    fn inspector(self: Arc<Self>, access: Access) -> Option<Inspector> {
        Decide::inspector(self.desk.clone(), access)
    }

    fn called(&self, call: &Call, called: Called) {
        self.desk.called(call, called);
    }

    fn tools(&self, caller: &ToolCaller, message: &str) -> ToolAnswer {
        Decide::tools(&*self.desk, caller, message)
    }
}
