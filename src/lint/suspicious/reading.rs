//! Reads a text as words with their classes and sentences.
//!
//! One pass over the text; what a rule looks at is a window of a stated number of words, so rules
//! are linear, too. Paths, addresses and domains are one word each.

use std::ops::Range;

use super::fold::{fold_word, is_of_word, is_without_blanks};
use super::words::{Classes, TERM_LETTERS_MAX, classes_of};
use crate::model::text::beginning;

/// Words of a sentence that are looked at on each side of one at most.
const SENTENCE_REACH_WORDS: usize = 40;
/// Words before the ones that a rule touches that are quoted with them.
const BEGINNING_WORDS_MAX: usize = 3;
/// Bytes of the longest word that may have a class.
const WORD_BYTES_MAX: usize = 64;
/// Bytes of the longest path or address that is looked at whole.
const PART_BYTES_MAX: usize = 512;
/// Beginnings within one such part that are tried, since each reads the part again.
const PART_TRIES_MAX: usize = 8;

/// Parts of paths of files that hold secrets.
const SECRET_FILES: [&str; 36] = [
    ".ssh",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    ".aws",
    ".env",
    "mcp.json",
    ".bash_history",
    ".zsh_history",
    "/etc/shadow",
    "/etc/passwd",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".kube/config",
    ".docker/config",
    ".gnupg",
    "desktop_config.json",
    ".pgpass",
    "wallet.dat",
    "cookies.sqlite",
    "logins.json",
    ".config/gcloud",
    "application_default_credentials",
    "credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    ".azure/accesstokens",
    "keychain-db",
    ".password-store",
    "/proc/self/environ",
    ".psql_history",
    ".mysql_history",
];
/// Bytes of the shortest of them.
const SECRET_FILE_BYTES_MIN: usize = 4;
/// The last parts of domains that are no ending of a file's name.
const DOMAINS: [&str; 22] = [
    "com", "net", "org", "io", "dev", "ru", "cn", "xyz", "example", "test", "app", "site", "co",
    "info", "me", "tk", "top", "cc", "biz", "online", "cloud", "invalid",
];

/// One word of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadWord {
    start: usize,
    end: usize,
    sentence: usize,
    pub(super) classes: Classes,
}

/// A text, read.
#[derive(Debug, Default)]
pub(super) struct Reading<'t> {
    pub(super) text: &'t str,
    pub(super) words: Vec<ReadWord>,
    /// The classes of all words: most rules have no word to begin with in most texts.
    present: Classes,
}

impl<'t> Reading<'t> {
    /// Reads a text. In a name, words are joined by underscores.
    pub(super) fn new(text: &'t str, is_name: bool) -> Self {
        let words = Vec::with_capacity(text.len() / 6);
        let mut reader = TextReader {
            text,
            is_name,
            at: 0,
            sentence: 0,
            letters: 0,
            words,
            folded: String::new(),
            part_end: 0,
            part_tries: 0,
        };
        reader.read();
        let present = reader
            .words
            .iter()
            .fold(Classes::default(), |all, word| all.with(word.classes));
        Self {
            text,
            words: reader.words,
            present,
        }
    }

