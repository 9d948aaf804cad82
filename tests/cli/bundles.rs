//! `callsheet bundle`: what it lists, stores, switches, deletes, exports and imports.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::support::command::{Home, Ran, Running, json, rows, until};

const ID: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

fn home() -> Home {
    Home::with("[bundles]\npath = \"bundles\"\nallowed_hosts = [\"127.0.0.1\"]\n")
}

fn bundle(home: &Home, daemon: &Running, args: &[&str]) -> Ran {
    home.run(&[&["bundle"], args, &["--url", &daemon.url]].concat())
}

fn write(home: &Home, name: &str, document: &Value) -> String {
    home.write(name, &document.to_string())
        .display()
        .to_string()
}

fn tool_file(slug: &str) -> Value {
    json!({"slug": slug, "version": "v1", "displayName": "Forecast", "type": "http", "argSchema": {},
        "impl": {"urlTemplate": "http://127.0.0.1:9/${city}"}})
}

/// S1-08, S1-90: a bundle goes from files into a daemon, and as an archive into another one.
#[test]
fn a_bundle_is_stored_switched_exported_and_imported() {
    let home = home();
    let daemon = home.serve(&[]);
    let about = write(
        &home,
        "net.json",
        &json!({"id": ID, "slug": "net", "displayName": "Net tools"}),
    );
    assert_eq!(
        bundle(&home, &daemon, &["put", &about]).ok(),
        format!("net is stored: {ID}\n")
    );
    for slug in ["weather", "tides"] {
        let file = write(&home, "tool.json", &tool_file(slug));
        let told = bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).ok();
        assert!(
            told.starts_with(&format!("{slug} v1 is stored: ")),
            "{told}"
        );
    }
    let file = write(&home, "tool.json", &tool_file("tides"));
    let refused = bundle(&home, &daemon, &["put", &file]).failed(2);
    assert!(refused.contains("it names no bundle"), "{refused}");
    let refused = bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).failed(1);
    assert!(
        refused.contains("already has a tool `tides` with version `v1`"),
        "{refused}"
    );

    let listed = bundle(&home, &daemon, &["list"]).ok();
    assert_eq!(rows(&listed)[1][..3], [ID, "net", "net"]);
    assert_eq!(
        rows(&listed)[1].last().map(|cell| &**cell),
        Some("yes"),
        "{listed}"
    );
    bundle(&home, &daemon, &["disable", "net", "tides", "v1"]).ok();
    let tools = bundle(&home, &daemon, &["list", "net", "--json"]).ok();
    assert_eq!(json(&tools)["tools"].as_array().unwrap().len(), 1);
    let tools = bundle(&home, &daemon, &["list", "net", "--all"]).ok();
    assert_eq!(rows(&tools).len(), 3);
    let shown = json(&bundle(&home, &daemon, &["show", "net", "weather", "v1"]).ok());
    assert_eq!(shown["tool"], "net/weather_v1");

    let archive = home.path("net.zip").display().to_string();
    bundle(&home, &daemon, &["export", "net", &archive]).ok();
    let refused = bundle(&home, &daemon, &["export", "net", &archive]).failed(2);
    assert!(
        refused.contains("name a file that is not there yet"),
        "{refused}"
    );
    let nowhere = home.path("none/net.zip").display().to_string();
    let refused = bundle(&home, &daemon, &["export", "net", &nowhere]).failed(2);
    assert!(refused.contains("make its folder first"), "{refused}");
    let imported = bundle(&home, &daemon, &["import", &archive, "--new"]).ok();
    assert!(
        imported.starts_with("net with 2 tools is stored: "),
        "{imported}"
    );
    let several = bundle(&home, &daemon, &["list", "net"]).failed(1);
    assert!(several.contains("several bundles"), "{several}");
    let all = json(&bundle(&home, &daemon, &["list", "--json"]).ok());
    let second = all["bundles"]
        .as_array()
        .unwrap()
        .iter()
        .find(|bundle| bundle["id"] != ID)
        .unwrap();
    let scenario = second["scenario"].as_str().unwrap();
    assert!(
        bundle(&home, &daemon, &["list"]).ok().contains(scenario),
        "{scenario}"
    );
    assert_eq!(
        json(&bundle(&home, &daemon, &["show", scenario]).ok()),
        *second
    );

    let other = self::home();
    let second = other.serve(&[]);
    bundle(&other, &second, &["import", &archive]).ok();
    let same = json(&bundle(&other, &second, &["show", ID, "tides", "v1"]).ok());
    assert_eq!(same["isEnabled"], false);
    assert_eq!(same["impl"], tool_file("tides")["impl"]);

    bundle(&home, &daemon, &["delete", ID]).failed(1);
    bundle(&home, &daemon, &["enable", ID, "tides", "v1"]).ok();
    for slug in ["weather", "tides"] {
        bundle(&home, &daemon, &["delete", ID, slug, "v1"]).ok();
    }
    assert!(
        bundle(&home, &daemon, &["delete", ID])
            .ok()
            .contains("removed for good after two days")
    );
    let refused = bundle(&home, &daemon, &["import", &archive]).failed(1);
    assert!(
        refused.contains("is being deleted") && refused.contains("`--new`"),
        "{refused}"
    );
}

