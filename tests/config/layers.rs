//! The configuration: that `config/default.toml` is the whole truth about it, its layers, its file
//! and its origins.
//!
//! Everything goes through `callsheet::config::load` with real files in a temporary folder and an
//! environment of the test's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use callsheet::catalog::NamingStyle;
use callsheet::config::client_files::{ClientEntry, EntryTarget, ReadEntry};
use callsheet::config::{
    CacheConfig, CallsConfig, Config, DEFAULT_TOML, LoadOptions, McpConfig, MdnsConfig, MdnsTrust,
    ModulesConfig, Position, ServerConfig, StaticScenario, Subnet, TrustPattern, ValueOrigin, keys,
};
use callsheet::model::{
    AcceptedVersions, ApprovalPolicy, HttpTarget, ParameterOverrides, Permission, PinMode,
    PreferenceSet, Profile, PublishedName, Scope, Secret, Settings, UnknownLevel,
};
use callsheet::protocols::definitions::Definition;
use callsheet::transports::http::CacheScope;

use crate::support::config::Machine;

// --- the reference ---

#[test]
fn the_built_in_values_are_those_of_the_reference() {
    let machine = Machine::new();
    let loaded = machine.load().unwrap();
    assert_eq!(loaded.config, machine.defaults());
    assert_eq!(loaded.file, None);
    // Not merely because nothing was read: the text says every value that `for_state` has.
    let written: toml::Table = DEFAULT_TOML.parse().unwrap();
    assert_eq!(written["server"]["listen"].as_str(), Some("127.0.0.1:7400"));
    for key in keys().iter().filter(|key| !is_computed(key)) {
        assert!(
            loaded
                .values
                .iter()
                .any(|value| value.key == *key && value.origin == ValueOrigin::Default),
            "{key}"
        );
    }
}

#[test]
fn the_defaults_are_the_agreed_ones() {
    let config = Config::for_state("state.db");
    let secs = Duration::from_secs;
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7400");
    assert_eq!(config.server.max_body, 1 << 20);
    assert_eq!(config.server.stop_timeout, secs(10));
    assert_eq!(config.refresh.min_interval, secs(60));
    assert_eq!(config.refresh.max_interval, secs(3600));
    assert_eq!(config.refresh.concurrency, 32);
    assert_eq!(config.refresh.max_body, 8 << 20);
    assert_eq!(
        config.protocol.accept,
        AcceptedVersions::parse(">=1.0, <2.0").unwrap()
    );
    assert_eq!(config.health.grace, secs(300));
    assert_eq!(config.health.failures, 3);
    assert_eq!(config.views.max_bytes, 64 << 20);
    assert_eq!(config.state.path, PathBuf::from("state.db"));
}

/// A key without a fixed default: computed, or one of a scenario.
fn is_computed(key: &str) -> bool {
    is_listed(key)
        || ["state.path", "discovery.vrooli.path", "discovery.mdns.id"].contains(&key)
        || [
            "server.operator_token",
            "module_settings.token",
            "calls.approval_token",
        ]
        .contains(&key)
        || key == "permissions.default_profile"
}

/// A key of which there may be several, or none.
fn is_listed(key: &str) -> bool {
    [
        "scenarios",
        "modules",
        "module_settings.tokens",
        "mcpServers",
        "profiles",
        "preferences",
        "definitions",
    ]
    .iter()
    .any(|list| key.starts_with(list))
}

