//! The body of a request: kept whole up to a limit, and while there is room. What is longer is passed on as it comes.
//! Room goes by what clients send, not by what they announce: one that is slow gives back what it does not use.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use crate::room::{Place, Room};

/// A body.
pub(crate) enum Taken {
    /// All of it, and the room that it has.
    Whole(Vec<u8>, Place),
    /// Longer than a body that is kept.
    Long(Chained),
    /// There was no room to keep it.
    NoRoom(Chained),
}

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// The client was silent for too long.
    Slow,
    /// The client went away, or what it sends is no body.
    Broken,
}

/// So many bytes of a body are read before it takes any room: about what its connection may hold anyway. Who only
/// announces a body takes none.
const FIRST: usize = 64 << 10;

/// Room that is reserved for bytes still to come is given back if they take longer than this, and one second more for
/// each [`RATE`] bytes.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes a second.
const RATE: u32 = 256 << 10;

/// Reads a body of at most so many bytes; each piece of it may take so long. It waits for room once, for all of it, when
/// more than the first bytes have come. From there on it never waits for more: so all come to an end.
pub(crate) async fn take(
    mut body: Incoming,
    most: usize,
    wait: Duration,
    room: &Room,
) -> Result<Taken, NoBody> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if expected > most {
        return Ok(Taken::Long(Chained::unread(body)));
    }
    let (mut read, mut place) = (Vec::with_capacity(expected.min(FIRST)), room.nothing());
    // Until when bytes that are still to come have room.
    let mut reserved_until: Option<Instant> = None;
    loop {
        let silent_until = Instant::now() + wait;
        let until = reserved_until.map_or(silent_until, |until| until.min(silent_until));
        let frame = match timeout_at(until, body.frame()).await {
            Ok(frame) => frame,
            Err(_) => {
                reserved_until = None;
                place.shrink_to(read.len());
                timeout_at(silent_until, body.frame()).await.map_err(|_| NoBody::Slow)?
            }
        };
        let Some(frame) = frame else { return Ok(Taken::Whole(read, place)) };
        let Ok(piece) = frame.map_err(|_| NoBody::Broken)?.into_data() else { continue };
        read.extend_from_slice(&piece);
        if read.len() <= FIRST {
            continue;
        }
        if place.is_nothing() && expected > FIRST {
            let Some(reserved) = room.reserve(expected).await else {
                return Ok(Taken::NoRoom(Chained { first: Some(read.into()), rest: body, place: None }));
            };
            place = reserved;
            read.reserve_exact(expected.saturating_sub(read.len()));
            reserved_until = Some(Instant::now() + GRACE);
        }
        if let Some(until) = &mut reserved_until {
            *until += Duration::from_secs(1) * u32::try_from(piece.len()).unwrap_or(u32::MAX) / RATE;
        }
        let has_room = place.grow_to(read.len());
        if has_room && read.len() <= most {
            continue;
        }
        let chained = Chained { first: Some(read.into()), rest: body, place: Some(place) };
        return Ok(if has_room { Taken::Long(chained) } else { Taken::NoRoom(chained) });
    }
}

/// Reads a body that nobody wants. A client that is still sending would not see the answer, if the connection
/// were closed before.
pub(crate) async fn discard(mut body: Incoming) {
    const MOST: usize = 16 << 20;
    const WAIT: Duration = Duration::from_secs(5);
    let all = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > MOST {
                break;
            }
        }
    };
    _ = timeout(WAIT, all).await;
}

/// A body whose first bytes were read.
pub(crate) struct Chained {
    first: Option<Bytes>,
    rest: Incoming,
    /// The room of what was read, until it is sent on.
    place: Option<Place>,
}

impl Chained {
    /// A body of which nothing was read.
    pub(crate) fn unread(rest: Incoming) -> Self {
        Self { first: None, rest, place: None }
    }
}

impl Body for Chained {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.first.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => {
                self.place = None;
                Pin::new(&mut self.rest).poll_frame(context)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.first.as_ref().map_or(0, |first| first.len() as u64);
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + read);
        rest.upper().into_iter().for_each(|upper| hint.set_upper(upper + read));
        hint
    }
}
