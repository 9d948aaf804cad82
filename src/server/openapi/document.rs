//! Builds the description of the API (`OpenAPI` 3.1.0) from the table of routes. Pure.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::server::events::event_json as event_wire;
use crate::server::http::error;
use crate::server::http::params::Param;
use crate::server::openapi::examples;
use crate::server::openapi::examples::Example;
use crate::server::openapi::refusals::COMMON;
use crate::server::openapi::{OperationSpec, ResponseSpec, Tag, Verb};
use crate::server::route_spec::RouteSpec;

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";
/// The name of the operator's token in the document. It is the first name that the token had, which
/// generated clients use.
const TOKEN: &str = "approvalToken";
const ABOUT: &str = "One always-current list of every tool that AI agents may call.\n\n\
    Whatever is refused is answered with problem details (RFC 9457) that name the thing, the place and the next step. A query parameter \
    that a route does not know is refused (only `/`, `/healthz`, `/readyz` and `/metrics` look at none), and so is one that is given twice; those that may be repeated also take several values with \
    commas between. Every `GET` is a `HEAD`, too. A method that a path does not take is answered 405 with `Allow`, a path that is not \
    there 404. Lists and this description come with a strong `ETag`, answer 304 to an `If-None-Match` that names it, and are sent in \
    `br`, `zstd` or `gzip` to clients that accept it. There is no login; requests of web pages of other sites are refused. \
    Where `server.operator_token` is configured, operations that approve, operate or loosen need that token; they name it in `security`.";

/// The whole document for these routes.
pub(in crate::server) fn document(routes: &[RouteSpec]) -> Value {
    let mut making = DocumentBuilder {
        schemas: generator(),
        examples: examples::parse_examples(),
    };
    let problem = making.schemas.subschema_for::<error::ProblemJson<'_>>();
    // No operation refers to it, because a stream is not JSON document, but its messages have this
    // shape.
    making.schemas.subschema_for::<event_wire::EventJson<'_>>();
    let paths = making.paths(routes);
    let responses: Map<String, Value> = COMMON
        .iter()
        .map(|common| {
            let content = json!({PROBLEM: {"schema": problem, "example": common.example()}});
            (
                common.name.to_owned(),
                json!({"description": common.about, "content": content}),
            )
        })
        .collect();
    let tags = Tag::ALL.map(|tag| json!({"name": tag.as_str(), "description": tag.about()}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "callsheet",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/", "description": "The daemon that serves this."}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": making.schemas.take_definitions(true),
            "responses": responses,
            "securitySchemes": {TOKEN: {
                "type": "http",
                "scheme": "bearer",
                "description": "The token of `server.operator_token`. Where none is configured, no caller needs one.",
            }},
        },
    })
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
    settings.into_generator()
}

/// The path of an operation in the document: `{*name}` becomes `{name}`, since a value may hold
/// slashes anyway.
pub(super) fn written_path(route: &RouteSpec, operation: &OperationSpec) -> String {
    format!("{}{}", route.path.replace("{*", "{"), operation.path_suffix)
}

struct DocumentBuilder {
    schemas: SchemaGenerator,
    examples: Vec<Example>,
}

impl DocumentBuilder {
    fn paths(&mut self, routes: &[RouteSpec]) -> Map<String, Value> {
        let mut paths = Map::new();
        for route in routes {
            for operation in route.operations {
                let described = self.operation(route, operation);
                let path = paths
                    .entry(written_path(route, operation))
                    .or_insert_with(|| json!({}));
                path[operation.verb.as_str().to_ascii_lowercase()] = described;
            }
        }
        paths
    }

    fn operation(&mut self, route: &RouteSpec, operation: &OperationSpec) -> Value {
        let mut parameters: Vec<Value> = route
            .path_params
            .iter()
            .map(|param| parameter("path", param))
            .collect();
        parameters.extend(
            operation
                .query
                .iter()
                .map(|param| parameter("query", param)),
        );
        parameters.extend(
            operation
                .headers
                .iter()
                .map(|param| parameter("header", param)),
        );
        if operation.revalidates {
            parameters.push(
                json!({"name": "If-None-Match", "in": "header", "schema": {"type": "string"},
                "description": "The `ETag` of what the client has."}),
            );
        }
        let mut described = json!({
            "operationId": operation.id,
            "tags": [operation.tag.as_str()],
            "summary": capitalised(operation.summary),
            "description": operation.about,
            "parameters": parameters,
        });
        if operation.right.reserved().is_some() {
            // Without a token or with it: the configuration decides whether it is needed, and for
            // preferences also the change.
            described["security"] = json!([{}, {TOKEN: []}]);
        }
        if let Some(body) = operation.body {
            let schema = (body.schema)(&mut self.schemas);
            let mut examples = self.examples(operation, operation.answer.status, |example| {
                example.body.clone()
            });
            if let Some(made) = body.example {
                examples.insert(format!("{}Made", operation.id), json!({"value": made()}));
            }
            let content = json!({body.media: {"schema": schema, "examples": examples}});
            described["requestBody"] = json!({"required": true, "content": content});
        }
        described["responses"] = Value::Object(self.responses(operation));
        described
    }

