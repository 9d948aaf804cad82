//! Bundles of stored tools: their files, what stands in them, and the requests that are made of
//! them.
//!
//! A bundle is a folder below `bundles.path` with `bundle.json` and one JSON file for each tool.
//! Reading order: [`name`] has the grammar of slugs and versions; [`template`], `url_template`,
//! `body_template` and [`extract`] are the parts of an HTTP tool, [`http_tool`] is the whole of it
//! and makes requests; [`definition`] reads a file, [`bundle_set`] holds all of them, [`files`]
//! reads and writes the folder under its `lock`, each file as a `stored_document`; `built_in` has
//! the tools that are a part of the program; [`store`] is what the rest of the daemon uses, with
//! [`archive`] and `import_export` for bundles as ZIP archives.
//!
//! It sends no request, and changes nothing that is stored unless an operator requests it.

pub mod archive;
mod body_template;
mod built_in;
mod built_in_tool;
pub mod bundle_set;
mod changes;
pub mod definition;
mod document_members;
mod error;
pub mod extract;
pub mod files;
mod functions;
pub mod http_tool;
mod import_export;
mod lock;
pub mod name;
mod path_work;
mod refused_value;
mod reserved_headers;
mod settings;
pub mod store;
mod stored_document;
pub mod template;
mod tool_auth;
mod url_template;
mod written_value;

pub use built_in_tool::BuiltInTool;
pub use bundle_set::{BundleSet, StoredBundle};
pub(crate) use changes::time;
pub use changes::{BundleChange, ToolContent, new_id};
pub use definition::{BundleDefinition, StoredTool, ToolImplementation};
pub use document_members::DocumentError;
pub use error::BundleError;
pub use functions::Functions;
pub use http_tool::{HttpTool, PreparedRequest};
pub use import_export::{ExportedBundle, ImportedBundle};
pub use name::{InvalidSlug, Slug, ToolVersion};
pub use refused_value::RefusedValue;
pub use settings::{BundleSecret, BundleSettings};
pub use store::BundleStore;
pub use stored_document::StoredDocument;
pub use template::CallValues;
pub use tool_auth::ToolAuth;
pub use written_value::WrittenValue;
