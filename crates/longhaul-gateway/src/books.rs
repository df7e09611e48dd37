//! The books of a gateway: what all its conversations together have cost since it started, and what they would have cost
//! otherwise. A few figures for each model: no list of calls or sessions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longhaul::{Model, Models};
use longhaul_wire::api::Api;

use crate::account::Costs;
use crate::desk::Observed;

/// What was written down since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bookings {
    /// By API and the model's row in our table: its name there, or `unknown`.
    pub costs: BTreeMap<(&'static str, &'static str), Costs>,
    /// What models got back by our tools at `/mcp`.
    pub recalls: u64,
    /// Somebody is signed in with a subscription: nobody is billed by the token.
    pub has_subscription: bool,
    /// How full a window was at most, in percent.
    pub fullest: u64,
    /// What was seen of conversations that were only observed.
    pub observed: Observed,
}

impl Bookings {
    /// All models together.
    pub fn total(&self) -> Costs {
        let mut total = Costs::default();
        self.costs.values().for_each(|costs| total += *costs);
        total
    }

    /// All that models got back of what was left out.
    pub fn all_recalls(&self) -> u64 {
        self.recalls + self.total().filled
    }
}

/// Where a gateway writes them down.
#[derive(Debug, Default)]
pub struct Books(Mutex<Bookings>);

impl Books {
    /// What was written down.
    pub fn bookings(&self) -> Bookings {
        self.lock().clone()
    }

    /// Calls of a model cost this, more than was written down before.
    pub(crate) fn add(&self, api: Api, model: &Model, costs: Costs) {
        if costs != Costs::default() {
            *self.lock().costs.entry((api.name(), row(&model.name))).or_default() += costs;
        }
    }

    /// A window is so full, in percent.
    pub(crate) fn filled(&self, percent: u64) {
        let mut bookings = self.lock();
        bookings.fullest = bookings.fullest.max(percent);
    }

    /// Conversations that were only observed.
    pub(crate) fn observed(&self, observed: Observed) {
        self.lock().observed += observed;
    }

    /// A model got back what was left out.
    pub(crate) fn recalled(&self) {
        self.lock().recalls += 1;
    }

    /// A request came with the login of a subscription.
    pub(crate) fn has_subscription(&self) {
        self.lock().has_subscription = true;
    }

    fn lock(&self) -> MutexGuard<'_, Bookings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a row of our table. Clients choose names of models, and there is no end to those.
fn row(name: &str) -> &'static str {
    &Models::builtin().find(name).name
}
