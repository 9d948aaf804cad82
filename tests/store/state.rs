//! What is stored outlives restarts, kills, full disks and damage; what cannot be read is kept and
//! reported.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use callsheet::model::{
    AdditionKind, ApprovalDecision, ApprovalPolicy, ApprovalRequest, ApprovalState,
    CalledDefinition, CallerInfo, FindingCode, JsonText, Operation, OperationState,
    ParameterOverrides, PeerIdentity, Permission, PinMode, PreferenceAuthor, PreferenceTarget,
    Progress, PublishedName, ScenarioName, Scope, Settings, StoredAnswer, StoredTurn, ToolUsage,
};
use callsheet::runtime::Clock;
use callsheet::state::{
    Decision, Restored, StateError, StateStore, StoredAddition, StoredManifest, TrustDecision,
    Write, sqlite,
};
use futures_util::future::join_all;
use jiff::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder that is deleted at the end, and a place in it where no folder is yet.
fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("deep").join("state.db");
    (folder, path)
}

fn open(path: &Path) -> Arc<dyn StateStore> {
    sqlite::open(path, Clock::system()).unwrap()
}

fn refusal(path: &Path) -> StateError {
    match sqlite::open(path, Clock::system()) {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

async fn save(path: &Path, writes: Vec<Write>) {
    open(path).save(writes).await.unwrap();
}

async fn load(path: &Path) -> Restored {
    open(path).load().await.unwrap()
}

fn name(text: &str) -> ScenarioName {
    text.parse().unwrap()
}

fn manifest(scenario: &str, document: &str) -> StoredManifest {
    StoredManifest {
        scenario: name(scenario),
        url: format!("http://127.0.0.1:15000/{scenario}"),
        source: "vrooli".into(),
        party: party("", "http://localhost:15000"),
        trusted: true,
        protocol: "tool-discovery".to_owned(),
        document: document.into(),
        received_at: "2026-03-04T05:06:07.125Z".parse().unwrap(),
        quarantined: 2,
        validators: Some(r#"{"id":"a"}"#.into()),
    }
}

fn party(identity: &str, origin: &str) -> PeerIdentity {
    let text = |text: &str| (!text.is_empty()).then(|| text.into());
    PeerIdentity {
        identity: text(identity),
        origin: text(origin),
    }
}

/// A decision about the one at 10.0.0.7.
fn ruling(decision: Decision) -> TrustDecision {
    TrustDecision {
        decision,
        party: party("lab-7", "http://10.0.0.7:80"),
        source: Some("mdns".into()),
    }
}

/// The version of a definition, as a caller names it.
const VERSION: &str = "00112233445566778899aabbccddeeff";

/// A call that waits for a yes.
fn waiting(id: &str) -> ApprovalRequest {
    let text = |text: &str| Some(text.into());
    ApprovalRequest {
        id: id.into(),
        tool: "files/wipe/all".parse().unwrap(),
        name: "wipe".into(),
        arguments: JsonText::parse(r#"{"b": 1, "a": [2]}"#).unwrap(),
        caller: CallerInfo {
            chat: text("7f:2"),
            profile: None,
            permission: Some(Permission::User),
            user_id: text("u"),
            client: text("shop/2"),
        },
        access: text("without-token"),
        owner: party("lab-7", "http://10.0.0.7:80"),
        definition: "d0".into(),
        called: Some(CalledDefinition {
            id: "definitions/wipe".parse().unwrap(),
            version: VERSION.parse().unwrap(),
        }),
        digest: "d1".into(),
        idempotent: true,
        asked_at: "2026-03-04T05:06:07.125Z".parse().unwrap(),
        expires_at: "2026-03-04T06:06:07.125Z".parse().unwrap(),
        state: ApprovalState::Waiting,
        decided: None,
        ended_at: None,
        answer: None,
    }
}

/// The same once it was approved and answered.
fn answered(id: &str) -> ApprovalRequest {
    let at = "2026-03-04T05:07:00Z".parse().unwrap();
    let answer = StoredAnswer {
        success: false,
        result: Some(JsonText::parse(r#"{"left":[1,2]}"#).unwrap()),
        content: None,
        error: Some("no room".into()),
        code: Some("full".into()),
        took_ms: 17,
        operation: Some("op".into()),
    };
    ApprovalRequest {
        state: ApprovalState::Answered,
        decided: Some(ApprovalDecision {
            by: "kim".into(),
            at,
            reason: Some("it is time".into()),
        }),
        ended_at: Some(at),
        answer: Some(answer),
        ..waiting(id)
    }
}

/// An operation that goes on.
fn going(id: &str) -> Operation {
    Operation {
        id: id.into(),
        tool: "runs/start".parse().unwrap(),
        caller: CallerInfo::default(),
        access: Some("full".into()),
        owner: party("", "http://localhost:15000"),
        behaviour: JsonText::parse(r#"{"status_polling":{}}"#).unwrap(),
        reference: JsonText::parse("17").unwrap(),
        state: OperationState::Cancelling,
        started_at: "2026-03-04T05:06:07Z".parse().unwrap(),
        deadline_at: "2026-03-04T06:06:07Z".parse().unwrap(),
        ended_at: None,
        polled_at: None,
        status: Some("running".into()),
        progress: Progress::default(),
        note: Some("slow".into()),
        result: None,
        error: None,
        cancelling_since: Some("2026-03-04T05:16:07Z".parse().unwrap()),
    }
}

fn prefer(scope: &str, target: &str, settings: Settings) -> Write {
    Write::Preference(
        scope.parse().unwrap(),
        target.parse().unwrap(),
        settings,
        PreferenceAuthor::Operator,
    )
}

fn enabled(enabled: bool) -> Settings {
    Settings {
        enabled: Some(enabled),
        ..Settings::default()
    }
}

fn get(restored: &Restored, scope: &str, target: &str) -> Option<Settings> {
    let scope: Scope = scope.parse().unwrap();
    let target: PreferenceTarget = target.parse().unwrap();
    restored.preferences.get(&scope, &target).cloned()
}

/// Names of the files beside the store's, sorted.
fn files(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn everything_survives_a_reopen() {
    let (_folder, path) = place();
    let everything = Settings {
        enabled: Some(true),
        approval: Some(ApprovalPolicy::Require),
        alias: Some(PublishedName::alias("look").unwrap()),
        priority: Some(-7),
        pinned: Some(false),
        pins: Some(PinMode::Hold),
        description: Some("Looks at one file.".into()),
        parameters: Some(ParameterOverrides::parse(r#"{"depth":{"fixed":1}}"#).unwrap()),
    };
    let since = "2026-05-06T07:08:09.000000001Z".parse().unwrap();
    let writes = vec![
        Write::Manifest(manifest("files", r#"{"protocol_version":"1.0"}"#)),
        Write::Manifest(StoredManifest {
            source: "mdns".into(),
            trusted: false,
            ..manifest("lab", "{}")
        }),
        prefer("global", "tool:files/read", everything.clone()),
        prefer("profile:reviewer", "category:disk access", enabled(false)),
        prefer(
            "chat:7f:2",
            "tag:slow",
            Settings {
                approval: Some(ApprovalPolicy::Skip),
                ..Settings::default()
            },
        ),
        prefer(
            "chat:7f:2",
            "scenario:lab",
            Settings {
                priority: Some(3),
                ..Settings::default()
            },
        ),
        Write::Decision(name("lab"), Some(ruling(Decision::Trusted))),
        Write::Decision(name("noisy"), Some(ruling(Decision::Blocked))),
        Write::Revision("00ff".to_owned(), since),
    ];
    save(&path, writes).await;

    let restored = load(&path).await;
    assert_eq!(
        restored.manifests,
        [
            manifest("files", r#"{"protocol_version":"1.0"}"#),
            StoredManifest {
                source: "mdns".into(),
                trusted: false,
                ..manifest("lab", "{}")
            }
        ]
    );
    assert_eq!(
        get(&restored, "global", "tool:files/read"),
        Some(everything)
    );
    assert_eq!(
        get(&restored, "profile:reviewer", "category:disk access"),
        Some(enabled(false))
    );
    assert_eq!(
        get(&restored, "chat:7f:2", "tag:slow").unwrap().approval,
        Some(ApprovalPolicy::Skip)
    );
    assert_eq!(
        get(&restored, "chat:7f:2", "scenario:lab")
            .unwrap()
            .priority,
        Some(3)
    );
    assert_eq!(restored.preferences.iter().count(), 4);
    assert_eq!(
        restored.decisions,
        [
            (name("lab"), ruling(Decision::Trusted)),
            (name("noisy"), ruling(Decision::Blocked))
        ]
    );
    assert_eq!(restored.revision, Some(("00ff".to_owned(), since)));
    assert_eq!(restored.findings, []);
}

#[tokio::test]
async fn calls_and_operations_survive_a_reopen_in_their_order() {
    let (_folder, path) = place();
    let [write, forget] = [
        |request: ApprovalRequest| Write::Approval(Arc::new(request)),
        |request: ApprovalRequest| Write::ForgetApproval(request.id),
    ];
    let ended = Operation {
        state: OperationState::Succeeded,
        ended_at: Some("2026-03-04T05:20:00Z".parse().unwrap()),
        result: Some(JsonText::parse("[1,null]").unwrap()),
        error: Some("a warning".into()),
        ..going("1")
    };
    let writes = vec![
        write(waiting("9")),
        write(waiting("1")),
        write(waiting("5")),
        write(answered("9")),
        forget(waiting("1")),
        Write::Operation(Arc::new(going("1"))),
        Write::Operation(Arc::new(going("0"))),
        Write::Operation(Arc::new(ended.clone())),
        Write::Operation(Arc::new(going("2"))),
        Write::ForgetOperation("2".into()),
    ];
    save(&path, writes).await;
    let restored = load(&path).await;
    assert_eq!(restored.approvals, [answered("9"), waiting("5")]);
    assert_eq!(restored.operations, [ended, going("0")]);

    // One that cannot be read is not run and not lost.
    let sql = "UPDATE approvals SET state = 'approved' WHERE id = '5'; UPDATE operations SET reference = '{' WHERE id = '0'";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let restored = load(&path).await;
    assert_eq!(restored.approvals.len(), 1);
    assert_eq!(restored.operations.len(), 1);
    assert_eq!(restored.findings.len(), 2);
}

#[tokio::test]
async fn a_fresh_store_is_empty_and_private() {
    let (_folder, path) = place();
    let store = open(&path);
    let restored = store.load().await.unwrap();
    assert!(
        restored.manifests.is_empty()
            && restored.decisions.is_empty()
            && restored.revision.is_none()
    );
    assert_eq!(restored.findings, []);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        for file in files(&path) {
            assert_eq!(mode(&path.with_file_name(&file)), 0o600, "{file}");
        }
    }
}

#[tokio::test]
async fn changing_one_preference_touches_no_other_row() {
    let (_folder, path) = place();
    let both = Settings {
        approval: Some(ApprovalPolicy::Require),
        ..enabled(true)
    };
    let targets = ["tool:files/read", "tool:files/write", "scenario:files"];
    save(
        &path,
        targets
            .map(|target| prefer("global", target, both.clone()))
            .to_vec(),
    )
    .await;
    let rows = |path: &Path| -> Vec<(String, String)> {
        let sql = "SELECT scope || ' ' || target, json_array(enabled, approval, alias, priority, pinned, updated_at)
                   FROM preferences WHERE target <> 'tool:files/read' OR scope <> 'global' ORDER BY 1";
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    };
    let before = rows(&path);
    assert_eq!(before.len(), 2);

    save(
        &path,
        vec![prefer(
            "global",
            "tool:files/read",
            Settings {
                enabled: Some(false),
                ..both.clone()
            },
        )],
    )
    .await;
    assert_eq!(rows(&path), before);
    let restored = load(&path).await;
    assert_eq!(
        get(&restored, "global", "tool:files/read"),
        Some(Settings {
            approval: Some(ApprovalPolicy::Require),
            ..enabled(false)
        })
    );

    // The same target in another scope is another preference.
    save(
        &path,
        vec![prefer("chat:1", "tool:files/read", enabled(true))],
    )
    .await;
    assert_eq!(
        get(&load(&path).await, "global", "tool:files/read")
            .unwrap()
            .enabled,
        Some(false)
    );

    save(
        &path,
        vec![prefer("global", "tool:files/read", Settings::default())],
    )
    .await;
    let restored = load(&path).await;
    assert_eq!(get(&restored, "global", "tool:files/read"), None);
    assert_eq!(
        get(&restored, "chat:1", "tool:files/read"),
        Some(enabled(true))
    );
    assert_eq!(restored.preferences.iter().count(), 3);
}

#[tokio::test]
async fn manifests_and_decisions_are_replaced_and_forgotten() {
    let (_folder, path) = place();
    let store = open(&path);
    store
        .save(vec![
            Write::Manifest(manifest("files", "1")),
            Write::Manifest(manifest("lab", "1")),
        ])
        .await
        .unwrap();
    store
        .save(vec![
            Write::Manifest(manifest("files", "2")),
            Write::ForgetManifest(name("lab")),
        ])
        .await
        .unwrap();
    store
        .save(vec![Write::Decision(
            name("lab"),
            Some(ruling(Decision::Trusted)),
        )])
        .await
        .unwrap();
    store
        .save(vec![Write::Decision(
            name("lab"),
            Some(ruling(Decision::Blocked)),
        )])
        .await
        .unwrap();
    let restored = store.load().await.unwrap();
    assert_eq!(restored.manifests, [manifest("files", "2")]);
    assert_eq!(
        restored.decisions,
        [(name("lab"), ruling(Decision::Blocked))]
    );

    store
        .save(vec![
            Write::Decision(name("lab"), None),
            Write::ForgetManifest(name("files")),
        ])
        .await
        .unwrap();
    let restored = store.load().await.unwrap();
    assert_eq!(restored.decisions, []);
    assert_eq!(restored.manifests, []);
}

#[tokio::test]
async fn a_person_can_read_the_file() {
    let (_folder, path) = place();
    let settings = Settings {
        approval: Some(ApprovalPolicy::Require),
        ..enabled(false)
    };
    save(&path, vec![prefer("chat:7", "tool:files/read", settings)]).await;
    let row: (String, String, i64, String, Option<String>, String) = Connection::open(&path)
        .unwrap()
        .query_row(
            "SELECT scope, target, enabled, approval, alias, updated_at FROM preferences",
            [],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                ))
            },
        )
        .unwrap();
    let (scope, target, enabled, approval, alias, updated_at) = row;
    assert_eq!(&*scope, "chat:7");
    assert_eq!(&*target, "tool:files/read");
    assert_eq!(enabled, 0);
    assert_eq!(&*approval, "require");
    assert_eq!(alias, None);
    assert!(
        updated_at.parse::<jiff::Timestamp>().is_ok(),
        "{updated_at}"
    );
}

#[tokio::test]
async fn a_damaged_file_is_moved_aside_and_reported() {
    let sound = {
        let (_folder, path) = place();
        let long = "x".repeat(20_000);
        save(
            &path,
            (0..20)
                .map(|n| Write::Manifest(manifest(&format!("s{n}"), &long)))
                .collect(),
        )
        .await;
        std::fs::read(&path).unwrap()
    };
    let mut scribbled = sound.clone();
    scribbled[4096..20_000].fill(0xa5);
    let cases = [
        b"these are notes, not a database, and long enough to be looked at".repeat(40),
        scribbled,
        { sound[..sound.len() / 2].to_vec() },
    ];
    // So that the new place has the name below however slow the machine is.
    tokio::time::pause();
    for damaged in cases {
        let (_folder, path) = place();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &damaged).unwrap();
        let clock = Clock::following("2026-01-02T03:04:05Z".parse().unwrap());
        let store = sqlite::open(&path, clock).unwrap();

        let restored = store.load().await.unwrap();
        assert_eq!(restored.manifests, []);
        let aside = path.with_file_name("state.db.damaged-20260102T030405Z");
        let finding = restored.findings.first().unwrap();
        assert_eq!(finding.code, FindingCode::StateRepaired);
        assert!(
            finding.message.contains(&*aside.to_string_lossy()),
            "{}",
            finding.message
        );
        assert!(finding.hint.as_deref().unwrap().contains("sqlite3"));
        assert_eq!(std::fs::read(&aside).unwrap(), damaged);

        store
            .save(vec![Write::Manifest(manifest("files", "{}"))])
            .await
            .unwrap();
        drop(store);
        let restored = load(&path).await;
        assert_eq!(restored.manifests, [manifest("files", "{}")]);
        assert_eq!(
            restored.findings,
            [],
            "the repair is reported by the start that made it"
        );
    }
}

#[tokio::test]
async fn damage_within_the_same_second_overwrites_nothing() {
    let (_folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    tokio::time::pause();
    let clock = Clock::following("2026-01-02T03:04:05Z".parse().unwrap());
    for text in ["first", "second"] {
        std::fs::write(&path, text.repeat(500)).unwrap();
        drop(sqlite::open(&path, clock).unwrap());
    }
    let read = |ending: &str| {
        std::fs::read_to_string(path.with_file_name(format!("state.db.damaged-{ending}"))).unwrap()
    };
    assert!(read("20260102T030405Z").starts_with("first"));
    assert!(read("20260102T030405Z-2").starts_with("second"));
}

/// Makes six rows unreadable.
const ODD_ROWS: &str = "
    UPDATE manifests SET source = 'pigeon' WHERE scenario = 'of-pigeon';
    UPDATE manifests SET received_at = 'yesterday' WHERE scenario = 'odd-time';
    UPDATE manifests SET document = CAST(x'7bff7d' AS TEXT) WHERE scenario = 'odd-text';
    UPDATE preferences SET scope = 'everyone' WHERE scope = 'chat:1';
    UPDATE preferences SET enabled = 7 WHERE scope = 'chat:2';
    UPDATE decisions SET decision = 'maybe' WHERE scenario = 'odd';
    UPDATE meta SET updated_at = 'yesterday' WHERE key = 'revision';
";

#[tokio::test]
async fn unreadable_rows_are_quarantined_and_the_rest_is_read() {
    let (_folder, path) = place();
    let writes = vec![
        Write::Manifest(manifest("good", "{}")),
        Write::Manifest(manifest("of-pigeon", "{}")),
        Write::Manifest(manifest("odd-time", "{}")),
        Write::Manifest(manifest("odd-text", "{}")),
        prefer("global", "tool:files/read", enabled(false)),
        prefer("chat:1", "tool:files/read", enabled(false)),
        prefer("chat:2", "tool:files/read", enabled(false)),
        Write::Decision(name("good"), Some(ruling(Decision::Trusted))),
        Write::Decision(name("odd"), Some(ruling(Decision::Trusted))),
        Write::Revision("aa".to_owned(), "2026-01-01T00:00:00Z".parse().unwrap()),
    ];
    save(&path, writes).await;
    Connection::open(&path)
        .unwrap()
        .execute_batch(ODD_ROWS)
        .unwrap();

    let restored = load(&path).await;
    // Another version, or the program that callsheet is embedded in, may have further sources.
    let of_pigeon = StoredManifest {
        source: "pigeon".into(),
        ..manifest("of-pigeon", "{}")
    };
    assert_eq!(restored.manifests, [manifest("good", "{}"), of_pigeon]);
    assert_eq!(restored.preferences.iter().count(), 1);
    assert_eq!(
        get(&restored, "global", "tool:files/read"),
        Some(enabled(false))
    );
    assert_eq!(
        restored.decisions,
        [(name("good"), ruling(Decision::Trusted))]
    );
    assert_eq!(restored.revision, None);
    let messages: Vec<_> = restored
        .findings
        .iter()
        .map(|finding| finding.message.clone())
        .collect();
    for (table, key) in [
        ("manifests", "odd-time"),
        ("manifests", "odd-text"),
        ("preferences", "everyone tool:files/read"),
        ("preferences", "chat:2 tool:files/read"),
        ("decisions", "odd"),
        ("meta", "revision"),
    ] {
        assert!(
            messages
                .iter()
                .any(|text| text.contains(&format!("row `{key}` of table `{table}`"))),
            "{key}: {messages:#?}"
        );
    }
    assert_eq!(messages.len(), 6);
    assert!(
        restored
            .findings
            .iter()
            .all(|finding| finding.code == FindingCode::StateRepaired && finding.hint.is_some())
    );

    // What an operator decided is missed until that is accepted, also after a restart.
    let loss = restored.loss.clone().unwrap();
    assert!(
        loss.what.contains("and 2 more") && loss.what.contains("cannot be read"),
        "{loss:?}"
    );
    assert_eq!(load(&path).await.loss.unwrap().what, loss.what);

    // Nothing is lost, also what is not a text, and it is told again until someone has dealt with
    // it.
    let content = |path: &Path, key: &str| -> String {
        let sql = "SELECT content FROM quarantine WHERE key = ?1";
        Connection::open(path)
            .unwrap()
            .query_row(sql, [key], |row| row.get(0))
            .unwrap()
    };
    assert!(content(&path, "odd-text").contains(r#""document":{"text":"7bff7d"}"#));
    assert!(content(&path, "odd-time").contains(r#""received_at":"yesterday""#));
    assert_eq!(load(&path).await.findings, restored.findings);
    Connection::open(&path)
        .unwrap()
        .execute("DELETE FROM quarantine", [])
        .unwrap();
    assert_eq!(load(&path).await.findings, []);
}

#[tokio::test]
async fn a_file_of_the_first_version_keeps_what_it_holds() {
    let (_folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, updated_at TEXT NOT NULL) STRICT;
             CREATE TABLE manifests (scenario TEXT NOT NULL PRIMARY KEY, url TEXT NOT NULL, source TEXT NOT NULL,
               trusted INTEGER NOT NULL, protocol TEXT NOT NULL, document TEXT NOT NULL, received_at TEXT NOT NULL,
               quarantined INTEGER NOT NULL) STRICT;
             CREATE TABLE preferences (scope TEXT NOT NULL, target TEXT NOT NULL, enabled INTEGER, approval TEXT,
               alias TEXT, priority INTEGER, updated_at TEXT NOT NULL, PRIMARY KEY (scope, target)) STRICT;
             CREATE TABLE decisions (scenario TEXT NOT NULL PRIMARY KEY, decision TEXT NOT NULL,
               updated_at TEXT NOT NULL) STRICT;
             CREATE TABLE quarantine (id INTEGER PRIMARY KEY, table_name TEXT NOT NULL, key TEXT NOT NULL,
               content TEXT NOT NULL, reason TEXT NOT NULL, moved_at TEXT NOT NULL) STRICT;
             INSERT INTO manifests VALUES ('files', 'http://127.0.0.1:1/', 'vrooli', 1, 'tool-discovery', '{}', '2026-03-04T05:06:07Z', 0);
             INSERT INTO decisions VALUES ('lab', 'trusted', '2026-03-04T05:06:07Z'), ('noisy', 'blocked', '2026-03-04T05:06:07Z');
             PRAGMA application_id = 0x63736854;
             PRAGMA user_version = 1;",
        )
        .unwrap();
    let restored = load(&path).await;
    assert_eq!(restored.findings, []);
    assert_eq!(restored.manifests.len(), 1);
    assert_eq!(restored.manifests[0].party, PeerIdentity::default());
    let bare = |decision| TrustDecision {
        decision,
        party: PeerIdentity::default(),
        source: None,
    };
    let expected = [
        (name("lab"), bare(Decision::Trusted)),
        (name("noisy"), bare(Decision::Blocked)),
    ];
    assert_eq!(restored.decisions, expected);
}

#[tokio::test]
async fn what_was_counted_of_tools_is_kept_for_those_called_last() {
    let (_folder, path) = place();
    let at = |second| Timestamp::from_second(second).unwrap();
    let counted = |last| ToolUsage {
        calls: 7,
        sent: 5,
        failures: [("failed".into(), 2), ("busy".into(), 1)].into(),
        total: Duration::from_micros(1_234_567),
        longest: Duration::from_millis(900),
        first: at(1),
        last: at(last),
    };
    let write = |tool: &str, last| Write::Usage(tool.parse().unwrap(), counted(last));
    save(
        &path,
        vec![
            write("a/old", 10),
            write("b/new", 30),
            write("c/middle", 15),
        ],
    )
    .await;
    save(&path, vec![write("c/middle", 20)]).await;
    let usage = load(&path).await.usage;
    let expected = [("b/new", 30), ("c/middle", 20), ("a/old", 10)];
    assert_eq!(
        usage,
        expected.map(|(tool, last)| (tool.parse().unwrap(), counted(last)))
    );
    save(&path, vec![Write::TrimUsage(2)]).await;
    assert_eq!(load(&path).await.usage, usage[..2]);
}

#[tokio::test]
async fn turns_survive_a_reopen_in_their_order_and_are_forgotten_by_their_ids() {
    let turn = |id: &str, document: &str| StoredTurn {
        id: id.into(),
        owner: "full".into(),
        digest: "9f86d081".into(),
        format: "anthropic".into(),
        begun_at: "2026-02-03T04:05:06Z".parse().unwrap(),
        document: JsonText::parse(document).unwrap(),
    };
    let write = |turn: StoredTurn| Write::Turn(Arc::new(turn));
    let (_folder, path) = place();
    save(
        &path,
        vec![
            write(turn("b", "{}")),
            write(turn("a", "{}")),
            write(turn("b", "{\"over\":true}")),
        ],
    )
    .await;
    assert_eq!(
        load(&path).await.turns,
        [turn("b", "{\"over\":true}"), turn("a", "{}")]
    );
    let begun_at = turn("b", "{}").begun_at;
    let earlier = "2026-02-03T04:05:05.999999999Z".parse().unwrap();
    save(&path, vec![Write::ForgetTurn("b".into(), earlier)]).await;
    assert_eq!(
        load(&path).await.turns.len(),
        2,
        "it was begun anew since then"
    );
    save(&path, vec![Write::ForgetTurn("b".into(), begun_at)]).await;
    assert_eq!(load(&path).await.turns, [turn("a", "{}")]);
}

#[tokio::test]
async fn a_claim_and_a_manifest_replace_each_other() {
    let (_folder, path) = place();
    let claim = || Write::Claim(name("lab"), party("lab-7", "http://10.0.0.7:80"));
    save(&path, vec![Write::Manifest(manifest("lab", "{}")), claim()]).await;
    let restored = load(&path).await;
    assert_eq!(restored.manifests, []);
    assert_eq!(
        restored.claims,
        vec![(name("lab"), party("lab-7", "http://10.0.0.7:80"))]
    );
    save(&path, vec![Write::Manifest(manifest("lab", "{}"))]).await;
    let restored = load(&path).await;
    assert_eq!(restored.manifests.len(), 1);
    assert_eq!(restored.claims, []);
    save(&path, vec![claim(), Write::ForgetManifest(name("lab"))]).await;
    assert_eq!(load(&path).await.claims, []);
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_as_it_is() {
    let (_folder, path) = place();
    save(&path, vec![Write::Manifest(manifest("files", "{}"))]).await;
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let names = files(&path);

    let error = refusal(&path).to_string();
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    assert!(
        error.contains("99")
            && error.contains("versions up to")
            && error.contains("start the newer callsheet"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(files(&path), names);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_as_it_is() {
    let (_folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE recipes (title TEXT)")
        .unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let error = refusal(&path).to_string();
    assert!(
        error.contains("another program's database") && error.contains("state.path"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn a_second_daemon_is_refused() {
    let (_folder, path) = place();
    let store = open(&path);
    let error = refusal(&path).to_string();
    assert!(
        error.contains(&*path.to_string_lossy()) && error.contains("another daemon"),
        "{error}"
    );
    assert!(
        error.contains(&format!("process {}", std::process::id()))
            && error.contains("stop that one"),
        "{error}"
    );
    store
        .save(vec![Write::Decision(
            name("files"),
            Some(ruling(Decision::Blocked)),
        )])
        .await
        .unwrap();
    drop(store);
    assert_eq!(load(&path).await.decisions.len(), 1);
}

#[tokio::test]
async fn a_place_that_cannot_be_is_refused() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    // A folder that holds something is somebody's, so it is not moved.
    let error = refusal(folder.path()).to_string();
    assert!(
        error.contains(&*folder.path().to_string_lossy()) && error.contains("state.path"),
        "{error}"
    );
    assert!(folder.path().join("file").exists());

    let error = refusal(&folder.path().join("file").join("state.db")).to_string();
    assert!(
        error.contains("the folder cannot be made") && error.contains("state.path"),
        "{error}"
    );
}

#[tokio::test]
async fn concurrent_saves_are_all_acknowledged_and_present() {
    let (_folder, path) = place();
    let store = open(&path);
    let saves = (0..600).map(|n| {
        store.save(vec![
            Write::Manifest(manifest(&format!("s{n}"), &n.to_string())),
            prefer("global", &format!("scenario:s{n}"), enabled(n % 2 == 0)),
        ])
    });
    for outcome in join_all(saves).await {
        outcome.unwrap();
    }
    drop(store);
    let restored = load(&path).await;
    assert_eq!(restored.manifests.len(), 600);
    for n in 0..600 {
        assert_eq!(
            get(&restored, "global", &format!("scenario:s{n}")),
            Some(enabled(n % 2 == 0))
        );
    }
}

#[tokio::test]
async fn a_save_that_fails_leaves_nothing_and_takes_no_other_with_it() {
    let (_folder, path) = place();
    drop(open(&path));
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER picky BEFORE INSERT ON manifests WHEN NEW.scenario = 'poison'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .unwrap();
    let store = open(&path);
    let saves = (0..40).map(|n| {
        let decision = Write::Decision(name(&format!("s{n}")), Some(ruling(Decision::Trusted)));
        let scenario = if n == 17 {
            "poison".to_owned()
        } else {
            format!("s{n}")
        };
        store.save(vec![decision, Write::Manifest(manifest(&scenario, "{}"))])
    });
    for (n, outcome) in join_all(saves).await.into_iter().enumerate() {
        match outcome {
            Ok(()) => assert_ne!(n, 17),
            Err(error) => {
                assert_eq!(n, 17);
                let error = error.to_string();
                assert!(
                    error.contains("not this one") && error.contains(&*path.to_string_lossy()),
                    "{error}"
                );
            }
        }
    }
    let restored = store.load().await.unwrap();
    assert_eq!(restored.manifests.len(), 39);
    assert_eq!(restored.decisions.len(), 39);
    assert!(
        !restored
            .decisions
            .iter()
            .any(|(scenario, _)| scenario.as_str() == "s17")
    );
}

const CHILD: &str = "CALLSHEET_TEST_STATE_CHILD";

/// Pairs that a child saves at most: many times what fits below the limit of the test with a full
/// disk.
const PAIRS: u32 = 5_000;

/// Saves pairs of rows one after the other and tells each acknowledgement, until killed or refused.
async fn write_without_end(path: &Path, tag: &str) {
    let store = open(path);
    let mut out = std::io::stdout();
    let document = "x".repeat(8_000);
    for n in 0..PAIRS {
        let scenario = format!("{tag}-{n}");
        let decision = Write::Decision(name(&scenario), Some(ruling(Decision::Trusted)));
        let saved = match store
            .save(vec![
                Write::Manifest(manifest(&scenario, &document)),
                decision,
            ])
            .await
        {
            Ok(()) => writeln!(out, "\nstored {scenario}"),
            Err(error) => {
                writeln!(out, "\nrefused {error}").unwrap();
                return;
            }
        };
        // Whoever listened is gone.
        if saved.is_err() {
            return;
        }
    }
}

/// This test program again, running only `test` as a child that writes to `path`.
fn child(test: &str, shell: &str, path: &Path, tag: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        test,
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .env(CHILD, format!("{tag} {}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Whether this process is such a child; if so, it has done its work when this returns.
async fn was_child() -> bool {
    let Ok(order) = std::env::var(CHILD) else {
        return false;
    };
    let (tag, path) = order.split_once(' ').unwrap();
    write_without_end(Path::new(path), tag).await;
    true
}

fn assert_pairs(restored: &Restored, stored: &[String]) {
    let manifests: Vec<_> = restored
        .manifests
        .iter()
        .map(|manifest| manifest.scenario.to_string())
        .collect();
    let decisions: Vec<_> = restored
        .decisions
        .iter()
        .map(|(scenario, _)| scenario.to_string())
        .collect();
    assert_eq!(
        manifests, decisions,
        "a save is in force whole or not at all"
    );
    for scenario in stored {
        assert!(
            manifests.contains(scenario),
            "{scenario} was acknowledged and is gone"
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_acknowledged_save_survives_a_kill() {
    if was_child().await {
        return;
    }
    let (_folder, path) = place();
    let mut stored = Vec::new();
    for round in 0..5 {
        let mut child = child(
            "state::an_acknowledged_save_survives_a_kill",
            "",
            &path,
            &format!("r{round}"),
        )
        .spawn()
        .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let enough = stored.len() + 20 + 13 * round;
        while stored.len() < enough {
            let line = lines
                .next()
                .expect("the child writes until it is killed")
                .unwrap();
            stored.extend(line.strip_prefix("stored ").map(str::to_owned));
        }
        child.kill().unwrap();
        // What it managed to say before it died counts too.
        stored.extend(
            lines.filter_map(|line| line.unwrap().strip_prefix("stored ").map(str::to_owned)),
        );
        child.wait().unwrap();
        let restored = load(&path).await;
        assert_eq!(restored.findings, []);
        assert_pairs(&restored, &stored);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_refuses_a_save_and_keeps_the_others() {
    if was_child().await {
        return;
    }
    let (_folder, path) = place();
    // A limit on the size of files stands for the full disk; without its signal, writing fails as
    // on one.
    let shell = "trap '' XFSZ; ulimit -f 1200;";
    let output = child(
        "state::a_full_disk_refuses_a_save_and_keeps_the_others",
        shell,
        &path,
        "full",
    )
    .output()
    .unwrap();
    let output_text = String::from_utf8(output.stdout).unwrap();
    let stored: Vec<_> = output_text
        .lines()
        .filter_map(|line| line.strip_prefix("stored ").map(str::to_owned))
        .collect();
    let refused = output_text
        .lines()
        .find_map(|line| line.strip_prefix("refused "));
    let refused = refused
        .unwrap_or_else(|| panic!("{} saves were acknowledged and none refused", stored.len()));
    assert!(stored.len() > 5, "{output_text}");
    assert!(
        refused.contains(&*path.to_string_lossy()) && refused.contains("try again"),
        "{refused}"
    );

    let restored = load(&path).await;
    assert_eq!(restored.findings, []);
    assert_eq!(restored.manifests.len(), stored.len());
    assert_pairs(&restored, &stored);
    save(&path, vec![Write::Manifest(manifest("after", "{}"))]).await;
}

#[tokio::test]
async fn a_load_sees_every_save_that_was_queued_before_it() {
    let (_folder, path) = place();
    let store = sqlite::open(&path, Clock::system()).unwrap();
    for turn in 0..50 {
        let name = format!("s{turn}");
        let (saved, loaded) = tokio::join!(
            store.save(vec![Write::Manifest(manifest(&name, "{}"))]),
            store.load()
        );
        saved.unwrap();
        let names: Vec<_> = loaded
            .unwrap()
            .manifests
            .iter()
            .map(|stored| stored.scenario.to_string())
            .collect();
        assert!(
            names.contains(&name),
            "{name} was queued before the load, which saw {names:?}"
        );
    }
}

#[tokio::test]
async fn additions_are_replaced_and_taken_away_by_kind_and_name() {
    let (_folder, path) = place();
    let addition = |kind, name: &str, document: &str| StoredAddition {
        kind,
        name: name.to_owned(),
        document: document.into(),
    };
    let profile = addition(AdditionKind::Profile, "a", r#"{"permission":"user"}"#);
    let definition = addition(AdditionKind::Definition, "a", r#"{"schema":{}}"#);
    let other = addition(AdditionKind::Profile, "b: any", "{}");
    let writes = [&profile, &definition, &other].map(|one| Write::Addition(one.clone()));
    save(&path, writes.into()).await;
    assert_eq!(
        load(&path).await.additions,
        [definition.clone(), profile.clone(), other.clone()],
        "in order of kind and name"
    );
    let changed = addition(AdditionKind::Profile, "a", "{}");
    save(
        &path,
        vec![
            Write::Addition(changed.clone()),
            Write::ForgetAddition(AdditionKind::Definition, "a".to_owned()),
            Write::ForgetAddition(AdditionKind::Definition, "b: any".to_owned()),
        ],
    )
    .await;
    assert_eq!(load(&path).await.additions, [changed, other]);
    // One of a kind that this version does not know is kept aside and reported.
    drop(open(&path));
    let connection = Connection::open(&path).unwrap();
    connection
        .execute(
            "INSERT INTO additions VALUES ('recipe', 'c', '{}', '2026-03-04T05:06:07Z')",
            [],
        )
        .unwrap();
    drop(connection);
    let restored = load(&path).await;
    assert_eq!(restored.additions.len(), 2);
    assert!(
        restored
            .findings
            .iter()
            .any(|finding| finding.code == FindingCode::StateRepaired),
        "{:?}",
        restored.findings
    );
    assert!(
        restored.loss.is_some(),
        "it may have been the bounds of a profile"
    );
}
