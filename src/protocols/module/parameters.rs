//! From a list of parameters to an object schema.

use std::collections::HashSet;

use crate::json::scan::kind;
use crate::json::write::write_string;
use crate::model::JsonText;
use crate::protocols::document::budget::{DecodeBudget, shared_text_bytes};
use crate::protocols::document::envelope::{Members, UNKNOWN_MEMBERS_MAX, each_item};
use crate::protocols::document::flaw::{Flaw, quoted_excerpt};
use crate::protocols::document::raw::Raw;

/// The schema of a tool with these parameters: an object with a property for each, in their order.
pub(super) fn schema(raw: Option<Raw<'_>>, budget: &mut DecodeBudget) -> Result<JsonText, Flaw> {
    let mut schema = SchemaBuilder::default();
    if let Some(raw) = raw {
        let mut read = Ok(());
        let count = each_item(raw, |index, raw| {
            if read.is_ok() && index < UNKNOWN_MEMBERS_MAX {
                read = schema
                    .add(raw, budget)
                    .map_err(|flaw| flaw.within(&index.to_string()));
            }
        });
        let count = count.map_err(|found| Flaw::kind("", found, "a list of parameters"))?;
        read?;
        if count > UNKNOWN_MEMBERS_MAX {
            return Err(Flaw::new(
                "",
                format!("has {count} parameters, more than {UNKNOWN_MEMBERS_MAX}"),
            )
            .hint("split the tool"));
        }
    }
    let written = schema.finish();
    budget.take(shared_text_bytes(&written))?;
    Ok(JsonText::known(written))
}

/// A schema under way.
#[derive(Default)]
struct SchemaBuilder {
    /// What stands between the braces of `properties`.
    properties: String,
    /// What stands between the brackets of `required`.
    required: String,
    /// The names of the parameters.
    names: HashSet<String>,
}

impl SchemaBuilder {
    fn add(&mut self, raw: Raw<'_>, budget: &mut DecodeBudget) -> Result<(), Flaw> {
        let parameter = ModuleParameter::decode(raw, budget)?;
        if self.names.contains(&parameter.name) {
            let what = format!(
                "names {} for the second time",
                quoted_excerpt(&parameter.name)
            );
            return Err(Flaw::new("/name", what).hint("give each parameter of a tool its own name"));
        }
        property(&mut self.properties, &parameter);
        if parameter.required {
            comma(&mut self.required);
            write_string(&mut self.required, &parameter.name);
        }
        self.names.insert(parameter.name);
        Ok(())
    }

    fn finish(self) -> String {
        let Self {
            properties,
            required,
            ..
        } = self;
        let mut schema = r#"{"type":"object","properties":{"#.to_owned();
        schema.reserve_exact(properties.len() + required.len() + 20);
        schema.push_str(&properties);
        schema.push('}');
        if !required.is_empty() {
            schema.push_str(r#","required":["#);
            schema.push_str(&required);
            schema.push(']');
        }
        schema.push('}');
        schema
    }
}

/// One parameter. Its values are JSON texts.
struct ModuleParameter {
    name: String,
    required: bool,
    /// The keywords of its schema, in the order in which they are written.
    keywords: Vec<(String, String)>,
}

impl ModuleParameter {
    fn decode(raw: Raw<'_>, budget: &mut DecodeBudget) -> Result<Self, Flaw> {
        let mut members = Members::from_raw(raw)?;
        let name = members.take_text("name")?.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            Flaw::new("/name", "is missing or empty").hint("give the parameter a `name`")
        })?;
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
            keywords.push(("type".to_owned(), checked(raw, "type", budget)?));
        } else {
            return Err(
                Flaw::new("/type", "is missing").hint("write its type, such as `\"string\"`")
            );
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
            let written = checked(raw, "enum", budget)?;
            // An empty list would allow nothing, and is how some write that there is none.
            if written != "[]" {
                keywords.push(("enum".to_owned(), written));
            }
        }
        for (name, value) in members.into_extra(budget)? {
            keywords.push((name.to_string(), value.get().to_owned()));
        }
        Ok(Self {
            name: name.into_owned(),
            required,
            keywords,
        })
    }
}

/// A value as compact text that every reader can read.
fn checked(raw: Raw<'_>, name: &str, budget: &DecodeBudget) -> Result<String, Flaw> {
    Ok(budget
        .tree(raw.get())
        .map_err(|flaw| flaw.within(name))?
        .text())
}

fn property(properties: &mut String, parameter: &ModuleParameter) {
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
