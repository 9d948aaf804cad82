//! A machine of the test's own to load configurations on: real files, and an environment that is
//! not the process's.

use std::fs;
use std::path::PathBuf;

use callsheet::config::{Config, ConfigError, LoadOptions, LoadedConfig, ValueOrigin, load};
use tempfile::TempDir;

/// A machine of its own: a home, a working folder and an `/etc`, all empty.
pub(crate) struct Machine {
    pub(crate) root: TempDir,
    pub(crate) options: LoadOptions,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let home = dir("home");
        let options = LoadOptions {
            env: vec![
                ("HOME".into(), home.to_str().unwrap().into()),
                ("PATH".into(), "/bin".into()),
            ],
            cwd: dir("work"),
            etc: dir("etc"),
            ..LoadOptions::default()
        };
        Self { root, options }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// With `text` as the file in the working folder.
    pub(crate) fn file(self, text: &str) -> Self {
        self.write("work/callsheet.toml", text);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.options.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn flag(mut self, key: &str, value: &str, flag: &str) -> Self {
        self.options
            .flags
            .push((key.into(), value.into(), flag.into()));
        self
    }

    pub(crate) fn load(&self) -> Result<LoadedConfig, ConfigError> {
        load(&self.options)
    }

    pub(crate) fn config(&self) -> Config {
        self.load().unwrap_or_else(|error| panic!("{error}")).config
    }

    /// The error's text, with the machine's root left out of paths.
    pub(crate) fn error(&self) -> String {
        let root = format!("{}/", self.root.path().display());
        self.load()
            .expect_err("this configuration should be refused")
            .to_string()
            .replace(&root, "")
    }

    pub(crate) fn shown(&self, key: &str) -> (String, ValueOrigin) {
        let values = self.load().unwrap_or_else(|error| panic!("{error}")).values;
        let value = values
            .iter()
            .find(|value| value.key == key)
            .unwrap_or_else(|| panic!("no value for {key}"));
        (value.value.clone(), value.origin.clone())
    }

    pub(crate) fn defaults(&self) -> Config {
        let mut config = Config::for_state(self.path("home/.local/state/callsheet/state.db"));
        config.discovery.vrooli.path = Some(self.path("home/.vrooli/processes/scenarios"));
        config.discovery.mdns.enabled = true;
        config
    }
}
