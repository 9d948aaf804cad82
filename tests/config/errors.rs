//! What a wrong configuration gets: every problem at once, each with its place, its key and a hint.

use std::fs;

use crate::support::config::Machine;

/// Checks the text of the error for a file.
fn refuses(file: &str, expected: &str) {
    assert_eq!(Machine::new().file(file).error(), expected);
}

#[test]
fn configuration_problems_are_reported_at_once_in_file_order() {
    let machine = Machine::new()
        .file(
            r#"[server]
lisen = "127.0.0.1:1"
max_body = true

[refresh]
timeout = "fast"
concurrency = 0

[healht]
grace = "1m"
"#,
        )
        .env("CALLSHEET_SERVER__LISTE", "127.0.0.1:2")
        .flag("naming.style", "never", "--naming");
    assert_eq!(
        machine.error(),
        r#"work/callsheet.toml:2:1: server.lisen: unknown key
  hint: did you mean `listen`?
work/callsheet.toml:3:12: server.max_body: expected a size, found true
  hint: write a text in double quotes, such as the default "1 MiB"
work/callsheet.toml:6:11: refresh.timeout: "fast" is not a duration
  hint: write a number and a unit, such as "250ms", "60s", "5m" or "24h"
work/callsheet.toml:7:15: refresh.concurrency: 0 is out of range
  hint: write 1 to 10000
work/callsheet.toml:9:2: healht: unknown key
  hint: did you mean `health`?
environment CALLSHEET_SERVER__LISTE: there is no such key
  hint: did you mean `CALLSHEET_SERVER__LISTEN`?
flag --naming: naming.style: "never" is not a naming style
  hint: write "on-collision" or "always""#
    );
}

#[test]
fn profiles_are_judged_whole() {
    refuses(
        "[[profiles]]\nname = \"a\"\nscenarios = [\"ok\", \"a/b\"]\npermission = \"root\"\n\n[[profiles]]\nname = \"a\"\n\n[[profiles]]\n",
        r#"work/callsheet.toml:3:20: profiles[0].scenarios[1]: "a/b" is not a scenario name
  hint: use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit
work/callsheet.toml:4:14: profiles[0].permission: `root` is not a level of permission: use `guest`, `user`, `admin` or `owner`
  hint: without this key every permission is allowed
work/callsheet.toml:7:8: profiles[1].name: `a` is already the name of another profile
  hint: give each profile a name of its own
work/callsheet.toml:9:1: profiles[2].name: this profile has no name
  hint: add `name = "..."` to it"#,
    );
}

#[test]
fn preferences_are_judged_whole() {
    refuses(
        "[[preferences]]\ntarget = \"tools:a/b\"\nenabled = true\n\n[[preferences]]\nscope = \"everybody\"\ntarget = \"tag:x\"\napproval = \"never\"\nalias = \"y\"\npriority = 3000000000\n\n[[preferences]]\ntarget = \"tag:y\"\n\n[[preferences]]\nenabled = false\n\n[[preferences]]\ntarget = \"tag:z\"\nenabled = false\n\n[[preferences]]\ntarget = \"tag:z\"\nenabled = true\n",
        r#"work/callsheet.toml:2:10: preferences[0].target: unknown target `tools:a/b`: use `scenario:<name>`, `tool:<scenario>/<tool>`, `category:<id>` or `tag:<tag>`
  hint: write "scenario:NAME", "category:ID", "tag:TAG" or "tool:SCENARIO/TOOL"
work/callsheet.toml:6:9: preferences[1].scope: unknown scope `everybody`: use `global`, `profile:<name>` or `chat:<id>`
  hint: write "global", "profile:NAME" or "chat:ID", or leave it out for "global"
work/callsheet.toml:8:12: preferences[1].approval: unknown approval `never`: use `require` or `skip`, or leave it out to inherit
  hint: write "require" or "skip"
work/callsheet.toml:9:9: preferences[1].alias: an alias needs a single tool
  hint: write `target = "tool:SCENARIO/TOOL"`
work/callsheet.toml:10:12: preferences[1].priority: 3000000000 is out of range
  hint: write -2147483648 to 2147483647
work/callsheet.toml:12:1: preferences[2]: this preference sets nothing
  hint: add one of `enabled`, `approval`, `alias`, `priority`, `pinned`, `pins`, `description`, `parameters` to it
work/callsheet.toml:15:1: preferences[3].target: this preference has no target
  hint: add `target = "tool:SCENARIO/TOOL"` to it
work/callsheet.toml:23:10: preferences[5].target: `tag:z` has a preference in the scope `global` already
  hint: make one preference of the two"#,
    );
}

