//! The trace context of a caller: the trace that its call belongs to.
//!
//! It is passed on and noted in the log, and decides nothing.

/// The members of a trace context, as W3C Trace Context and W3C Baggage define them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
    baggage: Option<String>,
}

/// The longest `tracestate` that is passed on, in bytes: each part of a trace has to take as much.
const STATE: usize = 512;
/// The longest `baggage` that is passed on, in bytes (W3C Baggage, limits).
const BAGGAGE: usize = 8_192;

impl TraceContext {
    /// A trace context; `None` if its `traceparent` is not one. What else is too long, or not
    /// visible ASCII, is left out.
    pub fn parse(
        traceparent: &str,
        tracestate: Option<&str>,
        baggage: Option<&str>,
    ) -> Option<Self> {
        let parts: Vec<&str> = traceparent.split('-').collect();
        let [version, trace, parent, flags] = parts[..] else {
            return None;
        };
        let is_hex = |part: &str, length| {
            part.len() == length
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
        };
        let is_set = |part: &str| part.bytes().any(|byte| byte != b'0');
        let is_one = is_hex(version, 2)
            && version != "ff"
            && is_hex(trace, 32)
            && is_set(trace)
            && is_hex(parent, 16)
            && is_set(parent)
            && is_hex(flags, 2);
        let kept = |value: Option<&str>, most| {
            let is_plain = |value: &&str| {
                value.len() <= most && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            };
            value.filter(is_plain).map(str::to_owned)
        };
        is_one.then(|| Self {
            traceparent: traceparent.to_owned(),
            tracestate: kept(tracestate, STATE),
            baggage: kept(baggage, BAGGAGE),
        })
    }

    /// Its members with their names.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let others = [
            ("tracestate", self.tracestate.as_deref()),
            ("baggage", self.baggage.as_deref()),
        ];
        let others = others
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("traceparent", self.traceparent.as_str())).chain(others)
    }

    /// The id of the trace, in 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        self.traceparent.split('-').nth(1).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_context_is_one_or_is_left_out() {
        let context = TraceContext::parse(PARENT, Some("a=1"), Some("k=v")).unwrap();
        assert_eq!(context.id(), "0af7651916cd43dd8448eb211c80319c");
        let members: Vec<_> = context.members().collect();
        assert_eq!(
            members,
            [
                ("traceparent", PARENT),
                ("tracestate", "a=1"),
                ("baggage", "k=v")
            ]
        );
        let long = "x".repeat(BAGGAGE + 1);
        let context = TraceContext::parse(PARENT, Some("a=\n"), Some(&long)).unwrap();
        assert_eq!(context.members().count(), 1);
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(TraceContext::parse(wrong, None, None), None, "{wrong}");
        }
    }
}
