//! Patterns that the target's engine reads. Dialects of regular expressions differ, and a server
//! that compiles patterns refuses the whole request for one that it cannot: OpenAI's answers "is
//! not a 'regex'".
//!
//! What cannot stay is said in the description where it fits. No pattern is rewritten: that it
//! means the same could not be known.

use regex_syntax::ast::{self, Ast, ClassSetItem, GroupKind, Literal, LiteralKind, parse::Parser};
use serde_json::Value;

use super::budget::VALUE;
use super::keywords::{FITS, describe};
use super::walk::each_object;
use super::{Context, TransformError, take};

/// Bytes of a pattern that is parsed at most: its tree takes two hundred times as much memory.
const PARSED_PATTERN_BYTES_MAX: usize = 8 * 1024;
/// Work for each byte of a pattern.
const NODE: usize = 16;
const HINT: &str = "keep to what JavaScript and Python both read, without look-around";

/// Keeps the patterns that JavaScript, Python and Rust read alike, without look-around and
/// references back.
pub fn common_patterns(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    keep(schema, context, is_common)
}

/// Keeps the patterns that any usual engine reads.
pub fn sound_patterns(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    keep(schema, context, is_sound)
}

fn keep(
    schema: &mut Value,
    context: &mut Context,
    reads: fn(&str) -> bool,
) -> Result<(), TransformError> {
    each_object(schema, |members, place| {
        if let Some(Value::String(pattern)) = members.get("pattern") {
            context.budget.charge(cost(pattern))?;
            if !is_read(pattern, reads) {
                let text = (pattern.len() <= 4 * FITS).then(|| format!("pattern: {pattern}"));
                take(members, "pattern");
                let outcome = match text.filter(|text| text.chars().count() <= FITS) {
                    Some(text) => {
                        describe(members, &[text], context)?;
                        "moved into the description"
                    }
                    None => "left out",
                };
                let message = format_args!("`pattern` was {outcome}: not every engine reads it");
                context.lossy(format_args!("{}/pattern", place.pointer), message, HINT);
            }
        }
        let Some(Value::Object(named)) = members.get_mut("patternProperties") else {
            return Ok(());
        };
        context
            .budget
            .charge(named.keys().map(|pattern| cost(pattern)).sum())?;
        let before = named.len();
        named.retain(|pattern, _| is_read(pattern, reads));
        if named.len() < before {
            let message = "members of `patternProperties` were left out: not every engine reads their patterns";
            context.lossy(
                format_args!("{}/patternProperties", place.pointer),
                message,
                HINT,
            );
        }
        Ok(())
    })
}

/// Whether an engine reads a pattern. One that is too long is not looked at: parsers take far more
/// than its length.
fn is_read(pattern: &str, reads: fn(&str) -> bool) -> bool {
    pattern.len() <= PARSED_PATTERN_BYTES_MAX && reads(pattern)
}

/// What parsing a pattern costs, roughly: its tree has a node for each character.
fn cost(pattern: &str) -> usize {
    pattern
        .len()
        .min(PARSED_PATTERN_BYTES_MAX)
        .saturating_mul(NODE)
        + VALUE
}

fn is_sound(pattern: &str) -> bool {
    Parser::new().parse(&neutral(pattern)).is_ok()
}

/// The pattern with groups in place of look-around and texts in place of references back, which the
/// parser does not read.
fn neutral(pattern: &str) -> String {
    let mut text = pattern.to_owned();
    for look in ["(?=", "(?!", "(?<=", "(?<!"] {
        text = text.replace(look, "(?:");
    }
    let mut out = String::with_capacity(text.len());
    let mut escaped = false;
    for c in text.chars() {
        if escaped && c.is_ascii_digit() {
            out.pop();
        }
        out.push(c);
        escaped = c == '\\' && !escaped;
    }
    out
}

fn is_common(pattern: &str) -> bool {
    Parser::new()
        .parse(pattern)
        .is_ok_and(|ast| ast::visit(&ast, PortableSyntax).is_ok())
}

/// Finds what means the same everywhere.
struct PortableSyntax;

/// Something does not.
struct NotPortable;

impl ast::Visitor for PortableSyntax {
    type Output = ();
    type Err = NotPortable;

