//! Characters as words of others are compared: without diacritics and compatibility forms.
//!
//! Never changes what is shown; only what is compared is made of it.

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

/// Compatibility decomposition (Unicode Standard Annex 15): `é` becomes `e` and a mark, `ﬁ` becomes
/// `fi`, `Ａ` becomes `A`.
const DECOMPOSE: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfkd();

/// Passes on the characters that `c` stands for, letter case kept. A mark stands for no character.
pub(crate) fn fold(c: char, mut each: impl FnMut(char)) {
    if c.is_ascii() {
        return each(c);
    }
    if let Some(letters) = spelled_out(c) {
        return letters.chars().for_each(each);
    }
    if matches!(c, '\u{ac00}'..='\u{d7a3}') {
        // A Hangul syllable is what its readers take for a letter; its parts are of no use as one.
        return each(c);
    }
    DECOMPOSE
        .normalize_iter(std::iter::once(c))
        .filter(|c| !is_mark(*c))
        .for_each(each);
}

/// Letters with a stroke or of two letters, which have no decomposition.
fn spelled_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'ħ' => "h",
        'Ħ' => "H",
        'þ' => "th",
        'Þ' => "Th",
        'ı' => "i",
        _ => return None,
    })
}

/// Marks that are put on letters and that people leave out when they type: diacritics, Hebrew
/// points, Arabic vowels, voicing of kana; and invisible characters within words. The vowel signs
/// of Indic scripts are none of these.
pub(crate) fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{3099}' | '\u{309a}'
        | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}
