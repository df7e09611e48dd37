//! Any bytes, as a request of any API: nothing panics, what is read is written as it was, and
//! can be sent to every API.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul::End;
use longhaul_wire::api::{Api, Request};

fuzz_target!(|bytes: &[u8]| {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    for api in Api::ALL {
        let Ok(request) = Request::decode(api, body) else { continue };
        assert_eq!(request.encode(api).body, body);
        for to in Api::ALL {
            let ends = vec![End::Frame, End::After(0), End::After(1), End::After(2)];
            let sent = request.clone().with_ends(ends).encode(to).body;
            assert!(Request::decode(to, &sent).is_ok(), "{sent}");
        }
    }
});
