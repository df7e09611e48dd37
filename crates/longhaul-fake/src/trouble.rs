//! What can go wrong at a call.

use std::time::Duration;

/// What goes wrong at a call.
///
/// An answer of the script is used up only by calls that bring it to the client: no trouble, or
/// [`Slow`](Self::Slow), [`Split`](Self::Split), [`CrLf`](Self::CrLf), [`Gzip`](Self::Gzip),
/// [`StaysOpen`](Self::StaysOpen), [`ArgumentsCut`](Self::ArgumentsCut). After all others the next call gets
/// the same answer, so that a client that asks again gets what it missed.
///
/// A body that is not streamed has four pieces, which count as events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Status 429.
    Limited(RetryAfter),
    /// This status, in the words that the API has for it.
    Status(u16),
    /// A response of the test's own.
    Response {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(String, String)>,
        /// Its body.
        body: String,
    },
    /// The request is too long, in the words of the API, with these sizes. A streamed request of OpenAI
    /// Responses is told by a `response.failed` event behind status 200, all others by status 400.
    TooLong {
        /// The size of the prompt.
        prompt: u64,
        /// The size of the window.
        window: u64,
    },
    /// The answer comes slowly.
    Slow {
        /// The pause before the first byte.
        first: Duration,
        /// The pause before each event after the first.
        between: Duration,
    },
    /// Not a byte comes, and the connection stays open until the client goes.
    Hang,
    /// So many events come, and then none, while the connection stays open until the client goes.
    HangAfter(usize),
    /// Comments come (spaces, if the answer is not streamed) until the client goes, and no event.
    CommentsOnly {
        /// The pause between two comments.
        every: Duration,
    },
    /// The connection is closed before any byte.
    Close,
    /// The connection is closed after so many events, and before the last one.
    Cut {
        /// The events that come before.
        after: usize,
        /// How the connection ends.
        close: Close,
    },
    /// An error of the provider comes after so many events; as the whole body behind status 200, if the
    /// answer is not streamed.
    ErrorEvent {
        /// The events that come before.
        after: usize,
    },
    /// After so many events comes one whose JSON is cut in half, and then the stream goes on. A body that is
    /// not streamed is cut in half.
    BrokenJson {
        /// The events that come before.
        after: usize,
    },
    /// Status 502 with a page for a browser.
    Html,
    /// The stream ends properly, but the events that close the answer are missing. A body that is not
    /// streamed ends after its first half.
    NoClosingEvent,
    /// The JSON in the arguments of calls is cut in half. Where the API has a JSON value in their place, it
    /// is a string with that half.
    ArgumentsCut,
    /// An answer without any content.
    Empty,
    /// The body comes in pieces of so many bytes, which end inside of characters too.
    Split(usize),
    /// The stream has CRLF at the ends of its lines, comments, and pings. A body that is not streamed has
    /// CRLF before it.
    CrLf,
    /// A body that is not streamed is compressed with gzip, if the client takes that.
    Gzip,
    /// After the last event the stream is not ended: the connection stays open until the client goes.
    StaysOpen,
}

/// How long the client is told to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// The client is told nothing.
    Unsaid,
    /// A header `retry-after` in seconds.
    Seconds(u64),
    /// A header `retry-after-ms` in milliseconds.
    Millis(u64),
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// With a FIN, as when a process ends.
    Fin,
    /// With a RST, as when a machine is gone.
    Reset,
}

impl Trouble {
    /// True if the client gets the answer all the same.
    pub(crate) fn brings_the_answer(&self) -> bool {
        match self {
            Self::Slow { .. } | Self::Split(_) | Self::CrLf | Self::Gzip => true,
            Self::StaysOpen | Self::ArgumentsCut => true,
            Self::Limited(_) | Self::Status(_) | Self::Response { .. } | Self::TooLong { .. } => false,
            Self::Hang | Self::HangAfter(_) | Self::CommentsOnly { .. } | Self::Close => false,
            Self::Cut { .. } | Self::ErrorEvent { .. } | Self::BrokenJson { .. } | Self::Html => false,
            Self::NoClosingEvent | Self::Empty => false,
        }
    }
}
