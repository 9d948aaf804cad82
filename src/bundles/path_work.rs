//! How much work a JSONPath makes in a document, estimated from its text and from the size of the
//! document.
//!
//! The library that reads and runs paths trusts them. Reading one takes a stack and a time that
//! grow with its nesting, and running one may give more nodes than the document has: each
//! descendant segment, and each further selector in brackets, gives the nodes of the one before
//! once more. So the nesting is bounded before a path is read, and the work before it is run.
//! It reads and runs no path: a text that is none gets some estimate, too.

use serde_json::Value;

/// Filters within filters, and parentheses within parentheses, at most.
const FILTERS_MAX: usize = 3;
const PARENTHESES_MAX: usize = 8;
/// The functions that compile a regular expression for each node: one of a few bytes may take a
/// tenth of a second each time.
const EXPRESSIONS: [&[u8]; 2] = [b"match", b"search"];
/// Bytes of a text that weigh as much as one value.
const TEXT_UNIT: usize = 16;

/// A path or a query in a filter, as far as its work depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathWork(Vec<SegmentWork>);

/// One segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SegmentWork {
    /// Whether it is applied to all that is below a node, too.
    descends: bool,
    selectors: u64,
    /// Whether it may give several nodes for one.
    spreads: bool,
    filters: Vec<FilterWork>,
}

/// One filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FilterWork {
    queries: Vec<QueryWork>,
    /// How often it calls a function.
    functions: u64,
}

/// One query of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QueryWork {
    /// Whether it begins at the whole document.
    is_absolute: bool,
    path: PathWork,
}

/// The size of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DocumentSize {
    /// Its values, with the bytes of its texts.
    values: u64,
    /// How deep it nests.
    depth: u64,
}

/// Why a path is refused before it is read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefusedPath {
    /// It nests deeper than is read.
    #[error(
        "has more than {FILTERS_MAX} filters or {PARENTHESES_MAX} parentheses within each other"
    )]
    TooDeep,
    /// It has a regular expression.
    #[error(
        "calls `match` or `search`, which are not run, since a short expression can take very long; compare with \
         `==`, or write a regular expression in place of the path"
    )]
    Expression,
}

impl PathWork {
    /// Scans the text of a path, which begins with `$`.
    pub(super) fn scan(text: &str) -> Result<Self, RefusedPath> {
        PathScan {
            bytes: text.as_bytes(),
            at: 1,
            filters: 0,
            parentheses: 0,
        }
        .path()
    }

    /// The work in a document of this size, in steps from one node to the next.
    pub(super) fn in_document(&self, size: DocumentSize) -> u64 {
        self.below(size.values, size)
    }

    /// The work in a part of the document with so many values.
    fn below(&self, reach: u64, size: DocumentSize) -> u64 {
        // How often a node may be among those of the segments so far, whether they may be several,
        // and whether none of them is below another one.
        let mut times = 1_u64;
        let mut are_several = false;
        let mut is_level = true;
        let mut work = 1_u64;
        for segment in &self.0 {
            if segment.descends {
                times = times.saturating_mul(if is_level { 1 } else { size.depth });
                (is_level, are_several) = (false, true);
            }
            let tried = reach.saturating_mul(times);
            for filter in &segment.filters {
                work = work.saturating_add(tried.saturating_mul(filter.for_each(size)));
            }
            times = times.saturating_mul(segment.selectors);
            are_several |= segment.spreads;
            let given = if are_several {
                reach.saturating_mul(times)
            } else {
                1
            };
            work = work.saturating_add(given);
        }
        work
    }

    fn is_singular(&self) -> bool {
        self.0
            .iter()
            .all(|segment| !segment.descends && !segment.spreads)
    }
}

impl FilterWork {
    /// The work for one node.
    fn for_each(&self, size: DocumentSize) -> u64 {
        let absolute = self
            .queries
            .iter()
            .filter(|query| query.is_absolute)
            .count();
        let query = |query: &QueryWork| match (query.is_absolute, query.path.is_singular()) {
            (true, false) => query.path.below(size.values, size),
            // Two parts of the document may be compared, or a function may read all of one.
            (true, true) if absolute > 1 || self.functions > 0 => size.values,
            // All that is below all nodes is each node for each level above it.
            _ => query.path.below(size.depth, size),
        };
        self.queries.iter().map(query).fold(1, u64::saturating_add)
    }
}

