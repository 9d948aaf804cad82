//! Checks `async_behavior`: whether callers of a tool can follow the operation to its end, and
//! cancel it.
//!
//! This object is not in the first version of the protocol's text; its providers and their consumer
//! agree on the shape. `status_polling` names the status tool, the field of the first answer that
//! contains the operation's id, and the parameter that takes it. `completion_conditions` say when
//! the operation has ended. `cancellation` names the tool that cancels it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::rule_context::RuleContext;
use crate::json::value::Json;
use crate::model::finding::quoted_excerpt;
use crate::model::{FindingCode, Tool};

/// At most this many other required parameters are named in a message.
const NAMED: usize = 4;

/// Words of the names of ids that do not say what the id means.
const ANY_ID: [&str; 12] = [
    "id",
    "ids",
    "uuid",
    "guid",
    "key",
    "ref",
    "handle",
    "identifier",
    "operation",
    "result",
    "data",
    "name",
];

/// The tools of a manifest, by name. The parameters of a tool are parsed once, at first use.
pub(super) struct ManifestTools<'m> {
    /// Sorted by name.
    tools: &'m [Arc<Tool>],
    read: HashMap<&'m str, ToolParameters<'m>>,
}

/// The parameters of a tool.
struct ToolParameters<'m> {
    required: Vec<std::borrow::Cow<'m, str>>,
    properties: HashMap<std::borrow::Cow<'m, str>, Json<'m>>,
}

impl<'m> ManifestTools<'m> {
    pub(super) fn new(tools: &'m [Arc<Tool>]) -> Self {
        Self {
            tools,
            read: HashMap::new(),
        }
    }

    fn inputs(&mut self, name: &str) -> Option<&ToolParameters<'m>> {
        let at = self
            .tools
            .binary_search_by(|tool| tool.name.as_ref().cmp(name))
            .ok()?;
        let tool = &self.tools[at];
        Some(
            self.read
                .entry(&tool.name)
                .or_insert_with(|| ToolParameters::for_tool(tool)),
        )
    }
}

impl<'m> ToolParameters<'m> {
    fn for_tool(tool: &'m Tool) -> Self {
        let Some(Json::Object(members)) = Json::parse(tool.parameters.get()) else {
            return Self {
                required: Vec::new(),
                properties: HashMap::new(),
            };
        };
        let mut required = HashSet::new();
        let mut properties = HashMap::new();
        let mut order = Vec::new();
        for (name, value) in members {
            match (name.as_ref(), value) {
                ("required", Json::List(names)) => {
                    for name in names {
                        if let Json::Text(name) = name
                            && required.insert(name.clone())
                        {
                            order.push(name);
                        }
                    }
                }
                ("properties", Json::Object(members)) => properties = members.into_iter().collect(),
                _ => {}
            }
        }
        Self {
            required: order,
            properties,
        }
    }
}

/// Checks `long_running` and `async_behavior` of a tool.
pub(super) fn judge(
    place: &mut RuleContext<'_>,
    metadata: &Json<'_>,
    offered: &mut ManifestTools<'_>,
) {
    let Some(behaviour) = metadata.get_non_null("async_behavior") else {
        if metadata.get("long_running") == Some(&Json::Bool(true)) {
            let message =
                "the tool may take long, but callers cannot follow it without `async_behavior`";
            let hint = "add `async_behavior`, or remove `long_running` if the call itself waits for the end";
            place.report_at(
                "/long_running",
                FindingCode::LongRunningUntracked,
                message,
                hint,
            );
        }
        return;
    };
    place.within("async_behavior", |place| {
        if !matches!(behaviour, Json::Object(_)) {
            let message = format!(
                "`async_behavior` must be an object, but it is {}",
                behaviour.kind()
            );
            return place.report(
                FindingCode::AsyncIncomplete,
                message,
                "give it `status_polling` and `completion_conditions`",
            );
        }
        status(place, behaviour, offered);
        completion(place, behaviour);
        if let Some(cancellation) = behaviour.get_non_null("cancellation") {
            place.within("cancellation", |place| {
                let id = behaviour
                    .get_non_null("status_polling")
                    .and_then(|polling| polling.text_of("operation_id_field"));
                let names = PartnerNames {
                    tool: "cancel_tool",
                    param: "cancel_tool_id_param",
                    id,
                };
                partner(place, cancellation, &names, "cancelled", offered);
            });
        }
    });
}

fn status(place: &mut RuleContext<'_>, behaviour: &Json<'_>, offered: &mut ManifestTools<'_>) {
    let Some(polling) = behaviour.get_non_null("status_polling") else {
        let message =
            "`status_polling` is missing, so callers cannot poll the status of the operation";
        return place.report(
            FindingCode::AsyncIncomplete,
            message,
            "add `status_polling` with the `status_tool` and the parameter for the operation's id",
        );
    };
    let id_field = polling.text_of("operation_id_field");
    place.within("status_polling", |place| {
        if id_field.is_none() {
            let message =
                "`operation_id_field` is missing, so callers cannot find the operation's id";
            place.report(
                FindingCode::AsyncIncomplete,
                message,
                "name the field of the tool's answer that contains the id",
            );
        }
        let names = PartnerNames {
            tool: "status_tool",
            param: "status_tool_id_param",
            id: id_field,
        };
        partner(place, polling, &names, "followed", offered);
    });
}