#[test]
fn a_file_of_a_client_in_place_of_the_configuration_is_recognised() {
    let error = Machine::new().file("{\"mcpServers\": {}}\n").error();
    assert!(
        error.starts_with("work/callsheet.toml:1:1: this is not TOML: "),
        "{error}"
    );
    assert!(
        error.ends_with(
            "\n  hint: this looks like JSON: `callsheet import FILE --write` takes over a file with `mcpServers`"
        ),
        "{error}"
    );
}

#[test]
fn unknown_keys_are_refused_wherever_they_stand() {
    refuses(
        "[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\n\n[[scenarios]]\nnam = \"b\"\nurl = \"http://h\"\n",
        "work/callsheet.toml:6:1: scenarios[1].nam: unknown key\n  hint: did you mean `name`?",
    );
    refuses(
        "discovery.vrooli = { enabled = true, paht = \"/p\" }\n",
        "work/callsheet.toml:1:38: discovery.vrooli.paht: unknown key\n  hint: did you mean `path`?",
    );
    refuses(
        "  \"refresh\" . \"time out\" = \"1s\"\n",
        "work/callsheet.toml:1:15: refresh.\"time out\": unknown key\n  hint: did you mean `timeout`?",
    );
    refuses(
        "concurrency = 3\n",
        "work/callsheet.toml:1:1: concurrency: unknown key\n  hint: did you mean `refresh.concurrency`?",
    );
    // A key of another section is a guess.
    refuses(
        "[state]\nport = 3\n",
        "work/callsheet.toml:2:1: state.port: unknown key\n  hint: did you mean `discovery.mdns.port`? known here: path",
    );
    refuses(
        "[state]\nredis = 3\n",
        "work/callsheet.toml:2:1: state.redis: unknown key\n  hint: known here: path",
    );
    refuses(
        "[calls]\nsleep_after = \"10m\"\n",
        "work/callsheet.toml:2:1: calls.sleep_after: unknown key\n  hint: did you mean `mcp.sleep_after`?",
    );
    refuses(
        "[discovery.vroli]\nenabled = true\n",
        "work/callsheet.toml:1:12: discovery.vroli: unknown key\n  hint: did you mean `vrooli`?",
    );
    refuses(
        "scenarios = [\n  { name = \"a\", url = \"http://h\" },\n  { name = \"b\", url = \"http://h\", prtocol = \"x\" },\n]\n",
        "work/callsheet.toml:3:35: scenarios[1].prtocol: unknown key\n  hint: did you mean `protocol`?",
    );
}

#[test]
fn a_secret_in_a_file_that_is_not_there_has_its_own_next_step() {
    let entry = |place: &str| {
        format!(
            "[[scenarios]]\nname = \"a\"\ncommand = \"sh\"\nenv = {{ TOKEN = {{ {place} }} }}\n"
        )
    };
    for (place, step) in [
        (
            "file = \"/no/such\"",
            "put the text alone into it, of at most 65536 bytes, readable by the daemon",
        ),
        (
            "file = \"/no/such.toml\", key = \"a.TOKEN\"",
            "write the text under that key into this file of TOML, readable by the daemon",
        ),
    ] {
        let error = Machine::new().file(&entry(place)).error();
        assert!(error.ends_with(step), "{error}");
    }
}

