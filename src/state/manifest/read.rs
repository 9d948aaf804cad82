//! Reads the stored form of a manifest.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Error;
use serde_json::value::RawValue;

use super::RELAYED;
use crate::json::members::{MemberVisitor, WrittenMember};
use crate::model::{
    Category, Extra, Facts, JsonText, Manifest, Permission, RelayedKind, RelayedOffer,
    RelayedOffers, ScenarioInfo, Tool, VersionCell, gives_hints,
};

/// Reads a stored manifest. Fails with the reason when [`super::write()`] did not make it.
pub fn read(document: &str) -> Result<Manifest, Error> {
    let mut members: StoredMembers<'_> = serde_json::from_str(document)?;
    let mut shared = Shared::default();
    let protocol_version: Arc<str> = members.need("protocol_version")?;
    let of_mcp = Manifest::is_revision_of_mcp(&protocol_version);
    let tools = members.need::<Vec<_>>("tools")?.into_iter();
    let tools = tools.map(|members| tool(members, of_mcp, &mut shared).map(Arc::new));
    let mut tools = tools.collect::<Result<Vec<_>, _>>()?;
    tools.shrink_to_fit();
    let categories = members
        .need::<Vec<_>>("categories")?
        .into_iter()
        .map(category);
    let categories = categories.collect::<Result<Arc<[Category]>, _>>()?;
    if !tools.is_sorted_by(|one, next| one.name < next.name) {
        return Err(Error::custom("`tools`: not in the order of their names"));
    }
    if !categories.is_sorted_by(|one, next| one.id < next.id) {
        return Err(Error::custom("`categories`: not in the order of their ids"));
    }
    let stamp = members
        .take::<Cow<'_, str>>("generated_at")?
        .map(|text| text.parse());
    let listed = Manifest::new(scenario(members.need("scenario")?)?, tools);
    let manifest = Manifest {
        protocol_version,
        categories,
        relayed: members
            .take(RELAYED)?
            .map(relayed)
            .transpose()?
            .unwrap_or_default(),
        generated_at: stamp
            .transpose()
            .map_err(|error| in_member("generated_at", &error))?,
        extra: members.rest(),
        ..listed
    };
    Ok(manifest.digested())
}

/// What is offered besides tools. A kind that is not there has none.
fn relayed(mut members: StoredMembers<'_>) -> Result<RelayedOffers, Error> {
    let mut all = RelayedOffers::default();
    for kind in RelayedKind::ALL {
        let offers = members
            .take::<Vec<_>>(kind.member())?
            .unwrap_or_default()
            .into_iter();
        let offers = offers.map(|mut members: StoredMembers<'_>| {
            Ok(RelayedOffer {
                key: members.need(kind.key())?,
                members: members.rest(),
            })
        });
        let offers = offers.collect::<Result<Arc<[RelayedOffer]>, Error>>()?;
        if !offers.is_sorted_by(|one, next| one.key < next.key) {
            return Err(Error::custom(format_args!(
                "`{}`: not in order",
                kind.member()
            )));
        }
        all.set(kind, offers);
    }
    Ok(all)
}

fn scenario(mut members: StoredMembers<'_>) -> Result<ScenarioInfo, Error> {
    Ok(ScenarioInfo {
        name: members.need("name")?,
        version: members.need("version")?,
        description: members.need("description")?,
        base_url: members.take("base_url")?,
        extra: members.rest(),
    })
}

fn tool(mut members: StoredMembers<'_>, of_mcp: bool, shared: &mut Shared) -> Result<Tool, Error> {
    let metadata = members.need::<&RawValue>("metadata")?;
    let name = members.need("name")?;
    let description = members.need("description")?;
    let category = members.take("category")?.map(|id| shared.text(id));
    let parameters = kept(members.need("parameters")?);
    let extra = members.rest();
    let unannotated = of_mcp && !gives_hints(&extra);
    let facts =
        facts(metadata, unannotated, shared).map_err(|error| in_member("metadata", &error))?;
    let version = VersionCell::default();
    Ok(Tool {
        name,
        description,
        category,
        parameters,
        metadata: kept(metadata),
        facts,
        extra,
        definition: None,
        version,
    })
}

