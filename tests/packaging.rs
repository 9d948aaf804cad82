//! What packages are made of is there: the files that the Dockerfile copies and the Debian package
//! holds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::fs;
use std::path::{Path, PathBuf};

const DOCKERFILE: &str = include_str!("../Dockerfile");
const IGNORED: &str = include_str!("../.dockerignore");
const MANIFEST: &str = include_str!("../Cargo.toml");

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The instructions of the Dockerfile, each in one line.
fn instructions() -> Vec<String> {
    let lines: Vec<&str> = DOCKERFILE.lines().filter(|line| !line.starts_with('#')).collect();
    let text = lines.join("\n");
    text.replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// What the build takes from the checkout.
fn copied() -> Vec<String> {
    let from_outside = |line: &&String| line.starts_with("COPY ") && !line.contains("--from=");
    let mut copied = Vec::new();
    for line in instructions().iter().filter(from_outside) {
        let words: Vec<&str> = line.split_whitespace().skip(1).filter(|word| !word.starts_with("--")).collect();
        copied.extend(words[..words.len() - 1].iter().map(|word| (*word).to_owned()));
    }
    copied
}

#[test]
fn what_the_image_is_built_from_is_there_and_not_ignored() {
    let copied = copied();
    assert!(copied.iter().any(|source| source == "src"), "{copied:?}");
    for source in &copied {
        assert!(root().join(source).exists(), "COPY {source}");
        assert!(IGNORED.lines().any(|line| line == format!("!{source}")), "{source} is ignored");
    }
    let kept = IGNORED.lines().filter_map(|line| line.strip_prefix('!'));
    for kept in kept {
        assert!(copied.iter().any(|source| source == kept), "{kept} is sent and not copied");
    }
}

/// Every path that a manifest's target names, and every file outside of `src` that is compiled in.
#[test]
fn the_image_has_all_that_the_build_reads() {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let mut needed = vec!["Cargo.toml".to_owned(), "Cargo.lock".to_owned()];
    for (kind, folder) in [("bench", "benches"), ("example", "examples")] {
        for target in manifest.get(kind).and_then(toml::Value::as_array).into_iter().flatten() {
            let name = target["name"].as_str().unwrap();
            let path = target.get("path").and_then(toml::Value::as_str);
            needed.push(path.map_or_else(|| format!("{folder}/{name}.rs"), str::to_owned));
        }
    }
    for file in rust_files(&root().join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("include_") {
            // Only what stands on the same line names a file; the rest is of macros of our own.
            let Some(path) = text[at..].lines().next().and_then(|line| line.split('"').nth(1)) else { continue };
            let Ok(path) = file.parent().unwrap().join(path).canonicalize() else { continue };
            needed.push(path.strip_prefix(root().canonicalize().unwrap()).unwrap().display().to_string());
        }
    }
    assert!(needed.iter().any(|path| path == "config/default.toml"), "{needed:?}");
    let copied = copied();
    for path in needed {
        assert!(copied.iter().any(|source| Path::new(&path).starts_with(source)), "{path} is not copied");
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn the_image_listens_where_it_says_and_is_nobody() {
    let instructions = instructions();
    let has = |wanted: &str| instructions.iter().any(|line| line.starts_with(wanted));
    let defaults: toml::Table = callsheet::config::DEFAULT_TOML.parse().unwrap();
    let (_, port) = defaults["server"]["listen"].as_str().unwrap().rsplit_once(':').unwrap();
    assert!(has(&format!("EXPOSE {port}")) && has("USER 65534:65534") && has("VOLUME /var/lib/callsheet"));
    // What it sets is a configuration that can be used.
    let set = instructions.iter().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    let env = set.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let options = callsheet::config::LoadOptions { env, cwd: "/".into(), etc: "/nowhere".into(), ..Default::default() };
    let config = callsheet::config::load(&options).unwrap().config;
    assert_eq!(config.server.listen.to_string(), format!("0.0.0.0:{port}"));
    assert_eq!(config.state.path, Path::new("/var/lib/callsheet/state.db"));
    assert!(!config.discovery.mdns.enabled);
}

/// The README is in the package: its links to other documents lead somewhere.
#[test]
fn the_debian_package_has_the_documents_that_the_readme_links() {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links = readme.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    // Pages for developers of callsheet stay in the repository.
    let documents: Vec<&str> = links
        .filter(|link| Path::new(link).extension().is_some_and(|it| it == "md") && !link.starts_with("docs/design/"))
        .collect();
    assert!(documents.len() > 15, "{documents:?}");
    for document in documents {
        assert!(assets.iter().any(|asset| asset[0].as_str() == Some(document)), "{document} is not in the package");
    }
}

#[test]
fn what_the_debian_package_holds_is_there() {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let sources: Vec<&str> = assets.iter().map(|asset| asset[0].as_str().unwrap()).collect();
    assert!(sources.contains(&"config/default.toml"), "{sources:?}");
    // What is under `target` is made by `.ci/packaging`.
    for source in sources.iter().filter(|source| !source.starts_with("target/")) {
        assert!(root().join(source).is_file(), "{source}");
    }
    let deb = &manifest["package"]["metadata"]["deb"];
    let unit = &deb["systemd-units"];
    let name = format!("{}.service", unit["unit-name"].as_str().unwrap());
    assert!(root().join(unit["unit-scripts"].as_str().unwrap()).join(name).is_file());
    // Without this mark nothing would be put there.
    let script = root().join(deb["maintainer-scripts"].as_str().unwrap()).join("postinst");
    assert!(fs::read_to_string(script).unwrap().lines().any(|line| line == "#DEBHELPER#"));
}
