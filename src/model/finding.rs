//! Findings: one record for each decision of the daemon that an operator may want explained.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::name::{ScenarioName, ToolId};
use super::text::beginning;

/// Findings of one code beyond this many are counted and not listed: a hostile body may hold a
/// hundred thousand broken tools.
const REPORTED_PER_CODE_MAX: usize = 100;
/// Characters of a foreign text that a message shows.
const SHOWN: usize = 60;
/// Bytes of a pointer. Names of members may be long, and each place within them would repeat them.
const POINTER: usize = 400;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information only.
    Info,
    /// It works, but the operator should look at it.
    Warning,
    /// A tool, an answer or an entry is left out or refused.
    Error,
}

/// The findings of one document, bounded: at most 100 of each code, then one that counts the rest.
#[derive(Debug, Default)]
pub struct CappedFindings {
    findings: Vec<Finding>,
    counts: BTreeMap<FindingCode, usize>,
}

/// One explained decision. Ordered by scenario, tool, code and message, so that lists of findings
/// are stable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The scenario that the finding is about, if there is one.
    pub scenario: Option<ScenarioName>,
    /// The tool that the finding is about, by its original name.
    pub tool: Option<Arc<str>>,
    /// The kind of decision.
    pub code: FindingCode,
    /// What was decided and why, in one sentence without a full stop.
    pub message: String,
    /// The next step for a person, if there is one.
    pub hint: Option<String>,
    /// Where in the document, as a JSON pointer (RFC 6901).
    pub pointer: Option<String>,
    /// Other tools that the decision is about, such as those of the same name.
    pub others: Vec<ToolId>,
    /// The id of the format for LLMs that it is about, if it is about one only.
    pub format: Option<&'static str>,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal, $severity:ident;)+) => {
        /// The kinds of findings. Their texts are part of the API and never change their meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode { $($(#[doc = $doc])+ $variant,)+ }

        impl FindingCode {
            /// Every code, in the order of this list.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code as it is written in answers.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// How much findings of this kind matter.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }
        }
    };
}