/// The facts of a tool, which are stored as part of its metadata only.
fn facts(metadata: &RawValue, unannotated: bool, shared: &mut Shared) -> Result<Arc<Facts>, Error> {
    let mut members: StoredMembers<'_> = serde_json::from_str(metadata.get())?;
    let tags = members.take::<Box<[Arc<str>]>>("tags")?.unwrap_or_default();
    let facts = Facts {
        enabled_by_default: members.need("enabled_by_default")?,
        requires_approval: members.need("requires_approval")?,
        internal_only: members.take("internal_only")?.unwrap_or_default(),
        required_permission: members
            .take("required_permission")?
            .map_or(Permission::Guest, permission),
        tags: tags.into_iter().map(|tag| shared.text(tag)).collect(),
        timeout_seconds: members.count("timeout_seconds")?,
        rate_limit_per_minute: members.count("rate_limit_per_minute")?,
        long_running: members.take("long_running")?.unwrap_or_default(),
        idempotent: members.take("idempotent")?.unwrap_or_default(),
        unannotated,
    };
    Ok(shared.facts(facts))
}

/// The permission level that a value names. Names of levels have no escapes, so a value with an
/// escape is an unknown level.
fn permission(value: &RawValue) -> Permission {
    match value.get() {
        "null" | "\"\"" => Permission::Guest,
        text => text
            .trim_matches('"')
            .parse()
            .unwrap_or(Permission::Unknown),
    }
}

fn category(mut members: StoredMembers<'_>) -> Result<Category, Error> {
    Ok(Category {
        id: members.need("id")?,
        name: members.need("name")?,
        description: members.take("description")?,
        icon: members.take("icon")?,
        display_order: members.take("display_order")?,
        extra: members.rest(),
    })
}

fn kept(raw: &RawValue) -> JsonText {
    JsonText::known(raw.get())
}

fn in_member(name: &str, error: &impl fmt::Display) -> Error {
    Error::custom(format_args!("`{name}`: {error}"))
}

/// Values that the tools of one manifest share: short texts and facts that repeat are stored once.
#[derive(Default)]
struct Shared {
    texts: HashSet<Arc<str>>,
    facts: HashSet<Arc<Facts>>,
}

impl Shared {
    fn text(&mut self, text: Arc<str>) -> Arc<str> {
        if let Some(known) = self.texts.get(&text) {
            return Arc::clone(known);
        }
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn facts(&mut self, facts: Facts) -> Arc<Facts> {
        if let Some(known) = self.facts.get(&facts) {
            return Arc::clone(known);
        }
        let new = Arc::new(facts);
        self.facts.insert(Arc::clone(&new));
        new
    }
}

/// The remaining members of one object, in the order in which they were written.
struct StoredMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> StoredMembers<'a> {
    /// Takes a member out, if it is there. If several have the same name, the last one counts.
    fn take<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let Some(at) = self.0.iter().rposition(|(own, _)| own == name) else {
            return Ok(None);
        };
        let value = serde_json::from_str(self.0.remove(at).1.get());
        value.map(Some).map_err(|error| in_member(name, &error))
    }

    /// Takes out a required member.
    fn need<T: Deserialize<'a>>(&mut self, name: &'static str) -> Result<T, Error> {
        self.take(name)?.ok_or_else(|| Error::missing_field(name))
    }

    /// Takes out a number that is a limit; zero and less mean no limit.
    fn count(&mut self, name: &str) -> Result<Option<u64>, Error> {
        let Some(raw) = self.take::<&RawValue>(name)? else {
            return Ok(None);
        };
        // The reader of numbers is not used, because it does not accept `-0` as a whole number.
        let count: i64 = raw.get().parse().map_err(|error| in_member(name, &error))?;
        Ok(u64::try_from(count).ok().filter(|count| *count > 0))
    }

    /// The remaining members.
    fn rest(self) -> Extra {
        self.0
            .into_iter()
            .map(|(name, raw)| (name.into(), kept(raw)))
            .collect()
    }
}

impl<'de> Deserialize<'de> for StoredMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Vec::new();
        deserializer.deserialize_map(MemberVisitor(|member: WrittenMember<'de>| {
            members.push((member.name, member.value));
        }))?;
        Ok(Self(members))
    }
}
