//! Thinking is bound to its prefix, as by Anthropic: which blocks of a request are stale, what the provider does with
//! them, and the signatures of new blocks.
//!
//! A block is stale if its prefix differs from the one that it was made with, or if the valid block before it is not
//! the one that stood there then. The first block of a request may have any predecessor: leaving blocks out from the
//! front is legal. A stale block makes every later one stale, but not those made in answers to requests that had the
//! difference already.

use serde_json::{Value, json};

use crate::api::{Written, answer_block, blocks, text};
use crate::canonical::Prefix;
use crate::http::Received;
use crate::log::{Ruling, StaleBlock};
use crate::script::Part;
use crate::seal::{Seal, hash};
use crate::twin::{Binding, BindingControls, Twin};

/// The value of `anthropic-beta` that offers the controls.
const BETA: &str = "thinking-binding-controls-2026-08-01";

/// A request whose thinking was accepted.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// The request as the model reads it, if blocks were dropped.
    pub(crate) read: Option<Value>,
    pub(crate) stale: Vec<StaleBlock>,
    /// `input_transformations` of the answer, if it has that field.
    pub(crate) transformations: Option<Value>,
    /// Set if thinking in the answer is bound.
    bond: Option<Bond>,
}

/// A request that was refused for its thinking, or for how it wants thinking to be treated.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) stale: Vec<StaleBlock>,
}

/// The prefix and the predecessor of the next thinking block.
#[derive(Debug)]
struct Bond {
    prefix: Prefix,
    /// The name of the last valid block.
    previous: Option<String>,
}

/// Checks the thinking in a request.
pub(crate) fn admit(twin: Twin, received: &Received, body: &Value) -> Result<Admitted, Refused> {
    let has_beta = received.has_beta(BETA);
    let refused = |message| Refused { message, stale: Vec::new() };
    let asked = asked_behavior(twin, has_beta, body).map_err(refused)?;
    let reports = twin.controls == BindingControls::Offered && has_beta;
    let binding = match (twin.binding, asked) {
        (Binding::Off, _) => {
            return Ok(Admitted { transformations: reports.then(|| json!([])), ..Admitted::default() });
        }
        (own, None) => own,
        (_, Some(asked)) => asked,
    };
    let (mut stale, bond) = check(body).map_err(refused)?;
    let ruling = match binding {
        Binding::Off | Binding::Error => Ruling::Refused,
        Binding::Drop => Ruling::Dropped,
        Binding::Record => Ruling::Recorded,
    };
    stale.iter_mut().for_each(|block| block.ruling = ruling);
    if ruling == Ruling::Refused
        && let Some(first) = stale.first()
    {
        return Err(Refused { message: bound_elsewhere(first, body, has_beta), stale });
    }
    let dropped = ruling == Ruling::Dropped && !stale.is_empty();
    Ok(Admitted {
        read: dropped.then(|| without(body, &stale)),
        transformations: reports.then(|| stale.iter().map(transformation).collect()),
        stale,
        bond: Some(bond),
    })
}

/// The behavior that the request asks for in `thinking.block_binding`.
fn asked_behavior(twin: Twin, has_beta: bool, body: &Value) -> Result<Option<Binding>, String> {
    let thinking = &body["thinking"];
    let Some(field) = thinking.get("block_binding").filter(|field| !field.is_null()) else { return Ok(None) };
    let kind = text(thinking, "type");
    let place = format!("thinking.{kind}.block_binding");
    let takes = match twin.controls {
        BindingControls::Ignored => return Ok(None),
        BindingControls::Offered => has_beta && ["adaptive", "enabled"].contains(&kind),
        BindingControls::Refused => false,
    };
    if !takes {
        return Err(format!("{place}: Extra inputs are not permitted"));
    }
    match text(field, "prefix_mismatch_behavior") {
        "error" => Ok(Some(Binding::Error)),
        "drop_block" => Ok(Some(Binding::Drop)),
        _ => Err(format!("{place}.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'")),
    }
}

