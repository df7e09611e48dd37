//! Any body, and then the same with a piece taken out and another one put in: what a relay reads of it
//! with the help of the first is what is read without, and what it writes is what is written without.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use longhaul::{End, Message};
use longhaul_wire::api::{Api, Relay, Request};

fuzz_target!(|bytes: &[u8]| {
    let Some((body, [a, b, c, d, e, f, g])) = bytes.split_last_chunk::<7>() else { return };
    let Ok(first) = std::str::from_utf8(body) else { return };
    let number = |low: u8, high: u8| usize::from(u16::from_le_bytes([low, high]));
    let at = |place: usize| place.min(body.len());
    let (cut, put) = (at(number(*b, *c)), at(number(*d, *e)));
    let (cut, put) = (cut..at(cut + usize::from(*f)), put..at(put + usize::from(*g)));
    let second = [&body[..cut.start], &body[put], &body[cut.end..]].concat();
    let Ok(second) = String::from_utf8(second) else { return };
    let api = Api::ALL[usize::from(*a) % 3];
    let mut relay = Relay::new(api);
    for body in [first, &second, first] {
        let whole = Request::decode(api, body);
        let request = relay.read(body);
        let (Ok(whole), Ok(request)) = (&whole, &request) else {
            assert_eq!(whole.map(|_| ()), request.map(|_| ()));
            continue;
        };
        let read = |request: &Request| -> Vec<Message> {
            request.messages().iter().map(|message| (**message).clone().without_raw()).collect()
        };
        assert_eq!(read(request), read(whole));
        assert_eq!((request.frame(), request.marks()), (whole.frame(), whole.marks()));
        assert_eq!(request.identities(), whole.identities());
        assert_eq!(relay.write(request).body, body);
        let edited = |request: &Request| {
            let mut messages = request.messages().to_vec();
            if messages.len() > 2 {
                messages.remove(1);
            }
            if let Some(last) = messages.last_mut() {
                *last = Arc::new((**last).clone().without_raw());
            }
            request.clone().with_messages(messages).with_ends(vec![End::After(1), End::After(3)])
        };
        assert_eq!(relay.write(&edited(request)).body, edited(whole).encode(api).body);
        relay.write(request);
    }
});
