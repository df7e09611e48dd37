//! What a person, or a model by its tools, asks of conversations beside its requests: what was taken out, what was
//! said anywhere, pins and the goal.

use longhaul::conversation::FactKind;
use longhaul::{RecallError, RecallPart};
use longhaul_store::{Filter, Hit, Holders, Keeper, Store, StoreError};

use super::conversation::{Conversation, Refused};
use super::{CalledTool, Desk, Shared, ToolCaller};

/// Something to be done to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A text stays in every request.
    Pin(String),
    /// The pin of this number, from 1, goes.
    Unpin(usize),
    /// What the work is for from now on.
    Goal(String),
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No conversation is known to have called the tool.
    #[error(
        "no conversation here has just called `{0}` with these arguments, so nothing was done: have the model call it again, \
         or send the header with which the agent names its session to /mcp too"
    )]
    NoCaller(String),
    /// It is not known which conversation has called the tool.
    #[error(
        "several conversations may have called `{0}` with these arguments, so nothing was done: have the model call it again \
         in other words, or give each agent a scope of its own"
    )]
    SeveralCallers(String),
    /// No conversation of the tenant has it.
    #[error("{0}")]
    Recall(#[from] RecallError),
    /// There is no such pin.
    #[error("there is no pin {0}")]
    NoPin(usize),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl Desk {
    /// What an edit took out, byte for byte, of any conversation of a tenant. The store is asked first, for it knows what
    /// every replica has written; conversations in memory have what is not stored yet.
    pub fn recall(&self, tenant: &str, handle: &str, part: &RecallPart) -> Result<String, AskError> {
        let stored = self.recall_stored(tenant, handle, part);
        if let Ok(Some(text)) = stored {
            self.books.recalled();
            return Ok(text);
        }
        let mut refused = RecallError::Unknown(handle.to_owned());
        for shared in &self.live.of_tenant(tenant) {
            match self.with(shared, |conversation| conversation.session().recall(handle, part)) {
                Some(Ok(text)) => {
                    self.books.recalled();
                    return Ok(text);
                }
                Some(Err(error @ RecallError::Pattern(_))) => return Err(error.into()),
                Some(Err(error)) => refused = error,
                None => {}
            }
        }
        Err(stored.err().unwrap_or_else(|| refused.into()))
    }

    /// The same from the store alone; `None` if it does not have it.
    fn recall_stored(
        &self,
        tenant: &str,
        handle: &str,
        part: &RecallPart,
    ) -> Result<Option<String>, AskError> {
        let Some(Holders { handle, sessions }) = self.store.holders(tenant, handle)? else { return Ok(None) };
        let profile = &self.settings().profile;
        for id in sessions {
            // One that cannot be loaded, or was deleted just now, hides no other.
            let Ok((_, session)) = Keeper::open(self.store.clone(), id, profile.clone()) else { continue };
            match session.recall(&handle.to_string(), part) {
                Ok(text) => return Ok(Some(text)),
                Err(error @ RecallError::Pattern(_)) => return Err(error.into()),
                Err(RecallError::Unknown(_)) => {}
            }
        }
        Ok(None)
    }

    /// Messages of a tenant in which all words of the query were said, the newest first.
    pub fn search(&self, tenant: &str, query: &str, most: usize) -> Result<Vec<Hit>, AskError> {
        let filter = Filter { tenant: Some(tenant.to_owned()), ..Filter::default() };
        Ok(self.store.search(query, &filter, most)?)
    }

    /// Does something to the conversation that calls a tool. Reports what is in force then.
    pub fn act(&self, caller: &ToolCaller, call: &CalledTool, action: &Action) -> Result<String, AskError> {
        let shared = self.conversation_of(caller, call)?;
        let mut conversation = shared.lock().map_err(|_| call.without_caller())?;
        if conversation.is_newest() {
            let done = conversation.act(action);
            if matches!(done, Err(AskError::Store(_))) {
                // Another replica has gone on with it just now.
                self.live.leave(&shared, &conversation, &Refused::Moved);
            }
            return done.map(|()| facts(&conversation));
        }
        // Another replica has gone on with it: the store knows it better, and the next request loads it.
        self.live.leave(&shared, &conversation, &Refused::Moved);
        if conversation.in_arrears() {
            // What it has sent and not stored goes on as a conversation of its own.
            drop(conversation);
            return self.act(caller, call, action);
        }
        let (store, api) = (self.store.clone(), conversation.api());
        let mut stored = Conversation::open(store, &self.settings(), &caller.tenant, api, shared.id)?;
        stored.act(action)?;
        Ok(facts(&stored))
    }

    /// What is in the window of the conversation that calls a tool, in words.
    pub fn context(&self, caller: &ToolCaller, call: &CalledTool) -> Result<String, AskError> {
        let shared = self.conversation_of(caller, call)?;
        let conversation = shared.lock().map_err(|_| call.without_caller())?;
        let (view, full, edits) = conversation.figures();
        let window = conversation.session().budget().window;
        let size = format!("{view} of {full} tokens are sent, in a window of {window}; {edits} edits stand.");
        Ok(format!("{size}\n{}", facts(&conversation)))
    }

    /// Looks into a conversation that is live; `None` if a panic left it half done.
    fn with<T>(&self, shared: &Shared, look: impl FnOnce(&Conversation) -> T) -> Option<T> {
        shared.lock().ok().map(|conversation| look(&conversation))
    }
}

/// The goal and the pins of a conversation.
fn facts(conversation: &Conversation) -> String {
    let log = conversation.session().log();
    let goal = log.facts(FactKind::Goal).into_iter().map(|(_, text)| format!("Goal: {text}"));
    let pins = log.facts(FactKind::Pin).into_iter().enumerate();
    let pins = pins.map(|(at, (_, text))| format!("Pin {}: {text}", at + 1));
    let all: Vec<String> = goal.chain(pins).collect();
    if all.is_empty() { "No goal was set, and nothing is pinned.".to_owned() } else { all.join("\n") }
}
