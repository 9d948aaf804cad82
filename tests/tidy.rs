//! House rules that no compiler checks: the width of comments, the direction of imports and their
//! circles, which library lives where, and that fixtures, helpers and tests are used.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use callsheet::model::{ApprovalState, FindingCode, OperationState, ScenarioState, Severity};

const MAX_COMMENT: usize = 100;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder with this ending, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The lines of a source file before its test module.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .map(str::to_owned)
        .collect()
}

fn assert_none(problems: &[String], rule: &str) {
    assert!(problems.is_empty(), "{rule}:\n  {}", problems.join("\n  "));
}

/// Code in documentation follows rustfmt, and a row of a table cannot be wrapped.
#[test]
fn comments_are_at_most_100_columns_wide() {
    let mut problems = Vec::new();
    for path in [
        files("src", "rs"),
        files("crates", "rs"),
        files("tests", "rs"),
    ]
    .iter()
    .flatten()
    {
        let mut is_code = false;
        for (at, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            let bare = line.trim_start();
            let text = bare.trim_start_matches(['/', '!']).trim_start();
            is_code = bare.starts_with("//") && is_code != text.starts_with("```");
            let is_prose = bare.starts_with("//") && !is_code && !text.starts_with(['|', '`']);
            if is_prose && line.chars().count() > MAX_COMMENT {
                problems.push(format!(
                    "{}:{}: {} columns",
                    shown(path),
                    at + 1,
                    line.chars().count()
                ));
            }
        }
    }
    assert_none(&problems, "comments have at most 100 columns");
}

/// A failed comparison of a tuple does not say which of its members differs.
#[test]
fn tests_compare_one_value_at_a_time() {
    let mut problems = Vec::new();
    for path in [
        files("src", "rs"),
        files("crates", "rs"),
        files("tests", "rs"),
    ]
    .iter()
    .flatten()
    {
        for (at, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            let is_tuple = line
                .trim_start()
                .strip_prefix(concat!("assert_eq", "!(("))
                .is_some_and(|rest| {
                    let mut depth = 1_i32;
                    let mut has_members = false;
                    for letter in rest.chars() {
                        depth += i32::from(matches!(letter, '(' | '[' | '{'))
                            - i32::from(matches!(letter, ')' | ']' | '}'));
                        has_members |= letter == ',' && depth == 1;
                        if depth == 0 {
                            break;
                        }
                    }
                    has_members && rest.contains("), (")
                });
            if is_tuple {
                problems.push(format!("{}:{}", shown(path), at + 1));
            }
        }
    }
    assert_none(
        &problems,
        "tests assert values of their own, not tuples of them",
    );
}

/// The code with blanks in place of what is in texts, characters and comments, so that brackets can
/// be counted.
fn without_texts(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => text_length(rest),
            'r' if !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                raw_text_length(rest)
            }
            '\'' if rest.starts_with("'\\") => 2 + rest[3..].find('\'').unwrap_or(0) + 2,
            '\'' if rest.chars().nth(2) == Some('\'') => {
                2 + rest.chars().nth(1).unwrap().len_utf8()
            }
            _ => 0,
        };
        let (skipped, after) = rest.split_at(if length == 0 {
            letter.len_utf8()
        } else {
            length
        });
        match length {
            0 => out.push(letter),
            _ => out.extend(skipped.chars().map(|c| if c == '\n' { c } else { ' ' })),
        }
        rest = after;
    }
    out
}

/// The bytes of the text in quotes that code begins with.
fn text_length(code: &str) -> usize {
    let mut at = 1;
    while let Some(more) = code[at..].find(['"', '\\']) {
        at += more + 1;
        if code[at - 1..].starts_with('"') {
            return at;
        }
        at += 1;
    }
    code.len()
}

/// The same for a text such as `r#"..."#`; 0 if there is none.
fn raw_text_length(code: &str) -> usize {
    let marks = code[1..].len() - code[1..].trim_start_matches('#').len();
    let Some(text) = code[1 + marks..].strip_prefix('"') else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(marks));
    text.find(&end)
        .map_or(code.len(), |length| 2 + marks + length + end.len())
}

