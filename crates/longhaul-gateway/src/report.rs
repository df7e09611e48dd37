//! The line that a request leaves in the log.

use std::time::{Duration, Instant};

use http::StatusCode;

use crate::desk::Reason;
use crate::engine::Brief;
use crate::exchange::Shared;
use crate::route::Route;

/// What is said of a request when its answer begins.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) sent: Option<Brief>,
    pub(crate) passed_on: Option<Reason>,
    pub(crate) resent: u64,
    /// It was sent again without thinking that was refused.
    pub(crate) without_thinking: bool,
    /// The request was read.
    pub(crate) read: Option<Instant>,
    pub(crate) own_time: Duration,
}

impl Shared {
    /// One line, without content and without keys: not even a path, which may hold either.
    pub(crate) fn log(&self, route: Route, status: StatusCode, report: &Report) {
        let (api, status) = (route.name(), status.as_u16());
        if api != "own" {
            self.counters.request(api, status);
        }
        let ms = report.own_time.as_secs_f64() * 1_000.0;
        match (report.sent, report.passed_on) {
            (
                Some(Brief {
                    session,
                    how,
                    view,
                    full,
                    edits,
                    shorter_answer,
                    costs,
                    is_observed,
                    fallen,
                    ..
                }),
                _,
            ) => {
                tracing::info!(
                    api,
                    status,
                    how = how.name(),
                    sent = fallen.map(|(rung, _)| rung.name()),
                    why = fallen.map(|(_, why)| why.name()),
                    %session,
                    view = view.0,
                    full = full.0,
                    edits,
                    resent = report.resent,
                    max_tokens = shorter_answer.map(|most| most.0),
                    billed = costs.told(costs.billed),
                    without = costs.told(costs.otherwise).filter(|_| !is_observed),
                    with = costs.told(costs.otherwise).filter(|_| is_observed),
                    ms,
                    "sent"
                )
            }
            (None, Some(why)) => {
                tracing::info!(api, status, why = why.name(), resent = report.resent, ms, "passed on");
            }
            (None, None) => tracing::debug!(api, status, "answered"),
        }
    }
}