#[test]
fn values_of_the_wrong_kind_are_refused_with_what_was_expected() {
    let at = |file: &str, place: &str, rest: &str| {
        refuses(file, &format!("work/callsheet.toml:{place}: {rest}"));
    };
    at(
        "[refresh]\ntimeout = 10\n",
        "2:11",
        "refresh.timeout: expected a text, found the number 10\n  \
         hint: write a text in double quotes, such as the default \"10s\"",
    );
    at(
        "refresh.concurrency = \"32\"\n",
        "1:23",
        "refresh.concurrency: expected a whole number, 0 or more, found the text \"32\"\n  \
         hint: write digits only, without quotes",
    );
    at(
        "health.failures = -3\n",
        "1:19",
        "health.failures: expected a whole number, 0 or more, found the number -3\n  \
         hint: write digits only, without quotes",
    );
    at(
        "server = 5\n",
        "1:10",
        "server: expected a table, found a number\n  hint: begin a section with `[server]` and write its keys below",
    );
    at(
        "server = [\"127.0.0.1:1\"]\n",
        "1:10",
        "server: expected a table, found a list\n  hint: begin a section with `[server]` and write its keys below",
    );
    at(
        "[scenarios]\nname = \"a\"\n",
        "1:1",
        "scenarios: expected a list of tables, found a table\n  \
         hint: begin each entry with `[[scenarios]]` and write its keys below",
    );
    at(
        "scenarios = [{ name = \"a\", url = \"http://h\" }, 5]\n",
        "1:48",
        "scenarios[1]: expected a table, found a number\n  \
         hint: write its keys in braces: `{ name = \"...\", url = \"...\" }`",
    );
    at(
        "server.allowed_hosts = [\"a\", 5]\n",
        "1:30",
        "server.allowed_hosts[1]: expected a text, found the number 5\n  hint: put it in double quotes",
    );
    at(
        "refresh.timeout = 10:00:00\n",
        "1:19",
        "refresh.timeout: expected a text, found a date or time\n  \
         hint: write a text in double quotes, such as the default \"10s\"",
    );
}

#[test]
fn a_value_that_breaks_a_rule_is_refused_with_a_hint() {
    let at = |file: &str, rest: &str| refuses(file, &format!("work/callsheet.toml:1:{rest}"));
    at(
        "server.listen = \"localhost:7400\"\n",
        "17: server.listen: \"localhost:7400\" is not an address with a port\n  \
         hint: write an IP address and a port, such as \"127.0.0.1:7400\" or \"[::1]:7400\"",
    );
    at(
        "protocol.accept = \">=1.0 <2.0\"\n",
        "19: protocol.accept: \">=1.0 <2.0\" is not a version range: expected comma after minor version number, found '<'\n  \
         hint: write conditions separated by commas, such as \">=1.0, <2.0\"",
    );
    at(
        "refresh.timeout = \"60\"\n",
        "19: refresh.timeout: \"60\" is not a duration\n  hint: add the unit: \"60s\" is 60 seconds",
    );
    at(
        "refresh.timeout = \"0s\"\n",
        "19: refresh.timeout: it must be longer than zero\n  hint: write at least \"1ms\"",
    );
    at(
        "health.grace = \"-5m\"\n",
        "16: health.grace: \"-5m\" is negative\n  \
         hint: write a number and a unit, such as \"250ms\", \"60s\", \"5m\" or \"24h\"",
    );
    at(
        "health.grace = \"9000h\"\n",
        "16: health.grace: \"9000h\" is too long\n  hint: write at most a year: \"8760h\"",
    );
    at(
        "server.max_body = \"8 MB\"\n",
        "19: server.max_body: \"8 MB\" is not a size\n  \
         hint: write bytes as a number, or a whole number and one of B, KiB, MiB, GiB, such as \"8 MiB\"",
    );
    at(
        "server.max_body = \"2 GiB\"\n",
        "19: server.max_body: 2147483648 bytes is out of range\n  hint: write 1 to 1073741824 bytes",
    );
    at(
        "server.allowed_hosts = [\"ok\", \"bad:80\"]\n",
        "31: server.allowed_hosts[1]: \"bad:80\" is not a host name\n  \
         hint: write a whole name or address without port, such as \"tools.example\" or \"[::1]\"",
    );
    at(
        "server.allowed_origins = [\"*\"]\n",
        "27: server.allowed_origins[0]: \"*\" is not a web origin\n  \
         hint: write scheme, host and port only, such as \"https://chat.example\" or \"http://localhost:3000\"",
    );
    at(
        "server.allowed_origins = [\"ftp://chat.example\"]\n",
        "27: server.allowed_origins[0]: \"ftp://chat.example\" is not a web origin\n  \
         hint: write scheme, host and port only, such as \"https://chat.example\" or \"http://localhost:3000\"",
    );
    at(
        "state.path = \"\"\n",
        "14: state.path: the path is empty\n  hint: write a path, or leave the key out for its default",
    );
}