/// The stale blocks of a request, and what its answer is bound to.
fn check(body: &Value) -> Result<(Vec<StaleBlock>, Bond), String> {
    let mut stale = Vec::new();
    let mut bond = Bond { prefix: Prefix::of(body), previous: None };
    let mut stale_names = Vec::new();
    // The newest call that made a stale block.
    let mut stale_call = None;
    for (at, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        bond.prefix.open(message);
        for (place, block) in blocks(&message["content"]).iter().enumerate() {
            let Some(signature) = signature_of(block) else {
                bond.prefix.block(block);
                continue;
            };
            let Some(seal) = Seal::read(signature) else {
                return Err(format!("messages.{at}.content.{place}: {}", invalid(block)));
            };
            if text(block, "type") == "thinking" && seal.text != hash(&text(block, "thinking")) {
                return Err(format!(
                    "messages.{at}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
                ));
            }
            let follows = bond.previous.is_none() || bond.previous == seal.previous;
            let after_stale = seal.previous.as_ref().is_some_and(|name| stale_names.contains(name))
                || stale_call.is_some_and(|call| seal.call <= call);
            if seal.prefix == bond.prefix.hash() && follows && !after_stale {
                bond.previous = Some(seal.name());
            } else {
                stale_names.push(seal.name());
                stale_call = stale_call.max(Some(seal.call));
                let signature = signature.to_owned();
                stale.push(StaleBlock { message: at, block: place, signature, ruling: Ruling::Refused });
            }
        }
        bond.prefix.close();
    }
    Ok((stale, bond))
}

/// The signature of thinking, or the data of redacted thinking; `None` for any other block.
fn signature_of(block: &Value) -> Option<&str> {
    match text(block, "type") {
        "thinking" => Some(text(block, "signature")),
        "redacted_thinking" => Some(text(block, "data")),
        _ => None,
    }
}

fn invalid(block: &Value) -> &'static str {
    match text(block, "type") {
        "redacted_thinking" => "Invalid `data` in `redacted_thinking` block",
        _ => "Invalid `signature` in `thinking` block",
    }
}

fn bound_elsewhere(stale: &StaleBlock, body: &Value, has_beta: bool) -> String {
    let block = &body["messages"][stale.message]["content"][stale.block];
    let needs = if has_beta {
        String::new()
    } else {
        format!(" That setting requires the `{BETA}` value in the `anthropic-beta` header.")
    };
    format!(
        "{}: {}. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".{needs}",
        path(stale),
        invalid(block),
    )
}

fn path(stale: &StaleBlock) -> String {
    format!("messages.{}.content.{}", stale.message, stale.block)
}

fn transformation(stale: &StaleBlock) -> Value {
    let kind = match stale.ruling {
        Ruling::Refused | Ruling::Dropped => "thinking_dropped",
        Ruling::Recorded => "thinking_mismatch_allowed",
    };
    json!({ "type": kind, "path": path(stale), "reason": "prefix_binding_mismatch" })
}

/// The request without these blocks.
fn without(body: &Value, stale: &[StaleBlock]) -> Value {
    let mut read = body.clone();
    // From the end, so that the places of the others stay.
    for block in stale.iter().rev() {
        if let Some(content) = read["messages"][block.message]["content"].as_array_mut() {
            content.remove(block.block);
        }
    }
    read
}

impl Admitted {
    /// The signatures of the thinking in an answer, in the order of its parts; `None` for a part without one, and
    /// no list at all if thinking is not bound.
    pub(crate) fn signatures(&self, written: &Written<'_>) -> Vec<Option<String>> {
        let Some(Bond { prefix, previous }) = &self.bond else { return Vec::new() };
        let (mut prefix, mut previous) = (prefix.clone(), previous.clone());
        prefix.open(&json!({ "role": "assistant" }));
        let mut signature = |(at, part): (usize, &Part)| {
            let (thinking, data) = match part {
                Part::Thinking(thinking) => (thinking.as_str(), ""),
                Part::Sealed(data) => ("", data.as_str()),
                Part::Text(_) | Part::Call { .. } => {
                    prefix.block(&answer_block(written, at, part));
                    return None;
                }
            };
            let (call, previous_name) = (written.number, previous.take());
            let seal = Seal {
                call,
                part: at,
                previous: previous_name,
                prefix: prefix.hash(),
                text: hash(&thinking),
            };
            previous = Some(seal.name());
            Some(seal.signature(data))
        };
        written.answer.parts.iter().enumerate().map(&mut signature).collect()
    }
}