impl DocumentSize {
    /// The size of this one.
    pub(super) fn of(document: &Value) -> Self {
        let all = |size: Self, below: Self| Self {
            values: size.values + below.values,
            depth: size.depth.max(below.depth + 1),
        };
        let own = Self {
            values: 1,
            depth: 1,
        };
        match document {
            Value::String(text) => Self {
                values: 1 + (text.len() / TEXT_UNIT) as u64,
                ..own
            },
            Value::Array(items) => items.iter().map(Self::of).fold(own, all),
            Value::Object(members) => members.values().map(Self::of).fold(own, all),
            _ => own,
        }
    }
}

/// A pass over the text of a path.
struct PathScan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Filters and parentheses that are open.
    filters: usize,
    parentheses: usize,
}

impl PathScan<'_> {
    fn next(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, while_it: impl Fn(u8) -> bool) {
        while self.next().is_some_and(&while_it) {
            self.at += 1;
        }
    }

    /// The segments behind `$` or `@`.
    fn path(&mut self) -> Result<PathWork, RefusedPath> {
        let mut segments = Vec::new();
        loop {
            self.skip(|byte| byte.is_ascii_whitespace());
            let dots = self.bytes[self.at..]
                .iter()
                .take_while(|byte| **byte == b'.')
                .count();
            self.at += dots;
            let mut segment = match self.next() {
                Some(b'[') => self.brackets()?,
                Some(b'*') if dots > 0 => {
                    self.at += 1;
                    SegmentWork {
                        selectors: 1,
                        spreads: true,
                        ..SegmentWork::default()
                    }
                }
                Some(_) if dots > 0 => {
                    self.skip(|byte| {
                        byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
                    });
                    SegmentWork {
                        selectors: 1,
                        ..SegmentWork::default()
                    }
                }
                _ => return Ok(PathWork(segments)),
            };
            segment.descends = dots > 1;
            segments.push(segment);
        }
    }

    /// Selectors in brackets.
    fn brackets(&mut self) -> Result<SegmentWork, RefusedPath> {
        let mut segment = SegmentWork {
            selectors: 1,
            ..SegmentWork::default()
        };
        self.at += 1;
        while let Some(byte) = self.next() {
            self.at += 1;
            match byte {
                b']' => break,
                b'\'' | b'"' => self.string(byte),
                b',' => (segment.selectors, segment.spreads) = (segment.selectors + 1, true),
                b'*' | b':' => segment.spreads = true,
                b'?' => {
                    segment.spreads = true;
                    segment.filters.push(self.filter()?);
                }
                _ => {}
            }
        }
        Ok(segment)
    }

    /// A filter, up to the comma or bracket behind it.
    fn filter(&mut self) -> Result<FilterWork, RefusedPath> {
        let mut filter = FilterWork::default();
        let outside = self.parentheses;
        self.filters += 1;
        if self.filters > FILTERS_MAX {
            return Err(RefusedPath::TooDeep);
        }
        while let Some(byte) = self.next() {
            match byte {
                b']' => break,
                b',' if self.parentheses == outside => break,
                _ => self.at += 1,
            }
            match byte {
                b'\'' | b'"' => self.string(byte),
                b'$' | b'@' => filter.queries.push(QueryWork {
                    is_absolute: byte == b'$',
                    path: self.path()?,
                }),
                b'(' => {
                    let before = &self.bytes[..self.at - 1];
                    filter.functions +=
                        u64::from(before.last().is_some_and(u8::is_ascii_alphanumeric));
                    if EXPRESSIONS.iter().any(|name| before.ends_with(name)) {
                        return Err(RefusedPath::Expression);
                    }
                    self.parentheses += 1;
                    if self.parentheses > PARENTHESES_MAX {
                        return Err(RefusedPath::TooDeep);
                    }
                }
                b')' => self.parentheses = self.parentheses.saturating_sub(1),
                _ => {}
            }
        }
        (self.filters, self.parentheses) = (self.filters - 1, outside);
        Ok(filter)
    }

    /// The rest of a string.
    fn string(&mut self, quote: u8) {
        while let Some(byte) = self.next() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                return;
            }
        }
    }
}
