//! Search in a view: which tools a text finds, in which order, and why.

use callsheet::catalog::{Catalog, Field, Hit, Inputs, View, ViewQuery, Visibility, build};

use crate::support::offers::{self, alias, enabled, offer, preferences, put, standing, tool};

fn hits(catalog: &Catalog, text: &str) -> Vec<Hit> {
    View::select(catalog, &ViewQuery::default()).rank(text, 10)
}

/// The identities of the tools found, best first.
fn found(catalog: &Catalog, text: &str) -> Vec<String> {
    hits(catalog, text)
        .iter()
        .map(|hit| hit.tool.id.to_string())
        .collect()
}

fn office() -> Inputs {
    let mut inputs = Inputs::default();
    let files = [
        tool("read_file").about("Reads one file and gives its text"),
        tool("removeFile").about("Takes a file away").tag("danger"),
        tool("listFolder")
            .about("Names what is in a folder")
            .category("browsing"),
        tool("old_read")
            .about("Reads a file as we did before")
            .off(),
        tool("debug_read").about("Reads the file table").internal(),
    ];
    put(&mut inputs, offer("files", &files));
    put(
        &mut inputs,
        offer(
            "mail",
            &[
                tool("send").about("Sends a letter"),
                tool("read").about("Opens a letter"),
            ],
        ),
    );
    put(
        &mut inputs,
        standing(
            offer("lost", &[tool("read_lost_file")]),
            Visibility::Withdrawn("down".into()),
        ),
    );
    put(
        &mut inputs,
        standing(
            offer("stranger", &[tool("read_any_file")]),
            Visibility::Hidden("pending".into()),
        ),
    );
    inputs
}

#[test]
fn words_are_found_in_every_spelling_and_the_better_fit_comes_first() {
    let catalog = build(&office());
    for text in [
        "read file",
        "readFile",
        "read_file",
        "READ files!",
        "file\u{0}read",
    ] {
        assert_eq!(found(&catalog, text)[0], "files/read_file", "{text}");
    }
    assert_eq!(found(&catalog, "remove file")[0], "files/removeFile");
    assert_eq!(found(&catalog, "removefile"), ["files/removeFile"]);
    assert_eq!(found(&catalog, "danger"), ["files/removeFile"]);
    assert_eq!(found(&catalog, "browsing"), ["files/listFolder"]);
    assert_eq!(found(&catalog, "letter"), ["mail/read", "mail/send"]);
    assert!(found(&catalog, "submarine").is_empty());
    assert!(found(&catalog, " -_.\u{0}\u{202e}").is_empty());
}

#[test]
fn what_no_list_has_is_not_found() {
    let catalog = build(&office());
    let all: Vec<_> = ["read", "file", "lost", "any", "table", "before"]
        .iter()
        .flat_map(|w| found(&catalog, w))
        .collect();
    for gone in [
        "files/old_read",
        "files/debug_read",
        "lost/read_lost_file",
        "stranger/read_any_file",
    ] {
        assert!(!all.iter().any(|id| id == gone), "{gone}");
    }
    let disabled = ViewQuery {
        include_disabled: true,
        ..ViewQuery::default()
    };
    let hits = View::select(&catalog, &disabled).rank("read as before", 1);
    assert_eq!(hits[0].tool.id.to_string(), "files/old_read");
}

/// Most tools of an MCP server say that they only read: that is no word for what they do.
#[test]
fn hints_of_mcp_servers_are_no_words_of_their_tools() {
    let mut inputs = office();
    let tools = [
        tool("weigh").about("Weighs a parcel").tag("hint:read-only"),
        tool("open").tag("hinted"),
    ];
    put(&mut inputs, offer("post", &tools));
    let catalog = build(&inputs);
    assert_eq!(found(&catalog, "read a file")[0], "files/read_file");
    assert!(!found(&catalog, "read a file").contains(&"post/weigh".to_owned()));
    assert!(
        found(&catalog, "hint").iter().all(|id| id == "post/open"),
        "{:?}",
        found(&catalog, "hint")
    );
}

#[test]
fn a_hit_tells_where_its_words_were() {
    let catalog = build(&office());
    let hit = &hits(&catalog, "remove danger")[0];
    assert_eq!(
        hit.fields.iter().collect::<Vec<_>>(),
        [Field::Name, Field::Tag]
    );
    assert!(hit.score > 0.0);
}

#[test]
fn a_scope_is_searched_by_its_own_names_and_settings() {
    let mut inputs = office();
    inputs.preferences = preferences(&[
        ("chat:7", "tool:mail/send", alias("post_office")),
        ("chat:7", "tool:files/read_file", enabled(false)),
    ]);
    let catalog = build(&inputs);
    let chat = ViewQuery {
        chat: Some("7".into()),
        ..ViewQuery::default()
    };
    let view = View::select(&catalog, &chat);
    let hits = view.rank("office", 10);
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].tool.name.as_str(), "post_office");
    assert!(found(&catalog, "office").is_empty());
    assert!(
        view.rank("reads one file", 10)
            .iter()
            .all(|hit| &*hit.tool.id.tool != "read_file")
    );
}