    /// The answers by status, in order.
    fn responses(&mut self, operation: &OperationSpec) -> Map<String, Value> {
        let mut by_status = BTreeMap::new();
        for common in COMMON
            .iter()
            .filter(|common| (common.applies_to)(operation))
        {
            by_status.insert(
                common.status,
                json!({"$ref": format!("#/components/responses/{}", common.name)}),
            );
        }
        for refusal in operation.refuses {
            let mut examples = self.examples(operation, refusal.status, |example| {
                Some(example.answer.clone())
            });
            if let Some(made) = refusal.example {
                examples.insert(
                    format!("{}Refused", operation.id),
                    json!({"value": made().document()}),
                );
            }
            let schema = self.schemas.subschema_for::<error::ProblemJson<'_>>();
            let content = json!({PROBLEM: {"schema": schema, "examples": examples}});
            by_status.insert(
                refusal.status,
                json!({"description": refusal.about, "content": content}),
            );
        }
        if operation.revalidates {
            let headers = headers(operation, &operation.answer);
            by_status.insert(
                304,
                json!({"description": "The client has it already.", "headers": headers}),
            );
        }
        for answer in [&operation.answer].into_iter().chain(operation.also) {
            by_status.insert(answer.status, self.answer(operation, answer));
        }
        by_status
            .into_iter()
            .map(|(status, response)| (status.to_string(), response))
            .collect()
    }

    fn answer(&mut self, operation: &OperationSpec, answer: &ResponseSpec) -> Value {
        let mut response = json!({"description": capitalised(answer.about), "headers": headers(operation, answer)});
        if let Some(content) = answer.content {
            let schema = (content.schema)(&mut self.schemas);
            let mut examples = self.examples(operation, answer.status, |example| {
                Some(example.answer.clone())
            });
            if let Some(made) = content.example {
                examples.insert(format!("{}Made", operation.id), json!({"value": made()}));
            }
            response["content"] = json!({content.media: {"schema": schema, "examples": examples}});
        }
        response
    }

    /// The examples of one status, each under a name of its own, with the request as its summary.
    fn examples(
        &self,
        operation: &OperationSpec,
        status: u16,
        part: impl Fn(&Example) -> Option<Value>,
    ) -> Map<String, Value> {
        let wanted =
            |example: &&Example| example.operation == operation.id && example.status == status;
        let shown = self
            .examples
            .iter()
            .filter(wanted)
            .filter_map(|example| Some((&example.request, part(example)?)));
        let named = shown.enumerate().map(|(at, (request, value))| {
            (
                format!("{}{}", operation.id, at + 1),
                json!({"summary": request, "value": value}),
            )
        });
        named.collect()
    }
}

fn parameter(place: &str, param: &Param) -> Value {
    let mut described = json!({
        "name": param.name,
        "in": place,
        "required": param.required || place == "path",
        "description": param.about,
        "schema": param.schema(),
    });
    if !param.example.is_empty() {
        described["example"] = param.example();
    }
    if param.many {
        described["style"] = json!("form");
        described["explode"] = json!(true);
    }
    described
}

fn headers(operation: &OperationSpec, answer: &ResponseSpec) -> Map<String, Value> {
    let described = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    let mut headers = Map::new();
    if operation.revalidates {
        headers.insert("ETag".into(), described("Identifies exactly these bytes."));
    }
    if operation.verb == Verb::Get && answer.content.is_some_and(|content| content.media == JSON) {
        headers.insert(
            "Cache-Control".into(),
            described("Whether and how it may be kept."),
        );
    }
    headers.extend(
        answer
            .headers
            .iter()
            .map(|(name, about)| ((*name).to_owned(), described(about))),
    );
    headers
}