/// What is between the bracket at the start of `code` and the one that closes it, and what follows.
fn bracketed(code: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, letter) in code.char_indices() {
        depth += i32::from(matches!(letter, '(' | '[' | '{'))
            - i32::from(matches!(letter, ')' | ']' | '}'));
        if depth == 0 {
            return Some((code.get(1..at)?, &code[at + 1..]));
        }
    }
    None
}

/// The parts between the commas of a list of values or parameters.
fn parts(list: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    let mut before = ' ';
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if matches!(before, '-' | '=') => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                found.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    found.push(list[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// Whether `code`, which follows `let `, binds the parts of a tuple that is written there.
fn binds_a_written_tuple(code: &str) -> bool {
    let after_pattern = |code| Some(bracketed(code)?.1.trim_start());
    let Some(mut rest) = after_pattern(code) else {
        return false;
    };
    if let Some(kind) = rest.strip_prefix(':') {
        let Some(after) = after_pattern(kind.trim_start()) else {
            return false;
        };
        rest = after;
    }
    let Some(value) = rest
        .strip_prefix('=')
        .map(str::trim_start)
        .filter(|value| value.starts_with('('))
    else {
        return false;
    };
    bracketed(value).is_some_and(|(values, after)| {
        after.trim_start().starts_with(';') && parts(values).len() > 1
    })
}

/// Such a line does two things, and names and values must be counted off against each other.
#[test]
fn each_line_binds_one_value() {
    let mut problems = Vec::new();
    for path in [
        files("src", "rs"),
        files("crates", "rs"),
        files("tests", "rs"),
    ]
    .iter()
    .flatten()
    {
        let code = without_texts(&fs::read_to_string(path).unwrap());
        for (at, found) in code.match_indices("let (") {
            if binds_a_written_tuple(&code[at + found.len() - 1..]) {
                problems.push(format!(
                    "{}:{}",
                    shown(path),
                    code[..at].matches('\n').count() + 1
                ));
            }
        }
    }
    assert_none(
        &problems,
        "each `let` binds one value, not the parts of a tuple that is written there",
    );
}

/// A tuple that is taken apart at once only hides how many parameters there are.
#[test]
fn each_parameter_is_one_value() {
    let mut problems = Vec::new();
    for path in [files("src", "rs"), files("crates", "rs")].iter().flatten() {
        let code = without_texts(&code(path).join("\n"));
        for (at, _) in code.match_indices("fn ") {
            let name = code[at + 3..].split(['(', '<']).next().unwrap_or_default();
            // The parameters follow what is generic, which may hold brackets of its own.
            let signature = &code[at + 3 + name.len()..];
            let generic = if signature.starts_with('<') {
                generic_length(signature)
            } else {
                0
            };
            let Some((parameters, _)) = bracketed(&signature[generic..]) else {
                continue;
            };
            if parts(parameters)
                .iter()
                .any(|parameter| parameter.starts_with('('))
            {
                problems.push(format!("{}: {name}", shown(path)));
            }
        }
    }
    assert_none(&problems, "functions take their parameters one by one");
}

/// The bytes of the `<...>` that code begins with.
fn generic_length(code: &str) -> usize {
    let mut depth = 0;
    let mut last = ' ';
    for (at, letter) in code.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if last != '-' && last != '=' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
        last = letter;
    }
    0
}

#[test]
fn tuples_are_found_in_every_form() {
    for (code, expected) in [
        ("(a, b) = (1, 2);", true),
        ("(mut a, b): (Vec<u8>, u8) = (f(\n1), [2, 3]);", true),
        ("(a, b) = pair();", false),
        ("(a, b) = (x, y) else", false),
        ("(a, b) = (x + 1) * pair();", false),
        ("(a, b) = (pair());", false),
    ] {
        assert_eq!(binds_a_written_tuple(code), expected, "{code}");
    }
    let code = "f(\"a(\\\"(\", 'x', '(', r#\"let (\"#, &'a u8) // (\nlet";
    let bare = without_texts(code);
    assert_eq!(bare.len(), code.len());
    assert_eq!(bracketed(&bare[1..]).unwrap().1.trim(), "let");
    assert_eq!(
        parts("a: Map<u8, u8>, (b, c): (u8, u8), d: fn(u8) -> u8,").len(),
        3
    );
}

/// Type names that several types have all the same: a schema of the API that is called like a type
/// of the catalog, and helpers inside of test functions.
const SHARED_TYPE_NAMES: [&str; 2] = ["Offer", "Endless"];

#[test]
fn a_type_name_means_one_thing() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in [files("src", "rs"), files("crates", "rs")].iter().flatten() {
        for line in fs::read_to_string(path).unwrap().lines() {
            // A visibility such as `pub(in crate::engine)` has blanks.
            let mut words = line
                .split_whitespace()
                .filter(|word| !word.starts_with("pub") && !word.starts_with("crate"));
            let is_type = words
                .next()
                .is_some_and(|word| matches!(word, "struct" | "enum" | "trait" | "union"));
            let Some(name) = words.next().filter(|_| is_type) else {
                continue;
            };
            let name = name
                .split(|c: char| !c.is_alphanumeric())
                .next()
                .unwrap_or_default();
            places.entry(name.to_owned()).or_default().push(shown(path));
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    let shared = places
        .iter()
        .filter(|(name, places)| places.len() > 1 && !SHARED_TYPE_NAMES.contains(&name.as_str()));
    let problems: Vec<_> = shared
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert_none(&problems, "each type of the crate has a name of its own");
}

/// The modules each module may use, besides itself and `json`. What is not listed here may use
/// everything.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("json", &[][..]),
        ("model", &[][..]),
        ("runtime", &[][..]),
        ("metrics", &[][..]),
        ("catalog", &["model", "lint"][..]),
        ("formats", &["model"][..]),
        (
            "views",
            &["model", "catalog", "formats", "metrics", "runtime"][..],
        ),
        ("bundles", &["model", "runtime"][..]),
        (
            "config",
            &[
                "model",
                "runtime",
                "bundles",
                "catalog",
                "protocols",
                "transports",
            ][..],
        ),
        ("state", &["model", "runtime"][..]),
        ("transports", &["model", "metrics", "runtime"][..]),
        ("lint", &["model"][..]),
        (
            "protocols",
            &["model", "bundles", "lint", "transports", "runtime"][..],
        ),
        ("discovery", &["model", "bundles", "config", "runtime"][..]),
        (
            "engine",
            &[
                "model",
                "config",
                "metrics",
                "runtime",
                "state",
                "transports",
                "protocols",
                "discovery",
                "catalog",
            ][..],
        ),
        (
            "events",
            &["model", "config", "metrics", "runtime", "catalog"][..],
        ),
        (
            "native",
            &["model", "runtime", "discovery", "protocols", "transports"][..],
        ),
        (
            "calls",
            &[
                "model",
                "config",
                "metrics",
                "runtime",
                "state",
                "transports",
                "protocols",
                "catalog",
                // The reading of older drafts of JSON Schema.
                "formats",
                "engine",
                "events",
            ][..],
        ),
        (
            "server",
            &[
                "model",
                "bundles",
                "calls",
                "config",
                "metrics",
                "runtime",
                "catalog",
                "formats",
                "views",
                "engine",
                "events",
                "state",
                // What `calls` says of failures is in their words.
                "protocols",
                "transports",
            ][..],
        ),
    ])
}