/// The keys of the reference in order, each with whether a comment of at least one whole sentence
/// stands right above it.
fn documented() -> Vec<(String, bool)> {
    let mut section = String::new();
    let mut above = String::new();
    let mut found = Vec::new();
    for line in DEFAULT_TOML.lines() {
        let code = match line.strip_prefix('#') {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => {
                above = format!("{above}{rest}");
                continue;
            }
            Some(rest) => rest,
            None => line,
        };
        if let Some(name) = code
            .strip_prefix("[[")
            .and_then(|rest| rest.strip_suffix("]]"))
        {
            section = format!("{name}[]");
        } else if let Some(name) = code
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.into();
        } else if let Some((key, _)) = code.split_once(" = ") {
            let sentence = above.trim();
            let whole = sentence.ends_with('.')
                && sentence.contains(' ')
                && sentence.starts_with(char::is_uppercase);
            // These sections have keys of the user's own.
            let key = if ["modules", "mcpServers"].contains(&section.as_str()) {
                "*"
            } else {
                key
            };
            let name = format!("{section}.{key}");
            // A list has an example for each kind of entry.
            if !found.iter().any(|(known, _)| *known == name) {
                found.push((name, whole));
            }
        }
        above.clear();
    }
    found
}

#[test]
fn every_key_is_documented_with_a_sentence_and_every_documented_key_exists() {
    let documented = documented();
    let names: Vec<_> = documented.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(
        names,
        keys(),
        "config/default.toml and keys.rs name the same keys in the same order"
    );
    let silent: Vec<_> = documented
        .iter()
        .filter(|(_, sentence)| !sentence)
        .collect();
    assert!(
        silent.is_empty(),
        "without a sentence above them: {silent:?}"
    );
    assert_eq!(
        keys().len(),
        keys().into_iter().collect::<BTreeSet<_>>().len()
    );
}

#[test]
fn the_reference_can_be_used_as_a_file_also_with_every_key_set() {
    let machine = Machine::new().file(DEFAULT_TOML);
    assert_eq!(machine.config(), machine.defaults());

    let set = |line: &str| match line.strip_prefix('#') {
        Some(code) if !code.is_empty() && !code.starts_with(' ') => code.to_owned(),
        _ => line.to_owned(),
    };
    let all: Vec<_> = DEFAULT_TOML.lines().map(set).collect();
    let machine = Machine::new().file(&all.join("\n"));
    machine.write("work/tools/sort_texts.json", SORT_TEXTS);
    let mut config = machine.config();
    assert_eq!(
        config
            .definitions
            .iter()
            .map(Definition::name)
            .collect::<Vec<_>>(),
        ["rate_text", "sort_texts"]
    );
    config.definitions = Vec::new();
    assert_eq!(config.scenarios.len(), 2);
    assert_eq!(config.profiles.len(), 1);
    assert_eq!(config.preferences.iter().count(), 2);
    config.preferences = PreferenceSet::default();
    assert!(config.discovery.mdns.id.take().is_some());
    assert_eq!(config.modules.services.len(), 1);
    assert!(config.modules.token.is_some() && config.modules.tokens.len() == 1);
    config.modules = ModulesConfig::default();
    assert_eq!(std::mem::take(&mut config.mcp.servers).len(), 1);
    assert_eq!(std::mem::take(&mut config.bundles.secrets).len(), 1);
    assert_eq!(config.default_profile.take().as_deref(), Some("guest"));
    assert!(
        config.server.operator_token.take().is_some()
            && config.calls.approval_token.take().is_some()
    );
    assert_eq!(
        Config {
            scenarios: Vec::new(),
            profiles: BTreeMap::new(),
            ..config
        },
        machine.defaults()
    );
}

/// A definition in a file.
const SORT_TEXTS: &str = r#"{"type": "object", "properties": {"_tool": {"type": "string", "const": "sort_texts"},
    "_output": {"type": "object"}}}"#;

