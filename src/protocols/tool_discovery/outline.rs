//! Where the parts of a written manifest stand in its text, so that it is read again without being parsed.
//!
//! What a daemon stored was decoded, checked and written by [`encode`](super::encode()). Doing all that again for 1,000 scenarios takes longer than
//! a start may take, and is in vain: an outline beside the text says what came out. The text stays the truth. An outline that does not
//! belong to it, to the last byte, or that another version of the program wrote, is not used; then the text is decoded.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::encode::encode_marked;
use super::head;
use crate::model::{
    Accept, Category, Digest, Extra, Facts, JsonText, Manifest, Permission, ScenarioInfo, SharedText, TextBlock, Tool,
};

/// Goes into the sum, so that outlines are good for the version that wrote them alone: what is read from a text may change with each.
const WRITER: &str = concat!("callsheet ", env!("CARGO_PKG_VERSION"), ", outline 2");
/// Bytes of the sum, in front.
const SUM: usize = 16;
/// Values that may lie between one that is looked for and the one before it: a category, a number.
const NEAR: usize = 4;
const LEVELS: [Permission; 5] =
    [Permission::Guest, Permission::User, Permission::Admin, Permission::Owner, Permission::Unknown];

/// The document that [`encode`](super::encode()) makes of this manifest, with its outline.
pub fn encode_outlined(manifest: &Manifest) -> (String, Vec<u8>) {
    let (document, marks) = encode_marked(manifest);
    let outline = outline_at(manifest, &document, &marks);
    (document, outline)
}

/// The outline of a document that [`encode`](super::encode()) made of this manifest.
pub fn outline(manifest: &Manifest, document: &str) -> Vec<u8> {
    outline_at(manifest, document, &[])
}

/// The same, where it is known at which places values begin.
fn outline_at(manifest: &Manifest, document: &str, marks: &[usize]) -> Vec<u8> {
    let bytes = Vec::with_capacity(SUM + 128 * manifest.tools.len());
    let mut out = Writer { document, marks, at: 0, met: HashMap::new(), bytes };
    out.bytes.extend([0; SUM]);
    out.bytes.extend(manifest.digest.0.to_le_bytes());
    out.text(&manifest.protocol_version);
    out.scenario(&manifest.scenario);
    out.list(&manifest.tools, |out, tool| out.tool(tool));
    out.list(&manifest.categories, Writer::category);
    // Whoever has none is decoded, for its finding.
    out.text(&manifest.generated_at.map_or_else(String::new, |at| at.to_string()));
    out.extra(&manifest.extra);
    let sum = sum(document, &out.bytes[SUM..]);
    out.bytes[..SUM].copy_from_slice(&sum);
    out.bytes
}

/// The manifest that the document holds, as its outline tells, or the document when that has to be decoded: when the outline is not its own,
/// or when there would be a finding about it.
pub fn read_outlined(document: Box<str>, outline: &[u8], accept: &Accept) -> Result<Manifest, Box<str>> {
    let Some((own, rest)) = outline.split_at_checked(SUM) else { return Err(document) };
    if own != sum(&document, rest) {
        return Err(document);
    }
    let block = TextBlock::of(document);
    let manifest = Reader { bytes: rest, block: &block, met: Vec::new() }.manifest();
    let plain = |manifest: &Manifest| {
        // Without a version it is of a protocol that has neither that nor a time stamp.
        manifest.protocol_version.is_empty()
            || manifest.generated_at.is_some() && head::is_plain(&manifest.protocol_version, accept)
    };
    match manifest.filter(plain) {
        Some(manifest) => Ok(manifest),
        None => Err(block.text_of_all().into()),
    }
}

fn sum(document: &str, outline: &[u8]) -> [u8; SUM] {
    let mut sum = Xxh3::new();
    sum.update(WRITER.as_bytes());
    sum.update(&(document.len() as u64).to_le_bytes());
    sum.update(document.as_bytes());
    sum.update(outline);
    sum.digest128().to_le_bytes()
}