codes! {
    /// Several scenarios offer a tool of this name, so all of them are published with a qualified
    /// name.
    NameCollision = "name-collision", Warning;
    /// The tool's own name is not acceptable to LLM vendors, so a legal one was made from it.
    NameRepaired = "name-repaired", Info;
    /// An alias could not be given because another tool has or claims that name.
    AliasRefused = "alias-refused", Warning;
    /// The tool is published under a name that a preference gave it.
    Aliased = "aliased", Info;
    /// A malformed tool was left out; the rest of its manifest is published.
    ToolQuarantined = "tool-quarantined", Error;
    /// The scenario offers more tools than are taken from one; those beyond were left out.
    ToolsBeyondLimit = "tools-beyond-limit", Error;
    /// Keys of a `_meta` are outside MCP's grammar, so clients of MCP do not get them.
    MetaKeyLeftOut = "meta-key-left-out", Warning;
    /// A second tool of the same name in one manifest was left out.
    DuplicateTool = "duplicate-tool", Error;
    /// A malformed or repeated category was left out, or another scenario's definition is shown.
    CategoryIgnored = "category-ignored", Warning;
    /// The protocol version is out of the accepted range.
    VersionRefused = "version-refused", Error;
    /// The protocol version cannot be read; the document is refused.
    VersionUnreadable = "version-unreadable", Error;
    /// The protocol version is missing and was taken to be 1.0.
    VersionAssumed = "version-assumed", Warning;
    /// The protocol version is in range but not written as the protocol asks.
    VersionNonconforming = "version-nonconforming", Warning;
    /// The protocol version is a pre-release.
    VersionPrerelease = "version-prerelease", Info;
    /// The protocol version is a newer minor one; what is unknown in it is passed on.
    VersionNewer = "version-newer", Info;
    /// The whole answer could not be used; the last good one stays active.
    ManifestRefused = "manifest-refused", Error;
    /// The scenario gives itself another name than it is known by.
    NameMismatch = "name-mismatch", Warning;
    /// `generated_at` is missing, unreadable or in the future.
    GeneratedAt = "generated-at", Info;
    /// Switched off by a preference or by the manifest's default.
    Disabled = "disabled", Info;
    /// An override of a description or a parameter does not fit the tool as it is offered now.
    OverrideDoesNotFit = "override-does-not-fit", Warning;
    /// Not published because of the scenario's state.
    Withdrawn = "withdrawn", Warning;
    /// The scenario answers 401 or 403: a credential is missing, or the one that was sent is not
    /// accepted.
    NeedsAuthorization = "needs-authorization", Error;
    /// Not shown to LLMs because the scenario marks it as internal.
    InternalOnly = "internal-only", Info;
    /// Left out of one answer because the format or the client limits the number of tools.
    OverLimit = "over-limit", Warning;
    /// A part of a tool cannot be expressed in a format and was left out or changed there.
    Lossy = "lossy", Warning;
    /// The description is longer than every server of a format's vendor is known to take; it is
    /// sent whole.
    DescriptionLong = "description-long", Info;
    /// A source of endpoints failed; its last complete set stays active.
    SourceFailed = "source-failed", Error;
    /// An entry of a source could not be used.
    EntryIgnored = "entry-ignored", Warning;
    /// An entry of a client's file is left out on purpose: its client has switched it off, it is
    /// the same server as another entry, or callsheet itself.
    EntryLeftOut = "entry-left-out", Info;
    /// Members of an entry of a client's file that have no meaning here.
    MembersIgnored = "members-ignored", Info;
    /// Two sources name the same scenario with different addresses; one of them won.
    SourceShadowed = "source-shadowed", Info;
    /// Another scenario has the name that this one announces, so it is filed under a longer one.
    NameTaken = "name-taken", Warning;
    /// An operator's approval was given for another identity or address, so it does not count for
    /// this one.
    TrustWithheld = "trust-withheld", Warning;
    /// A scenario that was only discovered announces an API on another host. That address is not
    /// used.
    BaseUrlRefused = "base-url-refused", Warning;
    /// So many scenarios were lost at once that the daemon assumes it lost its own network. No
    /// scenario is withdrawn meanwhile.
    Isolated = "isolated", Error;
    /// The written configuration cannot be used; the previous one stays active.
    ConfigRefused = "config-refused", Error;
    /// A key of the configuration was changed that keeps its value until the daemon is restarted.
    ConfigWaiting = "config-waiting", Warning;
    /// A key of the configuration is written under its old name, which is still read.
    ConfigDeprecated = "config-deprecated", Warning;
    /// Profiles are configured, and clients that name none see and call every tool.
    ProfileOptional = "profile-optional", Warning;
    /// Lists were refused to clients that named a profile that is not known, while others are.
    ProfileUnknown = "profile-unknown", Warning;
    /// A preference names a target that no scenario offers now, or a profile that is not configured
    /// while others are. It is kept.
    PreferenceUnmatched = "preference-unmatched", Info;
    /// Preferences that clients without the right made gave way to newer ones.
    PreferencesGaveWay = "preferences-gave-way", Warning;
    /// A stored file could not be read and was moved aside.
    StateRepaired = "state-repaired", Error;
    /// Data could not be stored.
    StateFailed = "state-failed", Error;
    /// Stored turns are not kept: the limits have no room for them, or they cannot be read.
    TurnsLeftOut = "turns-left-out", Warning;
    /// The scenario has no name, or one that no scenario can be filed under.
    ScenarioNaming = "scenario-name", Warning;
    /// The scenario's own version is missing or no semantic version.
    ScenarioVersion = "scenario-version", Info;
    /// The document is written in another spelling than the protocol text's.
    Spelling = "spelling", Info;
    /// The tool's name is outside the protocol's grammar, or longer than LLM vendors accept.
    ToolNaming = "tool-name", Warning;
    /// The tool has no description, so no LLM can choose it.
    ToolUndescribed = "tool-undescribed", Warning;
    /// A parameter has no description.
    ParameterUndescribed = "parameter-undescribed", Info;
    /// A tool names a category that the manifest does not define.
    CategoryUnknown = "category-unknown", Warning;
    /// A member that the protocol does not have, with a name near to one that it has.
    UnknownKey = "unknown-key", Warning;
    /// The tool has no metadata, so it counts as disabled.
    MetadataMissing = "metadata-missing", Warning;
    /// A member of the metadata has a value that the protocol does not know.
    MetadataValue = "metadata-value", Warning;
    /// `required` names a parameter that does not exist.
    RequiredUnknown = "required-unknown", Error;
    /// A `type` that JSON Schema does not know.
    SchemaType = "schema-type", Error;
    /// A tool of a JSON-RPC server comes without a schema, which its protocol requires.
    SchemaMissing = "schema-missing", Warning;
    /// A parameter without a type.
    SchemaUntyped = "schema-untyped", Warning;
    /// A keyword of a schema that has a value it cannot have.
    SchemaKeyword = "schema-keyword", Error;
    /// A list parameter that does not say what its elements are; some LLM vendors refuse the whole
    /// request for it.
    ItemsMissing = "items-missing", Warning;
    /// Calls are sent with unchecked arguments, because the tool's schema cannot be used or would
    /// cost too much.
    SchemaUnchecked = "schema-unchecked", Warning;
    /// A default that its own schema does not allow.
    DefaultUnfit = "default-unfit", Warning;
    /// An example whose input the tool's parameters do not allow.
    ExampleUnfit = "example-unfit", Warning;
    /// `async_behavior` names a tool that the manifest does not offer, so the operation can be
    /// neither followed nor ended.
    AsyncToolMissing = "async-tool-missing", Error;
    /// A status or cancel tool cannot be called with the operation's id alone.
    AsyncArguments = "async-arguments", Error;
    /// `async_behavior` lacks what is needed to follow the operation.
    AsyncIncomplete = "async-incomplete", Error;
    /// The operation's id is not a text, which is all that the protocol's first consumer follows.
    AsyncIdType = "async-id-type", Warning;
    /// The tool may take long but does not say how to follow it.
    LongRunningUntracked = "long-running-untracked", Warning;
    /// The list of tools is served without `Cache-Control`.
    CacheControlMissing = "cache-control-missing", Warning;
    /// `generated_at` differs in each answer although the content is equal, so it is no sign of
    /// freshness.
    GeneratedAtMoves = "generated-at-moves", Warning;
    /// The same tools come in another order with each answer, which breaks the prompt caches of
    /// clients that keep the order.
    OrderUnstable = "order-unstable", Warning;
    /// Two answers in a row offer different things.
    ContentMoves = "content-moves", Warning;
    /// The list of tools is served without an `ETag`.
    EtagMissing = "etag-missing", Info;
    /// The `ETag` is another one though the content is equal.
    EtagMoves = "etag-moves", Warning;
    /// A conditional request with the current `ETag` was answered in full.
    NotModifiedMissing = "not-modified-missing", Warning;
    /// The content type is not JSON's.
    ContentType = "content-type", Warning;
    /// The answer took longer than a second.
    SlowAnswer = "slow-answer", Warning;
    /// The route of a single tool does not answer as the protocol says.
    ToolRoute = "tool-route", Warning;
    /// The list of an MCP server comes in several pages, or pages have no tools: several clients
    /// read the first page only. The list of a JSON-RPC server says that it goes on elsewhere.
    Paging = "paging", Warning;
    /// An MCP server does not promise to signal changes of its list.
    ListChangedMissing = "list-changed-missing", Info;
    /// A text has characters that people do not see and models read.
    HiddenCharacters = "hidden-characters", Warning;
    /// A text speaks to a model behind its user's back, as few honest ones do.
    SuspiciousText = "suspicious-text", Warning;
    /// A scenario offers other definitions, tools or instructions than those that were accepted.
    DefinitionsChanged = "definitions-changed", Info;
    /// A tool is new or changed, and is neither listed nor called until an operator accepts it.
    ToolHeld = "tool-held", Warning;
    /// The instructions of a server changed, and are not passed on until an operator accepts them.
    InstructionsHeld = "instructions-held", Warning;
    /// The health route of a module does not answer as its protocol requires.
    HealthRoute = "health-route", Warning;
    /// The tool can be called as a task only, which callsheet does not do.
    TaskRequired = "task-required", Warning;
    /// The identity of a JSON-RPC server does not follow its list of tools.
    ServerIdentity = "server-identity", Warning;
    /// A program writes lines to its standard output that are no messages; they are skipped.
    OutputNoise = "output-noise", Warning;
    /// A scenario has not answered its greeting for 10 s or longer; it may still do so.
    NoAnswer = "no-answer", Warning;
    /// The result of a call does not fit the schema of results that its tool declares. It was
    /// passed on.
    OutputMismatch = "output-mismatch", Warning;
    /// The tool is the activity of a definition, and is listed as that only.
    ActivityBound = "activity-bound", Info;
    /// A definition cannot be called, because the activity that it names is not there.
    ActivityMissing = "activity-missing", Error;
    /// A definition is latent, although an activity of its name or for a profile is meant.
    ActivityFallback = "activity-fallback", Warning;
    /// A stored tool cannot be run here, so it is left out: its host is not allowed, a placeholder
    /// has no meaning, or its function is not registered.
    ToolUnavailable = "tool-unavailable", Error;
    /// A prompt, a resource or a template of an MCP server is left out, or their list failed.
    OfferLeftOut = "offer-left-out", Warning;
}

