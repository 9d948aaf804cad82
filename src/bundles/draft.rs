//! A draft of an HTTP tool: from an address, a method and named values, or from a `curl` command.
//!
//! The draft is a document that a person reads, changes and stores. A credential of a command never
//! stands in it: it becomes a placeholder for a secret of the configuration.

use serde_json::{Map, Value, json};
use url::Url;

/// Characters of a command at most.
const COMMAND_MAX: usize = 64 * 1024;
/// Named values of a draft at most.
const VALUES_MAX: usize = 50;
/// Options of `curl` that make no difference to a tool. They take no value.
const IGNORED: [&str; 18] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-L",
    "--location",
    "-k",
    "--insecure",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "-f",
    "--fail",
    "--compressed",
    "--http1.1",
    "--http2",
    "-g",
];
/// Headers that the client sets itself, so that they are left out.
const OWN_HEADERS: [&str; 6] = [
    "host",
    "content-length",
    "connection",
    "accept-encoding",
    "transfer-encoding",
    "expect",
];
/// What names of headers with a credential have in them.
const CREDENTIALS: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "password"];

/// A document to begin with, and what a person has to know about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDraft {
    /// The document of the tool.
    pub document: Map<String, Value>,
    /// What is left to be done, each a sentence without a full stop.
    pub notes: Vec<String>,
}

/// Why there is no draft.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// No request can be seen in it.
    #[error("this is no `curl` command: {0}")]
    NoCommand(&'static str),
    /// An option is not known.
    #[error("`{0}` of the command is not read here; leave it out, or write the document by hand")]
    UnknownOption(String),
    /// The address is none.
    #[error("`{0}` is no address of http or https")]
    NoAddress(String),
    /// A named value is none.
    #[error(
        "`{0}` is no named value: write one a line, as `name` or `name = example`, with letters, digits, `_` and `-`"
    )]
    NoValue(String),
}

/// The request that a draft is made of.
#[derive(Debug, Default)]
struct DraftRequest {
    method: Option<String>,
    address: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    /// Whether the parts of the body are parameters of the query.
    is_query: bool,
    /// `user:password`.
    has_login: bool,
    notes: Vec<String>,
}

/// A draft of a request to this address. Each line of `values` names an argument; in an address
/// they may stand as `${name}`. Those that do not become parameters of the query, or members of a
/// JSON body.
pub fn from_parts(method: &str, address: &str, values: &str) -> Result<ToolDraft, DraftError> {
    let mut named = Vec::new();
    for line in values
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (name, example) = line.split_once('=').unwrap_or((line, ""));
        let name = name.trim();
        if !is_name(name) || named.len() == VALUES_MAX {
            return Err(DraftError::NoValue(line.chars().take(100).collect()));
        }
        named.push((name.to_owned(), example.trim().to_owned()));
    }
    let places = places(address);
    let mut arguments = DraftArguments::default();
    for name in &places {
        let example = named.iter().find(|(known, _)| known == name);
        arguments.add(
            name,
            &text_value(example.map_or("", |(_, example)| example)),
        );
    }
    let others: Vec<_> = named
        .iter()
        .filter(|(name, _)| !places.contains(name))
        .collect();
    check_address(address)?;
    let address = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let has_body = matches!(method, "POST" | "PUT" | "PATCH");
    let mut parts = Map::new();
    for (name, example) in others {
        let value = text_value(example);
        arguments.add(name, &value);
        // A placeholder alone has the type of its argument.
        parts.insert(name.clone(), Value::from(format!("${{{name}}}")));
    }
    let mut implementation = Map::new();
    implementation.insert("method".to_owned(), method.into());
    implementation.insert("urlTemplate".to_owned(), address.as_str().into());
    if has_body && !parts.is_empty() {
        implementation.insert("bodyTemplate".to_owned(), body_template(&parts).into());
    } else if !parts.is_empty() {
        implementation.insert("query".to_owned(), Value::Object(parts));
    }
    Ok(drafted(&address, implementation, arguments, Vec::new()))
}

