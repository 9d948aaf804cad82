//! Adds to a result what callsheet did: what was taken out of the arguments of its call, and what
//! the model has to know beside the answer of the tool.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// The member of `_meta` with the JSON pointers to what was taken out.
const MEMBER: &str = "callsheet/adjusted";

/// The result, which is the text of one object, with what was taken out. Everything else keeps its
/// text.
pub(super) fn with_adjusted(mut result: String, adjusted: &[String]) -> String {
    #[derive(Deserialize)]
    struct ResultMeta<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    if adjusted.is_empty() || !result.starts_with('{') {
        return result;
    }
    let meta = serde_json::from_str::<ResultMeta<'_>>(&result)
        .ok()
        .and_then(|result| result.meta);
    let meta = meta.map(RawValue::get);
    if meta.is_some_and(|meta| !meta.starts_with('{')) {
        return result;
    }
    let member = format!("\"{MEMBER}\":{}", json!(adjusted));
    // The object that gets a member, from behind its brace, and the member.
    let (at, member) = match meta {
        Some(meta) => (meta.as_ptr().addr() - result.as_ptr().addr() + 1, member),
        None => (1, format!("\"_meta\":{{{member}}}")),
    };
    let is_empty = result[at..].trim_start().starts_with('}');
    result.insert_str(
        at,
        &if is_empty {
            member
        } else {
            format!("{member},")
        },
    );
    result
}

/// The result, which is the text of one object, with one more text among its content blocks.
/// Everything else keeps its text.
pub(super) fn with_text(mut result: String, text: &str) -> String {
    #[derive(Deserialize)]
    struct ResultContent<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    let content = serde_json::from_str::<ResultContent<'_>>(&result)
        .ok()
        .and_then(|result| result.content);
    let Some(content) = content.map(RawValue::get).filter(|own| own.ends_with(']')) else {
        return result;
    };
    let block = json!({"type": "text", "text": text}).to_string();
    let is_empty = content[1..].trim_start() == "]";
    let end = content.as_ptr().addr() - result.as_ptr().addr() + content.len() - 1;
    let block = if is_empty { block } else { format!(",{block}") };
    result.insert_str(end, &block);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_out_stands_beside_what_is_there() {
        let adjusted = ["/unit".to_owned()];
        for (result, expected) in [
            (
                r#"{"n":1e999}"#,
                r#"{"_meta":{"callsheet/adjusted":["/unit"]},"n":1e999}"#,
            ),
            (
                r#"{"_meta":{"a":1},"n":1}"#,
                r#"{"_meta":{"callsheet/adjusted":["/unit"],"a":1},"n":1}"#,
            ),
            (
                r#"{"n":1,"_meta":{ }}"#,
                r#"{"n":1,"_meta":{"callsheet/adjusted":["/unit"] }}"#,
            ),
            (r#"{"_meta":7}"#, r#"{"_meta":7}"#),
        ] {
            assert_eq!(with_adjusted(result.to_owned(), &adjusted), expected);
            assert_eq!(with_adjusted(result.to_owned(), &[]), result);
        }
    }

    #[test]
    fn a_text_is_the_last_block() {
        let block = r#"{"type":"text","text":"why"}"#;
        for (result, expected) in [
            (
                r#"{"content":[ ],"a":1}"#,
                format!(r#"{{"content":[ {block}],"a":1}}"#),
            ),
            (
                r#"{"content":[{}]}"#,
                format!(r#"{{"content":[{{}},{block}]}}"#),
            ),
            (r#"{"content":7}"#, r#"{"content":7}"#.to_owned()),
        ] {
            assert_eq!(with_text(result.to_owned(), "why"), expected);
        }
    }
}