#[test]
fn diacritics_case_and_width_make_no_difference() {
    let mut inputs = Inputs::default();
    let tools = [
        tool("größe_ändern").about("Change a café’s naïve résumé"),
        tool("wetter").about("天気予報を取得する"),
    ];
    put(&mut inputs, offer("de", &tools));
    let catalog = build(&inputs);
    for text in [
        "grosse",
        "GRÖSSE",
        "andern",
        "cafe",
        "CAFÉ",
        "cafe\u{301}",
        "ｃａｆｅ",
        "naive resume",
    ] {
        assert_eq!(found(&catalog, text), ["de/größe_ändern"], "{text}");
    }
    for text in ["天気", "天", "予報"] {
        assert_eq!(found(&catalog, text), ["de/wetter"], "{text}");
    }
    assert!(found(&catalog, "犬").is_empty());
}

#[test]
fn a_typed_name_is_found_in_tiers() {
    let catalog = build(&office());
    let view = View::select(&catalog, &ViewQuery::default());
    let tiers = |typed: &str| -> Vec<String> {
        let hits = view.palette(typed, &[], 10);
        hits.iter()
            .map(|hit| format!("{} {}", hit.tier.unwrap().as_str(), hit.tool.id))
            .collect()
    };
    assert_eq!(
        tiers("read")[..2],
        ["prefix mail/read", "prefix files/read_file"]
    );
    assert_eq!(tiers("read_fi"), ["prefix files/read_file"]);
    assert_eq!(tiers("readfi"), ["prefix files/read_file"]);
    assert_eq!(tiers("file re")[0], "word files/read_file");
    assert_eq!(tiers("folder"), ["word files/listFolder"]);
    assert_eq!(tiers("foldr"), ["fuzzy files/listFolder"]);
    assert_eq!(tiers("remvoe fiel"), ["fuzzy files/removeFile"]);
    assert!(tiers("submarine").is_empty() && tiers("").is_empty());
    let recent = [
        "files/read_file",
        "mail/send",
        "files/read_file",
        "lost/read_lost_file",
    ]
    .map(offers::id);
    let used: Vec<_> = view
        .palette("", &recent, 10)
        .iter()
        .map(|hit| hit.tool.id.to_string())
        .collect();
    assert_eq!(used, ["files/read_file", "mail/send"]);
    assert_eq!(
        view.palette("read", &recent, 1)[0].tool.id.to_string(),
        "files/read_file"
    );
    let recent = ["files/read_file", "mail/read", "files/read_file"].map(offers::id);
    assert_eq!(
        view.palette("read", &recent, 1)[0].tool.id.to_string(),
        "files/read_file",
        "it was used last"
    );
}

#[test]
fn each_sentence_gets_its_tool() {
    let catalog = build(&office());
    let text =
        "Please tell me what is in the folder of my files, every name of it. Then send a letter.";
    let best = found(&catalog, text);
    assert!(
        best[..2].contains(&"files/listFolder".to_owned())
            && best[..2].contains(&"mail/send".to_owned()),
        "{best:?}"
    );
}

#[test]
fn hostile_texts_stay_small() {
    let long = "word ".repeat(20_000) + &"x".repeat(100_000);
    let odd = "\u{202e}\u{0}\u{7}\u{200b}abc\u{301}\u{301}".repeat(10_000);
    let mut inputs = Inputs::default();
    put(
        &mut inputs,
        offer(
            "odd",
            &[
                tool("long").about(&long),
                tool("odd").about(&odd),
                tool("plain").about("one word"),
            ],
        ),
    );
    let catalog = build(&inputs);
    assert_eq!(found(&catalog, "one word")[0], "odd/plain");
    assert_eq!(found(&catalog, "abc"), ["odd/odd"]);
    assert_eq!(found(&catalog, &long).len(), 2);
    let bytes: usize = catalog.entries().map(|entry| entry.index_bytes()).sum();
    assert!(bytes < 4_000, "{bytes}");
}

#[test]
fn more_tools_than_a_leaf_holds_are_all_found() {
    let tools: Vec<_> = (0..700).map(|at| tool(&format!("tool{at:03}"))).collect();
    let mut inputs = Inputs::default();
    put(&mut inputs, offer("many", &tools));
    let catalog = build(&inputs);
    for at in [0, 255, 256, 511, 512, 699] {
        assert_eq!(
            found(&catalog, &format!("tool{at:03}"))[0],
            format!("many/tool{at:03}")
        );
    }
    let view = View::select(&catalog, &ViewQuery::default());
    let all: Vec<_> = view
        .rank("tool", usize::MAX)
        .iter()
        .map(|hit| hit.tool.id.tool.to_string())
        .collect();
    assert_eq!(all.len(), 700);
    assert!(all.is_sorted(), "equal scores are in the order of the view");
    assert_eq!(view.rank("tool", 3).len(), 3);
}
