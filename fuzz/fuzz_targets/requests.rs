//! Any bytes, as a request of any API: nothing panics, what is read is written as it was, and
//! can be sent to every API.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul_wire::api::{Api, Request};

fuzz_target!(|bytes: &[u8]| {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    for api in Api::ALL {
        let Ok(request) = Request::decode(api, body) else { continue };
        assert_eq!(request.encode(api, &[]).body, body);
        for to in Api::ALL {
            let sent = request.encode(to, &[0, 1, 2]).body;
            assert!(Request::decode(to, &sent).is_ok(), "{sent}");
        }
    }
});
