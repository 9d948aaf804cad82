//! How each face reports each way in which a call can end: the status and the body, as clients
//! read them.
//!
//! The table is `fixtures/contract/call-ends.txt`. `CALLSHEET_BLESS=1 cargo test --test calls
//! call_ends` writes it anew. Whatever differs from one run to the next (ids, times, ports) stands
//! as a word in angle brackets.

use std::path::PathBuf;

use crate::call_end_cases;
use crate::call_end_faces::{Face, masked};
use crate::call_end_stage::Stage;

/// The rows of one face and one way.
pub(crate) struct Row {
    pub(crate) face: &'static str,
    pub(crate) way: &'static str,
    pub(crate) answer: String,
}

fn written(rows: &[Row]) -> String {
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| format!("{} | {} | {}", row.face, row.way, row.answer))
        .collect();
    lines.push(String::new());
    lines.join("\n")
}

fn table() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/contract/call-ends.txt")
}

#[tokio::test]
async fn each_face_reports_each_end_of_a_call_as_the_table_says() {
    let stage = Stage::start().await;
    let mut rows = Vec::new();
    for face in Face::ALL {
        for case in call_end_cases::ALL {
            for (way, answer) in case.run(&stage, face).await {
                rows.push(Row {
                    face: face.name(),
                    way,
                    answer: masked(&answer),
                });
            }
        }
    }
    rows.extend(stage.of_modules().await);
    rows.extend(stage.of_stored_tools().await);
    stage.finish().await;
    let is_written_anew = std::env::var_os("CALLSHEET_BLESS").is_some();
    if is_written_anew {
        std::fs::write(table(), written(&rows)).unwrap();
    }
    let expected = std::fs::read_to_string(table()).unwrap_or_default();
    let got = written(&rows);
    let differing: Vec<&str> = got
        .lines()
        .filter(|line| !expected.lines().any(|known| known == *line))
        .collect();
    let missing: Vec<&str> = expected
        .lines()
        .filter(|line| !got.lines().any(|now| now == *line))
        .collect();
    assert!(
        differing.is_empty() && missing.is_empty(),
        "the end of a call is reported otherwise than in {}; if that is meant, run with CALLSHEET_BLESS=1\n\
         now: {differing:#?}\nin the table: {missing:#?}",
        table().display()
    );
}