/// A value of its own for every key.
const EVERYTHING: &str = r#"
[server]
listen = "[::1]:0"
allowed_hosts = ["Tools.Example", "[::2]"]
allowed_origins = ["https://Chat.example:443/", "http://localhost:3000"]
max_body = 101
max_connections = 103
held_bytes = "7 MiB"
stop_timeout = "102ms"
ready_timeout = "0s"
rpc_socket = "/run/callsheet/rpc.sock"
operator_token = "0123456789abcdef"
[[scenarios]]
name = "a"
url = "http://127.0.0.1:1"
[[scenarios]]
name = "b.c"
url = "https://u:p@tools.example/base"
protocol = "tool-discovery"
pins = "hold"
[pins]
default = "off"
[modules]
m_1 = "http://127.0.0.1:2"
[module_settings]
slow_modules = ["m_1", "gone"]
tool_execution_timeout = "61s"
default_timeout = "62s"
token = "63"
tokens = { m_1 = "64" }
[mcpServers.m]
command = "x"
[mcp]
files = ["~/.cursor/mcp.json"]
linger = "131s"
sleep_after = "132s"
wake_timeout = "133s"
relist_after = "134s"
[[definitions]]
schema = '{"type": "object", "properties": {"_tool": {"const": "rate"}, "_output": {"type": "object"}}}'
activity = [{ profile = "narrow", activity = "a/b.c" }]
[permissions]
unknown = "guest"
[[profiles]]
name = "narrow"
scenarios = ["a", "b.c"]
permission = "admin"
[[profiles]]
name = "none"
scenarios = []
[[preferences]]
target = "tool:a/b.c"
enabled = false
approval = "require"
alias = "d"
description = "Says d"
parameters = '{"e": {"fixed": 1}}'
priority = -7
pinned = true
[[preferences]]
scope = "profile:narrow"
target = "tag:x"
approval = "skip"
[discovery]
vrooli = { enabled = false, path = "processes", max_scenarios = 103, rescan_interval = "104s" }
environment = { enabled = false, remote = true }
mdns = { enabled = false, trust = ["10.0.0.0/8", "name:lab-*"], types = ["_vrooli-tools._tcp", "_x._tcp.local."], max_instances = 21, port = 22, interfaces = ["lo", "loopback"], announce = true, name = "mine", id = "23" }
[refresh]
min_interval = "105s"
max_interval = "1h 46m"
default_lifetime = "107s"
forced_gap = "108s"
timeout = "109s"
connect_timeout = "110s"
concurrency = 111
max_body = "112 KiB"
max_pending_body = "113 KiB"
max_redirects = 13
max_tools = 121
max_tool = "122 KiB"
backoff_base = "114ms"
backoff_max = "115s"
max_scenarios = 116
[cache]
scope = "shared"
last_good = false
[protocol]
accept = "<3"
incompatible_interval = "117s"
incompatible_grace = "118h"
[health]
grace = "119s"
failures = 120
isolation_count = 127
isolation_share = 28
isolation_window = "129s"
isolation_max = "130s"
[naming]
style = "always"
[state]
path = "~/s.db"
[views]
max_bytes = "2GiB"
[events]
ring = 121
ring_bytes = "122 KiB"
reader_queue = 123
max_subscribers = 124
keep_alive = "125s"
linger = "126s"

[calls]
approval_token = "0123456789abcdef"
usage_interval = "133s"
tool_metrics = true
audit = "audit.jsonl"
audit_arguments = true
audit_max_size = "131 KiB"
audit_keep = 132
log_payloads = "139 KiB"

[turns]
keep = "134s"
max = 135
kept_bytes = "136 KiB"
max_calls = 137
max_result_bytes = "138 KiB"
"#;

#[test]
fn every_key_reaches_its_own_field() {
    let machine = Machine::new().file(EVERYTHING);
    assert_eq!(machine.config(), everything(&machine));
}

fn every_server_key(server: &mut ServerConfig) {
    server.listen = "[::1]:0".parse().unwrap();
    server.allowed_hosts = vec!["tools.example".into(), "[::2]".into()];
    server.allowed_origins = vec![
        "https://chat.example".into(),
        "http://localhost:3000".into(),
    ];
    server.max_body = 101;
    server.max_connections = 103;
    server.stop_timeout = Duration::from_millis(102);
    server.held_bytes = 7 << 20;
    server.ready_timeout = Duration::ZERO;
    server.rpc_socket = Some("/run/callsheet/rpc.sock".into());
}

