//! `auth` and `headers` as they are written, what is refused of them, and how they are shown.

use std::time::Duration;

use callsheet::model::{Auth, LoginCallback, OAuthClient, Secret, SecretSource};

use crate::support::config::Machine;

fn written(auth: &str) -> Machine {
    Machine::new().file(&format!(
        "[[scenarios]]\nname = \"web\"\nurl = \"https://h/mcp\"\nauth = {auth}\n"
    ))
}

fn auth(machine: &Machine) -> Auth {
    machine.config().scenarios[0]
        .target
        .http()
        .unwrap()
        .auth
        .clone()
        .unwrap()
}

fn topsecret() -> SecretSource {
    Secret::new("topsecret").into()
}

#[test]
fn every_kind_can_be_written() {
    let hour = Duration::from_secs(3600);
    let command = |every| SecretSource::Command {
        command: vec!["op".to_owned(), "read".to_owned()],
        every,
    };
    let key = || "x-key".parse().unwrap();
    for (text, expected) in [
        ("\"topsecret\"", Auth::Bearer(topsecret())),
        ("{ bearer = \"topsecret\" }", Auth::Bearer(topsecret())),
        ("{ env = \"TOKEN\" }", Auth::Bearer(topsecret())),
        (
            "{ command = [\"op\", \"read\"] }",
            Auth::Bearer(command(hour)),
        ),
        (
            "{ bearer = { command = [\"op\", \"read\"], every = \"5m\" } }",
            Auth::Bearer(command(hour / 12)),
        ),
        (
            "{ header = \"X-Key\", value = \"topsecret\" }",
            Auth::Header(key(), topsecret()),
        ),
        (
            "{ header = \"X-Key\", value = { env = \"TOKEN\" } }",
            Auth::Header(key(), topsecret()),
        ),
        (
            "{ basic = { user = \"me\", password = \"topsecret\" } }",
            Auth::Basic("me".to_owned(), topsecret()),
        ),
    ] {
        assert_eq!(
            auth(&written(text).env("TOKEN", "topsecret")),
            expected,
            "{text}"
        );
    }
    let machine = written("{ file = \"keys/token\", key = \"a.b\" }");
    let file = SecretSource::File {
        path: machine.path("work/keys/token"),
        key: Some("a.b".to_owned()),
    };
    assert_eq!(
        auth(&machine),
        Auth::Bearer(file),
        "a file is not read before it is needed"
    );

    let whole = "{ oauth = { token_url = \"https://as/token\", client_id = \"me\", client_secret = \"topsecret\", \
                 scopes = [\"a\", \"b\"], resource = \"https://h/\" } }";
    let mut client = OAuthClient {
        token_url: Some("https://as/token".parse().unwrap()),
        client_id: "me".to_owned(),
        client_secret: Some(topsecret()),
        scopes: vec!["a".to_owned(), "b".to_owned()],
        resource: Some("https://h/".parse().unwrap()),
        issuer: None,
        callback: LoginCallback::Shared,
        token_hosts: None,
    };
    assert_eq!(auth(&written(whole)), Auth::OAuth(Box::new(client.clone())));
    client.resource = None;
    client.scopes.clear();
    let least = "{ oauth = { token_url = \"https://as/token\", client_id = \"me\", client_secret = \"topsecret\" } }";
    assert_eq!(auth(&written(least)), Auth::OAuth(Box::new(client.clone())));
    client.token_url = None;
    client.client_secret = None;
    assert_eq!(
        auth(&written("{ oauth = { client_id = \"me\" } }")),
        Auth::OAuth(Box::new(client.clone()))
    );
    client.issuer = Some("https://as".to_owned());
    let named = "{ oauth = { client_id = \"me\", issuer = \"https://as\" } }";
    assert_eq!(
        auth(&written(named)),
        Auth::OAuth(Box::new(client.clone())),
        "it stays as it is written"
    );
    let shared =
        "{ oauth = { client_id = \"me\", issuer = \"https://as\", callback = \"shared\" } }";
    assert_eq!(
        auth(&written(shared)),
        Auth::OAuth(Box::new(client.clone()))
    );
    client.callback = LoginCallback::Issuer;
    let own = "{ oauth = { client_id = \"me\", issuer = \"https://as\", callback = \"issuer\" } }";
    assert_eq!(auth(&written(own)), Auth::OAuth(Box::new(client)));
}

