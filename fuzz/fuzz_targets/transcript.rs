//! Any bytes, as a transcript: nothing panics, what is read is written back byte for byte,
//! and what is shown of it, in a small window, breaks no rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul::{Meter, Models, Profile, Session, Tokens};
use longhaul_wire::transcript::{Reader, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let model = Models::builtin().find("gpt-4o").clone();
    let session = Session::new(Profile::longhaul(), model).with_window(Tokens(2_000));
    let mut session = session.with_meter(Meter::neutral());
    for message in Reader::new(bytes).flatten() {
        let line = encode(&message).into_owned();
        assert_eq!(encode(&decode(&line).expect("it was read once")), line);
        let parts = message.clone().without_raw();
        assert_eq!(decode(&encode(&parts)).expect("it was written by us").without_raw(), parts);
        session.push(message);
        if session.prepare(None).is_ok() {
            assert_eq!(session.audit(), []);
        }
    }
});