fn everything(machine: &Machine) -> Config {
    let mut expected = Config::for_state(machine.path("home/s.db"));
    let secs = Duration::from_secs;
    let millis = Duration::from_millis;
    expected.pins = PinMode::Off;
    expected.server.operator_token = Some(Secret::new("0123456789abcdef"));
    every_server_key(&mut expected.server);
    let scenario = |name: &str, url: &str, protocol: Option<&str>| StaticScenario {
        name: name.parse().unwrap(),
        target: HttpTarget {
            login: Some(name.parse().unwrap()),
            may_use_proxy: true,
            ..HttpTarget::at(url.parse().unwrap())
        }
        .into(),
        protocol: protocol.map(Into::into),
        sleep_after: None,
    };
    expected.scenarios = vec![
        scenario("a", "http://127.0.0.1:1", None),
        scenario(
            "b.c",
            "https://u:p@tools.example/base",
            Some("tool-discovery"),
        ),
    ];
    (expected.modules, expected.mcp, expected.preferences) =
        (modules(), mcp(machine), preferences());
    (expected.unknown_level, expected.profiles) = (UnknownLevel::Guest, profiles());
    (expected.definitions, expected.naming) = (definitions(), NamingStyle::Always);
    let vrooli = &mut expected.discovery.vrooli;
    // A relative path counts from the folder of the file.
    (vrooli.enabled, vrooli.path) = (false, Some(machine.path("work/processes")));
    (vrooli.max_scenarios, vrooli.rescan_interval) = (103, secs(104));
    (
        expected.discovery.environment.enabled,
        expected.discovery.environment.remote,
    ) = (false, true);
    let network = Subnet::new("10.0.0.0".parse().unwrap(), 8).unwrap();
    expected.discovery.mdns = MdnsConfig {
        enabled: false,
        trust: MdnsTrust::Listed(vec![
            TrustPattern::Network(network),
            TrustPattern::Name("lab-*".into()),
        ]),
        types: vec!["_vrooli-tools._tcp".into(), "_x._tcp".into()],
        max_instances: 21,
        port: 22,
        interfaces: vec!["lo".into(), "loopback".into()],
        announce: true,
        name: "mine".into(),
        id: Some("23".into()),
    };
    let refresh = &mut expected.refresh;
    (refresh.min_interval, refresh.max_interval) = (secs(105), secs(106 * 60));
    (refresh.default_lifetime, refresh.forced_gap) = (secs(107), secs(108));
    (refresh.timeout, refresh.connect_timeout) = (secs(109), secs(110));
    (refresh.concurrency, refresh.max_body, refresh.max_redirects) = (111, 112 * 1024, 13);
    refresh.max_pending_body = 113 * 1024;
    (refresh.max_tools, refresh.max_tool) = (121, 122 * 1024);
    (
        refresh.backoff_base,
        refresh.backoff_max,
        refresh.max_scenarios,
    ) = (millis(114), secs(115), 116);
    expected.cache = CacheConfig {
        scope: CacheScope::Shared,
        last_good: false,
    };
    let protocol = &mut expected.protocol;
    protocol.accept = AcceptedVersions::parse("<3").unwrap();
    (protocol.incompatible_interval, protocol.incompatible_grace) = (secs(117), secs(118 * 3600));
    (expected.health.grace, expected.health.failures) = (secs(119), 120);
    (
        expected.health.isolation_count,
        expected.health.isolation_share,
    ) = (127, 28);
    (
        expected.health.isolation_window,
        expected.health.isolation_max,
    ) = (secs(129), secs(130));
    expected.views.max_bytes = 2 << 30;
    let events = &mut expected.events;
    (events.ring, events.ring_bytes, events.reader_queue) = (121, 122 * 1024, 123);
    (events.max_subscribers, events.keep_alive, events.linger) = (124, secs(125), secs(126));
    every_call(machine, &mut expected.calls);
    expected
}