/// A draft of the request that a `curl` command sends. Parameters of its query and members of its
/// JSON body become arguments, with their values as examples.
pub fn from_curl(command: &str) -> Result<ToolDraft, DraftError> {
    let request = parse(command)?;
    let url = check_address(&request.address)?;
    let mut arguments = DraftArguments::default();
    let mut query = Map::new();
    for (name, value) in url.query_pairs() {
        add_parameter(&mut query, &mut arguments, &name, &value);
    }
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    let mut notes = request.notes;
    let mut implementation = Map::new();
    let method = request.method.unwrap_or_else(|| {
        let method = if request.body.is_some() && !request.is_query {
            "POST"
        } else {
            "GET"
        };
        method.to_owned()
    });
    implementation.insert("method".to_owned(), method.into());
    implementation.insert("urlTemplate".to_owned(), bare.as_str().into());
    let mut headers = Map::new();
    for (name, value) in request.headers {
        let lower = name.to_ascii_lowercase();
        if OWN_HEADERS.contains(&lower.as_str()) {
            continue;
        }
        if CREDENTIALS.iter().any(|part| lower.contains(part)) {
            let auth = if lower == "authorization" && value.starts_with("Bearer ") {
                json!({"type": "bearer", "valueTemplate": "${API_TOKEN}"})
            } else {
                json!({"type": "apiKey", "in": "header", "name": name, "valueTemplate": "${API_TOKEN}"})
            };
            implementation.insert("auth".to_owned(), auth);
            notes.push(secret_note(&format!("the header `{name}`"), "API_TOKEN"));
        } else {
            headers.insert(name, value.into());
        }
    }
    if request.has_login {
        let auth = json!({"type": "basic", "valueTemplate": "${API_LOGIN}"});
        implementation.insert("auth".to_owned(), auth);
        notes.push(secret_note("the name and password", "API_LOGIN"));
    }
    match request.body {
        Some(body) if request.is_query => {
            for (name, value) in url::form_urlencoded::parse(body.as_bytes()) {
                add_parameter(&mut query, &mut arguments, &name, &value);
            }
        }
        Some(body) => add_body(
            &body,
            &mut headers,
            &mut implementation,
            &mut arguments,
            &mut notes,
        ),
        None => {}
    }
    for (key, members) in [("query", query), ("headers", headers)] {
        if !members.is_empty() {
            implementation.insert(key.to_owned(), Value::Object(members));
        }
    }
    Ok(drafted(bare.as_str(), implementation, arguments, notes))
}

/// Puts a parameter into the query, as an argument where its name can be one.
fn add_parameter(
    query: &mut Map<String, Value>,
    arguments: &mut DraftArguments,
    name: &str,
    value: &str,
) {
    let template = if arguments.takes(name) {
        arguments.add(name, &text_value(value));
        format!("${{{name}}}")
    } else {
        value.to_owned()
    };
    query.insert(name.to_owned(), template.into());
}

/// Puts a body into the tool. Members of a JSON object and of a form become arguments.
fn add_body(
    body: &str,
    headers: &mut Map<String, Value>,
    implementation: &mut Map<String, Value>,
    arguments: &mut DraftArguments,
    notes: &mut Vec<String>,
) {
    if let Ok(Value::Object(members)) = serde_json::from_str(body) {
        let mut parts = Map::new();
        for (name, value) in members {
            let template = if arguments.takes(&name) {
                arguments.add(&name, &value);
                Value::from(format!("${{{name}}}"))
            } else {
                value
            };
            parts.insert(name, template);
        }
        headers.retain(|name, _| !name.eq_ignore_ascii_case("content-type"));
        implementation.insert("bodyTemplate".to_owned(), body_template(&parts).into());
        return;
    }
    let is_typed = headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("content-type"));
    if !is_typed {
        let form = "application/x-www-form-urlencoded";
        headers.insert("Content-Type".to_owned(), form.into());
        let mut parts = Vec::new();
        for (name, value) in url::form_urlencoded::parse(body.as_bytes()) {
            if arguments.takes(&name) {
                arguments.add(&name, &text_value(&value));
                parts.push(format!("{name}=${{{name}}}"));
            }
        }
        if !parts.is_empty() {
            implementation.insert("body".to_owned(), parts.join("&").into());
            return;
        }
    }
    implementation.insert("body".to_owned(), body.replace("${", "$ {").into());
    notes.push(
        "the body is sent as it is: put placeholders such as `${name}` where it changes".to_owned(),
    );
}

