//! Reads dates in headers. Pure.

use std::time::SystemTime;

use http::HeaderValue;

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A date in one of the three forms (RFC 9110 section 5.6.7), in any letter case (RFC 9111 section
/// 4.2). The form requires the name of a weekday, and no rule requires that it is the weekday of
/// the date.
pub(super) fn parse(value: &HeaderValue) -> Option<SystemTime> {
    let text = value.to_str().ok()?.trim();
    if let Ok(date) = httpdate::parse_http_date(text) {
        return Some(date);
    }
    let end = text.bytes().position(|byte| !byte.is_ascii_alphabetic())?;
    let (named, rest) = text.split_at(end);
    let days = DAYS.map(|day| if end == 3 { &day[..3] } else { day });
    if !days.iter().any(|day| day.eq_ignore_ascii_case(named)) {
        return None;
    }
    // The library reads only the weekday of the day.
    let rest = in_usual_case(rest);
    days.iter()
        .find_map(|day| httpdate::parse_http_date(&format!("{day}{rest}")).ok())
}

/// The rest of a date with its month as `Nov` and its zone as `GMT`.
fn in_usual_case(rest: &str) -> String {
    let mut usual = String::with_capacity(rest.len());
    for c in rest.chars() {
        let begins = !usual.ends_with(|before: char| before.is_ascii_alphabetic());
        usual.push(if begins {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        });
    }
    match usual.strip_suffix("Gmt") {
        Some(before) => format!("{before}GMT"),
        None => usual,
    }
}
