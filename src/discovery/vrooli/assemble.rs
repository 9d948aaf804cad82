//! From the texts of the process files to the endpoints and findings. Pure: no IO, no clock;
//! liveness is a question passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use url::Url;

use super::alive::{Liveness, ProcessEnding};
use super::process_file::{Process, ProcessFileError};
use super::text::printable;
use crate::discovery::{Endpoint, EndpointId, SourceTrust};
use crate::model::{Finding, FindingCode, ScenarioName, Target};

/// The folder of one scenario, as it was read.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    /// Where it is; its last part is the scenario's name.
    pub(super) path: PathBuf,
    /// The process files that are there, in their order of precedence; an error if no file in the
    /// folder can be read.
    pub(super) files: Result<Vec<File>, ProcessFileError>,
}

/// One process file, as it was read.
#[derive(Debug, Clone)]
pub(super) struct File {
    /// Its name in the folder.
    pub(super) name: &'static str,
    /// Its text.
    pub(super) text: Result<String, ProcessFileError>,
}

/// What a process file says, remembered so that a half-written file does not make it vanish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    /// The file that named it.
    file: &'static str,
    /// The process that must live.
    pid: u32,
    /// When it was started, as the file says.
    started: Option<Timestamp>,
    /// Why the process does not run.
    ending: Option<ProcessEnding>,
    /// The address, if the file names one, and that its process has ended.
    pub(super) endpoint: Endpoint,
}

/// What all folders together say.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    /// One entry per scenario that runs, or whose process has ended while its file is there.
    pub(super) entries: BTreeMap<EndpointId, ProcessEntry>,
    /// The processes that run: the end of one of them changes the entries.
    pub(super) running: BTreeSet<u32>,
    /// What could not be used, in the order of the folders.
    pub(super) findings: Vec<Finding>,
}

/// Judges every folder. `before` holds the entries of the time before, for files that are
/// unreadable now.
pub(super) fn assemble(
    folders: &[Folder],
    before: &BTreeMap<EndpointId, ProcessEntry>,
    liveness: &dyn Fn(u32, Option<Timestamp>) -> Liveness,
) -> Assembled {
    let mut assembled = Assembled::default();
    for folder in folders {
        let name = folder
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let Ok(name) = name.parse::<ScenarioName>() else {
            assembled.findings.push(illegal(&folder.path));
            continue;
        };
        let id = EndpointId(name.as_str().into());
        let judge = Judge {
            folder,
            name: &name,
            before: before.get(&id),
            liveness,
        };
        if let Some(entry) = judge.entry(&mut assembled) {
            assembled.entries.insert(id, entry);
        }
    }
    assembled
}

/// One folder under judgement.
struct Judge<'a> {
    folder: &'a Folder,
    name: &'a ScenarioName,
    before: Option<&'a ProcessEntry>,
    liveness: &'a dyn Fn(u32, Option<Timestamp>) -> Liveness,
}

