//! Names that are near to one that no tool or scenario has, for refusals that suggest them.

use std::fmt::Display;

/// The most names that are suggested.
pub const NEAR: usize = 5;
/// Largest number of names that are compared. That takes a few milliseconds; any client can request
/// unknown names as often as it likes.
const COMPARED: usize = 10_000;

/// The names that are nearest to `wanted`, nearest first. Of many names only the first are
/// compared.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = (&'a str, impl Display)>) -> Vec<String> {
    let wanted = wanted.to_ascii_lowercase();
    let near = |(name, shown): (&str, _)| Some((distance(&wanted, &name.to_ascii_lowercase())?, shown));
    let near = names.take(COMPARED).filter_map(near);
    let mut near: Vec<(usize, String)> = near.map(|(distance, shown)| (distance, shown.to_string())).collect();
    near.sort();
    near.dedup();
    near.into_iter().take(NEAR).map(|(_, text)| text).collect()
}

/// The distance between two names; `None` if they are too different. A name that contains the other
/// one counts as one typing error.
fn distance(a: &str, b: &str) -> Option<usize> {
    const NAME_CHARACTERS_MAX: usize = 100;
    if a.len() > NAME_CHARACTERS_MAX || b.len() > NAME_CHARACTERS_MAX {
        return None;
    }
    if a == b {
        return Some(0);
    }
    if a.len() >= 3 && b.contains(a) || b.len() >= 3 && a.contains(b) {
        return Some(1);
    }
    // Two swapped letters are two edits; a short name with two edits is another name.
    let limit = if a.len() < 4 { 1 } else { (a.len() / 4).clamp(2, 3) };
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    Some(strsim::levenshtein(a, b)).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(wanted: &str, names: &[&str]) -> Vec<String> {
        nearest(wanted, names.iter().map(|name| (*name, (*name).to_owned())))
    }

    #[test]
    fn offers_near_names_nearest_first() {
        let names = ["read_file", "read_files", "write_file", "list_issues", "Read_File2"];
        assert_eq!(near("read_file", &names), ["read_file", "Read_File2", "read_files"]);
        assert_eq!(near("raed_file", &names), ["read_file"]);
        assert_eq!(near("files", &names), ["read_files"]);
        assert!(near("deploy", &names).is_empty());
        assert_eq!(near("a", &["tool_a"; 9]), [""; 0]);
    }

    #[test]
    fn many_names_are_not_all_compared() {
        let names: Vec<String> = (0..=COMPARED).map(|n| format!("{n}_far_from_it")).collect();
        let names = || names.iter().map(|name| (name.as_str(), name));
        assert_eq!(nearest("9999_far_from_it", names())[0], "9999_far_from_it");
        let last = format!("{COMPARED}_far_from_it");
        assert!(!nearest(&last, names()).contains(&last));
    }

    #[test]
    fn offers_few() {
        let names: Vec<String> = (0..20).map(|n| format!("tool_{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(near("tool", &names).len(), NEAR);
    }
}
