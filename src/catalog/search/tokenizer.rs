//! Texts to words: split where people and programs split them, folded, and for the ranking reduced
//! to a light stem.
//!
//! `getWeatherForecast`, `get_weather_forecast` and `Get weather forecast` have the same words.
//! What is written in one without a separator is a word as a whole too, so that `GitHub` is found
//! as `github` and as `hub`. Scripts without blanks between words give single characters and pairs
//! of neighbours.

use std::borrow::Cow;

use crate::model::fold::fold;

/// Characters of a word at most; the rest of it is not looked at. Longer ones are data, not words.
const WORD_CHARACTERS_MAX: usize = 64;

/// Splits texts; keeps its buffers from one text to the next.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The word being read, in lower case.
    word: String,
    /// Where in it a further part begins.
    parts: Vec<usize>,
    /// Characters in it.
    length: usize,
    /// What the last character was, and the one before.
    last: [CharClass; 2],
    /// Bytes of the last character.
    last_bytes: usize,
    /// The last character when it is one of a script without blanks.
    neighbour: Option<char>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CharClass {
    /// Between words.
    #[default]
    Gap,
    /// A letter that is not a capital.
    Letter,
    Capital,
    Digit,
    /// Of a script that has no blanks between words.
    Dense,
}

impl CharClass {
    fn from_char(c: char) -> Self {
        match c {
            'a'..='z' => Self::Letter,
            'A'..='Z' => Self::Capital,
            '0'..='9' => Self::Digit,
            _ if c.is_ascii() => Self::Gap,
            _ if is_dense(c) => Self::Dense,
            _ if c.is_uppercase() => Self::Capital,
            _ if c.is_numeric() => Self::Digit,
            // Vowel signs of Indic scripts belong to the word that they stand in.
            '\u{900}'..='\u{dff}' => Self::Letter,
            _ if c.is_alphabetic() => Self::Letter,
            _ => Self::Gap,
        }
    }
}

/// Han, kana, Hangul, Thai, Lao, Khmer and Burmese.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

