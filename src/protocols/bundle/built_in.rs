//! Runs the built-in tools, within the configured folders and hosts.
//!
//! A path is resolved with all its links before it is used, and again when the file is open: what
//! is not below a shared folder then is refused. Nothing is written.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value, json};
use url::Url;

use crate::bundles::{BuiltInTool, BundleSettings};
use crate::model::HttpTarget;
use crate::runtime::open_files::{open_regular, path_of};
use crate::runtime::{Stop, StopTrigger};
use crate::transports::Transports;
use crate::transports::http::{CallLimits, destination};

/// Bytes of a file that is read or searched, at most.
const FILE_MAX: u64 = 1024 * 1024;
/// Entries of a list, and lines that a search finds, at most.
const FOUND_MAX: usize = 1_000;
/// Files and folders that are looked at for one call, and how deep.
const LOOKED_MAX: usize = 20_000;
const DEPTH_MAX: usize = 32;
/// Characters of a found line.
const LINE_MAX: usize = 300;
/// Bytes of a compiled expression. A line of [`FILE_MAX`] bytes is searched by it in some seconds.
const COMPILED_MAX: usize = 512 * 1024;

/// What a tool gives; the error is a sentence.
type Found = Result<Value, String>;

/// Ends what a call began on another thread, when its caller waits no longer.
struct EndOfCall(StopTrigger);

