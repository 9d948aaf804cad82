//! A scrape of `/metrics`, read line by line.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::serving::Answer;

/// Every sample by its name and labels as they are written, such as
/// `callsheet_scenarios{state="live"}`.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) text: String,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    /// Reads an answer in either format.
    pub(crate) fn parse(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{answer:?}");
        let text = String::from_utf8(answer.body.clone()).unwrap();
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with("# ")) {
            let (name, value) = line
                .rsplit_once(' ')
                .unwrap_or_else(|| panic!("no sample: {line}"));
            let value = value
                .parse()
                .unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(
                samples.insert(name.to_owned(), value).is_none(),
                "twice: {name}"
            );
        }
        Self { text, samples }
    }

    /// The value of a sample.
    pub(crate) fn value(&self, sample: &str) -> f64 {
        *self
            .samples
            .get(sample)
            .unwrap_or_else(|| panic!("{sample} is missing in\n{}", self.text))
    }

    pub(crate) fn has(&self, sample: &str) -> bool {
        self.samples.contains_key(sample)
    }

    /// How many samples there are whose name and labels begin like this.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.samples
            .keys()
            .filter(|name| name.starts_with(beginning))
            .count()
    }

    /// The names of all samples, without labels.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.samples
            .keys()
            .map(|name| name.split('{').next().unwrap())
            .collect()
    }
}
