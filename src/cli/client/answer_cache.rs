//! The answers that the command line keeps in the cache folder, so that an unchanged list need not
//! be sent again.
//!
//! There are as many files as slots; the address of an answer says which one is its own, and a
//! later answer replaces an earlier one there. A file is replaced by one rename. A file that is
//! damaged, or of another address, counts as absent, and one that cannot be written costs a
//! transfer only.
//!
//! Never here: whether an answer still stands, which the daemon says.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use http::header::{ETAG, HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::cli::instance::private_folder;

/// Files at most.
const SLOTS: u64 = 16;
/// Bytes of an answer that is kept at most; a list of 5,000 tools has about as many.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// Bytes of a file at most: the answer and its head.
const MAX_FILE: u64 = 9 * 1024 * 1024;
/// What is kept of the head of an answer.
const KEPT_HEADERS: [&str; 4] = [
    "callsheet-revision",
    "callsheet-left-out",
    "callsheet-selection",
    "callsheet-notes",
];

/// The answers in one folder; without a folder none is kept.
#[derive(Debug, Default)]
pub(super) struct AnswerCache(Option<PathBuf>);

/// An answer that was kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeptAnswer {
    pub(super) etag: HeaderValue,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The first line of a file; the answer follows.
#[derive(Serialize, Deserialize)]
struct FileHead {
    url: String,
    etag: String,
    headers: Vec<(String, String)>,
    /// Of the answer.
    digest: String,
}

impl AnswerCache {
    /// The answers in this folder.
    pub(super) fn in_folder(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// The answer of an address, if it was kept.
    pub(super) fn read(&self, url: &Url) -> Option<KeptAnswer> {
        let path = self.path(url)?;
        let about = fs::metadata(&path).ok()?;
        if !about.is_file() || about.len() > MAX_FILE {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: FileHead = serde_json::from_slice(&bytes[..end]).ok()?;
        let body = bytes.get(end + 1..)?.to_vec();
        if head.url != url.as_str() || head.digest != digest(&body) {
            return None;
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &head.headers {
            headers.insert(
                HeaderName::from_bytes(name.as_bytes()).ok()?,
                HeaderValue::from_str(value).ok()?,
            );
        }
        Some(KeptAnswer {
            etag: HeaderValue::from_str(&head.etag).ok()?,
            headers,
            body,
        })
    }

    /// Keeps an answer that has an entity tag.
    pub(super) fn keep(&self, url: &Url, headers: &HeaderMap, body: &[u8]) {
        if body.len() <= MAX_BODY {
            // Without it the next answer is sent whole.
            let _ = self.write(url, headers, body);
        }
    }

    fn write(&self, url: &Url, headers: &HeaderMap, body: &[u8]) -> Option<()> {
        let path = self.path(url)?;
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| Some(value.to_str().ok()?.to_owned()))
        };
        let head = FileHead {
            url: url.to_string(),
            etag: text(ETAG.as_str())?,
            headers: KEPT_HEADERS
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), text(name)?)))
                .collect(),
            digest: digest(body),
        };
        let folder = path.parent()?;
        private_folder(folder).ok()?;
        let mut file = tempfile::NamedTempFile::new_in(folder).ok()?;
        let mut bytes = serde_json::to_vec(&head).ok()?;
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        file.write_all(&bytes).ok()?;
        file.persist(&path).ok().map(drop)
    }

    fn path(&self, url: &Url) -> Option<PathBuf> {
        let slot = xxh3_64(url.as_str().as_bytes()) % SLOTS;
        Some(self.0.as_ref()?.join(format!("answer-{slot}")))
    }
}

/// Guards against damage, not against forgery: the folder is the user's own.
fn digest(body: &[u8]) -> String {
    format!("{:032x}", xxh3_128(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(query: &str) -> Url {
        Url::parse(&format!("http://127.0.0.1:7400/api/v1/tools?{query}")).unwrap()
    }

    fn headers() -> HeaderMap {
        let given = [
            ("etag", "\"a\""),
            ("callsheet-left-out", "3"),
            ("date", "today"),
        ];
        given
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .into_iter()
            .collect()
    }

    #[test]
    fn an_answer_is_kept_until_its_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_folder(Some(folder.path().join("cache")));
        assert_eq!(cache.read(&url("")), None);
        cache.keep(&url(""), &headers(), b"[1]\n[2]");
        let kept = cache.read(&url("")).unwrap();
        assert_eq!(&*kept.body, b"[1]\n[2]");
        assert_eq!(kept.etag, "\"a\"");
        assert_eq!(kept.headers.len(), 1, "{:?}", kept.headers);
        let path = cache.path(&url("")).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut other = whole.clone();
        *other.last_mut().unwrap() = b'x';
        for damaged in [&whole[..whole.len() - 1], &other, b"", b"{}\n", b"\n\n"] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(
                cache.read(&url("")),
                None,
                "{}",
                String::from_utf8_lossy(damaged)
            );
        }
        fs::write(&path, &whole).unwrap();
        assert!(cache.read(&url("")).is_some());
    }

    #[test]
    fn there_are_few_files_and_none_is_of_another_address_or_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_folder(Some(folder.path().to_owned()));
        for n in 0..200 {
            cache.keep(&url(&n.to_string()), &headers(), b"{}");
            assert!(cache.read(&url(&n.to_string())).is_some());
        }
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert!(files <= 16, "{files}");
        let known = (0..200)
            .filter(|n| cache.read(&url(&n.to_string())).is_some())
            .count();
        assert_eq!(known, files);
        cache.keep(&url("large"), &headers(), &vec![b' '; MAX_BODY + 1]);
        assert_eq!(cache.read(&url("large")), None);
        let untagged = HeaderMap::new();
        cache.keep(&url("untagged"), &untagged, b"{}");
        assert_eq!(cache.read(&url("untagged")), None);
        AnswerCache::default().keep(&url(""), &headers(), b"{}");
    }
}