#[test]
fn what_is_no_credential_is_refused_with_the_next_step() {
    let oauth = |more: &str| {
        format!("{{ oauth = {{ client_id = \"me\", client_secret = \"topsecret\"{more} }} }}")
    };
    for (text, why, hint) in [
        ("{}".to_owned(), "write exactly one place", "env"),
        (
            "{ bearer = \"topsecret\", basic = { user = \"a\", password = \"topsecret\" } }"
                .to_owned(),
            "not one kind",
            "X-Key",
        ),
        (
            "{ bearer = \"topsecret\", file = \"f\" }".to_owned(),
            "not one kind",
            "basic",
        ),
        ("{ header = \"X-Key\" }".to_owned(), "not one kind", "value"),
        (
            "{ header = \"Host\", value = \"topsecret\" }".to_owned(),
            "is set by the daemon itself",
            "take it out",
        ),
        (
            "{ header = \"X-Key\", value = \"top\\nsecret\" }".to_owned(),
            "can be no value of a header",
            "visible",
        ),
        (
            "{ basic = { user = \"me\" } }".to_owned(),
            "the password is missing",
            "password",
        ),
        (
            "{ basic = { user = \"m:e\", password = \"topsecret\" } }".to_owned(),
            "no name of a user",
            "colon",
        ),
        ("{ command = [] }".to_owned(), "names no program", "program"),
        (
            "{ command = [\"op\"], every = \"10ms\" }".to_owned(),
            "each second",
            "1s",
        ),
        (
            "{ command = [\"op\"], file = \"f\" }".to_owned(),
            "exactly one place",
            "env",
        ),
        (
            "{ oauth = {} }".to_owned(),
            "the id of the client is missing",
            "client_id",
        ),
        (
            oauth(", token_url = \"http://as/token\""),
            "unencrypted",
            "https",
        ),
        (oauth(", scopes = [\"a b\"]"), "is not a scope", "own"),
        (oauth(", issuer = \"as\""), "issuer", "http"),
        (
            oauth(", token_url = \"https://as/\", issuer = \"https://as\""),
            "it is for a login",
            "one of the two",
        ),
        (
            oauth(", callback = \"own\""),
            "no kind of callback address",
            "\"issuer\"",
        ),
        (
            oauth(", token_url = \"https://as/\", callback = \"issuer\""),
            "it is for a login",
            "one of the two",
        ),
        (
            "{ oauth = { client_id = \"me\", token_url = \"https://as/\" } }".to_owned(),
            "the secret of the client is missing",
            "client_secret",
        ),
        (
            "{ bearr = \"topsecret\" }".to_owned(),
            "unknown key",
            "did you mean `bearer`?",
        ),
    ] {
        let error = written(&text).error();
        assert!(
            error.contains(why) && error.contains(hint),
            "{text}: {error}"
        );
        assert!(!error.contains("topsecret"), "{error}");
    }
}

#[test]
fn a_header_is_set_by_one_key_only() {
    let both = written(
        "{ basic = { user = \"me\", password = \"topsecret\" } }\nheaders = { Authorization = \"topsecret\" }",
    );
    assert!(both.error().contains("`auth` sets this header too"));
    let beside = written(
        "{ header = \"X-Key\", value = \"topsecret\" }\nheaders = { Authorization = \"topsecret\" }",
    );
    assert!(beside.load().is_ok());
}

#[test]
fn programs_are_taken_from_files_only() {
    for auth in [
        "{command = [sh]}",
        "{bearer = {command = [sh]}}",
        "{basic = {user = me, password = {command = [sh]}}}",
        "{oauth = {client_id = me, client_secret = {command = [sh]}}}",
    ] {
        let list = format!("[{{name = web, url = \"http://h\", auth = {auth}}}]");
        let error = Machine::new().env("CALLSHEET_SCENARIOS", &list).error();
        assert!(
            error.contains("taken from the configuration file only"),
            "{auth}: {error}"
        );
    }
    let list = "[{name = web, url = \"http://h\", headers = {X-Key = {command = [sh]}}}]";
    assert!(
        Machine::new()
            .env("CALLSHEET_SCENARIOS", list)
            .error()
            .contains("from the configuration file only")
    );
    // A header may be called so.
    let list = "[{name = web, url = \"http://h\", headers = {Command = text}}]";
    assert!(
        Machine::new()
            .env("CALLSHEET_SCENARIOS", list)
            .load()
            .is_ok()
    );
}

#[test]
fn secrets_are_masked_and_where_they_are_is_shown() {
    for (text, expected) in [
        ("\"topsecret\"", "\"***\""),
        ("{ bearer = \"topsecret\" }", "{ bearer = \"***\" }"),
        (
            "{ bearer = { env = \"TOKEN\" } }",
            "{ bearer = { env = \"TOKEN\" } }",
        ),
        ("{ file = \"/run/token\" }", "{ file = \"/run/token\" }"),
        (
            "{ command = [\"op\", \"read\"], every = \"5m\" }",
            "{ command = [\"op\", \"read\"], every = \"5m\" }",
        ),
        (
            "{ header = \"X-Key\", value = \"topsecret\" }",
            "{ header = \"X-Key\", value = \"***\" }",
        ),
        (
            "{ basic = { password = \"topsecret\", user = \"me\" } }",
            "{ basic = { password = \"***\", user = \"me\" } }",
        ),
        (
            "{ oauth = { client_id = \"me\", client_secret = \"topsecret\", token_url = \"https://as/\" } }",
            "{ oauth = { client_id = \"me\", client_secret = \"***\", token_url = \"https://as/\" } }",
        ),
    ] {
        let machine = written(text).env("TOKEN", "topsecret");
        assert_eq!(machine.shown("scenarios[0].auth").0, expected);
        let all = format!("{:?}", machine.load().unwrap());
        assert!(!all.contains("topsecret"), "{all}");
    }
}