#[test]
fn imports_go_one_way() {
    let allowed = allowed();
    let mut problems = Vec::new();
    for path in files("src", "rs") {
        let relative = shown(&path);
        let module = relative
            .trim_start_matches("src/")
            .split(['/', '.'])
            .next()
            .unwrap()
            .to_owned();
        let Some(may) = allowed.get(module.as_str()) else {
            continue;
        };
        for (at, line) in code(&path).iter().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let used = used
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .unwrap();
                if used != module && used != "json" && !may.contains(&used) && !used.is_empty() {
                    problems.push(format!("{relative}:{}: {module} uses {used}", at + 1));
                }
            }
        }
    }
    assert_none(&problems, "imports go one way (ARCHITECTURE.md, `Rooms`)");
}

#[test]
fn each_library_lives_in_its_room() {
    let rooms: &[(&str, &[&str])] = &[
        (
            "reqwest::",
            &[
                "src/cli/client.rs",
                "src/cli/client/event_stream.rs",
                "src/cli/client/socket.rs",
                "src/cli/otlp.rs",
            ],
        ),
        ("hyper_rustls::", &["src/transports/http/"]),
        ("rustls::", &["src/transports/http/"]),
        ("opentelemetry", &["src/cli/otlp.rs"]),
        ("memchr::", &["src/json/", "src/lint/suspicious/"]),
        ("figment::", &["src/config/load"]),
        ("moka::", &["src/views/"]),
        ("prometheus_client::", &["src/metrics/"]),
        ("rusqlite::", &["src/state/sqlite"]),
        ("axum::", &["src/server/"]),
        ("hyper::", &["src/server/", "src/transports/http/"]),
        ("notify::", &["src/discovery/", "src/runtime/files.rs"]),
        ("clap::", &["src/cli/"]),
        ("clap_mangen::", &["src/cli/man.rs"]),
        ("sd_notify::", &["src/runtime/service.rs"]),
        ("mdns_sd::", &["src/discovery/mdns/"]),
        ("if_addrs::", &["src/discovery/mdns/"]),
        (
            "socket2::",
            &[
                "src/discovery/mdns/",
                "src/cli/doctor/",
                "src/server/http/accept/listener.rs",
            ],
        ),
        (
            "rustix::",
            &[
                "src/cli/doctor/",
                "src/discovery/vrooli/",
                "src/runtime/",
                "src/transports/stdio/",
            ],
        ),
        (
            "tokio::process",
            &[
                "src/transports/stdio/",
                "src/cli/service.rs",
                "src/cli/start.rs",
                "src/cli/login.rs",
            ],
        ),
        ("std::process::Command", &["src/transports/stdio/"]),
    ];
    let mut problems = Vec::new();
    for path in files("src", "rs") {
        let relative = shown(&path);
        for (at, line) in code(&path).iter().enumerate() {
            let line = line.trim_start();
            if line.starts_with("//") {
                continue;
            }
            for (library, places) in rooms {
                let starts = line.match_indices(library).any(|(i, _)| {
                    !line[..i].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                });
                if starts && !places.iter().any(|place| relative.starts_with(place)) {
                    problems.push(format!("{relative}:{}: {library}", at + 1));
                }
            }
        }
    }
    assert_none(&problems, "each library's types stay in one room");
}

