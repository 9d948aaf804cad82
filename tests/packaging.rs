//! What packages are made of is there: the files of the Debian package, the units and the settings
//! of the image.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::fs;
use std::path::{Path, PathBuf};

const MANIFEST: &str = include_str!("../Cargo.toml");

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_settings_of_the_image_are_a_configuration_that_listens_where_the_image_says() {
    let script = fs::read_to_string(root().join(".ci/image")).unwrap();
    let defaults: toml::Table = callsheet::config::DEFAULT_TOML.parse().unwrap();
    let (_, port) = defaults["server"]["listen"]
        .as_str()
        .unwrap()
        .rsplit_once(':')
        .unwrap();
    assert!(
        script.contains(&format!("--port {port} ")),
        "the image publishes port {port}"
    );
    let settings = fs::read_to_string(root().join("packaging/image/environment")).unwrap();
    let env = settings.lines().map(|line| line.split_once('=').unwrap());
    let env = env
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let options = callsheet::config::LoadOptions {
        env,
        cwd: "/".into(),
        etc: "/nowhere".into(),
        ..Default::default()
    };
    let config = callsheet::config::load(&options).unwrap().config;
    assert_eq!(config.server.listen.to_string(), format!("0.0.0.0:{port}"));
    assert_eq!(config.state.path, Path::new("/var/lib/callsheet/state.db"));
    assert!(!config.discovery.mdns.enabled);
}

/// The system unit guards more than a program with children can live with; the unit of one user
/// must not take that over.
#[test]
fn the_unit_of_one_user_lets_child_processes_run() {
    let unit = fs::read_to_string(root().join("config/systemd/user/callsheet.service")).unwrap();
    let has = |wanted: &str| unit.lines().any(|line| line.starts_with(wanted));
    assert!(has("KillMode=mixed"));
    assert!(!has("MemoryDenyWriteExecute"));
    assert!(!has("ProtectHome"));
}

/// The README is in the package: its links to other documents lead somewhere.
#[test]
fn the_debian_package_has_the_documents_that_the_readme_links() {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"]
        .as_array()
        .unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links = readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link);
    // Pages for developers of callsheet stay in the repository.
    let documents: Vec<&str> = links
        .filter(|link| {
            Path::new(link).extension().is_some_and(|it| it == "md")
                && !link.starts_with("docs/design/")
        })
        .collect();
    assert!(documents.len() > 15, "{documents:?}");
    for document in documents {
        assert!(
            assets
                .iter()
                .any(|asset| asset[0].as_str() == Some(document)),
            "{document} is not in the package"
        );
    }
}

#[test]
fn what_the_debian_package_holds_is_there() {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"]
        .as_array()
        .unwrap();
    let sources: Vec<&str> = assets
        .iter()
        .map(|asset| asset[0].as_str().unwrap())
        .collect();
    assert!(sources.contains(&"config/default.toml"), "{sources:?}");
    // What is under `target` is made by `.ci/packaging`.
    for source in sources
        .iter()
        .filter(|source| !source.starts_with("target/"))
    {
        assert!(root().join(source).is_file(), "{source}");
    }
    let deb = &manifest["package"]["metadata"]["deb"];
    let unit = &deb["systemd-units"];
    let name = format!("{}.service", unit["unit-name"].as_str().unwrap());
    assert!(
        root()
            .join(unit["unit-scripts"].as_str().unwrap())
            .join(name)
            .is_file()
    );
    // Without this mark nothing would be put there.
    let script = root()
        .join(deb["maintainer-scripts"].as_str().unwrap())
        .join("postinst");
    assert!(
        fs::read_to_string(script)
            .unwrap()
            .lines()
            .any(|line| line == "#DEBHELPER#")
    );
}
