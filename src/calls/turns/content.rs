//! From a result to the texts and files that a model gets: of an MCP server its content blocks, of
//! every other scenario its value. What a vendor does not take, or what is too large, is said in
//! text.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::model_answer::ModelBlock;
use crate::model::JsonText;
use crate::model::text::truncate_at_char_boundary;

/// How much of a result a model gets, and of which kinds.
pub(super) struct ContentLimits<'a> {
    /// Bytes of text.
    pub(super) text: usize,
    /// Bytes of texts and files together.
    pub(super) all: usize,
    /// Whether the vendor takes files of a media type.
    pub(super) takes: &'a dyn Fn(&str) -> bool,
    /// Whether the call failed.
    pub(super) is_error: bool,
    /// Whether the vendor takes files from a call that failed.
    pub(super) takes_files_in_errors: bool,
    /// The id under which the whole result is kept.
    pub(super) kept_as: &'a str,
}

/// The result of an MCP server.
#[derive(Deserialize)]
struct McpToolResult<'a> {
    #[serde(borrow)]
    content: Option<Vec<McpContentBlock<'a>>>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct McpContentBlock<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    data: Option<String>,
    #[serde(rename = "mimeType")]
    media_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    resource: Option<McpResourceContents<'a>>,
}

#[derive(Deserialize)]
struct McpResourceContents<'a> {
    uri: Option<String>,
    #[serde(rename = "mimeType")]
    media_type: Option<String>,
    #[serde(borrow)]
    text: Option<std::borrow::Cow<'a, str>>,
    blob: Option<String>,
}

/// The blocks of a whole result of an MCP server; `None` if it cannot be read.
pub(super) fn of_mcp(whole: &JsonText) -> Option<Vec<ModelBlock>> {
    let result: McpToolResult<'_> = serde_json::from_str(whole.get()).ok()?;
    let blocks: Vec<ModelBlock> = result.content.into_iter().flatten().map(block).collect();
    match (blocks.is_empty(), result.structured) {
        (true, Some(structured)) => Some(vec![ModelBlock::Text(structured.get().to_owned())]),
        _ => Some(blocks),
    }
}

/// A value as a text: a text as such, everything else as JSON.
pub(super) fn of_value(value: &JsonText) -> ModelBlock {
    let text =
        serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
    ModelBlock::Text(text)
}

fn block(sent: McpContentBlock<'_>) -> ModelBlock {
    let kind = sent.kind.as_deref().unwrap_or("block");
    match (kind, sent.text, sent.data, sent.resource) {
        ("text", Some(text), ..) => ModelBlock::Text(text),
        ("image" | "audio", _, Some(data), _) => file(sent.media_type, data),
        ("resource", .., Some(resource)) => match (resource.text, resource.blob) {
            (Some(text), _) => ModelBlock::Text(text.into_owned()),
            (None, Some(data)) => file(resource.media_type, data),
            (None, None) => {
                ModelBlock::Text(format!("[resource {}]", resource.uri.unwrap_or_default()))
            }
        },
        ("resource_link", ..) => {
            let name = sent.name.unwrap_or_default();
            let uri = sent.uri.unwrap_or_default();
            ModelBlock::Text(format!("[resource {name}: {uri}]"))
        }
        _ => ModelBlock::Text(format!("[{kind}: this content cannot be shown]")),
    }
}

/// A file. Some encoders break its text into lines, which no vendor takes.
fn file(media_type: Option<String>, mut data: String) -> ModelBlock {
    data.retain(|character| !character.is_ascii_whitespace());
    ModelBlock::File {
        media_type: media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        data,
    }
}

/// The blocks within the limits, and whether any was cut or left out for its size. There is at
/// least one block, and no blank one: vendors refuse a whole request for a blank text.
pub(super) fn within(
    blocks: Vec<ModelBlock>,
    limits: &ContentLimits<'_>,
) -> (Vec<ModelBlock>, bool) {
    let total: usize = blocks.iter().map(text_bytes).sum();
    let mut shown = 0;
    let mut files = 0;
    let mut is_cut = false;
    let mut fitting = Vec::new();
    for block in blocks {
        match block {
            ModelBlock::Text(text) if text.trim().is_empty() => {}
            ModelBlock::Text(text) => {
                let room = limits
                    .text
                    .min(limits.all.saturating_sub(files))
                    .saturating_sub(shown);
                if text.len() <= room {
                    shown += text.len();
                    fitting.push(ModelBlock::Text(text));
                } else if !is_cut || room > 0 {
                    let mut begun = truncate_at_char_boundary(&text, room).text;
                    shown += begun.len();
                    begun.push_str(&mark(shown, total, limits.kept_as));
                    fitting.push(ModelBlock::Text(begun));
                    is_cut = true;
                    // What follows would be read as what follows the cut text.
                    break;
                }
            }
            ModelBlock::File { media_type, data } => {
                let bytes = data.len();
                let fits = shown + files + bytes <= limits.all;
                is_cut |= !fits;
                let why = if fits {
                    limits.why_not_shown(&media_type, &data)
                } else {
                    Some("it is too large to be shown")
                };
                match why {
                    None => {
                        files += bytes;
                        fitting.push(ModelBlock::File { media_type, data });
                    }
                    Some(why) => fitting.push(ModelBlock::Text(unshown(
                        &media_type,
                        bytes,
                        why,
                        limits.kept_as,
                    ))),
                }
            }
        }
    }
    if fitting.is_empty() {
        let said = if limits.is_error {
            "the tool failed without a message"
        } else {
            "(no output)"
        };
        fitting.push(ModelBlock::Text(said.to_owned()));
    }
    (fitting, is_cut)
}