impl Drop for EndOfCall {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a tool.
pub(super) async fn run(
    tool: BuiltInTool,
    arguments: Map<String, Value>,
    settings: &BundleSettings,
    transports: &Transports,
    limit: Duration,
    max_body: usize,
) -> Found {
    if tool == BuiltInTool::FetchUrl {
        return fetch(
            text(&arguments, "url"),
            settings,
            transports,
            limit,
            max_body,
        )
        .await;
    }
    let folders = settings.folders.clone();
    let (end, stop) = StopTrigger::new();
    let _end = EndOfCall(end);
    let run = move || match tool {
        BuiltInTool::ReadFile => read_file(&folders, text(&arguments, "path")).map(Value::from),
        BuiltInTool::ListFolder => list(&folders, &arguments, &stop),
        BuiltInTool::SearchFiles => search(&folders, &arguments, &stop),
        BuiltInTool::FetchUrl => Err("it is no tool of files".to_owned()),
    };
    let running = transports.tasks().blocking(run);
    tokio::time::timeout(limit, running)
        .await
        .unwrap_or_else(|_| Err(format!("it took longer than {limit:?}")))
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The real path of a file or folder that is below a shared folder, with that folder.
fn resolve(folders: &[PathBuf], path: &str) -> Result<(PathBuf, PathBuf), String> {
    let refused = || format!("{path:?} is not below a shared folder");
    for folder in folders {
        let Ok(folder) = folder.canonicalize() else {
            continue;
        };
        // An absolute path replaces the folder.
        if let Some(real) = folder
            .join(path)
            .canonicalize()
            .ok()
            .filter(|real| real.starts_with(&folder))
        {
            return Ok((real, folder));
        }
    }
    Err(refused())
}

/// The text of a file at a real path below `folder`.
fn read(real: &Path, folder: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("the file cannot be read: {error}");
    let file = open_regular(real).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::IsADirectory => "it is not a file".to_owned(),
        _ => failed(error),
    })?;
    // A part of the path may have become a link meanwhile, and be none again.
    let opened = path_of(&file)
        .map_or_else(|| real.canonicalize(), Ok)
        .map_err(failed)?;
    if opened != real || !real.starts_with(folder) {
        return Err("the path changed while it was opened".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(format!("the file is larger than {FILE_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "the file is no text".to_owned())
}

fn read_file(folders: &[PathBuf], path: &str) -> Result<String, String> {
    let (real, folder) = resolve(folders, path)?;
    read(&real, &folder)
}

/// The names below a folder that fit a pattern, by name; folders end in `/`.
fn list(folders: &[PathBuf], arguments: &Map<String, Value>, stop: &Stop) -> Found {
    let (root, _) = resolve(folders, text(arguments, "path"))?;
    let pattern = pattern(arguments, "*")?;
    let mut found = Vec::new();
    for (path, is_folder) in below(&root, stop)? {
        let name = shown(&path, &root);
        if pattern.is_match(&name) {
            found.push(if is_folder { format!("{name}/") } else { name });
        }
        if found.len() == FOUND_MAX {
            break;
        }
    }
    Ok(json!(found))
}

/// The lines below a folder that an expression fits.
fn search(folders: &[PathBuf], arguments: &Map<String, Value>, stop: &Stop) -> Found {
    let (root, folder) = resolve(folders, text(arguments, "path"))?;
    let pattern = pattern(arguments, "**")?;
    let expression = RegexBuilder::new(text(arguments, "expression"))
        .size_limit(COMPILED_MAX)
        .build();
    let expression =
        expression.map_err(|error| format!("`expression` is no regular expression: {error}"))?;
    let mut found = Vec::new();
    for (path, is_folder) in below(&root, stop)? {
        let name = shown(&path, &root);
        if is_folder || !pattern.is_match(&name) {
            continue;
        }
        // What is no text, too large or gone has no lines.
        go_on(stop)?;
        let Ok(text) = read(&path, &folder) else {
            continue;
        };
        for (at, line) in text.lines().enumerate() {
            go_on(stop)?;
            if !expression.is_match(line) {
                continue;
            }
            let line: String = line.chars().take(LINE_MAX).collect();
            found.push(json!({"path": name, "line": at + 1, "text": line}));
            if found.len() == FOUND_MAX {
                return Ok(json!(found));
            }
        }
    }
    Ok(json!(found))
}

/// Fails once the caller waits no longer; the error is not shown.
fn go_on(stop: &Stop) -> Result<(), String> {
    if stop.is_stopped() {
        Err("the call ended".to_owned())
    } else {
        Ok(())
    }
}

/// What is below a folder, and whether it is a folder, by name. Links are not followed.
fn below(root: &Path, stop: &Stop) -> Result<Vec<(PathBuf, bool)>, String> {
    let mut found = Vec::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        go_on(stop)?;
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_symlink() {
                continue;
            }
            if found.len() == LOOKED_MAX {
                return Err(format!(
                    "there are more than {LOOKED_MAX} files below it; name a folder further in"
                ));
            }
            found.push((entry.path(), kind.is_dir()));
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A path as it is below `root`, with `/` between its parts.
fn shown(path: &Path, root: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

/// A pattern of names: `*` and `?` stay within one part of a path, `**` does not.
fn pattern(arguments: &Map<String, Value>, usual: &str) -> Result<Regex, String> {
    let written = Some(text(arguments, "pattern"))
        .filter(|pattern| !pattern.is_empty())
        .unwrap_or(usual);
    let mut expression = "^".to_owned();
    let mut rest = written;
    while let Some(c) = rest.chars().next() {
        let (part, length) = match c {
            '*' if rest.starts_with("**/") => ("(?:.*/)?".to_owned(), 3),
            '*' if rest.starts_with("**") => (".*".to_owned(), 2),
            '*' => ("[^/]*".to_owned(), 1),
            '?' => ("[^/]".to_owned(), 1),
            other => (regex::escape(&other.to_string()), other.len_utf8()),
        };
        expression.push_str(&part);
        rest = &rest[length..];
    }
    expression.push('$');
    Regex::new(&expression).map_err(|error| format!("{written:?} is no pattern: {error}"))
}

/// The text of an address of an allowed host.
async fn fetch(
    url: &str,
    settings: &BundleSettings,
    transports: &Transports,
    timeout: Duration,
    max_body: usize,
) -> Found {
    let url = Url::parse(url).map_err(|error| format!("`url` is no address: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`url` has a name or password in it".to_owned());
    }
    let hosts = &settings.allowed_hosts;
    let destination = destination::find(&url, hosts, timeout, &transports.proxies())
        .await
        .map_err(|none| none.to_string())?;
    let upstream = transports
        .http(&HttpTarget::at(url.clone()))
        .map_err(|error| error.to_string())?
        .with_destination(destination);
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/*, */*;q=0.5"))]);
    let limits = CallLimits {
        timeout,
        max_body,
        headers,
        repeatable: true,
    };
    let answer = upstream
        .request(Method::GET, url, Bytes::new(), &limits)
        .await
        .map_err(|error| error.to_string())?;
    let status = answer.head.status;
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    String::from_utf8(answer.body.to_vec())
        .map(Value::from)
        .map_err(|_| "the answer is no text".to_owned())
}
