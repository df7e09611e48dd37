//! What files begin with.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How a database of SQLite begins.
pub const SQLITE: &[u8] = b"SQLite format 3\0";

/// True if a file, and nothing else, begins so.
pub fn begins_with(path: &Path, start: &[u8]) -> bool {
    let mut begin = vec![0; start.len()];
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok())
        && begin == start
}
