//! Checks each scenario. With a running daemon: all that it knows, discovered ones included.
//! Without one: those of the configuration, polled as `callsheet check` does.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::Value;

use super::super::check::{inspect_address, mcp, serving};
use super::super::client::{DaemonClient, NotListed};
use super::super::failure::{self, ErrorText};
use super::super::{CommandError, output};
use super::report::{CheckArea, DoctorReport};
use crate::config::{Config, MCP, StaticScenario};
use crate::model::{FindingCode, HttpTarget, Severity};
use crate::protocols::tool_discovery::Inspected;

/// Scenarios polled at once.
const AT_ONCE: usize = 16;

/// How many errors and warnings there are about a scenario's manifest.
type FindingCounts = (usize, usize);

/// Checks every known scenario.
pub(super) async fn check(
    config: &Config,
    daemon: Option<&DaemonClient>,
    report: &mut DoctorReport,
) {
    let Some(daemon) = daemon else {
        return check_directly(config, report).await;
    };
    if let Err(failure) = check_through_daemon(daemon, config, report).await {
        let (message, hint) = words(&failure);
        report.error(CheckArea::Scenarios, daemon.address_text(), message, hint);
    }
}

/// Checks the scenarios that a running daemon knows.
async fn check_through_daemon(
    daemon: &DaemonClient,
    config: &Config,
    report: &mut DoctorReport,
) -> Result<(), CommandError> {
    let known = daemon
        .get(&["scenarios"], Vec::new(), "scenarios")
        .await?
        .value;
    let severities = ["error", "warning"].map(|severity| ("severity", severity.to_owned()));
    let findings = daemon
        .get(&["findings"], severities.to_vec(), "findings")
        .await?
        .value;
    in_force(&known, daemon, report);
    let counts = counts(&findings);
    let hints = credential_hints(&findings);
    let scenarios = output::list(&known, "scenarios");
    for scenario in scenarios {
        let name = scenario["name"].as_str().unwrap_or_default();
        let counts = counts.get(name).copied().unwrap_or_default();
        state(scenario, counts, hints.get(name).copied(), report);
    }
    let names: BTreeSet<&str> = scenarios
        .iter()
        .filter_map(|scenario| scenario["name"].as_str())
        .collect();
    for missing in config
        .scenarios
        .iter()
        .filter(|scenario| !names.contains(scenario.name.as_str()))
    {
        let name = missing.name.as_str();
        if let Some(NotListed { message, hint }) = daemon.not_listed(name).await {
            report.warning(
                CheckArea::Scenarios,
                name,
                format!("configured, but not listed: {message}"),
                hint,
            );
        } else {
            let hint =
                "start the daemon with this configuration; `callsheet config show` prints it";
            report.warning(
                CheckArea::Scenarios,
                name,
                "configured, but the daemon does not know it",
                hint,
            );
        }
    }
    if scenarios.is_empty() && config.scenarios.is_empty() {
        none(report);
    }
    Ok(())
}

/// Reports problems of the daemon as a whole that affect its scenarios.
fn in_force(known: &Value, daemon: &DaemonClient, report: &mut DoctorReport) {
    if known.get("isolated").is_some() {
        let reason = output::first_line(known, "/isolated/reason");
        report.error(
            CheckArea::Scenarios,
            daemon.address_text(),
            reason,
            "check the network of this machine; no tool is withdrawn until then",
        );
    }
    let refused = known
        .pointer("/configuration/refused")
        .map(|refused| output::list(refused, "problems"));
    for problem in refused.unwrap_or_default() {
        let message = format!("not reloaded: {}", output::text(problem, "/message"));
        report.error(
            CheckArea::Configuration,
            daemon.address_text(),
            message,
            output::text(problem, "/hint"),
        );
    }
    let waiting = known
        .get("configuration")
        .map(|state| output::list(state, "waiting_for_restart"));
    let waiting: Vec<_> = waiting
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if !waiting.is_empty() {
        let message = format!(
            "changed, but not active before a restart: {}",
            waiting.join(", ")
        );
        report.warning(
            CheckArea::Configuration,
            daemon.address_text(),
            message,
            "restart the daemon",
        );
    }
}

/// Errors and warnings by scenario. Findings about a format, a state or the names of other
/// scenarios are left out: the manifest does not cause them, and `callsheet check` does not show
/// them.
fn counts(findings: &Value) -> BTreeMap<&str, FindingCounts> {
    let aside = [
        FindingCode::Lossy,
        FindingCode::OverLimit,
        FindingCode::Withdrawn,
        FindingCode::VersionRefused,
        FindingCode::NeedsAuthorization,
        FindingCode::NameCollision,
        FindingCode::AliasRefused,
        FindingCode::Aliased,
        FindingCode::Disabled,
        FindingCode::PreferenceUnmatched,
        FindingCode::CategoryIgnored,
    ];
    let mut counts: BTreeMap<&str, FindingCounts> = BTreeMap::new();
    for finding in output::list(findings, "findings") {
        let Some(scenario) = finding["scenario"].as_str() else {
            continue;
        };
        if aside.iter().any(|code| finding["code"] == code.as_str()) {
            continue;
        }
        let (errors, warnings) = counts.entry(scenario).or_default();
        *(if finding["severity"] == "error" {
            errors
        } else {
            warnings
        }) += 1;
    }
    counts
}

