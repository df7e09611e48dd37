//! The gateway: a proxy between any agent and its provider that keeps every conversation inside its window.
//!
//! Whatever goes wrong on our side ([`Reason`]), the request that was sent last is gone on with, else the request in hand
//! is folded by itself, else the client's own bytes go out; and it is said which ([`Rung`]).
//!
//! | look for | in |
//! |---|---|
//! | what goes out in the place of a client's request | `desk` |
//! | connections, start and stop | `server` |
//! | slots for connections, and newcomers without one | `connections` |
//! | who may come in, and whose request it is | `door` |
//! | web pages of other sites, and those that may use the APIs | `origin` |
//! | what a path asks for | `route` |
//! | a request's body, read and unpacked, and the room for it | `intake`, `packing`, `room` |
//! | the threads on which the desk works | `engine` |
//! | the life of a request | `exchange` |
//! | a request without a decision | `passing_on` |
//! | the providers | `upstream`, `headers` |
//! | requests that are for none of them | `foreign` |
//! | the answer: held until an overflow can be told, then as it comes | `hold`, `answer`, `reading` |
//! | usage that is asked for in the client's place | `ask_usage` |
//! | answers that must be allowed less | `shorter_answer` |
//! | what an answer reports about thinking in its request | `transformations` |
//! | tools for models: recall, search, pins | `mcp`, `recalled` |
//! | agents told apart at one gateway | `scope` |
//! | pages for people: the inspector's, under `/inspect/` | `exchange`, `desk` |
//! | what we say ourselves | `words` |
//! | what the log says of a request | `report` |
//! | counters | `figures` |
//! | what conversations cost, and what they would have cost without us | `account`, `books` |
//! | sessions that go by themselves | `upkeep` |

#![forbid(unsafe_code)]

mod account;
mod another_form;
mod answer;
mod ask_usage;
mod books;
mod connections;
pub mod desk;
mod door;
mod engine;
mod exchange;
mod figures;
mod foreign;
mod headers;
mod hold;
mod intake;
mod mcp;
mod origin;
mod packing;
mod passing_on;
mod reading;
mod recalled;
mod report;
mod room;
mod route;
mod scope;
mod server;
mod settings;
mod shorter_answer;
mod transformations;
mod turns;
mod upkeep;
mod upstream;
mod words;

/// Compiles the example of the page on the wire.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/gateway-http.md")]
struct Page;

pub use account::{Costs, Spent};
pub use books::Bookings;
#[doc(hidden)]
pub use books::Books;
pub use desk::{
    Action, AfterRefusal, AskError, Break, Call, Called, CalledTool, Decision, Desk, DeskSettings, How,
    Incoming, KeptThinking, Observed, Reason, Recall, Rung, SummaryModel, ToolCaller,
};
#[doc(hidden)]
pub use engine::Decide;
pub use figures::{Figures, Times};
#[doc(hidden)]
pub use mcp::ToolAnswer;
pub use origin::{NoOrigin, Origin};
pub use scope::Scope;
#[doc(hidden)]
pub use server::start_with;
pub use server::{Gateway, GatewayError, start};
pub use settings::{Limits, Open, Settings, Token};
