//! `callsheet bundle`: what it lists, stores, switches, deletes, exports and imports.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::support::command::{Home, Ran, Running, json, rows};

const ID: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

fn home() -> Home {
    Home::with("[bundles]\npath = \"bundles\"\nallowed_hosts = [\"127.0.0.1\"]\n")
}

fn bundle(home: &Home, daemon: &Running, args: &[&str]) -> Ran {
    home.run(&[&["bundle"], args, &["--url", &daemon.url]].concat())
}

fn write(home: &Home, name: &str, document: &Value) -> String {
    home.write(name, &document.to_string()).display().to_string()
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
    let about = write(&home, "net.json", &json!({"id": ID, "slug": "net", "displayName": "Net tools"}));
    assert_eq!(bundle(&home, &daemon, &["put", &about]).ok(), format!("net is stored: {ID}\n"));
    for slug in ["weather", "tides"] {
        let file = write(&home, "tool.json", &tool_file(slug));
        let told = bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).ok();
        assert!(told.starts_with(&format!("{slug} v1 is stored: ")), "{told}");
    }
    let file = write(&home, "tool.json", &tool_file("tides"));
    let refused = bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).failed(1);
    assert!(refused.contains("already has a tool `tides` with version `v1`"), "{refused}");

    let listed = bundle(&home, &daemon, &["list"]).ok();
    assert_eq!(rows(&listed)[1][..2], [ID, "net"]);
    bundle(&home, &daemon, &["disable", "net", "tides", "v1"]).ok();
    let tools = bundle(&home, &daemon, &["list", "net", "--json"]).ok();
    assert_eq!(json(&tools)["tools"].as_array().unwrap().len(), 1);
    let tools = bundle(&home, &daemon, &["list", "net", "--all"]).ok();
    assert_eq!(rows(&tools).len(), 3);
    let shown = json(&bundle(&home, &daemon, &["show", "net", "weather", "v1"]).ok());
    assert_eq!(shown["tool"], "net/weather_v1");

    let archive = home.path("net.zip").display().to_string();
    bundle(&home, &daemon, &["export", "net", &archive]).ok();
    bundle(&home, &daemon, &["export", "net", &archive]).failed(2);
    let refused = bundle(&home, &daemon, &["import", &archive]).failed(1);
    assert!(refused.contains("2 tools left out"), "{refused}");
    let imported = bundle(&home, &daemon, &["import", &archive, "--new"]).ok();
    assert!(imported.starts_with("net with 2 tools is stored: "), "{imported}");
    let several = bundle(&home, &daemon, &["list", "net"]).failed(1);
    assert!(several.contains("several bundles"), "{several}");

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
    assert!(bundle(&home, &daemon, &["delete", ID]).ok().contains("removed for good after two days"));
}

/// A hostile archive changes nothing.
#[test]
fn an_archive_that_leads_out_is_refused_before_anything_is_stored() {
    let home = home();
    let daemon = home.serve(&[]);
    let about = write(&home, "net.json", &json!({"id": ID, "slug": "net", "displayName": "Net tools"}));
    bundle(&home, &daemon, &["put", &about]).ok();
    let file = write(&home, "tool.json", &tool_file("weather"));
    bundle(&home, &daemon, &["put", &file, "--bundle", "net"]).ok();
    let archive = home.path("net.zip");
    bundle(&home, &daemon, &["export", "net", &archive.display().to_string()]).ok();
    let mut bytes = Vec::new();
    std::fs::File::open(&archive).unwrap().read_to_end(&mut bytes).unwrap();
    // The same length, in both places where the name stands.
    let text = b"tools/00000.json";
    for at in 0..bytes.len() - text.len() {
        if bytes[at..].starts_with(text) {
            bytes[at..at + text.len()].copy_from_slice(b"../..//0000.json");
        }
    }
    let evil = home.path("evil.zip");
    std::fs::File::create(&evil).unwrap().write_all(&bytes).unwrap();
    let refused = bundle(&home, &daemon, &["import", &evil.display().to_string(), "--new"]).failed(2);
    assert!(refused.contains("leads out of it"), "{refused}");
    assert_eq!(rows(&bundle(&home, &daemon, &["list"]).ok()).len(), 2);
}