#[test]
fn a_deleted_bundle_is_restored() {
    let home = home();
    let daemon = with_tools(&home, &[]);
    bundle(&home, &daemon, &["delete", "net"]).ok();
    let listed = bundle(&home, &daemon, &["list", "--all"]).ok();
    assert!(listed.contains("DELETED"), "{listed}");
    let none = bundle(&home, &daemon, &["restore", "nothing"]).failed(1);
    assert!(none.contains("no bundle is called `nothing`"), "{none}");
    assert_eq!(
        bundle(&home, &daemon, &["restore", "net"]).ok(),
        "net is restored\n"
    );
    let file = write(&home, "tool.json", &tool_file("tides"));
    bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).ok();
    let listed = bundle(&home, &daemon, &["list", "net", "--all"]).ok();
    assert!(listed.contains("tides"), "{listed}");
}

/// A daemon with the bundle `net` and these tools in it.
fn with_tools(home: &Home, slugs: &[&str]) -> Running {
    let daemon = home.serve(&[]);
    let about = write(
        home,
        "net.json",
        &json!({"id": ID, "slug": "net", "displayName": "Net tools"}),
    );
    bundle(home, &daemon, &["put", &about]).ok();
    for slug in slugs {
        let file = write(home, "tool.json", &tool_file(slug));
        bundle(home, &daemon, &["put", &file, "--bundle", "net"]).ok();
    }
    daemon
}

/// How many tools the bundle `net` has.
fn stored(home: &Home, daemon: &Running) -> usize {
    let tools = json(&bundle(home, daemon, &["list", ID, "--all", "--json"]).ok());
    tools["tools"].as_array().unwrap().len()
}

#[test]
fn an_import_that_is_refused_stores_no_part_of_it() {
    let home = home();
    let daemon = with_tools(&home, &["tides", "weather"]);
    let archive = home.path("net.zip").display().to_string();
    bundle(&home, &daemon, &["export", "net", &archive]).ok();
    bundle(&home, &daemon, &["delete", "net", "tides", "v1"]).ok();
    let refused = bundle(&home, &daemon, &["import", &archive]).failed(1);
    assert!(
        refused.contains("is not imported") && refused.contains("already has a tool `weather`"),
        "{refused}"
    );
    assert!(
        refused
            .contains("hint: import it as a new bundle (`--new`), or delete what is there first"),
        "{refused}"
    );
    assert_eq!(stored(&home, &daemon), 1);

    // One tool is one too many for another daemon.
    let other = Home::with("[bundles]\npath = \"bundles\"\nmax_tools = 1\n");
    let second = other.serve(&[]);
    let refused = bundle(&other, &second, &["import", &archive]).failed(1);
    assert!(
        refused
            .contains("it has 2 tool(s), 0 are stored already, and `bundles.max_tools` allows 1"),
        "{refused}"
    );
    assert!(
        refused.contains("hint: raise it, or delete tools first"),
        "{refused}"
    );
    assert!(
        bundle(&other, &second, &["list", "--all"])
            .ok()
            .starts_with("no bundles"),
        "not even the bundle"
    );
}

