//! The routes under `/tools`: what they store, list, find, refuse and remove.

use callsheet::Callsheet;
use callsheet::runtime::Clock;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home};
use crate::support::in_process::InProcess;
use crate::support::serving::ask;
use crate::{NET, OTHER, about, bundle, config, expect, folder, http_tool, tool, with_tools};

/// A tool that is never called here.
fn get() -> Value {
    http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/x"}))
}

fn slugs(list: &Value) -> Vec<String> {
    let all = list
        .get("tools")
        .or(list.get("bundles"))
        .unwrap()
        .as_array()
        .unwrap();
    all.iter()
        .map(|each| each["slug"].as_str().unwrap().to_owned())
        .collect()
}

/// S1-03, S1-16 to S1-19, S1-23, S1-45 to S1-49, S1-53, S1-54, S1-56: what is put comes back, and
/// only a change of the content moves `modifiedAt`.
#[tokio::test]
async fn what_is_put_comes_back() {
    let home = Home::new();
    let (clock, hand) = Clock::with_hand();
    let running = InProcess::start(Callsheet::builder(config(&home)).clock(clock)).await;
    let address = running.serve().await;
    let send = async |method: &str, target: &str, body: Value| {
        let json = [("content-type", "application/json")];
        ask(address, method, target, &json, &body.to_string()).await
    };
    let first = send("PUT", &bundle(NET), about("net")).await;
    assert_eq!(first.status, 201, "{first:?}");
    let first = first.json();
    assert_eq!(first["id"], NET);
    assert_eq!(first["schemaVersion"], "2025-07-01");
    assert_eq!(first["isBuiltIn"], false);
    assert!(
        first["createdAt"].as_str().unwrap().ends_with('Z'),
        "{first}"
    );
    assert_eq!(first["createdAt"], first["modifiedAt"]);
    hand.step(SignedDuration::from_mins(5));
    let off = send("PATCH", &bundle(NET), json!({"isEnabled": false}))
        .await
        .json();
    assert_eq!(off["isEnabled"], false);
    assert_eq!(
        off["modifiedAt"], first["modifiedAt"],
        "a switch is no change of the content"
    );
    let same = send("PUT", &bundle(NET), about("net")).await;
    assert_eq!(same.status, 200);
    assert_eq!(same.json()["isEnabled"], true);
    assert_eq!(same.json()["modifiedAt"], first["modifiedAt"]);
    let renamed = send("PUT", &bundle(NET), about("web")).await.json();
    assert_eq!(renamed["createdAt"], first["createdAt"]);
    assert_ne!(renamed["modifiedAt"], first["modifiedAt"]);

    let target = tool(NET, "Weather", "v1.0");
    let stored = send("PUT", &target, get()).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let stored = stored.json();
    let id: uuid::Uuid = stored["toolID"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.get_version_num(), 7);
    for (member, expected) in [
        ("bundleID", json!(NET)),
        ("slug", json!("Weather")),
        ("version", json!("v1.0")),
        ("type", json!("http")),
        ("isEnabled", json!(true)),
        ("isBuiltIn", json!(false)),
        ("callCount", json!(0)),
        ("lastCalledAt", Value::Null),
        ("tool", json!("web/Weather_v1.0")),
    ] {
        assert_eq!(stored[member], expected, "{member}");
    }
    hand.step(SignedDuration::from_mins(5));
    let off = send("PATCH", &target, json!({"isEnabled": false}))
        .await
        .json();
    assert_eq!(off["isEnabled"], false);
    assert_eq!(off["modifiedAt"], stored["modifiedAt"]);
    let got = ask(address, "GET", &target, &[], "").await;
    assert_eq!(got.json(), off);
    running.finish().await;
}

