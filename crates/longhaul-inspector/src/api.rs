//! What can be asked, and the answers: the contract between the inspector and its page, and for scripts.
//!
//! All addresses stand under `/inspect/`. Answers are JSON; tokens are whole numbers, times RFC 3339 texts or null,
//! money is dollars or null where the model has no prices. Calls are counted from 1, messages, parts and edits from 0.
//! An error is `{"error": "one sentence"}` with a status of 4xx or 5xx.
//!
//! | address | answer |
//! |---|---|
//! | `GET .` | the page; `?token=T` gives a cookie and goes to the page without the token |
//! | `GET page/FILE` | a file of the page |
//! | `GET api/me` | [`Me`] |
//! | `GET api/sessions?agent=&project=&limit=` | [`Sessions`], the one that was written to last first |
//! | `GET api/search?q=&limit=` | [`SearchHits`]: what anybody said in any session |
//! | `GET api/session/ID?from=N` | [`SessionAnswer`]; with `from` only the calls from N on |
//! | `GET api/session/ID/figures` | [`KnownFigures`]: what a list says of it, when its journal was read |
//! | `GET api/session/ID/call/N` | [`CallAnswer`]: the request as it was sent, part by part |
//! | `GET api/session/ID/call/N/part/K` | [`PartAnswer`]: a part whole, and what it stands for |
//! | `GET api/session/ID/call/N/raw?api=anthropic\|openai\|openai-responses` | the request as that API is told it; `&download` for a file |
//! | `GET api/session/ID/message/I` | [`MessageAnswer`]: a message, and from which call to which it was shown how |
//! | `GET api/session/ID/find?q=` | [`FindAnswer`]: where a text is in the whole log, and which calls no longer had it |
//! | `GET api/session/ID/recall/HANDLE?lines=A-B&grep=P` | `text/plain`: what a mark names, byte for byte |
//! | `POST api/session/ID/preview` | [`Change`] in, [`Effect`] out: what a change would make of the next request. Changes nothing |
//! | `POST api/session/ID/act` | the same, done and stored. A live conversation of the gateway has it before its next request |
//! | `GET api/session/ID/whatif?profile=P&window=N` | [`WhatIf`]: the same log under other settings |
//! | `GET api/events?session=ID` | `text/event-stream`: [`Event`] whenever a session gets entries |
//!
//! A change needs the header `x-longhaul-inspect` with the text that [`Me::csrf`] is, and comes from a page of the same
//! origin or from no page. `ID` is the whole id of a session.

pub use crate::call::{
    Answered, CallAnswer, FrameView, Gone, PartAnswer, PartOriginal, PartView, Removed, Since, ToolRow,
};
pub use crate::cost::{Bill, Prices};
pub use crate::events::Event;
pub use crate::inspector::{Me, ProfileRow};
pub use crate::session::{Calls, CompactionView, Costs, EditRow, Limits, Pin, SessionAnswer};
pub use crate::sessions::{KnownFigures, SearchHit, SearchHits, SessionRow, Sessions};
pub use crate::shown::{FindAnswer, FoundMessage, How, MessageAnswer, Shown};
pub use crate::steering::{Change, Effect, NextPart};
pub use crate::text::BlockRow;
pub use crate::what_if::{KeptShares, Side, WhatIf};

use longhaul::Time;

/// A time as answers have it.
pub(crate) fn time(time: Time) -> Option<String> {
    jiff::Timestamp::from_microsecond(time.0).ok().map(|time| time.to_string())
}
