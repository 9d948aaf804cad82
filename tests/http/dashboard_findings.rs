//! The page of findings: grouped by cause, filtered, and without what concerns formats that no
//! client uses.

use std::collections::BTreeSet;

use callsheet::catalog::Inputs;
use callsheet::model::{Finding, FindingCode, ScenarioState};

use crate::dashboard::{attributes, page};
use crate::support::offers::{offer, put, scenario, tool};
use crate::support::serving::{Served, health, serve, snapshot};

/// The part of a page about findings of one code.
fn of_code<'a>(page: &'a str, code: &str) -> &'a str {
    let begin = page
        .find(&format!("data-code=\"{code}\" aria-labelledby"))
        .unwrap_or_else(|| panic!("no {code}"));
    page[begin..].split("</section>").next().unwrap()
}

/// Two scenarios with tools of the same names, of which some are off, and one tool that several
/// formats have to change.
async fn crowded() -> Served {
    let mut inputs = Inputs::default();
    let names: Vec<String> = (0..8).map(|n| format!("same_{n}")).collect();
    let odd = r#"{"type":"object","properties":{"code":{"type":"string","pattern":"^[a-z]+$"}}}"#;
    let mut tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
    put(&mut inputs, offer("mail", &tools));
    tools.extend((0..5).map(|n| tool(&format!("off_{n}")).off()));
    tools.push(tool("odd").taking(odd));
    put(&mut inputs, offer("notes", &tools));
    let states = ["mail", "notes"]
        .map(|name| health(name, ScenarioState::Live))
        .to_vec();
    let broken = Finding::new(FindingCode::ToolQuarantined, "its name is no text")
        .of_scenario(&scenario("mail"));
    serve(snapshot(&inputs, states, vec![broken])).await
}

#[tokio::test]
async fn findings_of_one_cause_take_one_line() {
    let server = crowded().await;
    let all = page(&server, "/dashboard/findings").await;
    let collisions = of_code(&all, "name-collision");
    assert_eq!(collisions.matches("<details ").count(), 1, "{collisions}");
    assert!(
        collisions.contains(
            "<strong>mail, notes</strong>: 8 names in common: <code><bdi>same_0</bdi></code>, "
        ),
        "{collisions}"
    );
    assert!(
        collisions.contains("<bdi>same_5</bdi></code> and 2 more</summary>"),
        "{collisions}"
    );
    // Each of them is in the box.
    assert_eq!(
        collisions
            .matches("<li data-code=\"name-collision\"")
            .count(),
        16,
        "{collisions}"
    );
    let off = of_code(&all, "disabled");
    assert_eq!(off.matches("<details ").count(), 1, "{off}");
    assert_eq!(off.matches("<li data-code").count(), 5, "{off}");
    assert_eq!(
        off.matches("its manifest does not enable it by default")
            .count(),
        1,
        "said once: {off}"
    );
    assert!(
        off.contains("--enabled true"),
        "the next step of each is shown: {off}"
    );
    // A single finding is not hidden in a box, and the worst comes first.
    let broken = of_code(&all, "tool-quarantined");
    assert!(
        !broken.contains("<details") && broken.contains("its name is no text"),
        "{broken}"
    );
    assert!(
        all.find("data-code=\"tool-quarantined\"").unwrap()
            < all.find("data-code=\"name-collision\"").unwrap()
    );
    assert!(
        all.contains("href=\"/dashboard/findings?severity=error\"><strong>1</strong>"),
        "{all}"
    );
    assert!(
        collisions.contains("<span class=\"quiet\">16 findings</span>"),
        "{collisions}"
    );
    let ids = attributes(&all, "id");
    assert_eq!(
        ids.len(),
        ids.iter().collect::<BTreeSet<_>>().len(),
        "ids are unique: {ids:?}"
    );
}

#[tokio::test]
async fn findings_about_unused_formats_are_one_line_until_they_are_requested() {
    let server = crowded().await;
    let folded = page(&server, "/dashboard/findings").await;
    assert!(!folded.contains("data-code=\"lossy\""), "{folded}");
    let line = folded
        .split("id=\"unused-formats\">")
        .nth(1)
        .unwrap()
        .split("</p>")
        .next()
        .unwrap();
    assert!(
        line.contains(
            " about formats in which no client has requested a list. <a href=\"/dashboard/findings?formats=all\">"
        ),
        "{line}"
    );
    for target in [
        "/dashboard/findings?formats=all",
        "/dashboard/findings?code=lossy",
    ] {
        let shown = page(&server, target).await;
        assert!(
            of_code(&shown, "lossy").contains("notes/<bdi>odd</bdi>")
                && !shown.contains("id=\"unused-formats\""),
            "{target}"
        );
    }
    assert_eq!(server.get("/api/v1/tools?format=ollama").await.status, 200);
    let used = page(&server, "/dashboard/findings/now").await;
    assert!(
        of_code(&used, "lossy").contains("<code><bdi>ollama</bdi></code><bdi> does not support"),
        "{used}"
    );
    assert!(
        !of_code(&used, "lossy").contains("gemini") && used.contains("id=\"unused-formats\""),
        "{used}"
    );
}

#[tokio::test]
async fn findings_are_filtered_on_their_page() {
    let server = crowded().await;
    let codes = |page: &str| -> BTreeSet<String> {
        let sections = page.split("<section class=\"card\" data-code=\"").skip(1);
        sections
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect()
    };
    let own = |filter: &str| format!("/dashboard/findings/now?{filter}");
    assert_eq!(
        codes(&page(&server, &own("severity=error")).await),
        BTreeSet::from(["tool-quarantined".to_owned()])
    );
    assert_eq!(
        codes(&page(&server, &own("code=disabled")).await),
        BTreeSet::from(["disabled".to_owned()])
    );
    let mail = page(&server, &own("scenario=mail&severity=warning")).await;
    let collisions = of_code(&mail, "name-collision");
    assert_eq!(
        collisions
            .matches("<li data-code=\"name-collision\"")
            .count(),
        8,
        "{collisions}"
    );
    let none = page(&server, &own("scenario=mail&code=lossy")).await;
    assert!(
        none.contains("No finding matches. <a href=\"/dashboard/findings\">Show all</a>"),
        "{none}"
    );
    // What cannot be read counts as absent.
    assert_eq!(
        codes(&page(&server, &own("severity=fatal&code=none")).await),
        codes(&page(&server, &own("")).await)
    );
    let form = page(
        &server,
        "/dashboard/findings?code=disabled&scenario=notes&formats=all",
    )
    .await;
    for chosen in [
        "<option value=\"disabled\" selected>",
        "<option value=\"notes\" selected>",
        "value=\"all\" checked>",
    ] {
        assert!(form.contains(chosen), "{chosen}");
    }
}
