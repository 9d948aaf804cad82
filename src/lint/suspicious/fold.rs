//! Letters that look alike or mean the same become one letter, so that a word is found in whatever
//! letters it is written.

use crate::model::text::is_invisible;

/// Whether words of this letter's script stand without blanks between them.
pub(super) fn is_without_blanks(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

/// Whether a character belongs to a word.
pub(super) fn is_of_word(c: char) -> bool {
    // The vowel signs of Indian scripts are no letters to Unicode, and an invisible character
    // within a word does not end it.
    c.is_alphanumeric() || c == '_' || !c.is_ascii() && (is_mark(c) || is_invisible(c))
}

/// Writes a word in small letters without accents into `folded`.
pub(super) fn fold_word(word: &str, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(word);
        folded.make_ascii_lowercase();
        return;
    }
    let mut has_latin = false;
    let mut has_lookalikes = false;
    for c in word.chars().filter(|c| !is_mark(*c) && !is_invisible(*c)) {
        let c = if c == '’' { '\'' } else { c };
        let base = without_accent(plain(c));
        has_latin |= base.is_ascii_alphabetic();
        has_lookalikes |= matches!(base, '\u{370}'..='\u{52f}');
        folded.push(base);
        if c == 'ß' {
            folded.push('s');
        }
    }
    if has_latin && has_lookalikes {
        *folded = folded.chars().map(latin_lookalike).collect();
    }
}

/// Marks that change a letter: accents, and the dots and vowels of Arabic and Indian scripts.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}'
        | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{93c}' | '\u{93e}'..='\u{94f}')
}

/// The small letter that a wide or mathematical letter stands for.
fn plain(c: char) -> char {
    const LETTERS: u32 = 26;
    let letter = |index: u32| char::from(b'a' + u8::try_from(index % LETTERS).unwrap_or_default());
    match c {
        '\u{ff21}'..='\u{ff3a}' => letter(u32::from(c) - 0xff21),
        '\u{ff41}'..='\u{ff5a}' => letter(u32::from(c) - 0xff41),
        '\u{1d400}'..='\u{1d6a3}' => letter(u32::from(c) - 0x1d400),
        '\u{24b6}'..='\u{24e9}' => letter(u32::from(c) - 0x24b6),
        _ => c.to_lowercase().next().unwrap_or(c),
    }
}

/// The letter without what stands above or below it.
fn without_accent(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'è'..='ë' | 'ē' | 'ę' | 'ě' => 'e',
        'ğ' => 'g',
        'ì'..='ï' | 'ī' | 'ı' => 'i',
        'ł' | 'ľ' => 'l',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ř' => 'r',
        'ś' | 'š' | 'ş' | 'ß' | 'ș' => 's',
        'ť' | 'ț' => 't',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ё' => 'е',
        'أ' | 'إ' | 'آ' => 'ا',
        other => other,
    }
}

/// The Latin letter that a Greek or Cyrillic one looks like, for words of both.
fn latin_lookalike(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'в' | 'ь' => 'b',
        'с' | 'ϲ' => 'c',
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
        fold_word("порт", &mut folded);
        assert_eq!(folded, "порт", "a word of one script stays");
    }
}