/// The text of a JSON body in which a placeholder that is a whole value stands without quotes, so
/// that it has the type of its argument.
fn body_template(parts: &Map<String, Value>) -> String {
    let members: Vec<String> = parts
        .iter()
        .map(|(name, value)| {
            let own = format!("${{{name}}}");
            let value = match value {
                Value::String(text) if *text == own => own,
                other => other.to_string().replace("${", "$ {"),
            };
            format!("{}: {value}", Value::from(name.as_str()))
        })
        .collect();
    format!("{{{}}}", members.join(", "))
}

fn secret_note(what: &str, name: &str) -> String {
    format!(
        "{what} is left out, because a file is no place for it: write it as `{name}` into `[bundles.secrets]`, with its hosts"
    )
}

fn drafted(
    address: &str,
    implementation: Map<String, Value>,
    arguments: DraftArguments,
    mut notes: Vec<String>,
) -> ToolDraft {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let mut words = url
        .iter()
        .filter_map(Url::path_segments)
        .flatten()
        .filter(|part| {
            part.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        });
    let slug = words
        .rfind(|part| !part.is_empty())
        .map_or_else(|| host.replace('.', "-"), str::to_owned);
    let slug: String = slug.chars().take(64).collect();
    if !host.is_empty() {
        notes.push(format!(
            "its host has to be in `bundles.allowed_hosts`: `{host}`"
        ));
    }
    let schema = [
        ("type", Value::from("object")),
        ("properties", Value::Object(arguments.properties)),
        ("required", Value::from(arguments.required)),
    ];
    let members = [
        ("slug", Value::from(slug.as_str())),
        ("version", "v1".into()),
        ("displayName", slug.into()),
        ("description", "".into()),
        ("type", "http".into()),
        ("argSchema", Value::Object(object(schema))),
        ("impl", Value::Object(implementation)),
    ];
    let document = object(members);
    ToolDraft { document, notes }
}

/// An object with these members.
fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The arguments of a draft.
#[derive(Debug, Default)]
struct DraftArguments {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl DraftArguments {
    /// Whether a part of the request of this name can be an argument.
    fn takes(&self, name: &str) -> bool {
        is_name(name)
            && !["slug", "version"].contains(&name)
            && !self.properties.contains_key(name)
            && self.properties.len() < VALUES_MAX
    }

    fn add(&mut self, name: &str, example: &Value) {
        let kind = match example {
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Null | Value::String(_) => "string",
        };
        let mut schema = json!({"type": kind});
        let is_empty = example.is_null() || example.as_str() == Some("");
        if !is_empty {
            schema["examples"] = json!([example]);
        }
        self.properties.insert(name.to_owned(), schema);
        self.required.push(name.to_owned());
    }
}

/// The names in an address, in order.
fn places(address: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in address.split("${").skip(1) {
        let name = part.split('}').next().unwrap_or_default();
        if is_name(name) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The value that an example in a line of text is of.
fn text_value(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
        _ => Value::from(text),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn check_address(address: &str) -> Result<Url, DraftError> {
    let wrong = || DraftError::NoAddress(address.chars().take(200).collect());
    // A placeholder is a letter for the parser of addresses.
    let mut plain = String::new();
    let mut parts = address.split("${");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push('x');
        plain.push_str(part.split_once('}').ok_or_else(wrong)?.1);
    }
    let whole = if plain.contains("://") {
        plain
    } else {
        format!("http://{plain}")
    };
    let url = Url::parse(&whole).map_err(|_| wrong())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_open = url.username().is_empty() && url.password().is_none();
    if is_web && is_open {
        Ok(url)
    } else {
        Err(wrong())
    }
}

/// Reads a command.
fn parse(command: &str) -> Result<DraftRequest, DraftError> {
    if command.len() > COMMAND_MAX {
        return Err(DraftError::NoCommand("it is too long"));
    }
    if command.contains("$'") {
        return Err(DraftError::NoCommand(
            "`$'...'` of a shell is not read; write the text in single quotes",
        ));
    }
    // `shlex` reads a continued line as an empty word.
    let one_line = command.replace("\\\r\n", " ").replace("\\\n", " ");
    let words = shlex::split(&one_line).ok_or(DraftError::NoCommand("a quote is not closed"))?;
    let mut words = words.into_iter().peekable();
    if words.peek().is_some_and(|word| word == "$") {
        words.next();
    }
    if words.next().as_deref() != Some("curl") {
        return Err(DraftError::NoCommand("it does not begin with `curl`"));
    }
    let mut request = DraftRequest::default();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            request.address = word;
            continue;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (format!("--{name}"), Some(value.to_owned())),
                None => (word.clone(), None),
            };
            if !request.takes_flag(&name) {
                request.take(&name, attached.or_else(|| words.next()))?;
            }
            continue;
        }
        // Several options of one letter may stand together; only the last has a value.
        let mut rest = &word[1..];
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let name = format!("-{letter}");
            if !request.takes_flag(&name) {
                let attached = Some(rest).filter(|rest| !rest.is_empty());
                request.take(&name, attached.map(str::to_owned).or_else(|| words.next()))?;
                break;
            }
        }
    }
    if request.address.is_empty() {
        return Err(DraftError::NoCommand("it has no address"));
    }
    Ok(request)
}