/// The members that the daemon sets itself are not used when they are sent back.
#[tokio::test]
async fn what_was_shown_can_be_sent_back_as_it_is() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("weather", get())]).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &tool(NET, "weather", "v1"),
        &json!({"isEnabled": false}),
    )
    .await;
    let shown = daemon.json(&tool(NET, "weather", "v1")).await;
    let again = expect(&daemon, 201, "PUT", &tool(NET, "weather", "v2"), &shown)
        .await
        .json();
    assert_ne!(again["toolID"], shown["toolID"]);
    assert_eq!(again["isEnabled"], false);
    assert_eq!(again["impl"], shown["impl"]);
    let shown = daemon.json("/tools/bundles").await["bundles"][0].clone();
    let again = expect(&daemon, 200, "PUT", &bundle(NET), &shown)
        .await
        .json();
    assert_eq!(again, shown);
    let mut odd = shown.clone();
    odd["schemaVersion"] = json!("2019-01-01");
    let refused = expect(&daemon, 400, "PUT", &bundle(NET), &odd).await.json();
    assert_eq!(refused["pointer"], "/schemaVersion");
    daemon.stop().await;
}

/// S1-37 to S1-44, S1-61, S1-62: names keep their grammar, and a version that is there is never
/// replaced.
#[tokio::test]
async fn a_version_is_stored_once_and_names_keep_their_grammar() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("weather", get())]).await;
    let before = daemon.json(&tool(NET, "weather", "v1")).await;
    let other = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/other"}));
    let refused = expect(&daemon, 409, "PUT", &tool(NET, "weather", "v1"), &other)
        .await
        .json();
    assert_eq!(refused["code"], "exists");
    assert_eq!(daemon.json(&tool(NET, "weather", "v1")).await, before);
    // Letter case, another version and another bundle make another tool.
    expect(&daemon, 201, "PUT", &tool(NET, "Weather", "v1"), &other).await;
    expect(&daemon, 201, "PUT", &tool(NET, "weather", "V1"), &other).await;
    expect(&daemon, 201, "PUT", &bundle(OTHER), &about("net")).await;
    expect(&daemon, 201, "PUT", &tool(OTHER, "weather", "v1"), &other).await;
    expect(
        &daemon,
        201,
        "PUT",
        &tool(NET, "%E5%A4%A9%E6%B0%94", "1.0-b"),
        &other,
    )
    .await;
    let longest = "x".repeat(64);
    expect(&daemon, 201, "PUT", &tool(NET, &longest, "v1"), &other).await;
    for (slug, version) in [
        ("a_b", "v1"),
        ("a.b", "v1"),
        ("a%20b", "v1"),
        ("a%2Fb", "v1"),
        ("a", "v%261"),
        ("a", "v_1"),
        ("a%0A", "1"),
    ] {
        let refused = expect(&daemon, 400, "PUT", &tool(NET, slug, version), &other)
            .await
            .json();
        assert_eq!(refused["code"], "invalid_name", "{slug} {version}");
    }
    expect(
        &daemon,
        400,
        "PUT",
        &tool(NET, &"x".repeat(65), "v1"),
        &other,
    )
    .await;
    // Not a UUID, or not of version 7.
    for id in ["b1", "8d3f5a0e-4c1b-4f7e-9a26-c5d7e8f90a1b"] {
        expect(&daemon, 400, "PUT", &bundle(id), &about("x")).await;
    }
    daemon.stop().await;
}

/// Readers disagree about which of two members with one name counts, and an array could be taken as
/// the members of an object.
#[tokio::test]
async fn bodies_are_objects_without_equal_members() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("weather", get())]).await;
    let own = tool(NET, "weather", "v1");
    let json = [("content-type", "application/json")];
    let twice = r#"{"isEnabled":false,"isEnabled":true}"#;
    let named = r#"{"slug":"a","slug":"b"}"#;
    let nested = get().to_string().replacen(
        "\"impl\":{",
        "\"impl\":{\"method\":\"PUT\",\"method\":\"GET\",",
        1,
    );
    for (method, target, body) in [
        ("PATCH", &bundle(NET), twice),
        ("PATCH", &own, twice),
        ("PUT", &bundle(NET), named),
        ("PUT", &tool(NET, "other", "v1"), &nested),
    ] {
        let refused = ask(daemon.address, method, target, &json, body).await;
        assert_eq!(refused.status, 400, "{method} {target}: {refused:?}");
        let said = refused.json()["detail"].to_string();
        assert!(
            said.contains("is given more than once; give each member of an object once"),
            "{said}"
        );
    }
    for (target, body) in [(&format!("{own}/invoke"), "[{}]"), (&own, "[true]")] {
        let method = if body == "[{}]" { "POST" } else { "PATCH" };
        let refused = ask(daemon.address, method, target, &json, body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(
            refused.json().to_string().contains("must be a JSON object"),
            "{refused:?}"
        );
    }
    daemon.stop().await;
}

