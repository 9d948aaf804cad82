//! The page of bundles on the dashboard.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home};
use crate::{NET, bundle, by_hand, config, expect, http_tool, tool, with_tools};

async fn page(daemon: &Daemon, target: &str) -> String {
    let answer = daemon.get(target).await;
    assert_eq!(answer.status, 200, "{target}: {answer:?}");
    assert!(
        answer.header("content-type").starts_with("text/html"),
        "{answer:?}"
    );
    String::from_utf8(answer.body).unwrap()
}

/// A daemon with a tool that was added and one that was written by hand, both of the bundle `net`.
async fn with_two_tools(home: &Home) -> Daemon {
    let mut content = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/${city}"}));
    content["description"] = json!("<script>alert(1)</script>");
    let far = http_tool(&json!({"urlTemplate": "http://far.example/"}));
    let daemon = with_tools(config(home), &[("weather", content)]).await;
    by_hand(home, "far", &far);
    daemon.until_tools(&["weather_v1"]).await;
    daemon
        .until(&tool(NET, "far", "v1"), |answer| answer.status == 200)
        .await;
    daemon
}

/// Posts what the page cannot do; `document` is that of a version that is there.
async fn assert_unfit_posts_are_refused(daemon: &Daemon, document: &Value) {
    let at = format!("/dashboard/bundles/{NET}");
    for (target, body, status) in [
        (format!("{at}/tool"), json!({"document": "{"}), 400),
        (
            format!("{at}/tool"),
            json!({"document": document.to_string()}),
            403,
        ),
        (format!("{at}/switch"), json!({}), 400),
        (
            "/dashboard/bundles/new".to_owned(),
            json!({"slug": "a_b", "displayName": "x"}),
            400,
        ),
        (
            "/dashboard/bundles/x/switch".to_owned(),
            json!({"enabled": true}),
            404,
        ),
    ] {
        expect(daemon, status, "POST", &target, &body).await;
    }
}

/// S1-08, S1-09, S1-92: the page lists, switches, adds and leads to where a tool is tried.
#[tokio::test]
async fn the_page_lists_switches_and_adds() {
    let home = Home::new();
    let daemon = with_two_tools(&home).await;
    let text = page(&daemon, "/dashboard/bundles").await;
    assert!(text.contains("aria-current=\"page\">Bundles"), "{text}");
    assert!(
        text.contains("href=\"/dashboard/tool?id=net%2Fweather_v1\""),
        "it can be tried: {text}"
    );
    assert!(!text.contains("<script>alert"), "foreign text is escaped");
    assert!(
        text.contains("sends requests to `far.example`, which is not allowed"),
        "{text}"
    );
    let post = |target: String, body: Value| {
        let daemon = &daemon;
        async move {
            let answer = expect(daemon, 204, "POST", &target, &body).await;
            assert_eq!(answer.header("hx-redirect"), "/dashboard/bundles");
        }
    };
    let at = format!("/dashboard/bundles/{NET}");
    post(
        format!("{at}/switch"),
        json!({"enabled": false, "tool": "weather", "version": "v1"}),
    )
    .await;
    assert_eq!(
        daemon.json(&tool(NET, "weather", "v1")).await["isEnabled"],
        false
    );
    assert!(
        text.contains("aria-label=\"Disable net\"")
            && text.contains("\"Delete version v1 of far for good?\""),
        "{text}"
    );
    let link = format!("href=\"/tools/bundles/{NET}/archive\" download");
    assert!(
        text.contains(&link) && text.contains("hx-post=\"/tools/bundles/archive\""),
        "{text}"
    );
    // A new version begins with the document of another one.
    let edit = page(&daemon, &format!("{at}/edit?tool=weather&version=v1")).await;
    assert!(
        edit.contains("http://127.0.0.1:9/${city}") && !edit.contains("toolID"),
        "{edit}"
    );
    let mut document = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/two"}));
    document["slug"] = json!("weather");
    document["version"] = json!("v2");
    post(
        format!("{at}/tool"),
        json!({"document": document.to_string()}),
    )
    .await;
    daemon.until_tools(&["weather_v2"]).await;
    post(format!("{at}/switch"), json!({"enabled": false})).await;
    daemon.until_tools(&[]).await;
    assert!(
        page(&daemon, "/dashboard/bundles").await.contains(&link),
        "a disabled bundle can be exported"
    );
    post(
        "/dashboard/bundles/new".to_owned(),
        json!({"slug": "web", "displayName": "Web"}),
    )
    .await;
    assert!(
        page(&daemon, "/dashboard/bundles/now")
            .await
            .contains("Web")
    );
    assert_unfit_posts_are_refused(&daemon, &document).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": true}),
    )
    .await;
    daemon.stop().await;
}

