//! Requests for which there was no decision. If something of ours failed, a call that the desk makes without its
//! conversation is sent; else the request is passed on as it came, but for thinking that would be refused.

use bytes::Bytes;
use http::Response;
use longhaul_wire::api::without_thinking;

use crate::answer::{ClientBody, Untouched};
use crate::desk::{Incoming, Reason, Rung};
use crate::engine::OpenCall;
use crate::exchange::{Asked, Bodies, Shared, asks_for_error, thinking_before, thinks};
use crate::headers;
use crate::hold::{Held, Said};
use crate::report::Report;

impl Shared {
    /// Answers a request that the desk did not decide.
    pub(crate) async fn undecided(
        &self,
        asked: &Asked,
        incoming: Incoming,
        bodies: Bodies,
        reason: Reason,
        report: &mut Report,
    ) -> Response<ClientBody> {
        if reason.is_failure()
            && !self.observes
            && let Some(call) = self.engine.fall_back(&incoming, reason, None).await
        {
            let patience = self.changing().limits.patience();
            return self.converse(asked, call, bodies, patience, report).await;
        }
        self.pass_on_whole(asked, Some(incoming), bodies, reason, report).await
    }

    /// A call is sent.
    pub(crate) fn goes_out(&self, call: &OpenCall) {
        call.is_sent();
        call.brief.fallen.iter().for_each(|(rung, _)| self.counters.fell_back(*rung));
    }

    /// Passes a whole request on as it came, but for thinking that would be refused.
    pub(crate) async fn pass_on_whole(
        &self,
        asked: &Asked,
        incoming: Option<Incoming>,
        bodies: Bodies,
        reason: Reason,
        report: &mut Report,
    ) -> Response<ClientBody> {
        report.passed_on = Some(reason);
        self.counters.passed_on(reason);
        let fallen = incoming.as_ref().filter(|_| reason.is_failure() && !self.observes);
        fallen.iter().for_each(|_| self.counters.fell_back(Rung::Own));
        self.time(asked.api, report);
        let keep = match &incoming {
            Some(incoming) if thinks(asked.api, &bodies.plain) => {
                self.engine.thinking_outside(incoming.clone(), reason).await
            }
            _ => None,
        };
        let untouched = Untouched::of(asked.api, &bodies.plain);
        let mut response = match self.send_whole(asked, &bodies, keep, fallen.is_some(), report).await {
            Ok((mut held, said)) => {
                if let (Some(incoming), Said::TooLong(overflow)) = (fallen, said)
                    && let Some(call) = self.engine.fall_back(incoming, reason, Some(overflow)).await
                {
                    report.resent += 1;
                    self.counters.resent("too-long");
                    let patience = self.changing().limits.patience();
                    return self.converse(asked, call, bodies, patience, report).await;
                }
                held.head.extensions.insert(untouched);
                self.answer(asked.api, held, None, None)
            }
            Err(refused) => refused,
        };
        headers::say_passed_on(response.headers_mut(), reason);
        response
    }

    /// Sends a whole request as it came, but for thinking that was signed for messages of ours: after the client's own it
    /// would be refused. `keep` is how many messages keep theirs. What we do not know the provider names: the request is
    /// sent once more, without thinking from there on. `is_held` if a refusal as too long is to be told, too.
    pub(crate) async fn send_whole(
        &self,
        asked: &Asked,
        bodies: &Bodies,
        keep: Option<usize>,
        is_held: bool,
        report: &mut Report,
    ) -> Result<(Held, Said), Response<ClientBody>> {
        let Bodies { body: own, plain } = bodies;
        let thinks = thinks(asked.api, plain) && !self.observes;
        let without = |keep| without_thinking(plain, keep).map(Bytes::from);
        let mut bare = keep.filter(|_| thinks).and_then(without);
        loop {
            let (body, form) = match &bare {
                Some(bare) => (bare.clone(), headers::Body::Plain),
                None => (own.clone(), headers::Body::Own),
            };
            let mut headers = headers::onward(&asked.parts.headers, form);
            if !thinks && !is_held {
                let response = self.send(asked, headers, body.into()).await?;
                return Ok((Held::nothing(response), Said::Nothing));
            }
            // A refusal must be read to be answered.
            headers::ask_for_plain(&mut headers);
            let response = self.send(asked, headers, body.clone().into()).await?;
            let patience = self.changing().limits.patience();
            let (mut held, said) = Held::until_known(asked.api, response, patience).await;
            if thinks
                && let Said::WrongThinking(from) = said
                && !report.without_thinking
                && !asks_for_error(plain)
                && let Some(next) = without(from.map_or(0, |from| thinking_before(plain, from)))
            {
                report.without_thinking = true;
                report.resent += 1;
                self.counters.resent("thinking");
                bare = Some(next);
                continue;
            }
            if thinks {
                self.read_transformations(&mut held, &body, plain, None);
            }
            return Ok((held, said));
        }
    }
}
