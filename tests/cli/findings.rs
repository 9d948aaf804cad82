//! `callsheet findings`: grouped, filtered, and without what concerns formats that nobody uses.

use callsheet::provide::{Parameter, ToolDefinition};

use crate::support::command::{Home, Running, Scenario, json, nobody, office, run, tool};

fn ask(home: &Home, daemon: &Running, args: &[&str]) -> String {
    home.run(&[&["findings"], args, &["--url", &daemon.url][..]].concat()).ok()
}

#[test]
fn scenarios_that_collide_have_one_paragraph_and_the_worst_comes_first() {
    let names = ["search", "list_all", "open_one"];
    let tools = || names.iter().map(|name| tool(name, "Does it", "work")).collect::<Vec<_>>();
    let (notes, mail, gone) = (Scenario::start("notes", tools()), Scenario::start("mail", tools()), nobody());
    let home = Home::with(&format!(
        "health.grace = \"1ms\"\nhealth.failures = 1\n\
        [[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n[[scenarios]]\nname = \"mail\"\nurl = \"{}\"\n[[scenarios]]\nname = \"gone\"\nurl = \"{gone}\"\n",
        notes.url, mail.url
    ));
    let daemon = home.serve(&[]);
    let out = ask(&home, &daemon, &[]);
    assert_eq!(out.matches("[name-collision]").count(), 1, "{out}");
    let together = "warning[name-collision] mail, notes\n  they have 3 tools of the same name, published under longer names: `list_all`, `open_one`, `search`\n  hint: `callsheet prefs set tool:mail/list_all --alias NAME` gives it a name of its own\n";
    assert!(out.contains(together), "{out}");
    assert!(out.contains("take it out with `callsheet remove gone`\n"), "{out}");
    // What is counted is what is shown.
    let shown = out.matches("warning[").count();
    assert!(out.contains(&format!("\n\n{shown} warnings")), "{out}");
    let severities: Vec<_> = out.lines().filter_map(|line| line.split_once('[')).map(|(word, _)| word).collect();
    let rank = |word: &&str| ["error", "warning", "info"].iter().position(|known| known == word);
    assert!(severities.is_sorted_by_key(rank), "{out}");
    let narrow = run(home.command(&["findings", "--url", &daemon.url]).env("COLUMNS", "60")).ok();
    let long = |line: &&str| line.chars().count() > 60 && line.trim_start().split(' ').count() > 2;
    assert_eq!(narrow.lines().find(long), None, "{narrow}");
    let one = ask(&home, &daemon, &["--scenario", "mail"]);
    assert!(one.contains("[name-collision] mail, notes\n") && !one.contains("gone"), "{one}");
    // The same is shown with the scenario itself.
    let shown = home.run(&["scenarios", "mail", "--url", &daemon.url]).ok();
    assert!(shown.contains("\nwarning[name-collision] mail, notes\n"), "{shown}");
}

#[test]
fn findings_are_filtered_and_programs_get_the_answer() {
    let (home, daemon, _scenarios) = office();
    let infos = ask(&home, &daemon, &["--severity", "info"]);
    assert!(infos.contains("info[disabled] notes/wipe\n") && !infos.contains("warning["), "{infos}");
    let kind = ask(&home, &daemon, &["--code", "disabled"]);
    assert!(kind.ends_with("\n\n1 info\n"), "{kind}");
    assert_eq!(ask(&home, &daemon, &["--severity", "error"]), "no findings\n");
    let (_, body) = daemon.get("/api/v1/findings?severity=info&formats=used");
    assert_eq!(ask(&home, &daemon, &["--severity", "info", "--json"]).trim_end().as_bytes(), body);
    let collision = json(&ask(&home, &daemon, &["--code", "name-collision", "--json"]));
    assert_eq!(collision["findings"][0]["others"], json(r#"["notes/search"]"#), "{collision}");
    let error = home.run(&["findings", "--code", "no-such", "--url", &daemon.url]).failed(2);
    assert!(error.contains("invalid value 'no-such'"), "{error}");
}

#[test]
fn what_a_format_cannot_express_is_hidden_until_the_format_is_used() {
    let odd = Parameter::string("A code").required().pattern("^[a-z]+$");
    let stock = Scenario::start("stock", vec![ToolDefinition::new("find", "Finds it").unwrap().parameter("code", odd)]);
    let home = Home::naming(&[("stock", &stock.url)]);
    let daemon = home.serve(&[]);
    let lossy = |out: &str| out.matches("[lossy]").count();
    let all = ask(&home, &daemon, &["--all"]);
    assert!(lossy(&all) > 0, "{all}");
    assert_eq!(lossy(&ask(&home, &daemon, &["--code", "lossy"])), lossy(&all), "who names a kind sees it");
    let before = ask(&home, &daemon, &[]);
    assert_eq!(lossy(&before), 0, "{before}");
    assert!(before.contains("about formats that no client uses: `--all` shows them"), "{before}");
    for format in ["openai", "openai-responses", "anthropic", "gemini", "bedrock", "mistral", "cohere", "ollama", "mcp"]
    {
        assert_eq!(daemon.get(&format!("/api/v1/tools?format={format}")).0, 200, "{format}");
    }
    let after = ask(&home, &daemon, &[]);
    assert!(lossy(&after) > 0 && !after.contains("no client uses"), "{after}");
}
