//! A format for LLMs as data: limits, a list of transforms and a small writer.
//!
//! It never lets a tool through that its target is known to refuse: such a tool is left out of that
//! format alone, with a finding.

use super::latent;
use super::limits::{self, FormatLimits};
use super::lost_output;
use super::schema::{self, Transform, TransformError, TransformNote};
use super::strict::{Spent, Strict};
use super::{
    Encoded, EndMark, Format, FormatOptions, ListFrame, ListHead, Loading, lossy, quarantined,
};
use crate::model::{Execution, Finding, FindingCode, ViewTool};

/// One vendor's shape.
pub(super) struct Vendor {
    pub(super) id: &'static str,
    pub(super) limits: &'static FormatLimits,
    /// What a schema goes through, in this order: later ones rely on what earlier ones made sure
    /// of.
    pub(super) steps: &'static [Transform],
    /// A tool as one JSON object.
    pub(super) write: fn(&Piece<'_>) -> Vec<u8>,
    /// Before the first tool and after the last.
    pub(super) frame: (&'static str, &'static str),
    /// The whole list when it has no tools, if it is not the empty frame.
    pub(super) empty_list: Option<&'static str>,
    /// What `cache=true` adds.
    pub(super) cached: EndMark,
    /// The strict mode that each tool tries first.
    pub(super) strict: Option<&'static Strict>,
    /// What it has for tools that are deferred.
    pub(super) deferral: Option<Deferral>,
    /// Which schemas are written as they are where the steps would only write the same otherwise.
    pub(super) as_is: Option<fn(&str) -> bool>,
    /// The same format with options.
    pub(super) variants: &'static [(FormatOptions, &'static Vendor)],
}

/// How a vendor takes deferred tools.
pub(super) struct Deferral {
    /// At most so many in one request.
    pub(super) most: usize,
    /// The vendor's own tool that searches them, which ends the list.
    pub(super) search: EndMark,
    /// The name of that tool, which no other may have.
    pub(super) name: &'static str,
}

/// The parts of one tool that a writer needs.
pub(super) struct Piece<'a> {
    pub(super) tool: &'a ViewTool,
    /// Not there when it is empty and the target refuses that.
    pub(super) description: Option<&'a str>,
    /// The schema's text.
    pub(super) schema: &'a str,
    /// Whether the vendor holds the LLM to it.
    pub(super) strict: bool,
    /// Whether it is deferred.
    pub(super) deferred: bool,
}

impl Vendor {
    fn fit(
        &self,
        tool: &ViewTool,
        loading: Loading,
        strict: Option<(&Strict, &mut Spent)>,
    ) -> Result<(Vec<u8>, Vec<TransformNote>), TransformError> {
        if self
            .deferral
            .as_ref()
            .is_some_and(|deferral| deferral.name == tool.name.as_str())
        {
            return Err(TransformError::Unsupported(
                "the name of the vendor's own tool that searches deferred ones".into(),
            ));
        }
        if self
            .limits
            .name
            .is_some_and(|rule| !rule.allow(tool.name.as_str()))
        {
            return Err(TransformError::Unsupported(format!(
                "a tool called `{}`",
                tool.name.as_str()
            )));
        }
        let steps = strict
            .as_ref()
            .map_or(self.steps, |(strict, _)| strict.steps);
        let is_strict = strict.is_some();
        let mut admit = strict;
        let mut check = |schema: &mut serde_json::Value| {
            limits::check(schema, self.limits)?;
            admit
                .as_mut()
                .map_or(Ok(()), |(strict, spent)| strict.admit(schema, spent))
        };
        let is_latent = tool.execution == Execution::Latent && !self.has_meta_fields();
        let composed = is_latent
            .then(|| latent::parameters(&tool.tool))
            .transpose()?;
        let raw = composed.as_ref().unwrap_or(&tool.tool.parameters);
        let mut applied = schema::apply_within(raw, steps, &mut check)?;
        if applied.means_the_same() && self.as_is.is_some_and(|as_is| as_is(raw.get())) {
            applied = applied.undone(raw);
        }
        let description = Some(tool.tool.description.as_ref());
        let description =
            description.filter(|text| self.limits.empty_description || !text.trim().is_empty());
        let piece = Piece {
            tool,
            description,
            schema: &applied.json,
            strict: is_strict,
            deferred: loading == Loading::Deferred,
        };
        Ok(((self.write)(&piece), applied.notes))
    }

    /// Whether it writes the meta fields of a call beside the parameters.
    fn has_meta_fields(&self) -> bool {
        self.id == "calls"
    }

