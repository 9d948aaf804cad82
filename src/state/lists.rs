//! Whole lists beside the database, ready to be sent again before what they were made of has been read.
//!
//! One file (`<database>.lists`) holds what was answered from one content of the store, and says which that was. It is written whole beside
//! its place, block by block, and then put there, so it is never half a file and no list need be whole in memory; it is believed only if it is of this very version of the program, of the
//! content that the store has now, and made as lists are made now, and if every byte of it is as it was written. What it says is nobody's
//! truth: it may be deleted at any time, and it is never mended.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::Content;
use crate::runtime::tasks;

/// What the file begins with.
const MAGIC: &[u8; 16] = b"callsheet lists\n";
/// Stands in the head, so that a file is good for the version that wrote it alone: what is in a list may change with each.
const WRITER: &str = concat!("callsheet ", env!("CARGO_PKG_VERSION"), ", lists 2");
/// Bytes that are read, judged and sent at a time.
const BLOCK: usize = 1 << 20;
/// Bytes before the head: what the file begins with, the head's length and its sum.
const FRONT: u64 = 16 + 8 + 16;
/// A longer head is none of ours.
const LONGEST_HEAD: u64 = 16 << 20;

/// What lists are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The content of the store.
    pub content: Content,
    /// Everything else that decides about their bytes, as a digest of the writer's own.
    pub made_with: String,
}

/// A list.
pub struct List {
    /// What is known of it, in the writer's own words.
    pub label: String,
    /// How many bytes it has.
    pub bytes: u64,
    pieces: Box<dyn Iterator<Item = io::Result<Bytes>> + Send>,
}

/// The lists of a file, which stays open.
#[derive(Debug)]
pub struct Lists {
    file: File,
    stamp: Stamp,
    all: Vec<Known>,
}

/// Where one of them stands.
#[derive(Debug)]
struct Known {
    label: String,
    start: u64,
    bytes: u64,
    sums: Vec<u128>,
}

/// The head of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    writer: String,
    made_with: String,
    content: String,
    revision: Option<(String, String)>,
    lists: Vec<Entry>,
}

/// One list in it. The bytes stand behind the head, in the same order.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    label: String,
    bytes: u64,
    /// Of each block, as hexadecimal digits.
    sums: Vec<String>,
}

/// Where the lists of the database at `database` are kept.
pub fn beside(database: &Path) -> PathBuf {
    named(database, ".lists")
}

fn named(database: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(database.as_os_str());
    name.push(ending);
    name.into()
}

/// Puts these lists in the place of those that were kept before. Blocks until they are on the disk, which may take seconds, but has let go
/// of the lists before it waits for that. To be called by whoever has the database's lock.
pub fn keep(database: &Path, stamp: &Stamp, lists: Vec<List>) -> io::Result<()> {
    // Always the same name: what a kill leaves of it is written over.
    let new = named(database, ".lists.new");
    let written = write(&new, stamp, lists).and_then(|()| fs::rename(&new, beside(database)));
    if written.is_err() {
        // It may not be there at all.
        let _ = fs::remove_file(&new);
    }
    written
}

/// The lists come first, behind the room for a head, which is as long with the sums as without.
fn write(path: &Path, stamp: &Stamp, lists: Vec<List>) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let mut head = Head::of(stamp, &lists);
    let length = serde_json::to_vec(&head)?.len() as u64;
    file.seek(SeekFrom::Start(FRONT + length))?;
    for (list, entry) in lists.into_iter().zip(&mut head.lists) {
        entry.sums = list.write(&mut file)?;
    }
    let head = serde_json::to_vec(&head)?;
    if head.len() as u64 != length {
        return Err(io::Error::other("the head of the kept lists is not as long as it was to be"));
    }
    file.seek(SeekFrom::Start(0))?;
    file.write_all(MAGIC)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&xxh3_128(&head).to_le_bytes())?;
    file.write_all(&head)?;
    file.sync_all()
}

/// How many bytes are kept; none where there is nothing.
pub fn bytes(database: &Path) -> u64 {
    fs::metadata(beside(database)).map_or(0, |found| found.len())
}

