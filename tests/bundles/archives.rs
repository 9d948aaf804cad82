//! Bundles as archives: what goes out comes in elsewhere, whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use callsheet::model::ScenarioName;
use callsheet::runtime::Clock;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::daemon::{Daemon, Home, PATIENCE};
use crate::support::serving::{Answer, ask, ask_bytes, ask_raw};
use crate::{NET, OTHER, about, bundle, config, expect, folder, http_tool, tool, with_tools};

const ZIP: [(&str, &str); 1] = [("content-type", "application/zip")];
/// The bundle of built-in tools.
const BUILT_IN: &str = "01980000-0000-7000-8000-000000000001";
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;

/// A ZIP of these files, each with its Unix mode, whatever their names are.
pub(crate) fn zip(files: &[(&str, String, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut bytes);
    for (name, text, mode) in files {
        let entry = archive
            .new_file(EntryPath::verbatim(name.as_bytes()))
            .unix_permissions(*mode);
        let (mut entry, config) = entry
            .compression_method(CompressionMethod::DEFLATE)
            .start()
            .unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        writer.write_all(text.as_bytes()).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

/// `bundle.json` of a bundle `net`.
pub(crate) fn definition(id: &str) -> Value {
    json!({"schemaVersion": "2025-07-01", "id": id, "slug": "net", "displayName": "Net tools",
        "createdAt": "2024-05-14T13:44:00Z", "x-owner": {"team": "harbour"}})
}

/// The file of a version `v1` of a tool, as a person may write it.
pub(crate) fn by_hand(slug: &str) -> Value {
    let mut file = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/x"}));
    for (member, value) in [
        ("schemaVersion", json!("2025-07-01")),
        ("slug", json!(slug)),
        ("version", json!("v1")),
        ("createdAt", json!("2024-05-14T13:45:00Z")),
        ("x-note", json!({"kept": [1, 2.5, null]})),
    ] {
        file[member] = value;
    }
    file
}

/// An archive of a bundle `net` with these tools.
fn packed(id: &str, tools: &[Value]) -> Vec<u8> {
    let names: Vec<String> = (0..tools.len())
        .map(|n| format!("tools/{n}.json"))
        .collect();
    let mut files = vec![("bundle.json", definition(id).to_string(), FILE)];
    files.extend(
        names
            .iter()
            .zip(tools)
            .map(|(name, tool)| (name.as_str(), tool.to_string(), FILE)),
    );
    zip(&files)
}

/// All files below a folder but its lock.
pub(crate) fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
            found.insert(path, Vec::new());
        } else if !path.ends_with(".lock") {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn archive_of(id: &str) -> String {
    format!("/tools/bundles/{id}/archive")
}

async fn export(daemon: &Daemon, id: &str) -> Vec<u8> {
    let answer = daemon.get(&archive_of(id)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

async fn import(daemon: &Daemon, archive: &[u8], query: &str) -> Answer {
    ask_bytes(
        daemon.address,
        "POST",
        &format!("/tools/bundles/archive{query}"),
        &ZIP,
        archive,
    )
    .await
}

/// An import that is refused with this status and code, and leaves the folder as it is. Returns
/// why.
async fn refused(daemon: &Daemon, home: &Home, archive: &[u8], status: u16, code: &str) -> String {
    let before = everything(&folder(home));
    let answer = import(daemon, archive, "").await;
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.json()["code"], code, "{answer:?}");
    assert_eq!(everything(&folder(home)), before, "{answer:?}");
    answer.problem()
}

fn get() -> Value {
    http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/x"}))
}

/// S1-90: ids, times, switches and members that are not known here come in as they went out.
#[tokio::test]
async fn what_is_exported_is_the_same_bundle_elsewhere() {
    let home = Home::new();
    let own = folder(&home).join("by-hand");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("bundle.json"), definition(NET).to_string()).unwrap();
    let mut off = by_hand("Flüsse");
    off["isEnabled"] = json!(false);
    off["toolID"] = json!("018faf52-1c2d-7e40-8b1a-5f1c9e0a7d22");
    for (name, file) in [
        ("a.json", by_hand("tides")),
        ("b.json", by_hand("Tides")),
        ("c.json", off),
    ] {
        fs::write(own.join(name), file.to_string()).unwrap();
    }
    let daemon = Daemon::start(config(&home)).await;
    daemon.until_tools(&["Tides_v1", "tides_v1"]).await;
    let exported = daemon.get(&archive_of(NET)).await;
    for (name, value) in [
        ("content-type", "application/zip"),
        ("content-disposition", "attachment; filename=\"net.zip\""),
        ("callsheet-tools", "3"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(exported.header(name), value, "{exported:?}");
    }

    let other = Home::new();
    let second = Daemon::start(config(&other)).await;
    let answer = import(&second, &exported.body, "").await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let stored = answer.json();
    assert_eq!(
        [&stored["tools"], &stored["leftOut"]],
        [&json!(3), &json!(0)],
        "{stored}"
    );
    assert_eq!(stored["bundle"]["id"], NET);
    assert_eq!(stored["bundle"]["x-owner"], json!({"team": "harbour"}));
    second.until_tools(&["Tides_v1", "tides_v1"]).await;
    for slug in ["tides", "Tides", "Fl%C3%BCsse"] {
        let there = second.json(&tool(NET, slug, "v1")).await;
        assert_eq!(there["x-note"], json!({"kept": [1, 2.5, null]}), "{there}");
        assert_eq!(there, daemon.json(&tool(NET, slug, "v1")).await);
    }
    assert_eq!(export(&second, NET).await, exported.body, "the same bytes");
    let hidden = fs::read_dir(folder(&other))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = hidden
        .filter(|name| name.to_string_lossy().starts_with('.'))
        .collect();
    assert_eq!(hidden, [".lock"]);

    expect(&daemon, 201, "PUT", &bundle(OTHER), &about("мир")).await;
    let named = daemon.get(&archive_of(OTHER)).await;
    let disposition =
        "attachment; filename=\"bundle.zip\"; filename*=UTF-8''%D0%BC%D0%B8%D1%80.zip";
    assert_eq!(named.header("content-disposition"), disposition);
    daemon.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_disabled_bundle_comes_in_disabled_with_its_tools() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("tides", get())]).await;
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": false}),
    )
    .await;
    let archive = export(&daemon, NET).await;
    let other = Home::new();
    let second = Daemon::start(config(&other)).await;
    let stored = import(&second, &archive, "").await.json();
    assert_eq!(stored["bundle"]["isEnabled"], false, "{stored}");
    assert_eq!(stored["tools"], 1);
    assert_eq!(
        second.json("/tools/tools?includeDisabled=true").await["tools"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    second
        .wait_until("the scenario is there", |now| {
            now.health
                .contains_key(&"net".parse::<ScenarioName>().unwrap())
        })
        .await;
    assert_eq!(second.tools("").await, [""; 0]);
    expect(
        &second,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": true}),
    )
    .await;
    second.until_tools(&["tides_v1"]).await;

    // The one that is there is enabled: it becomes as the archive says.
    let mut off = definition(NET);
    off["isEnabled"] = json!(false);
    let archive = zip(&[
        ("bundle.json", off.to_string(), FILE),
        ("a.json", by_hand("rain").to_string(), FILE),
    ]);
    let stored = import(&second, &archive, "").await;
    assert_eq!(stored.status, 200, "{stored:?}");
    second.until_tools(&[]).await;
    daemon.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn what_is_in_the_way_leaves_the_folder_as_it_is() {
    let home = Home::new();
    let mut config = config(&home);
    config.bundles.built_in = true;
    let daemon = with_tools(config, &[("tides", get()), ("weather", get())]).await;
    let archive = export(&daemon, NET).await;
    let why = refused(&daemon, &home, &archive, 409, "exists").await;
    assert!(
        why.contains("a tool `tides` with version `v1`, and 1 more of the archive"),
        "{why}"
    );
    expect(
        &daemon,
        204,
        "DELETE",
        &tool(NET, "tides", "v1"),
        &Value::Null,
    )
    .await;
    let why = refused(&daemon, &home, &archive, 409, "exists").await;
    assert!(
        why.ends_with(
            "a tool `weather` with version `v1`; import it as a new bundle (`new=true`), or delete what is there first"
        ),
        "{why}"
    );

    let fresh = packed(NET, &[by_hand("rain")]);
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(NET),
        &json!({"isEnabled": false}),
    )
    .await;
    let why = refused(&daemon, &home, &fresh, 403, "disabled").await;
    assert!(why.contains("enable it first"), "{why}");
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
    expect(&daemon, 200, "DELETE", &bundle(NET), &Value::Null).await;
    let why = refused(&daemon, &home, &fresh, 409, "being_deleted").await;
    assert!(
        why.contains("`new=true`") && why.contains("removed for good"),
        "{why}"
    );
    assert_eq!(daemon.get(&archive_of(NET)).await.status, 409);

    refused(
        &daemon,
        &home,
        &packed(BUILT_IN, &[by_hand("rain")]),
        403,
        "built_in",
    )
    .await;
    let exported = daemon.get(&archive_of(BUILT_IN)).await;
    assert_eq!(exported.status, 403);
    assert!(
        exported.problem().contains("no files to export"),
        "{exported:?}"
    );
    assert_eq!(daemon.get(&archive_of(OTHER)).await.status, 404);
    daemon.stop().await;
}

#[tokio::test]
async fn more_tools_than_are_kept_are_refused_as_a_whole() {
    let home = Home::new();
    let mut config = config(&home);
    config.bundles.max_tools = 3;
    let daemon = with_tools(config, &[("tides", get()), ("weather", get())]).await;
    let archive = packed(OTHER, &[by_hand("a"), by_hand("b")]);
    let why = refused(&daemon, &home, &archive, 409, "too_many").await;
    assert!(
        why.contains("it has 2 tool(s), 2 are stored already, and `bundles.max_tools` allows 3"),
        "{why}"
    );
    expect(
        &daemon,
        204,
        "DELETE",
        &tool(NET, "tides", "v1"),
        &Value::Null,
    )
    .await;
    assert_eq!(import(&daemon, &archive, "").await.status, 201);
    daemon.stop().await;
}

/// Unknown members take the memory of their text, and what all bundles need together is limited.
#[tokio::test]
async fn bundles_beyond_their_memory_are_refused_and_a_start_stays_possible() {
    let home = Home::new();
    let mut config = config(&home);
    config.bundles.max_bytes = 300 * 1024;
    config.bundles.max_bundles = 2;
    let daemon = with_tools(config.clone(), &[("tides", get())]).await;
    let mut large = by_hand("large");
    large["x-junk"] = json!(vec![json!([]); 60_000]);
    assert_eq!(
        import(&daemon, &packed(OTHER, &[large.clone()]), "")
            .await
            .status,
        201
    );
    let kept = daemon.json(&tool(OTHER, "large", "v1")).await;
    assert_eq!(kept["x-junk"].as_array().unwrap().len(), 60_000);
    large["slug"] = json!("larger");
    let why = refused(&daemon, &home, &packed(OTHER, &[large]), 409, "too_many").await;
    assert!(why.contains("`bundles.max_bytes` allows 307200"), "{why}");
    let third = "018faf50-b7b6-7a01-9a05-a22a6e0af1ff";
    let why = refused(
        &daemon,
        &home,
        &packed(third, &[by_hand("b")]),
        409,
        "too_many",
    )
    .await;
    assert!(why.contains("`bundles.max_bundles` allows"), "{why}");
    expect(&daemon, 409, "PUT", &bundle(third), &about("third")).await;
    daemon.stop().await;

    let again = Daemon::start(config).await;
    again.until_tools(&["tides_v1", "large_v1"]).await;
    again.stop().await;
}

#[tokio::test]
async fn bad_archives_are_refused_with_the_reason() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("tides", get())]).await;
    let good = ("bundle.json", definition(OTHER).to_string(), FILE);
    let one = by_hand("a").to_string();
    let with = |member: &str, value: Value| {
        let mut document = definition(OTHER);
        document[member] = value;
        ("bundle.json", document.to_string(), FILE)
    };
    let large = format!("{{\"a\": \"{}\"}}", "0".repeat(256 * 1024));
    let names: Vec<String> = (0..300).map(|n| format!("{n}.json")).collect();
    let bomb: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), large.replacen("00000", "", 2), FILE))
        .collect();
    for (archive, reason) in [
        (b"no archive".to_vec(), "no ZIP"),
        (Vec::new(), "no ZIP"),
        (zip(&[("x.json", one.clone(), FILE)]), "no `bundle.json`"),
        (
            zip(&[good.clone(), ("../x.json", one.clone(), FILE)]),
            "leads out",
        ),
        (
            zip(&[good.clone(), ("/etc/x.json", one.clone(), FILE)]),
            "leads out",
        ),
        (
            zip(&[good.clone(), ("x.json", "/etc/passwd".to_owned(), LINK)]),
            "is a link",
        ),
        (
            zip(&[
                good.clone(),
                ("x.json", one.clone(), FILE),
                ("X.json", one.clone(), FILE),
            ]),
            "twice",
        ),
        (
            zip(&[
                good.clone(),
                ("x.json", one.clone(), FILE),
                ("y.json", one.clone(), FILE),
            ]),
            "again",
        ),
        (
            zip(&[good.clone(), ("x.json", large.clone(), FILE)]),
            "larger than 256 KiB",
        ),
        (zip(&bomb), "`bundles.max_bytes` allows"),
        (
            zip(&[good.clone(), ("x.json", "[]".to_owned(), FILE)]),
            "no JSON object",
        ),
        (
            zip(&[
                good.clone(),
                ("x.json", one.replace("\"http\"", "\"shell\""), FILE),
            ]),
            "neither `http` nor `go`",
        ),
        (
            zip(&[
                with("isBuiltIn", json!(true)),
                ("x.json", one.clone(), FILE),
            ]),
            "isBuiltIn",
        ),
        (
            zip(&[with("softDeletedAt", json!("2026-03-01T09:00:00Z"))]),
            "softDeletedAt",
        ),
    ] {
        let why = refused(&daemon, &home, &archive, 400, "invalid_archive").await;
        assert!(
            why.contains("the archive cannot be imported") && why.contains(reason),
            "{reason}: {why}"
        );
    }
    assert_eq!(
        import(&daemon, &packed(OTHER, &[]), "?new=yes")
            .await
            .status,
        400
    );
    let kept = daemon.json("/tools/tools?includeDisabled=true").await;
    assert_eq!(kept["tools"].as_array().unwrap().len(), 1);
    daemon.stop().await;
}

