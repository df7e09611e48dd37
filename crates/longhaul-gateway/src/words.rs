//! What we say ourselves: errors in the shape of the API that the client speaks.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::json;

use crate::answer::ClientBody;
use crate::route::Side;

/// An error.
pub(crate) fn error(side: Side, status: StatusCode, says: &str) -> Response<ClientBody> {
    let body = match side {
        Side::Anthropic => {
            json!({ "type": "error", "error": { "type": anthropic(status), "message": says } })
        }
        Side::OpenAi => {
            json!({ "error": { "message": says, "type": openai(status), "param": null, "code": null } })
        }
    };
    json(status, body.to_string())
}

/// A refusal of message threads, as Anthropic words it: helpers of its SDKs then send whole conversations.
pub(crate) fn no_threads() -> Response<ClientBody> {
    const CODE: &str = "thread_unsupported_request";
    let message = format!("{CODE}: longhaul: this gateway keeps whole conversations, and no threads");
    let error =
        json!({ "type": "invalid_request_error", "message": message, "details": { "error_code": CODE } });
    json(StatusCode::BAD_REQUEST, json!({ "type": "error", "error": error }).to_string())
}

/// An answer of our own.
pub(crate) fn json(status: StatusCode, body: String) -> Response<ClientBody> {
    text(status, "application/json", body)
}

/// An answer of our own.
pub(crate) fn text(status: StatusCode, kind: &'static str, body: String) -> Response<ClientBody> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn anthropic(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        _ if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    }
}

fn openai(status: StatusCode) -> &'static str {
    if status.is_client_error() { "invalid_request_error" } else { "server_error" }
}