impl ContentLimits<'_> {
    /// Why a file that fits is not shown.
    fn why_not_shown(&self, media_type: &str, data: &str) -> Option<&'static str> {
        if !(self.takes)(media_type) {
            Some("it cannot be shown to this model")
        } else if self.is_error && !self.takes_files_in_errors {
            Some("it cannot be shown with an error")
        } else if !is_base64(data) {
            Some("its content is not base64")
        } else {
            None
        }
    }
}

/// Whether a text is base64 of at least one byte. A vendor refuses a whole request otherwise.
fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && digits.bytes().all(is_digit)
}

fn text_bytes(block: &ModelBlock) -> usize {
    match block {
        ModelBlock::Text(text) => text.len(),
        ModelBlock::File { .. } => 0,
    }
}

/// The mark behind a text that was cut.
fn mark(shown: usize, total: usize, id: &str) -> String {
    format!(
        "\n[cut: this is the beginning, {shown} of {total} bytes; the whole result is kept as {id}]"
    )
}

/// What is said in place of a file.
fn unshown(media_type: &str, base64: usize, why: &str, id: &str) -> String {
    let bytes = base64 / 4 * 3;
    let media_type = truncate_at_char_boundary(media_type, 100).text;
    format!("[file of type {media_type}, {bytes} bytes: {why}; the whole result is kept as {id}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(blocks: &[&str]) -> Vec<ModelBlock> {
        blocks
            .iter()
            .map(|text| ModelBlock::Text((*text).to_owned()))
            .collect()
    }

    fn fitted(blocks: Vec<ModelBlock>, text: usize, all: usize) -> (Vec<ModelBlock>, bool) {
        within(blocks, &limits(text, all, false))
    }

    fn limits(text: usize, all: usize, is_error: bool) -> ContentLimits<'static> {
        let takes = &|kind: &str| kind == "image/png";
        ContentLimits {
            text,
            all,
            takes,
            is_error,
            takes_files_in_errors: false,
            kept_as: "t.0",
        }
    }

    #[test]
    fn long_texts_are_cut_with_a_mark_between_two_characters() {
        assert_eq!(
            fitted(texts(&["abc", "def"]), 6, 6),
            (texts(&["abc", "def"]), false)
        );
        let (cut, is_cut) = fitted(texts(&["abc", "d\u{e9}f", "ghi"]), 5, 99);
        assert!(is_cut);
        let mark = "\n[cut: this is the beginning, 4 of 10 bytes; the whole result is kept as t.0]";
        assert_eq!(cut, texts(&["abc", &format!("d{mark}")]));
    }

    #[test]
    fn files_that_do_not_fit_are_named() {
        let png = |data: &str| ModelBlock::File {
            media_type: "image/png".into(),
            data: data.into(),
        };
        assert_eq!(fitted(vec![png("AAAA")], 0, 4), (vec![png("AAAA")], false));
        let (named, is_cut) = fitted(vec![png("AAAAAAAA")], 0, 4);
        assert!(is_cut);
        let ModelBlock::Text(named) = &named[0] else {
            panic!("{named:?}")
        };
        assert!(
            named.contains("image/png, 6 bytes: it is too large"),
            "{named}"
        );
        // Several share the room.
        let (shown, is_cut) = fitted(vec![png("AAAA"), png("BBBB")], 0, 4);
        assert!(
            is_cut && shown[0] == png("AAAA") && matches!(shown[1], ModelBlock::Text(_)),
            "{shown:?}"
        );
    }

    #[test]
    fn a_result_without_output_says_so() {
        assert_eq!(fitted(Vec::new(), 9, 9), (texts(&["(no output)"]), false));
        assert_eq!(
            fitted(texts(&["", " \n"]), 9, 9),
            (texts(&["(no output)"]), false)
        );
        let failed = within(texts(&[""]), &limits(9, 9, true));
        assert_eq!(
            failed,
            (texts(&["the tool failed without a message"]), false)
        );
    }

    #[test]
    fn what_a_vendor_would_refuse_the_whole_request_for_is_named() {
        let png = |data: &str| file(Some("image/png".into()), data.into());
        assert_eq!(
            fitted(vec![texts(&[""]).remove(0), png("AA\r\nA=\n")], 9, 99),
            (vec![png("AAA=")], false)
        );
        for data in ["", "====", "AAA", "data:image/png;base64,AAAA", "AA-_"] {
            let (named, _) = fitted(vec![png(data)], 9, 99);
            let ModelBlock::Text(named) = &named[0] else {
                panic!("{named:?}")
            };
            assert!(
                named.contains("its content is not base64"),
                "{data}: {named}"
            );
        }
        let (named, is_cut) = within(vec![png("AAAA")], &limits(9, 99, true));
        let ModelBlock::Text(named) = &named[0] else {
            panic!("{named:?}")
        };
        assert!(
            named.contains("it cannot be shown with an error") && !is_cut,
            "{named}"
        );
    }
}
