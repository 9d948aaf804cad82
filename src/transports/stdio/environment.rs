//! The environment of child processes: a few variables of this process, and what is set for the
//! child.
//!
//! Everything else stays here, because an environment is where programs keep secrets that are not
//! meant for each other.

use std::ffi::{OsStr, OsString};

/// The variables that a child gets when this process has them.
const PASSED: &[&str] = &[
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// The beginnings of further ones: the locale, and where a person's files are.
const PASSED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Further ones in capital or in small letters: how the network is reached.
const PASSED_PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// What a child gets of these variables.
pub(super) fn passed(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    all.filter(|(name, value)| is_passed(name) && !is_function(value))
}

fn is_passed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    PASSED.contains(&name)
        || PASSED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || PASSED_PROXIES
            .iter()
            .any(|proxy| name == *proxy || name == proxy.to_ascii_lowercase())
}

/// Whether some shells would take the value for a function and run it.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_variables_are_passed_on() {
        let all = [
            "HOME",
            "LC_ALL",
            "XDG_RUNTIME_DIR",
            "https_proxy",
            "NO_PROXY",
            "No_Proxy",
            "AWS_SECRET",
            "LCX",
            "NOTIFY_SOCKET",
        ];
        let all = all
            .map(|name| (name.into(), "x".into()))
            .into_iter()
            .chain([("TERM".into(), "() { :; }".into())]);
        let names: Vec<_> = passed(all).map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "HOME",
                "LC_ALL",
                "XDG_RUNTIME_DIR",
                "https_proxy",
                "NO_PROXY"
            ]
        );
    }
}
