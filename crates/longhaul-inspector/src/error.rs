//! Why the inspector does not answer, in one sentence for a person.

use http::StatusCode;
use longhaul::LoadError;
use longhaul_store::{SessionId, StoreError};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such thing, or it belongs to somebody else.
    #[error("{0}")]
    NotFound(String),
    /// The question is none.
    #[error("{0}")]
    Bad(String),
    /// The token is missing or wrong.
    #[error("this inspector needs a token: open it as /inspect/?token=…")]
    NoToken,
    /// Another site asks, or the token against forgery is missing.
    #[error("{0}")]
    Forbidden(&'static str),
    /// A change that is asked for as a question, or the other way round.
    #[error("{0} is asked for by {1}")]
    Method(String, &'static str),
    /// Nobody may change anything here.
    #[error("nothing can be changed here: {0}")]
    ReadOnly(&'static str),
    /// The session is in another state than the question supposes.
    #[error("{0}")]
    Conflict(String),
    /// There is too much to do at the moment.
    #[error("{0}")]
    Busy(&'static str),
    /// The body of a request is too long.
    #[error("the request is too long")]
    TooLong,
    /// Something failed on our side.
    #[error("{0}")]
    Failed(String),
}

impl Refused {
    /// No such session, whoever asks.
    pub(crate) fn no_session(id: SessionId) -> Self {
        Self::NotFound(StoreError::NoSession(id).to_string())
    }

    /// The status of an answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) | Self::ReadOnly(_) => StatusCode::FORBIDDEN,
            Self::Method(..) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSession(_) => Self::NotFound(error.to_string()),
            StoreError::NoContent(_) | StoreError::Conflict { .. } => Self::Conflict(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Self {
        Self::Failed(error.to_string())
    }
}
