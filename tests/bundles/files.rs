//! The folder: files that people write, files that are broken, and several daemons at once.

use std::fs;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home};
use crate::{NET, about, bundle, config, expect, folder, http_tool, invoke, tool, with_tools};

fn write(home: &Home, name: &str, document: &str) {
    let folder = folder(home).join("by-hand");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), document).unwrap();
}

fn bundle_file(id: &str) -> String {
    json!({
        "schemaVersion": "2025-07-01", "id": id, "slug": "net", "displayName": "Net", "isEnabled": true,
        "createdAt": "2024-05-14T13:44:00Z", "modifiedAt": "2024-05-14T13:44:00Z", "note": "mine",
    })
    .to_string()
}

fn tool_file(slug: &str) -> Value {
    json!({
        "schemaVersion": "2025-07-01", "bundleID": NET, "slug": slug, "version": "v1", "displayName": slug,
        "type": "http", "isEnabled": true, "argSchema": {}, "x-note": {"kept": true},
        "impl": {"urlTemplate": "http://127.0.0.1:9/"}, "createdAt": "2024-05-14T13:44:00Z",
    })
}

/// S1-13, S1-15, S1-79: files that are written by hand are followed, and what is not known in them
/// stays.
#[tokio::test]
async fn files_that_are_changed_by_hand_are_followed() {
    let home = Home::new();
    write(&home, "bundle.json", &bundle_file(NET));
    write(&home, "any-name.json", &tool_file("one").to_string());
    let daemon = Daemon::start(config(&home)).await;
    daemon.until_tools(&["one_v1"]).await;
    write(&home, "two.json", &tool_file("two").to_string());
    daemon.until_tools(&["one_v1", "two_v1"]).await;
    fs::remove_file(folder(&home).join("by-hand/two.json")).unwrap();
    daemon.until_tools(&["one_v1"]).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &tool(NET, "one", "v1"),
        &json!({"isEnabled": false}),
    )
    .await;
    daemon.until_tools(&[]).await;
    let text = fs::read_to_string(folder(&home).join("by-hand/any-name.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut expected = tool_file("one");
    expected["isEnabled"] = json!(false);
    assert_eq!(document, expected, "nothing else changed");
    // A new version begins with what the daemon takes, so without members of the author's own.
    let form = daemon
        .get(&format!(
            "/dashboard/bundles/{NET}/edit?tool=one&version=v1"
        ))
        .await;
    let form = String::from_utf8(form.body).unwrap();
    assert!(
        form.contains("urlTemplate") && !form.contains("x-note") && !form.contains("createdAt"),
        "{form}"
    );
    daemon.stop().await;
}

/// S1-46: a person who changes a file need not change its `modifiedAt`; switching it changes no
/// time.
#[tokio::test]
async fn a_file_that_is_changed_by_hand_is_modified_then() {
    let at = "2026-03-01T09:00:00Z";
    let dated = |text: &str| {
        let mut document: Value = serde_json::from_str(text).unwrap();
        document["modifiedAt"] = json!(at);
        document
    };
    let home = Home::new();
    write(&home, "bundle.json", &bundle_file(NET));
    let mut file = dated(&tool_file("one").to_string());
    write(&home, "one.json", &file.to_string());
    // As if it was written when it says.
    let path = folder(&home).join("by-hand/one.json");
    let old: jiff::Timestamp = at.parse().unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(old.into())
        .unwrap();
    let daemon = Daemon::start(config(&home)).await;
    daemon.until_tools(&["one_v1"]).await;
    let one = tool(NET, "one", "v1");
    let modified = async || -> jiff::Timestamp {
        daemon.json(&one).await["modifiedAt"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    assert_eq!(modified().await, old);
    expect(&daemon, 200, "PATCH", &one, &json!({"isEnabled": false})).await;
    assert_eq!(modified().await, old, "switching is no change");

    file["description"] = json!("other words");
    write(&home, "one.json", &file.to_string());
    daemon
        .until(&one, |answer| answer.json()["description"] == "other words")
        .await;
    let changed = modified().await;
    assert!(changed > old, "{changed}");
    expect(&daemon, 200, "PATCH", &one, &json!({"isEnabled": true})).await;
    expect(&daemon, 200, "PATCH", &one, &json!({"isEnabled": false})).await;
    assert_eq!(modified().await, changed, "switching is no change");
    daemon.stop().await;
    let daemon = Daemon::start(config(&home)).await;
    let again: jiff::Timestamp = daemon.json(&one).await["modifiedAt"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(again, changed, "a restart is no change");
    daemon.stop().await;
}

/// A broken file costs that tool, and nothing while its last good state is known.
#[tokio::test]
async fn a_broken_file_is_a_finding_of_that_tool() {
    let home = Home::new();
    write(&home, "bundle.json", &bundle_file(NET));
    write(&home, "good.json", &tool_file("good").to_string());
    let half = tool_file("late").to_string();
    write(&home, "late.json", &half[..half.len() / 2]);
    let mut newer = tool_file("newer");
    newer["schemaVersion"] = json!("2031-01-01");
    write(&home, "newer.json", &newer.to_string());
    write(&home, "twice.json", &tool_file("good").to_string());
    let daemon = Daemon::start(config(&home)).await;
    daemon.until_tools(&["good_v1"]).await;
    let found = daemon.findings("tool-quarantined").await;
    let told: Vec<&str> = found
        .iter()
        .map(|finding| finding["tool"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["late", "newer"], "{found:?}");
    assert!(
        found[1]["message"].as_str().unwrap().contains("2025-07-01"),
        "{found:?}"
    );
    assert_eq!(daemon.findings("duplicate-tool").await.len(), 1);
    write(&home, "late.json", &half);
    daemon.until_tools(&["good_v1", "late_v1"]).await;
    // Half written again: what it said before stays, with a finding.
    write(&home, "late.json", &half[..half.len() / 2]);
    daemon
        .until("/api/v1/findings?code=tool-quarantined", |answer| {
            let found = answer.json()["findings"].to_string();
            found.contains("late.json") && found.contains("keeps its last good state")
        })
        .await;
    assert_eq!(daemon.tools("").await, ["good_v1", "late_v1"]);
    // So does a whole bundle.
    write(&home, "bundle.json", "{");
    daemon
        .until("/api/v1/findings?code=entry-ignored", |answer| {
            answer.json()["findings"]
                .to_string()
                .contains("bundle.json")
        })
        .await;
    assert_eq!(daemon.tools("").await, ["good_v1", "late_v1"]);
    daemon.stop().await;
}

/// A folder that cannot be written costs the change, and a file without a name on every system is
/// named after the tool.
#[cfg(unix)]
#[tokio::test]
async fn what_cannot_be_written_changes_nothing() {
    let home = Home::new();
    let content = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/"}));
    let daemon = with_tools(config(&home), &[("plain", content.clone())]).await;
    expect(&daemon, 201, "PUT", &tool(NET, "Upper", "v1"), &content).await;
    let names: Vec<String> = fs::read_dir(folder(&home).join(NET))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.contains(&"plain_v1.json".to_owned()), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("Upper")),
        "{names:?}"
    );
    // A file stands where the folder was: also root cannot write there.
    let path = folder(&home).join(NET);
    let aside = home.state().with_file_name("aside");
    daemon.until_tools(&["Upper_v1", "plain_v1"]).await;
    fs::rename(&path, &aside).unwrap();
    fs::write(&path, "").unwrap();
    daemon.until_tools(&[]).await;
    let refused = daemon
        .send_json("PUT", &tool(NET, "new", "v1"), &content)
        .await;
    assert_eq!(refused.status, 404, "{refused:?}");
    let refused = daemon.send_json("PUT", &bundle(NET), &about("net")).await;
    assert_eq!(refused.status, 500, "{refused:?}");
    assert!(
        !refused.json()["detail"].as_str().unwrap().contains(NET),
        "no detail: {refused:?}"
    );
    fs::remove_file(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    daemon.until_tools(&["Upper_v1", "plain_v1"]).await;
    daemon.stop().await;
}

/// S1-81: two daemons share one folder.
#[tokio::test]
async fn what_one_daemon_stores_another_one_offers() {
    let home = Home::new();
    let second = Home::new();
    let content = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/"}));
    let one = with_tools(config(&home), &[("first", content.clone())]).await;
    let mut shared = config(&second);
    shared.bundles.path = Some(folder(&home));
    let two = Daemon::start(shared).await;
    two.until_tools(&["first_v1"]).await;
    expect(&two, 409, "PUT", &tool(NET, "first", "v1"), &content).await;
    expect(&two, 201, "PUT", &tool(NET, "second", "v1"), &content).await;
    one.until_tools(&["first_v1", "second_v1"]).await;
    one.stop().await;
    two.stop().await;
}

/// S1-10, S1-15, S1-24, S1-72: a function is called by its qualified name; one that is not
/// registered makes its tool unavailable, and changes no file.
#[tokio::test]
async fn functions_are_called_by_their_qualified_names() {
    use callsheet::Callsheet;
    use callsheet::app::Builder;

    use crate::support::in_process::InProcess;
    use crate::support::serving::ask;
    let home = Home::new();
    let name = "github.com/acme/agent/tools.Weather";
    write(&home, "bundle.json", &bundle_file(NET));
    let mut file = tool_file("weather");
    file["type"] = json!("go");
    file["impl"] = json!({"goFunc": name});
    file["argSchema"] =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    write(&home, "weather.json", &file.to_string());
    let run = |args: Value| async move {
        match args["city"].as_str() {
            Some("Atlantis") => Err("there is no such city".to_owned()),
            city => Ok(json!({"city": city, "sunny": true})),
        }
    };
    let with = |builder: Builder| builder.function(name, run);
    let running = InProcess::start(with(Callsheet::builder(config(&home)))).await;
    let address = running.serve().await;
    let call = async |args: Value| {
        let target = format!("{}/invoke", tool(NET, "weather", "v1"));
        let body = json!({"args": args}).to_string();
        let answer = ask(
            address,
            "POST",
            &target,
            &[("content-type", "application/json")],
            &body,
        )
        .await;
        (answer.status, answer.json())
    };
    let (status, answer) = call(json!({"city": "Paris"})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer,
        json!({"ok": true, "value": {"city": "Paris", "sunny": true}})
    );
    let (status, answer) = call(json!({"city": "Atlantis"})).await;
    assert_eq!(status, 200);
    assert_eq!(answer["error"], "there is no such city");
    let (status, _) = call(json!({"city": 7})).await;
    assert_eq!(status, 400);
    running.finish().await;

    let daemon = Daemon::start(config(&home)).await;
    daemon
        .until("/api/v1/findings?code=tool-unavailable", |answer| {
            answer.json()["findings"].to_string().contains(name)
        })
        .await;
    let (status, answer) = invoke(&daemon, "weather", &json!({"city": "Paris"})).await;
    assert_eq!(status, 503, "{answer}");
    let text = fs::read_to_string(folder(&home).join("by-hand/weather.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        file,
        "the file is as it was"
    );
    daemon.stop().await;
}

/// S1-72: a function may learn who calls it, until when its answer is waited for, and that its
/// caller cancelled the call.
#[tokio::test]
async fn a_function_learns_of_its_caller_its_deadline_and_the_end_of_its_call() {
    use callsheet::Callsheet;
    use callsheet::bundles::CallContext;
    use callsheet::model::Permission;
    use tokio::sync::mpsc;
    use tokio::task::JoinSet;

    use crate::support::in_process::InProcess;
    use crate::support::serving::ask;
    let home = Home::new();
    let name = "github.com/acme/agent/tools.Wait";
    write(&home, "bundle.json", &bundle_file(NET));
    let mut file = tool_file("wait");
    file["type"] = json!("go");
    file["impl"] = json!({"goFunc": name});
    file["argSchema"] = json!({"type": "object"});
    write(&home, "wait.json", &file.to_string());
    let (begun, mut begins) = mpsc::channel(1);
    let (ended, mut ends) = mpsc::channel(1);
    let run = move |_: Value, context: CallContext| {
        let begun = begun.clone();
        let ended = ended.clone();
        async move {
            begun.send(context.clone()).await.unwrap();
            context.cancelled.wait().await;
            ended.send(()).await.unwrap();
            Err::<Value, _>("it was cancelled")
        }
    };
    let builder = Callsheet::builder(config(&home)).function_with_context(name, run);
    let running = InProcess::start(builder).await;
    let address = running.serve().await;
    let json = [("content-type", "application/json")];
    let body = json!({"tool_name": "wait_v1", "arguments": {}, "permission": "user",
        "chat_id": "7", "user_id": "kim", "call_id": "call-of-kim"})
    .to_string();
    let mut calling = JoinSet::new();
    calling.spawn(async move { ask(address, "POST", "/api/v1/tools/execute", &json, &body).await });
    let context = begins.recv().await.unwrap();
    assert_eq!(context.caller.chat.as_deref(), Some("7"));
    assert_eq!(context.caller.user_id.as_deref(), Some("kim"));
    assert_eq!(context.caller.permission, Some(Permission::User));
    assert!(context.deadline.is_some());
    assert!(!context.cancelled.is_stopped());
    let cancelled = ask(address, "DELETE", "/api/v1/calls/call-of-kim", &json, "").await;
    assert!((200..300).contains(&cancelled.status), "{cancelled:?}");
    ends.recv().await.unwrap();
    calling.join_next().await.unwrap().unwrap();
    running.finish().await;
}

/// S1-88: as many tools as the configuration says.
#[tokio::test]
async fn tools_beyond_the_limit_are_refused_and_left_out() {
    let home = Home::new();
    let content = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/"}));
    let mut few = config(&home);
    few.bundles.max_tools = 2;
    let daemon = with_tools(few, &[("one", content.clone()), ("two", content.clone())]).await;
    let refused = expect(&daemon, 409, "PUT", &tool(NET, "three", "v1"), &content)
        .await
        .json();
    assert_eq!(refused["code"], "too_many");
    let mut file = tool_file("zero");
    file["bundleID"] = json!(NET);
    fs::write(folder(&home).join(NET).join("zero.json"), file.to_string()).unwrap();
    let target = "/api/v1/findings?code=tools-beyond-limit";
    daemon
        .until(target, |answer| {
            answer.json()["findings"]
                .to_string()
                .contains("bundles.max_tools")
        })
        .await;
    assert_eq!(daemon.tools("").await, ["one_v1", "two_v1"]);
    daemon.stop().await;
}