    /// The words with one of these classes.
    pub(super) fn having(&self, classes: Classes) -> impl Iterator<Item = usize> + '_ {
        let words = if self.present.has(classes) {
            self.words.as_slice()
        } else {
            &[]
        };
        words
            .iter()
            .enumerate()
            .filter(move |(_, word)| word.classes.has(classes))
            .map(|(at, _)| at)
    }

    /// Whether a word has one of these classes.
    pub(super) fn is(&self, at: usize, classes: Classes) -> bool {
        self.words
            .get(at)
            .is_some_and(|word| word.classes.has(classes))
    }

    /// The first word with one of these classes among the `reach` words after one, in its sentence.
    pub(super) fn after(&self, at: usize, reach: usize, classes: Classes) -> Option<usize> {
        let end = (at + 1 + reach).min(self.words.len());
        (at + 1..end)
            .take_while(|next| self.is_same_sentence(at, *next))
            .find(|next| self.is(*next, classes))
    }

    /// The last word with one of these classes among the `reach` words before one, in its sentence.
    pub(super) fn before(&self, at: usize, reach: usize, classes: Classes) -> Option<usize> {
        let start = at.saturating_sub(reach);
        (start..at)
            .rev()
            .take_while(|next| self.is_same_sentence(at, *next))
            .find(|next| self.is(*next, classes))
    }

    /// The nearest word with one of these classes on either side of one, in its sentence.
    pub(super) fn near(&self, at: usize, reach: usize, classes: Classes) -> Option<usize> {
        self.after(at, reach, classes)
            .or_else(|| self.before(at, reach, classes))
    }

    /// Whether a word between two has one of these classes.
    pub(super) fn between(&self, from: usize, to: usize, classes: Classes) -> bool {
        (from + 1..to).any(|at| self.is(at, classes))
    }

    /// Whether the sentence of a word has one of these classes.
    pub(super) fn in_sentence(&self, at: usize, classes: Classes) -> bool {
        self.is(at, classes) || self.near(at, SENTENCE_REACH_WORDS, classes).is_some()
    }

    /// The first word with one of these classes among the `reach` words after one, in whatever
    /// sentence.
    pub(super) fn later(&self, at: usize, reach: usize, classes: Classes) -> Option<usize> {
        (at + 1..(at + 1 + reach).min(self.words.len())).find(|next| self.is(*next, classes))
    }

    /// The same before one.
    pub(super) fn earlier(&self, at: usize, reach: usize, classes: Classes) -> Option<usize> {
        (at.saturating_sub(reach)..at)
            .rev()
            .find(|next| self.is(*next, classes))
    }

    /// A word as it is written.
    pub(super) fn word(&self, at: usize) -> &'t str {
        self.words
            .get(at)
            .map_or("", |word| &self.text[word.start..word.end])
    }

    /// Whether these words stand one after the other from `at` on, in one sentence.
    pub(super) fn says(&self, at: usize, phrase: &[&str]) -> bool {
        let says = |(offset, wanted): (usize, &&str)| {
            self.word(at + offset).eq_ignore_ascii_case(wanted)
                && self.is_same_sentence(at, at + offset)
        };
        phrase.iter().enumerate().all(says)
    }

    /// Whether a word is one of these.
    pub(super) fn is_any(&self, at: usize, words: &[&str]) -> bool {
        words
            .iter()
            .any(|word| self.word(at).eq_ignore_ascii_case(word))
    }

    /// Whether a word stands in backticks or quotes, as the name of a parameter does.
    pub(super) fn is_quoted(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| {
            let before = self.text[..word.start].chars().next_back();
            let after = self.text[word.end..].chars().next();
            matches!(
                (before, after),
                (Some('`'), Some('`')) | (Some('"'), Some('"')) | (Some('\''), Some('\''))
            )
        })
    }

    /// Whether a word begins its sentence.
    pub(super) fn begins_sentence(&self, at: usize) -> bool {
        at == 0 || !self.is_same_sentence(at, at - 1)
    }

    /// Whether a word is the last of its clause: a mark or a conjunction follows.
    pub(super) fn ends_clause(&self, at: usize) -> bool {
        let Some(word) = self.words.get(at) else {
            return true;
        };
        !self.is_same_sentence(at, at + 1)
            || self.text[word.end..].starts_with([',', ';', ':', ')'])
            || self.is_any(at + 1, &["and", "but", "then"])
    }

    /// Whether no clause ends between two words.
    pub(super) fn is_one_clause(&self, from: usize, to: usize) -> bool {
        !(from..to).any(|at| self.ends_clause(at))
    }

    /// Where a word stands in the text.
    pub(super) fn place(&self, at: usize) -> Option<Range<usize>> {
        self.words.get(at).map(|word| word.start..word.end)
    }

    /// The text from one word to another, whichever comes first, with the few words before them
    /// that begin the sentence. Where the text ends earlier, up to its end.
    pub(super) fn span(&self, one: usize, other: usize) -> Option<Range<usize>> {
        let first = one.min(other);
        let begins = (first.saturating_sub(BEGINNING_WORDS_MAX)..=first)
            .rev()
            .find(|at| self.begins_sentence(*at));
        let start = self.words.get(begins.unwrap_or(first))?;
        let end = self.words.get(one.max(other)).or(self.words.last())?;
        Some(start.start..end.end)
    }

    /// Whether two words stand in one sentence.
    pub(super) fn is_same_sentence(&self, one: usize, other: usize) -> bool {
        match (self.words.get(one), self.words.get(other)) {
            (Some(one), Some(other)) => one.sentence == other.sentence,
            _ => false,
        }
    }
}

