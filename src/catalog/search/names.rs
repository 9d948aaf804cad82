//! The names of a scenario's tools as they are typed: words and whole names, folded. The only texts
//! of an index, since beginnings and mistyped words cannot be found by hashes.

use super::tokenizer::Splitter;
use crate::model::text::beginning;

/// A word of a tool's name or title.
#[derive(Debug, Clone, Copy)]
struct NameWord {
    begin: u32,
    tool: u32,
    length: u8,
    /// Whether it is not one word but all of a name without its separators.
    whole: bool,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    text: Box<str>,
    /// In the order of the tools.
    words: Box<[NameWord]>,
}

/// Names while they are gathered.
#[derive(Debug, Default)]
pub(super) struct ToolNamesBuilder {
    text: String,
    words: Vec<NameWord>,
}

impl ToolNamesBuilder {
    /// Adds a name or title of a tool.
    pub(super) fn put(&mut self, tool: u32, name: &str, splitter: &mut Splitter) {
        let mut whole = String::new();
        let first = self.words.len();
        splitter.parts(name, |word| {
            whole.push_str(word);
            self.word(tool, word, false);
        });
        if self.words.len() == first + 1 {
            // A name of one word is that word.
            self.words[first].whole = true;
        } else {
            self.word(tool, &whole, true);
        }
    }

    fn word(&mut self, tool: u32, word: &str, whole: bool) {
        let kept = beginning(word, usize::from(u8::MAX));
        let (Ok(begin), Ok(length)) = (u32::try_from(self.text.len()), u8::try_from(kept.len()))
        else {
            return;
        };
        if length > 0 {
            self.text.push_str(kept);
            self.words.push(NameWord {
                begin,
                tool,
                length,
                whole,
            });
        }
    }

    pub(super) fn finish(self) -> ToolNames {
        ToolNames {
            text: self.text.into(),
            words: self.words.into(),
        }
    }
}

impl ToolNames {
    /// Hands on each tool with the words of its names, each with whether it is a whole name.
    pub(super) fn each_tool(&self, mut each: impl FnMut(u32, &[(bool, &str)])) {
        let mut words = Vec::new();
        for of_tool in self.words.chunk_by(|a, b| a.tool == b.tool) {
            words.clear();
            words.extend(of_tool.iter().map(|word| {
                let begin = word.begin as usize;
                (
                    word.whole,
                    self.text
                        .get(begin..begin + usize::from(word.length))
                        .unwrap_or_default(),
                )
            }));
            each(of_tool[0].tool, &words);
        }
    }

    /// What it holds in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.words)
    }
}