/// Takes the kept lists away, if there are any.
pub fn forget(database: &Path) {
    // Whoever finds them again judges them anew.
    let _ = fs::remove_file(beside(database));
}

fn sum(block: &[u8]) -> String {
    format!("{:032x}", xxh3_128(block))
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, bytes, .. } = self;
        f.debug_struct("List").field("label", label).field("bytes", bytes).finish_non_exhaustive()
    }
}

impl List {
    /// A list with these bytes.
    pub fn of(label: String, body: Bytes) -> Self {
        Self { label, bytes: body.len() as u64, pieces: Box::new(std::iter::once(Ok(body))) }
    }

    /// A list of so many bytes that is made while it is written.
    pub fn in_pieces(
        label: String,
        bytes: u64,
        pieces: impl Iterator<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Self {
        Self { label, bytes, pieces: Box::new(pieces) }
    }

    /// Writes it. The sums of its blocks.
    fn write(self, file: &mut File) -> io::Result<Vec<String>> {
        let (mut sums, mut block, mut written) = (Vec::new(), Vec::new(), 0);
        for piece in self.pieces {
            let piece = piece?;
            written += piece.len() as u64;
            file.write_all(&piece)?;
            let mut rest = &piece[..];
            while block.len() + rest.len() >= BLOCK {
                let (end, after) = rest.split_at(BLOCK - block.len());
                if block.is_empty() {
                    sums.push(sum(end));
                } else {
                    block.extend_from_slice(end);
                    sums.push(sum(&block));
                    block.clear();
                }
                rest = after;
            }
            block.extend_from_slice(rest);
        }
        if !block.is_empty() {
            sums.push(sum(&block));
        }
        let told = || format!("a list has {written} bytes where {} were announced", self.bytes);
        if written == self.bytes { Ok(sums) } else { Err(io::Error::other(told())) }
    }
}

impl Head {
    fn of(stamp: &Stamp, lists: &[List]) -> Self {
        let blocks = |list: &List| usize::try_from(list.bytes.div_ceil(BLOCK as u64)).unwrap_or(usize::MAX);
        let entry =
            |list: &List| Entry { label: list.label.clone(), bytes: list.bytes, sums: vec![sum(&[]); blocks(list)] };
        let Stamp { content, made_with } = stamp;
        Self {
            writer: WRITER.to_owned(),
            made_with: made_with.clone(),
            content: content.name.clone(),
            revision: revision(content),
            lists: lists.iter().map(entry).collect(),
        }
    }

