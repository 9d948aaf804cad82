//! The pages of the dashboard: what they show, how they keep to themselves, and that nothing
//! foreign acts in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use callsheet::catalog::{Inputs, Visibility};
use callsheet::model::{Finding, FindingCode, Health, LastError, ScenarioState, ToolCounts};
use callsheet::runtime::Clock;

use crate::support::assert_empty;
use crate::support::offers::{offer, put, scenario, standing, tool};
use crate::support::serving::{Answer, Served, health, serve, serve_inputs, snapshot};

const HTML: (&str, &str) = (
    "accept",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
);
const GZIP: (&str, &str) = ("accept-encoding", "gzip");
const HOSTILE: &str = "<img src=x onerror=alert(1)> \" ' & </script>";
/// Turns what follows around, and is not seen.
const OVERRIDE: char = '\u{202e}';
/// What the first page and all that it loads may weigh.
const FIRST_LOAD: usize = 150_000;

const PAGES: [&str; 8] = [
    "/",
    "/dashboard/scenarios/files",
    "/dashboard/scenarios/gone",
    "/dashboard/tools",
    "/dashboard/tool?id=files%2Fread",
    "/dashboard/findings",
    "/dashboard/preferences",
    "/dashboard/configuration",
];

/// A live scenario, one that is down, one that waits, and texts that would like to act.
async fn served() -> Served {
    let mut inputs = Inputs::default();
    let hostile = format!("{HOSTILE}{OVERRIDE}");
    let tools = [
        tool("read").about(&hostile).category(HOSTILE).tag(HOSTILE),
        tool(HOSTILE),
        tool("wipe").off().risky(),
    ];
    put(&mut inputs, offer("files", &tools));
    put(
        &mut inputs,
        standing(
            offer("gone", &[tool("lost")]),
            Visibility::Withdrawn(hostile.clone()),
        ),
    );
    let files = Health {
        description: Some(hostile.clone()),
        own_name: Some(hostile.clone()),
        version: Some(hostile.clone()),
        protocol_version: Some(hostile.clone()),
        url: Some("http://127.0.0.1:1".into()),
        latency_ms: Some(7),
        last_success: Some(Clock::system().wall()),
        tools: ToolCounts {
            offered: 3,
            published: 2,
            disabled: 1,
            quarantined: 1,
        },
        ..health("files", ScenarioState::Live)
    };
    let error = LastError {
        kind: "refused".into(),
        message: hostile.clone(),
        at: Clock::system().wall(),
    };
    let gone = Health {
        reason: hostile.clone(),
        last_error: Some(error),
        ..health("gone", ScenarioState::Down)
    };
    let mut waiting = Health {
        trusted: false,
        ..health("waiting", ScenarioState::Pending)
    };
    waiting.party.origin = Some("http://192.0.2.7:80".into());
    let finding =
        Finding::new(FindingCode::ToolQuarantined, hostile.clone()).of_scenario(&scenario("files"));
    let finding = finding
        .of_tool(hostile.as_str())
        .hint(hostile.as_str())
        .at(hostile.as_str());
    serve(snapshot(&inputs, vec![files, gone, waiting], vec![finding])).await
}

pub(super) async fn page(server: &Served, target: &str) -> String {
    // As htmx fetches the parts of a page.
    let answer = server
        .ask("GET", target, &[HTML, ("hx-request", "true")], "")
        .await;
    assert_eq!(answer.status, 200, "{target}: {answer:?}");
    assert_eq!(
        answer.header("content-type"),
        "text/html; charset=utf-8",
        "{target}"
    );
    String::from_utf8(answer.body).unwrap()
}