#[test]
fn bounds_that_contradict_each_other_are_told_of_the_one_that_was_written() {
    refuses(
        "[refresh]\nmax_interval = \"10s\"\n",
        "work/callsheet.toml:2:16: refresh.max_interval: min_interval (60s) is longer than max_interval (10s)\n  \
         hint: lower min_interval or raise max_interval",
    );
    refuses(
        "[refresh]\nbackoff_base = \"2m\"\n",
        "work/callsheet.toml:2:16: refresh.backoff_base: backoff_base (120s) is longer than backoff_max (60s)\n  \
         hint: lower backoff_base or raise backoff_max",
    );
    // A bound that could not be read is not blamed twice through its default.
    refuses(
        "[refresh]\nmin_interval = \"2h\"\nmax_interval = \"x\"\n",
        "work/callsheet.toml:3:16: refresh.max_interval: \"x\" is not a duration\n  \
         hint: write a number and a unit, such as \"250ms\", \"60s\", \"5m\" or \"24h\"",
    );
    refuses(
        "[refresh]\nmin_interval = \"2h\"\nmax_interval = 3\n",
        "work/callsheet.toml:3:16: refresh.max_interval: expected a text, found the number 3\n  \
         hint: write a text in double quotes, such as the default \"1h\"",
    );
}

#[test]
fn scenarios_are_checked_one_by_one() {
    refuses(
        r#"[[scenarios]]
name = "a"
url = "http://user:hunter2@h/?token=hunter2"

[[scenarios]]
url = "127.0.0.1:15000"

[[scenarios]]
name = "-x"

[[scenarios]]
name = "a"
url = "ftp://user:hunter2@h/#part"
protocol = "soap"

[[scenarios]]
name = "b"
url = "http://user:hunter2@h:notaport/"
"#,
        r#"work/callsheet.toml:3:7: scenarios[0].url: the address of a scenario has no query
  hint: leave out everything from the `?` on
work/callsheet.toml:5:1: scenarios[1].name: this scenario has no name
  hint: add `name = "..."` to it
work/callsheet.toml:6:7: scenarios[1].url: "127.0.0.1:15000" is not an address: relative URL without a base
  hint: write it whole, such as "http://127.0.0.1:15000"
work/callsheet.toml:8:1: scenarios[2].url: this scenario has no address
  hint: add `url = "http://..."` to it, or `command = "..."` for a program to start
work/callsheet.toml:9:8: scenarios[2].name: "-x" is not a scenario name
  hint: use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit
work/callsheet.toml:13:7: scenarios[3].url: "ftp://***@h/#part" is neither http nor https
  hint: write it whole, such as "http://127.0.0.1:15000"
work/callsheet.toml:14:12: scenarios[3].protocol: "soap" is not a protocol
  hint: known are: tool-discovery, module, mcp, json-rpc; leave it out to find out by probing
work/callsheet.toml:18:7: scenarios[4].url: "http://***@h:notaport/" is not an address: invalid port number
  hint: write it whole, such as "http://127.0.0.1:15000""#,
    );
    refuses(
        "[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\n[[scenarios]]\nname = \"a\"\nurl = \"http://i\"\n",
        "work/callsheet.toml:5:8: scenarios[1].name: `a` is already the name of scenarios[0]\n  \
         hint: give each scenario a name of its own",
    );
}

