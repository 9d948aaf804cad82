//! `[[scenarios]]`: programs to start, and credentials for addresses.

use callsheet::config::StaticScenario;
use callsheet::model::{Auth, Secret, StdioTarget, Target};

use crate::support::config::Machine;

/// The only scenario of a file.
fn target(machine: &Machine) -> Target {
    machine.config().scenarios.pop().unwrap().target
}

fn stdio(machine: &Machine) -> StdioTarget {
    match target(machine) {
        Target::Stdio(target) => StdioTarget::clone(&target),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_is_taken_with_its_arguments_environment_and_folder() {
    let text = "[[scenarios]]\nname = \"files\"\ncommand = \"npx\"\nargs = [\"-y\", \"@scope/server, really\"]\ncwd = \"~/work\"\n\
                env = { A = \"plain\", B = { env = \"TOKEN\" }, C = { file = \"keys/c\" } }\n";
    let machine = Machine::new().file(text).env("TOKEN", "of-a-variable");
    machine.write("work/keys/c", "of-a-file\n");
    let program = stdio(&machine);
    assert_eq!(program.to_string(), "npx -y '@scope/server, really'");
    assert_eq!(program.cwd().unwrap(), machine.path("home/work"));
    let env: Vec<_> = program
        .env()
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(
        env,
        [("A", "plain"), ("B", "of-a-variable"), ("C", "of-a-file")]
    );
    assert_eq!(
        machine.config().scenarios[0].protocol.as_deref(),
        Some("mcp")
    );

    // What is secret is shown nowhere, where it is may be.
    let values = machine.load().unwrap().values;
    let shown: Vec<_> = values
        .iter()
        .map(|value| format!("{} = {}", value.key, value.value))
        .collect();
    for line in [
        "scenarios[0].args = [\"-y\", \"@scope/server, really\"]",
        "scenarios[0].env.A = \"***\"",
        "scenarios[0].env.B = { env = \"TOKEN\" }",
    ] {
        assert!(
            shown.iter().any(|shown| shown == line),
            "{line} is missing in {shown:#?}"
        );
    }
    let all = format!("{shown:?} {:?}", machine.load().unwrap());
    assert!(
        ["plain", "of-a-variable", "of-a-file"]
            .iter()
            .all(|secret| !all.contains(secret)),
        "{all}"
    );

    let relative =
        Machine::new().file("[[scenarios]]\nname = \"own\"\ncommand = \"./bin/server\"\n");
    let command = stdio(&relative).command().to_owned();
    assert_eq!(
        std::path::Path::new(&command),
        relative.path("work/./bin/server")
    );
}

#[test]
fn credentials_of_an_address_go_to_it() {
    let text = "[[scenarios]]\nname = \"web\"\nurl = \"http://h\"\nauth = { env = \"TOKEN\" }\nheaders = { X-Team = \"tools\" }\n";
    let machine = Machine::new().file(text).env("TOKEN", "t0ken");
    let target = target(&machine);
    let http = target.http().unwrap();
    assert_eq!(http.auth, Some(Auth::Bearer(Secret::new("t0ken").into())));
    assert_eq!(
        http.headers,
        [("x-team".parse().unwrap(), Secret::new("tools").into())]
    );
    assert!(!format!("{target:?}").contains("tools"));
    assert_eq!(machine.shown("scenarios[0].headers.X-Team").0, "\"***\"");
}

#[test]
fn what_contradicts_itself_is_refused_with_a_hint() {
    for (entry, message, hint) in [
        ("", "this scenario has no address", "or `command"),
        (
            "url = \"http://h\"\ncommand = \"x\"",
            "this scenario has a `url` too",
            "two entries",
        ),
        (
            "url = \"http://h\"\nargs = [\"x\"]",
            "it belongs to a scenario with a `command`",
            "take it out",
        ),
        (
            "command = \"x\"\nauth = \"topsecret\"",
            "it belongs to a scenario with a `url`",
            "take it out",
        ),
        ("command = \"\"", "it is empty", "write a name or path"),
        (
            "command = \"x\"\nenv = { \"A=B\" = \"topsecret\" }",
            "it is not a name of a variable",
            "letters",
        ),
        (
            "command = \"x\"\nenv = { A = 5 }",
            "expected a text, or where one is, found a number",
            "{ env =",
        ),
        (
            "command = \"x\"\nenv = { A = { env = \"MISSING\" } }",
            "the variable `MISSING` is not set",
            "set it",
        ),
        (
            "command = \"x\"\nenv = { A = { file = \"none\" } }",
            "work/none cannot be used",
            "text alone",
        ),
        (
            "command = \"x\"\nenv = { A = { file = \"/\" } }",
            "it is not a file",
            "text alone",
        ),
        (
            "command = \"x\"\nenv = { A = {} }",
            "write exactly one place",
            "one of",
        ),
        (
            "command = \"x\"\nenv = { A = { envv = \"topsecret\" } }",
            "unknown key",
            "did you mean `env`?",
        ),
        (
            "url = \"http://h\"\nheaders = { Host = \"topsecret\" }",
            "the header `Host` is set by the daemon itself",
            "take it out",
        ),
        (
            "url = \"http://h\"\nheaders = { Mcp-Method = \"topsecret\" }",
            "is set by the daemon itself",
            "take it out",
        ),
        (
            "url = \"http://h\"\nheaders = { \"a b\" = \"topsecret\" }",
            "is not a name of a header",
            "X-Api-Key",
        ),
        (
            "url = \"http://h\"\nheaders = { A = \"hu\\nsh\" }",
            "it can be no value of a header",
            "visible",
        ),
        (
            "url = \"http://h\"\nauth = \"hu sh\"",
            "it can be no bearer token",
            "without blanks",
        ),
        (
            "url = \"http://h\"\nauth = \"topsecret\"\nheaders = { Authorization = \"topsecret\" }",
            "`auth` sets this header too",
            "one",
        ),
    ] {
        let error = Machine::new()
            .file(&format!("[[scenarios]]\nname = \"s\"\n{entry}\n"))
            .error();
        assert!(
            error.contains(message) && error.contains(hint),
            "{entry}: {error}"
        );
        assert!(
            !error.contains("topsecret") && error.contains("callsheet.toml:"),
            "{error}"
        );
    }
}

#[test]
fn a_command_comes_from_a_file_only() {
    for value in [
        "[{name = s, command = sh}]",
        "[{name = s, url = http://h, args = [x]}]",
    ] {
        let error = Machine::new().env("CALLSHEET_SCENARIOS", value).error();
        assert!(
            error.contains("from the configuration file only")
                && error.contains("CALLSHEET_SCENARIOS"),
            "{error}"
        );
        let error = Machine::new().flag("scenarios", value, "--set").error();
        assert!(
            error.contains("from the configuration file only"),
            "{error}"
        );
    }
    // An address may come from there, with its credential.
    let machine = Machine::new().env(
        "CALLSHEET_SCENARIOS",
        "[{name = s, url = http://h, auth = topsecret}]",
    );
    assert_eq!(
        target(&machine).http().unwrap().auth,
        Some(Auth::Bearer(Secret::new("topsecret").into()))
    );
}

#[test]
fn what_an_mcp_server_may_request_is_allowed_by_name() {
    let text = "[[scenarios]]\nname = \"files\"\nurl = \"http://h/mcp\"\ninteraction = [\"roots\", \"sampling\"]\nroots = [\"/srv/files\", \"~/work\"]\ninstructions = true\nrevision = \"2025-06-18\"\n";
    let machine = Machine::new().file(text);
    let target = target(&machine);
    let interaction = target.interaction().unwrap();
    assert!(
        interaction.roots
            && interaction.sampling
            && !interaction.elicitation
            && interaction.instructions
    );
    assert_eq!(interaction.folders[0].as_str(), "file:///srv/files");
    assert!(
        interaction.folders[1].as_str().ends_with("/home/work"),
        "{:?}",
        interaction.folders
    );
    assert_eq!(target.revision(), Some("2025-06-18"));
    for (line, part) in [
        (
            "interaction = [\"everything\"]",
            "known are: elicitation, sampling, roots",
        ),
        ("roots = [\"/srv\"]", "may not request folders"),
        ("revision = \"2020-01-01\"", "known are: 2026-07-28"),
    ] {
        let text = format!("[[scenarios]]\nname = \"files\"\ncommand = \"srv\"\n{line}\n");
        let error = Machine::new().file(&text).error();
        assert!(error.contains(part), "{line}: {error}");
    }
}

/// As for `callsheet check`, which takes the address of a list for that of its scenario.
#[test]
fn an_address_may_have_the_route_of_the_list_at_its_end() {
    for (written, base) in [
        ("http://h:1/api/v1/tools", "http://h:1/"),
        ("http://h:1/x/api/v1/tools/", "http://h:1/x"),
        ("http://h:1/manifest", "http://h:1/"),
        ("http://h:1/x", "http://h:1/x"),
    ] {
        let config = Machine::new()
            .file(&format!(
                "[[scenarios]]\nname = \"s\"\nurl = \"{written}\"\n[modules]\nm = \"{written}\"\n"
            ))
            .config();
        assert_eq!(config.scenarios[0].target.url().as_str(), base, "{written}");
        assert_eq!(
            config.modules.services.values().next().unwrap().as_str(),
            base,
            "{written}"
        );
    }
    let mcp = "[[scenarios]]\nname = \"s\"\nurl = \"http://h/manifest\"\nprotocol = \"mcp\"\n";
    let target = target(&Machine::new().file(mcp));
    assert_eq!(
        target.url().as_str(),
        "http://h/manifest",
        "the address of an MCP server is whole"
    );
}

#[test]
fn the_profile_of_clients_that_name_none_is_one_of_the_profiles() {
    let profiles = "[[profiles]]\nname = \"narrow\"\n[[profiles]]\nname = \"wide\"\n";
    let text = format!("{profiles}[permissions]\ndefault_profile = \"narrow\"\n");
    let config = Machine::new().file(&text).config();
    let marked = config.marked_profiles();
    let defaults: Vec<_> = marked
        .known
        .iter()
        .filter(|(_, profile)| profile.is_default)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(defaults, ["narrow"]);
    let error = Machine::new()
        .file(&text.replace("default_profile = \"narrow\"", "default_profile = \"none\""))
        .load();
    let error = error.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("permissions.default_profile: no profile is called \"none\""),
        "{error}"
    );
}

#[test]
fn programs_sleep_as_configured_for_all_and_for_one() {
    let entry = |name: &str, more: &str| {
        format!("[[scenarios]]\nname = \"{name}\"\ncommand = \"server-of-{name}\"\n{more}\n")
    };
    let own = entry("own", "sleep_after = \"10m\"");
    let never = entry("never", "sleep_after = \"never\"");
    let text = format!(
        "mcp.sleep_after = \"1h\"\n{own}{never}{}",
        entry("other", "")
    );
    let config = Machine::new().file(&text).config();
    let sleeps = |name: &str| {
        let named = |known: &&StaticScenario| known.name.as_str() == name;
        config.sleep_after(config.scenarios.iter().find(named).unwrap().sleep_after)
    };
    assert_eq!(sleeps("own"), Some(std::time::Duration::from_secs(600)));
    assert_eq!(sleeps("never"), None);
    assert_eq!(sleeps("other"), Some(std::time::Duration::from_secs(3_600)));
    let silent = Machine::new().file(&entry("other", "")).config();
    assert_eq!(silent.sleep_after(silent.scenarios[0].sleep_after), None);

    let url = "[[scenarios]]\nname = \"far\"\nurl = \"http://h/mcp\"\nsleep_after = \"1h\"\n";
    let error = Machine::new().file(url).error();
    assert!(error.contains("sleep_after"), "{error}");
    let wrong = entry("own", "sleep_after = \"soon\"");
    let error = Machine::new().file(&wrong).error();
    assert!(error.contains("soon"), "{error}");
}
