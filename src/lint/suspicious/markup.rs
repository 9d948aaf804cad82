//! Rules about what is not shown to a person, or pretends not to be the provider's text.

use std::ops::Range;

use super::reading::Reading;
use super::words::Classes;
use crate::model::text::beginning;

/// Blanks one after the other that no layout needs.
const BLANKS_MIN: usize = 100;
/// Line ends one after the other that no layout needs.
const LINE_ENDS_MIN: usize = 15;
/// Words of a comment that is a sentence and no marker.
const COMMENT_WORDS_MIN: usize = 6;
/// Bytes of a tag that are looked at.
const TAG_BYTES_MAX: usize = 300;
/// Brackets of a text that are looked at, since each costs up to a window.
const MARKS_MAX: usize = 200;
/// Bytes of a comment that are looked at.
const COMMENT_BYTES_MAX: usize = 2_000;

/// Characters before an answer of the model in which a text says that it is an example.
const EXAMPLE_REACH_CHARACTERS: usize = 500;

/// Words behind a pretended heading by which it speaks to a model.
const ADDRESSED: Classes = Classes::MUST
    .with(Classes::YOU)
    .with(Classes::IGNORE)
    .with(Classes::NOT)
    .with(Classes::SYSTEM)
    .with(Classes::INSTRUCTIONS)
    .with(Classes::SEND);

/// Words by which even a short comment speaks to a model.
const OF_MODEL: Classes = Classes::MODEL.with(Classes::INSTRUCTIONS);

/// Sequences that a terminal obeys: they erase, overwrite or colour what is shown before a person
/// has read it, while a model reads all of it. No description needs one: `ESC [8m`, `ESC ]8;;`, a
/// carriage return within a line.
pub(super) fn control_sequence(reading: &Reading<'_>) -> Option<Range<usize>> {
    let bytes = reading.text.as_bytes();
    let found = memchr::memchr2_iter(0x1b, b'\r', bytes).find(|at| {
        let next = bytes.get(at + 1).copied();
        if bytes[*at] == b'\r' {
            next.is_some_and(|next| !b"\n\r".contains(&next))
        } else {
            next.is_some_and(|next| b"[]P_^(c".contains(&next))
        }
    });
    found.map(|at| at..beginning(reading.text, at + 40).len())
}

/// Text after so many blanks or empty lines that a window does not show it: a person takes the
/// text to be over.
pub(super) fn out_of_sight(reading: &Reading<'_>) -> Option<Range<usize>> {
    let text = reading.text;
    let end = text.len();
    let words = (0..reading.words.len()).filter_map(|at| reading.place(at));
    let mut gap_start = 0;
    for word in words.chain(std::iter::once(end..end)) {
        let gap = &text[gap_start..word.start];
        let behind = Some(gap).filter(|gap| gap.len() >= LINE_ENDS_MIN);
        let at = behind.and_then(end_of_blanks).map(|at| gap_start + at);
        if let Some(at) = at.filter(|at| *at < end) {
            return Some(at..beginning(text, at + 80).len());
        }
        gap_start = word.end;
    }
    None
}

/// The end of so many blanks or line ends between two words.
fn end_of_blanks(gap: &str) -> Option<usize> {
    let mut blanks = 0;
    let mut line_ends = 0;
    for (at, c) in gap.char_indices() {
        if c == '\n' {
            line_ends += 1;
            blanks = 0;
        } else if c.is_whitespace() {
            blanks += 1;
        } else if blanks >= BLANKS_MIN || line_ends >= LINE_ENDS_MIN {
            return Some(at);
        } else {
            blanks = 0;
            line_ends = 0;
        }
    }
    (blanks >= BLANKS_MIN || line_ends >= LINE_ENDS_MIN).then_some(gap.len())
}

/// Comments of HTML and Markdown, and elements that are not shown: a page that renders the text
/// leaves them out, and a model reads them. Honest tools write comments and look for them, so one
/// counts only where it speaks to a model; a short one has to have more of that, and one of a
/// program has to name the model.
pub(super) fn comment(reading: &Reading<'_>) -> Option<Range<usize>> {
    let text = reading.text;
    let bytes = text.as_bytes();
    let of_pages = memchr::memchr2_iter(b'<', b'[', bytes).take(MARKS_MAX);
    let of_programs = memchr::memchr2_iter(b'*', b'#', bytes)
        .filter_map(|second| second.checked_sub(1))
        .filter(|at| matches!(&bytes[*at..*at + 2], b"/*" | b"{#"))
        .take(MARKS_MAX);
    of_pages
        .chain(of_programs)
        .filter(|at| !is_quoted(text, *at))
        .find_map(|at| {
            let window = beginning(&text[at..], COMMENT_BYTES_MAX);
            let hidden = HiddenPart::at_start_of(window)?;
            hidden.speaks().then_some(at..at + hidden.bytes)
        })
}

