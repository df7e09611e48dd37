//! Any bytes, as a transcript of any agent: nothing panics, and what is read can be written and
//! read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul_wire::{agents, transcript};

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = agents::read(std::io::Cursor::new(bytes.to_vec())) else { return };
    for (_, message) in reader.flatten() {
        let line = transcript::encode(&message).into_owned();
        let again = transcript::decode(&line).expect("it was written by us");
        assert_eq!(again.without_raw(), message.without_raw());
    }
});