impl DraftRequest {
    /// Takes an option that has no value. Returns whether it is one.
    fn takes_flag(&mut self, option: &str) -> bool {
        match option {
            "-G" | "--get" => self.is_query = true,
            "-I" | "--head" => self.method = Some("HEAD".to_owned()),
            ignored => return IGNORED.contains(&ignored),
        }
        true
    }

    /// Takes an option with its value.
    fn take(&mut self, option: &str, value: Option<String>) -> Result<(), DraftError> {
        let value = value.ok_or_else(|| DraftError::UnknownOption(option.to_owned()))?;
        match option {
            "-X" | "--request" => self.method = Some(value.to_ascii_uppercase()),
            "--url" => self.address = value,
            "-H" | "--header" => {
                if let Some((name, value)) = value.split_once(':') {
                    self.headers
                        .push((name.trim().to_owned(), value.trim().to_owned()));
                }
            }
            "-A" | "--user-agent" => self.headers.push(("User-Agent".to_owned(), value)),
            "-e" | "--referer" => self.headers.push(("Referer".to_owned(), value)),
            "-b" | "--cookie" => self.headers.push(("Cookie".to_owned(), value)),
            "-u" | "--user" => self.has_login = true,
            "--json" => {
                self.headers
                    .push(("Content-Type".to_owned(), "application/json".to_owned()));
                self.add_data(&value)?;
            }
            "-d" | "--data" | "--data-raw" | "--data-ascii" | "--data-binary" => {
                self.add_data(&value)?;
            }
            "--data-urlencode" => {
                let (name, value) = value
                    .split_once('=')
                    .ok_or_else(|| DraftError::UnknownOption(option.to_owned()))?;
                let pair = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair(name, value)
                    .finish();
                self.add_data(&pair)?;
            }
            // They bound the time, which the tool has a limit of its own for.
            "-m" | "--max-time" | "--connect-timeout" | "--retry" | "-o" | "--output" | "-w"
            | "--write-out" => {}
            other => return Err(DraftError::UnknownOption(other.to_owned())),
        }
        Ok(())
    }

