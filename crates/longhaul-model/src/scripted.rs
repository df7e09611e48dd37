//! A model that says what it was told to say: for tests, for demonstrations, for trying a host.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul::{Message, Usage};
use longhaul_wire::api::Request;

use crate::fault::Fault;
use crate::model::{Asked, Model, Watch};
use crate::reply::{Reply, Stop, show};

/// A model that gives replies in their order.
///
/// ```
/// use longhaul::Message;
/// use longhaul_model::{Fault, Model, Scripted};
/// use longhaul_wire::api::{Api, Request};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = Scripted::new([Ok(Message::assistant("Done."))]);
/// let request = || Request::decode(Api::Chat, r#"{"messages":[]}"#).unwrap();
/// let reply = model.ask(request(), &mut |_| {}).await.unwrap();
/// assert_eq!(reply.messages[0].texts().next(), Some("Done."));
/// // A script that is at its end says so.
/// assert!(matches!(model.ask(request(), &mut |_| {}).await, Err(Fault::Refused { .. })));
/// # });
/// ```
#[derive(Debug)]
pub struct Scripted {
    replies: Mutex<VecDeque<Result<Message, Fault>>>,
}

impl Scripted {
    /// One that gives these, and then no more.
    pub fn new(replies: impl IntoIterator<Item = Result<Message, Fault>>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()) }
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            let next = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let end = || Fault::Refused { status: 410, says: "the script is at its end".to_owned() };
            let message = next.ok_or_else(end)??;
            Ok(reply_of(message, &request, watch))
        })
    }
}

/// A message as a reply, with about what a provider would count.
pub(crate) fn reply_of(message: Message, request: &Request, watch: &mut Watch<'_>) -> Reply {
    show(&message, watch);
    let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
    let prompt: usize = request.messages().iter().map(|message| message.bytes()).sum();
    let usage = Usage { input: tokens(prompt), output: tokens(message.bytes()), ..Usage::default() };
    Reply { messages: vec![Arc::new(message)], usage: Some(usage), stop: Stop::Ended }
}