    fn is_of(&self, stamp: &Stamp) -> bool {
        self.writer == WRITER
            && self.made_with == stamp.made_with
            && self.content == stamp.content.name
            && self.revision == revision(&stamp.content)
    }
}

fn revision(content: &Content) -> Option<(String, String)> {
    content.revision.as_ref().map(|(revision, since)| (revision.clone(), since.to_string()))
}

impl Lists {
    /// Those that were kept of this stamp, if every byte of them is as it was written. Blocks while it reads them all.
    pub fn open(database: &Path, stamp: &Stamp) -> Option<Self> {
        match Self::read(database, stamp) {
            Ok(lists) => lists,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %beside(database).display(), %error, "the kept lists cannot be used; they are made anew");
                None
            }
        }
    }

    fn read(database: &Path, stamp: &Stamp) -> io::Result<Option<Self>> {
        let file = File::open(beside(database))?;
        let size = file.metadata()?.len();
        let front = FRONT;
        let mut buffer = vec![0; usize::try_from(front).map_err(io::Error::other)?];
        read_at(&file, &mut buffer, 0)?;
        let (magic, rest) = buffer.split_at(MAGIC.len());
        let (length, sum) = rest.split_at(8);
        let length = u64::from_le_bytes(length.try_into().map_err(io::Error::other)?);
        if magic != MAGIC || length > LONGEST_HEAD.min(size) {
            return Err(damaged("its beginning"));
        }
        let mut head = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        read_at(&file, &mut head, front)?;
        if sum != xxh3_128(&head).to_le_bytes() {
            return Err(damaged("its head"));
        }
        let head: Head = serde_json::from_slice(&head)?;
        if !head.is_of(stamp) {
            return Ok(None);
        }
        let lists = Self { file, stamp: stamp.clone(), all: known(head.lists, front + length)? };
        let end = lists.all.last().map_or(front + length, |last| last.start.saturating_add(last.bytes));
        if end != size {
            return Err(damaged("its length"));
        }
        lists.judge()?;
        Ok(Some(lists))
    }

    /// Looks at every block once, on all cores.
    fn judge(&self) -> io::Result<()> {
        let blocks = self.all.iter().flat_map(|list| (0..list.sums.len()).map(move |block| (list, block)));
        let blocks: Vec<_> = blocks.collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shares: Vec<Vec<_>> = blocks.chunks(blocks.len().div_ceil(cores).max(8)).map(<[_]>::to_vec).collect();
        let judged = tasks::each_on_its_own(shares, |share| {
            // One for all: memory that is new costs more than reading into it.
            let mut buffer = vec![0; BLOCK];
            share.into_iter().try_for_each(|(list, block)| self.block_into(list, block, &mut buffer).map(drop))
        });
        judged.into_iter().collect()
    }

    fn block_into<'b>(&self, list: &Known, block: usize, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let begin = (block * BLOCK) as u64;
        let bytes = usize::try_from(list.bytes - begin).unwrap_or(usize::MAX).min(BLOCK);
        let buffer = &mut buffer[..bytes];
        read_at(&self.file, buffer, list.start + begin)?;
        if xxh3_128(buffer) == list.sums[block] { Ok(buffer) } else { Err(damaged("a block")) }
    }

    /// What they are made of.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// What was said of each list, in order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|list| list.label.as_str())
    }

    /// How many bytes the list at this place of the order has.
    pub fn bytes(&self, at: usize) -> u64 {
        self.all.get(at).map_or(0, |list| list.bytes)
    }

    /// A block of the list at this place of the order; `None` behind its end. Blocks for some tenths of a millisecond. Fails when the file
    /// is not any more what it was when it was opened.
    pub fn block(&self, at: usize, block: usize) -> io::Result<Option<Bytes>> {
        let Some(list) = self.all.get(at).filter(|list| block < list.sums.len()) else { return Ok(None) };
        let rest = list.bytes - (block * BLOCK) as u64;
        let mut buffer = vec![0; usize::try_from(rest).unwrap_or(usize::MAX).min(BLOCK)];
        self.block_into(list, block, &mut buffer)?;
        Ok(Some(buffer.into()))
    }
}

