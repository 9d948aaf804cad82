//! How far a mistyped word is from one that exists, up to a bound.

/// Characters of a word at most; longer ones are not compared.
const LONGEST: usize = 32;

/// Slips that are forgiven in a typed word of so many characters: none in a short one, where every slip gives another word.
pub(super) fn forgiven(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// How many characters must be put in, taken out, replaced or swapped with their neighbour (optimal string alignment) to make `word` of
/// `typed`, or with `open` the beginning of `word` that is nearest. `None` when that is more than `most`, or a word is too long.
pub(super) fn within(typed: &[char], word: &str, most: usize, open: bool) -> Option<usize> {
    let bytes = word.len();
    // A character has 1 to 4 bytes.
    if bytes * 4 < typed.len().saturating_sub(most)
        || typed.len() > LONGEST
        || (!open && bytes > 4 * (typed.len() + most))
    {
        return None;
    }
    let mut before: [usize; LONGEST + 1] = [0; LONGEST + 1];
    let mut last: [usize; LONGEST + 1] = std::array::from_fn(|at| at);
    let (mut best, mut previous) = (if open { last[typed.len()] } else { usize::MAX }, None);
    for (row, c) in (1..).zip(word.chars()) {
        if row > typed.len() + most {
            // No beginning this long is near enough.
            return (open && best <= most).then_some(best);
        }
        let mut now = [row; LONGEST + 1];
        for (at, t) in typed.iter().enumerate() {
            let mut cost = (last[at] + usize::from(*t != c)).min(last[at + 1] + 1).min(now[at] + 1);
            if at > 0 && Some(*t) == previous && typed[at - 1] == c {
                cost = cost.min(before[at - 1] + 1);
            }
            now[at + 1] = cost;
        }
        if open {
            best = best.min(now[typed.len()]);
        }
        if now[..=typed.len()].iter().all(|cost| *cost > most) {
            return (open && best <= most).then_some(best);
        }
        (before, last, previous) = (last, now, Some(c));
    }
    let cost = if open { best } else { last[typed.len()] };
    (cost <= most).then_some(cost)
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
    fn the_beginning_of_a_word_will_do_while_it_is_typed() {
        assert_eq!(cost("forcast", "forecasting", 1, true), Some(1));
        assert_eq!(cost("fore", "forecasting", 1, true), Some(0));
        assert_eq!(cost("zore", "forecasting", 1, true), Some(1));
        assert_eq!(cost("zozz", "forecasting", 1, true), None);
        assert_eq!(cost(&"x".repeat(40), &"x".repeat(40), 2, true), None);
    }
}
