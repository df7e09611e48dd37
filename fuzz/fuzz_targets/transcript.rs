//! Any bytes, as a transcript: nothing panics, what is read is written back byte for byte,
//! and what is shown of it can be counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul::{Budget, Meter, Session, Tokens};
use longhaul_wire::transcript::{Reader, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let mut session = Session::new(Meter::neutral(), Budget::new(Tokens(1 << 40), Tokens(1_000)));
    for message in Reader::new(bytes).flatten() {
        let line = encode(&message).into_owned();
        assert_eq!(encode(&decode(&line).expect("it was read once")), line);
        let parts = message.clone().without_raw();
        assert_eq!(decode(&encode(&parts)).expect("it was written by us").without_raw(), parts);
        session.push(message);
        session.prepare().expect("it fits");
    }
});