/// Writes the parts in the order in which they stand in the document, each looked for behind the one before it. What is found earlier by
/// chance is the same text as well.
struct Writer<'a> {
    document: &'a str,
    /// Where values begin, from `at` on; to look for a text anywhere in the rest would take a hundred times as long.
    marks: &'a [usize],
    at: usize,
    /// Texts that are kept once, by the order in which they were first met.
    met: HashMap<Arc<str>, usize>,
    bytes: Vec<u8>,
}

impl Writer<'_> {
    /// Seven bits to a byte, the lowest first; the highest bit says that more follow.
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }

    fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    /// A text that is written between quotes: within the document where nothing in it had to be escaped.
    fn text(&mut self, text: &str) {
        let escaped = text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
        if escaped { self.inline(text) } else { self.place(text) }
    }

    /// A text that stands in the document as it is.
    fn place(&mut self, text: &str) {
        match self.find(text) {
            Some(start) if !text.is_empty() => {
                self.at = start + text.len();
                self.size(text.len() << 1);
                self.size(start);
            }
            _ => self.inline(text),
        }
    }

    /// Where a text stands, from `at` on.
    fn find(&mut self, text: &str) -> Option<usize> {
        while let Some((_, rest)) = self.marks.split_first().filter(|(mark, _)| **mark < self.at) {
            self.marks = rest;
        }
        let stands = |mark: &usize| self.document.get(*mark..).is_some_and(|rest| rest.starts_with(text));
        let marked = self.marks.iter().take(NEAR).copied().find(|mark| stands(mark));
        marked.or_else(|| Some(self.at + self.document[self.at..].find(text)?))
    }

    /// A text that many tools have: written where it is met first, and counted back to from then on.
    fn once(&mut self, text: &Arc<str>) {
        let new = self.met.len();
        let at = *self.met.entry(Arc::clone(text)).or_insert(new);
        self.size(at);
        if at == new {
            self.inline(text);
        }
    }

    fn inline(&mut self, text: &str) {
        self.size((text.len() << 1) | 1);
        self.bytes.extend(text.as_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bytes.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.size(items.len());
        for item in items {
            write(self, item);
        }
    }

    fn extra(&mut self, extra: &Extra) {
        self.list(extra, |out, (name, value)| {
            out.text(name);
            out.place(value.get());
        });
    }

    fn scenario(&mut self, info: &ScenarioInfo) {
        self.text(&info.name);
        self.text(&info.version);
        self.text(&info.description);
        self.option(info.base_url.as_deref(), Self::text);
        self.extra(&info.extra);
    }

    fn tool(&mut self, tool: &Tool) {
        self.text(&tool.name);
        self.text(&tool.description);
        self.option(tool.category.as_ref(), Self::once);
        self.place(tool.parameters.get());
        self.place(tool.metadata.get());
        self.facts(&tool.facts);
        self.extra(&tool.extra);
    }

    fn facts(&mut self, facts: &Facts) {
        let Facts { enabled_by_default, requires_approval, internal_only, long_running, idempotent, .. } = *facts;
        let flags = [enabled_by_default, requires_approval, internal_only, long_running, idempotent];
        self.bytes.push(flags.iter().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
        self.size(LEVELS.iter().position(|level| *level == facts.required_permission).unwrap_or_default());
        self.list(&facts.tags, Self::once);
        self.option(facts.timeout_seconds, Self::number);
        self.option(facts.rate_limit_per_minute, Self::number);
    }

    fn category(&mut self, category: &Category) {
        self.text(&category.id);
        self.text(&category.name);
        self.option(category.description.as_deref(), Self::text);
        self.option(category.icon.as_deref(), Self::text);
        self.option(category.display_order, |out, order| out.bytes.extend(order.to_le_bytes()));
        self.extra(&category.extra);
    }
}

/// Reads what [`Writer`] wrote, part by part in the same order. `None` where it is no outline.
struct Reader<'a> {
    bytes: &'a [u8],
    block: &'a TextBlock,
    met: Vec<Arc<str>>,
}