/// The text with a capital first letter.
fn capitalised(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::auth::Right;
    use crate::server::routes::ROUTES;
    use std::collections::BTreeSet;

    fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        let methods = paths
            .iter()
            .flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |m| (path, m)));
        methods
            .map(|(path, (method, operation))| (path, method, operation))
            .collect()
    }

    #[test]
    fn every_route_and_method_is_there_and_nothing_else() {
        let document = document(ROUTES);
        let mut documented: BTreeSet<(String, String)> = BTreeSet::new();
        for (path, method, _) in operations(&document) {
            documented.insert((path.clone(), method.to_uppercase()));
        }
        let mut expected = BTreeSet::new();
        for route in ROUTES {
            for operation in route.operations {
                expected.insert((
                    written_path(route, operation),
                    operation.verb.as_str().to_owned(),
                ));
            }
        }
        assert_eq!(documented, expected);
    }

    #[test]
    fn the_parameters_in_a_path_are_described() {
        let document = document(ROUTES);
        for (path, method, operation) in operations(&document) {
            let parts: BTreeSet<&str> = path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .collect();
            let described = operation["parameters"].as_array().unwrap().iter();
            let described: BTreeSet<&str> = described
                .filter(|param| param["in"] == "path")
                .map(|param| param["name"].as_str().unwrap())
                .collect();
            assert_eq!(described, parts, "{method} {path}");
        }
    }

    #[test]
    fn everything_says_what_it_is() {
        let document = document(ROUTES);
        let mut ids = BTreeSet::new();
        for (path, method, operation) in operations(&document) {
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap()),
                "{method} {path} has a taken id"
            );
            assert!(
                operation["summary"].as_str().unwrap().len() > 5,
                "{method} {path}"
            );
            for param in operation["parameters"].as_array().unwrap() {
                assert!(
                    !param["description"].as_str().unwrap().is_empty(),
                    "{method} {path}: {param}"
                );
            }
            let names: BTreeSet<_> = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| (p["in"].to_string(), p["name"].to_string()))
                .collect();
            assert_eq!(
                names.len(),
                operation["parameters"].as_array().unwrap().len(),
                "{method} {path}: one twice"
            );
        }
    }

    #[test]
    fn what_may_need_the_token_says_so_and_nothing_else_does() {
        let document = document(ROUTES);
        for operation in ROUTES.iter().flat_map(|route| route.operations) {
            let documented = operations(&document)
                .into_iter()
                .find(|(_, _, documented)| documented["operationId"] == operation.id);
            let (_, _, documented) = documented.unwrap();
            let refusal = match operation.right {
                Right::Read | Right::Call => Value::Null,
                Right::Prefer => json!("#/components/responses/TokenNeededToLoosen"),
                Right::Approve | Right::Operate => json!("#/components/responses/TokenNeeded"),
            };
            assert_eq!(
                documented["responses"]["401"]["$ref"], refusal,
                "{}",
                operation.id
            );
            assert_eq!(
                documented.get("security").is_some(),
                !refusal.is_null(),
                "{}",
                operation.id
            );
        }
    }

    #[test]
    fn every_status_has_an_example_that_fits() {
        let document = document(ROUTES);
        for (path, method, operation) in operations(&document) {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let response = match response.get("$ref") {
                    Some(to) => document
                        .pointer(to.as_str().unwrap().trim_start_matches('#'))
                        .unwrap(),
                    None => response,
                };
                let Some(content) = response.get("content") else {
                    continue;
                };
                for (media, content) in content.as_object().unwrap() {
                    let examples = content
                        .get("examples")
                        .and_then(Value::as_object)
                        .into_iter()
                        .flatten();
                    let mut examples: Vec<&Value> =
                        examples.map(|(_, example)| &example["value"]).collect();
                    examples.extend(content.get("example"));
                    // An answer of the same shape as the first one has the same example.
                    let same = |(other, other_response): (&String, &Value)| {
                        other < status
                            && other_response.pointer("/content/application~1json/schema")
                                == Some(&content["schema"])
                    };
                    let shown = media == JSON
                        && operation["responses"].as_object().unwrap().iter().any(same);
                    assert!(
                        shown || !examples.is_empty(),
                        "{method} {path} {status} {media} has no example"
                    );
                    for example in examples {
                        assert_fits(
                            &document,
                            &content["schema"],
                            example,
                            &format!("{method} {path} {status}"),
                        );
                    }
                }
            }
            let bodies = operation
                .pointer("/requestBody/content")
                .and_then(Value::as_object);
            for body in bodies.into_iter().flat_map(|content| content.values()) {
                let examples = body["examples"].as_object().unwrap();
                assert!(
                    !examples.is_empty(),
                    "{method} {path} has no example of a body"
                );
                for example in examples.values() {
                    assert_fits(
                        &document,
                        &body["schema"],
                        &example["value"],
                        &format!("body of {method} {path}"),
                    );
                }
            }
        }
    }

    #[test]
    fn examples_of_parameters_fit() {
        let document = document(ROUTES);
        for (path, method, operation) in operations(&document) {
            for param in operation["parameters"].as_array().unwrap() {
                let Some(example) = param.get("example") else {
                    continue;
                };
                assert_fits(
                    &document,
                    &param["schema"],
                    example,
                    &format!("{method} {path} {}", param["name"]),
                );
            }
        }
    }

    /// Validates a value, with the components that the schema refers to.
    fn assert_fits(document: &Value, schema: &Value, value: &Value, what: &str) {
        let whole = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "components": document["components"], "allOf": [schema]});
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&whole)
            .unwrap();
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?}");
    }
}