/// S1-22, S1-25 to S1-34: what cannot be used is refused with its place.
#[tokio::test]
async fn what_cannot_be_used_is_refused_with_its_place() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[]).await;
    let url = json!("http://127.0.0.1:9/");
    for (implementation, pointer) in [
        (json!({}), "/impl/urlTemplate"),
        (json!({"urlTemplate": "ftp://x/"}), "/impl/urlTemplate"),
        (
            json!({"urlTemplate": "http://${host}/"}),
            "/impl/urlTemplate",
        ),
        (json!({"urlTemplate": "http://u:p@x/"}), "/impl/urlTemplate"),
        (json!({"urlTemplate": "http://x/${"}), "/impl/urlTemplate"),
        (
            json!({"urlTemplate": url, "method": "BREW"}),
            "/impl/method",
        ),
        (
            json!({"urlTemplate": url, "headers": {"Host": "x"}}),
            "/impl/headers/Host",
        ),
        (
            json!({"urlTemplate": url, "headers": {"a b": "x"}}),
            "/impl/headers/a b",
        ),
        (
            json!({"urlTemplate": url, "bodyTemplate": "{}"}),
            "/impl/bodyTemplate",
        ),
        (
            json!({"urlTemplate": url, "method": "POST", "bodyTemplate": "{"}),
            "/impl/bodyTemplate",
        ),
        (
            json!({"urlTemplate": url, "successCodes": [99]}),
            "/impl/successCodes",
        ),
        (
            json!({"urlTemplate": url, "timeoutMs": 0}),
            "/impl/timeoutMs",
        ),
        (
            json!({"urlTemplate": url, "responseEncoding": "xml"}),
            "/impl/responseEncoding",
        ),
        (
            json!({"urlTemplate": url, "extractExpr": "$["}),
            "/impl/extractExpr",
        ),
        (
            json!({"urlTemplate": url, "errorMode": "ignore"}),
            "/impl/errorMode",
        ),
        (
            json!({"urlTemplate": url, "auth": {"type": "digest"}}),
            "/impl/auth/type",
        ),
        (
            json!({"urlTemplate": url, "auth": {"type": "apiKey", "name": "Host", "valueTemplate": "x"}}),
            "/impl/auth/name",
        ),
        (
            json!({"urlTemplate": url, "urlTemplat": 1}),
            "/impl/urlTemplat",
        ),
    ] {
        let refused = expect(
            &daemon,
            400,
            "PUT",
            &tool(NET, "t", "v1"),
            &http_tool(&implementation),
        )
        .await
        .json();
        assert_eq!(refused["pointer"], pointer, "{implementation}: {refused}");
    }
    for (member, value) in [
        ("type", json!("sdk")),
        ("displayName", json!("")),
        ("argSchema", json!([])),
        ("x", json!(1)),
    ] {
        let mut content = http_tool(&json!({"urlTemplate": url}));
        content[member] = value;
        let refused = expect(&daemon, 400, "PUT", &tool(NET, "t", "v1"), &content)
            .await
            .json();
        assert_eq!(refused["pointer"], format!("/{member}"), "{refused}");
    }
    for body in [
        json!({}),
        json!({"isEnabled": "yes"}),
        json!({"isEnabled": true, "slug": "x"}),
    ] {
        expect(&daemon, 400, "PATCH", &bundle(NET), &body).await;
    }
    daemon.stop().await;
}

