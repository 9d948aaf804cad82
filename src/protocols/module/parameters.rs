//! From a list of parameters to an object schema.

use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::model::JsonText;
use crate::protocols::tool_discovery::envelope::{Members, Raw};
use crate::protocols::tool_discovery::flaw::{Flaw, shown};
use crate::protocols::tool_discovery::text::{Node, kind, write_string};

/// The schema of a tool with these parameters: an object with a property for each, in their order.
pub(super) fn schema(raw: Option<Raw<'_>>) -> Result<JsonText, Flaw> {
    let items: Vec<&RawValue> = match raw {
        None => Vec::new(),
        Some(raw) => {
            serde_json::from_str(raw.get()).map_err(|_| Flaw::kind("", kind(raw.get()), "a list of parameters"))?
        }
    };
    let (mut properties, mut required) = (String::new(), String::new());
    let mut seen = HashSet::new();
    for (index, raw) in items.into_iter().enumerate() {
        let parameter = Parameter::read(Raw::of(raw)).map_err(|flaw| flaw.within(&index.to_string()))?;
        if !seen.insert(parameter.name.clone()) {
            let what = format!("names {} for the second time", shown(&parameter.name));
            let flaw = Flaw::new("/name", what).hint("give each parameter of a tool its own name");
            return Err(flaw.within(&index.to_string()));
        }
        property(&mut properties, &parameter);
        if parameter.required {
            comma(&mut required);
            write_string(&mut required, &parameter.name);
        }
    }
    let mut schema = format!(r#"{{"type":"object","properties":{{{properties}}}"#);
    if !required.is_empty() {
        schema = format!(r#"{schema},"required":[{required}]"#);
    }
    schema.push('}');
    Ok(JsonText::known(&schema))
}

/// One parameter. Its values are JSON texts.
struct Parameter {
    name: String,
    required: bool,
    /// The keywords of its schema, in the order in which they are written.
    keywords: Vec<(String, String)>,
}

impl Parameter {
    fn read(raw: Raw<'_>) -> Result<Self, Flaw> {
        let mut members = Members::read(raw).map_err(|found| Flaw::kind("", found, "an object"))?;
        let name = members.take_text("name")?.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Flaw::new("/name", "is missing or empty").hint("give the parameter a `name`"))?;
        let required = match members.take_set("required").map(Raw::get) {
            None | Some("true") => true,
            Some("false") => false,
            Some(other) => return Err(Flaw::kind("/required", kind(other), "a boolean")),
        };
        let mut keywords = Vec::new();
        if let Some(raw) = members.take_set("type") {
            if !matches!(kind(raw.get()), "a text" | "a list") {
                return Err(Flaw::kind("/type", kind(raw.get()), "a text"));
            }
            keywords.push(("type".to_owned(), checked(raw, "type")?));
        } else {
            return Err(Flaw::new("/type", "is missing").hint("say its type, such as `\"string\"`"));
        }
        if let Some(text) = members.take_text("description")? {
            let mut written = String::new();
            write_string(&mut written, &text);
            keywords.push(("description".to_owned(), written));
        }
        if let Some(raw) = members.take_set("enum") {
            if kind(raw.get()) != "a list" {
                return Err(Flaw::kind("/enum", kind(raw.get()), "a list"));
            }
            let written = checked(raw, "enum")?;
            // An empty list would allow nothing, and is how some write that there is none.
            if written != "[]" {
                keywords.push(("enum".to_owned(), written));
            }
        }
        for (name, value) in members.into_extra()? {
            keywords.push((name.to_string(), value.get().to_owned()));
        }
        Ok(Self { name: name.into_owned(), required, keywords })
    }
}

/// A value as compact text that every reader can read.
fn checked(raw: Raw<'_>, name: &str) -> Result<String, Flaw> {
    Ok(Node::read(raw.get()).map_err(|flaw| flaw.within(name))?.text())
}

fn property(properties: &mut String, parameter: &Parameter) {
    comma(properties);
    write_string(properties, &parameter.name);
    properties.push_str(":{");
    for (index, (name, value)) in parameter.keywords.iter().enumerate() {
        if index > 0 {
            properties.push(',');
        }
        write_string(properties, name);
        properties.push(':');
        properties.push_str(value);
    }
    properties.push('}');
}

fn comma(list: &mut String) {
    if !list.is_empty() {
        list.push(',');
    }
}
