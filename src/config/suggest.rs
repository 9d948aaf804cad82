//! "Did you mean": the known word nearest to one that is unknown.

/// The nearest of `known`, unless even that one is too far off to be what was meant. The first of equals.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = word.chars().count().div_ceil(3);
    let (distance, best) = known.into_iter().map(|other| (distance(word, other), other)).min_by_key(|(d, _)| *d)?;
    (distance <= near).then_some(best)
}

/// How many characters must be put in, taken out, replaced or swapped with their neighbour to make one word of the other, letter case
/// aside (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|word| word.to_lowercase().chars().collect::<Vec<_>>());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    let cell = |rows: &[Vec<usize>], i: usize, j: usize| rows.get(i).and_then(|row| row.get(j)).copied();
    for i in 1..=a.len() {
        rows.push(vec![i]);
        for j in 1..=b.len() {
            let replaced = cell(&rows, i - 1, j - 1).map(|d| d + usize::from(a.get(i - 1) != b.get(j - 1)));
            let taken_out = cell(&rows, i - 1, j).map(|d| d + 1);
            let put_in = cell(&rows, i, j - 1).map(|d| d + 1);
            let crossed = i > 1 && j > 1 && a.get(i - 1) == b.get(j - 2) && a.get(i - 2) == b.get(j - 1);
            let swapped = if crossed { cell(&rows, i - 2, j - 2).map(|d| d + 1) } else { None };
            let best = [replaced, taken_out, put_in, swapped].into_iter().flatten().min().unwrap_or_default();
            if let Some(row) = rows.last_mut() {
                row.push(best);
            }
        }
    }
    cell(&rows, a.len(), b.len()).unwrap_or_default()
}
