//! `Mcp-Param-*`: arguments that a modern client repeats in headers, because the listed schema says
//! so (`x-mcp-header`; MCP 2026-07-28, Streamable HTTP).

use http::{HeaderMap, HeaderName};

use crate::protocols::mcp::{HeaderArgument, header_arguments};
use crate::server::mcp::era::{decoded, single};
use crate::server::mcp::refusal::Refusal;

/// The mark of `callsheet mcp`: its client spoke over standard input, where there are no headers.
const FRONT: HeaderName = HeaderName::from_static("callsheet-front");

/// Refuses a call whose headers are not its arguments. A schema with an invalid annotation demands
/// nothing: clients leave such a tool out.
pub(super) fn check(headers: &HeaderMap, schema: &str, arguments: &str) -> Result<(), Refusal> {
    if headers.contains_key(FRONT) {
        return Ok(());
    }
    for HeaderArgument {
        header,
        path,
        value,
    } in header_arguments(schema, arguments)
    {
        let sent = single(headers, &header)?.map(decoded);
        match (sent, value) {
            (None, None) => {}
            (Some(sent), Some(value)) if is_same(&sent, &value) => {}
            (None, Some(_)) => {
                return Err(Refusal::mismatch(format_args!(
                    "{header} is missing, which is `{path}` of the arguments"
                )));
            }
            _ => {
                return Err(Refusal::mismatch(format_args!(
                    "{header} is not `{path}` of the arguments"
                )));
            }
        }
    }
    Ok(())
}

/// Numbers are compared as numbers.
fn is_same(sent: &str, value: &str) -> bool {
    sent == value
        || matches!((sent.parse::<i64>(), value.parse::<i64>()), (Ok(sent), Ok(value)) if sent == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_the_arguments_that_the_schema_names() {
        let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"free":{"type":"string"}}}"#;
        let judge = |pairs: &[(&'static str, &str)], arguments: &str| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            check(&headers.collect(), schema, arguments).map_err(|refusal| refusal.error.message)
        };
        assert_eq!(judge(&[], r#"{"free":"x","region":null}"#), Ok(()));
        assert_eq!(
            judge(
                &[("mcp-param-region", " eu "), ("mcp-param-n", "07")],
                r#"{"region":"eu","n":7}"#
            ),
            Ok(())
        );
        assert_eq!(
            judge(
                &[("mcp-param-region", "=?base64?w7Y=?=")],
                r#"{"region":"ö"}"#
            ),
            Ok(())
        );
        assert_eq!(judge(&[("mcp-param-other", "x")], "{}"), Ok(()));
        for (headers, arguments, part) in [
            (&[][..], r#"{"region":"eu"}"#, "mcp-param-region is missing"),
            (
                &[("mcp-param-region", "us")],
                r#"{"region":"eu"}"#,
                "is not `region`",
            ),
            (&[("mcp-param-region", "eu")], "{}", "is not `region`"),
            (
                &[("mcp-param-region", "eu"), ("mcp-param-region", "eu")],
                r#"{"region":"eu"}"#,
                "sent twice",
            ),
        ] {
            let error = judge(headers, arguments).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(
            judge(&[("callsheet-front", "stdio")], r#"{"region":"eu"}"#),
            Ok(())
        );
    }
}
