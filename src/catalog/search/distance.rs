//! How far a mistyped word is from one that exists, up to a bound.

/// Characters of a word at most; longer ones are not compared.
const COMPARED_CHARACTERS_MAX: usize = 32;

/// Slips that are forgiven in a typed word of so many characters: none in a short one, where every
/// slip gives another word.
pub(super) fn forgiven(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// How many characters must be put in, taken out, replaced or swapped with their neighbour (optimal
/// string alignment) to make `word` of `typed`, or with `open` the beginning of `word` that is
/// nearest. `None` when that is more than `most`, or a word is too long.
pub(super) fn within(typed: &[char], word: &str, most: usize, open: bool) -> Option<usize> {
    let bytes = word.len();
    // A character has 1 to 4 bytes.
    if bytes * 4 < typed.len().saturating_sub(most)
        || typed.len() > COMPARED_CHARACTERS_MAX
        || (!open && bytes > 4 * (typed.len() + most))
    {
        return None;
    }
    if most == 0 {
        let mut letters = word.chars();
        let begins = typed.iter().all(|t| letters.next() == Some(*t));
        return (begins && (open || letters.next().is_none())).then_some(0);
    }
    if is_far(typed, word, most, open) {
        return None;
    }
    aligned(typed, word, most, open)
}

/// Whether letters that only one of the two has are too many: each of them is a slip of its own.
/// Distinguishes most words in a few instructions. Letters that share a bit are taken for the same,
/// which makes nothing far.
fn is_far(typed: &[char], word: &str, most: usize, open: bool) -> bool {
    let bits = |bits: u64, letter: char| bits | 1 << (u32::from(letter) % u64::BITS);
    let of_typed = typed.iter().copied().fold(0, bits);
    let of_word = word.chars().fold(0, bits);
    let missing = |from: u64, other: u64| (from & !other).count_ones() as usize;
    missing(of_typed, of_word) > most || !open && missing(of_word, of_typed) > most
}

/// The alignment itself, row by row of the word's characters.
#[expect(
    clippy::cast_possible_truncation,
    reason = "no row or column is beyond the longest word and what is forgiven"
)]
fn aligned(typed: &[char], word: &str, most: usize, open: bool) -> Option<usize> {
    let columns = typed.len();
    let most = most.min(COMPARED_CHARACTERS_MAX) as u8;
    let mut before = [0_u8; COMPARED_CHARACTERS_MAX + 1];
    let mut last: [u8; COMPARED_CHARACTERS_MAX + 1] = std::array::from_fn(|at| at as u8);
    let mut best = if open { last[columns] } else { u8::MAX };
    let mut previous = None;
    for (row, c) in (1..).zip(word.chars()) {
        if row > last_row(columns, most) {
            // No beginning this long is near enough.
            return (open && best <= most).then_some(usize::from(best));
        }
        let mut now = [row; COMPARED_CHARACTERS_MAX + 1];
        for (at, t) in typed.iter().enumerate() {
            let mut cost = (last[at] + u8::from(*t != c))
                .min(last[at + 1] + 1)
                .min(now[at] + 1);
            if at > 0 && Some(*t) == previous && typed[at - 1] == c {
                cost = cost.min(before[at - 1] + 1);
            }
            now[at + 1] = cost;
        }
        if open {
            best = best.min(now[columns]);
        }
        if now[..=columns].iter().all(|cost| *cost > most) {
            return (open && best <= most).then_some(usize::from(best));
        }
        (before, last, previous) = (last, now, Some(c));
    }
    let cost = if open { best } else { last[columns] };
    (cost <= most).then_some(usize::from(cost))
}

/// The last row that can matter.
#[expect(
    clippy::cast_possible_truncation,
    reason = "both are at most the longest word"
)]
fn last_row(columns: usize, most: u8) -> u8 {
    columns as u8 + most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(typed: &str, word: &str, most: usize, open: bool) -> Option<usize> {
        within(&typed.chars().collect::<Vec<_>>(), word, most, open)
    }

    #[test]
    fn slips_are_counted_up_to_the_bound() {
        assert_eq!(cost("wether", "weather", 1, false), Some(1));
        assert_eq!(cost("waether", "weather", 1, false), Some(1));
        assert_eq!(cost("weather", "weather", 0, false), Some(0));
        assert_eq!(cost("wetter", "weather", 1, false), None);
        assert_eq!(cost("kittem", "sitting", 2, false), None);
        assert_eq!(cost("forcast", "forecasting", 1, false), None);
        assert_eq!(cost("größe", "grösse", 2, false), Some(2));
    }

    #[test]
    fn distances_are_those_of_a_plain_alignment() {
        let letters = ["a", "b", "c", "é"];
        let words = |length: u32| {
            (0..4_usize.pow(length)).map(move |code| {
                (0..length)
                    .map(|at| letters[code / 4_usize.pow(at) % 4])
                    .collect::<String>()
            })
        };
        let all: Vec<String> = (1..5).flat_map(words).collect();
        for typed in all.iter().step_by(3) {
            let typed: Vec<char> = typed.chars().collect();
            for (word, most, open) in all.iter().flat_map(|word| {
                [
                    (word, 0, false),
                    (word, 0, true),
                    (word, 1, false),
                    (word, 2, true),
                ]
            }) {
                let found = within(&typed, word, most, open);
                assert_eq!(
                    found,
                    aligned(&typed, word, most, open),
                    "{typed:?} {word} {most} {open}"
                );
            }
        }
    }

    #[test]
    fn the_beginning_of_a_word_will_do_while_it_is_typed() {
        assert_eq!(cost("forcast", "forecasting", 1, true), Some(1));
        assert_eq!(cost("fore", "forecasting", 1, true), Some(0));
        assert_eq!(cost("zore", "forecasting", 1, true), Some(1));
        assert_eq!(cost("zozz", "forecasting", 1, true), None);
        assert_eq!(cost(&"x".repeat(40), &"x".repeat(40), 2, true), None);
    }
}
