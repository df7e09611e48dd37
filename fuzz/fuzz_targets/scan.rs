//! Any bytes: what is read as a request is JSON to a parser that everybody trusts, and what that parser
//! refuses is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longhaul_wire::api::{Api, Request};
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    let json = serde_json::from_str::<&RawValue>(body.strip_prefix('\u{feff}').unwrap_or(body));
    for api in Api::ALL {
        match (Request::decode(api, body), &json) {
            (Ok(_), json) => assert!(json.is_ok(), "{body}"),
            (Err(error), Ok(_)) => {
                assert!(!error.to_string().contains("not valid JSON"), "{error}: {body}");
            }
            (Err(_), Err(_)) => {}
        }
    }
});