#[test]
fn a_disabled_bundle_goes_to_another_daemon_as_it_is() {
    let home = home();
    let daemon = with_tools(&home, &["tides", "weather"]);
    bundle(&home, &daemon, &["disable", "net"]).ok();
    let archive = home.path("net.zip").display().to_string();
    let said = bundle(&home, &daemon, &["export", "net", &archive]).ok();
    assert_eq!(said, format!("net with 2 tools is in {archive}\n"));
    // Its tools cannot run there, which is said beside the result.
    let other = Home::with("[bundles]\npath = \"bundles\"\n");
    let second = other.serve(&[]);
    let imported = bundle(&other, &second, &["import", &archive]);
    let hint = format!(
        "left out of the list, because it cannot run here: 2 tools; `callsheet bundle list {ID} --all`"
    );
    assert!(imported.err.contains(&hint), "{imported:?}");
    assert_eq!(imported.ok(), format!("net with 2 tools is stored: {ID}\n"));
    let listed = json(&bundle(&other, &second, &["list", "--all", "--json"]).ok());
    assert_eq!(listed["bundles"][0]["isEnabled"], false, "{listed}");
    assert_eq!(stored(&other, &second), 2);
    let again = bundle(&other, &second, &["import", &archive, "--new", "--json"]).ok();
    assert_eq!(json(&again)["tools"], 2);
}

#[test]
fn what_is_no_archive_is_named_with_the_next_step() {
    let home = home();
    let daemon = home.serve(&[]);
    let text = home.write("notes.zip", "to do").display().to_string();
    for (file, why) in [
        (text.as_str(), "it is no ZIP"),
        ("none.zip", "No such file"),
    ] {
        let refused = bundle(&home, &daemon, &["import", file]).failed(2);
        assert!(
            refused.contains(&format!("`{file}` cannot be used: ")) && refused.contains(why),
            "{refused}"
        );
        assert!(
            refused.contains("hint: name an archive that `callsheet bundle export` wrote"),
            "{refused}"
        );
    }
    let large = home.path("large.zip");
    std::fs::File::create(&large)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    let refused = bundle(&home, &daemon, &["import", "large.zip"]).failed(2);
    assert!(refused.contains("it is larger than 64 MiB"), "{refused}");
    let refused = bundle(&home, &daemon, &["export", "none", "x.zip"]).failed(1);
    assert!(refused.contains("no bundle is called `none`"), "{refused}");
    let refused = bundle(&home, &daemon, &["export", ID, "x.zip"]).failed(1);
    assert!(
        refused.contains(&format!("no bundle has the id `{ID}`")),
        "{refused}"
    );
    assert!(!home.path("x.zip").exists());
}

#[test]
fn a_tool_that_is_left_out_is_explained() {
    let home = Home::with("[bundles]\npath = \"bundles\"\n");
    let daemon = with_tools(&home, &[]);
    let file = write(&home, "tool.json", &tool_file("weather"));
    let refused = bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).failed(1);
    assert!(
        refused.contains("`127.0.0.1`, which is not allowed"),
        "{refused}"
    );
    assert!(
        refused.contains("add \"127.0.0.1\" to `bundles.allowed_hosts`"),
        "{refused}"
    );
    let mut by_hand = tool_file("weather");
    (by_hand["schemaVersion"], by_hand["createdAt"]) =
        (json!("2025-07-01"), json!("2026-03-01T09:00:00Z"));
    write(&home, &format!("bundles/{ID}/weather.json"), &by_hand);
    let is_read = || {
        bundle(&home, &daemon, &["list", "net", "--all"])
            .ok()
            .contains("weather")
    };
    until("the file is read", is_read);
    let listed = bundle(&home, &daemon, &["list", "net", "--all"]).ok();
    assert!(
        listed.contains("`127.0.0.1`, which is not allowed"),
        "{listed}"
    );

    until("the tool is a finding", || {
        home.run(&[
            "findings",
            "--code",
            "tool-unavailable",
            "--url",
            &daemon.url,
        ])
        .ok()
        .contains("net/weather_v1")
    });
    for name in ["net/weather_v1", "weather_v1"] {
        let told = home.run(&["explain", name, "--url", &daemon.url]).ok();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains("not in the list: it is left out, because of `tool-unavailable`"),
            "{told}"
        );
        assert!(
            told.contains("add \"127.0.0.1\" to `bundles.allowed_hosts`"),
            "{told}"
        );
    }
    let refused = home
        .run(&["call", "net/weather_v1", "--url", &daemon.url])
        .failed(1);
    assert!(refused.contains("is left out of the list"), "{refused}");
    let page = String::from_utf8(daemon.get("/dashboard/findings").1).unwrap();
    assert!(
        page.contains("weather_v1") && page.contains("/dashboard/scenarios/net"),
        "{page}"
    );
    assert!(!page.contains("/dashboard/tool?id=net"), "{page}");

    let doctor = home.run(&["doctor", "--url", &daemon.url]).out;
    assert!(
        doctor.contains("callsheet findings --scenario net"),
        "{doctor}"
    );
    assert!(!doctor.contains("check bundle:"), "{doctor}");
}

