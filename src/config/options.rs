//! What loading depends on: flags, environment and folders, given from outside so that this module
//! does not read the process.

use std::path::PathBuf;

use super::origin::ValueOrigin;

/// Everything that loading looks at. [`LoadOptions::from_process`] takes it from the process; tests
/// make their own.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The file to read (`--config`), which has to exist. Without it `CALLSHEET_CONFIG` names it,
    /// else the usual places are looked at.
    pub file: Option<PathBuf>,
    /// Values given by flags: dotted key, value, and the flag as typed (`--listen`). The last one
    /// for a key wins.
    pub flags: Vec<(String, String, String)>,
    /// The environment: `CALLSHEET_SECTION__KEY`, `HOME`, `XDG_CONFIG_HOME`, `XDG_STATE_HOME`, the
    /// variables of proxies (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`), and those that the
    /// configuration names; the rest is not looked at.
    pub env: Vec<(String, String)>,
    /// The working folder, absolute.
    pub cwd: PathBuf,
    /// The folder of system-wide configuration, `/etc`.
    pub etc: PathBuf,
}

impl LoadOptions {
    /// The real environment and folders, without file and flags.
    ///
    /// Bytes that are no UTF-8 are replaced by U+FFFD, so that a variable with such bytes is judged
    /// like any other.
    pub fn from_process() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self {
            file: None,
            flags: Vec::new(),
            env: std::env::vars_os()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            // A working folder that was deleted under us has no files either.
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            etc: PathBuf::from("/etc"),
        }
    }

    /// The file to read: the one that is named, whether or not it is there, else the first of the
    /// usual places that is.
    pub(super) fn find_file(&self) -> Option<PathBuf> {
        if self.named_file().is_some() {
            return self.named_file();
        }
        // A place that cannot be looked at counts as there: reading it then says why it cannot be
        // read.
        self.candidate_files()
            .into_iter()
            .find(|path| path.try_exists().unwrap_or(true))
    }

    /// The places where the file may be, absolute, the first one first: the one that is named, else
    /// the usual ones.
    pub fn candidate_files(&self) -> Vec<PathBuf> {
        if let Some(named) = self.named_file() {
            return vec![named];
        }
        let usual = [
            Some(self.cwd.join("callsheet.toml")),
            self.user_file(),
            Some(self.etc.join("callsheet").join("callsheet.toml")),
        ];
        usual.into_iter().flatten().collect()
    }

    /// The file of this user: the one that `CALLSHEET_CONFIG` names, or the one in the
    /// configuration folder. `None` without a home folder.
    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        let own = || {
            Some(
                self.base_folder("XDG_CONFIG_HOME", ".config")?
                    .join("callsheet")
                    .join("callsheet.toml"),
            )
        };
        self.named_file().or_else(own)
    }

    fn named_file(&self) -> Option<PathBuf> {
        let named = self
            .file
            .clone()
            .or_else(|| self.variable("CALLSHEET_CONFIG").map(PathBuf::from));
        named.map(|path| self.cwd.join(path))
    }

    /// Where the database is by default.
    pub(super) fn state_path(&self) -> Option<PathBuf> {
        Some(
            self.base_folder("XDG_STATE_HOME", ".local/state")?
                .join("callsheet")
                .join("state.db"),
        )
    }

    /// The folder in which a running daemon says where it is: that of this session, or else that of
    /// the state.
    pub fn runtime_folder(&self) -> Option<PathBuf> {
        let set = self
            .variable("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        set.or_else(|| self.base_folder("XDG_STATE_HOME", ".local/state"))
            .map(|folder| folder.join("callsheet"))
    }

    /// The folder of what may be deleted at any time.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        Some(
            self.base_folder("XDG_CACHE_HOME", ".cache")?
                .join("callsheet"),
        )
    }

    /// Where Vrooli's process files are by default.
    pub(super) fn vrooli_path(&self) -> Option<PathBuf> {
        Some(self.home()?.join(".vrooli/processes/scenarios"))
    }

    /// The absolute path that `text` means when it is written at `origin`; `None` if it needs a
    /// home folder and there is none.
    pub(super) fn absolute(&self, text: &str, origin: &ValueOrigin) -> Option<PathBuf> {
        if text == "~" {
            return self.home();
        }
        if let Some(below) = text.strip_prefix("~/") {
            return Some(self.home()?.join(below));
        }
        let folder = match origin {
            ValueOrigin::File { path, .. } => path.parent().unwrap_or(&self.cwd),
            _ => &self.cwd,
        };
        Some(folder.join(text))
    }

    /// An XDG base folder. The specification has relative values ignored.
    fn base_folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = self
            .variable(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        set.or_else(|| Some(self.home()?.join(below_home)))
    }

    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }

    /// A variable as it was set, also if it is empty.
    pub(super) fn set_variable(&self, name: &str) -> Option<String> {
        self.env
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.env
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}
