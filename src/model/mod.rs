//! The words as types: what a scenario offers, what a user prefers, what was decided.
//!
//! ```text
//! SourceId -> Target -> Manifest (Tool, RelayedOffers) ---> ViewTool (as one client sees it)
//! (named by)  (where)   (what it offers)                 ^
//!                       PreferenceSet, Profile (wanted) -+
//! ```
//!
//! What is kept true here:
//!
//! - Pure values: no IO, no async, no clock. Of the other rooms only `json` is used. Wire shapes
//!   live with the module that owns the wire.
//! - Names, versions, subnets and host rules are made by constructors that refuse what is invalid,
//!   so one that exists is valid.
//! - A published name is built in `name.rs` and nowhere else, and is never parsed.
//! - Schemas and metadata stay the JSON text that they arrived in ([`JsonText`]).
//! - A [`Secret`] is shown as `***`. Only `Secret::expose` gives its text.
//!
//! Read in this order:
//!
//! 1. `name.rs`, `tool.rs`, `manifest.rs`, `relayed.rs`, `view.rs`: tools. Then `digest.rs`,
//!    `definition_version.rs`, `version.rs`, `mcp_meta.rs`.
//! 2. `source.rs`, `target.rs`, `stdio_target.rs`, `credential.rs`, `secret.rs`, `host_rule.rs`,
//!    `subnet.rs`, `public_address.rs`: where a scenario is, and how it is reached.
//! 3. `scenario.rs`, `program_end.rs`, `awaited.rs`: its health.
//! 4. `preference.rs`, `profile.rs`, `activity.rs`, `addition.rs`: what users and definitions want.
//! 5. `approval.rs`, `operation.rs`, `turn.rs`, `call_event.rs`, `interaction.rs`, `caller.rs`,
//!    `usage.rs`: calls.
//! 6. `finding.rs`, `next_step.rs`, `config_state.rs`, `text.rs`: what people are shown.

pub mod activity;
mod addition;
pub mod approval;
mod awaited;
pub mod call_event;
pub mod caller;
pub mod config_state;
pub mod credential;
mod definition_version;
mod digest;
pub mod finding;
pub(crate) mod fold;
mod host_rule;
pub mod interaction;
pub mod manifest;
mod mcp_meta;
pub mod name;
mod next_step;
pub mod operation;
pub mod pins;
pub mod preference;
pub mod profile;
mod program_cost;
pub mod program_end;
mod public_address;
pub mod relayed;
pub mod scenario;
pub mod secret;
pub mod source;
pub mod stdio_target;
mod subnet;
pub mod target;
pub(crate) mod text;
pub mod tool;
mod tool_override;
pub mod turn;
pub mod usage;
pub mod version;
pub mod view;

pub use crate::json::JsonText;
pub use activity::{ActivityChoice, BoundActivity, DEFINITIONS, Execution, META_FIELDS};
pub use addition::AdditionKind;
pub use approval::{
    ApprovalDecision, ApprovalRequest, ApprovalState, CalledDefinition, StoredAnswer,
};
pub use awaited::{Awaited, ProgramOutput, REPORTED_AFTER};
pub use call_event::{CallEvent, CallEventKind};
pub use caller::CallerInfo;
pub(crate) use caller::{belongs_to_access, short_caller_text};
pub use config_state::{
    ConfigProblem, ConfigState, IgnoredVariables, RefusedConfig, RenamedKey, ScenarioChanges,
};
pub use credential::{Auth, LoginCallback, OAuthClient, SecretSource};
pub use definition_version::{DefinitionVersion, NamedVersion, NotAVersion, VersionCell};
pub(crate) use definition_version::{hash_document, hash_part};
pub use finding::{CappedFindings, Finding, FindingCode, Severity};
pub use host_rule::{HostRule, InvalidHostRule};
pub use interaction::Interaction;
pub use manifest::{Bounds, Category, Digest, Manifest, ScenarioInfo, SentFindings};
pub(crate) use mcp_meta::{
    DEFINITION_VERSION, META, client_member, refused_meta_keys, with_allowed_meta,
};
pub use name::{
    InvalidName, MCP_NAME_MAX, NameRef, PublishedName, SCENARIO_NAME_MAX, ScenarioName, ToolId,
};
pub use next_step::WithNextStep;
pub(crate) use next_step::before_next_step;
pub use operation::{Operation, OperationState, Progress};
pub use pins::{HeldTool, PinMode, UnknownPinMode};
pub(crate) use preference::ScopePattern;
pub use preference::{
    ApprovalPolicy, InvalidPreference, PreferenceAuthor, PreferenceSet, PreferenceTarget, Scope,
    Settings, SettingsPatch,
};
pub use profile::{CallerBounds, Permission, Profile, Profiles, UnknownLevel, bounds};
pub use program_cost::{MemoryMeasure, ProgramCost};
pub use program_end::{ProgramEnd, RecordedEnd};
pub use public_address::is_public_address;
pub use relayed::{RelayedKind, RelayedOffer, RelayedOffers};
pub(crate) use scenario::SESSIONLESS_REVISION;
pub use scenario::{
    Freshness, Health, Isolated, LastError, PeerIdentity, SHOWN_NAME, SHOWN_TEXT, ScenarioState,
    StateTransition, ToolCounts,
};
pub use secret::Secret;
pub use source::{SourceAbsence, SourceId, SourceSpec};
pub use stdio_target::StdioTarget;
pub use subnet::Subnet;
pub(crate) use target::redacted_url;
pub use target::{BundleId, HttpTarget, InProcessId, Target};
pub(crate) use tool::PROVIDER_VERSION;
pub use tool::{ACTIVITY, Extra, Facts, TOOL_NAME_MAX, Tool, gives_hints};
pub use tool_override::{
    InvalidOverride, OverrideValue, ParameterOverride, ParameterOverrides, override_description,
};
pub use turn::StoredTurn;
pub use usage::ToolUsage;
pub use version::{AcceptedVersions, ProtocolVersion, VersionVerdict};
pub use view::{CompanionName, Effective, OverriddenTool, Provenance, UnfitOverride, ViewTool};