    fn finish(self) -> Result<(), NotPortable> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), NotPortable> {
        use ast::AssertionKind::{EndLine, NotWordBoundary, StartLine, WordBoundary};
        let common = match ast {
            Ast::Flags(_) | Ast::ClassUnicode(_) => false,
            Ast::Literal(literal) => is_plain(literal),
            Ast::Assertion(at) => matches!(
                at.kind,
                StartLine | EndLine | WordBoundary | NotWordBoundary
            ),
            Ast::Repetition(held) => !matches!(
                *held.ast,
                Ast::Repetition(_) | Ast::Assertion(_) | Ast::Empty(_)
            ),
            Ast::Group(group) => match &group.kind {
                GroupKind::CaptureIndex(_) => true,
                GroupKind::CaptureName { .. } => false,
                GroupKind::NonCapturing(flags) => flags.items.is_empty(),
            },
            _ => true,
        };
        if common { Ok(()) } else { Err(NotPortable) }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), NotPortable> {
        let common = match item {
            ClassSetItem::Literal(literal) => is_plain(literal),
            ClassSetItem::Range(range) => is_plain(&range.start) && is_plain(&range.end),
            ClassSetItem::Ascii(_) | ClassSetItem::Unicode(_) | ClassSetItem::Bracketed(_) => false,
            ClassSetItem::Empty(_) | ClassSetItem::Perl(_) | ClassSetItem::Union(_) => true,
        };
        if common { Ok(()) } else { Err(NotPortable) }
    }

    fn visit_class_set_binary_op_pre(
        &mut self,
        _: &ast::ClassSetBinaryOp,
    ) -> Result<(), NotPortable> {
        Err(NotPortable)
    }
}

fn is_plain(literal: &Literal) -> bool {
    use ast::{HexLiteralKind, SpecialLiteralKind};
    match &literal.kind {
        LiteralKind::Verbatim | LiteralKind::Meta | LiteralKind::Superfluous => true,
        LiteralKind::HexFixed(kind) => !matches!(kind, HexLiteralKind::UnicodeLong),
        LiteralKind::Special(kind) => {
            !matches!(kind, SpecialLiteralKind::Bell | SpecialLiteralKind::Space)
        }
        LiteralKind::Octal | LiteralKind::HexBrace(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_everyone_reads_is_told_from_dialects_and_from_what_nobody_reads() {
        for common in [
            r"^[a-z0-9_-]{1,64}$",
            r"^\d+(?:\.\d+)?$",
            r"^(a|b)*?\s\/x\-$",
            r"[\w.-]+@[\w-]+",
            r"^\x41\u0042\t[^/\\]+$",
            "",
        ] {
            assert!(is_common(common) && is_sound(common), "{common}");
        }
        for dialect in [
            r"^(?!x)a",
            r"(?<=a)b",
            r"^(a)\1$",
            r"\p{L}+",
            r"(?<year>\d{4})",
            r"(?i)a",
            r"\x{41}",
            r"[[:alpha:]]",
            "a**",
            r"\Aa\z",
        ] {
            assert!(!is_common(dialect) && is_sound(dialect), "{dialect}");
        }
        for broken in ["([", "[", "a)", "(?", r"a{2,1}", "*a", r"a\"] {
            assert!(!is_common(broken) && !is_sound(broken), "{broken}");
        }
    }

    #[test]
    fn what_cannot_stay_is_said_where_it_fits() {
        let mut schema = json!({"properties": {"pattern": {"pattern": "(["}, "b": {"pattern": "^a$"},
            "c": {"description": "A c", "pattern": "^(?!x)"}, "d": {"pattern": "(".repeat(300)},
            "e": {"patternProperties": {"^x-": {}, "[": {}}}}});
        let mut context = Context::for_schema(&schema);
        common_patterns(&mut schema, &mut context).unwrap();
        let expected = json!({"properties": {"pattern": {"description": "pattern: (["}, "b": {"pattern": "^a$"},
            "c": {"description": "A c (pattern: ^(?!x))"}, "d": {}, "e": {"patternProperties": {"^x-": {}}}}});
        assert_eq!(schema.to_string(), expected.to_string());
        let notes = context.finish().0;
        let places: Vec<_> = notes.iter().map(|note| note.pointer.as_str()).collect();
        assert_eq!(
            places,
            [
                "/properties/pattern/pattern",
                "/properties/c/pattern",
                "/properties/d/pattern",
                "/properties/e/patternProperties"
            ]
        );
    }
}
