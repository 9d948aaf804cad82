//! Variables in the files of clients: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `{env:NAME}`,
//! and the names that editors know.
//!
//! They are expanded in one pass: a value is not looked through again, and no shell takes part.

use std::path::Path;

/// How the name of a value begins that an editor requests from its user.
const INPUT: &str = "input:";

/// Where the values of variables come from.
pub struct Variables<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The project folder whose own servers are meant too.
    project: Option<&'a Path>,
}

impl<'a> Variables<'a> {
    /// Variables of this environment.
    pub fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            environment,
            project: None,
        }
    }

    /// The same for a person who is in this folder: servers that a client keeps for that project
    /// alone are read too.
    #[must_use]
    pub fn in_project(self, folder: &'a Path) -> Self {
        Self {
            project: Some(folder),
            ..self
        }
    }

    /// Whether a client's project is that of this folder.
    pub(super) fn is_in(&self, project: &str) -> bool {
        self.project
            .is_some_and(|folder| folder == Path::new(project))
    }

    /// A text with its variables expanded. `file` is the file that it stands in. The error names
    /// the variable that has no value.
    pub(super) fn expand(&self, text: &str, file: &Path) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = next(rest) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let inner = rest.find('{').map_or(rest.len(), |brace| brace + 1);
            let Some(end) = rest.find('}') else { break };
            let name = &rest[inner..end];
            let Some(value) = self.value(name, file) else {
                let next = name
                    .strip_prefix(INPUT)
                    .map(|id| format!(" (`{}` gives it one)", input_variable(id)));
                return Err(format!(
                    "`{}` has no value{}",
                    &rest[..=end],
                    next.unwrap_or_default()
                ));
            };
            out.push_str(&value);
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value(&self, name: &str, file: &Path) -> Option<String> {
        let folder = || workspace(file).map(|folder| folder.display().to_string());
        match name {
            "userHome" => (self.environment)("HOME"),
            "workspaceFolder" => folder(),
            "workspaceFolderBasename" => {
                Some(workspace(file)?.file_name()?.to_string_lossy().into_owned())
            }
            "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
            _ if name.starts_with(INPUT) => {
                (self.environment)(&input_variable(&name[INPUT.len()..]))
            }
            _ => {
                let name = name.strip_prefix("env:").unwrap_or(name);
                let (name, default) = name
                    .split_once(":-")
                    .map_or((name, None), |(name, default)| (name, Some(default)));
                (self.environment)(name).or_else(|| default.map(str::to_owned))
            }
        }
    }
}

/// The variable of the environment that stands for what an editor requests from its user.
fn input_variable(id: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    format!("INPUT_{}", id.chars().map(plain).collect::<String>())
}

/// Where the next variable begins.
fn next(text: &str) -> Option<usize> {
    [text.find("${"), text.find("{env:")]
        .into_iter()
        .flatten()
        .min()
}

/// The project that a file belongs to: the folder that has the folder `.vscode` or `.cursor`, or
/// else the folder of the file.
fn workspace(file: &Path) -> Option<&Path> {
    let folder = file.parent()?;
    let is_hidden = folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if is_hidden {
        folder.parent()
    } else {
        Some(folder)
    }
}