/// Restores the bundle `net`, whose deletion gave this answer; a second time changes nothing.
async fn assert_restored(daemon: &Daemon, deleted: &Value) {
    let gone = daemon.json("/tools/bundles?includeDeleted=true").await;
    assert_eq!(
        gone["bundles"][0]["softDeletedAt"], deleted["softDeletedAt"],
        "{gone}"
    );
    let restore = format!("{}/restore", bundle(NET));
    for _ in 0..2 {
        let restored = expect(daemon, 200, "POST", &restore, &Value::Null)
            .await
            .json();
        assert_eq!(restored["slug"], "net", "{restored}");
        assert_eq!(restored.get("softDeletedAt"), None, "{restored}");
        assert_eq!(restored["modifiedAt"], deleted["modifiedAt"], "{restored}");
    }
    expect(
        daemon,
        404,
        "POST",
        &format!("{}/restore", bundle(OTHER)),
        &Value::Null,
    )
    .await;
}

/// S1-12, S1-50, S1-55, S1-68, S1-70: what a disabled or deleted bundle refuses.
#[tokio::test]
async fn disabled_and_deleted_bundles_refuse_changes() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("weather", get())]).await;
    let one = tool(NET, "weather", "v1");
    let new = tool(NET, "new", "v1");
    daemon.until_tools(&["weather_v1"]).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": false}),
    )
    .await;
    daemon.until_tools(&[]).await;
    expect(&daemon, 403, "PUT", &new, &get()).await;
    expect(&daemon, 403, "PATCH", &one, &json!({"isEnabled": false})).await;
    let invoked = expect(
        &daemon,
        403,
        "POST",
        &format!("{one}/invoke"),
        &json!({"args": {}}),
    )
    .await
    .json();
    assert_eq!(invoked["ok"], false);
    let found = daemon.findings("disabled").await;
    assert!(
        found[0]["message"]
            .as_str()
            .unwrap()
            .contains("the bundle is disabled"),
        "{found:?}"
    );
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": true}),
    )
    .await;
    daemon.until_tools(&["weather_v1"]).await;

    let refused = expect(&daemon, 409, "DELETE", &bundle(NET), &json!({}))
        .await
        .json();
    assert_eq!(refused["code"], "not_empty");
    expect(&daemon, 204, "DELETE", &one, &json!({})).await;
    expect(&daemon, 404, "DELETE", &one, &json!({})).await;
    assert_eq!(daemon.get(&one).await.status, 404);
    let deleted = expect(&daemon, 200, "DELETE", &bundle(NET), &json!({}))
        .await
        .json();
    assert!(deleted["softDeletedAt"].as_str().is_some(), "{deleted}");
    for (method, target, body) in [
        ("DELETE", bundle(NET), json!({})),
        ("PUT", bundle(NET), about("net")),
        ("PATCH", bundle(NET), json!({"isEnabled": true})),
        ("PUT", new.clone(), get()),
    ] {
        let refused = expect(&daemon, 409, method, &target, &body).await.json();
        assert_eq!(refused["code"], "being_deleted", "{method} {target}");
    }
    assert_eq!(
        slugs(&daemon.json("/tools/bundles?includeDisabled=true").await),
        [""; 0]
    );
    expect(
        &daemon,
        404,
        "PATCH",
        &bundle(OTHER),
        &json!({"isEnabled": true}),
    )
    .await;

    // Until it is removed for good, that can be taken back.
    assert_restored(&daemon, &deleted).await;
    expect(&daemon, 201, "PUT", &new, &get()).await;
    daemon.until_tools(&["new_v1"]).await;
    daemon.stop().await;
}

