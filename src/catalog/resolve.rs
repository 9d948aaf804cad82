//! Naming: which tool gets which published name.
//!
//! Every tool of a scenario that is published or withdrawn makes its claims, enabled or not. The
//! rules look at the claims on one text only. So they do not depend on order, and a change of one
//! tool concerns at most the other tools that claim the same texts:
//!
//! 1. A tool with an alias wants the alias. One without wants its own name
//!    ([`PublishedName::plain`]), or no name when the style is `Always`. Every tool also claims its
//!    qualified name and its name for MCP clients, used or not.
//! 2. An alias is given when exactly one tool has it. A plain name is given when exactly one tool
//!    wants it and it is not a tool's alias. Neither is given when the text is the qualified name
//!    of another tool or is [reserved](PublishedName::is_reserved).
//! 3. Every other tool has its qualified name. If another tool claims that text in any way, it has
//!    its [unique form](PublishedName::unique) instead.
//!
//! So names are unique. A newcomer can make others fall back, but never gets a name that another
//! tool had, not even by being called such that its qualified name is another tool's own. A
//! published name is never parsed: [`NameResolver::claimants`] looks it up. Examples, lookups and
//! findings are in `docs/design/naming.md`.

use super::NamingStyle;
use super::claim_index::ClaimIndex;
use super::name_claim::{ClaimKind, NameClaim, NameHash};
use crate::model::{PublishedName, Tool, ToolId};

/// All claims. Cheap to clone: a persistent map.
#[derive(Debug, Clone, Default)]
pub(super) struct NameResolver {
    claims: ClaimIndex,
    pub(super) style: NamingStyle,
}

/// How many claims of a kind there are on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimHolder {
    None,
    One(ToolId),
    Several,
}

/// The claims that decide about one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contest {
    alias: ClaimHolder,
    qualified: ClaimHolder,
    plain: ClaimHolder,
}

impl ClaimHolder {
    fn is(&self, id: &ToolId) -> bool {
        matches!(self, Self::One(one) if one == id)
    }

    /// Whether no other tool holds it.
    fn leaves_free_for(&self, id: &ToolId) -> bool {
        *self == Self::None || self.is(id)
    }
}

impl Contest {
    /// The tools whose names may depend on the outcome: the only tool of each kind of claim. If a
    /// kind has several tools, none of them gets the text.
    pub(super) fn concerned(self) -> impl Iterator<Item = ToolId> {
        [self.alias, self.qualified, self.plain]
            .into_iter()
            .filter_map(|holder| match holder {
                ClaimHolder::One(id) => Some(id),
                ClaimHolder::None | ClaimHolder::Several => None,
            })
    }
}

impl NameResolver {
    /// No claims.
    pub(super) fn new(style: NamingStyle) -> Self {
        Self {
            claims: ClaimIndex::default(),
            style,
        }
    }

    /// The alias that a tool wants: the one that a preference gives it. A definition without one
    /// wants its own name as an alias, so that it has that name in place of its activity.
    pub(super) fn wanted_alias(
        &self,
        given: Option<&PublishedName>,
        tool: &Tool,
    ) -> Option<PublishedName> {
        let is_named = tool.definition.is_some() && self.style == NamingStyle::OnCollision;
        given
            .cloned()
            .or_else(|| is_named.then(|| PublishedName::plain_shared(&tool.name)))
    }

    /// Adds the claims of a tool whose alias is `alias` to `claims`.
    pub(super) fn claim(
        &self,
        claims: &mut Vec<NameClaim>,
        id: &ToolId,
        alias: Option<&PublishedName>,
    ) {
        let mut push = |kind, text: &str| {
            claims.push(NameClaim {
                text: NameHash::from_text(text),
                kind,
                id: id.clone(),
            });
        };
        let qualified = PublishedName::qualified(id);
        let for_mcp = PublishedName::for_mcp(id);
        push(ClaimKind::Qualified, qualified.as_str());
        if for_mcp != qualified {
            push(ClaimKind::Qualified, for_mcp.as_str());
        }
        match (alias, self.style) {
            (Some(alias), _) => push(ClaimKind::Alias, alias.as_str()),
            (None, NamingStyle::OnCollision) => {
                let plain = PublishedName::plain_shared(&id.tool);
                push(ClaimKind::Plain, plain.as_str());
                if plain.as_str() == &*id.tool {
                    return;
                }
            }
            (None, NamingStyle::Always) => {}
        }
        push(ClaimKind::Original, &id.tool);
    }