impl Judge<'_> {
    /// The entry of the first usable file whose process runs, else one whose process has ended:
    /// the first that names an address, else the first.
    fn entry(&self, assembled: &mut Assembled) -> Option<ProcessEntry> {
        let files = match &self.folder.files {
            Ok(files) => files,
            Err(problem) => {
                return self.remembered(&self.folder.path, problem, self.before, assembled);
            }
        };
        let mut portless = None;
        let mut ended = Vec::new();
        for file in files {
            let path = self.folder.path.join(file.name);
            let read = file
                .text
                .as_deref()
                .map_err(ProcessFileError::clone)
                .and_then(Process::parse);
            let entry = match read {
                Ok(process) => {
                    let entry = self.judged(self.entry_of(file.name, &process), assembled);
                    match process.port {
                        // The port of a process that has ended is of no interest.
                        Ok(None) if entry.ending.is_none() => {
                            portless.get_or_insert(path);
                            continue;
                        }
                        Err(problem) if entry.ending.is_none() => {
                            assembled.findings.push(self.finding(&path, &problem, None));
                            continue;
                        }
                        Ok(_) | Err(_) => Some(entry),
                    }
                }
                Err(problem) => {
                    let known = self
                        .before
                        .filter(|entry| problem.is_silence() && entry.file == file.name);
                    self.remembered(&path, &problem, known, assembled)
                }
            };
            match entry {
                Some(entry) if entry.ending.is_none() => return Some(entry),
                entry => ended.extend(entry),
            }
        }
        assembled
            .findings
            .extend(portless.map(|path| self.portless(&path)));
        let addressed = ended
            .iter()
            .position(|entry| entry.endpoint.target.is_some());
        ended.into_iter().nth(addressed.unwrap_or_default())
    }

    /// What a process file says.
    fn entry_of(&self, file: &'static str, process: &Process) -> ProcessEntry {
        let port = process.port.as_ref().ok().copied().flatten();
        let url = port.and_then(|port| Url::parse(&format!("http://127.0.0.1:{port}")).ok());
        let endpoint = Endpoint {
            name: Some(self.name.clone()),
            boot: Some(process.boot.as_str().into()),
            target: url.map(Target::at),
            ..Endpoint::unplaced(SourceTrust::Trusted)
        };
        ProcessEntry {
            file,
            pid: process.pid,
            started: process.started,
            ending: None,
            endpoint,
        }
    }

    /// The entry with what is known of its process now.
    fn judged(&self, mut entry: ProcessEntry, assembled: &mut Assembled) -> ProcessEntry {
        let known = self
            .before
            .filter(|before| before.endpoint.boot == entry.endpoint.boot);
        entry.ending = match (self.liveness)(entry.pid, entry.started) {
            Liveness::Ended(ending) => Some(ending),
            // What has ended does not come back under the same start: its id was given away. Only
            // a comparison of times may turn out to be wrong, when the clock is corrected.
            Liveness::Runs => known
                .and_then(|before| before.ending)
                .filter(|ending| *ending != ProcessEnding::Reused),
        };
        let path = self.folder.path.join(entry.file);
        let path = printable(&path.to_string_lossy());
        let why = entry
            .ending
            .map(|ending| format!("process {} of `{path}` {ending}", entry.pid));
        entry.endpoint.ended = why.map(Into::into);
        if entry.ending.is_none() {
            assembled.running.insert(entry.pid);
        }
        entry
    }

    /// What is still known of something that cannot be read now, with a finding that says so.
    fn remembered(
        &self,
        path: &Path,
        problem: &ProcessFileError,
        known: Option<&ProcessEntry>,
        assembled: &mut Assembled,
    ) -> Option<ProcessEntry> {
        let entry = known.map(|entry| self.judged(entry.clone(), assembled));
        let kept = entry.as_ref().filter(|entry| entry.ending.is_none());
        assembled.findings.push(self.finding(path, problem, kept));
        entry
    }

    fn finding(
        &self,
        path: &Path,
        problem: &ProcessFileError,
        kept: Option<&ProcessEntry>,
    ) -> Finding {
        let path = printable(&path.to_string_lossy());
        let message = match kept {
            None => format!("`{path}` was left out: {problem}"),
            Some(entry) => {
                format!(
                    "`{path}` cannot be read now, so its last address stays while process {} lives: {problem}",
                    entry.pid
                )
            }
        };
        let hint = match problem {
            ProcessFileError::Unreadable(_) => {
                "let the user that runs callsheet read it".to_owned()
            }
            _ => format!(
                "restart the scenario `{}`, which writes the file anew, or remove the file",
                self.name
            ),
        };
        let finding = Finding::new(FindingCode::EntryIgnored, message)
            .of_scenario(self.name)
            .hint(hint);
        match problem.pointer() {
            Some(pointer) => finding.at(pointer),
            None => finding,
        }
    }

    /// The scenario runs but cannot be found; a finding explains why.
    fn portless(&self, path: &Path) -> Finding {
        let path = printable(&path.to_string_lossy());
        Finding::new(
            FindingCode::EntryIgnored,
            format!("`{path}` was left out: its process lives, but its `port` is null"),
        )
        .of_scenario(self.name)
        .hint("name its address under `[[scenarios]]` in the configuration if it serves tools")
        .at("/port")
    }
}