/// A new bundle shares no id with the one that was exported.
#[tokio::test]
async fn as_a_new_bundle_it_has_ids_and_times_of_its_own() {
    let home = Home::new();
    let daemon = Daemon::start(config(&home)).await;
    let mut own = by_hand("tides");
    own["id"] = json!("018faf52-1c2d-7e40-8b1a-5f1c9e0a7d22");
    own["bundleID"] = json!(NET);
    let archive = packed(NET, &[own, by_hand("rain")]);
    assert_eq!(import(&daemon, &archive, "?new=false").await.status, 201);
    let begun = Clock::system().wall();
    let mut seen = vec![daemon.json(&tool(NET, "tides", "v1")).await["id"].clone()];
    for _ in 0..2 {
        let answer = import(&daemon, &archive, "?new=true").await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let stored = answer.json()["bundle"].clone();
        let id = stored["id"].as_str().unwrap();
        assert_ne!(id, NET);
        assert_eq!(stored["x-owner"], json!({"team": "harbour"}));
        for slug in ["tides", "rain"] {
            let tool = daemon.json(&tool(id, slug, "v1")).await;
            assert_eq!(tool["bundleID"], id);
            assert!(
                tool.get("id").is_none(),
                "it was another name of `toolID`: {tool}"
            );
            let given: uuid::Uuid = tool["toolID"].as_str().unwrap().parse().unwrap();
            assert_eq!(given.get_version_num(), 7);
            assert!(!seen.contains(&tool["toolID"]), "{tool}");
            seen.push(tool["toolID"].clone());
            let made: jiff::Timestamp = tool["createdAt"].as_str().unwrap().parse().unwrap();
            assert!(made.as_second() >= begun.as_second(), "{tool}");
            assert_eq!(tool["x-note"], json!({"kept": [1, 2.5, null]}));
        }
    }
    assert_eq!(
        daemon.json("/tools/bundles").await["bundles"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    daemon.stop().await;
}

/// A bundle that is there gets the tools, and what the archive says about it.
#[tokio::test]
async fn a_bundle_that_is_there_gets_the_tools() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("tides", get())]).await;
    let before = daemon.json("/tools/bundles").await["bundles"][0].clone();
    let mut far = by_hand("far");
    far["impl"] = json!({"urlTemplate": "http://far.example/"});
    let answer = import(&daemon, &packed(NET, &[by_hand("rain"), far]), "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let stored = answer.json();
    assert_eq!(stored["leftOut"], 1, "its host is not allowed: {stored}");
    assert_eq!(stored["bundle"]["displayName"], "Net tools");
    assert_eq!(stored["bundle"]["x-owner"], json!({"team": "harbour"}));
    assert_eq!(stored["bundle"]["createdAt"], before["createdAt"]);
    daemon.until_tools(&["rain_v1", "tides_v1"]).await;
    let own = &folder(&home).join(NET);
    let mut names: Vec<_> = fs::read_dir(own)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "bundle.json",
            "far_v1.json",
            "rain_v1.json",
            "tides_v1.json"
        ]
    );

    // What is said stays as it is, so `modifiedAt` does, too.
    let said = export(&daemon, NET).await;
    for slug in ["tides", "rain", "far"] {
        expect(&daemon, 204, "DELETE", &tool(NET, slug, "v1"), &Value::Null).await;
    }
    let again = import(&daemon, &said, "").await.json();
    assert_eq!(again["bundle"], stored["bundle"]);
    assert_eq!(again["tools"], 3);
    daemon.stop().await;
}