/// How a part of a text is not shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hiding {
    /// A comment of a page.
    Page,
    /// A comment of a program or a template, which honest texts speak of.
    Program,
    /// An element that is styled so that it is not shown.
    Element,
}

/// How a comment begins and ends.
struct CommentForm {
    opens: &'static str,
    closes: &'static str,
    hiding: Hiding,
}

/// Every form of a comment.
const COMMENT_FORMS: [CommentForm; 5] = [
    CommentForm {
        opens: "<!--",
        closes: "-->",
        hiding: Hiding::Page,
    },
    CommentForm {
        opens: "[//]: #",
        closes: "\n",
        hiding: Hiding::Page,
    },
    CommentForm {
        opens: "[comment]: ",
        closes: "\n",
        hiding: Hiding::Page,
    },
    CommentForm {
        opens: "/*",
        closes: "*/",
        hiding: Hiding::Program,
    },
    CommentForm {
        opens: "{#",
        closes: "#}",
        hiding: Hiding::Program,
    },
];

/// A part of a text that a page does not show.
struct HiddenPart<'t> {
    inner: &'t str,
    /// Bytes up to its end.
    bytes: usize,
    hiding: Hiding,
}

impl<'t> HiddenPart<'t> {
    /// The one that the window begins with.
    fn at_start_of(window: &'t str) -> Option<Self> {
        for form in &COMMENT_FORMS {
            let Some(inner) = window.strip_prefix(form.opens) else {
                continue;
            };
            let length = inner.find(form.closes);
            // `src/*.rs` and `{#if}` begin no comment.
            let is_comment = length.is_some() && inner.starts_with(char::is_whitespace);
            if form.hiding == Hiding::Program && !is_comment {
                return None;
            }
            let length = length.unwrap_or(inner.len());
            return Some(Self {
                inner: &inner[..length],
                bytes: form.opens.len() + length,
                hiding: form.hiding,
            });
        }
        let bytes = window.find("</").unwrap_or(window.len());
        let start = window.find('>').map_or(0, |end| (end + 1).min(bytes));
        is_hidden_element(window).then_some(Self {
            inner: &window[start..bytes],
            bytes,
            hiding: Hiding::Element,
        })
    }

    /// Whether it says something to a model.
    fn speaks(&self) -> bool {
        let inner = Reading::new(self.inner, false);
        let says = |classes: Classes| inner.having(classes).next().is_some();
        if inner.words.len() < 2 {
            return false;
        }
        match self.hiding {
            Hiding::Element => true,
            Hiding::Program => says(Classes::MODEL) && says(Classes::MUST.with(Classes::YOU)),
            Hiding::Page if inner.words.len() < COMMENT_WORDS_MIN => says(OF_MODEL),
            Hiding::Page => says(OF_MODEL.with(Classes::YOU).with(Classes::USER)),
        }
    }
}

/// Whether an element is styled so that it is not shown.
fn is_hidden_element(window: &str) -> bool {
    let Some(tag) = window
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
        .map(|(tag, _)| tag)
    else {
        return false;
    };
    if tag.len() > TAG_BYTES_MAX || !tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let tag: String = tag
        .chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect();
    let styles = [
        "display:none",
        "visibility:hidden",
        "font-size:0",
        "opacity:0",
        "color:transparent",
        "color:white",
        "color:#fff",
    ];
    tag.contains("style=") && styles.iter().any(|style| tag.contains(style))
}

/// Names in tags by which vendors mark who speaks.
const SPEAKERS: [&str; 12] = [
    "system",
    "sys",
    "assistant",
    "developer",
    "admin",
    "instructions",
    "instruction",
    "system_prompt",
    "systemprompt",
    "system-reminder",
    "system_instruction",
    "system_instructions",
];
/// Names in tags that claim the model's attention, and describe no value.
const CLAIMS: [&str; 14] = [
    "important",
    "critical",
    "secret",
    "hidden",
    "override",
    "mandatory",
    "urgent",
    "priority",
    "attention",
    "warning",
    "important_instructions",
    "hidden_instructions",
    "new_instructions",
    "must_read",
];

/// What a speaker's tag may be about.
const SPEECHES: [&str; 9] = [
    "instruction",
    "instructions",
    "message",
    "prompt",
    "directive",
    "note",
    "override",
    "reminder",
    "rules",
];