struct TextReader<'t> {
    text: &'t str,
    is_name: bool,
    at: usize,
    sentence: usize,
    /// Letters of the last word: a dot after a single one ends no sentence (`e.g.`).
    letters: usize,
    words: Vec<ReadWord>,
    folded: String,
    /// The end of the part that is no path or address as far as it was tried.
    part_end: usize,
    part_tries: usize,
}

impl TextReader<'_> {
    fn read(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            if is_without_blanks(c) {
                self.read_term();
            } else if is_of_word(c) && !(self.is_name && c == '_') {
                self.read_word();
            } else if matches!(c, '~' | '/' | '.' | '$' | '%') && self.read_place(self.at) {
                // It was taken whole.
            } else {
                self.read_mark(c);
            }
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Takes a blank or a punctuation mark.
    fn read_mark(&mut self, c: char) {
        self.at += c.len_utf8();
        let next = self.rest().bytes().next();
        let is_end = match c {
            '.' => {
                self.letters > 1
                    && next
                        .is_none_or(|next| next.is_ascii_whitespace() || b"\"')<*".contains(&next))
            }
            '!' | '?' | ';' | '。' | '！' | '？' | '।' | '，' | '；' => true,
            '\n' => {
                let line = self.rest().trim_start_matches([' ', '\t', '\r']);
                line.starts_with(['\n', '-', '*', '#'])
            }
            _ => false,
        };
        self.sentence += usize::from(is_end);
    }

    /// Takes a term of a language without blanks, or one letter of it.
    fn read_term(&mut self) {
        let rest = &self.text[self.at..];
        let mut ends = [0; TERM_LETTERS_MAX];
        let mut letters = 0;
        for (index, c) in rest
            .char_indices()
            .take(TERM_LETTERS_MAX)
            .take_while(|(_, c)| is_without_blanks(*c))
        {
            ends[letters] = index + c.len_utf8();
            letters += 1;
        }
        let mut length = ends[0];
        let mut classes = Classes::default();
        for end in ends[..letters].iter().rev().copied() {
            classes = classes_of(&rest[..end]);
            if classes != Classes::default() {
                length = end;
                break;
            }
        }
        self.letters = 2;
        self.push(self.at, self.at + length, classes);
    }

    fn read_word(&mut self) {
        let start = self.at;
        let mut letters = 0;
        let mut length = 0;
        for (index, c) in self.rest().char_indices() {
            let joins = c == '\'' || c == '’';
            // `don't` is one word, and `l'utilisateur` and `all'utente` are two.
            let is_joined =
                joins && letters > 2 && is_contraction(&self.text[start + index + c.len_utf8()..]);
            if !is_joined && (!is_of_word(c) || is_without_blanks(c) || self.is_name && c == '_') {
                break;
            }
            letters += 1;
            length = index + c.len_utf8();
        }
        let mut rest = self.text[start + length..].bytes();
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"/.~_\\".contains(&byte);
        if matches!(rest.next(), Some(b'.' | b'/' | b'@' | b':' | b'\\' | b'-'))
            && rest.next().is_some_and(is_inner)
            && self.read_place(start)
        {
            return;
        }
        self.letters = letters;
        let word = &self.text[start..start + length];
        let mut classes = Classes::default();
        if length <= WORD_BYTES_MAX {
            fold_word(word, &mut self.folded);
            classes = classes_of(&self.folded);
        }
        if word.trim_matches('_').contains('_') {
            classes = classes.with(Classes::NAME);
        }
        self.push(start, start + length, classes);
    }

    /// Takes a path, an address or a domain that begins at `start`, if there is one with a class.
    fn read_place(&mut self, start: usize) -> bool {
        let is_inner = start < self.part_end;
        if is_inner && self.part_tries == PART_TRIES_MAX {
            return false;
        }
        if !is_inner {
            let rest = beginning(&self.text[start..], PART_BYTES_MAX);
            self.part_end = start + rest.find(ends_part).unwrap_or(rest.len());
            self.part_tries = 0;
        }
        self.part_tries += 1;
        let part = &self.text[start..self.part_end];
        let part = part.trim_end_matches(['.', ':', '!', '?']);
        fold_word(part, &mut self.folded);
        let classes = classes_of_place(&self.folded, is_inner);
        let is_place = classes != Classes::default();
        if is_place {
            self.letters = part.len();
            self.push(start, start + part.len(), classes);
        }
        is_place
    }

    fn push(&mut self, start: usize, end: usize, classes: Classes) {
        self.words.push(ReadWord {
            start,
            end,
            sentence: self.sentence,
            classes,
        });
        self.at = end;
    }
}

