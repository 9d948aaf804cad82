//! "Did you mean": the known word nearest to one that is unknown.

use strsim::osa_distance;

/// The nearest of `known`, letter case aside, unless even that one is too far off to be what was
/// meant. The first of equals.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = word.chars().count().div_ceil(3);
    let word = word.to_lowercase();
    let distances = known
        .into_iter()
        .map(|other| (osa_distance(&word, &other.to_lowercase()), other));
    let (distance, best) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= near).then_some(best)
}