/// Tags that mark who speaks to a model: `<system>`, `<IMPORTANT>`, `[INST]`, `<|im_start|>`,
/// `<<SYS>>`, `[SYSTEM DIRECTIVE]`. A provider's text that has them pretends to be another's. A
/// placeholder (`<system>|<code>`) has no sentence after it, and one in backticks is spoken of.
pub(super) fn pretended_tag(reading: &Reading<'_>) -> Option<Range<usize>> {
    let text = reading.text;
    for at in memchr::memchr2_iter(b'<', b'[', text.as_bytes()).take(MARKS_MAX) {
        let rest = &text[at..];
        let window = beginning(rest, TAG_BYTES_MAX);
        let length = vendor_mark(window)
            .filter(|_| !is_named_mark(&text[..at]))
            .or_else(|| speaker_tag(text, at, window))
            .or_else(|| directive(window));
        if let Some(length) = length.filter(|_| !is_quoted(text, at)) {
            return Some(at..beginning(text, at + length + 80).len());
        }
    }
    pretended_speaker(reading)
        .or_else(|| pretended_heading(text))
        .or_else(|| pretended_answer(text))
}

/// Whether the words before a mark say that it is one: `the tokens <|im_start|> and <|im_end|>`.
fn is_named_mark(before: &str) -> bool {
    let start = before.len()
        - before
            .chars()
            .rev()
            .take(40)
            .map(char::len_utf8)
            .sum::<usize>();
    let near = before[start..].to_ascii_lowercase();
    ["token", "marker", "delimiter", "tags"]
        .iter()
        .any(|word| near.contains(word))
}

/// A heading within a text that announces a message of the system: `### New system message ###`.
fn pretended_heading(text: &str) -> Option<Range<usize>> {
    let marks = memchr::memmem::find_iter(text.as_bytes(), b"###").take(MARKS_MAX);
    marks.into_iter().find_map(|at| {
        let behind = text[at..].trim_start_matches('#');
        let start = text.len() - behind.len();
        let window = beginning(behind, 40);
        let heading = window.split(['#', '\n', ':']).next().unwrap_or_default();
        let words: Vec<String> = heading.split_whitespace().map(str::to_lowercase).collect();
        let is_pair = |pair: &[String]| {
            SPEAKERS.contains(&pair[0].as_str()) && SPEECHES.contains(&pair[1].as_str())
        };
        let is_heading = words.len() <= 4 && words.windows(2).any(is_pair);
        is_heading.then(|| at..beginning(text, start + heading.len() + 80).len())
    })
}

/// An answer of the model that the text gives in its place: `Assistant: sure, I will ...`. The
/// dialogue of an example has none that agrees to an order.
fn pretended_answer(text: &str) -> Option<Range<usize>> {
    const AGREES: [&str; 10] = [
        "sure",
        "of course",
        "done",
        "certainly",
        "okay",
        "ok,",
        "understood",
        "i will",
        "i'll",
        "absolutely",
    ];
    let colons = memchr::memchr_iter(b':', text.as_bytes()).take(MARKS_MAX);
    colons.into_iter().find_map(|colon| {
        let before = &text[..colon];
        let bytes = before.as_bytes();
        let speaker = ["assistant", "ai", "model"].into_iter().find(|speaker| {
            let start = bytes.len().checked_sub(speaker.len());
            start.is_some_and(|start| {
                let is_word = start == 0 || !bytes[start - 1].is_ascii_alphanumeric();
                is_word && bytes[start..].eq_ignore_ascii_case(speaker.as_bytes())
            })
        })?;
        let start = colon - speaker.len();
        let said = beginning(text[colon + 1..].trim_start(), 20).to_lowercase();
        let agrees = AGREES.iter().any(|word| said.starts_with(word));
        let is_example = || {
            let near = before.char_indices().rev().nth(EXAMPLE_REACH_CHARACTERS);
            let near = &before[near.map_or(0, |(at, _)| at)..];
            near.to_ascii_lowercase().contains("example")
        };
        (agrees && !is_example()).then(|| start..beginning(text, colon + 80).len())
    })
}

/// Marks of the vendors' own templates, which no text has by chance.
fn vendor_mark(window: &str) -> Option<usize> {
    let folded = beginning(window, 40).to_ascii_lowercase();
    for mark in [
        "[inst]",
        "[/inst]",
        "<<sys>>",
        "<</sys>>",
        "[system_prompt]",
        "[available_tools]",
        "<start_of_turn>",
        "<end_of_turn>",
    ] {
        if folded.starts_with(mark) {
            return Some(mark.len());
        }
    }
    let inner = folded.strip_prefix("<|")?.split_once("|>")?.0;
    let is_mark = inner.starts_with("im_")
        || inner.starts_with("start_")
        || inner.starts_with("end_")
        || inner.contains("header")
        || [
            "system",
            "user",
            "assistant",
            "begin_of_text",
            "eot_id",
            "endofprompt",
            "channel",
            "message",
            "tool",
            "return",
        ]
        .contains(&inner);
    is_mark.then_some(inner.len() + 4)
}

