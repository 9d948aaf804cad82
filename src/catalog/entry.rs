//! One scenario's entry: its offer, and each tool with the settings and the name that result for
//! it.
//!
//! Never reads other entries: the claims hold all that matters of them.

use std::fmt::{self, Write};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::activities::own_execution;
use super::companions;
use super::name_claim::NameClaim;
use super::overrides::ToolAsShown;
use super::prefer::RuleStack;
use super::resolve::NameResolver;
use super::search::Indexed;
use super::{CatalogEntry, Linted, Offer, RunsLong, Visibility};
use crate::lint;
use crate::model::{
    Digest, Execution, Finding, HeldTool, PublishedName, ScenarioName, Severity, Tool, ToolId,
    ViewTool,
};

impl Visibility {
    /// Whether the tools of the scenario claim names.
    fn claims_names(&self) -> bool {
        !matches!(self, Self::Hidden(_))
    }
}

impl Offer {
    /// Whether its tools claim names.
    fn claims_names(&self) -> bool {
        self.visibility.claims_names()
    }

    /// Every claim that the tools of this offer make, sorted.
    pub(super) fn claims(
        &self,
        scenario: &ScenarioName,
        rules: &RuleStack,
        names: &NameResolver,
    ) -> Vec<NameClaim> {
        let mut claims = Vec::new();
        if self.claims_names() {
            for tool in &self.manifest.tools {
                let id = identity(scenario, tool);
                let alias = names.wanted_alias(rules.alias(&id).map(|(alias, _)| alias), tool);
                names.claim(&mut claims, &id, alias.as_ref());
            }
            // A tool that is held because it changed keeps its names: no other one gets them.
            for held in self.manifest.held.iter().filter(|held| !held.is_new) {
                let id = ToolId::new(scenario.clone(), Arc::clone(&held.name));
                let alias = rules.alias(&id).map(|(alias, _)| alias);
                names.claim(&mut claims, &id, alias);
            }
            claims.sort_unstable();
        }
        claims
    }
}

impl CatalogEntry {
    /// The entry of an offer whose claims are already among `names`. Tools of `known` have the
    /// names they have there.
    pub(super) fn admit(
        scenario: ScenarioName,
        offer: Offer,
        rules: &RuleStack,
        names: &NameResolver,
        known: Option<&Self>,
    ) -> Self {
        let claims_names = offer.claims_names();
        let known = known.filter(|known| known.claims_names() == claims_names);
        let tools = offer.manifest.tools.iter().map(|tool| {
            if let Some(known) = known.and_then(|known| known.tool(&tool.name)) {
                let id = known.id.clone();
                let name = known.name.clone();
                return view_tool(rules, tool, id, name);
            }
            let id = identity(&scenario, tool);
            let name = if claims_names {
                let alias = names.wanted_alias(rules.alias(&id).map(|(alias, _)| alias), tool);
                names.resolve(&id, alias.as_ref())
            } else {
                PublishedName::qualified(&id)
            };
            view_tool(rules, tool, id, name)
        });
        let tools = tools.collect();
        Self::from_tools(scenario, offer, tools)
    }

    /// The same scenario with other names for some of its tools; `None` when all of them have these
    /// names already.
    pub(super) fn renamed(&self, names: &[(Arc<str>, PublishedName)]) -> Option<Self> {
        let mut tools = self.tools.to_vec();
        let mut changed = false;
        for (tool, name) in names {
            if let Some(tool) = self
                .position(tool)
                .and_then(|at| tools.get_mut(at))
                .filter(|tool| tool.name != *name)
            {
                *tool = Arc::new(ViewTool {
                    name: name.clone(),
                    ..ViewTool::clone(tool)
                });
                changed = true;
            }
        }
        changed.then(|| Self::from_tools(self.name.clone(), self.offer(), tools))
    }

    /// The same scenario with other ways to run some of its tools; `None` when all of them are run
    /// in these ways already.
    pub(super) fn run_otherwise(&self, execution: impl Fn(&ViewTool) -> Execution) -> Option<Self> {
        let mut tools = self.tools.to_vec();
        let mut changed = false;
        for tool in &mut tools {
            let execution = execution(tool);
            if execution != tool.execution {
                *tool = Arc::new(ViewTool {
                    execution,
                    ..ViewTool::clone(tool)
                });
                changed = true;
            }
        }
        changed.then(|| Self::from_tools(self.name.clone(), self.offer(), tools))
    }

    fn from_tools(
        name: ScenarioName,
        Offer {
            manifest,
            visibility: standing,
        }: Offer,
        mut tools: Vec<Arc<ViewTool>>,
    ) -> Self {
        companions::name_all(&mut tools);
        let tools: Arc<[Arc<ViewTool>]> = tools.into();
        let listed = if tools.iter().all(|tool| is_listed(tool)) {
            Arc::clone(&tools)
        } else {
            tools
                .iter()
                .filter(|tool| is_listed(tool))
                .cloned()
                .collect()
        };
        let digest = digest(&name, manifest.list_digest(), &tools);
        Self {
            name,
            manifest,
            visibility: standing,
            tools,
            listed,
            digest,
            linted: Linted::default(),
            indexed: Indexed::default(),
            runs_long: RunsLong::default(),
        }
    }