/// Whether a change loosens is judged in one place; a handler that went past it would let every
/// caller loosen.
#[test]
fn requests_change_preferences_in_one_place() {
    let changes = |path: &PathBuf| {
        let code: String = code(path).concat().split_whitespace().collect();
        code.contains("engine.prefer")
    };
    let places: Vec<_> = files("src/server", "rs")
        .iter()
        .filter(|path| changes(path))
        .map(|path| shown(path))
        .collect();
    assert_eq!(
        places,
        ["src/server/api/preferences.rs"],
        "only `Shared::prefer_all` hands changes to the engine"
    );
}

#[test]
fn every_fixture_is_used() {
    let tests: String = files("tests", "rs")
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let problems: Vec<_> = files("fixtures", "json")
        .iter()
        .filter(|path| {
            let name = path.file_stem().unwrap().to_string_lossy();
            let folder = path
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_string_lossy();
            // Named by file, or read with its whole folder.
            !tests.contains(name.as_ref()) && !tests.contains(&format!("/{folder}\""))
        })
        .map(|path| shown(path))
        .collect();
    assert_none(&problems, "every fixture is used by a test");
}

/// Cargo takes what lies directly in `tests/` and the `main.rs` of each folder there for programs;
/// what they do not name is silently not run.
#[test]
fn every_test_file_belongs_to_a_program() {
    let programs = root().join("tests");
    let mut problems = Vec::new();
    for path in files("tests", "rs") {
        let folder = path.parent().unwrap();
        let head = folder.join(if folder.ends_with("support") {
            "mod.rs"
        } else {
            "main.rs"
        });
        if folder == programs || (path == head && folder.parent() == Some(&programs)) {
            continue;
        }
        let named = format!("mod {};", path.file_stem().unwrap().display());
        let text = fs::read_to_string(&head).unwrap_or_default();
        if !text
            .lines()
            .any(|line| line.trim_start_matches("pub(crate) ") == named)
        {
            problems.push(format!(
                "{}: no `{named}` in {}",
                shown(&path),
                shown(&head)
            ));
        }
    }
    assert_none(
        &problems,
        "every file below a folder of tests is a module of its program",
    );
}

