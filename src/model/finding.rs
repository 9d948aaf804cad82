//! Findings: every decision that a person may wonder about, explained.

use std::fmt;
use std::sync::Arc;

use super::name::ScenarioName;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For the record.
    Info,
    /// Works, but someone should look.
    Warning,
    /// Something is left out or refused.
    Error,
}

/// One explained decision. Ordered by scenario, tool, code and message, so that lists of findings are stable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The scenario it speaks of, if one.
    pub scenario: Option<ScenarioName>,
    /// The tool it speaks of, by its original name.
    pub tool: Option<Arc<str>>,
    /// What kind of decision.
    pub code: FindingCode,
    /// What was decided and why, in one sentence without a full stop.
    pub message: String,
    /// The next step for a person, if there is one.
    pub hint: Option<String>,
    /// Where in the document, as a JSON pointer (RFC 6901).
    pub pointer: Option<String>,
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
    /// Several scenarios offer a tool of this name, so all of them are published with a qualified name.
    NameCollision = "name-collision", Warning;
    /// The tool's own name is not acceptable to LLM vendors, so a legal one was made from it.
    NameRepaired = "name-repaired", Info;
    /// An alias could not be given because something else has that name.
    AliasRefused = "alias-refused", Warning;
    /// The tool is published under a name that a preference gave it.
    Aliased = "aliased", Info;
    /// A malformed tool was left out; the rest of its manifest is published.
    ToolQuarantined = "tool-quarantined", Error;
    /// A second tool of the same name in one manifest was left out.
    DuplicateTool = "duplicate-tool", Warning;
    /// A malformed or repeated category was left out.
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
    /// The whole answer could not be used; the last good one stays.
    ManifestRefused = "manifest-refused", Error;
    /// The scenario gives itself another name than it is known by.
    NameMismatch = "name-mismatch", Warning;
    /// `generated_at` is missing, unreadable or in the future.
    GeneratedAt = "generated-at", Info;
    /// Switched off by a preference or by the manifest's default.
    Disabled = "disabled", Info;
    /// Not published because of the scenario's state.
    Withdrawn = "withdrawn", Warning;
    /// Not shown to LLMs because the scenario marks it as internal.
    InternalOnly = "internal-only", Info;
    /// Left out of one answer because the format or the asker allows only so many tools.
    OverLimit = "over-limit", Warning;
    /// Something could not be said in a format and was left out or changed there.
    Lossy = "lossy", Warning;
    /// A source of endpoints failed; its last whole set stays in force.
    SourceFailed = "source-failed", Error;
    /// An entry of a source could not be used.
    EntryIgnored = "entry-ignored", Warning;
    /// Two sources name the same scenario with different addresses; one of them won.
    SourceShadowed = "source-shadowed", Info;
    /// Another scenario has the name that this one announces, so it is filed under a longer one.
    NameTaken = "name-taken", Warning;
    /// An operator's yes was given for another identity or address, so it does not count for this one.
    TrustWithheld = "trust-withheld", Warning;
    /// A scenario that was merely found says that its API is on another host; that is not used.
    BaseUrlRefused = "base-url-refused", Warning;
    /// A preference speaks of something that no scenario offers now. It is kept.
    PreferenceUnmatched = "preference-unmatched", Info;
    /// Something stored could not be read and was moved aside.
    StateRepaired = "state-repaired", Error;
    /// Something could not be stored.
    StateFailed = "state-failed", Error;
}

impl Finding {
    /// A finding without scenario, tool, hint and pointer; add them with the methods below.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self { scenario: None, tool: None, code, message: message.into(), hint: None, pointer: None }
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

    /// At this place of the document.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl Severity {
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
