//! The configuration: what its layers are, and what is wrong in them, with file and line.

use super::report::{CheckArea, DoctorReport};
use super::shown;
use crate::config::{self, LoadOptions, LoadedConfig, ValueOrigin};

/// The configuration as far as it can be used, and whether a daemon would load it.
pub(super) fn check(options: &LoadOptions, report: &mut DoctorReport) -> (LoadedConfig, bool) {
    let (loaded, error) = config::load_usable(options);
    if let Some(error) = error {
        for problem in &error.problems {
            report.error(CheckArea::Configuration, &place(&problem.origin), what(problem), &problem.hint);
        }
        return (loaded, false);
    }
    let of = |wanted: fn(&ValueOrigin) -> bool| loaded.values.iter().filter(|value| wanted(&value.origin)).count();
    let file = of(|origin| matches!(origin, ValueOrigin::File { .. }));
    let environment = of(|origin| matches!(origin, ValueOrigin::Environment(_)));
    let mut layers = Vec::new();
    if loaded.file.is_some() {
        layers.push(format!("{} from the file", values(file)));
    }
    if environment > 0 {
        layers.push(format!("{} from the environment", values(environment)));
    }
    layers.push("all else by default".to_owned());
    let subject = loaded.file.as_deref().map_or_else(|| "no file".to_owned(), shown);
    report.ok(CheckArea::Configuration, &subject, layers.join(", "));
    for key in loaded.config.renamed_keys() {
        report.warning(CheckArea::Configuration, &subject, key.to_string(), key.hint());
    }
    let profiles = &loaded.config.profiles;
    if !profiles.is_empty() && loaded.config.default_profile.is_none() {
        let message = "profiles are configured, but clients that name none see and call every tool";
        let hint = "set `permissions.default_profile` to the profile that holds for them";
        report.warning(CheckArea::Configuration, &subject, message, hint);
    }
    (loaded, true)
}

fn values(count: usize) -> String {
    super::super::output::count(count, "value")
}

/// The key and what is wrong with it.
fn what(problem: &config::Diagnostic) -> String {
    let key = problem.key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default();
    format!("{key}{}", problem.message)
}

/// `path:line:column` where a file is meant.
fn place(origin: &ValueOrigin) -> String {
    match origin {
        ValueOrigin::File { path, position: Some(at) } => format!("{}:{}:{}", path.display(), at.line, at.column),
        ValueOrigin::File { path, position: None } => shown(path),
        other => other.to_string(),
    }
}