fn known(entries: Vec<Entry>, mut start: u64) -> io::Result<Vec<Known>> {
    let mut lists = Vec::with_capacity(entries.len());
    for Entry { label, bytes, sums } in entries {
        let sums = sums.iter().map(|sum| u128::from_str_radix(sum, 16));
        let sums = sums.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        if sums.len() as u64 != bytes.div_ceil(BLOCK as u64) {
            return Err(damaged("the sums of a list"));
        }
        lists.push(Known { label, start, bytes, sums });
        start = start.saturating_add(bytes);
    }
    Ok(lists)
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not as it was written"))
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Elsewhere nothing that was kept is used.
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        let revision = Some(("0011".to_owned(), jiff::Timestamp::UNIX_EPOCH));
        Stamp { content: Content { name: "abc".to_owned(), revision }, made_with: "def".to_owned() }
    }

    /// A database's place with two lists kept beside it.
    fn kept() -> (tempfile::TempDir, PathBuf, Vec<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("state.db");
        let long: Vec<u8> = (0..BLOCK * 20 + 77).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let bodies = vec![long, Vec::new(), b"{}".to_vec()];
        // Pieces are not cut where blocks are.
        let pieces: Vec<_> = bodies[0].chunks(BLOCK / 3 + 5).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let lists = vec![
            List::in_pieces("long".to_owned(), bodies[0].len() as u64, pieces.into_iter()),
            List::of(String::new(), Bytes::new()),
            List::of("short".to_owned(), bodies[2].clone().into()),
        ];
        keep(&database, &stamp(), lists).unwrap();
        (folder, database, bodies)
    }

    fn body(lists: &Lists, at: usize) -> Vec<u8> {
        let blocks = (0..).map_while(|block| lists.block(at, block).unwrap());
        blocks.flat_map(|block| block.to_vec()).collect()
    }

    #[test]
    fn what_was_kept_is_found_again() {
        let (_folder, database, written) = kept();
        let lists = Lists::open(&database, &stamp()).unwrap();
        assert_eq!(lists.labels().collect::<Vec<_>>(), ["long", "", "short"]);
        for (at, list) in written.iter().enumerate() {
            assert_eq!(lists.bytes(at), list.len() as u64);
            assert!(body(&lists, at) == *list, "list {at}");
        }
        assert_eq!(lists.block(3, 0).unwrap(), None);
        assert!(bytes(&database) > written.iter().map(|list| list.len() as u64).sum());
        forget(&database);
        assert!(Lists::open(&database, &stamp()).is_none());
        assert_eq!(bytes(&database), 0);
    }

    #[test]
    fn a_list_that_is_not_made_whole_is_not_kept() {
        let (_folder, database, _) = kept();
        let before = fs::read(beside(&database)).unwrap();
        let piece = || Ok(Bytes::from_static(b"[]"));
        let short = List::in_pieces("short".to_owned(), 5, [piece(), piece()].into_iter());
        let broken = List::in_pieces("broken".to_owned(), 4, [piece(), Err(io::Error::other("no"))].into_iter());
        for list in [short, broken] {
            assert!(keep(&database, &stamp(), vec![list]).is_err());
            assert!(fs::read(beside(&database)).unwrap() == before, "what was kept before stays");
        }
        assert!(!named(&database, ".lists.new").exists());
    }

    #[test]
    fn what_was_made_of_something_else_is_not_used() {
        let (_folder, database, _) = kept();
        let other = |change: fn(&mut Stamp)| {
            let mut other = stamp();
            change(&mut other);
            assert!(Lists::open(&database, &other).is_none(), "{other:?}");
        };
        other(|stamp| stamp.made_with.push('x'));
        other(|stamp| stamp.content.name.push('x'));
        other(|stamp| stamp.content.revision = None);
        other(|stamp| stamp.content.revision = Some(("0012".to_owned(), jiff::Timestamp::UNIX_EPOCH)));
        other(|stamp| stamp.content.revision = Some(("0011".to_owned(), jiff::Timestamp::MAX)));
        assert!(Lists::open(&database, &stamp()).is_some());
    }

    #[test]
    fn of_another_version_nothing_is_used() {
        let (_folder, database, _) = kept();
        let path = beside(&database);
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes[40..200]).into_owned();
        assert!(text.contains(WRITER), "{text}");
        // A head that is whole and of another writer.
        let length = usize::try_from(u64::from_le_bytes(bytes[16..24].try_into().unwrap())).unwrap();
        let head = String::from_utf8(bytes[40..40 + length].to_vec()).unwrap().replace("lists 2", "lists 1");
        let mut other = bytes.clone();
        other[40..40 + length].copy_from_slice(head.as_bytes());
        other[24..40].copy_from_slice(&xxh3_128(head.as_bytes()).to_le_bytes());
        fs::write(&path, &other).unwrap();
        assert!(Lists::open(&database, &stamp()).is_none());
    }

    #[test]
    fn a_torn_or_changed_file_is_not_used() {
        let (_folder, database, _) = kept();
        let path = beside(&database);
        let whole = fs::read(&path).unwrap();
        for cut in [0, 1, 16, 39, 40, 100, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(Lists::open(&database, &stamp()).is_none(), "cut to {cut}");
        }
        fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
        assert!(Lists::open(&database, &stamp()).is_none(), "longer");
        for at in (0..whole.len()).step_by(whole.len() / 40).chain(0..64).chain([whole.len() - 1]) {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            fs::write(&path, &changed).unwrap();
            assert!(Lists::open(&database, &stamp()).is_none(), "byte {at}");
        }
        fs::write(&path, &whole).unwrap();
        let lists = Lists::open(&database, &stamp()).unwrap();
        // Somebody writes into it while it is open.
        let mut changed = whole.clone();
        let last = changed.len() - 3 - BLOCK;
        changed[last] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert!(lists.block(0, 0).is_ok() && (0..21).any(|block| lists.block(0, block).is_err()));
    }
}