#[test]
fn a_folder_that_is_set_later_needs_a_restart() {
    let home = Home::with("");
    let daemon = home.serve(&[]);
    let about = write(
        &home,
        "net.json",
        &json!({"id": ID, "slug": "net", "displayName": "Net tools"}),
    );
    let refused = bundle(&home, &daemon, &["put", &about]).failed(1);
    assert!(refused.contains("set `bundles.path`"), "{refused}");
    home.write(
        "callsheet.toml",
        "server.listen = \"127.0.0.1:0\"\n[bundles]\npath = \"bundles\"\n",
    );
    until("the key waits", || {
        home.run(&["findings", "--code", "config-waiting", "--url", &daemon.url])
            .ok()
            .contains("bundles.path")
    });
    let refused = bundle(&home, &daemon, &["put", &about]).failed(1);
    assert!(refused.contains("restart the daemon"), "{refused}");
}

/// A hostile archive changes nothing.
#[test]
fn an_archive_that_leads_out_is_refused_before_anything_is_stored() {
    let home = home();
    let daemon = home.serve(&[]);
    let about = write(
        &home,
        "net.json",
        &json!({"id": ID, "slug": "net", "displayName": "Net tools"}),
    );
    bundle(&home, &daemon, &["put", &about]).ok();
    let file = write(&home, "tool.json", &tool_file("weather"));
    bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).ok();
    let archive = home.path("net.zip");
    bundle(
        &home,
        &daemon,
        &["export", "net", &archive.display().to_string()],
    )
    .ok();
    let mut bytes = Vec::new();
    std::fs::File::open(&archive)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    // The same length, in both places where the name stands.
    let text = b"tools/00000.json";
    for at in 0..bytes.len() - text.len() {
        if bytes[at..].starts_with(text) {
            bytes[at..at + text.len()].copy_from_slice(b"../..//0000.json");
        }
    }
    let evil = home.path("evil.zip");
    std::fs::File::create(&evil)
        .unwrap()
        .write_all(&bytes)
        .unwrap();
    let refused = bundle(
        &home,
        &daemon,
        &["import", &evil.display().to_string(), "--new"],
    )
    .failed(2);
    assert!(refused.contains("leads out of it"), "{refused}");
    assert_eq!(rows(&bundle(&home, &daemon, &["list"]).ok()).len(), 2);
}

#[test]
fn a_daemon_without_a_folder_says_that_none_is_configured() {
    let off = Home::with("");
    let daemon = off.serve(&[]);
    let expected = "no bundles: no folder is configured for stored tools; \
                    set `bundles.path` to the folder for them, and restart the daemon\n";
    for args in [&["list"][..], &["list", "--all"]] {
        assert_eq!(bundle(&off, &daemon, args).ok(), expected, "{args:?}");
    }
    assert_eq!(
        json(&bundle(&off, &daemon, &["list", "--json"]).ok()),
        json!({"bundles": []})
    );
    let on = home();
    let daemon = on.serve(&[]);
    let none = bundle(&on, &daemon, &["list"]).ok();
    assert_eq!(
        none,
        "no bundles; `--all` shows those that are disabled, too\n"
    );
}
