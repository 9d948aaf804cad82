//! The daemon that the description of the API shows, and what reads that description.

use callsheet::model::PinMode;
use callsheet::provide::{Parameter, ToolDefinition};
use serde_json::Value;

use crate::support::daemon::{Daemon, Home, NEVER, Scenario};

/// A daemon that asks only when it is told to, with two scenarios that both offer a `search_text`.
pub(crate) async fn described() -> (Home, Daemon, Scenario, Scenario) {
    let home = Home::new();
    let offered = |name: &str, about: &str| ToolDefinition::new(name, about).unwrap();
    let path = || Parameter::string("Where it is, below the shared folder").required();
    let files = Scenario::start(
        "files",
        [
            offered("read_text", "Reads a text file")
                .category("disk")
                .parameter("path", path()),
            offered("delete_file", "Deletes a file")
                .category("disk")
                .parameter("path", path())
                .requires_approval(true),
            offered("search_text", "Searches the text of all files")
                .category("disk")
                .parameter("words", path()),
        ],
    );
    let notes = Scenario::start(
        "notes",
        [
            offered("add_note", "Writes a note down")
                .parameter("text", Parameter::string("What it says").required()),
            offered("search_text", "Searches the text of all notes").parameter("words", path()),
        ],
    );
    let files = files.await;
    let notes = notes.await;
    let mut config = home.config(&[&files, &notes]);
    config.pins = PinMode::Warn;
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    let daemon = Daemon::ready(config).await;
    (home, daemon, files, notes)
}

/// Sets a member of an object.
pub(crate) fn set(object: &mut Value, member: &str, value: Value) {
    object
        .as_object_mut()
        .unwrap()
        .insert(member.to_owned(), value);
}

/// One operation of the description.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    pub(crate) method: String,
    pub(crate) path: &'a str,
    pub(crate) spec: &'a Value,
}

/// Every operation of the description.
pub(crate) fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths
        .iter()
        .flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |one| (path, one)));
    all.map(|(path, (method, spec))| Operation {
        method: method.to_uppercase(),
        path,
        spec,
    })
    .collect()
}

impl Operation<'_> {
    pub(crate) fn id(&self) -> &str {
        self.spec["operationId"].as_str().unwrap()
    }

    pub(crate) fn params(&self, place: &str) -> Vec<&Value> {
        self.spec["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|param| param["in"] == place)
            .collect()
    }

    /// A target made of the examples of its parameters: those of the path, and those of the query
    /// that are required or `wanted`.
    pub(crate) fn target(&self, wanted: impl Fn(&str) -> bool) -> String {
        let mut target = self.path.to_owned();
        for param in self.params("path") {
            let name = param["name"].as_str().unwrap();
            target = target.replace(&format!("{{{name}}}"), param["example"].as_str().unwrap());
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for param in self.params("query") {
            let name = param["name"].as_str().unwrap();
            let Some(example) = param.get("example") else {
                continue;
            };
            if param["required"] == true || wanted(name) {
                let example = example.get(0).unwrap_or(example);
                query.append_pair(
                    name,
                    &example
                        .as_str()
                        .map_or_else(|| example.to_string(), str::to_owned),
                );
            }
        }
        let query = query.finish();
        if query.is_empty() {
            target
        } else {
            format!("{target}?{query}")
        }
    }

    /// What a status is answered with, looked up if it is one of the common parts.
    pub(crate) fn response<'a>(&'a self, document: &'a Value, status: u16) -> Option<&'a Value> {
        let response = self.spec["responses"].get(status.to_string())?;
        Some(match response["$ref"].as_str() {
            Some(to) => document.pointer(to.trim_start_matches('#')).unwrap(),
            None => response,
        })
    }
}

/// What a value lacks of a schema of the description; nothing when it fits.
pub(crate) fn lacks(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let whole = serde_json::json!({"components": document["components"], "allOf": [schema]});
    let validator = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&whole)
        .unwrap();
    validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}