/// Whether the text behind an apostrophe is the end of an English word.
fn is_contraction(rest: &str) -> bool {
    let letters = rest
        .chars()
        .take(3)
        .take_while(|c| c.is_alphabetic())
        .count();
    (1..=2).contains(&letters)
}

/// Whether a character is none of a path or an address.
fn ends_part(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | '('
                | ')'
                | '<'
                | '>'
                | '['
                | ']'
                | '{'
                | '}'
                | ','
                | ';'
                | '|'
                | '*'
        )
        || matches!(
            c,
            '，' | '。' | '、' | '）' | '（' | '「' | '」' | '“' | '”'
        )
}

/// What a path, an address or a domain is. A file of secrets is found in the whole of a part, so an
/// inner beginning of it (`see:https://...`) is none.
fn classes_of_place(part: &str, is_inner: bool) -> Classes {
    let is_secret = !is_inner
        && part.len() >= SECRET_FILE_BYTES_MIN
        && SECRET_FILES.iter().any(|file| part.contains(file));
    // A public key and a template are there to be read.
    if is_secret
        && ![".pub", ".example", ".sample", ".template"]
            .iter()
            .any(|ending| part.ends_with(ending))
    {
        return Classes::SECRET_FILE;
    }
    let has_scheme = [
        "http://", "https://", "ftp://", "ws://", "wss://", "s3://", "gs://",
    ]
    .iter()
    .any(|scheme| part.starts_with(scheme));
    let host = part.split('/').next().unwrap_or_default();
    let domain = host.rsplit_once('@').map_or(host, |(_, domain)| domain);
    let is_number = |part: &str| {
        (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let numbers = domain.split(':').next().unwrap_or_default().split('.');
    let is_ip_address = numbers.clone().count() == 4 && numbers.into_iter().all(is_number);
    let is_domain = domain
        .rsplit_once('.')
        .is_some_and(|(name, last)| !name.is_empty() && DOMAINS.contains(&last));
    if has_scheme || is_domain || is_ip_address {
        Classes::DESTINATION
    } else {
        Classes::default()
    }
}