/// A tag of a speaker, or one that claims attention, around text or before a sentence.
fn speaker_tag(text: &str, at: usize, window: &str) -> Option<usize> {
    let tag = window.strip_prefix('<')?.split_once('>')?.0;
    let name: String = tag.trim().to_lowercase().replace([' ', '-'], "_");
    let is_speech = name.rsplit_once('_').is_some_and(|(speaker, kind)| {
        let first = speaker.split('_').next().unwrap_or_default();
        (SPEAKERS.contains(&first) || CLAIMS.contains(&first)) && SPEECHES.contains(&kind)
    });
    if !is_speech && !CLAIMS.contains(&name.as_str()) && !SPEAKERS.contains(&name.as_str()) {
        return None;
    }
    let behind = &window[tag.len() + 2..];
    let closing = format!("</{}", beginning(tag, 4));
    let before = text[..at].trim_end_matches(' ');
    let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':', '>', '\n', '。']);
    // `ssh <system> <command>` has two placeholders.
    let is_placeholder = behind.trim_start().starts_with(['<', '[', '-', '|', '/']);
    let has_sentence = begins && !is_placeholder && Reading::new(behind, false).words.len() >= 2;
    (behind.contains(&closing) || has_sentence).then_some(tag.len() + 2)
}

/// A bracket such as `[SYSTEM OVERRIDE]` or `[HIDDEN INSTRUCTION]`.
fn directive(window: &str) -> Option<usize> {
    let inner = window.strip_prefix('[')?.split_once(']')?.0;
    if inner.len() > 60 || window[inner.len() + 2..].starts_with('(') {
        return None;
    }
    let words: Vec<String> = inner
        .split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let is_of_speaker = has(&[
        "system",
        "admin",
        "developer",
        "hidden",
        "secret",
        "ai",
        "model",
        "assistant",
        "llm",
        "metadata",
        "configuration",
        "role",
        "priority",
    ]);
    let is_order = has(&[
        "directive",
        "override",
        "instruction",
        "instructions",
        "message",
        "note",
        "prompt",
        "command",
        "notice",
    ]);
    let is_closed = is_of_speaker && words.len() == 1 && window.contains(&format!("[/{inner}]"));
    (is_closed || is_of_speaker && is_order && words.len() <= 5).then_some(inner.len() + 2)
}

/// A line that begins as a turn of somebody else: `SYSTEM: you must ...`, `### Instruction: ...`.
fn pretended_speaker(reading: &Reading<'_>) -> Option<Range<usize>> {
    let text = reading.text;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start().trim_start_matches(['#', '*', '-', ' ']);
        let speaker = bare
            .split_once(':')
            .map(|(speaker, _)| speaker.trim_end_matches('*'))
            .filter(|speaker| speaker.len() <= 30);
        let is_speaker = speaker.is_some_and(|speaker| {
            let is_loud = !speaker.contains(|c: char| c.is_lowercase());
            let is_heading = line.trim_start().starts_with('#');
            let name = speaker.to_lowercase();
            let first = name.split([' ', '_']).next().unwrap_or_default().to_owned();
            (is_loud || is_heading)
                && [
                    "system",
                    "developer",
                    "instruction",
                    "instructions",
                    "assistant",
                    "sysadmin",
                ]
                .contains(&first.as_str())
                || [
                    "system override",
                    "system message",
                    "hidden instruction",
                    "hidden instructions",
                    "override directive",
                    "new instructions",
                    "new instruction",
                ]
                .contains(&name.as_str())
        });
        let speaks = is_speaker && {
            let window = beginning(bare, COMMENT_BYTES_MAX);
            let spoken = Reading::new(&window[beginning(window, 6).len()..], false);
            spoken.words.len() >= 4 && spoken.having(ADDRESSED).next().is_some()
        };
        if speaks {
            return Some(start..beginning(text, start + line.len().min(160)).len());
        }
        start += line.len();
    }
    None
}

/// Whether a mark stands in backticks or quotes, as one that is spoken of does.
fn is_quoted(text: &str, at: usize) -> bool {
    text[..at].ends_with(['`', '"', '\'', '“', '‘', '「'])
}
