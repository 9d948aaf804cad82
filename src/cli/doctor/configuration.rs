//! The configuration: what its layers are, and what is wrong in them, with file and line.

use super::report::{CheckArea, DoctorReport};
use super::shown;
use crate::config::{self, LoadOptions, LoadedConfig, ValueOrigin};

/// The configuration as the daemon would load it; `None` if it cannot be used.
pub(super) fn check(options: &LoadOptions, report: &mut DoctorReport) -> Option<LoadedConfig> {
    let loaded = match config::load(options) {
        Ok(loaded) => loaded,
        Err(error) => {
            for problem in &error.problems {
                report.error(CheckArea::Configuration, &place(&problem.origin), what(problem), &problem.hint);
            }
            return None;
        }
    };
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
    Some(loaded)
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
