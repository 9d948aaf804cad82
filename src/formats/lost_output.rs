//! Schemas of results that cannot be shown to all clients.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::soundness::is_sound;
use crate::model::Tool;

/// Why the schema of the results of a tool is left out, and what to do; `None` if it is shown, or
/// if there is none. Clients of the revisions before 2026-07-28 take no list with an output that is
/// no object.
pub(super) fn lost_output(tool: &Tool) -> Option<(&'static str, &'static str)> {
    let json = tool.output()?.get();
    if !is_sound(json) {
        let hint = "nest at most 127 levels, escape characters in whole pairs, and keep numbers within a double";
        return Some(("common JSON readers refuse it", hint));
    }
    let root = serde_json::from_str::<OutputRoot<'_>>(json);
    let is_object =
        root.is_ok_and(|root| root.kind.is_some_and(|kind| kind.get() == r#""object""#));
    let hint = "give the schema the type `object`, and the result as a member of it";
    (!is_object).then_some((
        "many clients take no list with an output that is no object",
        hint,
    ))
}

/// The outermost level of a schema.
#[derive(Deserialize)]
struct OutputRoot<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}