/// A text of the document, or one of the outline's own.
enum Found<'a> {
    Place(Range<usize>),
    Inline(&'a str),
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        self.take(COUNT)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn found(&mut self) -> Option<Found<'a>> {
        let (size, inline) = self.size().map(|size| (size >> 1, size & 1 == 1))?;
        if inline {
            return std::str::from_utf8(self.take(size)?).ok().map(Found::Inline);
        }
        let start = self.size()?;
        Some(Found::Place(start..start.checked_add(size)?))
    }

    fn text(&mut self) -> Option<SharedText> {
        match self.found()? {
            Found::Place(range) => self.block.part(range),
            Found::Inline(text) => Some(text.into()),
        }
    }

    /// A text of its own.
    fn own(&mut self) -> Option<Arc<str>> {
        self.borrowed().map(Into::into)
    }

    /// A text that is kept once, however often it is met.
    fn once(&mut self) -> Option<Arc<str>> {
        let at = self.size()?;
        if at == self.met.len() {
            let new = self.own()?;
            self.met.push(new);
        }
        self.met.get(at).cloned()
    }

    fn borrowed(&mut self) -> Option<&'a str> {
        match self.found()? {
            Found::Place(range) => self.block.text_of_all().get(range),
            Found::Inline(text) => Some(text),
        }
    }

    #[expect(
        clippy::option_option,
        reason = "the outer one says that the outline is wrong, the inner one that there is no value"
    )]
    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.array()? {
            [0] => Some(None),
            [_] => read(self).map(Some),
        }
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.size()?;
        // Each item takes a byte at least, so that a wrong count cannot ask for much.
        let mut items = Vec::with_capacity(count.min(self.bytes.len()));
        for _ in 0..count {
            items.push(read(self)?);
        }
        Some(items)
    }

    fn extra(&mut self) -> Option<Extra> {
        self.list(|all| Some((all.own()?, JsonText::known_text(all.text()?)))).map(Vec::into)
    }

    fn manifest(mut self) -> Option<Manifest> {
        Some(Manifest {
            digest: Digest(u128::from_le_bytes(self.array()?)),
            protocol_version: self.own()?,
            scenario: ScenarioInfo {
                name: self.own()?,
                version: self.own()?,
                description: self.own()?,
                base_url: self.option(Self::own)?,
                extra: self.extra()?,
            },
            tools: self.list(|all| all.tool().map(Arc::new))?,
            categories: self.list(Self::category)?.into(),
            generated_at: match self.borrowed()? {
                "" => None,
                stamp => Some(stamp.parse().ok()?),
            },
            extra: self.extra()?,
        })
    }

    fn tool(&mut self) -> Option<Tool> {
        Some(Tool {
            name: self.own()?,
            description: self.text()?,
            category: self.option(Self::once)?,
            parameters: JsonText::known_text(self.text()?),
            metadata: JsonText::known_text(self.text()?),
            facts: self.facts()?.shared(),
            extra: self.extra()?,
        })
    }

    fn facts(&mut self) -> Option<Facts> {
        let [bits] = self.array()?;
        let flag = |at: u8| bits >> at & 1 == 1;
        Some(Facts {
            enabled_by_default: flag(4),
            requires_approval: flag(3),
            internal_only: flag(2),
            long_running: flag(1),
            idempotent: flag(0),
            required_permission: self.size().and_then(|at| LEVELS.get(at).copied())?,
            tags: self.list(Self::once)?,
            timeout_seconds: self.option(Self::number)?,
            rate_limit_per_minute: self.option(Self::number)?,
        })
    }

    fn category(&mut self) -> Option<Category> {
        Some(Category {
            id: self.own()?,
            name: self.own()?,
            description: self.option(Self::own)?,
            icon: self.option(Self::own)?,
            display_order: self.option(|all| all.array().map(i64::from_le_bytes))?,
            extra: self.extra()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::tool_discovery::{decode, encode};

    const ODD: &str = r#"{"protocol_version":"1.0","scenario":{"name":"odd \"one\"","version":"","description":"a\nb ☕",
        "base_url":"http://127.0.0.1:1/","mood":{"is":"fine"}},"tools":[
        {"name":"b","description":"","parameters":{"type":"object","properties":{"x":{"type":"string","description":"é"}}},
         "metadata":{"enabled_by_default":true,"requires_approval":true,"internal_only":true,"timeout_seconds":30,
         "rate_limit_per_minute":600,"long_running":true,"idempotent":true,"required_permission":"admin","tags":["x","\u0079"]},
         "further":[1,2]},
        {"name":"a","description":"says \"b\"\tand more","category":"c"},
        {"name":"same","description":"same","category":"c","parameters":{"type":"object","properties":{}}}],
        "categories":[{"id":"c","name":"C","icon":"i","display_order":-7,"own":null},{"id":"d","name":"","description":"D"}],
        "generated_at":"2026-02-03T04:05:06.5Z","capabilities":{"x":1}}"#;

    fn written(text: &str) -> (Manifest, String, Vec<u8>) {
        let manifest = decode(text.as_bytes(), &Accept::default()).unwrap().manifest;
        let (document, outline) = encode_outlined(&manifest);
        assert_eq!(document, encode(&manifest));
        let searched = super::outline(&manifest, &document);
        let read = |outline: &[u8]| read_outlined(document.clone().into(), outline, &Accept::default());
        assert_eq!(format!("{:?}", read(&outline)), format!("{:?}", read(&searched)), "found without marks as well");
        (manifest, document, outline)
    }

    #[test]
    fn what_is_read_is_what_decoding_gives() {
        for text in
            [ODD, r#"{"protocol_version":"1.0","scenario":{},"tools":[],"generated_at":"2026-02-03T04:05:06Z"}"#]
        {
            let (manifest, document, outline) = written(text);
            let read = read_outlined(document.clone().into(), &outline, &Accept::default()).unwrap();
            assert_eq!(format!("{read:#?}"), format!("{manifest:#?}"));
            let decoded = decode(document.as_bytes(), &Accept::default()).unwrap();
            assert_eq!(format!("{read:#?}"), format!("{:#?}", decoded.manifest));
            assert!(decoded.findings.is_empty(), "{:?}", decoded.findings);
        }
    }

    #[test]
    fn one_that_is_not_the_documents_own_is_not_used() {
        let (_, document, outline) = written(ODD);
        let read = |document: &str, outline: &[u8]| read_outlined(document.into(), outline, &Accept::default());
        for at in 0..outline.len() {
            let mut other = outline.clone();
            other[at] ^= 1;
            assert_eq!(read(&document, &other).unwrap_err().as_ref(), document, "byte {at}");
            assert!(read(&document, &outline[..at]).is_err(), "cut at {at}");
        }
        assert!(read(&document.replace("\"x\"", "\"y\""), &outline).is_err());
        assert!(read(&document, b"").is_err());
    }

    #[test]
    fn whatever_has_a_finding_is_decoded() {
        let accept = |range: &str| Accept::read(range).unwrap();
        let (_, document, outline) = written(ODD);
        assert!(read_outlined(document.clone().into(), &outline, &accept(">=2.0")).is_err(), "out of range");
        for odd in [
            ODD.replace("\"1.0\"", "\"1.9\""),
            ODD.replace("\"1.0\"", "\"1.0-rc.1\""),
            ODD.replace("generated_at", "made_at"),
        ] {
            let (_, document, outline) = written(&odd);
            assert!(read_outlined(document.into(), &outline, &accept(">=1.0, <2.0")).is_err(), "{odd}");
        }
    }

    #[test]
    fn no_bytes_are_more_than_a_wrong_outline() {
        let (_, document, outline) = written(ODD);
        let block = TextBlock::of(document.into());
        for at in SUM..outline.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = outline[SUM..].to_vec();
                bytes[at - SUM] = byte;
                // Whatever comes out, it ends, and takes no more memory than there are bytes.
                let _ = Reader { bytes: &bytes, block: &block, met: Vec::new() }.manifest();
            }
        }
    }
}