    /// Adds a part of the body. One that is in a file is not read here.
    fn add_data(&mut self, value: &str) -> Result<(), DraftError> {
        if value.starts_with('@') {
            return Err(DraftError::UnknownOption(format!(
                "--data {}",
                value.chars().take(100).collect::<String>()
            )));
        }
        let body = self.body.get_or_insert_default();
        if !body.is_empty() {
            body.push('&');
        }
        body.push_str(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implementation(draft: &ToolDraft) -> &Value {
        &draft.document["impl"]
    }

    #[test]
    fn a_command_becomes_a_request_with_arguments_and_without_its_credentials() {
        let draft = from_curl(
            "curl -sS 'https://api.example.com/v1/tickets?page=2&tag=new' \\\n -H 'Accept: application/json' \\\n \
             -H 'Authorization: Bearer s3cr3t' --compressed --data-raw '{\"title\":\"Fix it\",\"count\":3,\"own-x\":{\"a\":1}}'",
        )
        .unwrap();
        let request = implementation(&draft);
        assert_eq!(request["method"], "POST");
        assert_eq!(request["urlTemplate"], "https://api.example.com/v1/tickets");
        assert_eq!(
            request["query"],
            json!({"page": "${page}", "tag": "${tag}"})
        );
        assert_eq!(request["headers"], json!({"Accept": "application/json"}));
        assert_eq!(
            request["auth"],
            json!({"type": "bearer", "valueTemplate": "${API_TOKEN}"})
        );
        assert_eq!(
            request["bodyTemplate"],
            r#"{"title": ${title}, "count": ${count}, "own-x": ${own-x}}"#
        );
        let schema = &draft.document["argSchema"];
        assert_eq!(
            schema["properties"]["page"],
            json!({"type": "integer", "examples": [2]})
        );
        assert_eq!(schema["properties"]["own-x"]["type"], "object");
        assert_eq!(
            schema["required"],
            json!(["page", "tag", "title", "count", "own-x"])
        );
        assert_eq!(draft.document["slug"], "tickets");
        let text = format!("{draft:?}");
        assert!(!text.contains("s3cr3t"), "{text}");
        assert!(
            draft.notes[0].contains("`[bundles.secrets]`"),
            "{:?}",
            draft.notes
        );
    }

    #[test]
    fn forms_queries_and_logins_are_read() {
        let get =
            from_curl("curl -G http://127.0.0.1:1/find -d q=a --data-urlencode 'w=b c' -u me:pw")
                .unwrap();
        assert_eq!(implementation(&get)["method"], "GET");
        assert_eq!(
            implementation(&get)["query"],
            json!({"q": "${q}", "w": "${w}"})
        );
        assert_eq!(
            get.document["argSchema"]["properties"]["w"]["examples"],
            json!(["b c"])
        );
        assert_eq!(implementation(&get)["auth"]["type"], "basic");
        assert!(!format!("{get:?}").contains("pw\""));
        let form = from_curl("curl -XPUT http://127.0.0.1:1/form -d a=1 -d b=x").unwrap();
        assert_eq!(implementation(&form)["method"], "PUT");
        assert_eq!(implementation(&form)["body"], "a=${a}&b=${b}");
        // A text of the command never becomes a template.
        let raw =
            from_curl("curl http://127.0.0.1:1/ -H 'Content-Type: text/plain' -d 'x ${HOME}'")
                .unwrap();
        assert_eq!(implementation(&raw)["body"], "x $ {HOME}");
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_part() {
        for (command, named) in [
            ("wget http://127.0.0.1", "does not begin with `curl`"),
            ("curl 'http://127.0.0.1", "a quote is not closed"),
            ("curl -s", "it has no address"),
            ("curl ftp://127.0.0.1/x", "no address of http"),
            ("curl http://me:pw@127.0.0.1/x", "no address of http"),
            ("curl http://127.0.0.1 -F file=@x", "`-F`"),
            ("curl http://127.0.0.1 -d @secrets.json", "@secrets.json"),
            ("curl http://127.0.0.1 -d $'a'", "single quotes"),
        ] {
            let error = from_curl(command).unwrap_err().to_string();
            assert!(error.contains(named), "{command}: {error}");
        }
    }

    #[test]
    fn named_values_stand_in_the_address_the_query_or_the_body() {
        let get = from_parts(
            "GET",
            "http://127.0.0.1:1/v1/${city}",
            "city = Oslo\nunits\n",
        )
        .unwrap();
        assert_eq!(
            implementation(&get)["urlTemplate"],
            "http://127.0.0.1:1/v1/${city}"
        );
        assert_eq!(implementation(&get)["query"], json!({"units": "${units}"}));
        assert_eq!(
            get.document["argSchema"]["properties"],
            json!({"city": {"type": "string", "examples": ["Oslo"]}, "units": {"type": "string"}})
        );
        let post = from_parts("POST", "http://127.0.0.1:1/notes", "text\nstars = 5").unwrap();
        assert_eq!(
            implementation(&post)["bodyTemplate"],
            r#"{"text": ${text}, "stars": ${stars}}"#
        );
        assert!(from_parts("GET", "http://127.0.0.1:1/", "a b").is_err());
        assert!(
            from_parts("GET", "nowhere", "").is_ok(),
            "an address without a scheme is http"
        );
        assert!(from_parts("GET", "file:///etc", "").is_err());
    }
}