/// The next step for each scenario that wants a credential.
fn credential_hints(findings: &Value) -> BTreeMap<&str, &str> {
    let all = output::list(findings, "findings").iter();
    let wanted = all.filter(|finding| finding["code"] == FindingCode::NeedsAuthorization.as_str());
    wanted
        .filter_map(|finding| Some((finding["scenario"].as_str()?, finding["hint"].as_str()?)))
        .collect()
}

/// One scenario, as the daemon sees it, with its findings and the next step if it wants a
/// credential.
fn state(scenario: &Value, counts: FindingCounts, hint: Option<&str>, report: &mut DoctorReport) {
    let name = output::text(scenario, "/name");
    let state = output::text(scenario, "/state");
    let why = output::first_line(scenario, "/reason");
    let message = if why.is_empty() {
        state.clone()
    } else {
        format!("{state}: {why}")
    };
    let url = output::text(scenario, "/url");
    match state.as_str() {
        "live" | "asleep" => manifest(
            &name,
            &url,
            output::number(scenario, "/tools/published"),
            counts,
            report,
        ),
        "pending" => {
            let hint = format!(
                "look at it with `callsheet scenarios {name}`, then `callsheet trust {name}`"
            );
            report.warning(CheckArea::Scenarios, &name, message, hint);
        }
        "connecting" if output::number(scenario, "/failures_in_a_row") > 0 => {
            report.error(CheckArea::Scenarios, &name, message, start(scenario));
        }
        "blocked" | "removed" => report.ok(CheckArea::Scenarios, &name, message),
        "connecting" => report.skipped(
            CheckArea::Scenarios,
            &name,
            message,
            "wait until it has answered, then run `callsheet doctor` again",
        ),
        "stale" => report.warning(
            CheckArea::Scenarios,
            &name,
            message,
            format!("check that it runs, then `callsheet refresh {name}`"),
        ),
        "incompatible" => report.error(CheckArea::Scenarios, &name, message, UPDATE),
        "needs-authorization" => report.error(
            CheckArea::Scenarios,
            &name,
            message,
            hint.unwrap_or(AUTHORIZE),
        ),
        _ => report.error(CheckArea::Scenarios, &name, message, start(scenario)),
    }
}

const AUTHORIZE: &str = "set its `auth`, or `module_settings.tokens` if it is a module";
const UPDATE: &str = "update the scenario or this daemon, or widen `protocol.accept`";

/// The next step for a scenario that does not work, by the kind of its last failure: one that
/// answers need not be started.
fn start(scenario: &Value) -> String {
    let name = output::text(scenario, "/name");
    let url = output::text(scenario, "/url");
    let is_program = output::text(scenario, "/protocol") == MCP && !url.starts_with("http");
    match output::text(scenario, "/last_error/kind").as_str() {
        "command-not-found" if has_blank(&output::text(scenario, "/last_error/message")) => {
            "write the program alone into `command`, and its arguments into `args`".to_owned()
        }
        "command-not-found" => {
            "install it, or write the whole path of its command, or a `PATH` into its `env`"
                .to_owned()
        }
        "not-started" => format!("correct its command `{url}` or its folder"),
        "ended" | "timeout" if is_program => {
            format!(
                "`callsheet scenarios {name}` shows what it wrote to standard error; run its command by hand"
            )
        }
        "malformed" | "unknown-protocol" if !is_program => {
            format!(
                "`{}` shows what is wrong with its answers",
                look(&name, &url)
            )
        }
        _ if is_program => format!("run its command by hand: {url}"),
        "refused" | "" => format!("start it, or fix its address {url}"),
        "unresolved" | "address" | "redirect" => format!("fix its address {url}"),
        "proxy" => "look at the proxy, or add the host to `network.no_proxy`".to_owned(),
        "timeout" => format!(
            "it does not answer in time at {url}: look at its log, or raise `refresh.timeout`"
        ),
        "status" => {
            format!("it runs, and answers with an error: look at its log, or fix its address {url}")
        }
        _ => format!(
            "it runs; `{}` shows what is wrong with its answer",
            look(&name, &url)
        ),
    }
}

/// Whether the command that a message quotes has a blank in it, as one with its arguments has.
fn has_blank(message: &str) -> bool {
    message
        .split('`')
        .nth(1)
        .is_some_and(|command| command.contains(' '))
}

/// The command that shows the findings of a scenario: what is at no address, such as a bundle, only
/// the daemon can check.
fn look(name: &str, url: &str) -> String {
    if url.starts_with("http") {
        format!("callsheet check {url}")
    } else {
        format!("callsheet findings --scenario {name}")
    }
}

