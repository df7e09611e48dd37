//! A request that the provider refused for something that we put into it is sent once more in another form: as the
//! client sent it, or with our texts in another place, or without our tool.

use http::StatusCode;

use crate::engine::OpenCall;
use crate::exchange::Shared;
use crate::hold::Said;

/// What is done with a call whose form the answer concerns.
pub(crate) enum FormVerdict {
    /// The call is sent in another form.
    Send(OpenCall),
    /// The client gets the answer that came; the call is `None` if it has ended.
    Answer(Option<OpenCall>),
}

/// True if an answer refuses what stands in a call, or answers a call that was sent in another form.
pub(crate) fn concerns_form(call: &OpenCall, said: &Said) -> bool {
    // A call without a decision has no other form.
    call.brief.fallen.is_none() && (call.is_retry() || matches!(said, Said::Refused(_)))
}

impl Shared {
    /// Sends a call that was refused in the next form, or ends it as the answer says.
    pub(crate) async fn in_another_form(
        &self,
        call: OpenCall,
        said: Said,
        status: StatusCode,
        resent: &mut u64,
    ) -> FormVerdict {
        let next = match said {
            Said::Refused(says) => call.refused_content(says, false).await,
            Said::TooLong(_) => call.refused_content(Box::default(), true).await,
            Said::Nothing | Said::WrongThinking(_) | Said::NoSuchOption => {
                let is_taken = said == Said::Nothing && status == StatusCode::OK;
                return FormVerdict::Answer(call.retried(is_taken).await);
            }
        };
        if let FormVerdict::Send(_) = next {
            *resent += 1;
            self.counters.resent("refused");
        }
        next
    }
}
