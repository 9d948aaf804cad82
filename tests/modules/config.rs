//! `[modules]`, `[module_settings]` and what profiles say of modules: the settings of the modules'
//! first consumer, as they are.
//!
//! Rows of the original's list of features: S4-32 (with the switch), S4-42, S4-52 to S4-54, S4-65
//! to S4-67, S4-77.

use std::collections::BTreeSet;
use std::time::Duration;

use callsheet::config::ModulesConfig;
use callsheet::model::{Permission, Profile, ScenarioName, Secret, SecretSource, UnknownLevel};

use crate::support::config::Machine;

fn name(text: &str) -> ScenarioName {
    text.parse().unwrap()
}

/// The map of services and the settings beside it, copied by hand: fourteen modules whose keys have
/// underscores, at hosts with hyphens.
const ORIGINAL: &str = r#"
[modules]
research = "http://research:8000"
file_manager = "http://file-manager:8000"
code_executor = "http://code-executor:8000"
knowledge = "http://knowledge:8000"
atlassian = "http://atlassian:8000"
claude_code = "http://claude-code:8000"
deployer = "http://deployer:8000"
scheduler = "http://scheduler:8000"
garmin = "http://garmin:8000"
renpho_biometrics = "http://renpho-biometrics:8000"
location = "http://location:8000"
git_platform = "http://git-platform:8000"
project_planner = "http://project-planner:8000"
injective = "http://injective:8000"

[module_settings]
slow_modules = "garmin,renpho_biometrics,claude_code,deployer"

[[profiles]]
name = "guests"
allowed_modules = "research,file_manager,code_executor,knowledge"
permission = "guest"
"#;

#[test]
fn the_map_of_services_is_taken_as_it_is() {
    let config = Machine::new().file(ORIGINAL).config();
    assert_eq!(config.modules.services.len(), 14);
    assert_eq!(
        config.modules.services[&name("git_platform")].as_str(),
        "http://git-platform:8000/"
    );
    let known = config.static_scenarios();
    assert_eq!(known.len(), 14);
    assert!(
        known
            .iter()
            .all(|scenario| scenario.protocol.as_deref() == Some("module"))
    );
    // S4-10: ten seconds for a manifest, as for every scenario.
    assert_eq!(config.refresh.timeout, Duration::from_secs(10));
    let slow: Vec<_> = config
        .modules
        .slow
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        slow,
        ["claude_code", "deployer", "garmin", "renpho_biometrics"]
    );
    for (module, seconds) in [("garmin", 120), ("research", 30)] {
        assert_eq!(
            config.modules.timeout_of(&name(module)),
            Duration::from_secs(seconds),
            "{module}"
        );
    }
    let guests = ["research", "file_manager", "code_executor", "knowledge"]
        .map(name)
        .into();
    let expected = Profile {
        scenarios: Some(guests),
        permission: Some(Permission::Guest),
        ..Profile::default()
    };
    assert_eq!(config.profiles["guests"], expected);
}

#[test]
fn the_map_may_also_stand_in_the_environment() {
    let machine = Machine::new()
        .env(
            "CALLSHEET_MODULES",
            "{research=\"http://research:8000\", deployer=\"http://deployer:8000\"}",
        )
        .env(
            "CALLSHEET_MODULES__GIT_PLATFORM",
            "http://git-platform:8000",
        )
        .env(
            "CALLSHEET_MODULE_SETTINGS__SLOW_MODULES",
            "deployer, research",
        )
        .env("CALLSHEET_MODULE_SETTINGS__TOKEN", "topsecret");
    let modules = machine.config().modules;
    let names: Vec<_> = modules.services.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["deployer", "git_platform", "research"]);
    assert_eq!(modules.slow.len(), 2);
    assert_eq!(
        modules.token_of(&name("research")),
        Some(&Secret::new("topsecret").into())
    );
}

