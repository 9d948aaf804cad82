//! The reference of the API: the description that `/openapi.json` serves, as a page.

use std::sync::OnceLock;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use crate::server::SharedState;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::http::query::NoQuery;

/// The description never changes while the program runs.
static REFERENCE: OnceLock<String> = OnceLock::new();

/// `GET /docs`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    _: NoQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let main = PreEscaped(
        REFERENCE
            .get_or_init(|| reference((shared.api_document)()).into_string())
            .as_str(),
    );
    let main = html! { (main) };
    let page = Page {
        nav: Some(NavPage::Api),
        title: "API",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// The whole reference.
fn reference(document: &Value) -> Markup {
    let operations = operations(document);
    let of = |tag: &Value| {
        operations
            .iter()
            .filter(|(_, _, operation)| operation["tags"][0] == tag["name"])
            .copied()
            .collect::<Vec<_>>()
    };
    let groups: Vec<_> = list(&document["tags"])
        .iter()
        .map(|tag| (tag, of(tag)))
        .collect();
    html! {
        h1 { "API" }
        @for paragraph in text(&document["info"]["description"]).split("\n\n") { p class="lead" { (spans(paragraph)) } }
        p class="lead" { "For programs: " a href="/openapi.json" { code { "/openapi.json" } } " (OpenAPI 3.1)." }
        section class="card" aria-label="Operations" {
            @for (tag, operations) in &groups {
                h2 { a href={ "#" (text(&tag["name"])) } { (text(&tag["name"])) } }
                ul { @for (path, method, operation) in operations {
                    li { a href={ "#" (text(&operation["operationId"])) } { code { (method.to_uppercase()) " " (path) } } " " span class="quiet" { (text(&operation["summary"])) } }
                } }
            }
        }
        @for (tag, operations) in &groups {
            h2 id=(text(&tag["name"])) { (text(&tag["name"])) }
            p class="lead" { (text(&tag["description"])) }
            @for (path, method, operation) in operations { (section(document, path, method, operation)) }
        }
        h2 id="schemas" { "Schemas" }
        @for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            details class="card" id={ "schema-" (name) } {
                summary { code { (name) } " " span class="quiet" { (text(&schema["description"])) } }
                (written(schema))
            }
        }
    }
}

fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let methods = paths.flat_map(|(path, item)| {
        item.as_object()
            .into_iter()
            .flatten()
            .map(move |method| (path, method))
    });
    methods
        .map(|(path, (method, operation))| (path.as_str(), method.as_str(), operation))
        .collect()
}

fn section(document: &Value, path: &str, method: &str, operation: &Value) -> Markup {
    let id = text(&operation["operationId"]);
    let bodies = operation["requestBody"]["content"].as_object();
    html! {
        section class="card" id=(id) aria-labelledby={ (id) "-title" } {
            h3 id={ (id) "-title" } { code { (method.to_uppercase()) " " (path) } }
            p { (text(&operation["summary"])) ". " (spans(text(&operation["description"]))) }
            (parameters(list(&operation["parameters"])))
            @for (media, body) in bodies.into_iter().flatten() { p { "Body: " (shape(&body["schema"])) " " span class="quiet" { (media) } } }
            h4 { "Answers" }
            ul class="findings" {
                @for (status, answer) in operation["responses"].as_object().into_iter().flatten() { (answered(document, operation, status, answer)) }
            }
        }
    }
}

fn parameters(all: &[Value]) -> Markup {
    html! {
        @if !all.is_empty() {
            table class="cards" {
                thead { tr { @for head in ["Parameter", "In", "Value", "What it is for"] { th scope="col" { (head) } } } }
                tbody { @for param in all {
                    tr {
                        th scope="row" data-label="Parameter" { code { (text(&param["name"])) } @if param["required"] == true { " " span class="quiet" { "required" } } }
                        td data-label="In" { span { (text(&param["in"])) } }
                        td data-label="Value" { span { (shape(&param["schema"])) } }
                        td data-label="What it is for" { span { (spans(text(&param["description"]))) } }
                    }
                } }
            }
        }
    }
}

/// One status. A status that many routes share takes one line; others have an example.
fn answered(document: &Value, operation: &Value, status: &str, answer: &Value) -> Markup {
    let common = answer["$ref"]
        .as_str()
        .and_then(|to| document.pointer(to.trim_start_matches('#')));
    let told = common.unwrap_or(answer);
    html! {
        li {
            strong { (status) } " " (spans(text(&told["description"])))
            @for (media, content) in told["content"].as_object().into_iter().flatten().filter(|_| common.is_none()) {
                " " (shape(&content["schema"])) " " span class="quiet" { (media) }
                @for example in content["examples"].as_object().into_iter().flat_map(|all| all.values()) {
                    details {
                        summary { "Example: " code { (text(&example["summary"])) } }
                        pre { code { (curl(operation, text(&example["summary"]))) } }
                        (written(&example["value"]))
                    }
                }
            }
        }
    }
}

/// The `curl` command of an example.
fn curl(operation: &Value, ask: &str) -> String {
    let (method, target) = ask.split_once(' ').unwrap_or(("GET", ask));
    let method = if method == "GET" {
        String::new()
    } else {
        format!("-X {method} ")
    };
    let bodies = &operation["requestBody"]["content"]["application/json"]["examples"];
    let body = bodies
        .as_object()
        .into_iter()
        .flat_map(|all| all.values())
        .find(|body| body["summary"] == ask);
    let body = body.map(|body| {
        format!(
            " -H 'Content-Type: application/json' -d '{}'",
            body["value"]
        )
    });
    format!(
        "curl {method}'http://127.0.0.1:7400{target}'{}",
        body.unwrap_or_default()
    )
}

/// A short description of a schema.
fn shape(schema: &Value) -> Markup {
    let bound = |name: &str| schema.get(name).map(|value| format!(" {name} {value}"));
    html! {
        @if let Some(to) = schema["$ref"].as_str().and_then(|to| to.strip_prefix("#/components/schemas/")) {
            a href={ "#schema-" (to) } { code { (to) } }
        } @else if let Some(words) = schema["enum"].as_array() {
            "one of " @for (at, word) in words.iter().enumerate() { @if at > 0 { ", " } code { (word.as_str().map_or_else(|| word.to_string(), str::to_owned)) } }
        } @else if schema["type"] == "array" {
            "list of " (shape(&schema["items"]))
        } @else {
            (text(&schema["type"]))
            @for bound in ["minimum", "maximum", "maxLength"].iter().filter_map(|name| bound(name)) { span class="quiet" { (bound) } }
            @if let Some(pattern) = schema["pattern"].as_str() { " " code { (pattern) } }
        }
    }
}

/// A document, indented; a text as it is.
fn written(value: &Value) -> Markup {
    let text = value.as_str().map_or_else(
        || serde_json::to_string_pretty(value).unwrap_or_default(),
        str::to_owned,
    );
    html! { pre tabindex="0" { code { (text) } } }
}

/// A text in which parts between backquotes are code.
fn spans(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
