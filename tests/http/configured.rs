//! Scenarios are added to the file of the configuration and taken out of it over HTTP, as the form
//! of the dashboard does it.

use std::fs;

use serde_json::{Value, json};

use crate::support::command::{Home, Running, Scenario, tool, until};
use crate::support::torn::{Whole, send};

fn post(daemon: &Running, body: &Value) -> Whole {
    send(&daemon.url, "POST", "/api/v1/scenarios", Some(body)).unwrap()
}

fn delete(daemon: &Running, name: &str) -> Whole {
    send(
        &daemon.url,
        "DELETE",
        &format!("/api/v1/scenarios/{name}"),
        None,
    )
    .unwrap()
}

fn state(daemon: &Running, name: &str) -> String {
    let answer = send(
        &daemon.url,
        "GET",
        &format!("/api/v1/scenarios/{name}"),
        None,
    )
    .unwrap();
    answer.json()["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn page(daemon: &Running, target: &str) -> String {
    let accept = format!("GET {target} HTTP/1.1\r\nAccept: text/html\r\nConnection: close\r\n");
    let address = daemon.url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(
        &mut stream,
        format!("{accept}Host: {address}\r\n\r\n").as_bytes(),
    )
    .unwrap();
    let mut page = String::new();
    std::io::Read::read_to_string(&mut stream, &mut page).unwrap();
    page
}

#[test]
fn an_address_is_written_to_the_file_and_followed_and_taken_out_again() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::with("# mine\n");
    let file = home.path("callsheet.toml");
    let before = fs::read_to_string(&file).unwrap();
    let daemon = home.serve(&[]);
    let empty = page(&daemon, "/");
    assert!(
        empty.contains("id=\"add-scenario\"")
            && empty.contains("<details class=\"card\" id=\"add\" open>")
    );
    assert!(
        empty.contains("callsheet add NAME -- COMMAND"),
        "a command is added in a terminal"
    );

    let added = post(&daemon, &json!({"name": "notes", "url": notes.url}));
    assert_eq!(added.status, 201, "{added:?}");
    assert_eq!(added.json()["name"], "notes");
    assert_eq!(added.json()["file"], file.to_str().unwrap());
    let entry = format!(
        "\n[[scenarios]]\nname = \"notes\"\nurl = \"{}/\"\n",
        notes.url
    );
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        format!("{before}{entry}")
    );
    until("it is live", || state(&daemon, "notes") == "live");
    let full = page(&daemon, "/");
    assert!(
        full.contains("1 tool</a> of 1 scenario; none needs attention"),
        "{full}"
    );
    assert!(
        full.contains("<details class=\"card\" id=\"add\">"),
        "it is folded"
    );
    let remove = "hx-delete=\"/api/v1/scenarios/notes\"";
    assert!(
        !full.contains(remove),
        "what works is taken out on its own page"
    );
    assert!(page(&daemon, "/dashboard/scenarios/notes").contains(remove));

    let again = post(&daemon, &json!({"name": "notes", "url": notes.url}));
    assert_eq!(again.status, 409);
    assert!(
        again.json()["detail"]
            .as_str()
            .unwrap()
            .contains("has a scenario `notes` already"),
        "{again:?}"
    );
    let next =
        "take another name, or take that one out first with `DELETE /api/v1/scenarios/notes`";
    assert_eq!(
        again.json()["next_step"],
        next,
        "a request, and no command of a terminal"
    );
    assert_eq!(again.json()["next"][0]["path"], "/api/v1/scenarios/notes");
    let same = post(&daemon, &json!({"name": "other", "url": notes.url})).json();
    let next = same["next_step"].as_str().unwrap();
    assert!(
        next.starts_with("`DELETE /api/v1/scenarios/notes` makes room for `other`; `PUT "),
        "{same}"
    );

    let unknown = delete(&daemon, "note");
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["candidates"], json!(["notes"]));
    let removed = delete(&daemon, "notes");
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    until("it is removed", || state(&daemon, "notes") == "removed");
}