#[test]
fn lists_of_names_may_be_texts() {
    let written = [
        "[\"a\", \"b\"]",
        "\"a,b\"",
        "\" a , b ,\"",
        "'[\"a\", \"b\"]'",
    ];
    for list in written {
        let file = format!(
            "[module_settings]\nslow_modules = {list}\n[[profiles]]\nname = \"p\"\nallowed_modules = {list}\nscenarios = [\"c\"]\n"
        );
        let config = Machine::new().file(&file).config();
        assert_eq!(
            config.modules.slow,
            BTreeSet::from([name("a"), name("b")]),
            "{list}"
        );
        // One key under two names.
        assert_eq!(
            config.profiles["p"].scenarios,
            Some(BTreeSet::from([name("a"), name("b"), name("c")])),
            "{list}"
        );
    }
    let nobody = Machine::new()
        .file("[[profiles]]\nname = \"p\"\nallowed_modules = []\n")
        .config();
    assert_eq!(nobody.profiles["p"].scenarios, Some(BTreeSet::new()));
}

#[test]
fn without_anything_there_are_no_modules() {
    assert_eq!(Machine::new().config().modules, ModulesConfig::default());
    assert_eq!(Machine::new().config().unknown_level, UnknownLevel::Refuse);
}

#[test]
fn tokens_are_never_shown() {
    let machine = Machine::new().file(
        "[modules]\na = \"http://u:cret@h:1\"\n[module_settings]\ntoken = \"cret1\"\ntokens = { a = \"cret2\" }\n",
    );
    let loaded = machine.load().unwrap();
    let shown: Vec<_> = loaded
        .values
        .iter()
        .filter(|value| value.key.starts_with("module"))
        .collect();
    let text: Vec<_> = shown
        .iter()
        .map(|value| format!("{} = {}", value.key, value.value))
        .collect();
    assert_eq!(
        text,
        [
            "modules.a = \"http://***@h:1\"",
            "module_settings.slow_modules = []",
            "module_settings.tool_execution_timeout = \"120s\"",
            "module_settings.default_timeout = \"30s\"",
            "module_settings.token = \"***\"",
            "module_settings.tokens.a = \"***\"",
        ]
    );
    assert!(
        shown[0].origin.to_string().ends_with("callsheet.toml:2"),
        "{}",
        shown[0].origin
    );
    assert!(!format!("{:?}", loaded.config.modules.token).contains("cret"));
    let config = Machine::new()
        .file("[calls]\napproval_token = \"0123456789abcret\"\n")
        .load()
        .unwrap();
    let shown = config
        .values
        .iter()
        .find(|value| value.key == "calls.approval_token")
        .unwrap();
    assert_eq!(shown.value.as_str(), "\"***\"");
    assert!(!format!("{:?}", config.config).contains("abcret"));
    for (token, reason) in [
        ("short-cret", "less than 16 characters"),
        ("cret with many blanks in it", "no bearer token"),
    ] {
        let error = Machine::new()
            .file(&format!("[calls]\napproval_token = \"{token}\"\n"))
            .error();
        assert!(
            error.contains("calls.approval_token")
                && error.contains(reason)
                && !error.contains("cret"),
            "{error}"
        );
    }
    for file in [
        "[module_settings]\ntoken = \"cret 1\"\n",
        "[module_settings]\ntoken = 5137\n",
    ] {
        let error = Machine::new().file(file).error();
        assert!(error.contains("module_settings.token"), "{error}");
        assert!(
            !error.contains("cret") && !error.contains("5137"),
            "{error}"
        );
    }
}