/// What a process that ended left behind is not read, and goes with the next import.
#[tokio::test]
async fn the_rest_of_an_import_that_did_not_end_is_removed() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("tides", get())]).await;
    for rest in [
        folder(&home).join(".new-1"),
        folder(&home).join(NET).join(".new-2"),
    ] {
        fs::create_dir(&rest).unwrap();
        fs::write(rest.join("bundle.json"), definition(OTHER).to_string()).unwrap();
        fs::write(rest.join("x.json"), by_hand("half").to_string()).unwrap();
    }
    for archive in [packed(OTHER, &[by_hand("a")]), packed(NET, &[by_hand("b")])] {
        let answer = import(&daemon, &archive, "").await;
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    }
    let left: Vec<_> = everything(&folder(&home))
        .into_keys()
        .filter(|path| path.to_string_lossy().contains(".new-"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
    let listed = daemon.json("/tools/tools").await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 3, "{listed}");
    daemon.stop().await;
}

#[tokio::test]
async fn only_the_operator_imports() {
    let home = Home::new();
    let mut guarded = config(&home);
    guarded.server.operator_token = Some(callsheet::model::Secret::new("open-sesame-open"));
    let daemon = Daemon::start(guarded).await;
    let archive = packed(NET, &[by_hand("tides")]);
    assert_eq!(import(&daemon, &archive, "").await.status, 401);
    assert!(!folder(&home).join(NET).exists());
    let token = ("authorization", "Bearer open-sesame-open");
    let answer = ask_bytes(
        daemon.address,
        "POST",
        "/tools/bundles/archive",
        &[ZIP[0], token],
        &archive,
    )
    .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(
        daemon.get(&archive_of(NET)).await.status,
        200,
        "to read is open to all"
    );
    daemon.stop().await;

    let mut off = config(&home);
    off.bundles.path = None;
    let daemon = Daemon::start(off).await;
    for answer in [
        import(&daemon, &archive, "").await,
        daemon.get(&archive_of(NET)).await,
    ] {
        assert_eq!(answer.status, 404);
        assert_eq!(answer.json()["code"], "bundles_off");
    }
    daemon.stop().await;
}