    /// Whether the calls of one of its tools may go on after their answer.
    pub(super) fn may_run_long(&self) -> bool {
        let declares = |tool: &Arc<Tool>| {
            tool.facts.long_running || tool.metadata.get().contains("\"async_behavior\"")
        };
        *self
            .runs_long
            .0
            .get_or_init(|| self.manifest.tools.iter().any(declares))
    }

    /// Whether its tools claim names.
    fn claims_names(&self) -> bool {
        self.visibility.claims_names()
    }

    /// Whether an offer of the same scenario makes the same claims under the same rules.
    pub(super) fn claims_like(&self, offer: &Offer) -> bool {
        let names = offer.manifest.tools.iter().map(|tool| &tool.name);
        self.claims_names() == offer.claims_names()
            && self.manifest.held == offer.manifest.held
            && names.eq(self.tools.iter().map(|tool| &tool.id.tool))
    }

    /// The offer that it was made from.
    pub(super) fn offer(&self) -> Offer {
        Offer {
            manifest: Arc::clone(&self.manifest),
            visibility: self.visibility.clone(),
        }
    }

    /// One of its tools, by original name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ViewTool>> {
        self.tools.get(self.position(name)?)
    }

    /// Why the tool with this original name is held until an operator accepts it, if it is.
    pub(super) fn held_reason(&self, name: &str) -> Option<&'static str> {
        let held = &self.manifest.held;
        let at = held.binary_search_by(|held| held.name.as_ref().cmp(name));
        held.get(at.ok()?).map(HeldTool::reason)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.tools
            .binary_search_by(|tool| tool.id.tool.as_ref().cmp(name))
            .ok()
    }

    /// Mistakes of the author that did not lead to a refusal: warnings and errors of
    /// [`crate::lint`], with pointers into the document as it was sent. Where the document is
    /// missing (functions, or a stored manifest before the first answer), they have no pointers,
    /// and are computed at first use.
    pub fn lint(&self) -> &[Finding] {
        let own = |finding: Finding| finding.of_scenario(&self.name);
        if let Some(sent) = self.manifest.sent_findings.get() {
            return self
                .linted
                .sent
                .get_or_init(|| sent.iter().cloned().map(own).collect());
        }
        self.linted.unsent.get_or_init(|| {
            let findings = lint::check_by_protocol(&self.manifest).into_iter();
            let important = findings.filter(|finding| finding.code.severity() != Severity::Info);
            important
                .map(|finding| {
                    own(Finding {
                        pointer: None,
                        ..finding
                    })
                })
                .collect()
        })
    }

    /// Whether its tools may be in a list.
    pub fn is_published(&self) -> bool {
        self.visibility == Visibility::Published
    }
}

/// Equal entries look equal in every list.
impl PartialEq for CatalogEntry {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.visibility == other.visibility
    }
}

impl Eq for CatalogEntry {}

/// Whether a plain list of a published scenario has this tool.
pub(super) fn is_listed(tool: &ViewTool) -> bool {
    tool.effective.enabled && !tool.is_internal()
}

fn view_tool(
    rules: &RuleStack,
    tool: &Arc<Tool>,
    id: ToolId,
    name: PublishedName,
) -> Arc<ViewTool> {
    let execution = own_execution(tool);
    let ToolAsShown {
        tool,
        overridden,
        effective,
    } = rules.shown(&id, tool);
    Arc::new(ViewTool {
        effective,
        tool,
        overridden,
        id,
        name,
        companions: Arc::default(),
        execution,
    })
}

fn identity(scenario: &ScenarioName, tool: &Tool) -> ToolId {
    ToolId::new(scenario.clone(), Arc::clone(&tool.name))
}

/// The definitions are covered by the manifest's own digest; the rest is what the merge adds to
/// them.
fn digest(name: &ScenarioName, manifest: Digest, tools: &[Arc<ViewTool>]) -> Digest {
    let mut content = ContentHasher::default();
    content.word(name.as_str());
    content.bytes(&manifest.0.to_le_bytes());
    for tool in tools {
        let effective = &tool.effective;
        content.word(tool.name.as_str());
        let flags = [
            effective.enabled,
            effective.requires_approval,
            effective.pinned,
        ];
        content.bytes(&flags.map(u8::from));
        content.bytes(&effective.priority.to_le_bytes());
        content.text(&effective.enabled_source);
        content.text(&effective.approval_source);
        if tool.execution != Execution::Own {
            content.text(&tool.execution);
        }
        if let Some(overridden) = &tool.overridden {
            content.word(&tool.tool.description);
            content.word(tool.tool.parameters.get());
            content.text(format_args!("{:?}", overridden.values));
            content.text(format_args!("{:?}", overridden.unfit));
        }
    }
    Digest(content.hash.digest128())
}

/// Content on its way into a digest: each text ends with a byte that no UTF-8 text has, so that
/// texts cannot run together.
#[derive(Default)]
pub(super) struct ContentHasher {
    pub(super) hash: Xxh3,
}

impl ContentHasher {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// An unchanged text.
    fn word(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    pub(super) fn text(&mut self, text: impl fmt::Display) {
        // Writing into a digest cannot fail.
        let _ = write!(self, "{text}");
        self.bytes(&[0xff]);
    }
}

impl Write for ContentHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