#[test]
fn tokens_are_written_like_every_other_secret() {
    let hour = Duration::from_secs(3600);
    let printed = |every| SecretSource::Command {
        command: vec!["op".to_owned(), "read".to_owned()],
        every,
    };
    for (text, expected, shown) in [
        (
            "\"topsecret\"",
            SecretSource::Text(Secret::new("topsecret")),
            "\"***\"",
        ),
        (
            "{ env = \"TOKEN\" }",
            SecretSource::Text(Secret::new("topsecret")),
            "{ env = \"TOKEN\" }",
        ),
        (
            "{ command = [\"op\", \"read\"] }",
            printed(hour),
            "{ command = [\"op\", \"read\"] }",
        ),
    ] {
        let machine = Machine::new()
            .file(&format!(
                "[modules]\na = \"http://h:1\"\n[module_settings]\ntoken = {text}\ntokens = {{ a = {text} }}\n"
            ))
            .env("TOKEN", "topsecret");
        let modules = machine.config().modules;
        assert_eq!(modules.token.as_ref(), Some(&expected), "{text}");
        assert_eq!(modules.tokens[&name("a")], expected, "{text}");
        assert_eq!(machine.shown("module_settings.token").0, shown);
        assert_eq!(machine.shown("module_settings.tokens.a").0, shown);
    }
    let machine = Machine::new()
        .file("[module_settings]\ntoken = { file = \"keys/token\", key = \"a.b\" }\n");
    let file = SecretSource::File {
        path: machine.path("work/keys/token"),
        key: Some("a.b".to_owned()),
    };
    assert_eq!(
        machine.config().modules.token,
        Some(file),
        "a file is not read before it is needed"
    );

    for (text, expected) in [
        ("{ env = \"NOWHERE\" }", "the variable `NOWHERE` is not set"),
        ("{}", "write exactly one place"),
        (
            "{ env = \"TOKEN\", file = \"f\" }",
            "write exactly one place",
        ),
        ("{ fle = \"f\" }", "did you mean `file`?"),
        ("[\"topsecret\"]", "expected a text, or where one is"),
    ] {
        let error = Machine::new()
            .file(&format!("[module_settings]\ntoken = {text}\n"))
            .env("TOKEN", "topsecret")
            .error();
        assert!(
            error.contains("module_settings.token") && error.contains(expected),
            "{text}: {error}"
        );
        assert!(!error.contains("topsecret"), "{error}");
    }
    // Programs are taken from files only; a module may be called like the key.
    for (variable, text) in [
        ("TOKEN", "{command = [sh]}"),
        ("TOKENS", "{a = {command = [sh]}}"),
    ] {
        let machine = Machine::new().env("CALLSHEET_MODULES", "{a = \"http://h:1\"}");
        let error = machine
            .env(&format!("CALLSHEET_MODULE_SETTINGS__{variable}"), text)
            .error();
        assert!(
            error.contains("taken from the configuration file only"),
            "{variable}: {error}"
        );
    }
    let machine = Machine::new().env("CALLSHEET_MODULES", "{command = \"http://h:1\"}");
    assert!(
        machine
            .env("CALLSHEET_MODULE_SETTINGS__TOKENS", "{command = topsecret}")
            .load()
            .is_ok()
    );
}

#[test]
fn what_cannot_be_is_told_with_its_place() {
    let error = Machine::new()
        .file(
            r#"[[scenarios]]
name = "files"
url = "http://127.0.0.1:1"

[modules]
files = "http://127.0.0.1:2"
"a/b" = "http://127.0.0.1:3"
c = "127.0.0.1:4"
d = 5

[module_settings]
slow_modules = ["x/y"]
tool_execution_timeout = 120
tokens = { nobody = "t" }

[permissions]
unknown = "owner"

[[profiles]]
name = "p"
permission = "root"
"#,
        )
        .error();
    let lines: Vec<_> = error
        .lines()
        .filter(|line| line.starts_with("work/"))
        .map(|line| line.trim_start_matches("work/callsheet.toml:"))
        .collect();
    assert_eq!(
        lines,
        [
            "6:9: modules.files: `files` is already the name of scenarios[0]",
            "7:9: modules.\"a/b\": \"a/b\" is not a scenario name",
            "8:5: modules.c: \"127.0.0.1:4\" is not an address: relative URL without a base",
            "9:5: modules.d: expected a text, found the number 5",
            "12:17: module_settings.slow_modules[0]: \"x/y\" is not a scenario name",
            "13:26: module_settings.tool_execution_timeout: expected a text, found the number 120",
            "14:21: module_settings.tokens.nobody: there is no module called `nobody`",
            "17:11: permissions.unknown: \"owner\" is not such a reading",
            "21:14: profiles[0].permission: `root` is not a level of permission: use `guest`, `user`, `admin` or `owner`",
        ]
    );
}

/// S4-32: with the switch an unknown level of a user counts as guest, as in the original; else it
/// is refused (see above).
#[test]
fn an_unknown_level_is_guest_where_that_is_wanted() {
    let file =
        "[permissions]\nunknown = \"guest\"\n[[profiles]]\nname = \"p\"\npermission = \"root\"\n";
    let profile = &Machine::new().file(file).config().profiles["p"];
    assert_eq!(profile.permission, Some(Permission::Guest));
    assert_eq!(profile.unknown, UnknownLevel::Guest);
}