/// S1-08: the page renames a bundle, deletes it once it is empty, and restores it.
#[tokio::test]
async fn the_page_renames_deletes_and_restores() {
    let home = Home::new();
    let content = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/"}));
    let daemon = with_tools(config(&home), &[("weather", content)]).await;
    let at = format!("/dashboard/bundles/{NET}");
    let rename = format!("{at}/rename");
    let delete = format!("{at}/delete");
    let restore = format!("{at}/restore");
    let post = async |target: &str, body: Value| {
        let answer = expect(&daemon, 204, "POST", target, &body).await;
        assert_eq!(answer.header("hx-redirect"), "/dashboard/bundles");
        page(&daemon, "/dashboard/bundles").await
    };
    let text = page(&daemon, "/dashboard/bundles").await;
    assert!(
        text.contains(&format!("hx-post=\"{rename}\"")) && !text.contains(&delete),
        "it has a tool: {text}"
    );
    expect(&daemon, 409, "POST", &delete, &json!({})).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": false}),
    )
    .await;
    let names = json!({"slug": "sky", "displayName": "Sky & sea", "description": "Both"});
    let text = post(&rename, names).await;
    assert!(
        text.contains("Sky &amp; sea") && text.contains("value=\"sky\""),
        "{text}"
    );
    let about = daemon.json("/tools/bundles?includeDisabled=true").await["bundles"][0].clone();
    assert_eq!(about["slug"], "sky");
    assert_eq!(about["description"], "Both");
    assert_eq!(about["isEnabled"], false, "its switch stays");
    expect(
        &daemon,
        400,
        "POST",
        &rename,
        &json!({"slug": "a_b", "displayName": "x"}),
    )
    .await;

    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": true}),
    )
    .await;
    expect(
        &daemon,
        204,
        "DELETE",
        &tool(NET, "weather", "v1"),
        &Value::Null,
    )
    .await;
    let text = page(&daemon, "/dashboard/bundles").await;
    assert!(text.contains(&format!("hx-post=\"{delete}\"")), "{text}");
    let text = post(&delete, json!({})).await;
    assert!(
        text.contains(&format!("hx-post=\"{restore}\"")) && !text.contains(&delete),
        "{text}"
    );
    let text = post(&restore, json!({})).await;
    assert!(
        !text.contains(&restore) && text.contains("Sky &amp; sea"),
        "{text}"
    );
    daemon.stop().await;
}

/// Without a folder the page says what to set.
#[tokio::test]
async fn without_a_folder_the_page_says_what_to_set() {
    let home = Home::new();
    let mut off = config(&home);
    off.bundles.path = None;
    let daemon = Daemon::start(off).await;
    assert!(
        page(&daemon, "/dashboard/bundles")
            .await
            .contains("bundles.path")
    );
    daemon.stop().await;
}

/// S1-92: a request becomes a document, without its credential, and is tried before it is stored.
#[tokio::test]
async fn a_tool_is_built_from_a_request_and_tried_before_it_is_stored() {
    let api = crate::calls::Api::answering(|target, _| {
        let body = json!({"target": target}).to_string();
        crate::support::upstream_server::answer(
            "200 OK",
            &["Content-Type: application/json"],
            body.as_bytes(),
        )
    })
    .await;
    let home = Home::new();
    let daemon = with_tools(config(&home), &[]).await;
    let at = format!("/dashboard/bundles/{NET}");
    let send = async |what: &str, body: &Value| {
        let answer = daemon
            .send_json("POST", &format!("{at}/{what}"), body)
            .await;
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    let command = format!("curl '{}?q=lemons' -H 'X-Api-Key: hidden'", api.at("/find"));
    let (status, field) = send("draft", &json!({"curl": command})).await;
    assert_eq!(status, 200, "{field}");
    assert!(
        field.contains("${q}") && field.contains("${API_TOKEN}"),
        "{field}"
    );
    assert!(field.contains("[bundles.secrets]"), "{field}");
    assert!(!field.contains("hidden"), "{field}");
    for (body, named) in [
        (json!({}), "neither a command nor an address"),
        (json!({"curl": "wget x"}), "does not begin with `curl`"),
        (json!({"address": "ftp://x"}), "no address of http"),
    ] {
        let (status, refused) = send("draft", &body).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused.contains(named), "{refused}");
    }

    let document = json!({
        "slug": "find", "version": "v1", "displayName": "Find", "description": "", "type": "http",
        "argSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
        "impl": {"urlTemplate": api.at("/find"), "query": {"q": "${q}"}},
    });
    let trial = json!({"document": document.to_string(), "arguments": "{\"q\": \"a b\"}"});
    let (status, shown) = send("try", &trial).await;
    assert_eq!(status, 200, "{shown}");
    assert!(shown.contains("/find?q=a%20b"), "{shown}");
    assert_eq!(api.server.requests().len(), 1);
    let stored = daemon.get(&tool(NET, "find", "v1")).await;
    assert_eq!(stored.status, 404, "nothing is stored");
    // The hosts of a tool are judged before it is tried, too.
    let mut far = document.clone();
    far["impl"]["urlTemplate"] = json!("http://far.example/");
    let (status, refused) = send("try", &json!({"document": far.to_string()})).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused.contains("far.example"), "{refused}");
    let (status, refused) = send("try", &json!({"document": "{"})).await;
    assert_eq!(status, 400, "{refused}");
    daemon.stop().await;
}
