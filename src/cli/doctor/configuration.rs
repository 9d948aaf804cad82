//! The configuration: what its layers are, and what is wrong in them, with file and line.

use std::path::Path;

use super::report::{CheckArea, DoctorReport};
use super::shown;
use crate::config::{self, ClientConfig, LoadOptions, LoadedConfig, ValueOrigin};
use crate::model::Target;

/// The configuration as far as it can be used, and whether a daemon would load it.
pub(super) fn check(options: &LoadOptions, report: &mut DoctorReport) -> (LoadedConfig, bool) {
    let ClientConfig {
        loaded,
        problems,
        process_problems,
    } = config::load_for_client(options);
    for problem in &problems {
        report.error(
            CheckArea::Configuration,
            &place(&problem.origin),
            what(problem),
            &problem.hint,
        );
    }
    for problem in &process_problems {
        let message = format!(
            "{}; this command lacks it, the daemon may have it",
            what(problem)
        );
        report.skipped(
            CheckArea::Configuration,
            &place(&problem.origin),
            message,
            &problem.hint,
        );
    }
    if !problems.is_empty() {
        return (loaded, false);
    }
    let of = |wanted: fn(&ValueOrigin) -> bool| {
        loaded
            .values
            .iter()
            .filter(|value| wanted(&value.origin))
            .count()
    };
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
    let subject = loaded
        .file
        .as_deref()
        .map_or_else(|| "no file".to_owned(), shown);
    report.ok(CheckArea::Configuration, &subject, layers.join(", "));
    for key in loaded.config.renamed_keys() {
        report.warning(
            CheckArea::Configuration,
            &subject,
            key.to_string(),
            key.hint(),
        );
    }
    if let Some(ignored) = &loaded.ignored_variables {
        report.warning(
            CheckArea::Configuration,
            &subject,
            ignored.to_string(),
            ignored.hint(),
        );
    }
    if let Some(message) = programs_under_system_unit(&loaded, &options.etc) {
        let hint = "run callsheet as a service of your user: `callsheet service install`";
        report.warning(CheckArea::Configuration, &subject, message, hint);
    }
    let profiles = &loaded.config.profiles;
    if !profiles.is_empty() && loaded.config.default_profile.is_none() {
        let message = "profiles are configured, but clients that name none see and call every tool";
        let hint = "set `permissions.default_profile` to the profile that holds for them";
        report.warning(CheckArea::Configuration, &subject, message, hint);
    }
    (loaded, true)
}

/// A warning where the file of the system service names programs to start. The unit of the system
/// (`config/systemd/callsheet.service`) sees no home folders and forbids memory that is both
/// writable and executable, which Node needs.
fn programs_under_system_unit(loaded: &LoadedConfig, etc: &Path) -> Option<String> {
    loaded.file.as_ref().filter(|file| file.starts_with(etc))?;
    let is_program = |target: &Target| matches!(target, Target::Stdio(_));
    let programs: Vec<&str> = loaded
        .config
        .scenarios
        .iter()
        .filter(|scenario| is_program(&scenario.target))
        .map(|scenario| scenario.name.as_str())
        .collect();
    if programs.is_empty() {
        return None;
    }
    let names = programs.join(", ");
    Some(format!(
        "the system service cannot run most programs: it sees no home folders and ends Node ({names})"
    ))
}

fn values(count: usize) -> String {
    super::super::output::count(count, "value")
}

/// The key and what is wrong with it.
fn what(problem: &config::Diagnostic) -> String {
    let key = problem
        .key
        .as_ref()
        .map(|key| format!("{key}: "))
        .unwrap_or_default();
    format!("{key}{}", problem.message)
}

/// `path:line:column` where a file is meant.
fn place(origin: &ValueOrigin) -> String {
    match origin {
        ValueOrigin::File {
            path,
            position: Some(at),
        } => format!("{}:{}:{}", path.display(), at.line, at.column),
        ValueOrigin::File {
            path,
            position: None,
        } => shown(path),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_the_file_of_the_system_service_is_a_warning_that_names_it() {
        let etc = tempfile::tempdir().unwrap();
        let file = etc.path().join("callsheet/callsheet.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let options = |etc: &Path| LoadOptions {
            env: vec![("HOME".to_owned(), "/absent".to_owned())],
            cwd: "/absent".into(),
            etc: etc.to_owned(),
            ..LoadOptions::default()
        };
        let warning = |text: &str| {
            std::fs::write(&file, text).unwrap();
            programs_under_system_unit(&config::load(&options(etc.path())).unwrap(), etc.path())
        };
        let program = "[[scenarios]]\nname = \"git\"\ncommand = \"/usr/bin/git-mcp\"\n";
        assert!(warning(program).unwrap().ends_with("(git)"));
        assert_eq!(
            warning("[[scenarios]]\nname = \"a\"\nurl = \"http://127.0.0.1:1\"\n"),
            None
        );
        // The same program in a file of the user is as it should be.
        std::fs::write(&file, program).unwrap();
        let loaded = config::load(&options(etc.path())).unwrap();
        assert_eq!(
            programs_under_system_unit(&loaded, Path::new("/elsewhere")),
            None
        );
    }
}