/// Only this route takes archives, and it takes no others and no larger ones.
#[tokio::test]
async fn archives_have_a_type_and_a_limit_of_their_own() {
    let home = Home::new();
    let mut small = config(&home);
    small.server.max_body = 1_000;
    let daemon = Daemon::start(small).await;
    let mut long = by_hand("long");
    long["x-key"] = (0..2_000_u64)
        .map(|n| json!(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let archive = packed(NET, &[long]);
    assert!(archive.len() > 1_000, "{}", archive.len());
    assert_eq!(import(&daemon, &archive, "").await.status, 201);
    let json = [("content-type", "application/json")];
    let answer = ask_bytes(
        daemon.address,
        "POST",
        "/tools/bundles/archive",
        &json,
        b"{}",
    )
    .await;
    assert_eq!(answer.status, 415);
    assert!(
        answer.problem().contains("`Content-Type: application/zip`"),
        "{answer:?}"
    );
    let answer = ask_bytes(daemon.address, "PUT", &bundle(OTHER), &ZIP, b"{}").await;
    assert_eq!(answer.status, 415);
    let announced = [ZIP[0], ("content-length", "67108865")];
    let answer = ask_raw(
        daemon.address,
        "POST",
        "/tools/bundles/archive",
        &announced,
        "",
    )
    .await;
    assert_eq!(answer.status, 413);
    assert!(
        answer.problem().contains("larger than 64 MiB"),
        "{answer:?}"
    );
    let answer = ask(daemon.address, "POST", &bundle(OTHER), &json, "{}").await;
    assert_eq!(answer.status, 405);
    daemon.stop().await;
}

/// Each archive is in memory, so a third one at the same time has to wait for its turn.
#[tokio::test]
async fn two_archives_are_taken_at_once() {
    let home = Home::new();
    let daemon = Daemon::start(config(&home)).await;
    let mut open = Vec::new();
    for id in [NET, OTHER] {
        let archive = packed(id, &[by_hand("tides")]);
        let head = format!(
            "POST /tools/bundles/archive HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/zip\r\nContent-Length: {}\r\n\r\n",
            daemon.address,
            archive.len()
        );
        let mut stream = TcpStream::connect(daemon.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        open.push((stream, archive));
    }
    let waited = async {
        loop {
            let answer = daemon.get(&archive_of(NET)).await;
            if answer.status == 503 {
                return answer;
            }
        }
    };
    let busy = tokio::time::timeout(PATIENCE, waited).await.unwrap();
    assert_eq!(busy.header("retry-after"), "1");
    for (mut stream, archive) in open {
        stream.write_all(&archive).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 201"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(daemon.get(&archive_of(NET)).await.status, 200);
    daemon.stop().await;
}

/// The time of making is what the archive says.
#[tokio::test]
async fn an_archive_that_says_it_is_older_takes_no_name() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("tides", get())]).await;
    let mut older = definition(OTHER);
    older["createdAt"] = json!("1990-01-01T00:00:00Z");
    older["importedAt"] = json!("1990-01-01T00:00:00Z");
    let archive = zip(&[
        ("bundle.json", older.to_string(), FILE),
        ("a.json", by_hand("tides").to_string(), FILE),
    ]);
    let stored = import(&daemon, &archive, "").await;
    assert_eq!(stored.status, 201, "{stored:?}");
    assert_eq!(stored.json()["bundle"]["scenario"], format!("net-{OTHER}"));
    assert_eq!(stored.json()["bundle"]["createdAt"], "1990-01-01T00:00:00Z");
    let known = daemon
        .json(&format!("/tools/bundles?bundleIDs={NET}"))
        .await;
    assert_eq!(known["bundles"][0]["scenario"], "net", "{known}");
    daemon.stop().await;

    let again = Daemon::start(config(&home)).await;
    let known = again.json(&format!("/tools/bundles?bundleIDs={NET}")).await;
    assert_eq!(known["bundles"][0]["scenario"], "net", "{known}");
    again.stop().await;
}
