//! Checks the values of metadata against the protocol's text, and examples against the parameters.

use super::fit;
use super::rule_context::RuleContext;
use crate::json::value::Json;
use crate::model::FindingCode;
use crate::model::finding::quoted_excerpt;

/// Allowed values of `cost_estimate`.
const COSTS: [&str; 4] = ["low", "medium", "high", "variable"];
/// Members that are counts. Some providers write 0 for "not set".
const COUNTS: [&str; 2] = ["timeout_seconds", "rate_limit_per_minute"];

/// Checks metadata, and its examples against the tool's parameters.
pub(super) fn judge(
    place: &mut RuleContext<'_>,
    metadata: &Json<'_>,
    parameters: Option<&Json<'_>>,
) {
    if let Some(cost) = metadata.get_non_null("cost_estimate")
        && !cost
            .text()
            .is_some_and(|cost| cost.is_empty() || COSTS.contains(&cost))
    {
        let seen = cost
            .text()
            .map_or_else(|| cost.kind().to_owned(), quoted_excerpt);
        let message = format!("`cost_estimate` is {seen}, which the protocol does not know");
        place.report_at(
            "/cost_estimate",
            FindingCode::MetadataValue,
            message,
            "write `low`, `medium`, `high` or `variable`",
        );
    }
    for name in COUNTS {
        if let Some(count) = metadata
            .get(name)
            .and_then(Json::number)
            .filter(|count| *count < 0.0)
        {
            let message = format!("`{name}` is {count}, which is not a limit");
            place.report_at(
                &format!("/{name}"),
                FindingCode::MetadataValue,
                message,
                "write a positive number, or leave it out",
            );
        }
    }
    let Some(examples) = metadata.get_non_null("examples") else {
        return;
    };
    place.within("examples", |place| {
        let Some(examples) = examples.list() else {
            let message = format!("`examples` must be a list, but it is {}", examples.kind());
            return place.report(
                FindingCode::MetadataValue,
                message,
                "list objects with `description` and `input`",
            );
        };
        let mut budget = fit::StepBudget::new();
        for (index, example) in examples.iter().enumerate() {
            place.at(index, |place| one(place, example, parameters, &mut budget));
        }
    });
}

fn one(
    place: &mut RuleContext<'_>,
    example: &Json<'_>,
    parameters: Option<&Json<'_>>,
    budget: &mut fit::StepBudget,
) {
    if !matches!(example, Json::Object(_)) {
        let message = format!(
            "an example must be an object, but this is {}",
            example.kind()
        );
        return place.report(
            FindingCode::MetadataValue,
            message,
            "write an object with `description` and `input`",
        );
    }
    // Some spellings leave out an input without members.
    let empty = Json::Object(Vec::new());
    let input = example.get_non_null("input").unwrap_or(&empty);
    let Some(misfit) = parameters.and_then(|parameters| fit::misfit(parameters, input, budget))
    else {
        return;
    };
    let subject = if misfit.at.is_empty() || misfit.what.starts_with("has ") {
        "the example".to_owned()
    } else {
        format!(
            "the example's {}",
            quoted_excerpt(misfit.at.trim_start_matches('/'))
        )
    };
    let hint = "fix the example: LLMs copy the examples that they see";
    place.report_at(
        &format!("/input{}", misfit.at),
        FindingCode::ExampleUnfit,
        format!("{subject} {}", misfit.what),
        hint,
    );
}
