//! Reads a document: its fenced blocks, its headings, and the comments that say how a block is
//! tested.
//!
//! A comment in the line before a block has the form `<!-- test: ... -->`:
//!
//! | Comment | Meaning |
//! |---|---|
//! | none | a `sh` block runs as one script that must succeed |
//! | `ends with N` | a `sh` block runs as one script, whose exit code is N |
//! | `not run, REASON` | the block is not tested |
//! | `keeps running` | each line starts a program that runs until `stop all` or the end |
//! | `written to FILE` | the block is written to this file of the working folder |
//! | `stop all` | stands alone: every program that was started ends |
//!
//! A `toml` block must be a valid configuration unless it is not run.

use std::fs;
use std::path::{Path, PathBuf};

/// How a block is tested.
#[derive(Debug, PartialEq)]
pub(crate) enum Directive {
    /// The exit code that the script has to end with.
    Run(i32),
    NotRun,
    KeepsRunning,
    WrittenTo(String),
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Where it begins: `docs/getting-started.md:12`.
    pub(crate) location: String,
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) directive: Directive,
}

/// What a test does, in the order of the document.
#[derive(Debug)]
pub(crate) enum Step {
    Block(Block),
    StopAll,
}

/// A document of the repository.
pub(crate) struct Document {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every document in the root and in `docs/`: those for users.
pub(crate) fn documents() -> Vec<Document> {
    [root().to_owned(), root().join("docs")]
        .iter()
        .flat_map(|folder| documents_in(folder))
        .collect()
}

/// The same, and the pages in the folders of `docs/`.
pub(crate) fn all_documents() -> Vec<Document> {
    let folders = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pages = folders
        .filter(|path| path.is_dir())
        .flat_map(|folder| documents_in(&folder));
    documents().into_iter().chain(pages).collect()
}

fn documents_in(folder: &Path) -> Vec<Document> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_document = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let mut paths: Vec<PathBuf> = files.filter(is_document).collect();
    paths.sort();
    let relative = |path: &PathBuf| {
        path.strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    paths
        .iter()
        .map(|path| Document::read(&relative(path)))
        .collect()
}

impl Document {
    pub(crate) fn read(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: fs::read_to_string(root().join(path)).unwrap(),
        }
    }

    /// Its blocks and the comments between them.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut directive = Directive::Run(0);
        let mut lines = self.text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let line = line.trim();
            let location = format!("{}:{}", self.path, index + 1);
            if let Some(language) = line.strip_prefix("```") {
                let inside = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| line.trim() != "```");
                let text = inside.flat_map(|line| [line, "\n"]).collect();
                let directive = std::mem::replace(&mut directive, Directive::Run(0));
                steps.push(Step::Block(Block {
                    location,
                    language: language.to_owned(),
                    text,
                    directive,
                }));
            } else if let Some(comment) = line
                .strip_prefix("<!-- test: ")
                .and_then(|rest| rest.strip_suffix(" -->"))
            {
                match parse_directive(comment) {
                    Some(given) => directive = given,
                    None if comment == "stop all" => steps.push(Step::StopAll),
                    None => panic!("{location}: unknown directive `{comment}`"),
                }
            }
        }
        steps
    }

    /// Its blocks alone.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let blocks = self.steps().into_iter().filter_map(|step| match step {
            Step::Block(block) => Some(block),
            Step::StopAll => None,
        });
        blocks.collect()
    }

    /// Its lines outside of fenced blocks, with their numbers.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        let mut fenced = false;
        let mut prose = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                prose.push((index + 1, line));
            }
        }
        prose
    }

    /// The anchors of its headings, as code hosts make them: lower case, no punctuation, `-` for
    /// each blank.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings = self
            .prose()
            .into_iter()
            .filter(|(_, line)| line.starts_with('#'));
        let anchor = |line: &str| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c })
                .collect::<String>()
        };
        headings.map(|(_, line)| anchor(line)).collect()
    }
}

fn parse_directive(comment: &str) -> Option<Directive> {
    if comment.starts_with("not run, ") {
        return Some(Directive::NotRun);
    }
    if let Some(file) = comment.strip_prefix("written to ") {
        return Some(Directive::WrittenTo(file.to_owned()));
    }
    if let Some(code) = comment
        .strip_prefix("ends with ")
        .and_then(|code| code.parse().ok())
    {
        return Some(Directive::Run(code));
    }
    (comment == "keeps running").then_some(Directive::KeepsRunning)
}
