//! The palette: finds tools by the text that a user has typed so far.
//!
//! Tiers, best first: what is typed begins a name; every typed word is a word of the tool (the last
//! may be the beginning of a word of its name); every typed word is nearly a word of its name.
//! Within a tier, what was used most recently comes first; the client supplies the list of used
//! tools. For an empty text, only the tools used most recently are found.

use std::collections::HashMap;
use std::sync::Arc;

use super::distance::{forgiven, within};
use super::fields::Field;
use super::index::TermHash;
use super::rank::{ScoredTool, TermMatches};
use super::tokenizer::{Splitter, stem};
use super::{Fields, Hit};
use crate::catalog::View;
use crate::model::{ToolId, ViewTool};

/// The most typed words that are used: a longer text is no search for a name.
const WORDS: usize = 8;

/// How a tool fits what is being typed, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Its name or title begins with what was typed.
    Prefix,
    /// It has every typed word; the last one may be the beginning of a word of its name or title.
    Word,
    /// Its name or title has every typed word but for a slip or two.
    Fuzzy,
    /// The text is empty, and the tool was used before.
    Recent,
}

impl Tier {
    /// As it is written for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::Word => "word",
            Self::Fuzzy => "fuzzy",
            Self::Recent => "recent",
        }
    }
}

/// A tool that fits.
#[derive(Debug, Clone, Copy)]
struct PaletteMatch {
    tier: Tier,
    candidate: ScoredTool,
}

/// What was typed.
struct Typed {
    /// Everything, without separators.
    whole: String,
    /// The words as they are in names.
    words: Vec<String>,
    letters: Vec<Vec<char>>,
    terms: Vec<TermHash>,
}

impl Typed {
    fn parse(text: &str) -> Self {
        let mut whole = String::new();
        let mut words = Vec::new();
        Splitter::default().parts(text, |word| {
            if words.len() < WORDS {
                whole.push_str(word);
                words.push(word.to_owned());
            }
        });
        let letters = words.iter().map(|word| word.chars().collect()).collect();
        let terms = words
            .iter()
            .map(|word| TermHash::from_word(&stem(word)))
            .collect();
        Self {
            whole,
            words,
            letters,
            terms,
        }
    }
}

/// What hits are ordered by besides their score: tier and use before it, place in the view behind
/// it.
type Order = ((Tier, usize), (u32, u32));

impl View {
    /// The tools of this view by what was typed so far, in tiers (see [`Tier`]), at most `limit`.
    /// `recent` names the tools used before, the latest first. Deterministic, like [`View::rank`].
    pub fn palette(&self, typed: &str, recent: &[ToolId], limit: usize) -> Vec<Hit> {
        let used: HashMap<&ToolId, usize> = recent
            .iter()
            .enumerate()
            .rev()
            .map(|(at, id)| (id, at))
            .collect();
        let typed = Typed::parse(typed);
        if typed.words.is_empty() {
            return self.used(recent, limit);
        }
        let mut fits = HashMap::new();
        self.by_words(&typed, &mut fits);
        self.by_names(&typed, false, &mut fits);
        if fits.len() < limit {
            self.by_names(&typed, true, &mut fits);
        }
        let mut hits: Vec<_> = fits
            .into_values()
            .filter_map(|fit| self.palette_hit(fit, &used))
            .collect();
        hits.sort_unstable_by(|(a, a_place), (b, b_place)| {
            a_place
                .0
                .cmp(&b_place.0)
                .then(b.score.total_cmp(&a.score))
                .then(a_place.1.cmp(&b_place.1))
        });
        hits.into_iter().map(|(hit, _)| hit).take(limit).collect()
    }

    /// The hit, with what it is ordered by besides its score.
    fn palette_hit(
        &self,
        fit: PaletteMatch,
        used: &HashMap<&ToolId, usize>,
    ) -> Option<(Hit, Order)> {
        let PaletteMatch { tier, candidate } = fit;
        let hit = Hit {
            tier: Some(tier),
            ..candidate.hit(self)?
        };
        let use_of = used.get(&hit.tool.id).copied().unwrap_or(usize::MAX);
        Some((hit, ((tier, use_of), (candidate.part, candidate.tool))))
    }

