//! Any bytes, as a session file that `report` reads: nothing panics, and the same file gives the same figures.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The readers of the command line's own crate, which is a program and no library.
#[path = "../../crates/longhaul-cli/src/file_start.rs"]
mod file_start;

#[allow(dead_code)]
#[path = "../../crates/longhaul-cli/src/lab"]
mod lab {
    pub mod opencode_store;
}

#[allow(dead_code)]
#[path = "../../crates/longhaul-cli/src/report"]
mod report {
    pub mod conversation;
    pub mod node;
    pub mod recorder;
    pub mod scan;
}

fuzz_target!(|bytes: &[u8]| {
    // Readers take files: a store of opencode can be read in no other way.
    let path = std::env::temp_dir().join(format!("longhaul-fuzz-report-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder can be written to");
    let (first, second) = (report::scan::scan(&path, &|_| ()), report::scan::scan(&path, &|_| ()));
    if let (Ok(first), Ok(second)) = (first, second) {
        assert_eq!(first, second);
    }
});
