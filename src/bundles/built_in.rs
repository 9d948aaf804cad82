//! The built-in tools: they read files of configured folders, and addresses of allowed hosts. They
//! are a bundle like any other, of which only `isEnabled` can change; that is kept in a file of its
//! own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::bundle_set::ReadBundle;
use super::definition::SCHEMA_VERSION;
use super::{
    BuiltInTool, BundleDefinition, BundleError, StoredDocument, StoredTool, ToolImplementation,
    files,
};

/// The id of the bundle of built-in tools.
pub(super) const BUILT_IN_ID: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0001);
/// Where it is kept what is disabled.
const FILE: &str = "built-in.json";
/// When they came to be.
const SINCE: &str = "2026-01-01T00:00:00Z";

/// The bundle of built-in tools, with what is disabled of it below `root`. A file that cannot be
/// read disables all of it.
pub(super) fn read(root: &Path) -> Option<ReadBundle> {
    let file = root.join(FILE);
    let switches = if file.exists() {
        files::read_members(&file).map(Some)
    } else {
        Ok(None)
    };
    let is_on = |name: Option<&str>| match &switches {
        Err(_) => false,
        Ok(None) => true,
        Ok(Some(switches)) => {
            let switch = name.map_or_else(
                || switches.get("isEnabled"),
                |name| switches.get("tools")?.get(name),
            );
            switch.and_then(Value::as_bool).unwrap_or(true)
        }
    };
    let document = object(json!({
        "schemaVersion": SCHEMA_VERSION, "id": BUILT_IN_ID, "slug": "built-in", "displayName": "Built-in tools",
        "description": "Reads files of the shared folders and addresses of allowed hosts", "isEnabled": is_on(None),
        "isBuiltIn": true, "createdAt": SINCE, "modifiedAt": SINCE,
    }));
    let tools = BuiltInTool::ALL.into_iter().enumerate().filter_map(|(at, tool)| {
        let (slug, name, description, schema) = tool.about();
        let document = object(json!({
            "schemaVersion": SCHEMA_VERSION, "toolID": Uuid::from_u128(BUILT_IN_ID.as_u128() + 1 + at as u128),
            "bundleID": BUILT_IN_ID, "slug": slug, "version": "v1", "displayName": name, "description": description,
            "type": "go", "isEnabled": is_on(Some(slug)), "isBuiltIn": true, "argSchema": schema,
            "impl": {"goFunc": format!("callsheet/{slug}")}, "createdAt": SINCE, "modifiedAt": SINCE,
        }));
        let parsed = StoredTool::parse(StoredDocument::from_members(&document).ok()?, BUILT_IN_ID).ok()?;
        Some(Arc::new(StoredTool { implementation: ToolImplementation::BuiltIn(tool), ..parsed }))
    });
    let tools = tools.collect();
    let definition = BundleDefinition::parse(StoredDocument::from_members(&document).ok()?).ok()?;
    Some(ReadBundle {
        definition,
        folder: PathBuf::new(),
        tools,
        findings: Vec::new(),
    })
}

/// Enables or disables the bundle, or the tool with this slug.
pub(super) fn switch(root: &Path, slug: Option<&str>, is_enabled: bool) -> Result<(), BundleError> {
    let file = root.join(FILE);
    let mut switches = files::read_members(&file).unwrap_or_default();
    match slug {
        None => _ = switches.insert("isEnabled".to_owned(), is_enabled.into()),
        Some(slug) => {
            let tools = switches
                .entry("tools")
                .or_insert_with(|| Value::Object(Map::new()));
            if let Some(tools) = tools.as_object_mut() {
                tools.insert(slug.to_owned(), is_enabled.into());
            }
        }
    }
    files::write(&file, &StoredDocument::from_members(&switches)?, None)
}

/// Refuses a change of the content of what is built in.
pub(super) fn refuse(bundle: Uuid) -> Result<(), BundleError> {
    if bundle == BUILT_IN_ID {
        Err(BundleError::BuiltIn(bundle.to_string()))
    } else {
        Ok(())
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
