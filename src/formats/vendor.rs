//! A format for LLMs as data: limits, a list of transforms and a small writer.
//!
//! It never lets a tool through that its target is known to refuse: such a tool is left out of that format alone, with a finding.

use super::limits::{self, Limits};
use super::schema::{self, Note, Refused, Transform};
use super::{Encoded, EndMark, Format, Frame, ListHead, Options, lossy, quarantined};
use crate::model::{Finding, ViewTool};

/// One vendor's shape.
pub(super) struct Vendor {
    pub(super) id: &'static str,
    pub(super) limits: &'static Limits,
    /// What a schema goes through, in this order: later ones rely on what earlier ones made sure of.
    pub(super) steps: &'static [Transform],
    /// A tool as one JSON object.
    pub(super) write: fn(&Piece<'_>) -> Vec<u8>,
    /// Before the first tool and after the last.
    pub(super) frame: (&'static str, &'static str),
    /// The whole list when it has no tools, if it is not the empty frame.
    pub(super) nothing: Option<&'static str>,
    /// What `cache=true` adds.
    pub(super) cached: EndMark,
    /// The same format with options.
    pub(super) variants: &'static [(Options, &'static Vendor)],
}

/// What a writer needs of one tool.
pub(super) struct Piece<'a> {
    pub(super) tool: &'a ViewTool,
    /// Not there when it is empty and the target refuses that.
    pub(super) description: Option<&'a str>,
    /// The schema's text.
    pub(super) schema: &'a str,
}

impl Vendor {
    fn fit(&self, tool: &ViewTool) -> Result<(Vec<u8>, Vec<Note>), Refused> {
        if self.limits.name.is_some_and(|rule| !rule.allow(tool.name.as_str())) {
            return Err(Refused::Beyond(format!("a tool called `{}`", tool.name.as_str())));
        }
        let check = |schema: &mut serde_json::Value| limits::check(schema, self.limits);
        let applied = schema::apply_within(&tool.tool.parameters, self.steps, &check)?;
        let description = Some(tool.tool.description.as_ref());
        let description = description.filter(|text| self.limits.empty_description || !text.trim().is_empty());
        Ok(((self.write)(&Piece { tool, description, schema: &applied.json }), applied.notes))
    }

    fn tell(tool: &ViewTool, note: Note) -> Finding {
        let finding = lossy(tool, note.message).at(format!("/parameters{}", note.pointer));
        if note.hint.is_empty() { finding } else { finding.hint(note.hint) }
    }
}

impl Format for Vendor {
    fn id(&self) -> &'static str {
        self.id
    }

    fn limits(&self) -> &Limits {
        self.limits
    }

    fn for_llm(&self) -> bool {
        true
    }

    fn encode(&self, tool: &ViewTool) -> Encoded {
        match self.fit(tool) {
            Ok((json, notes)) => {
                Encoded { json: Some(json), findings: notes.into_iter().map(|note| Self::tell(tool, note)).collect() }
            }
            Err(refused) => {
                let message = format!("left out of `{}`: {refused}", self.id);
                let finding = quarantined(tool, message).at("/parameters").hint(refused.hint());
                Encoded { json: None, findings: vec![finding] }
            }
        }
    }

    fn frame(&self, _head: &ListHead<'_>) -> Frame {
        Frame { open: self.frame.0.into(), close: self.frame.1.into() }
    }

    fn without_tools(&self) -> Option<&'static str> {
        self.nothing
    }

    fn end_mark(&self) -> EndMark {
        self.cached
    }

    fn variant(&self, options: Options) -> Option<&'static dyn Format> {
        self.variants.iter().find(|(known, _)| *known == options).map(|(_, format)| *format as &dyn Format)
    }
}