    /// The claim under which a tool with a unique form is found by it; `None` for other names.
    pub(super) fn unique_claim(id: &ToolId, name: &PublishedName) -> Option<NameClaim> {
        name.is_reserved().then(|| NameClaim {
            text: NameHash::from_text(name.as_str()),
            kind: ClaimKind::Unique,
            id: id.clone(),
        })
    }

    /// Removes claims, then adds others.
    pub(super) fn change(&mut self, gone: Vec<NameClaim>, new: Vec<NameClaim>) {
        if !(gone.is_empty() && new.is_empty()) {
            self.claims.change(gone, new);
        }
    }

    /// Whether any tool claims a text.
    pub(super) fn is_claimed(&self, text: NameHash) -> bool {
        self.claims.has(text)
    }

    /// The present claims that decide about a text.
    pub(super) fn contest(&self, text: NameHash) -> Contest {
        let mut contest = Contest {
            alias: ClaimHolder::None,
            qualified: ClaimHolder::None,
            plain: ClaimHolder::None,
        };
        for (kind, id) in self.claims.claims_on(text) {
            let holder = match kind {
                ClaimKind::Alias => &mut contest.alias,
                ClaimKind::Qualified => &mut contest.qualified,
                ClaimKind::Plain => &mut contest.plain,
                ClaimKind::Original | ClaimKind::Unique => break,
            };
            *holder = if *holder == ClaimHolder::None {
                ClaimHolder::One(id.clone())
            } else {
                ClaimHolder::Several
            };
            // Plain claims come last; a second one settles it, however many follow.
            if contest.plain == ClaimHolder::Several {
                break;
            }
        }
        contest
    }

    /// The name that a tool with this alias gets.
    pub(super) fn resolve(&self, id: &ToolId, alias: Option<&PublishedName>) -> PublishedName {
        let plain = || PublishedName::plain_shared(&id.tool);
        let wanted = match self.style {
            _ if alias.is_some() => alias.cloned(),
            NamingStyle::OnCollision => Some(plain()),
            NamingStyle::Always => None,
        };
        if let Some(wanted) = wanted.filter(|name| !name.is_reserved()) {
            let contest = self.contest(NameHash::from_text(wanted.as_str()));
            let won = if alias.is_some() {
                contest.alias.is(id)
            } else {
                contest.alias == ClaimHolder::None && contest.plain.is(id)
            };
            if won && contest.qualified.leaves_free_for(id) {
                return wanted;
            }
        }
        let qualified = PublishedName::qualified(id);
        let Contest {
            alias,
            qualified: own,
            plain,
        } = self.contest(NameHash::from_text(qualified.as_str()));
        let undisputed = [alias, own, plain]
            .iter()
            .all(|holder| holder.leaves_free_for(id));
        if undisputed {
            qualified
        } else {
            PublishedName::unique(id)
        }
    }

    /// Every tool that may be meant by a text, by kind, then in order; a tool may come twice.
    pub(super) fn claimants(&self, text: &str) -> impl Iterator<Item = &ToolId> {
        self.claims
            .claims_on(NameHash::from_text(text))
            .map(|(_, id)| id)
    }

    /// The tools other than `id` that claim a text in this way, in order.
    pub(super) fn rivals(
        &self,
        text: &str,
        kind: ClaimKind,
        id: &ToolId,
    ) -> impl Iterator<Item = &ToolId> {
        // The rare kinds stand in front, so little is passed over.
        let claims = self.claims.claims_on(NameHash::from_text(text));
        let claims = claims
            .skip_while(move |claim| claim.0 < kind)
            .take_while(move |claim| claim.0 == kind);
        claims.map(|(_, id)| id).filter(move |other| *other != id)
    }
}