/// S1-07, S1-67: the switch of a file and a preference are two, and both are shown. A tool runs
/// where both are on.
#[tokio::test]
async fn a_tool_runs_where_its_file_and_the_preferences_enable_it() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("weather", get())]).await;
    daemon.until_tools(&["weather_v1"]).await;
    let one = tool(NET, "weather", "v1");
    let prefer = async |enabled: Value| {
        let body = json!({"scope": "global", "target": "tool:net/weather_v1", "enabled": enabled});
        expect(&daemon, 200, "PUT", "/api/v1/preferences", &body).await;
    };
    let is_listed = async |target: &str| slugs(&daemon.json(target).await).len();
    let call = json!({"args": {}});
    for (stored, preferred, runs) in [
        (true, Value::Null, true),
        (true, json!(false), false),
        (false, json!(true), false),
        (true, json!(true), true),
    ] {
        let switched = expect(&daemon, 200, "PATCH", &one, &json!({"isEnabled": stored}))
            .await
            .json();
        assert_eq!(switched["isEnabled"], stored, "{switched}");
        prefer(preferred.clone()).await;
        let what = format!("stored {stored}, preferred {preferred}");
        let names: &[&str] = if runs { &["weather_v1"] } else { &[] };
        daemon.until_tools(names).await;
        let shown = daemon.json(&one).await;
        assert_eq!(shown["isEnabled"], stored, "{what}");
        assert_eq!(shown["preferredEnabled"], preferred, "{what}");
        assert_eq!(is_listed("/tools/tools").await, usize::from(runs), "{what}");
        assert_eq!(
            is_listed("/tools/tools/search?q=weather").await,
            usize::from(runs),
            "{what}"
        );
        assert_eq!(
            is_listed("/tools/tools/search?q=weather&includeDisabled=true").await,
            1,
            "{what}"
        );
        let called = daemon
            .send_json("POST", &format!("{one}/invoke"), &call)
            .await;
        assert_eq!(called.status == 403, !runs, "{what}: {called:?}");
        let page = String::from_utf8(daemon.get("/dashboard/bundles").await.body).unwrap();
        assert_eq!(
            page.contains("a preference says off"),
            preferred == json!(false),
            "{what}: {page}"
        );
        assert_eq!(
            page.contains("a preference says on"),
            preferred == json!(true),
            "{what}: {page}"
        );
    }
    // What is shown can be sent back.
    let shown = daemon.json(&one).await;
    expect(&daemon, 201, "PUT", &tool(NET, "weather", "v2"), &shown).await;
    daemon.stop().await;
}

/// S1-58, S1-60: the addresses of the document lead to those that are used.
#[tokio::test]
async fn the_addresses_of_the_document_lead_to_the_lists() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("weather", get())]).await;
    for (from, to) in [
        ("/tools", "/tools/tools"),
        (
            "/tools?includeDisabled=true&tags=a%20b",
            "/tools/tools?includeDisabled=true&tags=a%20b",
        ),
        ("/tools/search?q=weather", "/tools/tools/search?q=weather"),
    ] {
        let moved = daemon.get(from).await;
        assert_eq!(moved.status, 308, "{from}: {moved:?}");
        assert_eq!(moved.header("location"), to, "{from}: {moved:?}");
        assert_eq!(daemon.get(to).await.status, 200, "{to}");
    }
    daemon.stop().await;
}

/// S1-69: a deleted bundle goes for good after two days, unless something was put into it.
#[tokio::test]
async fn a_deleted_bundle_goes_after_two_days_if_it_is_still_empty() {
    let home = Home::new();
    let (clock, hand) = Clock::with_hand();
    let running = InProcess::start(Callsheet::builder(config(&home)).clock(clock)).await;
    let address = running.serve().await;
    let json = [("content-type", "application/json")];
    for id in [NET, OTHER] {
        assert_eq!(
            ask(
                address,
                "PUT",
                &bundle(id),
                &json,
                &about("net").to_string()
            )
            .await
            .status,
            201
        );
        assert_eq!(
            ask(address, "DELETE", &bundle(id), &json, "").await.status,
            200
        );
    }
    let gone = folder(&home).join(NET);
    let kept = folder(&home).join(OTHER);
    std::fs::write(kept.join("note.txt"), "still needed").unwrap();
    hand.step(SignedDuration::from_hours(47));
    looked(&running, &home, 0).await;
    assert!(gone.join("bundle.json").exists(), "it is too early");
    hand.step(SignedDuration::from_hours(2));
    looked(&running, &home, 2).await;
    assert!(!gone.exists());
    assert!(kept.join("bundle.json").exists(), "something is in it");
    running.finish().await;
}

