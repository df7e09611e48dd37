//! Request bodies that come compressed: undone for whoever reads them, up to a limit.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::header::{CONTENT_ENCODING, HeaderMap};

use self::NotUnpacked::{NoRoom, Unreadable};
use crate::room::Place;

/// Why a body is not unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotUnpacked {
    /// It cannot be unpacked, or it is longer than we take.
    Unreadable,
    /// There is no room for what it unpacks to.
    NoRoom,
}

/// How a body is compressed, in the order in which it was.
pub(crate) fn packings(headers: &HeaderMap) -> Vec<String> {
    let named = headers.get_all(CONTENT_ENCODING).iter().map(|names| names.to_str().unwrap_or("?"));
    let names = named.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty() && name != "identity").collect()
}

/// The body without its compression. It has at most so many bytes. Its bytes are counted in its room before there is
/// memory for them: a small body may unpack to a thousand times its size.
pub(crate) fn unpacked(
    body: &Bytes,
    packings: &[String],
    most: usize,
    place: &mut Place,
) -> Result<Bytes, NotUnpacked> {
    /// Nobody compresses more often.
    const MOST_LAYERS: usize = 2;
    if packings.len() > MOST_LAYERS {
        return Err(Unreadable);
    }
    packings.iter().rev().try_fold(body.clone(), |body, packing| one(&body, packing, most, place))
}

fn one(body: &[u8], packing: &str, most: usize, place: &mut Place) -> Result<Bytes, NotUnpacked> {
    match packing {
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(body), body, most, place),
        // The name means zlib; some send it without its head.
        "deflate" => match read(ZlibDecoder::new(body), body, most, place) {
            Err(Unreadable) => read(DeflateDecoder::new(body), body, most, place),
            read => read,
        },
        "zstd" => {
            let decoder = zstd::stream::read::Decoder::new(body).map_err(|_| Unreadable)?;
            read(decoder, body, most, place)
        }
        "br" => read(brotli_decompressor::Decompressor::new(body, 4_096), body, most, place),
        _ => Err(Unreadable),
    }
}

/// Room is asked for in steps of so many bytes: as many as there are already, from the first number to the second.
const STEPS: (usize, usize) = (64 << 10, 1 << 20);

fn read(mut from: impl Read, packed: &[u8], most: usize, place: &mut Place) -> Result<Bytes, NotUnpacked> {
    let mut plain = Vec::new();
    loop {
        let step = plain.len().clamp(STEPS.0, STEPS.1);
        if !place.grow_to(packed.len() + plain.len() + step) {
            return Err(NoRoom);
        }
        // Where a large block of memory grows it is not copied; what it has too much is never touched.
        plain.reserve(step);
        let read = from.by_ref().take(step as u64).read_to_end(&mut plain).map_err(|_| Unreadable)?;
        if plain.len() > most {
            return Err(Unreadable);
        }
        if read < step {
            place.shrink_to(packed.len() + plain.len());
            return Ok(plain.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use std::time::Duration;

    use super::*;
    use crate::room::Room;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut to = GzEncoder::new(Vec::new(), Compression::fast());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    }

    fn plain(body: Vec<u8>, packing: &str, most: usize) -> Result<Bytes, NotUnpacked> {
        let mut headers = HeaderMap::new();
        headers.insert("content-encoding", packing.parse().unwrap());
        let room = Room::new(64 << 20, Duration::ZERO);
        unpacked(&body.into(), &packings(&headers), most, &mut room.nothing())
    }

    #[test]
    fn what_is_unpacked_takes_room_before_it_takes_memory() {
        let bomb = Bytes::from(gzip(&vec![b' '; 20 << 20]));
        let gzip = ["gzip".to_owned()];
        let room = Room::new(8 << 20, Duration::ZERO);
        assert_eq!(unpacked(&bomb, &gzip, 64 << 20, &mut room.nothing()), Err(NoRoom));
        assert_eq!(room.taken(), 0);
        let room = Room::new(44 << 20, Duration::ZERO);
        let (mut first, mut second, mut third) = (room.nothing(), room.nothing(), room.nothing());
        let whole = |place: &mut Place| unpacked(&bomb, &gzip, 64 << 20, place).map(|plain| plain.len());
        assert_eq!((whole(&mut first), whole(&mut second)), (Ok(20 << 20), Ok(20 << 20)));
        let taken = room.taken();
        assert!((40 << 20..42 << 20).contains(&taken), "{taken}");
        assert_eq!(whole(&mut third), Err(NoRoom));
        // Whoever is refused gives back what it has when it ends, and others have room again.
        drop((third, first));
        assert_eq!(whole(&mut room.nothing()), Ok(20 << 20));
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