fn illegal(path: &Path) -> Finding {
    Finding::new(
        FindingCode::EntryIgnored,
        format!(
            "the folder `{}` was left out: its name is not a scenario name (1 to 100 letters, digits, `.`, `_` or `-`, beginning with a \
             letter or digit)",
            printable(&path.to_string_lossy())
        ),
    )
    .hint("rename the folder, or move it away if it is not a scenario")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: u32 = 41;
    const DEAD: u32 = 42;

    fn alive(pid: u32, _: Option<Timestamp>) -> Liveness {
        if pid == DEAD {
            Liveness::Ended(ProcessEnding::Gone)
        } else {
            Liveness::Runs
        }
    }

    fn text(pid: u32, port: &str) -> String {
        format!(r#"{{"pid": {pid}, "port": {port}, "started_at": "t0"}}"#)
    }

    fn folder(name: &str, files: &[(&'static str, &str)]) -> Folder {
        let file = |(name, text): &(&'static str, &str)| File {
            name,
            text: Ok((*text).to_owned()),
        };
        Folder {
            path: Path::new("/p").join(name),
            files: Ok(files.iter().map(file).collect()),
        }
    }

    /// The scenarios that run.
    fn ports(assembled: &Assembled) -> Vec<(String, Option<u16>)> {
        let runs = |(_, entry): &(&EndpointId, &ProcessEntry)| entry.endpoint.ended.is_none();
        assembled
            .entries
            .iter()
            .filter(runs)
            .map(|(id, entry)| {
                (
                    id.to_string(),
                    entry.endpoint.target.as_ref().unwrap().url().port(),
                )
            })
            .collect()
    }

    #[test]
    fn the_first_usable_file_wins() {
        let dead = text(DEAD, "15000");
        let null = text(LIVE, "null");
        let live = text(LIVE, "15002");
        let later = text(LIVE, "15003");
        for (files, port, findings) in [
            (
                vec![("start-api.json", &live), ("app.json", &later)],
                Some(15002),
                0,
            ),
            (
                vec![
                    ("start-api.json", &dead),
                    ("start-app.json", &null),
                    ("api.json", &live),
                ],
                Some(15002),
                0,
            ),
            (vec![("start-api.json", &dead)], None, 0),
            (vec![("start-api.json", &null)], None, 1),
            (vec![], None, 0),
        ] {
            let files: Vec<_> = files
                .into_iter()
                .map(|(name, text)| (name, text.as_str()))
                .collect();
            let assembled = assemble(&[folder("files", &files)], &BTreeMap::new(), &alive);
            let expected: Vec<_> = port
                .map(|port| ("files".to_owned(), Some(port)))
                .into_iter()
                .collect();
            assert_eq!(ports(&assembled), expected, "{files:?}");
            assert_eq!(assembled.findings.len(), findings, "{files:?}");
        }
    }

    #[test]
    fn a_bad_file_is_a_finding_and_the_rest_goes_on() {
        let live = text(LIVE, "15002");
        let wrong = text(LIVE, "70000");
        let dead_and_wrong = text(DEAD, "70000");
        let folders = [
            folder("a", &[("start-api.json", &wrong), ("api.json", &live)]),
            folder("b", &[("start-api.json", &dead_and_wrong)]),
            folder(".c", &[("start-api.json", &live)]),
            folder("d", &[("start-api.json", &live)]),
        ];
        let assembled = assemble(&folders, &BTreeMap::new(), &alive);
        assert_eq!(
            ports(&assembled),
            [("a".into(), Some(15002)), ("d".into(), Some(15002))]
        );
        let [port, name] = assembled.findings.as_slice() else {
            panic!("{:#?}", assembled.findings)
        };
        assert_eq!(
            port.message,
            "`/p/a/start-api.json` was left out: its field `port` is 70000, not a number from 1 to 65535 or null"
        );
        assert_eq!(port.pointer.as_deref(), Some("/port"));
        assert!(name.message.contains("`/p/.c`") && name.hint.is_some());
    }

    #[test]
    fn a_file_that_falls_silent_keeps_its_entry_while_the_process_lives() {
        let whole = text(LIVE, "15000");
        let later = text(LIVE, "15009");
        let before = assemble(
            &[folder("a", &[("start-api.json", &whole)])],
            &BTreeMap::new(),
            &alive,
        )
        .entries;
        let torn = folder(
            "a",
            &[("start-api.json", &whole[..20]), ("api.json", &later)],
        );
        let closed = Folder {
            files: Err(ProcessFileError::Unreadable("no".into())),
            ..torn.clone()
        };
        for folder in [torn.clone(), closed.clone()] {
            let kept = assemble(std::slice::from_ref(&folder), &before, &alive);
            assert_eq!(kept.entries, before);
            assert_eq!(kept.findings.len(), 1);
            assert!(
                kept.findings[0].message.contains("while process 41 lives"),
                "{:?}",
                kept.findings
            );
        }
        // With its process gone, the next file in order counts.
        let gone = assemble(&[torn], &before, &|_, _| {
            Liveness::Ended(ProcessEnding::Gone)
        });
        assert_eq!(ports(&gone), []);
        // A whole file with a wrong field speaks, and so does one that is not there.
        let wrong = text(LIVE, "0");
        let spoke = assemble(
            &[folder("a", &[("start-api.json", &wrong)])],
            &before,
            &alive,
        );
        assert!(ports(&spoke).is_empty(), "{:?}", ports(&spoke));
        assert_eq!(spoke.findings.len(), 1);
        assert_eq!(ports(&assemble(&[folder("a", &[])], &before, &alive)), []);
    }

    #[test]
    fn a_restart_on_the_same_port_shows_in_the_boot() {
        let boot = |pid: u32, started: &str| {
            let text = format!(r#"{{"pid": {pid}, "port": 15000, "started_at": "{started}"}}"#);
            let folders = [folder("a", &[("start-api.json", &text)])];
            let assembled = assemble(&folders, &BTreeMap::new(), &alive);
            assembled
                .entries
                .into_values()
                .next()
                .unwrap()
                .endpoint
                .boot
                .unwrap()
        };
        assert_eq!(boot(LIVE, "t0"), boot(LIVE, "t0"));
        assert_ne!(boot(LIVE, "t0"), boot(43, "t0"));
        assert_ne!(boot(LIVE, "t0"), boot(LIVE, "t1"));
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        let findings = assemble(&[folder("\u{1b}[2Jx", &[])], &BTreeMap::new(), &alive).findings;
        assert!(!findings[0].message.contains('\u{1b}'));
    }

    #[test]
    fn a_file_that_is_not_read_does_not_keep_the_entry_of_another_file() {
        let before = text(LIVE, "15000");
        let after = text(LIVE, "15009");
        let known = assemble(
            &[folder("a", &[("api.json", &before)])],
            &BTreeMap::new(),
            &alive,
        )
        .entries;
        let half_written = folder(
            "a",
            &[("start-api.json", &before[..20]), ("api.json", &after)],
        );
        let assembled = assemble(&[half_written], &known, &alive);
        assert_eq!(ports(&assembled), [("a".into(), Some(15009))]);
        assert_eq!(assembled.findings.len(), 1);
        assert!(
            assembled.findings[0].message.contains("was left out"),
            "{:?}",
            assembled.findings
        );
    }
}
