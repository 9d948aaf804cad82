//! The meta fields of the Tool Protocol in the schema of a tool's parameters.
//!
//! A tool of that protocol writes what it is called (`_tool`), its activity (`_activity`) and the
//! schema of its results (`_output`) among its parameters. They are none: they become what every
//! other protocol writes beside the parameters. A schema in which no field has that form keeps
//! all of its parameters, also those whose names begin with an underscore.

use std::borrow::Cow;

use super::document::budget::{DecodeBudget, MEMBER, shared_text_bytes};
use super::document::flaw::Flaw;
use crate::json::scan::string;
use crate::json::tree::Node;
use crate::model::{ACTIVITY, JsonText, META_FIELDS, Tool};

/// The member that the schema of the results becomes.
const OUTPUT: &str = "outputSchema";

type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// Moves the meta fields out of the parameters of a tool, if its schema is one of the Tool
/// Protocol. What the tool says beside its parameters goes before what it says among them.
pub(in crate::protocols) fn lift(tool: &mut Tool, budget: &mut DecodeBudget) -> Result<(), Flaw> {
    if !tool.parameters.get().contains("\"_") {
        return Ok(());
    }
    let text = tool.parameters.clone();
    // What cannot be read as a tree is judged where the schema is used.
    let Ok(Node::Object(mut schema)) = budget.tree(text.get()) else {
        return Ok(());
    };
    let Some(Node::Object(properties)) = member(&mut schema, "properties") else {
        return Ok(());
    };
    if !speaks_tool_protocol(properties) {
        return Ok(());
    }
    let (meta, parameters): (Members<'_>, _) = std::mem::take(properties)
        .into_iter()
        .partition(|(name, _)| META_FIELDS.contains(&name.as_ref()));
    *properties = parameters;
    if let Some(Node::List(required)) = member(&mut schema, "required") {
        required.retain(|name| {
            !name
                .as_string()
                .is_some_and(|name| META_FIELDS.contains(&name))
        });
        if required.is_empty() {
            schema.retain(|(name, _)| name != "required");
        }
    }
    describe(tool, &mut schema, budget)?;
    let mut extra = tool.extra.to_vec();
    for (name, field) in meta {
        let member = match name.as_ref() {
            "_output" if tool.output().is_none() => Some((OUTPUT, field.text())),
            ACTIVITY if tool.own_activity().is_none() => {
                constant(&field).map(|text| (ACTIVITY, text.to_owned()))
            }
            _ => None,
        };
        if let Some((name, json)) = member {
            budget.take(MEMBER + shared_text_bytes(name) + shared_text_bytes(&json))?;
            extra.push((name.into(), JsonText::known(json)));
        }
    }
    let written = Node::Object(schema).text();
    budget.take(shared_text_bytes(&written))?;
    (tool.parameters, tool.extra) = (JsonText::known(written), extra.into());
    Ok(())
}

/// The description of such a schema is that of its tool.
fn describe(
    tool: &mut Tool,
    schema: &mut Members<'_>,
    budget: &mut DecodeBudget,
) -> Result<(), Flaw> {
    let description = member(schema, "description")
        .and_then(|description| string(description.as_scalar()?).map(Cow::into_owned));
    let Some(description) = description
        .filter(|description| tool.description.is_empty() || *description == *tool.description)
    else {
        return Ok(());
    };
    schema.retain(|(name, _)| name != "description");
    budget.take(shared_text_bytes(&description))?;
    tool.description = description.into();
    Ok(())
}

/// Whether a field has the form that the Tool Protocol gives it: a constant text, or for the
/// results the schema of an object.
fn speaks_tool_protocol(properties: &Members<'_>) -> bool {
    properties.iter().any(|(name, field)| match name.as_ref() {
        "_tool" | ACTIVITY => constant(field).is_some(),
        "_output" => keyword(field, "type").is_some_and(|kind| kind.as_string() == Some("object")),
        _ => false,
    })
}

/// The JSON text of the constant text that a field must have.
fn constant<'a>(field: &'a Node<'_>) -> Option<&'a str> {
    keyword(field, "const")?
        .as_scalar()
        .filter(|text| text.starts_with('"'))
}

fn keyword<'a, 'b>(field: &'a Node<'b>, name: &str) -> Option<&'a Node<'b>> {
    let Node::Object(members) = field else {
        return None;
    };
    members
        .iter()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value)
}

fn member<'a, 'b>(members: &'a mut Members<'b>, name: &str) -> Option<&'a mut Node<'b>> {
    members
        .iter_mut()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value)
}