    /// The tools that were used, the latest first.
    fn used(&self, recent: &[ToolId], limit: usize) -> Vec<Hit> {
        let find = |id: &ToolId| {
            let part = self
                .parts
                .binary_search_by(|part| part.entry.name.cmp(&id.scenario))
                .ok()?;
            let tools: &[Arc<ViewTool>] = &self.parts.get(part)?.tools;
            let at = tools
                .binary_search_by(|tool| tool.id.tool.cmp(&id.tool))
                .ok()?;
            let tool = Arc::clone(tools.get(at)?);
            Some(Hit {
                tool,
                score: 1.0,
                fields: Fields::default(),
                tier: Some(Tier::Recent),
            })
        };
        let mut hits: Vec<Hit> = Vec::new();
        for hit in recent.iter().filter_map(find) {
            if hits.len() < limit && !hits.iter().any(|known| known.tool.id == hit.tool.id) {
                hits.push(hit);
            }
        }
        hits
    }

    /// Tools that have every typed word somewhere.
    fn by_words(&self, typed: &Typed, fits: &mut HashMap<(u32, u32), PaletteMatch>) {
        let indices = TermMatches::indices(self);
        let found = TermMatches::look_up(self, &indices, &typed.terms);
        found.each(self, |candidate, weighed| {
            if (0..typed.terms.len()).all(|term| weighed.weight(term).is_some()) {
                fits.insert(
                    (candidate.part, candidate.tool),
                    PaletteMatch {
                        tier: Tier::Word,
                        candidate,
                    },
                );
            }
        });
    }

    /// Tools by their names: beginnings, or with `fuzzy` what is nearly right.
    fn by_names(&self, typed: &Typed, fuzzy: bool, fits: &mut HashMap<(u32, u32), PaletteMatch>) {
        let fields = Field::Name.bit();
        TermMatches::each_name(self, |part, tool, words| {
            let fit = if fuzzy {
                typed.nearly(words)
            } else {
                typed.begins(words)
            };
            let Some((tier, score)) = fit else { return };
            let fit = PaletteMatch {
                tier,
                candidate: ScoredTool {
                    score,
                    part,
                    tool,
                    fields,
                },
            };
            let known = fits.entry((part, tool)).or_insert(fit);
            if fit.tier < known.tier {
                let fields = known.candidate.fields | fields;
                *known = PaletteMatch {
                    candidate: ScoredTool {
                        fields,
                        ..fit.candidate
                    },
                    ..fit
                };
            }
        });
    }
}

impl Typed {
    /// Whether the name begins with what was typed, or has every typed word, the last as a
    /// beginning.
    fn begins(&self, words: &[(bool, &str)]) -> Option<(Tier, f32)> {
        let share = |name: &str| length(&self.whole) / length(name).max(1.0);
        let whole = words
            .iter()
            .filter(|(whole, name)| *whole && name.starts_with(&self.whole));
        if let Some(best) = whole.map(|(_, name)| share(name)).reduce(f32::max) {
            return Some((Tier::Prefix, best));
        }
        let (last, others) = self.words.split_last()?;
        let has = |typed: &String| words.iter().any(|(_, word)| word == typed);
        let begun = words
            .iter()
            .filter(|(_, word)| word.starts_with(last.as_str()));
        let best = begun
            .map(|(_, word)| length(last) / length(word).max(1.0))
            .reduce(f32::max)?;
        others.iter().all(has).then_some((Tier::Word, best))
    }

    /// Whether the name has every typed word but for slips, the last perhaps not finished.
    fn nearly(&self, words: &[(bool, &str)]) -> Option<(Tier, f32)> {
        let mut slips = 0;
        for (at, letters) in self.letters.iter().enumerate() {
            let open = at + 1 == self.letters.len();
            let costs = words
                .iter()
                .filter_map(|(_, word)| within(letters, word, forgiven(letters.len()), open));
            slips += costs.min()?;
        }
        Some((
            Tier::Fuzzy,
            1.0 / (1.0 + f32::from(u16::try_from(slips).unwrap_or(u16::MAX))),
        ))
    }
}

fn length(word: &str) -> f32 {
    f32::from(u16::try_from(word.len()).unwrap_or(u16::MAX))
}
