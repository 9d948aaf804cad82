//! Words of questions that say little of the tool that is wanted.
//!
//! They are passed over in questions only. The index has every word, and what is typed for a name
//! is looked for as it is.

/// In bytewise order: articles, pronouns, auxiliaries, prepositions, conjunctions, and what people
/// write around a request.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "against", "all", "already", "also", "although", "am", "an",
    "and", "any", "anyone", "anything", "are", "aren", "as", "at", "be", "because", "been",
    "before", "being", "between", "both", "but", "by", "can", "could", "couldn", "d", "did",
    "didn", "do", "does", "doesn", "doing", "don", "done", "during", "each", "either", "else",
    "ever", "every", "for", "from", "further", "get", "gets", "give", "got", "had", "has",
    "have", "having", "he", "hello", "help", "her", "here", "hers", "hey", "hi", "him", "his",
    "how", "i", "if", "in", "into", "is", "isn", "it", "its", "just", "know", "let", "lets",
    "like", "ll", "m", "make", "may", "me", "might", "mine", "must", "my", "myself", "need",
    "needed", "needs", "neither", "never", "no", "nor", "not", "of", "off", "ok", "okay", "on",
    "once", "only", "or", "ought", "our", "ours", "out", "over", "own", "please", "quite",
    "rather", "re", "really", "s", "same", "shall", "she", "should", "shouldn", "so", "some",
    "someone", "something", "still", "t", "tell", "than", "thank", "thanks", "that", "the",
    "their", "theirs", "them", "then", "there", "these", "they", "thing", "things", "this",
    "those", "though", "through", "to", "too", "under", "until", "us", "ve", "very", "want",
    "wanted", "wants", "was", "wasn", "way", "we", "were", "what", "when", "where", "which",
    "while", "who", "whom", "whose", "why", "will", "with", "won", "would", "wouldn", "yet",
    "you", "your", "yours",
];

/// Whether this word, in lower case, is one of them.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_in_order_and_each_is_found() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
        for word in STOP_WORDS {
            assert!(is_stop_word(word), "{word}");
        }
        assert!(!is_stop_word("weather"));
    }
}