#[test]
fn no_value_is_quoted_where_a_secret_may_have_been_meant() {
    let machine = |file: &str| Machine::new().file(file);
    for machine in [
        machine("[module_settings]\ntokens = \"hunter2\"\n"),
        machine("module_settings = \"hunter2\"\n"),
        machine("server = \"operator_token=hunter2\"\n"),
        machine("scenarios = \"hunter2\"\n"),
        machine("scenarios = [\"hunter2\"]\n"),
        machine("[[scenarios]]\nname = \"a\"\nurl = \"ftp://h/?key=hunter2\"\n"),
        machine("[[scenarios]]\nname = \"a\"\nurl = \"h:x/?key=hunter2\"\n"),
        machine("server.listen = \"h?key=hunter2\"\n"),
        machine("[[scenarios]]\nname = \"a\"\nurl = \"admin:hunter2@10.0.0.5:8000\"\n"),
        machine("[[scenarios]]\nname = \"a\"\nurl = [\"http://u:hunter2@h\"]\n"),
        machine("[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\nauth = [\"hunter2\"]\n"),
        machine("[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\nauth = \"hunter2\\n\"\n"),
        machine(
            "[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\nauth = { token = \"hunter2\" }\n",
        ),
        machine("[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\nheaders = \"X: hunter2\"\n"),
        machine(
            "[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\nheaders = { X = [\"hunter2\"] }\n",
        ),
        machine(
            "[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\nheaders = { X = \"hunter2\\n\" }\n",
        ),
        machine("[[scenarios]]\nname = \"a\"\ncommand = \"x\"\nenv = \"KEY=hunter2\"\n"),
        machine("[[scenarios]]\nname = \"a\"\ncommand = \"x\"\nenv = { KEY = [\"hunter2\"] }\n"),
        machine("modules = \"hunter2\"\n"),
        machine("[modules]\nm = \"admin:hunter2@10.0.0.5:8000\"\n"),
        machine("[module_settings]\ntoken = [\"hunter2\"]\n"),
        machine("[module_settings]\ntoken = \"hunter2 \\n\"\n"),
        machine("[server]\noperator_token = \"hunter2\"\n"),
        machine("[calls]\napproval_token = [\"hunter2\"]\n"),
        machine("").env("CALLSHEET_SERVER", "operator_token=hunter2"),
        machine("").env("CALLSHEET_MODULE_SETTINGS__TOKENS", "hunter2"),
        machine("").flag("server", "hunter2", "--server"),
    ] {
        let error = machine.error();
        assert!(!error.contains("hunter2"), "{error}");
    }
    refuses(
        "[module_settings]\ntokens = \"hunter2\"\n",
        "work/callsheet.toml:2:10: module_settings.tokens: expected a table, found a text\n  \
         hint: begin a section with `[module_settings.tokens]` and write its keys below",
    );
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_its_place() {
    let error = Machine::new()
        .file("[server]\nlisten = 127.0.0.1:7400\n")
        .error();
    assert!(error.starts_with("work/callsheet.toml:2:"), "{error}");
    assert!(error.contains("this is not TOML: "), "{error}");
    let error = Machine::new()
        .file("[server]\nmax_body = 1\nmax_body = 2\n")
        .error();
    assert!(
        error.starts_with("work/callsheet.toml:3:1: this is not TOML: duplicate key"),
        "{error}"
    );
    // Columns count characters, not bytes.
    let error = Machine::new()
        .file("naming = { \"stýlé\" = 1, style = 2 }\n")
        .error();
    assert!(
        error.contains("work/callsheet.toml:1:33: naming.style: "),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let machine = Machine::new();
    fs::write(machine.path("work/callsheet.toml"), [0xff, 0xfe]).unwrap();
    assert!(
        machine
            .error()
            .starts_with("work/callsheet.toml: the configuration cannot be read: "),
        "{}",
        machine.error()
    );
}

#[test]
fn what_a_lower_layer_has_wrong_is_not_hidden_by_an_upper_one() {
    let machine = Machine::new()
        .file("server = 5\n")
        .env("CALLSHEET_SERVER__LISTEN", "127.0.0.1:1");
    assert!(
        machine
            .error()
            .starts_with("work/callsheet.toml:1:10: server: expected a table"),
        "{}",
        machine.error()
    );
}

#[test]
fn errors_from_the_environment_and_from_flags_name_the_variable_and_the_flag() {
    let machine = Machine::new()
        .env("CALLSHEET_REFRESH__CONCURRENCY", "many")
        .env("CALLSHEET_Server__listen", "7400")
        .env("CALLSHEET_SERVER__ALLOWED_HOSTS", "a, b")
        .env("CALLSHEET_SERVER__ALLOWED_ORIGINS", "")
        .flag("refresh.timeout", "soon", "--timeout");
    assert_eq!(
        machine.error(),
        r#"environment CALLSHEET_REFRESH__CONCURRENCY: refresh.concurrency: expected a whole number, 0 or more, found the text "many"
  hint: write digits only, without quotes
environment CALLSHEET_SERVER__ALLOWED_HOSTS: server.allowed_hosts: expected a list of texts, found the text "a, b"
  hint: write a list as `[a, b]`, a table as `{key = value}`
environment CALLSHEET_SERVER__ALLOWED_ORIGINS: server.allowed_origins: expected a list of texts, found the text ""
  hint: write a list as `[a, b]`, a table as `{key = value}`
environment CALLSHEET_Server__listen: server.listen: "7400" is not an address with a port
  hint: write an IP address and a port, such as "127.0.0.1:7400" or "[::1]:7400"
flag --timeout: refresh.timeout: "soon" is not a duration
  hint: write a number and a unit, such as "250ms", "60s", "5m" or "24h""#
    );
}

#[test]
fn variables_of_a_section_that_are_no_keys_are_refused_and_others_are_ignored() {
    let known = ["CALLSHEET_LOG", "CALLSHEET_URL", "CALLSHEET_CORPUS"];
    let machine = known
        .into_iter()
        .fold(Machine::new(), |machine, name| machine.env(name, "x"));
    assert_eq!(machine.config(), machine.defaults());
    let machine = machine
        .env("CALLSHEET_LGO", "debug")
        .env("CALLSHEET_WHATEVER_ELSE", "x")
        .env("CALLSHEET_SCENARIOS__0__NAME", "x");
    assert_eq!(
        machine.error(),
        "environment CALLSHEET_SCENARIOS__0__NAME: there is no such key\n  \
         hint: give `CALLSHEET_SCENARIOS` its whole value"
    );

    // What Kubernetes sets for a service that is called `callsheet`.
    let mut machine = Machine::new().env("CALLSHEET_PORT", "tcp://10.0.0.1:7400");
    for name in [
        "SERVICE_HOST",
        "SERVICE_PORT",
        "PORT_7400_TCP",
        "PORT_7400_TCP_ADDR",
        "PORT_7400_TCP_PROTO",
    ] {
        machine = machine.env(&format!("CALLSHEET_{name}"), "x");
    }
    let ignored = machine.load().unwrap().ignored_variables.unwrap();
    assert_eq!(ignored.names.len(), 6, "{ignored}");
    assert!(
        ignored.to_string().contains("`CALLSHEET_PORT`") && ignored.hint().contains("Kubernetes"),
        "{ignored}"
    );
    for number in 10..30 {
        machine = machine.env(&format!("CALLSHEET_X_{number}"), "x");
    }
    let ignored = machine
        .env("CALLSHEET_LGO", "debug")
        .load()
        .unwrap()
        .ignored_variables
        .unwrap();
    assert_eq!(ignored.names.len(), 10, "{ignored}");
    assert_eq!(ignored.more, 17, "{ignored}");
    assert!(
        ignored
            .hint()
            .contains("for `CALLSHEET_LGO`, did you mean `CALLSHEET_LOG`?"),
        "{}",
        ignored.hint()
    );
}

#[test]
fn what_cannot_be_said_of_the_local_network_is_refused_with_its_place() {
    refuses(
        r#"[discovery.mdns]
trust = [
  "10.0.0.0/8",
  "10.0.0.0/33",
  "name:",
]
types = ["agent-tools"]
port = 0
name = ""
id = "a b"
"#,
        r#"work/callsheet.toml:4:3: discovery.mdns.trust[1]: "10.0.0.0/33" is neither a network nor a name
  hint: write a network such as "10.0.0.0/8" or "fd00::/8", or a name such as "name:lab-*"
work/callsheet.toml:5:3: discovery.mdns.trust[2]: this pattern has no name
  hint: write a name after `name:`, such as "name:lab-*"
work/callsheet.toml:7:10: discovery.mdns.types[0]: "agent-tools" is not a service type
  hint: write an underscore, 1 to 15 letters, digits or hyphens, and `._tcp`, such as "_vrooli-tools._tcp"
work/callsheet.toml:8:8: discovery.mdns.port: 0 is out of range
  hint: write 1 to 65535
work/callsheet.toml:9:8: discovery.mdns.name: "" cannot be the name of an announcement
  hint: use 1 to 63 bytes without control characters
work/callsheet.toml:10:6: discovery.mdns.id: "a b" cannot be an id
  hint: use 1 to 100 letters, digits, `.`, `_` or `-`, such as a UUID; without this key one is made"#,
    );
    refuses(
        "discovery.mdns.trust = \"family\"\n",
        "work/callsheet.toml:1:24: discovery.mdns.trust: \"family\" is not a rule of trust\n  \
         hint: write \"none\", \"local\" or \"all\", or a list such as [\"10.0.0.0/8\", \"name:lab-*\"]",
    );
    refuses(
        "discovery.mdns.trust = 5\n",
        "work/callsheet.toml:1:24: discovery.mdns.trust: expected a text or a list of texts, found the number 5\n  \
         hint: write one text in double quotes, or several in brackets: `[\"a\", \"b\"]`",
    );
}

#[test]
fn an_old_and_a_new_name_with_different_values_are_refused() {
    let one = "0123456789abcret";
    let other = "0123456789abcret-2";
    refuses(
        &format!("[server]\noperator_token = \"{one}\"\n\n[calls]\napproval_token = \"{other}\"\n"),
        "work/callsheet.toml:5:18: calls.approval_token: it is the old name of `server.operator_token`, which has another value\n  \
         hint: take `calls.approval_token` out, and keep `server.operator_token`",
    );
    // Also when different layers give them.
    let machine = Machine::new()
        .file(&format!("[calls]\napproval_token = \"{other}\"\n"))
        .env("CALLSHEET_SERVER__OPERATOR_TOKEN", one);
    assert!(
        machine
            .error()
            .contains("`server.operator_token`, which has another value"),
        "{}",
        machine.error()
    );

    let token = |file: String| {
        Machine::new()
            .file(&file)
            .config()
            .operator_token()
            .unwrap()
            .expose()
            .to_owned()
    };
    assert_eq!(
        token(format!(
            "server.operator_token = \"{one}\"\ncalls.approval_token = \"{one}\"\n"
        )),
        one
    );
    assert_eq!(
        token(format!("calls.approval_token = \"{other}\"\n")),
        other
    );
    assert_eq!(
        token(format!("server.operator_token = \"{other}\"\n")),
        other
    );
}

#[test]
fn hosts_and_secrets_of_stored_tools_are_judged_one_by_one() {
    let file = "[bundles]\nallowed_hosts = [\"http://x\", \"api.example.com\", \"10.0.0.0/40\"]\n\n[bundles.secrets]\n\
        EMPTY = { value = \"\", hosts = [\"a.example\"] }\n\"a b\" = { value = \"x\", hosts = [\"a.example\"] }\n\
        NOWHERE = { value = \"x\" }\nODD = { value = \"x\", hosts = [\"*\"] }\n";
    let error = Machine::new().file(file).error();
    for part in [
        "bundles.allowed_hosts[0]: \"http://x\" cannot be allowed",
        "bundles.allowed_hosts[2]: \"10.0.0.0/40\" cannot be allowed",
        "bundles.secrets.EMPTY.value: the secret is empty",
        "\"a b\" cannot be the name of a secret",
        "bundles.secrets.NOWHERE.hosts: it does not say which hosts it may be sent to",
        "bundles.secrets.ODD.hosts[0]: \"*\" cannot be allowed",
    ] {
        assert!(error.contains(part), "{part}:\n{error}");
    }
    assert!(!error.contains("api.example.com\" cannot"), "{error}");
}