/// The compiler cannot tell: what one program does not use another one does.
#[test]
fn every_helper_is_used() {
    let tests: String = files("tests", "rs")
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut words = BTreeMap::<&str, usize>::new();
    for word in tests.split(|c: char| !c.is_alphanumeric() && c != '_') {
        *words.entry(word).or_default() += 1;
    }
    let mut problems = Vec::new();
    for path in files("tests/support", "rs") {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Some((_, after)) = line
                .split_once("fn ")
                .filter(|_| !line.trim_start().starts_with("//"))
            else {
                continue;
            };
            let name = after
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap();
            if words.get(name) == Some(&1) {
                problems.push(format!("{}: {name}", shown(&path)));
            }
        }
    }
    assert_none(
        &problems,
        "every helper of the tests is used by one of them",
    );
}

#[test]
fn every_module_says_what_it_is() {
    let problems: Vec<_> = files("src", "rs")
        .iter()
        .chain(&files("tests", "rs"))
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .map(|path| shown(path))
        .collect();
    assert_none(&problems, "every file begins with what it is for");
}

/// What readers find their way with: the overview, the words, and a page for each mechanism.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![
        root().join("ARCHITECTURE.md"),
        root().join("docs/glossary.md"),
    ];
    documents.extend(files("docs/design", "md"));
    documents
}

#[test]
fn documents_stay_short_and_name_their_sources() {
    let mut problems = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("ARCHITECTURE.md") && text.lines().count() > 250 {
            problems.push(format!(
                "{}: more than 250 lines; details belong to docs/design",
                shown(&path)
            ));
        }
        let is_page = path.starts_with(root().join("docs/design")) && !path.ends_with("README.md");
        if is_page && !text.contains("\n## Sources\n") {
            problems.push(format!("{}: no sources", shown(&path)));
        }
    }
    assert_none(
        &problems,
        "the overview is short, and each design page names its sources",
    );
}

/// A file that is renamed is renamed in the documents, too.
#[test]
fn documents_name_files_that_are_there() {
    let mut problems = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_file =
                Path::new(name).extension().is_some_and(|e| e == "rs") && name.contains('/');
            let is_pattern = name.contains(|c: char| c.is_whitespace() || c.is_uppercase());
            if is_file
                && !is_pattern
                && !root().join(name).exists()
                && !root().join("src").join(name).exists()
            {
                problems.push(format!("{}: {name}", shown(&path)));
            }
        }
    }
    assert_none(
        &problems,
        "documents name files of the repository, or of `src`",
    );
}

