//! Where a command is: its own path, or the first folder of `PATH` that has it.
//!
//! It is looked up here and not by the system, so that a failure can say where it was looked for.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::model::StdioTarget;
use crate::transports::TransportError;

/// The program of a target. `path` is the `PATH` of this process; the one in the target's own
/// environment goes before.
pub(super) fn program(
    target: &StdioTarget,
    path: Option<OsString>,
) -> Result<PathBuf, TransportError> {
    let command = target.command();
    let missing = |searched: String| TransportError::CommandNotFound {
        command: command.to_owned(),
        searched,
    };
    if command.is_empty() {
        return Err(missing("it is empty".to_owned()));
    }
    if command.contains('/') {
        let folder = target.cwd().map(Path::to_owned).unwrap_or_default();
        let program = std::path::absolute(folder.join(command)).unwrap_or_else(|_| command.into());
        let is_there = program.is_file();
        return if is_there {
            Ok(program)
        } else {
            Err(missing(format!("{} is not a file", program.display())))
        };
    }
    let own = target.env().get("PATH");
    let folders = own
        .map(|own| own.expose().into())
        .or(path)
        .unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(command));
    let found = found.into_iter().find(|program| is_executable(program));
    found.ok_or_else(|| missing(searched(own.is_some(), &folders)))
}

/// Where it was looked for. The folders are not named: a usual `PATH` has many lines.
fn searched(is_own: bool, folders: &OsStr) -> String {
    match (is_own, folders.is_empty()) {
        (true, _) => "no folder of the PATH in its `env` has it".to_owned(),
        (false, true) => "there is no PATH".to_owned(),
        (false, false) => match std::env::split_paths(folders).count() {
            1 => "the one folder of PATH does not have it".to_owned(),
            count => format!("none of the {count} folders of PATH has it"),
        },
    }
}

#[cfg(unix)]
fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    program
        .metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(program: &Path) -> bool {
    program.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Secret;

    #[test]
    fn a_command_is_looked_up_in_its_own_path_first() {
        let of = |target: &StdioTarget, path: &str| {
            program(target, Some(path.into())).map_err(|error| error.to_string())
        };
        let sh = StdioTarget::new("sh");
        assert_eq!(of(&sh, "/nowhere::relative:/bin"), Ok("/bin/sh".into()));
        let error = of(&sh, "/nowhere:/etc").unwrap_err();
        assert_eq!(
            error,
            "the command `sh` was not found: none of the 2 folders of PATH has it"
        );
        assert_eq!(program(&sh, None).unwrap_err().kind(), "command-not-found");

        let own = |path: &str| sh.clone().with_env([("PATH", Secret::new(path))]);
        assert_eq!(of(&own("/bin"), "/nowhere"), Ok("/bin/sh".into()));
        let error = of(&own("/hidden"), "/bin").unwrap_err();
        assert!(
            error.contains("the PATH in its `env`") && !error.contains("/hidden"),
            "{error}"
        );
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        let of = |target: &StdioTarget| program(target, None).map_err(|error| error.to_string());
        assert_eq!(of(&StdioTarget::new("/bin/sh")), Ok("/bin/sh".into()));
        assert_eq!(
            of(&StdioTarget::new("./sh").with_cwd(Some("/bin".into()))),
            Ok("/bin/sh".into())
        );
        let error = of(&StdioTarget::new("/nowhere/sh")).unwrap_err();
        assert_eq!(
            error,
            "the command `/nowhere/sh` was not found: /nowhere/sh is not a file"
        );
        assert!(of(&StdioTarget::new("/bin")).is_err() && of(&StdioTarget::new("")).is_err());
    }
}
