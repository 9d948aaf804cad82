//! OpenAI Chat Completions `tools`: an array that can be pasted into a request.
//!
//! One schema that the vendor refuses fails the whole request, so each schema goes through [`TRANSFORMS`] and a tool that cannot be
//! made acceptable is left out with a finding. There is never a `strict` key: without it the vendor takes schemas as they are.

use super::schema::{self, Transform};
use super::write::ObjectWriter;
use super::{Encoded, Format, Frame, Limits, ListHead, lossy};
use crate::model::ViewTool;

/// `format=openai`.
#[derive(Debug)]
pub struct OpenAi;

/// 128: what the server answers to a longer array ("Expected an array with maximum length 128", seen in public reports of November
/// 2025). The vendor's API description states no number for `tools`.
const LIMITS: Limits = Limits { max_tools: Some(128) };

/// What a schema goes through, in this order: later ones rely on what earlier ones made sure of.
const TRANSFORMS: &[Transform] = &[
    schema::noise::drop_noise,
    schema::well_formed::well_formed,
    schema::items::array_items,
    schema::root::object_root,
    schema::fold::flat_root,
    schema::required::known_required,
];

impl Format for OpenAi {
    fn id(&self) -> &'static str {
        "openai"
    }

    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn for_llm(&self) -> bool {
        true
    }

    fn encode(&self, tool: &ViewTool) -> Encoded {
        let applied = match schema::apply(&tool.tool.parameters, TRANSFORMS) {
            Ok(applied) => applied,
            Err(refused) => {
                let finding =
                    lossy(tool, format!("left out of `openai`: {refused}")).at("/parameters").hint(refused.hint());
                return Encoded { json: None, findings: vec![finding] };
            }
        };
        let mut function = ObjectWriter::after(br#"{"type":"function","function":"#.to_vec());
        let description = Some(tool.tool.description.as_ref()).filter(|text| !text.is_empty());
        function.text("name", tool.name.as_str()).optional("description", description).raw("parameters", &applied.json);
        let mut json = function.end();
        json.push(b'}');
        let findings = applied.notes.into_iter().map(|note| {
            let finding = lossy(tool, note.message).at(format!("/parameters{}", note.pointer));
            if note.hint.is_empty() { finding } else { finding.hint(note.hint) }
        });
        Encoded { json: Some(json), findings: findings.collect() }
    }

    fn frame(&self, _head: &ListHead<'_>) -> Frame {
        Frame { open: b"[".to_vec(), close: b"]".to_vec() }
    }
}
