//! Texts to words: split where people and programs split them, folded, and for the ranking reduced to a light stem.
//!
//! `getWeatherForecast`, `get_weather_forecast` and `Get weather forecast` have the same words. What is written in one without a
//! separator is a word as a whole too, so that `GitHub` is found as `github` and as `hub`. Scripts without blanks between words give
//! single characters and pairs of neighbours.

use super::fold::fold;

/// Characters of a word at most; the rest of it is not looked at. Longer ones are data, not words.
const LONGEST: usize = 64;

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
    last: [Kind; 2],
    /// Bytes of the last character.
    last_bytes: usize,
    /// The last character when it is one of a script without blanks.
    neighbour: Option<char>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
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

impl Kind {
    fn of(c: char) -> Self {
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
        for c in text.chars() {
            fold(c, |c| self.take(c, &mut each));
        }
        self.end(&mut each);
    }

    fn take(&mut self, c: char, each: &mut impl FnMut(&str)) {
        let kind = Kind::of(c);
        match kind {
            Kind::Gap => return self.end(each),
            Kind::Dense => return self.dense(c, each),
            _ if self.last[0] == Kind::Dense => self.end(each),
            _ => {}
        }
        let [last, before] = self.last;
        let at = match (before, last, kind) {
            (_, Kind::Letter, Kind::Capital)
            | (_, Kind::Letter | Kind::Capital, Kind::Digit)
            | (_, Kind::Digit, Kind::Letter | Kind::Capital) => Some(self.word.len()),
            // The last capital of a row begins the next part: `HTTPServer`.
            (Kind::Capital, Kind::Capital, Kind::Letter) => Some(self.word.len() - self.last_bytes),
            _ => None,
        };
        self.last = [kind, last];
        if self.length == LONGEST {
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
    fn dense(&mut self, c: char, each: &mut impl FnMut(&str)) {
        if self.last[0] != Kind::Dense {
            self.end(each);
        }
        let mut bytes = [0; 8];
        if let Some(neighbour) = self.neighbour {
            let first = neighbour.encode_utf8(&mut bytes).len();
            let both = first + c.encode_utf8(&mut bytes[first..]).len();
            each(std::str::from_utf8(&bytes[..both]).unwrap_or_default());
        }
        each(c.encode_utf8(&mut bytes));
        self.neighbour = Some(c);
        self.last = [Kind::Dense, Kind::Gap];
    }

    /// Ends the word being read.
    fn end(&mut self, each: &mut impl FnMut(&str)) {
        if !self.word.is_empty() {
            if !self.parts.is_empty() {
                let mut begin = 0;
                for end in self.parts.iter().copied().chain([self.word.len()]) {
                    each(self.word.get(begin..end).unwrap_or_default());
                    begin = end;
                }
            }
            each(&self.word);
        }
        self.word.clear();
        self.parts.clear();
        self.length = 0;
        self.last = [Kind::Gap; 2];
        self.neighbour = None;
    }
}

/// A word without the endings that English puts on nouns: `files` and `file` are one, `queries` and `query` too. Nothing else is taken
/// off: see the figures in the module's head for what stronger stemming is worth.
pub(super) fn stem(word: &str) -> &str {
    let Some(rest) = word.strip_suffix('s') else { return word };
    if rest.len() < 3 || rest.ends_with(['s', 'u', 'i']) { word } else { rest }
}