impl CappedFindings {
    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.push_with(finding.code, || finding);
    }

    /// Adds a finding with this code. It is made only if it is among those that are kept.
    pub fn push_with(&mut self, code: FindingCode, finding: impl FnOnce() -> Finding) {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        if *count <= REPORTED_PER_CODE_MAX {
            self.findings.push(finding());
        }
    }

    /// All of them, in the order they came, with one more for each code of which some were only
    /// counted.
    pub fn finish(mut self) -> Vec<Finding> {
        for (code, count) in self.counts {
            if let Some(more) = count
                .checked_sub(REPORTED_PER_CODE_MAX)
                .filter(|more| *more > 0)
            {
                self.findings.push(Finding::new(
                    code,
                    format!("{more} more of this kind are not listed"),
                ));
            }
        }
        self.findings
    }
}

/// The beginning of a foreign text, in backticks, with control characters escaped, for messages.
pub fn quoted_excerpt(text: &str) -> String {
    quoted_up_to(text, SHOWN)
}

/// The same with another number of characters at most.
pub(crate) fn quoted_up_to(text: &str, most: usize) -> String {
    let mut out = String::from("`");
    for c in text.chars().take(most) {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out.push_str(if text.chars().nth(most).is_some() {
        "...`"
    } else {
        "`"
    });
    out
}

/// Adds one step to a JSON pointer (RFC 6901 section 3) that is shown [near] its place. One that is
/// too long to be shown gets no further step, and of a long step only the beginning: a name may be
/// as long as a document, and each place within it would cost as much again.
pub fn push_step(pointer: &mut String, name: &str) {
    if pointer.len() > POINTER {
        return;
    }
    // What is left of a step that is cut is still too long to be shown.
    let name = beginning(name, POINTER + char::MAX.len_utf8());
    pointer.push('/');
    if name.contains(['~', '/']) {
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(name);
    }
}

/// The pointer as it is, or where it is long that of the nearest place around it whose pointer is
/// not.
pub fn near(pointer: &str) -> &str {
    if pointer.len() <= POINTER {
        return pointer;
    }
    let end = pointer
        .bytes()
        .take(POINTER + 1)
        .rev()
        .position(|byte| byte == b'/')
        .map_or(0, |at| POINTER - at);
    &pointer[..end]
}

impl Finding {
    /// A finding with a code and a message only; add what else there is with the methods below.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            scenario: None,
            tool: None,
            code,
            message,
            hint: None,
            pointer: None,
            others: Vec::new(),
            format: None,
        }
    }

    /// About this scenario.
    #[must_use]
    pub fn of_scenario(mut self, scenario: &ScenarioName) -> Self {
        self.scenario = Some(scenario.clone());
        self
    }

    /// About this tool, by its original name.
    #[must_use]
    pub fn of_tool(mut self, tool: impl Into<Arc<str>>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// With a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// About the format with this id.
    #[must_use]
    pub fn of_format(mut self, id: &'static str) -> Self {
        self.format = Some(id);
        self
    }

    /// About these tools too.
    #[must_use]
    pub fn with_others(mut self, others: Vec<ToolId>) -> Self {
        self.others = others;
        self
    }

    /// At this place of the document, or [near] it.
    #[must_use]
    pub fn at(mut self, pointer: impl AsRef<str>) -> Self {
        self.pointer = Some(near(pointer.as_ref()).to_owned());
        self
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl Severity {
    /// Every severity, the least first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Error];

    /// The severity as it is written in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_grows_no_longer_than_it_is_shown() {
        let step = |pointer: &str, name: &str| {
            let mut pointer = pointer.to_owned();
            push_step(&mut pointer, name);
            pointer
        };
        assert_eq!(step("/a", "b/c~"), "/a/b~1c~0");
        for long in [
            "x".repeat(1 << 20),
            "~".repeat(1 << 20),
            "é".repeat(1 << 20),
        ] {
            let below = step(&step("/a", &long), "b");
            assert!(below.len() < 2 * (POINTER + 10), "{}", below.len());
            assert_eq!(near(&below), "/a");
        }
        let whole = step("/a", &"x".repeat(POINTER - 3));
        assert_eq!(near(&whole), whole);
        assert_eq!(near(&step(&whole, "b")), whole);
    }
}
