//! The memory of names that no list has any more, through the library: its bound and its end.

use std::time::Duration;

use callsheet::catalog::FormerNames;
use callsheet::catalog::former_names::FORMER_NAMES_MAX;
use jiff::Timestamp;

use crate::support::offers::catalog;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn of_too_many_former_names_the_latest_are_remembered() {
    let all: Vec<String> = (0..FORMER_NAMES_MAX + 100)
        .map(|n| format!("tool_{n}"))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let old = catalog(&[("early", &["first"]), ("big", &all)], &[]);
    let between = catalog(&[("big", &all)], &[]);
    let new = catalog(&[], &[]);
    let mut names = FormerNames::keeping(Duration::from_secs(3600));
    names.note(&old, &between, second(1));
    assert_eq!(names.find("first").unwrap().id.to_string(), "early/first");
    names.note(&between, &new, second(2));
    assert_eq!(names.len(), FORMER_NAMES_MAX);
    assert_eq!(names.find("first"), None, "it went first");
    assert!(names.find("tool_0").is_some() || names.find("tool_4195").is_some());
}

#[test]
fn former_names_are_forgotten_in_time() {
    let old = catalog(&[("files", &["read"])], &[]);
    let new = catalog(&[], &[]);
    let mut names = FormerNames::keeping(Duration::from_secs(10));
    names.note(&old, &new, second(100));
    assert_eq!(
        &*names.find("files/read").unwrap().cause,
        "scenario files is not known any more"
    );
    names.note(&new, &new, second(110));
    assert_eq!(names.find("read").unwrap().since, second(100));
    names.note(&new, &new, second(111));
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn of_several_former_names_the_latest_is_found() {
    let read: &[&str] = &["read"];
    let all = [("desk", read), ("files", read), ("mail", read)];
    let three = catalog(&all, &[]);
    let two = catalog(&[all[0], all[2]], &[]);
    let mut names = FormerNames::keeping(Duration::from_secs(3600));
    names.note(&three, &two, second(1));
    names.note(&two, &catalog(&[all[0]], &[]), second(2));
    assert_eq!(names.find("files/read").unwrap().since, second(1));
    assert_eq!(names.find("read").unwrap().since, second(2));
}