/// Lets the daemon look at its folder twice: that it offers what was written last shows that the
/// look before has ended.
async fn looked(running: &InProcess, home: &Home, first: usize) {
    let seen = folder(home).join("seen");
    std::fs::create_dir_all(&seen).unwrap();
    let id = "018faf52-b7b6-7a01-9a05-a22a6e0af103";
    let at = "2024-05-14T13:44:00Z";
    let file = json!({"schemaVersion": "2025-07-01", "id": id, "slug": "seen", "displayName": "Seen", "createdAt": at});
    std::fs::write(seen.join("bundle.json"), file.to_string()).unwrap();
    for n in first..first + 2 {
        let mut file = get();
        for (member, value) in [
            ("schemaVersion", "2025-07-01"),
            ("version", "v1"),
            ("createdAt", at),
        ] {
            file[member] = json!(value);
        }
        file["slug"] = json!(format!("look-{n}"));
        std::fs::write(seen.join(format!("{n}.json")), file.to_string()).unwrap();
        let scenario = "seen".parse().unwrap();
        let name = format!("look-{n}_v1");
        let has =
            |entry: &std::sync::Arc<callsheet::catalog::CatalogEntry>| entry.tool(&name).is_some();
        running
            .until("a look", |now| {
                now.catalog.entry(&scenario).is_some_and(has)
            })
            .await;
    }
}

/// S1-51, S1-52, S1-58, S1-59, S1-67: filters, and pages that lose and repeat nothing.
#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let home = Home::new();
    let daemon = Daemon::start(config(&home)).await;
    let ids: Vec<String> = (10..40)
        .map(|n| format!("018faf50-b7b6-7a01-9a05-a22a6e0af1{n}"))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let mut content = about(&format!("b{n:02}"));
        content["isEnabled"] = json!(n % 3 != 0);
        expect(&daemon, 201, "PUT", &bundle(id), &content).await;
    }
    for n in 0..23 {
        let mut content = get();
        content["tags"] = if n % 2 == 0 {
            json!(["even", "all"])
        } else {
            json!(["all"])
        };
        content["isEnabled"] = json!(n < 20);
        expect(
            &daemon,
            201,
            "PUT",
            &tool(&ids[1], &format!("t{n:02}"), "v1"),
            &content,
        )
        .await;
    }
    let walk = async |target: &str, size: &str| {
        let mut all = Vec::new();
        let mut token = String::new();
        let mut pages = 0;
        loop {
            let page = daemon
                .json(&format!("{target}&{size}&pageToken={token}"))
                .await;
            all.extend(slugs(&page));
            pages += 1;
            match page.get("nextPageToken") {
                Some(next) => token = next.as_str().unwrap().to_owned(),
                None => return (all, pages),
            }
        }
    };
    let (all, pages) = walk("/tools/bundles?includeDisabled=true", "pageSize=7").await;
    assert_eq!(all, (0..30).map(|n| format!("b{n:02}")).collect::<Vec<_>>());
    assert_eq!(pages, 5);
    let (enabled, _) = walk("/tools/bundles?includeDisabled=false", "pageSize=7").await;
    assert_eq!(enabled.len(), 20);
    let two = format!(
        "/tools/bundles?includeDisabled=true&bundleIDs={},{}",
        ids[0], ids[4]
    );
    assert_eq!(slugs(&daemon.json(&two).await), ["b00", "b04"]);
    let (tools, pages) = walk("/tools/tools?includeDisabled=true", "recommendedPageSize=6").await;
    assert_eq!(
        tools,
        (0..23).map(|n| format!("t{n:02}")).collect::<Vec<_>>()
    );
    assert_eq!(pages, 4);
    assert_eq!(slugs(&daemon.json("/tools/tools").await).len(), 20);
    assert_eq!(
        slugs(&daemon.json("/tools/tools?tags=even").await).len(),
        10
    );
    assert_eq!(
        slugs(
            &daemon
                .json(&format!("/tools/tools?bundleIDs={}", ids[2]))
                .await
        ),
        [""; 0]
    );
    // A disabled bundle hides its tools.
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(&ids[1]),
        &json!({"isEnabled": false}),
    )
    .await;
    assert_eq!(slugs(&daemon.json("/tools/tools").await), [""; 0]);
    let token = daemon.json("/tools/bundles?pageSize=1").await["nextPageToken"]
        .as_str()
        .unwrap()
        .to_owned();
    for bad in [
        "/tools/bundles?pageSize=0".to_owned(),
        "/tools/bundles?pageSize=257".to_owned(),
        "/tools/bundles?pageToken=rubbish".to_owned(),
        format!("/tools/tools?pageToken={token}"),
        "/tools/bundles?bundleIDs=b1".to_owned(),
        "/tools/tools?pageSize=1".to_owned(),
    ] {
        assert_eq!(daemon.get(&bad).await.status, 400, "{bad}");
    }
    daemon.stop().await;
}