fn definitions() -> Vec<Definition> {
    let rate = r#"{"type": "object", "properties": {"_tool": {"const": "rate"}, "_output": {"type": "object"}}}"#;
    vec![
        Definition::parse(None, rate)
            .unwrap()
            .run_for("narrow", "a/b.c"),
    ]
}

fn every_call(machine: &Machine, calls: &mut CallsConfig) {
    (calls.tool_metrics, calls.audit, calls.audit_arguments) =
        (true, Some(machine.path("work/audit.jsonl")), true);
    (calls.audit_max_size, calls.audit_keep) = (131 * 1024, 132);
    calls.wake_timeout = Duration::from_secs(133);
    calls.log_payloads = 139 * 1024;
    let turns = &mut calls.turns;
    (turns.keep, turns.max, turns.kept_bytes) = (Duration::from_secs(134), 135, 136 * 1024);
    (turns.max_calls, turns.max_result_bytes) = (137, 138 * 1024);
    (calls.approval_token, calls.usage_interval) = (
        Some(Secret::new("0123456789abcdef")),
        Duration::from_secs(133),
    );
}

fn preferences() -> PreferenceSet {
    let mut set = PreferenceSet::default();
    let settings = Settings {
        enabled: Some(false),
        approval: Some(ApprovalPolicy::Require),
        alias: Some(PublishedName::alias("d").unwrap()),
        priority: Some(-7),
        pinned: Some(true),
        pins: None,
        description: Some("Says d".into()),
        parameters: Some(ParameterOverrides::parse(r#"{"e":{"fixed":1}}"#).unwrap()),
    };
    set.set(Scope::Global, "tool:a/b.c".parse().unwrap(), settings);
    let hold = Settings {
        pins: Some(PinMode::Hold),
        ..Settings::default()
    };
    set.set(Scope::Global, "scenario:b.c".parse().unwrap(), hold);
    let skip = Settings {
        approval: Some(ApprovalPolicy::Skip),
        ..Settings::default()
    };
    set.set(
        "profile:narrow".parse().unwrap(),
        "tag:x".parse().unwrap(),
        skip,
    );
    set
}

fn profiles() -> BTreeMap<String, Profile> {
    let narrow = ["a", "b.c"].map(|name| name.parse().unwrap()).into();
    let unknown = UnknownLevel::Guest;
    BTreeMap::from([
        (
            "narrow".into(),
            Profile {
                scenarios: Some(narrow),
                permission: Some(Permission::Admin),
                unknown,
                searches: None,
                is_default: false,
            },
        ),
        (
            "none".into(),
            Profile {
                scenarios: Some(BTreeSet::new()),
                permission: None,
                unknown,
                searches: None,
                is_default: false,
            },
        ),
    ])
}

fn mcp(machine: &Machine) -> McpConfig {
    let target = EntryTarget::Program {
        command: "x".into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
    };
    let entry = ClientEntry {
        target,
        disabled: false,
        sleep_after: None,
        ignored: Vec::new(),
    };
    let servers = vec![ReadEntry {
        name: "m".into(),
        entry: Ok(entry),
    }];
    McpConfig {
        files: vec![machine.path("home/.cursor/mcp.json")],
        servers,
        linger: Duration::from_secs(131),
        sleep_after: Some(Duration::from_secs(132)),
        relist_after: Duration::from_secs(134),
    }
}

fn modules() -> ModulesConfig {
    ModulesConfig {
        services: BTreeMap::from([(
            "m_1".parse().unwrap(),
            "http://127.0.0.1:2".parse().unwrap(),
        )]),
        slow: ["m_1", "gone"].map(|name| name.parse().unwrap()).into(),
        slow_timeout: Duration::from_secs(61),
        timeout: Duration::from_secs(62),
        token: Some(Secret::new("63").into()),
        tokens: BTreeMap::from([("m_1".parse().unwrap(), Secret::new("64").into())]),
    }
}

// --- layers ---

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_the_defaults() {
    let machine = Machine::new();
    let origin = |machine: &Machine| machine.shown("server.listen");
    assert_eq!(
        origin(&machine),
        ("\"127.0.0.1:7400\"".into(), ValueOrigin::Default)
    );

    let machine = machine.file("# mine\n[server]\nlisten = \"127.0.0.1:1\"\nmax_body = 7\n");
    let path = machine.path("work/callsheet.toml");
    let position = Some(Position { line: 3, column: 1 });
    assert_eq!(
        origin(&machine),
        (
            "\"127.0.0.1:1\"".into(),
            ValueOrigin::File {
                path: path.clone(),
                position
            }
        )
    );

    let machine = machine.env("CALLSHEET_SERVER__LISTEN", "127.0.0.1:2");
    assert_eq!(
        origin(&machine).1,
        ValueOrigin::Environment("CALLSHEET_SERVER__LISTEN".into())
    );
    assert_eq!(machine.config().server.listen.port(), 2);

    let machine = machine.flag("server.listen", "127.0.0.1:3", "--listen");
    assert_eq!(
        origin(&machine),
        (
            "\"127.0.0.1:3\"".into(),
            ValueOrigin::Flag("--listen".into())
        )
    );
    let loaded = machine.load().unwrap();
    assert_eq!(loaded.config.server.listen.port(), 3);
    // What the upper layers leave alone stays.
    assert_eq!(loaded.config.server.max_body, 7);
    assert_eq!(loaded.file, Some(path));
}

#[test]
fn origins_read_well() {
    let machine = Machine::new()
        .file("refresh.timeout = \"2s\"\nserver.max_body = 5\n")
        .env("CALLSHEET_HEALTH__FAILURES", "9")
        .flag("naming.style", "always", "--naming");
    let root = format!("{}/", machine.root.path().display());
    let text = |key: &str| machine.shown(key).1.to_string().replace(&root, "");
    assert_eq!(text("refresh.timeout"), "file work/callsheet.toml:1");
    assert_eq!(text("server.max_body"), "file work/callsheet.toml:2");
    assert_eq!(
        text("health.failures"),
        "environment CALLSHEET_HEALTH__FAILURES"
    );
    assert_eq!(text("naming.style"), "flag --naming");
    assert_eq!(text("state.path"), "default");
    // A name may have dots in it.
    let machine = Machine::new().file("[modules]\n\"a.b\" = \"http://h\"\n");
    assert_eq!(
        machine
            .shown("modules.\"a.b\"")
            .1
            .to_string()
            .rsplit(':')
            .next(),
        Some("2")
    );
}

#[test]
fn values_are_shown_in_the_order_of_the_reference_and_without_credentials() {
    let machine = Machine::new().file(
        "[[scenarios]]\nname = \"a\"\nurl = \"http://user:se@cret@127.0.0.1:1/x@y\"\n\n[[scenarios]]\nname = \"b\"\nurl = \"http://token@h\"\n",
    );
    let values = machine.load().unwrap().values;
    let scenarios: Vec<_> = values
        .iter()
        .filter(|value| value.key.starts_with("scenarios"))
        .map(|value| {
            format!(
                "{} = {} {}",
                value.key,
                value.value,
                value.origin.to_string().rsplit(':').next().unwrap()
            )
        })
        .collect();
    assert_eq!(
        scenarios,
        [
            "scenarios[0].name = \"a\" 2",
            "scenarios[0].url = \"http://***@127.0.0.1:1/x@y\" 3",
            "scenarios[1].name = \"b\" 6",
            "scenarios[1].url = \"http://***@h\" 7",
        ]
    );
    assert!(values.iter().all(|value| !value.value.contains("cret")));
    let order: Vec<_> = values
        .iter()
        .filter(|value| !is_listed(&value.key))
        .map(|v| v.key.clone())
        .collect();
    // The daemon's id has no value until the daemon has made one.
    let unset = |key: &str| {
        ["discovery.mdns.id", "permissions.default_profile"].contains(&key)
            || key.ends_with("_token")
            || key == "module_settings.token"
    };
    let expected: Vec<_> = keys()
        .into_iter()
        .filter(|key| !is_listed(key) && !unset(key))
        .collect();
    assert_eq!(order, expected);
    assert_eq!(
        Machine::new().shown("scenarios"),
        ("[]".into(), ValueOrigin::Default)
    );
}

#[test]
fn the_environment_gives_texts_numbers_switches_sizes_and_lists() {
    let machine = Machine::new()
        .env("CALLSHEET_PROTOCOL__ACCEPT", "1")
        .env("CALLSHEET_STATE__PATH", "2026")
        .env("CALLSHEET_REFRESH__TIMEOUT", "3s")
        .env("CALLSHEET_REFRESH__CONCURRENCY", "4")
        .env("CALLSHEET_REFRESH__MAX_BODY", "5 KiB")
        .env("CALLSHEET_VIEWS__MAX_BYTES", "6")
        .env("CALLSHEET_DISCOVERY__VROOLI__ENABLED", "false")
        .env("callsheet_ignored", "1")
        .env("CALLSHEET_SERVER__ALLOWED_HOSTS", "[a.example, 10.0.0.1]")
        .env(
            "CALLSHEET_SCENARIOS",
            "[{name = a, url = http://127.0.0.1:15000}]",
        );
    let config = machine.config();
    assert_eq!(
        config.protocol.accept,
        AcceptedVersions::parse("1").unwrap()
    );
    assert_eq!(config.state.path, machine.path("work/2026"));
    assert_eq!(config.refresh.timeout, Duration::from_secs(3));
    assert_eq!(config.refresh.concurrency, 4);
    assert_eq!(config.refresh.max_body, 5120);
    assert_eq!(config.views.max_bytes, 6);
    assert!(!config.discovery.vrooli.enabled);
    assert_eq!(config.server.allowed_hosts, ["a.example", "10.0.0.1"]);
    assert_eq!(
        config.scenarios[0].target.url().as_str(),
        "http://127.0.0.1:15000/"
    );
    assert_eq!(
        machine.shown("scenarios[0].url").1,
        ValueOrigin::Environment("CALLSHEET_SCENARIOS".into())
    );
}

#[test]
fn trust_is_one_word_or_a_list_in_every_layer() {
    let trust = |machine: &Machine| machine.config().discovery.mdns.trust;
    let machine = Machine::new();
    assert_eq!(trust(&machine), MdnsTrust::Local);
    let machine = machine.file("discovery.mdns.trust = [\"fd00::/8\"]\n");
    let network = TrustPattern::Network(Subnet::new("fd00::".parse().unwrap(), 8).unwrap());
    assert_eq!(trust(&machine), MdnsTrust::Listed(vec![network]));
    assert_eq!(machine.shown("discovery.mdns.trust").0, "[\"fd00::/8\"]");
    let machine = machine.env(
        "CALLSHEET_DISCOVERY__MDNS__TRUST",
        "[10.0.0.1, \"name:lab-*\"]",
    );
    let network = TrustPattern::Network(Subnet::new("10.0.0.1".parse().unwrap(), 32).unwrap());
    assert_eq!(
        trust(&machine),
        MdnsTrust::Listed(vec![network, TrustPattern::Name("lab-*".into())])
    );
    let machine = machine.flag("discovery.mdns.trust", "none", "--trust");
    assert_eq!(trust(&machine), MdnsTrust::None);
}

#[test]
fn a_list_in_an_upper_layer_replaces_the_lower_one() {
    let machine = Machine::new()
        .file("server.allowed_hosts = [\"a\", \"b\"]\n")
        .env("CALLSHEET_SERVER__ALLOWED_HOSTS", "[c]");
    assert_eq!(machine.config().server.allowed_hosts, ["c"]);
}

// --- which file ---

#[test]
fn the_first_of_the_usual_places_is_read_and_no_parent_folder() {
    let port = |port: u16| format!("server.listen = \"127.0.0.1:{port}\"\n");
    let mut machine = Machine::new();
    machine.write("callsheet.toml", &port(1));
    assert_eq!(
        machine.load().unwrap().file,
        None,
        "a parent folder's file is not ours"
    );

    machine.write("etc/callsheet/callsheet.toml", &port(2));
    assert_eq!(machine.config().server.listen.port(), 2);
    machine.write("home/.config/callsheet/callsheet.toml", &port(3));
    assert_eq!(machine.config().server.listen.port(), 3);
    let xdg = machine.write("xdg/callsheet/callsheet.toml", &port(4));
    machine = machine.env(
        "XDG_CONFIG_HOME",
        xdg.parent().unwrap().parent().unwrap().to_str().unwrap(),
    );
    assert_eq!(machine.config().server.listen.port(), 4);
    machine = machine.file(&port(5));
    assert_eq!(machine.config().server.listen.port(), 5);
    let named = machine.write("named.toml", &port(6));
    machine = machine.env("CALLSHEET_CONFIG", named.to_str().unwrap());
    assert_eq!(machine.config().server.listen.port(), 6);
    machine.write("flag.toml", &port(7));
    machine.options.file = Some("../flag.toml".into());
    let loaded = machine.load().unwrap();
    assert_eq!(loaded.config.server.listen.port(), 7);
    assert_eq!(loaded.file, Some(machine.path("work/../flag.toml")));
}

#[test]
fn a_named_file_has_to_be_there() {
    let mut machine = Machine::new().file("");
    machine.options.file = Some("missing.toml".into());
    assert_eq!(
        machine.error(),
        "work/missing.toml: the configuration cannot be read: No such file or directory (os error 2)\n  \
         hint: make it a readable text file, or name another one with `--config`"
    );
}

#[test]
fn the_database_follows_xdg_state_home() {
    let machine = Machine::new().env("XDG_STATE_HOME", "/var/state");
    assert_eq!(
        machine.config().state.path,
        PathBuf::from("/var/state/callsheet/state.db")
    );
    // The XDG specification has relative values ignored.
    let machine = Machine::new().env("XDG_STATE_HOME", "state");
    assert_eq!(machine.config(), machine.defaults());
}

#[test]
fn without_a_home_the_database_needs_a_path_and_vrooli_is_left_out() {
    let mut machine = Machine::new();
    machine.options.env.clear();
    assert_eq!(
        machine.error(),
        "state.path: there is no home folder to keep the database in\n  \
         hint: set it, for example with `CALLSHEET_STATE__PATH=/var/lib/callsheet/state.db`"
    );
    machine = machine.env("CALLSHEET_STATE__PATH", "/s.db");
    let mut expected = Config::for_state("/s.db");
    expected.discovery.mdns.enabled = true;
    assert_eq!(machine.config(), expected);
    assert_eq!(
        machine.file("discovery.vrooli.path = \"~/p\"\n").error(),
        "work/callsheet.toml:1:25: discovery.vrooli.path: \"~/p\" needs a home folder, and none is known\n  \
         hint: write the whole path"
    );
}

#[test]
fn the_process_gives_its_environment_and_folders() {
    let options = LoadOptions::from_process();
    assert_eq!(options.cwd, std::env::current_dir().unwrap());
    assert_eq!(options.file, None);
    assert_eq!(options.etc, PathBuf::from("/etc"));
    assert!(
        options
            .env
            .iter()
            .any(|(name, value)| name == "CARGO_MANIFEST_DIR" && !value.is_empty())
    );
}