    /// Adds a finding about a description that some servers of this shape refuse. It is not cut: to
    /// most of them every word of it counts.
    fn long(&self, tool: &ViewTool) -> Option<Finding> {
        let most = self.limits.described?;
        let text = &tool.tool.description;
        // Bytes are at least as many as characters, and cheap to count.
        let count = if text.len() > most {
            text.chars().count()
        } else {
            0
        };
        (count > most).then(|| {
            let message = format!(
                "its description has {count} characters: some servers of `{}` take {most} at most",
                self.id
            );
            Finding::new(FindingCode::DescriptionLong, message)
                .of_scenario(&tool.id.scenario)
                .of_tool(tool.id.tool.clone())
                .at("/description")
                .hint(
                    "shorten the description; details belong to the descriptions of the parameters",
                )
        })
    }

    /// The finding that a format which shows the schema of a tool's results leaves it out.
    fn lost_output(&self, tool: &ViewTool) -> Option<Finding> {
        // Its lists for clients have ids of their own, such as `mcp:always`.
        let shows = self.id.split(':').next() == Some("mcp");
        let (why, hint) = lost_output::lost_output(&tool.tool).filter(|_| shows)?;
        let message = format!(
            "the schema of its results is left out of `{}`: {why}",
            self.id
        );
        Some(lossy(tool, message).at("/outputSchema").hint(hint))
    }

    fn finding_of(tool: &ViewTool, note: TransformNote) -> Finding {
        let finding = lossy(tool, note.message).at(format!("/parameters{}", note.pointer));
        if note.hint.is_empty() {
            finding
        } else {
            finding.hint(note.hint)
        }
    }
}

impl Format for Vendor {
    fn id(&self) -> &'static str {
        self.id
    }

    fn limits(&self) -> &FormatLimits {
        self.limits
    }

    fn for_llm(&self) -> bool {
        true
    }

    fn steps(&self) -> &'static [Transform] {
        self.strict.map_or(self.steps, |strict| strict.steps)
    }

    fn encode(&self, tool: &ViewTool) -> Encoded {
        self.encode_within(tool, Loading::AtOnce, &mut Spent::default())
    }

    fn max_bytes(&self, tool: &ViewTool) -> Option<usize> {
        let first = self.encode(tool).json?.len();
        // With no place left among the strict ones it is written otherwise.
        let later = self
            .request_wide()
            .then(|| self.fit(tool, Loading::AtOnce, None).ok())
            .flatten();
        Some(first.max(later.map_or(0, |(json, _)| json.len())))
    }

    fn max_deferred(&self) -> Option<usize> {
        self.deferral.as_ref().map(|deferral| deferral.most)
    }

    fn request_wide(&self) -> bool {
        self.strict.is_some_and(|strict| strict.request.is_some())
    }

    fn encode_within(&self, tool: &ViewTool, loading: Loading, spent: &mut Spent) -> Encoded {
        let to_findings =
            |notes: Vec<TransformNote>| notes.into_iter().map(|note| Self::finding_of(tool, note));
        let mut findings = Vec::new();
        if let Some(strict) = self.strict {
            match self.fit(tool, loading, Some((strict, spent))) {
                Ok((json, notes)) => {
                    let findings = to_findings(notes).chain(self.long(tool)).collect();
                    return Encoded {
                        json: Some(json),
                        findings,
                    };
                }
                Err(refused) => {
                    let finding = lossy(tool, format!("not strict in `{}`: {refused}", self.id))
                        .at("/parameters");
                    findings.push(
                        finding.hint(
                            "close its objects, give each value a type, or request fewer tools",
                        ),
                    );
                }
            }
        }
        match self.fit(tool, loading, None) {
            Ok((json, notes)) => {
                findings.extend(
                    to_findings(notes)
                        .chain(self.long(tool))
                        .chain(self.lost_output(tool)),
                );
                Encoded {
                    json: Some(json),
                    findings,
                }
            }
            Err(refused) => {
                let message = format!("left out of `{}`: {refused}", self.id);
                let finding = quarantined(tool, message)
                    .at("/parameters")
                    .hint(refused.hint());
                Encoded {
                    json: None,
                    findings: vec![finding],
                }
            }
        }
    }

    fn frame(&self, _head: &ListHead<'_>) -> ListFrame {
        ListFrame {
            open: self.frame.0.into(),
            close: self.frame.1.into(),
        }
    }

    fn without_tools(&self) -> Option<&'static str> {
        self.empty_list
    }

    fn end_mark(&self, deferred: usize) -> EndMark {
        self.deferral
            .as_ref()
            .filter(|_| deferred > 0)
            .map_or(self.cached, |deferral| deferral.search)
    }

    fn variant(&self, options: FormatOptions) -> Option<&'static dyn Format> {
        self.variants
            .iter()
            .find(|(known, _)| *known == options)
            .map(|(_, format)| *format as &dyn Format)
    }
}
