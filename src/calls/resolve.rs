//! Finds the tool that a caller's name means, in the caller's scope and, if the caller gives a
//! revision, in that list.
//!
//! A name of an older list means the tool that it meant there, whatever its name is now. If that
//! tool is gone, or the list is not remembered, the call is refused, because the name may mean
//! another tool by now. So is a call that was made for another version of the tool's definition,
//! and one of a tool that is held until an operator accepts it.

use std::sync::Arc;

use super::{ExecuteError, PreparedCall, Request};
use crate::catalog::{Catalog, NameLookup, RevisionHistory, ViewQuery, find_in_scope};
use crate::model::{NameRef, NamedVersion, ToolId, ViewTool};

/// The tool that is meant, as `catalog` has it now, whether or not it is listed.
pub(super) fn tool(
    catalog: &Catalog,
    past: &RevisionHistory,
    scope: &ViewQuery,
    request: &Request,
) -> Result<Arc<ViewTool>, ExecuteError> {
    if let Some(id) = &request.resolved {
        return by_id(catalog, scope, id.clone())
            .ok_or_else(|| missing(catalog, &NameRef::Id(id.clone()), &request.name));
    }
    let Some(revision) = request
        .revision
        .as_deref()
        .filter(|revision| !catalog.has_revision(scope, revision))
    else {
        return in_list(catalog, scope, request).or_else(|refused| {
            let meant = if request.remembered {
                earlier(catalog, past, scope, request)
            } else {
                None
            };
            meant.ok_or(refused)
        });
    };
    if let NameRef::Id(id) = named(request) {
        // An identity means the same in every list.
        return by_id(catalog, scope, id)
            .ok_or_else(|| missing(catalog, &named(request), &request.name));
    }
    let Some(before) = past.find(scope, revision) else {
        return Err(ExecuteError::UnknownRevision(revision.to_owned()));
    };
    let meant = in_list(before, scope, request)?;
    by_id(catalog, scope, meant.id.clone()).ok_or_else(|| {
        let gone = ExecuteError::Gone {
            name: request.name.clone(),
            id: meant.id.clone(),
            revision: Some(revision.to_owned()),
        };
        held(catalog, &NameRef::Id(meant.id.clone())).unwrap_or(gone)
    })
}

/// The refusal of a name that no tool has; of a held tool, with the reason.
fn missing(catalog: &Catalog, name: &NameRef, written: &str) -> ExecuteError {
    held(catalog, name).unwrap_or_else(|| ExecuteError::Unknown(written.to_owned()))
}

/// The refusal of a tool that is held until an operator accepts it, if this one is.
fn held(catalog: &Catalog, name: &NameRef) -> Option<ExecuteError> {
    let finding = catalog.find_held(name)?;
    Some(ExecuteError::Held {
        id: ToolId::new(finding.scenario?, finding.tool?),
        reason: finding.message,
    })
}

/// Refuses a call of a tool that is held by now.
pub(super) fn check_not_held(catalog: &Catalog, id: &ToolId) -> Result<(), ExecuteError> {
    held(catalog, &NameRef::Id(id.clone())).map_or(Ok(()), Err)
}

/// The tool that the name meant in the latest remembered list in which it meant one, if that tool
/// is still there.
fn earlier(
    catalog: &Catalog,
    past: &RevisionHistory,
    scope: &ViewQuery,
    request: &Request,
) -> Option<Arc<ViewTool>> {
    let meant = past
        .newest_first()
        .find_map(|before| in_list(before, scope, request).ok())?;
    by_id(catalog, scope, meant.id.clone())
}

/// The tool of a call that has waited, as `catalog` has it now.
pub(super) fn again(
    catalog: &Catalog,
    ready: &PreparedCall,
) -> Result<Arc<ViewTool>, ExecuteError> {
    let id = &ready.tool.id;
    by_id(catalog, &ready.scope, id.clone()).ok_or_else(|| gone_since(catalog, id))
}

/// Why a tool is not there any more that was there when the call came.
fn gone_since(catalog: &Catalog, id: &ToolId) -> ExecuteError {
    let name = id.to_string();
    match missing(catalog, &NameRef::Id(id.clone()), &name) {
        ExecuteError::Unknown(name) => ExecuteError::Gone {
            name,
            id: id.clone(),
            revision: None,
        },
        other => other,
    }
}

/// Refuses a call that was made for another definition than the tool has now.
pub(super) fn check_version(
    tool: &Arc<ViewTool>,
    made_for: Option<&NamedVersion>,
) -> Result<(), ExecuteError> {
    match made_for {
        Some(named) if !named.names(tool.tool.version()) => Err(ExecuteError::StaleDefinition {
            tool: Arc::clone(tool),
            named: named.clone(),
        }),
        _ => Ok(()),
    }
}

/// Refuses a call that has waited, if the tool that was called, or the one that a person approved,
/// has another definition by now.
pub(super) fn check_version_again(
    catalog: &Catalog,
    ready: &PreparedCall,
) -> Result<(), ExecuteError> {
    for (tool, version) in [
        (ready.called(), &ready.made_for),
        (&ready.tool, &ready.approved),
    ] {
        if version.is_none() {
            continue;
        }
        let id = &tool.id;
        let now =
            by_id(catalog, &ready.scope, id.clone()).ok_or_else(|| gone_since(catalog, id))?;
        check_version(&now, version.as_ref())?;
    }
    Ok(())
}

/// The tool with this identity in a scope.
pub(super) fn by_id(catalog: &Catalog, scope: &ViewQuery, id: ToolId) -> Option<Arc<ViewTool>> {
    match find_in_scope(catalog, scope, &NameRef::Id(id)) {
        NameLookup::One(tool) => Some(tool),
        NameLookup::Ambiguous(_) | NameLookup::None => None,
    }
}

fn named(request: &Request) -> NameRef {
    NameRef::parse(&request.name)
}

/// The meaning of the name in one list.
fn in_list(
    catalog: &Catalog,
    scope: &ViewQuery,
    request: &Request,
) -> Result<Arc<ViewTool>, ExecuteError> {
    let unknown = || {
        let name = match &request.scenario {
            Some(scenario) => NameRef::Id(ToolId::new(scenario.clone(), request.name.as_str())),
            None => named(request),
        };
        missing(catalog, &name, &request.name)
    };
    if let Some(scenario) = &request.scenario {
        // A caller that names the scenario may give the tool's original name, which may contain a
        // slash.
        if let Some(own) = by_id(
            catalog,
            scope,
            ToolId::new(scenario.clone(), request.name.as_str()),
        ) {
            return Ok(own);
        }
        return match find_in_scope(catalog, scope, &named(request)) {
            NameLookup::One(tool) if tool.id.scenario == *scenario => Ok(tool),
            _ => Err(unknown()),
        };
    }
    match find_in_scope(catalog, scope, &named(request)) {
        NameLookup::One(tool) => Ok(tool),
        NameLookup::Ambiguous(tools) => {
            let candidates = tools.iter().map(|tool| tool.id.clone()).collect();
            Err(ExecuteError::Ambiguous {
                name: request.name.clone(),
                candidates,
            })
        }
        NameLookup::None => Err(unknown()),
    }
}