/// The values of an attribute, as they are written.
pub(super) fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    page.split(&begin)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// The files that a page loads.
fn loaded(page: &str) -> BTreeSet<String> {
    let all = attributes(page, "href")
        .into_iter()
        .chain(attributes(page, "src"));
    all.filter(|at| at.starts_with("/dashboard/assets/"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn browsers_get_pages_and_scripts_get_the_routes() {
    let server = served().await;
    let front = page(&server, "/").await;
    assert!(front.contains("<title>Scenarios · callsheet</title>"));
    for accept in [
        &[][..],
        &[("accept", "*/*")],
        &[("accept", "application/json")],
    ] {
        let index = server.ask("GET", "/", accept, "").await;
        assert_eq!(index.header("vary"), "accept");
        assert_eq!(index.json()["name"], "callsheet");
    }
    let head = server.ask("HEAD", "/", &[HTML], "").await;
    assert_eq!(head.status, 200);
    assert_empty!(head.body);
    assert_eq!(server.ask("POST", "/", &[], "").await.status, 405);
}

#[tokio::test]
async fn every_page_keeps_to_itself() {
    let server = served().await;
    for target in PAGES {
        let answer = server.ask("GET", target, &[HTML], "").await;
        let policy = answer.header("content-security-policy").to_owned();
        assert!(
            policy.contains("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{target}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{target}: {policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cache-control"), "no-store");
        let page = String::from_utf8(answer.body).unwrap();
        let scripts = page.matches("<script").count();
        assert_eq!(
            scripts,
            page.matches("<script src=\"/dashboard/assets/").count(),
            "{target}: inline script"
        );
        assert!(
            !page.contains(" style=") && !page.contains("<style"),
            "{target}: inline style"
        );
        for attribute in [
            "src",
            "href",
            "action",
            "hx-get",
            "hx-post",
            "hx-put",
            "hx-delete",
            "sse-connect",
        ] {
            for at in attributes(&page, attribute) {
                let own = at.starts_with('/') && !at.starts_with("//") || at.starts_with('#');
                assert!(own, "{target}: {attribute}={at}");
            }
        }
    }
}

#[tokio::test]
async fn every_page_can_be_walked_without_seeing_it() {
    let server = served().await;
    for target in PAGES {
        let page = page(&server, target).await;
        for (part, times) in [
            ("Not live: it needs JavaScript", 1),
            ("<html lang=\"en\">", 1),
            ("<h1", 1),
            ("<main ", 1),
            ("<nav ", 1),
            ("class=\"skip\"", 1),
        ] {
            assert_eq!(page.matches(part).count(), times, "{target}: {part}");
        }
        assert!(
            page.contains("aria-current=\"page\""),
            "{target} says where one is"
        );
        let ids = attributes(&page, "id");
        assert_eq!(
            ids.len(),
            ids.iter().collect::<BTreeSet<_>>().len(),
            "{target}: ids are unique: {ids:?}"
        );
        for labelled in attributes(&page, "aria-labelledby") {
            assert!(ids.contains(&labelled), "{target}: {labelled}");
        }
    }
}

#[tokio::test]
async fn foreign_texts_do_not_act() {
    let server = served().await;
    let parts = [
        "/dashboard/scenarios",
        "/dashboard/scenarios/files/offer",
        "/dashboard/scenarios/files/model",
        "/dashboard/tools/rows",
    ];
    let named = format!(
        "/dashboard/tool?id=files%2F{}",
        "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%20%22%20%27%20%26%20%3C%2Fscript%3E"
    );
    let mut shown = 0;
    for target in PAGES.into_iter().chain(parts).chain([named.as_str()]) {
        let page = page(&server, target).await;
        assert!(
            !page.contains("<img src=x") && !page.contains("x onerror=alert(1)> \""),
            "{target}"
        );
        assert!(
            !page.contains(OVERRIDE),
            "{target}: what turns text around is shown by its number"
        );
        shown += page.matches("&lt;img src=x onerror=alert(1)&gt;").count();
        assert!(
            !target.contains("scenarios/gone")
                || page.contains("<span class=\"mark\">U+202E</span>"),
            "{target}"
        );
    }
    assert!(shown > 10, "they are shown all the same: {shown}");
}

#[tokio::test]
async fn the_first_load_is_small() {
    let server = served().await;
    let front = server.ask("GET", "/", &[HTML, GZIP], "").await;
    assert_eq!(front.header("content-encoding"), "gzip");
    let mut weight = front.body.len();
    let files = loaded(&page(&server, "/").await);
    assert!(files.len() >= 5, "{files:?}");
    for file in &files {
        let answer = server.ask("GET", file, &[GZIP], "").await;
        assert_eq!(answer.status, 200, "{file}");
        assert_eq!(answer.header("content-encoding"), "gzip", "{file}");
        assert!(
            answer.header("cache-control").contains("immutable"),
            "{file}"
        );
        weight += answer.body.len();
        let etag = answer.header("etag").to_owned();
        let again = server
            .ask("GET", file, &[GZIP, ("if-none-match", &etag)], "")
            .await;
        assert_eq!(again.status, 304, "{file}");
        assert!(again.body.is_empty(), "{file}");
    }
    assert!(weight < FIRST_LOAD, "{weight} bytes with gzip");
    server.get("/dashboard/assets/other.js").await.problem();
}

#[tokio::test]
async fn no_file_names_another_host() {
    let server = served().await;
    for file in loaded(&page(&server, "/").await) {
        let text = String::from_utf8(server.get(&file).await.body).unwrap();
        let text = text.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{file}"
        );
    }
}

#[test]
fn vendored_files_are_as_they_were_published() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/dashboard/vendor");
    let sums = fs::read_to_string(folder.join("CHECKSUMS")).unwrap();
    let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let sha256 = suite.tls13().unwrap().common.hash_provider;
    let mut checked = BTreeSet::new();
    for (sum, file) in sums.lines().map(|line| line.split_once("  ").unwrap()) {
        let hash = sha256.hash(&fs::read(folder.join(file)).unwrap());
        let hash = hash
            .as_ref()
            .iter()
            .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!(hash, sum, "{file}");
        checked.insert(file.to_owned());
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if ["CHECKSUMS", "README.md"].contains(&name.as_str()) {
            continue;
        }
        assert!(
            checked.contains(&name) && readme.contains(&name),
            "{name} has a checksum and a row"
        );
        if let Some(script) = name.strip_suffix(".min.js") {
            assert!(
                checked.contains(&format!("{script}.LICENSE")),
                "{name} comes with its licence"
            );
        }
    }
}

#[tokio::test]
async fn scenarios_are_shown_with_their_state_in_words_and_what_can_be_done() {
    let server = served().await;
    let front = page(&server, "/").await;
    let row = |name: &str| {
        let begin = front
            .find(&format!("<tr id=\"scenario-{name}\""))
            .unwrap_or_else(|| panic!("no row of {name}"));
        front[begin..].split("</tr>").next().unwrap().to_owned()
    };
    let files = row("files");
    // The address stands early, and is whole in the title where the page cuts it.
    assert!(
        files.contains("<code class=\"address\" title=\"http://127.0.0.1:1\"><bdi>http://127.0.0.1:1</bdi></code>"),
        "{files}"
    );
    assert!(
        files.find("http://127.0.0.1:1").unwrap() < files.find("> live</span>").unwrap(),
        "{files}"
    );
    for part in [
        "data-state=\"live\"",
        "> live</span>",
        "<strong>2</strong> published",
        "1 disabled",
        "1 quarantined",
        "7 ms",
    ] {
        assert!(files.contains(part), "{part}: {files}");
    }
    assert!(
        files.contains("hx-post=\"/api/v1/scenarios/files/refresh\"")
            && files.contains("id=\"block-files\"")
    );
    // Only what has no tools in the list can be forgotten.
    assert!(
        row("gone").contains("hx-post=\"/api/v1/scenarios/gone/forget\"")
            && !files.contains("/forget\"")
    );
    let waiting = row("waiting");
    assert!(
        waiting.contains("/trust?origin=http%3A%2F%2F192.0.2.7%3A80")
            && waiting.contains("hx-confirm=")
    );
    // What needs a person comes first.
    let at = |name: &str| front.find(&format!("id=\"scenario-{name}\"")).unwrap();
    assert!(at("waiting") < at("gone") && at("gone") < at("files"));
    let part = page(&server, "/dashboard/scenarios?state=down&sort=name&q=GONE").await;
    assert!(part.contains("scenario-gone") && !part.contains("scenario-files"));
    assert!(
        page(&server, "/dashboard/scenarios?q=127.0.0.1%3A1")
            .await
            .contains("scenario-files")
    );
    assert!(
        page(&server, "/dashboard/scenarios?q=nothing")
            .await
            .contains("No scenario matches")
    );
}

#[tokio::test]
async fn the_first_page_begins_with_one_verdict() {
    let server = served().await;
    let front = page(&server, "/").await;
    let verdict = front
        .split("class=\"verdict\">")
        .nth(1)
        .unwrap()
        .split("</p>")
        .next()
        .unwrap();
    let words: String = verdict
        .split('<')
        .map(|part| part.split('>').next_back().unwrap())
        .collect();
    assert_eq!(words, "2 tools of 3 scenarios; 2 need attention");
    for (state, number) in [("live", 1), ("down", 1), ("pending", 1)] {
        assert!(
            front.contains(&format!(
                "href=\"/?state={state}\"><strong>{number}</strong>"
            )),
            "{state}"
        );
    }
    assert!(front.contains("<strong>1</strong> quarantined"));
    // The verdict comes before everything that has to be scrolled.
    let at = |part: &str| front.find(part).unwrap_or_else(|| panic!("{part}"));
    assert!(
        at("class=\"verdict\"") < at("id=\"use-title\"")
            && at("id=\"use-title\"") < at("id=\"scenarios\"")
    );
    assert!(front.contains(&format!(
        "<code id=\"mcp-address\">http://{}/mcp</code>",
        server.address
    )));
    let list = format!(
        "<code id=\"list-address\">http://{}/api/v1/tools?format=openai</code>",
        server.address
    );
    assert!(front.contains(&list) && front.contains("data-copy=\"list-address\""));
    // This daemon has no file, so nothing can be added to it or removed from it.
    assert!(
        front.contains("follows no configuration file") && !front.contains("id=\"add-scenario\"")
    );
    assert!(!front.contains("id=\"remove-"));
    assert!(
        page(&server, "/dashboard/overview")
            .await
            .contains("need attention")
    );
    assert_eq!(
        page(&server, "/dashboard/overview/calls").await,
        "",
        "no call waits"
    );
}

#[tokio::test]
async fn an_empty_daemon_says_what_to_do_next() {
    let server = serve_inputs(&Inputs::default()).await;
    let front = page(&server, "/").await;
    assert!(front.contains("id=\"empty\"") && front.contains("[[scenarios]]"));
    assert!(
        front.contains("No tools yet: no scenario is known")
            && front.contains("<code>callsheet init</code>")
    );
    assert!(
        page(&server, "/dashboard/tools")
            .await
            .contains("0 tools</span> yet. <a href=\"/#add\">Add a scenario</a>")
    );
    assert!(
        front.contains("data-copy=\"connect-cursor\""),
        "clients can be connected"
    );
    assert!(
        front.contains(&format!("{}/mcp", server.address)),
        "by the address of this daemon"
    );
    for target in [
        "/dashboard/findings",
        "/dashboard/preferences",
        "/dashboard/configuration",
    ] {
        assert!(
            page(&server, target).await.contains("id=\"empty\""),
            "{target}"
        );
    }
    let unknown: Answer = server
        .ask("GET", "/dashboard/scenarios/none", &[HTML], "")
        .await;
    assert_eq!(unknown.status, 404);
    assert!(
        String::from_utf8(unknown.body)
            .unwrap()
            .contains("no scenario is called")
    );
}

/// What leads nowhere is a page too: with the navigation, and with pages in place of routes.
#[tokio::test]
async fn browsers_that_get_lost_find_back() {
    let server = serve_inputs(&Inputs::default()).await;
    for (target, next) in [
        (
            "/dashboard/scenarios/none",
            "the page <a href=\"/\">Scenarios</a>",
        ),
        ("/dashboard/foo", "the page <a href=\"/\">Scenarios</a>"),
        ("/nowhere", "the page <a href=\"/\">Scenarios</a>"),
        (
            "/dashboard/tool?id=a/b",
            "the page <a href=\"/dashboard/tools\">Tools</a>",
        ),
    ] {
        let answer: Answer = server.ask("GET", target, &[HTML], "").await;
        assert_eq!(answer.status, 404, "{target}");
        assert_eq!(
            answer.headers["content-type"], "text/html; charset=utf-8",
            "{target}"
        );
        let page = String::from_utf8(answer.body).unwrap();
        assert!(
            page.contains("<nav aria-label=\"Pages\">")
                && page.contains("href=\"/dashboard/calls\""),
            "{page}"
        );
        assert!(
            page.contains(next) && !page.contains("GET /") && !page.contains('`'),
            "{target}: {page}"
        );
    }
    for (target, place) in [
        ("/dashboard", "/"),
        ("/dashboard/", "/"),
        ("/docs/", "/docs"),
    ] {
        for headers in [&[HTML][..], &[("accept", "*/*")], &[]] {
            let answer: Answer = server.ask("GET", target, headers, "").await;
            assert_eq!(answer.status, 303, "{target}");
            assert_eq!(answer.headers["location"], place, "{target}");
        }
    }
    // Programs get data.
    let data: Answer = server.ask("GET", "/dashboard/foo", &[], "").await;
    assert_eq!(data.headers["content-type"], "application/problem+json");
}

#[tokio::test]
async fn thousands_of_tools_come_in_parts() {
    let mut inputs = Inputs::default();
    for scenario in 0..10 {
        let tools: Vec<_> = (0..500)
            .map(|n| tool(&format!("t{scenario}_{n:03}")).category("cat"))
            .collect();
        put(&mut inputs, offer(&format!("many{scenario}"), &tools));
    }
    let server = serve_inputs(&inputs).await;
    let rows = |page: &str| page.matches("<tr id=\"t").count();
    let first = page(&server, "/dashboard/tools").await;
    assert_eq!(rows(&first), 100);
    assert!(first.contains("5000 tools") && first.contains("class=\"more\""));
    let next = page(&server, "/dashboard/tools/rows?from=100").await;
    assert_eq!(rows(&next), 100);
    assert!(next.contains("data-tool=\"many0/t0_100\""));
    let last = page(&server, "/dashboard/tools/rows?from=4950").await;
    assert!(rows(&last) == 50 && !last.contains("class=\"more\""));
    let again = page(&server, "/dashboard/tools/rows?rows=240").await;
    assert_eq!(rows(&again), 300);
    let found = page(
        &server,
        "/dashboard/tools/rows?q=t7_123&category=cat&scenario=many7&state=on",
    )
    .await;
    assert!(rows(&found) == 1 && found.contains("1 tool<"));
}

#[tokio::test]
async fn a_tool_is_shown_as_each_format_makes_it() {
    let server = served().await;
    let tool = page(&server, "/dashboard/tool?id=files%2Fread").await;
    assert!(tool.contains("No parameters.") && tool.contains("Why these settings"));
    let shown = page(
        &server,
        "/dashboard/tool/format?id=files%2Fread&format=anthropic",
    )
    .await;
    assert!(shown.contains("input_schema") && shown.contains("tokens"));
    let totals = page(&server, "/dashboard/tools/formats").await;
    assert!(totals.contains("openai") && totals.contains("128"));
}

#[tokio::test]
async fn what_a_list_of_parameters_holds_is_shown() {
    let mut inputs = Inputs::default();
    let element = r#"{"type":"string","description":"A path","enum":["one.txt"]}"#;
    let schema = format!(
        r#"{{"type":"object","properties":{{"paths":{{"type":"array","items":{element}}}}}}}"#
    );
    put(&mut inputs, offer("files", &[tool("read").taking(&schema)]));
    let server = serve_inputs(&inputs).await;
    let page = page(&server, "/dashboard/tool?id=files%2Fread").await;
    assert!(
        page.contains("each element: ") && page.contains("A path") && page.contains("one.txt"),
        "{page}"
    );
}

#[tokio::test]
async fn the_navigation_has_numbers_without_scripts_too() {
    let mut login = health("crm", ScenarioState::NeedsAuthorization);
    login.reason = "answers 401".into();
    let server = serve(snapshot(
        &Inputs::default(),
        vec![login, health("files", ScenarioState::Live)],
        Vec::new(),
    ))
    .await;
    let front = page(&server, "/").await;
    let number = "<span sse-swap=\"number-scenarios\"><span class=\"tally\" aria-hidden=\"true\">1</span><span class=\"hidden\"> (1 needs authorization)</span></span>";
    assert!(front.contains(number), "{front}");
    // Zero is no number.
    assert!(
        front.contains("Calls<span sse-swap=\"number-calls\"></span>"),
        "{front}"
    );
    assert!(front.contains("<a href=\"/docs\">API</a>"), "{front}");
    assert!(
        page(&server, "/docs")
            .await
            .contains("<a href=\"/docs\" aria-current=\"page\">API</a>")
    );
}

#[tokio::test]
async fn preferences_show_and_set_every_setting() {
    let server = served().await;
    let form = page(
        &server,
        "/dashboard/preferences?scope=chat%3A7&target=tool%3Afiles%2Fread",
    )
    .await;
    for part in [
        "name=\"scope\" value=\"chat:7\"",
        "name=\"target\" value=\"tool:files/read\"",
        "name=\"alias\"",
        "name=\"priority\"",
        "name=\"pinned\"",
    ] {
        assert!(form.contains(part), "{part}");
    }
    let tool = page(&server, "/dashboard/tool?id=files%2Fread").await;
    assert!(
        tool.contains(
            "href=\"/dashboard/preferences?scope=global&amp;target=tool%3Afiles%2Fread\""
        ),
        "{tool}"
    );
}

/// Alone a part of a page has no style and no navigation.
#[tokio::test]
async fn a_part_that_a_browser_opens_leads_to_its_page() {
    let server = served().await;
    for (part, page) in [
        ("/dashboard/scenarios?q=files", "/?q=files"),
        ("/dashboard/overview", "/"),
        ("/dashboard/overview/calls", "/"),
        (
            "/dashboard/scenarios/files/now",
            "/dashboard/scenarios/files",
        ),
        (
            "/dashboard/tools/rows?scope=chat:7",
            "/dashboard/tools?scope=chat:7",
        ),
        (
            "/dashboard/tool/calls?id=files%2Fread",
            "/dashboard/tool?id=files%2Fread",
        ),
        (
            "/dashboard/tool/now?id=files%2Fread",
            "/dashboard/tool?id=files%2Fread",
        ),
        ("/dashboard/calls/latest", "/dashboard/calls"),
        ("/dashboard/findings/now", "/dashboard/findings"),
        ("/dashboard/preferences/now", "/dashboard/preferences"),
    ] {
        let answer = server.ask("GET", part, &[HTML], "").await;
        assert_eq!(answer.status, 303, "{part}: {answer:?}");
        assert_eq!(answer.header("location"), page, "{part}");
        assert_eq!(
            server.ask("GET", page, &[HTML], "").await.status,
            200,
            "{page}"
        );
    }
}

/// Its own switch changes what the page says of it.
#[tokio::test]
async fn the_page_of_a_tool_follows_its_switch() {
    let server = served().await;
    let whole = page(&server, "/dashboard/tool?id=files%2Fread").await;
    for (part, select) in [("tool-listed", "#listed"), ("tool-why", "#why")] {
        let element = whole
            .split(&format!("id=\"{part}\""))
            .nth(1)
            .unwrap()
            .split('>')
            .next()
            .unwrap();
        assert!(element.contains("hx-trigger=\"sse:catalog\""), "{element}");
        assert!(
            element.contains(&format!("hx-select=\"{select}\"")),
            "{element}"
        );
        assert!(
            element.contains("/dashboard/tool/now?id=files"),
            "{element}"
        );
    }
}
