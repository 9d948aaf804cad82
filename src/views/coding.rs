//! Content codings of a prepared body.
//!
//! A body is encoded once and sent many times, but a change of one tool encodes it again. So each
//! level is a medium one, as servers use for answers that change, and not the best.

use std::fmt;
use std::io::{self, Write};

/// A content coding (RFC 9110 section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Not encoded.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

/// zlib's own default.
const GZIP_LEVEL: u32 = 6;
/// The first quality that models contexts; 11, the encoder's default, is meant for files that never
/// change.
const BROTLI_QUALITY: u32 = 5;
/// The largest window a decoder must support, as a power of two: 4 MiB, brotli's own default.
const BROTLI_WINDOW: u32 = 22;
/// The encoder's default. Its window stays within the 8 MiB that RFC 9659 allows for HTTP.
const ZSTD_LEVEL: i32 = 3;
const BROTLI_BUFFER: usize = 64 * 1024;
/// A list in a coding is expected to have a part of its bytes: one of so many. Few are longer.
const EXPECTED_PART_DIVISOR: usize = 4;

impl Coding {
    /// Every coding, the smallest results first, identity last.
    pub const ALL: [Self; 4] = [Self::Brotli, Self::Zstd, Self::Gzip, Self::Identity];

    /// The coding as `Content-Encoding` and `Accept-Encoding` write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// How many bytes a body of so many is expected to have in this coding.
    pub(super) fn expected_bytes(self, plain: usize) -> usize {
        if self == Self::Identity {
            plain
        } else {
            plain / EXPECTED_PART_DIVISOR
        }
    }

    /// `plain` in this coding. Equal input gives equal output: no time and no file name is written.
    pub fn encode(self, plain: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Identity => Ok(plain.to_vec()),
            Self::Gzip => {
                let room = Vec::with_capacity(self.expected_bytes(plain.len()));
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(room, level);
                encoder.write_all(plain)?;
                encoder.finish()
            }
            Self::Brotli => {
                let room = Vec::with_capacity(self.expected_bytes(plain.len()));
                let mut encoder = brotli::CompressorWriter::new(
                    room,
                    BROTLI_BUFFER,
                    BROTLI_QUALITY,
                    BROTLI_WINDOW,
                );
                encoder.write_all(plain)?;
                encoder.flush()?;
                Ok(encoder.into_inner())
            }
            Self::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL),
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
