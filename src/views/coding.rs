//! Content codings of a prepared body.
//!
//! A body is encoded once and sent many times, but a change of one tool encodes it anew: so each level is a middle one, as servers
//! use for answers that change, and not the best there is.

use std::fmt;
use std::io::{self, Write};

/// A content coding of RFC 9110 section 8.4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As it is.
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
/// The first quality that models contexts; 11, the encoder's default, is meant for files that never change.
const BROTLI_QUALITY: u32 = 5;
/// The largest window a decoder must support, as a power of two: 4 MiB, brotli's own default.
const BROTLI_WINDOW: u32 = 22;
/// The encoder's default. Its window stays within the 8 MiB that RFC 9659 allows for HTTP.
const ZSTD_LEVEL: i32 = 3;
const BROTLI_BUFFER: usize = 64 * 1024;
/// Bytes that an encoder is given at a time.
const CUT: usize = 256 * 1024;
/// For a larger text no more room is made from the beginning.
const MOST_ROOM: u64 = 16 << 20;

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

    /// `plain` in this coding. The same bytes give the same bytes: no time and no file name is written.
    pub fn encode(self, plain: &[u8]) -> io::Result<Vec<u8>> {
        if self == Self::Identity {
            return Ok(plain.to_vec());
        }
        self.encode_pieces(plain.len() as u64, std::iter::once(Ok(plain)))
    }

    /// The same for a text of `length` bytes that comes in pieces, wherever it was cut. Fails when a piece does, or when there are not so many bytes.
    pub fn encode_pieces<P: AsRef<[u8]>>(
        self,
        length: u64,
        pieces: impl IntoIterator<Item = io::Result<P>>,
    ) -> io::Result<Vec<u8>> {
        let room = Vec::with_capacity(usize::try_from(length.min(MOST_ROOM)).unwrap_or_default() / 4);
        match self {
            Self::Identity => fed(room, pieces),
            Self::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                fed(flate2::write::GzEncoder::new(room, level), pieces)?.finish()
            }
            Self::Brotli => {
                let encoder = brotli::CompressorWriter::new(room, BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
                let mut encoder = fed(encoder, pieces)?;
                encoder.flush()?;
                Ok(encoder.into_inner())
            }
            Self::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(room, ZSTD_LEVEL)?;
                // Then the window is no larger than the text, and its length stands in the head.
                encoder.set_pledged_src_size(Some(length))?;
                fed(encoder, pieces)?.finish()
            }
        }
    }
}

/// Feeds all of it, always cut at the same places: some encoders show where their text was cut.
fn fed<W: Write, P: AsRef<[u8]>>(mut writer: W, pieces: impl IntoIterator<Item = io::Result<P>>) -> io::Result<W> {
    let mut begun = Vec::new();
    for piece in pieces {
        let piece = piece?;
        let mut rest = piece.as_ref();
        if !begun.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(CUT - begun.len()));
            begun.extend_from_slice(now);
            rest = later;
            if begun.len() == CUT {
                writer.write_all(&begun)?;
                begun.clear();
            }
        }
        let mut cuts = rest.chunks_exact(CUT);
        cuts.by_ref().try_for_each(|cut| writer.write_all(cut))?;
        begun.extend_from_slice(cuts.remainder());
    }
    writer.write_all(&begun)?;
    Ok(writer)
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
