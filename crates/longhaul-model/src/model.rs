//! Who answers: a provider, a script, a person. One trait, so that nothing else need know.

use std::future::Future;
use std::pin::Pin;

use longhaul_wire::api::Request;

use crate::fault::Fault;
use crate::reply::{Delta, Reply};

/// A reply on its way.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send + 'a>>;

/// Looks at a reply while it comes.
pub type Watch<'a> = dyn FnMut(Delta<'_>) + Send + 'a;

/// Somebody who answers requests.
pub trait Model: Send + Sync {
    /// For people.
    fn name(&self) -> &str;

    /// Asks, and waits for the whole reply; `watch` sees it as it comes. Who drops the future has asked
    /// nothing: no connection and no task stays behind.
    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a>;
}