/// S1-60, S1-65 to S1-67: beginnings before words before slips, and among equals the latest.
#[tokio::test]
async fn the_search_ranks_by_how_it_fits_and_then_by_age() {
    let home = Home::new();
    let daemon = Daemon::start(config(&home)).await;
    expect(&daemon, 201, "PUT", &bundle(NET), &about("net")).await;
    for (slug, description, enabled) in [
        ("read-mail", "Looks for letters", true),
        ("weather-old", "Forecasts", true),
        ("weather-new", "Forecasts", true),
        ("city-weather", "Forecasts", true),
        ("wheather", "Forecasts", true),
        ("weather-off", "Forecasts", false),
    ] {
        let mut content = get();
        content["description"] = json!(description);
        content["isEnabled"] = json!(enabled);
        expect(&daemon, 201, "PUT", &tool(NET, slug, "v1"), &content).await;
    }
    let found = slugs(&daemon.json("/tools/tools/search?q=weather").await);
    assert_eq!(
        found,
        ["weather-new", "weather-old", "city-weather", "wheather"]
    );
    let all = slugs(
        &daemon
            .json("/tools/tools/search?q=weather&includeDisabled=true")
            .await,
    );
    assert_eq!(all[0], "weather-off");
    assert_eq!(all.len(), 5);
    assert_eq!(
        slugs(&daemon.json("/tools/tools/search?q=letters").await),
        ["read-mail"]
    );
    let first = daemon
        .json("/tools/tools/search?q=weather&pageSize=3")
        .await;
    let token = first["nextPageToken"].as_str().unwrap();
    let rest = daemon
        .json(&format!(
            "/tools/tools/search?q=weather&pageSize=3&pageToken={token}"
        ))
        .await;
    assert_eq!([slugs(&first), slugs(&rest)].concat(), found);
    assert!(rest.get("nextPageToken").is_none());
    // A disabled bundle is found with the flag alone.
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": false}),
    )
    .await;
    assert_eq!(
        slugs(&daemon.json("/tools/tools/search?q=weather").await),
        [""; 0]
    );
    assert_eq!(
        slugs(
            &daemon
                .json("/tools/tools/search?q=weather&includeDisabled=true")
                .await
        )
        .len(),
        5
    );
    assert_eq!(daemon.get("/tools/tools/search").await.status, 400);
    daemon.stop().await;
}

/// Without a folder there are no stored tools, and the routes say so. Changes need the operator.
#[tokio::test]
async fn without_a_folder_or_the_right_nothing_is_stored() {
    let home = Home::new();
    let mut off = config(&home);
    off.bundles.path = None;
    let daemon = Daemon::start(off).await;
    assert_eq!(daemon.json("/tools/tools").await, json!({"tools": []}));
    let refused = expect(&daemon, 404, "PUT", &bundle(NET), &about("net"))
        .await
        .json();
    assert_eq!(refused["code"], "bundles_off");
    daemon.stop().await;

    let mut guarded = config(&home);
    guarded.server.operator_token = Some(callsheet::model::Secret::new("open-sesame-open"));
    let daemon = Daemon::start(guarded).await;
    expect(&daemon, 401, "PUT", &bundle(NET), &about("net")).await;
    assert!(!folder(&home).join(NET).exists());
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer open-sesame-open"),
    ];
    let answer = ask(
        daemon.address,
        "PUT",
        &bundle(NET),
        &headers,
        &about("net").to_string(),
    )
    .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    daemon.stop().await;
}
