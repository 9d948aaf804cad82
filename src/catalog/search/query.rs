//! The query of a search: its words, and which of them stand in one sentence.

use super::index::TermHash;
use super::stop_words::is_stop_word;
use super::tokenizer::{Splitter, is_data, stem};

/// Different words of a search that are looked up; further ones do not count.
pub const SEARCH_WORDS: usize = 256;
/// Sentences that are looked at by themselves; what follows counts as part of the last.
const SENTENCES: usize = 12;

/// A text, ready to be looked up.
#[derive(Debug, Default)]
pub(super) struct SearchQuery {
    /// Different terms, in the order in which they first occur.
    pub(super) terms: Vec<TermHash>,
    /// The terms of each sentence as places in `terms`; empty when there is only one sentence.
    pub(super) sentences: Vec<Vec<usize>>,
}

impl SearchQuery {
    /// Reads a question. Words that say little of what is wanted, such as `the` and `please`, count
    /// only where there is no other word.
    pub(super) fn parse(text: &str) -> Self {
        let query = Self::of_words(text, |word| !is_stop_word(word));
        if query.terms.is_empty() {
            Self::of_words(text, |_| true)
        } else {
            query
        }
    }

    fn of_words(text: &str, counts: impl Fn(&str) -> bool) -> Self {
        let mut query = Self::default();
        let mut splitter = Splitter::default();
        for sentence in sentences(text) {
            let mut places = Vec::new();
            for run in sentence.split_whitespace() {
                splitter.split_unless(
                    run,
                    |word| is_data(word) || is_stop_word(word.text()),
                    |word| {
                        if counts(word) {
                            query.put(TermHash::from_word(&stem(word)), &mut places);
                        }
                    },
                );
            }
            if !places.is_empty() {
                query.sentences.push(places);
            }
        }
        if query.sentences.len() < 2 {
            query.sentences.clear();
        }
        query
    }

    fn put(&mut self, term: TermHash, places: &mut Vec<usize>) {
        let known = self.terms.iter().position(|known| *known == term);
        let place = known.or_else(|| {
            (self.terms.len() < SEARCH_WORDS).then(|| {
                self.terms.push(term);
                self.terms.len() - 1
            })
        });
        places.extend(place.filter(|place| !places.contains(place)));
    }
}

/// The sentences of a text: each ends with a full stop or the like and a blank, or with its line.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while found.len() + 1 < SENTENCES {
        let Some(at) = rest
            .get(from..)
            .and_then(|rest| rest.find(ends_a_sentence))
            .map(|at| at + from)
        else {
            break;
        };
        let after = at + rest[at..].chars().next().map_or(1, char::len_utf8);
        let next = rest[after..].chars().next();
        let alone = rest[at..].starts_with(['\n', '。', '！', '？', '；']);
        if alone || next.is_some_and(char::is_whitespace) {
            found.push(&rest[..at]);
            (rest, from) = (&rest[after..], 0);
        } else {
            from = after;
        }
    }
    found.push(rest);
    found
}

fn ends_a_sentence(c: char) -> bool {
    matches!(c, '.' | ';' | '!' | '?' | '\n' | '。' | '！' | '？' | '；')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_people_end_them() {
        assert_eq!(sentences("a b. C d! E.f? g"), ["a b", " C d", " E.f", " g"]);
        assert_eq!(sentences("一。二\nthree.5"), ["一", "二", "three.5"]);
        assert_eq!(sentences(&"x. ".repeat(100)).len(), SENTENCES);
    }

    #[test]
    fn one_sentence_is_the_whole_text() {
        let query = SearchQuery::parse("read files. ");
        assert_eq!(query.terms.len(), 2);
        assert_eq!(query.sentences.len(), 0, "there is nothing in it");
        let query = SearchQuery::parse("read files. Send files.");
        assert_eq!(query.terms.len(), 3);
        assert_eq!(query.sentences, vec![vec![0, 1], vec![2, 1]]);
    }

    #[test]
    fn stop_words_count_only_where_there_is_no_other_word() {
        assert_eq!(
            SearchQuery::parse("how do I get the weather in Paris").terms,
            SearchQuery::parse("weather Paris").terms
        );
        assert_eq!(
            SearchQuery::parse("What's on? Please tell me").terms.len(),
            6
        );
        assert_eq!(SearchQuery::parse("the").terms.len(), 1);
    }

    #[test]
    fn the_words_that_are_looked_up_are_limited() {
        let long = (0..10_000)
            .map(|n| format!("w{n}x"))
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(SearchQuery::parse(&long).terms.len(), SEARCH_WORDS);
    }
}