#[test]
fn the_glossary_has_every_state_and_finding() {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let mut known = Vec::new();
    known.extend(ScenarioState::ALL.map(ScenarioState::as_str));
    known.extend(ApprovalState::ALL.map(ApprovalState::as_str));
    known.extend(OperationState::ALL.map(OperationState::as_str));
    known.extend(Severity::ALL.map(Severity::as_str));
    known.extend(FindingCode::ALL.iter().map(|code| code.as_str()));
    let missing = known
        .iter()
        .filter(|word| !glossary.contains(&format!("`{word}`")));
    let missing: Vec<_> = missing.map(|word| (*word).to_owned()).collect();
    assert_none(
        &missing,
        "docs/glossary.md has every word for states and findings",
    );
}

/// Modules by their path below `src`, such as `["engine", "scenario"]`, each with its code.
type Modules = BTreeMap<Vec<String>, String>;

/// An import: whether it is passed on (`pub use`), and what it names.
type Import = (bool, Vec<String>);

fn words(path: &str) -> Vec<String> {
    path.split("::")
        .map(|word| word.trim().to_owned())
        .collect()
}

/// The paths of one `use`, braces taken apart.
fn paths(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![
            tree.split(" as ")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        ];
    };
    let inner = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let mut parts = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    for (at, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts
        .flat_map(paths)
        .map(|path| format!("{}{path}", prefix.trim()))
        .collect()
}

/// The `use` statements of a file, each with whether it passes on what it names.
fn statements(code: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start();
        let passed_on = line
            .split_once(" use ")
            .filter(|(before, _)| line.starts_with("pub") && !before.contains("fn "));
        let (shared, first) = match (line.strip_prefix("use "), passed_on) {
            (Some(tree), _) => (false, tree),
            (None, Some((_, tree))) => (true, tree),
            (None, None) => continue,
        };
        let mut tree = first.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push_str(line.trim());
        }
        found.push((
            shared,
            tree.split(';').next().unwrap_or_default().to_owned(),
        ));
    }
    found
}

/// A path that a module names, as one below `src`, if it is ours.
fn own_path(module: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|word| *word == "super").count();
    match path[0].as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
        "self" => Some([module, &path[1..]].concat()),
        first => modules
            .contains_key(&[module, &[first.to_owned()]].concat())
            .then(|| [module, path].concat()),
    }
}

/// What a module imports, each as a path below `src` where it is ours.
fn imports(module: &[String], modules: &Modules) -> Vec<Import> {
    let mut found = Vec::new();
    for (shared, tree) in statements(&modules[module]) {
        for path in paths(&tree) {
            found.extend(own_path(module, &words(&path), modules).map(|path| (shared, path)));
        }
    }
    found
}