#[test]
fn what_cannot_be_added_is_refused_and_changes_nothing() {
    let home = Home::with("");
    let before = fs::read_to_string(home.path("callsheet.toml")).unwrap();
    let daemon = home.serve(&[]);
    for (body, part) in [
        (
            json!({"name": "x", "command": "sh", "args": ["-c", "true"]}),
            "a command is not added over HTTP",
        ),
        (
            json!({"name": "x", "url": "http://h", "env": {}}),
            "a command is not added over HTTP",
        ),
        (
            json!({"name": "x", "url": "http://h", "headers": {}}),
            "unknown member `headers`",
        ),
        (json!({"name": "x"}), "`url` is missing"),
        (json!({"name": "x", "url": "python3"}), "an address such as"),
        (
            json!({"name": "x", "url": "file:///etc/passwd"}),
            "an address such as",
        ),
        (
            json!({"name": "x", "url": "http://h/?q=1"}),
            "scenarios[0].url",
        ),
        (json!({"name": "x y", "url": "http://h"}), "x y"),
    ] {
        let refused = post(&daemon, &body);
        assert_eq!(refused.status, 400, "{body}: {refused:?}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(part), "{body}: {detail}");
    }
    assert_eq!(
        fs::read_to_string(home.path("callsheet.toml")).unwrap(),
        before
    );
}

#[test]
fn where_the_file_cannot_be_changed_the_lines_are_in_the_answer() {
    let home = Home::new();
    let list = "server.listen = \"127.0.0.1:0\"\nscenarios = [{ name = \"a\", url = \"http://127.0.0.1:1\", headers = { X-Key = \"topsecret\" } }]\n";
    home.write("callsheet.toml", list);
    let daemon = Running::start(home.command(&["serve"]), "callsheet listens on ");
    until("the file is followed", || {
        post(&daemon, &json!({"name": "a", "url": "http://h"})).status == 409
    });
    let refused = post(&daemon, &json!({"name": "b", "url": "http://127.0.0.1:2"}));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(
        refused.json()["lines"],
        "[[scenarios]]\nname = \"b\"\nurl = \"http://127.0.0.1:2/\"\n"
    );
    let refused = delete(&daemon, "a");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(!String::from_utf8_lossy(&refused.body).contains("topsecret"));
    assert_eq!(
        fs::read_to_string(home.path("callsheet.toml")).unwrap(),
        list
    );
}

#[test]
fn an_operators_token_is_needed_where_one_is_set() {
    let home = Home::with("server.operator_token = \"0123456789abcdef-topsecret\"\n");
    let daemon = home.serve(&[]);
    assert_eq!(
        post(&daemon, &json!({"name": "x", "url": "http://h"})).status,
        401
    );
    assert_eq!(delete(&daemon, "x").status, 401);
}

/// The folders of programs say which software a machine has.
#[tokio::test(flavor = "multi_thread")]
async fn where_programs_are_found_is_shown_to_operators_only() {
    let home = Home::with("server.operator_token = \"0123456789abcdef-topsecret\"\n");
    let mut serve = home.command(&["serve"]);
    serve.env("PATH", "/folder/of/programs");
    let daemon = Running::start(serve, "callsheet listens on ");
    let address = daemon.url.strip_prefix("http://").unwrap().parse().unwrap();
    let shown = async |headers: &[(&str, &str)]| {
        let ready = crate::support::serving::ask(address, "GET", "/readyz", headers, "")
            .await
            .json();
        assert!(ready["configuration"]["file"].is_string(), "{ready}");
        ready["configuration"]["search_path"].clone()
    };
    assert_eq!(shown(&[]).await, Value::Null);
    assert_eq!(
        shown(&[("authorization", "Bearer 0123456789abcdef-hash")]).await,
        Value::Null
    );
    assert_eq!(
        shown(&[("authorization", "Bearer 0123456789abcdef-topsecret")]).await,
        "/folder/of/programs"
    );
}

#[test]
fn changes_at_the_same_time_are_all_written() {
    let home = Home::with("");
    let daemon = home.serve(&[]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let body = json!({"name": format!("s{number}"), "url": format!("http://127.0.0.1:{}", number + 1)});
            let url = &daemon.url;
            scope.spawn(move || {
                let added = send(url, "POST", "/api/v1/scenarios", Some(&body)).unwrap();
                assert_eq!(added.status, 201, "{added:?}");
            });
        }
    });
    let written = fs::read_to_string(home.path("callsheet.toml")).unwrap();
    assert_eq!(written.matches("[[scenarios]]").count(), 8, "{written}");
}
