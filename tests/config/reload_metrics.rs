//! What a scrape tells of the configuration of a running daemon.

use crate::support::config_file::{Counted, Following, file, replace};

#[test]
fn a_reload_counts_and_a_refused_one_shows_until_it_is_mended() {
    let notes = Counted::offering("notes", &["add_note"]);
    let good = file(&[notes.entry("notes")]);
    let following = Following::start(&good);
    let shown = || {
        let text = String::from_utf8(following.daemon.get("/metrics").1).unwrap();
        let value = |sample: &str| -> u64 {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{sample} is missing in\n{text}"))
                .parse()
                .unwrap()
        };
        let reloads = |outcome| {
            value(&format!(
                "callsheet_config_reloads_total{{outcome=\"{outcome}\"}}"
            ))
        };
        (
            reloads("applied"),
            reloads("refused"),
            value("callsheet_config_valid"),
        )
    };
    assert_eq!(shown(), (0, 0, 1));
    replace(
        &following.path,
        &format!("refresh.timeout = \"3s\"\n{good}"),
    );
    following.until_reloads(1);
    assert_eq!(shown(), (1, 0, 1));
    replace(&following.path, "not toml");
    following.until_refused(true);
    assert_eq!(shown(), (1, 1, 0));
    // What it was before, so that nothing is put in force.
    replace(
        &following.path,
        &format!("refresh.timeout = \"3s\"\n{good}"),
    );
    following.until_refused(false);
    assert_eq!(shown(), (1, 1, 1));
}
