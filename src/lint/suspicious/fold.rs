//! Letters that look alike or mean the same become one letter, so that a word is found in whatever
//! letters it is written.

use crate::model::fold::{fold, is_mark};
use crate::model::text::is_invisible;

/// Whether words of this letter's script stand without blanks between them.
pub(super) fn is_without_blanks(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

/// Whether a character belongs to a word.
pub(super) fn is_of_word(c: char) -> bool {
    // The vowel signs of Indian scripts are no letters to Unicode, and an invisible character
    // within a word does not end it.
    c.is_alphanumeric()
        || c == '_'
        || !c.is_ascii() && (is_mark(c) || is_vowel_sign(c) || is_invisible(c))
}

/// Writes a word in small letters without accents into `folded`. Letters of scripts without blanks
/// stay as they are: without the sign of a voiced kana, a word of Japanese is another one.
pub(super) fn fold_word(word: &str, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
        return;
    }
    for c in word.chars().filter(|c| !is_invisible(*c)) {
        if is_without_blanks(c) {
            folded.push(c);
        } else {
            let c = if c == '’' { '\'' } else { c };
            fold(c, |c| {
                folded.extend(c.to_lowercase().filter(|c| !is_vowel_sign(*c)));
            });
        }
    }
    let has_latin = folded.contains(|c: char| c.is_ascii_alphabetic());
    if has_latin && folded.contains(|c| matches!(c, '\u{370}'..='\u{52f}')) {
        *folded = folded.chars().map(latin_lookalike).collect();
    }
}

/// The dots and vowels of Indian scripts, and marks of Arabic that the search keeps.
fn is_vowel_sign(c: char) -> bool {
    matches!(c, '\u{610}'..='\u{61a}'
        | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{93c}' | '\u{93e}'..='\u{94f}')
}

/// The Latin letter that a Greek or Cyrillic one looks like, for words of both.
fn latin_lookalike(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'в' | 'ь' => 'b',
        'с' | 'ς' => 'c',
        'ԁ' => 'd',
        'е' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'ո' | 'η' | 'п' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_in_other_letters() {
        let mut folded = String::new();
        for word in [
            "ignore",
            "IGNORE",
            "ｉｇｎｏｒｅ",
            "𝐢𝐠𝐧𝐨𝐫𝐞",
            "ignоrе",
            "i\u{200b}gn\u{2060}ore",
            "ígnorè",
        ] {
            fold_word(word, &mut folded);
            assert_eq!(folded, "ignore", "{word}");
        }
        fold_word("Große", &mut folded);
        assert_eq!(folded, "grosse");
        fold_word("ﬁleⅧ", &mut folded);
        assert_eq!(
            folded, "fileviii",
            "a form for print is the letters that it stands for"
        );
        fold_word("しないで", &mut folded);
        assert_eq!(folded, "しないで", "a voiced kana stays");
        fold_word("порт", &mut folded);
        assert_eq!(folded, "порт", "a word of one script stays");
    }
}