impl Splitter {
    /// Hands on the words of a text, in order.
    pub(super) fn split(&mut self, text: &str, mut each: impl FnMut(&str)) {
        self.scan(text, &mut |word: SplitWord<'_>| {
            word.parts_and_whole(&mut each);
        });
    }

    /// The same, but a word of which `keep_whole` holds is not taken apart.
    pub(super) fn split_unless(
        &mut self,
        text: &str,
        keep_whole: impl Fn(&SplitWord<'_>) -> bool,
        mut each: impl FnMut(&str),
    ) {
        self.scan(text, &mut |word: SplitWord<'_>| {
            if keep_whole(&word) {
                each(word.text);
            } else {
                word.parts_and_whole(&mut each);
            }
        });
    }

    /// The same without words that were taken apart.
    pub(super) fn parts(&mut self, text: &str, mut each: impl FnMut(&str)) {
        self.scan(text, &mut |word: SplitWord<'_>| {
            // Pairs of neighbours are for terms; a name is its characters.
            if !word.pair {
                word.parts(&mut each);
            }
        });
    }

    fn scan(&mut self, text: &str, each: &mut impl FnMut(SplitWord<'_>)) {
        for c in text.chars() {
            fold(c, |c| self.take(c, each));
        }
        self.end(each);
    }

    fn take(&mut self, c: char, each: &mut impl FnMut(SplitWord<'_>)) {
        let kind = CharClass::from_char(c);
        match kind {
            CharClass::Gap => return self.end(each),
            CharClass::Dense => return self.dense(c, each),
            _ if self.last[0] == CharClass::Dense => self.end(each),
            _ => {}
        }
        let [last, before] = self.last;
        let at = match (before, last, kind) {
            (_, CharClass::Letter, CharClass::Capital)
            | (_, CharClass::Letter | CharClass::Capital, CharClass::Digit)
            | (_, CharClass::Digit, CharClass::Letter | CharClass::Capital) => {
                Some(self.word.len())
            }
            // The last capital of a row begins the next part: `HTTPServer`.
            (CharClass::Capital, CharClass::Capital, CharClass::Letter) => {
                Some(self.word.len() - self.last_bytes)
            }
            _ => None,
        };
        self.last = [kind, last];
        if self.length == WORD_CHARACTERS_MAX {
            return;
        }
        self.parts.extend(at.filter(|at| *at > 0));
        let begin = self.word.len();
        if c.is_ascii() {
            self.word.push(c.to_ascii_lowercase());
        } else {
            self.word.extend(c.to_lowercase());
        }
        self.last_bytes = self.word.len() - begin;
        self.length += 1;
    }

    /// A character by itself, and with its neighbour.
    fn dense(&mut self, c: char, each: &mut impl FnMut(SplitWord<'_>)) {
        if self.last[0] != CharClass::Dense {
            self.end(each);
        }
        let mut bytes = [0; 8];
        if let Some(neighbour) = self.neighbour {
            let first = neighbour.encode_utf8(&mut bytes).len();
            let both = first + c.encode_utf8(&mut bytes[first..]).len();
            let text = std::str::from_utf8(&bytes[..both]).unwrap_or_default();
            each(SplitWord {
                text,
                parts: &[],
                pair: true,
            });
        }
        each(SplitWord {
            text: c.encode_utf8(&mut bytes),
            parts: &[],
            pair: false,
        });
        self.neighbour = Some(c);
        self.last = [CharClass::Dense, CharClass::Gap];
    }

    /// Ends the word being read.
    fn end(&mut self, each: &mut impl FnMut(SplitWord<'_>)) {
        if !self.word.is_empty() {
            each(SplitWord {
                text: &self.word,
                parts: &self.parts,
                pair: false,
            });
        }
        self.word.clear();
        self.parts.clear();
        self.length = 0;
        self.last = [CharClass::Gap; 2];
        self.neighbour = None;
    }
}

/// A word as it was read.
#[derive(Debug)]
pub(super) struct SplitWord<'a> {
    text: &'a str,
    /// Where further parts begin.
    parts: &'a [usize],
    /// Whether it is two neighbours of a script without blanks.
    pair: bool,
}

impl SplitWord<'_> {
    /// The whole word, in lower case.
    pub(super) fn text(&self) -> &str {
        self.text
    }

    fn parts(&self, each: &mut impl FnMut(&str)) {
        let mut begin = 0;
        for end in self.parts.iter().copied().chain([self.text.len()]) {
            each(self.text.get(begin..end).unwrap_or_default());
            begin = end;
        }
    }

    fn parts_and_whole(&self, each: &mut impl FnMut(&str)) {
        self.parts(each);
        if !self.parts.is_empty() {
            each(self.text);
        }
    }
}

/// Whether a word of a question looks like data, such as an identifier: `kxr0C7al`. Its parts would
/// match tools that are not meant.
pub(super) fn is_data(word: &SplitWord<'_>) -> bool {
    let digit_then_letter = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic();
    let parts = word.parts.len() + 1;
    parts > 2
        && word.text.len() <= 2 * parts
        && word.text.as_bytes().windows(2).any(digit_then_letter)
}

/// A word without the ending of English plurals: `files` and `file` are one word, `queries` and
/// `query` too. Words that end in `-ie` get `-y` as well, so that `movies` and `movie` stay one. No
/// other ending is removed: on the corpus that the figures come from, removing `-ing` and `-ed` too
/// found fewer of the right tools.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    /// Not the plural of `new`.
    const NEWS: &str = "news";
    let singular = match word.strip_suffix('s') {
        Some(rest) if word != NEWS && rest.len() >= 3 && !rest.ends_with(['s', 'u', 'i']) => rest,
        _ => word,
    };
    match singular.strip_suffix("ie") {
        Some(rest) if rest.len() >= 2 => Cow::Owned(format!("{rest}y")),
        _ => Cow::Borrowed(singular),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_and_singulars_have_one_stem() {
        for (plural, singular) in [
            ("files", "file"),
            ("queries", "query"),
            ("categories", "category"),
            ("movies", "movie"),
            ("series", "series"),
        ] {
            assert_eq!(stem(plural), stem(singular), "{plural} and {singular}");
        }
    }

    #[test]
    fn words_that_only_look_like_plurals_keep_their_stem() {
        for (word, other) in [
            ("news", "new"),
            ("status", "statu"),
            ("address", "addres"),
            ("gas", "ga"),
            ("pie", "py"),
        ] {
            assert_ne!(stem(word), stem(other), "{word} and {other}");
        }
    }
}