/// Reports the manifest of a scenario that answers.
fn manifest(name: &str, url: &str, tools: i64, counts: FindingCounts, report: &mut DoctorReport) {
    let (errors, warnings) = counts;
    let tools = output::count(usize::try_from(tools).unwrap_or_default(), "tool");
    let hint = || {
        format!(
            "`{}` shows the findings and how to fix them",
            look(name, url)
        )
    };
    match (errors, warnings) {
        (0, 0) => report.ok(CheckArea::Scenarios, name, format!("live, {tools}")),
        (0, warnings) => {
            let message = format!(
                "live, {tools}; {} in its manifest",
                output::count(warnings, "warning")
            );
            report.warning(CheckArea::Scenarios, name, message, hint());
        }
        (errors, _) => {
            let message = format!(
                "live, {tools}; {} in its manifest",
                output::count(errors, "error")
            );
            report.error(CheckArea::Scenarios, name, message, hint());
        }
    }
}

/// Polls the scenarios of the configuration that are at an address; programs are started by the
/// daemon only.
async fn check_directly(config: &Config, report: &mut DoctorReport) {
    if config.scenarios.is_empty() {
        return none(report);
    }
    let over_http = config
        .scenarios
        .iter()
        .filter_map(|scenario| Some((scenario, scenario.target.http()?)));
    let over_http: Vec<_> = over_http.collect();
    for some in over_http.chunks(AT_ONCE) {
        let answers = join_all(
            some.iter()
                .map(|(scenario, target)| inspect(scenario, target, config)),
        )
        .await;
        for ((scenario, _), answer) in some.iter().zip(answers) {
            judge(scenario, answer, report);
        }
    }
    report.skipped(
        CheckArea::Scenarios,
        "others",
        "no daemon is running, so only scenarios of the configuration were checked",
        "start one with `callsheet serve`, then run `callsheet doctor` again",
    );
}

/// Polls one scenario as `callsheet check` does: by its protocol, or as it would be probed.
async fn inspect(
    scenario: &StaticScenario,
    target: &HttpTarget,
    config: &Config,
) -> Result<(String, Inspected), CommandError> {
    match scenario.protocol.as_deref() {
        Some(MCP) => {}
        None => return inspect_address(target.clone(), config).await,
        Some(_) => return serving::inspect_scenario(target.clone(), config).await,
    }
    let inspected = mcp::inspect_server(&scenario.target, config).await;
    inspected
        .map(|inspected| (scenario.target.to_string(), inspected))
        .map_err(mcp::Unlisted::into_failure)
}

/// Reports one scenario that was polled directly.
fn judge(
    scenario: &StaticScenario,
    answer: Result<(String, Inspected), CommandError>,
    report: &mut DoctorReport,
) {
    let name = scenario.name.as_str();
    let (url, inspected) = match answer {
        Ok(answered) => answered,
        Err(failure) => {
            let (message, _) = words(&failure);
            let hint = if message.contains("refused") {
                "start it, or fix its `url` in the configuration"
            } else {
                "look at its log, or fix its `url` in the configuration"
            };
            return report.error(CheckArea::Scenarios, name, message, hint);
        }
    };
    let refused = inspected
        .findings
        .iter()
        .find(|finding| finding.code == FindingCode::VersionRefused);
    if let Some(refused) = refused {
        return report.error(
            CheckArea::Scenarios,
            name,
            format!("incompatible: {}", refused.message),
            UPDATE,
        );
    }
    let Some(manifest) = &inspected.manifest else {
        let what = inspected
            .findings
            .first()
            .map(|finding| finding.message.clone())
            .unwrap_or_default();
        let hint = format!(
            "`callsheet check {url}` shows details; make sure that it serves the Tool Discovery Protocol"
        );
        return report.error(
            CheckArea::Scenarios,
            name,
            format!("its answer is not a list of tools: {what}"),
            hint,
        );
    };
    let of = |severity| {
        inspected
            .findings
            .iter()
            .filter(|finding| finding.severity() == severity)
            .count()
    };
    let tools = i64::try_from(manifest.tools.len()).unwrap_or(i64::MAX);
    self::manifest(
        name,
        &url,
        tools,
        (of(Severity::Error), of(Severity::Warning)),
        report,
    );
}

fn none(report: &mut DoctorReport) {
    let hint =
        "`callsheet init` finds what is on this machine; `callsheet add NAME ADDRESS` adds one";
    report.warning(CheckArea::Scenarios, "", "there are no scenarios", hint);
}

/// The message of a failure, and the next step.
fn words(failure: &CommandError) -> (String, String) {
    match failure::texts(failure).into_iter().next() {
        Some(ErrorText { message, hint }) => (message, hint.unwrap_or_default()),
        None => (
            "it cannot be polled".to_owned(),
            "check that it runs".to_owned(),
        ),
    }
}
