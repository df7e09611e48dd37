//! Request bodies that come compressed: undone for whoever reads them, up to a limit.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::header::{CONTENT_ENCODING, HeaderMap};

/// A body that cannot be unpacked, or that is longer than we take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// How a body is compressed, in the order in which it was.
pub(crate) fn packings(headers: &HeaderMap) -> Vec<String> {
    let named = headers.get_all(CONTENT_ENCODING).iter().map(|names| names.to_str().unwrap_or("?"));
    let names = named.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty() && name != "identity").collect()
}

/// The body without its compression. It has at most so many bytes.
pub(crate) fn unpacked(body: &Bytes, packings: &[String], most: usize) -> Result<Bytes, Unreadable> {
    /// Nobody compresses more often.
    const MOST_LAYERS: usize = 2;
    if packings.len() > MOST_LAYERS {
        return Err(Unreadable);
    }
    packings.iter().rev().try_fold(body.clone(), |body, packing| one(&body, packing, most))
}

fn one(body: &[u8], packing: &str, most: usize) -> Result<Bytes, Unreadable> {
    match packing {
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(body), most),
        // The name means zlib; some send it without its head.
        "deflate" => read(ZlibDecoder::new(body), most).or_else(|_| read(DeflateDecoder::new(body), most)),
        "zstd" => read(zstd::stream::read::Decoder::new(body).map_err(|_| Unreadable)?, most),
        "br" => read(brotli_decompressor::Decompressor::new(body, 4_096), most),
        _ => Err(Unreadable),
    }
}

fn read(from: impl Read, most: usize) -> Result<Bytes, Unreadable> {
    let mut plain = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.take(limit).read_to_end(&mut plain).map_err(|_| Unreadable)?;
    if plain.len() > most { Err(Unreadable) } else { Ok(plain.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut to = GzEncoder::new(Vec::new(), Compression::fast());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    }

    fn plain(body: Vec<u8>, packing: &str, most: usize) -> Result<Bytes, Unreadable> {
        let mut headers = HeaderMap::new();
        headers.insert("content-encoding", packing.parse().unwrap());
        unpacked(&body.into(), &packings(&headers), most)
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let text = b"{\"messages\": []}".repeat(9);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).unwrap();
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
        deflate.write_all(&text).unwrap();
        let zstd = zstd::encode_all(text.as_slice(), 3).unwrap();
        for (packing, body) in [
            ("gzip", gzip(&text)),
            ("GZIP", gzip(&text)),
            ("identity", text.clone()),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", deflate.finish().unwrap()),
            ("zstd", zstd.clone()),
            ("zstd, gzip", gzip(&zstd)),
        ] {
            assert_eq!(plain(body, packing, text.len()).unwrap(), text, "{packing}");
        }
        // "hello" as brotli writes it, not compressed.
        let brotli = b"\x0b\x02\x80hello\x03".to_vec();
        assert_eq!(plain(brotli, "br", 5).unwrap(), "hello");
    }

    #[test]
    fn what_grows_without_end_is_not_unpacked() {
        let bomb = gzip(&vec![b' '; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(plain(bomb.clone(), "gzip", 1 << 20), Err(Unreadable));
        assert_eq!(plain(gzip(&gzip(&bomb)), "gzip, gzip, gzip", 64 << 20), Err(Unreadable));
        let text = b"cut off".repeat(99);
        let mut cut = gzip(&text);
        cut.truncate(cut.len() - 9);
        assert_eq!(plain(cut, "gzip", 1 << 20), Err(Unreadable));
        assert_eq!(plain(text.clone(), "compress", 1 << 20), Err(Unreadable));
        assert_eq!(plain(text, "br", 1 << 20), Err(Unreadable));
    }
}
