//! Whether a body is of the vendor that it is said to be of, and else of which.
//!
//! A whole response has marks of its own. A message alone may be of several vendors, since some
//! share their shape. The marks stand with each vendor.

use serde_json::value::RawValue;

use super::marks::BodyMarks;
use super::read::ReadError;
use super::vendors::{TURN_FORMATS, TurnFormat};
use crate::json::members::each_item;

/// How lines of a stream of events begin.
const STREAM_LINES: [&str; 5] = ["data:", "event:", "id:", ":", "retry:"];

/// Whether a body may be a response of `format`.
pub(super) fn check(format: &dyn TurnFormat, body: &str) -> Result<(), ReadError> {
    let body = body.trim_start();
    if STREAM_LINES.iter().any(|line| body.starts_with(line)) {
        return Err(ReadError::Stream);
    }
    match body.as_bytes().first() {
        Some(b'[') => check_list(format, body),
        Some(b'{') => check_object(format, body),
        _ => {
            // Says what is wrong if it is not JSON at all.
            serde_json::from_str::<&RawValue>(body)?;
            Err(ReadError::UnknownFormat(format.id()))
        }
    }
}

fn check_object(format: &dyn TurnFormat, body: &str) -> Result<(), ReadError> {
    let marks = match BodyMarks::parse(body) {
        Ok(marks) => marks,
        // Several objects, one in each line.
        Err(error) if error.to_string().starts_with("trailing characters") && error.line() > 1 => {
            return Err(ReadError::Stream);
        }
        Err(error) => return Err(error.into()),
    };
    if all(format).any(|vendor| vendor.is_event(&marks)) {
        return Err(ReadError::Stream);
    }
    if let Some(judged) = judged(format, |vendor| vendor.is_response(&marks)) {
        return judged;
    }
    if marks.has("role") {
        let judged = judged(format, |vendor| vendor.is_message(&marks));
        return judged.unwrap_or(Err(ReadError::UnknownFormat(format.id())));
    }
    if marks.has("error") {
        let what = "it is an error of the vendor, not a response of its model";
        return Err(ReadError::Malformed(what.to_owned()));
    }
    Err(ReadError::UnknownFormat(format.id()))
}

/// A list: of what a vendor has in place of a message, or of what one streamed.
fn check_list(format: &dyn TurnFormat, body: &str) -> Result<(), ReadError> {
    serde_json::from_str::<&RawValue>(body)?;
    let mut items = Vec::new();
    let read = each_item(body, |_, item| items.push(BodyMarks::parse(item.get())));
    read.map_err(|found| ReadError::Malformed(format!("it is {found}, not a list")))?;
    let items = items.into_iter().collect::<Result<Vec<_>, _>>()?;
    let first = items.first();
    if first.is_some_and(|first| all(format).any(|vendor| vendor.is_streamed(first))) {
        return Err(ReadError::Stream);
    }
    judged(format, |vendor| vendor.is_list(first))
        .unwrap_or(Err(ReadError::UnknownFormat(format.id())))
}

/// The requested format first, then every vendor.
fn all(format: &dyn TurnFormat) -> impl Iterator<Item = &dyn TurnFormat> {
    std::iter::once(format).chain(TURN_FORMATS.iter().map(|vendor| *vendor as &dyn TurnFormat))
}

/// Whether a body is of this format, or the first one that it is of; `None` if it is of none.
fn judged(
    format: &dyn TurnFormat,
    is_own: impl Fn(&dyn TurnFormat) -> bool,
) -> Option<Result<(), ReadError>> {
    let like = all(format).find(|vendor| is_own(*vendor))?.id();
    if like == format.id() {
        return Some(Ok(()));
    }
    Some(Err(ReadError::OtherFormat {
        format: format.id(),
        like,
    }))
}
