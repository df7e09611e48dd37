//! The body around the conversation, to the byte.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Api;
use crate::fields::{FieldError, excerpt};

/// All of a body but the messages: what stands before and behind the list, and between its
/// elements.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub api: Api,
    /// The conversation began with an answer.
    pub odd_start: bool,
    /// There was no list.
    pub absent: bool,
    head: Box<str>,
    open: Box<str>,
    close: Box<str>,
    tail: Box<str>,
    /// The usual text between two messages, and where it was another one.
    gap: Box<str>,
    odd_gaps: BTreeMap<usize, Box<str>>,
}

/// The elements of the list. Responses takes a bare text too: it is its own only element.
pub(super) fn elements(api: Api, list: &RawValue) -> Result<Vec<&RawValue>, FieldError> {
    if api == Api::Responses && list.get().starts_with('"') {
        return Ok(vec![list]);
    }
    serde_json::from_str(list.get())
        .map_err(|_| FieldError(format!("`{}` is not a list: {}", api.list(), excerpt(list.get()))))
}

/// Where `part`, a slice of `text`, begins in it.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize)
}

impl Envelope {
    /// `spans` are slices of `list`, which is a slice of `body`: the texts between which gaps lie.
    pub fn new(api: Api, body: &str, list: &str, spans: &[&str], odd_start: bool) -> Self {
        let cut = |from: usize, to: usize| body.get(from..to).unwrap_or_default();
        let start = offset(body, list);
        let end = start + list.len();
        let begin = |span: &str| offset(body, span);
        let first = spans.first().map_or(end.saturating_sub(1), |span| begin(span));
        let last = spans.last().map_or(first, |span| begin(span) + span.len());
        let mut gaps = spans.windows(2).map(|pair| cut(begin(pair[0]) + pair[0].len(), begin(pair[1])));
        let gap = gaps.next().unwrap_or(",");
        let odd_gaps = gaps.enumerate().filter(|(_, other)| *other != gap);
        let odd_gaps = odd_gaps.map(|(at, gap)| (at + 1, gap.into())).collect();
        Self {
            api,
            odd_start,
            absent: false,
            head: cut(0, start).into(),
            open: cut(start, first).into(),
            close: cut(last, end).into(),
            tail: cut(end, body.len()).into(),
            gap: gap.into(),
            odd_gaps,
        }
    }

    /// A body without a list.
    pub fn without_list(api: Api, body: &str) -> Self {
        Self { absent: true, head: body.into(), ..Self::new(api, "", "", &[], false) }
    }

    /// The body with these texts as its messages.
    pub fn wrap(&self, units: &[String]) -> String {
        if self.absent {
            return self.head.to_string();
        }
        // A bare text has no brackets of its own.
        let bare = self.open.is_empty() && !(units.len() == 1 && units[0].starts_with('"'));
        let (open, close) = if bare { ("[", "]") } else { (&*self.open, &*self.close) };
        let size = units.iter().map(|unit| unit.len() + self.gap.len()).sum::<usize>();
        let mut body = String::with_capacity(self.head.len() + self.tail.len() + size + 8);
        body.push_str(&self.head);
        body.push_str(open);
        for (at, unit) in units.iter().enumerate() {
            if let Some(gap) = at.checked_sub(1) {
                body.push_str(self.odd_gaps.get(&gap).unwrap_or(&self.gap));
            }
            body.push_str(unit);
        }
        body.push_str(close);
        body.push_str(&self.tail);
        body
    }
}
