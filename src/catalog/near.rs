//! Names that are near to one that no tool or scenario has, for refusals that suggest them.

use std::fmt::Display;

/// The most names that are suggested.
pub const NEAR: usize = 5;
/// Largest number of names that are looked at.
const NAMES_MAX: usize = 10_000;
/// The most pairs of characters that are compared, which takes some two milliseconds: any client
/// can request unknown names as often as it likes.
const PAIRS_MAX: usize = 200_000;
/// The longest names that are compared.
const NAME_BYTES_MAX: usize = 100;

/// The names that are nearest to `wanted`, nearest first. Of many names only the first are
/// compared.
pub fn nearest<'a>(
    wanted: &str,
    names: impl Iterator<Item = (&'a str, impl Display)>,
) -> Vec<String> {
    let mut comparison = Comparison::with(wanted);
    let mut near = Vec::new();
    for (name, shown) in names.take(NAMES_MAX) {
        if let Some(distance) = comparison.distance(name) {
            near.push((distance, shown.to_string()));
        }
    }
    near.sort();
    near.dedup();
    near.into_iter().take(NEAR).map(|(_, text)| text).collect()
}

/// The comparison of one name with others.
struct Comparison {
    wanted: String,
    characters: u64,
    /// The edits after which a name is another one. Two swapped letters are two edits; a short name
    /// with two edits is another name.
    edits_max: usize,
    pairs_left: usize,
}

impl Comparison {
    fn with(wanted: &str) -> Self {
        let wanted = wanted.to_ascii_lowercase();
        let edits_max = if wanted.len() < 4 {
            1
        } else {
            (wanted.len() / 4).clamp(2, 3)
        };
        Self {
            characters: characters(&wanted),
            edits_max,
            pairs_left: PAIRS_MAX,
            wanted,
        }
    }

    /// The distance to a name; `None` if they are too different. A name that contains the other one
    /// counts as one typing error.
    fn distance(&mut self, name: &str) -> Option<usize> {
        let wanted = self.wanted.as_str();
        if wanted.len() > NAME_BYTES_MAX || name.len() > NAME_BYTES_MAX {
            return None;
        }
        let name = name.to_ascii_lowercase();
        if wanted == name {
            return Some(0);
        }
        if wanted.len() >= 3 && name.contains(wanted) || name.len() >= 3 && wanted.contains(&name) {
            return Some(1);
        }
        // An edit takes one character away and adds one, at most.
        let differing = (self.characters ^ characters(&name)).count_ones() as usize;
        if wanted.len().abs_diff(name.len()) > self.edits_max || differing > 2 * self.edits_max {
            return None;
        }
        self.pairs_left = self.pairs_left.checked_sub(wanted.len() * name.len())?;
        Some(strsim::levenshtein(wanted, &name)).filter(|edits| *edits <= self.edits_max)
    }
}

/// The characters of a text, each as one of 64 bits.
fn characters(text: &str) -> u64 {
    text.bytes().fold(0, |set, byte| set | 1 << (byte % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(wanted: &str, names: &[&str]) -> Vec<String> {
        nearest(wanted, names.iter().map(|name| (*name, (*name).to_owned())))
    }

    #[test]
    fn offers_near_names_nearest_first() {
        let names = [
            "read_file",
            "read_files",
            "write_file",
            "list_issues",
            "Read_File2",
        ];
        assert_eq!(
            near("read_file", &names),
            ["read_file", "Read_File2", "read_files"]
        );
        assert_eq!(near("raed_file", &names), ["read_file"]);
        assert_eq!(near("files", &names), ["read_files"]);
        assert!(near("deploy", &names).is_empty());
        assert_eq!(near("a", &["tool_a"; 9]), [""; 0]);
    }

    #[test]
    fn many_names_are_not_all_compared() {
        let names: Vec<String> = (0..=NAMES_MAX)
            .map(|n| format!("{n}_far_from_it"))
            .collect();
        let names = || names.iter().map(|name| (name.as_str(), name));
        assert_eq!(nearest("9999_far_from_it", names())[0], "9999_far_from_it");
        let last = format!("{NAMES_MAX}_far_from_it");
        assert!(!nearest(&last, names()).contains(&last));
    }

    #[test]
    fn long_names_that_are_alike_are_compared_until_the_work_is_done() {
        let alike = |number: usize| format!("{number:05}{}", "abcdefghij".repeat(5));
        let names: Vec<String> = (0..1_000).map(alike).collect();
        let mut comparison = Comparison::with(&"jihgfedcba".repeat(5));
        assert!(names.iter().all(|name| comparison.distance(name).is_none()));
        assert!(
            comparison.pairs_left > 0,
            "digits that differ rule these out"
        );
        let wanted = alike(70_000).replace(['a', 'c'], "b");
        let mut comparison = Comparison::with(&wanted);
        for _ in 0..2 {
            for name in &names {
                comparison.distance(name);
            }
        }
        assert!(comparison.pairs_left < 55 * 55, "{}", comparison.pairs_left);
    }

    #[test]
    fn offers_few() {
        let names: Vec<String> = (0..20).map(|n| format!("tool_{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(near("tool", &names).len(), NEAR);
    }
}