fn completion(place: &mut RuleContext<'_>, behaviour: &Json<'_>) {
    let Some(conditions) = behaviour.get_non_null("completion_conditions") else {
        let message = "`completion_conditions` is missing, so callers do not know when the operation has ended";
        let hint = "name the `status_field` and the values that mean success and failure";
        return place.report(FindingCode::AsyncIncomplete, message, hint);
    };
    place.within("completion_conditions", |place| {
        if conditions.text_of("status_field").is_none() {
            let message =
                "`status_field` is missing, so callers do not know when the operation has ended";
            place.report(
                FindingCode::AsyncIncomplete,
                message,
                "name the field of the status tool's answer",
            );
        }
        if conditions
            .get("success_values")
            .and_then(Json::list)
            .is_none_or(<[_]>::is_empty)
        {
            let message =
                "`success_values` is missing or empty, so the operation can never succeed";
            place.report(
                FindingCode::AsyncIncomplete,
                message,
                "list the values of `status_field` that mean success",
            );
        }
    });
}

/// The members that name a status tool or a cancel tool and its parameter for the id, and the
/// declared field of the id.
struct PartnerNames<'a> {
    tool: &'static str,
    param: &'static str,
    id: Option<&'a str>,
}

/// Whether a field and a parameter can hold the same id, judged by the words of their names. Words
/// such as `id`, which every id may have, decide nothing.
fn names_fit(field: &str, param: &str) -> bool {
    let words = |name: &str| -> HashSet<String> {
        let mut apart = String::new();
        for c in name.chars() {
            if c.is_ascii_uppercase()
                && !apart.ends_with(|before: char| before.is_ascii_uppercase())
            {
                apart.push(' ');
            }
            apart.push(if c.is_alphanumeric() { c } else { ' ' });
        }
        let words = apart.split_whitespace().map(str::to_lowercase);
        words
            .filter(|word| !ANY_ID.contains(&word.as_str()))
            .collect()
    };
    let field = words(field);
    let param = words(param);
    field.is_empty() || param.is_empty() || !field.is_disjoint(&param)
}

/// Checks the status tool or the cancel tool: `declaration` is the object that names it.
fn partner(
    place: &mut RuleContext<'_>,
    declaration: &Json<'_>,
    &PartnerNames {
        tool: tool_member,
        param: id_member,
        id: id_field,
    }: &PartnerNames<'_>,
    purpose: &str,
    offered: &mut ManifestTools<'_>,
) {
    let Some(name) = declaration.text_of(tool_member) else {
        let message = format!("`{tool_member}` is missing, so the operation cannot be {purpose}");
        return place.report(
            FindingCode::AsyncIncomplete,
            message,
            "name a tool of this manifest",
        );
    };
    let Some(inputs) = offered.inputs(name) else {
        let message = format!(
            "this manifest has no tool {}, so the operation cannot be {purpose}",
            quoted_excerpt(name)
        );
        let hint = "add that tool, or name a tool of this manifest";
        return place.report_at(
            &format!("/{tool_member}"),
            FindingCode::AsyncToolMissing,
            message,
            hint,
        );
    };
    let Some(id) = declaration.text_of(id_member) else {
        let message = format!(
            "`{id_member}` is missing, so callers cannot pass the operation's id to {}",
            quoted_excerpt(name)
        );
        return place.report(
            FindingCode::AsyncIncomplete,
            message,
            "name the parameter that takes the operation's id",
        );
    };
    other_parameters(place, tool_member, name, inputs, id);
    id_parameter(place, id_member, id_field, name, inputs, id);
}

/// Checks that the tool `name` requires no parameter besides the one for the operation's id.
fn other_parameters(
    place: &mut RuleContext<'_>,
    tool_member: &str,
    name: &str,
    inputs: &ToolParameters<'_>,
    id: &str,
) {
    let others: Vec<String> = inputs
        .required
        .iter()
        .filter(|other| *other != id)
        .take(NAMED)
        .map(|other| quoted_excerpt(other))
        .collect();
    if !others.is_empty() {
        let message = format!(
            "{} also requires {}, but callers only have the operation's id",
            quoted_excerpt(name),
            others.join(", ")
        );
        let hint = "make the other parameters optional";
        place.report_at(
            &format!("/{tool_member}"),
            FindingCode::AsyncArguments,
            message,
            hint,
        );
    }
}

/// Checks that the parameter `id` of the tool `name` can take the operation's id.
fn id_parameter(
    place: &mut RuleContext<'_>,
    id_member: &str,
    id_field: Option<&str>,
    name: &str,
    inputs: &ToolParameters<'_>,
    id: &str,
) {
    let pointer = format!("/{id_member}");
    match inputs.properties.get(id) {
        None => {
            let message = format!(
                "{} has no parameter {} for the operation's id",
                quoted_excerpt(name),
                quoted_excerpt(id)
            );
            place.report_at(
                &pointer,
                FindingCode::AsyncArguments,
                message,
                "name a parameter of that tool",
            );
        }
        Some(schema) => {
            if let Some(kind @ ("integer" | "number" | "boolean" | "array" | "object")) =
                schema.text_of("type")
            {
                let message = format!(
                    "{} takes the operation's id as `{kind}`, but callers send it as a string",
                    quoted_excerpt(id)
                );
                place.report_at(
                    &pointer,
                    FindingCode::AsyncIdType,
                    message,
                    "make the id a string in both tools",
                );
            }
            if let Some(field) = id_field.filter(|field| !names_fit(field, id)) {
                let message = format!(
                    "{} gets the {} of the answer, but by its name it expects another id",
                    quoted_excerpt(id),
                    quoted_excerpt(field)
                );
                let hint = "name a parameter that takes the id of the operation, or the field with this id";
                place.report_at(&pointer, FindingCode::AsyncArguments, message, hint);
            }
        }
    }
}
