//! The frame that a line of a transcript carries. A log does not look for it: who reads a
//! transcript hands it to the session.

use longhaul::{Extra, Frame, Json, Message};

use super::EXTRA;

/// The frame that is in force behind this message, if its line carried one (`extra.frame`). A
/// message that was read from an API carries none, whatever fields it has.
///
/// ```
/// use longhaul_wire::transcript::{decode, frame_of};
/// let line = r#"{"role":"user","content":"hi","extra":{"frame":{"model":"m"}}}"#;
/// assert_eq!(frame_of(&decode(line).unwrap()).unwrap().model.as_deref(), Some("m"));
/// ```
pub fn frame_of(message: &Message) -> Option<Frame> {
    let extra: Extra = serde_json::from_str(message.wire_fields().get(EXTRA)?.as_str()).ok()?;
    extra.get("frame").and_then(Frame::from_json)
}

/// The message of a transcript whose line carries this frame, as JSON.
pub(crate) fn with_frame(message: Message, frame: &Json) -> Message {
    let mut fields = message.wire_fields().clone();
    let mut extra: Extra =
        fields.get(EXTRA).and_then(|extra| serde_json::from_str(extra.as_str()).ok()).unwrap_or_default();
    extra.set("frame", frame.clone());
    // Names and values that are JSON already, into memory: this cannot fail.
    if let Some(extra) = serde_json::to_string(&extra).ok().and_then(|json| Json::new(json).ok()) {
        fields.set(EXTRA, extra);
    }
    message.with_wire_fields(fields)
}