/// The code without its `use` statements.
fn without_imports(code: &str) -> String {
    let mut is_import = false;
    let kept = code.lines().filter(|line| {
        let line = line.trim_start();
        let is_shared = line.starts_with("pub") && line.contains(" use ") && !line.contains("fn ");
        let is_skipped = is_import || is_shared || line.starts_with("use ");
        is_import = is_skipped && !line.contains(';');
        !is_skipped
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The paths that the code of a module names beside its imports, each as a path below `src` where
/// it is ours.
fn named_paths(module: &[String], modules: &Modules, imports: &[Import]) -> Vec<Import> {
    let code = without_imports(&without_texts(&modules[module]));
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let start = code[..at]
            .rfind(|c| !is_letter(c))
            .map_or(0, |before| before + 1);
        let end = at
            + code[at..]
                .find(|c| !is_letter(c))
                .unwrap_or(code.len() - at);
        // Each path once, at its first colons; a visibility names no item.
        if code[start..at].contains("::") || code[..start].ends_with("pub(in ") {
            continue;
        }
        let path = words(code[start..end].trim_end_matches(':'));
        // A type leads to its module by its import.
        let is_module = path[0].starts_with(|c: char| c.is_ascii_lowercase());
        let imported = imports
            .iter()
            .find(|(_, imported)| is_module && imported.last() == path.first());
        match (own_path(module, &path, modules), imported) {
            (Some(path), _) => found.push((false, path)),
            (None, Some((_, imported))) => found.push((false, [imported, &path[1..]].concat())),
            (None, None) => {}
        }
    }
    found
}

/// Whether a module's own file has an item of this name.
fn defines(code: &str, name: &str) -> bool {
    let kinds = [
        "struct",
        "enum",
        "trait",
        "fn",
        "type",
        "const",
        "static",
        "union",
        "macro_rules",
    ];
    code.lines()
        .filter(|line| !line.starts_with([' ', '/', '}']))
        .any(|line| {
            let words: Vec<&str> = line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            words
                .windows(2)
                .any(|pair| kinds.contains(&pair[0]) && pair[1] == name)
        })
}

/// The module whose file has what a path names, through whatever passes it on.
fn home(
    path: &[String],
    all: &BTreeMap<Vec<String>, Vec<Import>>,
    modules: &Modules,
    hops: usize,
) -> Vec<String> {
    let most = (1..=path.len())
        .rev()
        .find(|most| modules.contains_key(&path[..*most]));
    let Some(most) = most else { return Vec::new() };
    let (module, rest) = path.split_at(most);
    let Some(name) = rest
        .first()
        .filter(|name| hops > 0 && !defines(&modules[module], name))
    else {
        return module.to_vec();
    };
    let passed_on = all[module]
        .iter()
        .find(|(shared, path)| *shared && path.last() == Some(name));
    passed_on.map_or_else(
        || module.to_vec(),
        |(_, path)| home(path, all, modules, hops - 1),
    )
}

/// The modules that each one leads to within its room.
type ModuleLinks = BTreeMap<Vec<String>, Vec<Vec<String>>>;

/// Circles within rooms, the shortest of each module that is in one. First those of imports. Then
/// those with the paths in the code, where what the head of a folder defines is for all below it.
fn circles(modules: &Modules) -> Vec<String> {
    let all: BTreeMap<_, _> = modules
        .keys()
        .map(|module| (module.clone(), imports(module, modules)))
        .collect();
    let mut imported = ModuleLinks::new();
    let mut named = ModuleLinks::new();
    for (module, imports) in &all {
        // A module that passes its own parts on does not use them.
        let own = imports
            .iter()
            .filter(|(shared, path)| !(*shared && path.starts_with(module)));
        let homes = own.map(|(_, path)| home(path, &all, modules, 9));
        let homes: Vec<_> = homes
            .filter(|home| home != module && home.first() == module.first())
            .collect();
        let paths = named_paths(module, modules, imports);
        let further = paths.iter().map(|(_, path)| home(path, &all, modules, 9));
        let further = further.filter(|home| home != module && home.first() == module.first());
        let leading = homes
            .iter()
            .cloned()
            .chain(further)
            .filter(|home| !module.starts_with(home));
        named.insert(module.clone(), leading.collect());
        imported.insert(module.clone(), homes);
    }
    let mut found = shortest_circles(&imported);
    found.extend(shortest_circles(&named));
    found.into_values().collect()
}

/// The shortest circle of each module that is in one, by its members.
fn shortest_circles(uses: &ModuleLinks) -> BTreeMap<Vec<Vec<String>>, String> {
    let mut found = BTreeMap::new();
    for start in uses.keys() {
        let mut ways = vec![vec![start.clone()]];
        let mut seen = Vec::new();
        while !ways.is_empty() {
            let way = ways.remove(0);
            for next in &uses[way.last().unwrap()] {
                let longer = [way.clone(), vec![next.clone()]].concat();
                if next == start {
                    let mut members = way.clone();
                    members.sort();
                    let shown: Vec<_> = longer.iter().map(|module| module.join("/")).collect();
                    found.entry(members).or_insert_with(|| shown.join(" -> "));
                    ways.clear();
                    break;
                }
                if !seen.contains(next) {
                    seen.push(next.clone());
                    ways.push(longer);
                }
            }
        }
    }
    found
}

#[test]
fn no_room_imports_in_a_circle() {
    let module = |path: &Path| {
        let relative = shown(path);
        let name = relative
            .trim_start_matches("src/")
            .trim_end_matches(".rs")
            .trim_end_matches("/mod");
        name.split('/').map(str::to_owned).collect::<Vec<_>>()
    };
    // The crate for providers is one room.
    let provide_module = |path: &Path| {
        let relative = shown(path).replace("crates/provide/src/", "provide/");
        let name = relative
            .trim_end_matches(".rs")
            .trim_end_matches("/mod")
            .trim_end_matches("/lib");
        name.split('/').map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = |path: &Path| {
        let lines = code(path);
        lines
            .iter()
            .map(|line| line.split("//").next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut modules: Modules = files("src", "rs")
        .iter()
        .map(|path| (module(path), plain(path)))
        .collect();
    let of_provide = files("crates/provide/src", "rs");
    let of_provide = of_provide.iter().map(|path| {
        let code = plain(path).replace("crate::", "crate::provide::");
        (provide_module(path), code)
    });
    modules.extend(of_provide);
    assert_none(
        &circles(&modules),
        "the files of a room import each other in one direction only",
    );
}

#[test]
fn circles_are_found_through_what_passes_items_on() {
    let modules = |files: &[(&str, &str)]| -> Modules {
        files
            .iter()
            .map(|(path, code)| {
                (
                    path.split('/').map(str::to_owned).collect(),
                    (*code).to_owned(),
                )
            })
            .collect()
    };
    let parent = "mod a;\nmod b;\npub use a::{self, A};\npub struct Own;\n";
    for (a, b, circle) in [
        ("pub struct A;", "use super::A;", None),
        (
            "use super::b::B;\npub struct A;",
            "use super::{\n    A,\n    Own,\n};\npub struct B;",
            Some("room/a -> room/b -> room/a"),
        ),
        (
            "use crate::room::Own;\npub struct A;",
            "use crate::other::X;",
            None,
        ),
    ] {
        let found = circles(&modules(&[("room", parent), ("room/a", a), ("room/b", b)]));
        assert_eq!(found.first().map(String::as_str), circle, "{found:?}");
    }
    let by_path = "pub fn a() { super::b::b() }";
    let found = circles(&modules(&[
        ("room", parent),
        ("room/a", by_path),
        ("room/b", "use super::a::a;\npub fn b() {}"),
    ]));
    assert_eq!(found, ["room/a -> room/b -> room/a"]);
    let leads_in = [
        ("room", "mod a;\nmod b;\n"),
        ("room/a", "mod inner;\nfn run() { inner::run() }"),
        (
            "room/a/inner",
            "pub(in crate::room::b) fn run() { crate::room::b::run() }",
        ),
        ("room/b", "use super::a;\npub fn run() {}"),
    ];
    let found = circles(&modules(&leads_in));
    assert_eq!(found, ["room/a -> room/a/inner -> room/b -> room/a"]);
    let user = "mod a;\nuse a::A;\nstruct Own;\n";
    let found = circles(&modules(&[
        ("room", user),
        ("room/a", "pub(super) struct A;\nuse super::Own;\n"),
    ]));
    assert_eq!(found, ["room -> room/a -> room"]);
}

/// Otherwise `.ci/mutants`, which takes too long for every change, stops before it begins.
#[test]
fn each_small_fault_has_its_place() {
    let text = fs::read_to_string(root().join(".ci/mutants.d/mutants.toml")).unwrap();
    let list: toml::Table = text.parse().unwrap();
    let mut problems = Vec::new();
    for fault in list["mutant"].as_array().unwrap() {
        let file = fault["file"].as_str().unwrap();
        let find = fault["find"].as_str().unwrap();
        let found = fs::read_to_string(root().join(file))
            .unwrap_or_default()
            .matches(find)
            .count();
        if found != 1 {
            problems.push(format!(
                "fault {} ({}): its text stands {found} times in {file}",
                fault["id"], fault["what"]
            ));
        }
    }
    assert_none(
        &problems,
        "each small fault of .ci/mutants.d/mutants.toml has one place",
    );
}
