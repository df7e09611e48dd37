//! Texts as they are stored: compressed, with a checksum, so that a damaged text is never taken for one.
//! Short texts are compressed too: a dictionary of what journals are full of is known on both sides.

use std::io;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, get_frame_content_size};

/// What journals are full of, made by `dictionary/make.py`. A store that was written with it needs it for ever: a better dictionary is a
/// second file with another mark.
const DICTIONARY: &[u8] = include_bytes!("dictionary/1.zdict");

/// The first byte of a packed text that was compressed with the dictionary.
const WITH_DICTIONARY: u8 = 1;

/// The level of compression: the higher ones cost twice the time and save no more than a hundredth.
const LEVEL: i32 = 4;

/// How a frame of zstd begins. It is not stored: the mark says as much.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// No text is longer: a damaged length must not ask for all memory.
const LONGEST: u64 = 1 << 30;

/// Makes texts smaller.
pub(crate) struct Packer {
    compressor: Compressor<'static>,
}

impl Packer {
    pub(crate) fn new() -> io::Result<Self> {
        let mut compressor = Compressor::with_dictionary(LEVEL, DICTIONARY)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        // The mark says which dictionary it was.
        compressor.set_parameter(CParameter::DictIdFlag(false))?;
        Ok(Self { compressor })
    }

    /// The text as it is stored.
    pub(crate) fn pack(&mut self, text: &str) -> io::Result<Vec<u8>> {
        let mut packed = self.compressor.compress(text.as_bytes())?;
        packed.splice(..MAGIC.len(), [WITH_DICTIONARY]);
        Ok(packed)
    }
}

/// Gives texts back.
pub(crate) struct Unpacker {
    decompressor: Decompressor<'static>,
    /// The frame that was unpacked last, and its text: their memory is used again.
    frame: Vec<u8>,
    text: Vec<u8>,
}

impl Unpacker {
    pub(crate) fn new() -> io::Result<Self> {
        let decompressor = Decompressor::with_dictionary(DICTIONARY)?;
        Ok(Self { decompressor, frame: Vec::new(), text: Vec::new() })
    }

    /// The text that was packed, or what is wrong with what is stored.
    pub(crate) fn unpack(&mut self, packed: &[u8]) -> Result<&str, String> {
        let Some((&WITH_DICTIONARY, behind)) = packed.split_first() else {
            return Err("a text that was packed in no known way".to_owned());
        };
        self.frame.clear();
        self.frame.extend(MAGIC);
        self.frame.extend(behind);
        let length = get_frame_content_size(&self.frame).ok().flatten().filter(|length| *length <= LONGEST);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or("a packed text that does not say how long it is")?;
        self.text.clear();
        self.text.reserve(length);
        let unpacked = self.decompressor.decompress_to_buffer(&self.frame, &mut self.text);
        unpacked.map_err(|error| error.to_string())?;
        std::str::from_utf8(&self.text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        let (mut packer, mut unpacker) = (Packer::new().unwrap(), Unpacker::new().unwrap());
        let long = "fn main() {}\n".repeat(100_000);
        for text in ["", "a", r#"{"message":{"role":"user","blocks":[{"text":{"text":"你好"}}]}}"#, &long] {
            assert_eq!(unpacker.unpack(&packer.pack(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn a_damaged_text_is_not_taken_for_one() {
        let (mut packer, mut unpacker) = (Packer::new().unwrap(), Unpacker::new().unwrap());
        let text = r#"{"message":{"role":"user","blocks":[{"text":{"text":"Mend the parser of dates."}}]}}"#;
        let packed = packer.pack(text).unwrap();
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x10;
            assert!(
                unpacker.unpack(&damaged).is_ok_and(|same| same == text)
                    || unpacker.unpack(&damaged).is_err(),
                "{at}"
            );
        }
        assert!(unpacker.unpack(&[]).is_err());
    }

    #[test]
    fn a_short_entry_is_stored_in_less_than_half() {
        let text = r#"{"message":{"role":"assistant","blocks":[{"tool_call":{"id":"call_71","name":"Read","arguments":{"path":"src/q.rs"}}}]}}"#;
        let packed = Packer::new().unwrap().pack(text).unwrap();
        assert!(packed.len() * 2 < text.len(), "{} of {}", packed.len(), text.len());
    }
}
