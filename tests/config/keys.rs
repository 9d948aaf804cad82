//! Each key of the configuration has a field of its own.

use callsheet::config::{DEFAULT_TOML, KEYS, Reload};

use crate::support::config::Machine;

/// Values for keys whose default is not a number, switch, size or duration.
const OTHERS: &[(&str, &str)] = &[
    ("server.listen", "127.0.0.1:1"),
    ("server.allowed_hosts", "[h]"),
    ("server.allowed_origins", "[http://h]"),
    ("server.operator_token", "0123456789abcdef"),
    ("scenarios", "[{name = s, url = http://h}]"),
    ("modules", "{other = http://h}"),
    ("module_settings.slow_modules", "m, n"),
    ("module_settings.token", "t"),
    ("module_settings.tokens", "{m = t}"),
    ("mcpServers", "{m = {command = \"x\"}}"),
    ("mcp.files", "[\"/mcp.json\"]"),
    ("profiles", "[{name = p}]"),
    ("preferences", "[{target = \"tag:x\", enabled = false}]"),
    (
        "definitions",
        r#"[{schema = "{\"type\": \"object\", \"properties\": {\"_tool\": {\"const\": \"d\"}, \"_output\": {\"type\": \"object\"}}}"}]"#,
    ),
    ("pins.default", "hold"),
    ("permissions.unknown", "guest"),
    ("permissions.default_profile", "base"),
    ("discovery.vrooli.path", "/p"),
    ("discovery.mdns.trust", "all"),
    ("discovery.mdns.types", "[_x._tcp]"),
    ("discovery.mdns.interfaces", "[lo]"),
    ("discovery.mdns.name", "other"),
    ("discovery.mdns.id", "me"),
    ("cache.scope", "shared"),
    ("protocol.accept", "<3"),
    ("naming.style", "always"),
    ("mcp.naming", "on-collision"),
    ("mcp.mode", "search"),
    ("mcp.sleep_after", "10m"),
    ("login.hosts", "[h]"),
    ("network.proxy", "http://h:3128"),
    ("network.no_proxy", "[h]"),
    ("login.client_metadata_url", "https://h/c.json"),
    ("state.path", "/s.db"),
    ("calls.require_approval", "[\"hint:destructive\"]"),
    ("permissions.unannotated", "[\"hint:open-world\"]"),
    ("calls.unannotated", "[\"hint:open-world\"]"),
    ("calls.approval_token", "0123456789abcdef"),
    ("calls.audit", "/audit.jsonl"),
    ("bundles.path", "/bundles"),
    ("bundles.allowed_hosts", "[h]"),
    ("bundles.secrets", "{K = {value = s, hosts = [h]}}"),
    ("bundles.folders", "[\"/f\"]"),
];

/// Keys that are read from the file only.
const OF_FILE: [&str; 2] = ["mcpServers", "mcp.files"];

/// A value that differs from the default.
fn another(key: &str, defaults: &toml::Table) -> String {
    if let Some((_, value)) = OTHERS.iter().find(|(other, _)| *other == key) {
        return (*value).to_owned();
    }
    let (section, name) = key.rsplit_once('.').unwrap();
    let table = section
        .split('.')
        .fold(defaults, |table, name| table[name].as_table().unwrap());
    match &table[name] {
        toml::Value::Boolean(switch) => (!switch).to_string(),
        toml::Value::Integer(number) => (number + 1).to_string(),
        toml::Value::String(size) if size.ends_with("iB") => "1777 KiB".to_owned(),
        toml::Value::String(duration) => format!("{duration} 1ms"),
        other => panic!("{key} = {other} needs a line in OTHERS"),
    }
}

#[test]
fn each_key_sets_one_value_and_no_other_key_sets_it() {
    let defaults = DEFAULT_TOML.parse().unwrap();
    let text = "modules.m = \"http://h\"\nstate.path = \"/\"\ndiscovery.vrooli.path = \"/\"\n";
    for key in KEYS {
        // The profile of clients that name none is one of the profiles.
        let profile = if key.path == "permissions.default_profile" {
            "[[profiles]]\nname = \"base\"\n"
        } else {
            ""
        };
        let file = &format!("{text}{profile}");
        let before = Machine::new().file(file).config();
        let value = another(key.path, &defaults);
        let next = if OF_FILE.contains(&key.path) {
            Machine::new()
                .file(&format!("{file}{} = {value}\n", key.path))
                .config()
        } else {
            Machine::new()
                .file(file)
                .flag(key.path, &value, "--value")
                .config()
        };
        let reloaded = before.reloaded(next.clone());
        let (taken, left) = match key.reload {
            Reload::Live => (reloaded.changed, reloaded.waiting),
            Reload::Restart => (reloaded.waiting, reloaded.changed),
        };
        assert_eq!(taken, vec![key.path], "{}", key.path);
        assert!(left.is_empty(), "{}", key.path);
        // What a reload does not take is as it was, and what it takes is as it was written.
        let expected = if key.reload == Reload::Live {
            &next
        } else {
            &before
        };
        assert_eq!(&reloaded.config, expected, "{}", key.path);
    }
}
