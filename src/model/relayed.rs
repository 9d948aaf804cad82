//! What a scenario offers besides tools: prompts, resources, and templates of resources, as MCP
//! servers have them.
//!
//! They are shown and passed on, never judged: preferences, pins and approvals are for tools.

use std::sync::Arc;

use super::tool::{Extra, extra_bytes};

/// Prompts, resources and templates of one scenario. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RelayedOffers {
    /// The prompts, sorted bytewise by name, names unique.
    pub prompts: Arc<[RelayedOffer]>,
    /// The resources, sorted bytewise by URI, URIs unique.
    pub resources: Arc<[RelayedOffer]>,
    /// The templates of resources, sorted bytewise by URI template, templates unique.
    pub templates: Arc<[RelayedOffer]>,
}

/// One prompt, resource or template.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayedOffer {
    /// The name of a prompt, the URI of a resource, or the URI template of a template.
    pub key: Arc<str>,
    /// Its other members, as they came.
    pub members: Extra,
}

/// A kind of what is offered besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelayedKind {
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
}

impl RelayedKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Prompts, Self::Resources, Self::Templates];

    /// The member of a list of MCP that holds them.
    pub fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The method of MCP that lists them.
    pub fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of one of them that tells it from the others.
    pub fn key(self) -> &'static str {
        match self {
            Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

impl RelayedOffers {
    /// Those of one kind.
    pub fn of(&self, kind: RelayedKind) -> &Arc<[RelayedOffer]> {
        match kind {
            RelayedKind::Prompts => &self.prompts,
            RelayedKind::Resources => &self.resources,
            RelayedKind::Templates => &self.templates,
        }
    }

    /// Replaces those of one kind.
    pub fn set(&mut self, kind: RelayedKind, offers: Arc<[RelayedOffer]>) {
        *match kind {
            RelayedKind::Prompts => &mut self.prompts,
            RelayedKind::Resources => &mut self.resources,
            RelayedKind::Templates => &mut self.templates,
        } = offers;
    }

    /// One of them, by its key.
    pub fn find(&self, kind: RelayedKind, key: &str) -> Option<&RelayedOffer> {
        let offers = self.of(kind);
        offers
            .binary_search_by(|offer| (*offer.key).cmp(key))
            .ok()
            .map(|at| &offers[at])
    }

    /// How many bytes of text they have, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let all = RelayedKind::ALL
            .iter()
            .flat_map(|kind| self.of(*kind).iter());
        all.map(|offer| offer.key.len() + extra_bytes(&offer.members))
            .sum()
    }

    /// Whether there are none of any kind.
    pub fn is_empty(&self) -> bool {
        RelayedKind::ALL
            .iter()
            .all(|kind| self.of(*kind).is_empty())
    }
}
