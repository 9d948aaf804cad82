//! Bundles of stored tools: their files, what stands in them, and the requests that are made of
//! them. A bundle is a folder below `bundles.path` with `bundle.json` and one JSON file for each
//! tool.
//!
//! ```text
//! folder --files, stored_document--> definition --> bundle_set --store--> discovery, protocols
//!    ^ lock                            `-> http_tool (templates)   `--> PreparedRequest
//!    +-- changes, import_export <-- an operator's request
//! ```
//!
//! What is kept true here:
//!
//! - The folder is the only truth. A file that cannot be used costs its tool alone.
//! - A change holds the lock of the folder while it reads, judges and writes. It is answered when
//!   it is durable and published.
//! - A file stays the text of its document: members that are not known survive each change.
//! - A value never becomes a template, and never changes the structure around it.
//! - No file, argument or answer takes more stack, memory or time than a stated bound.
//!
//! Read in this order:
//!
//! 1. `name.rs`, `stored_document.rs`, `document_members.rs`, `definition.rs` (one file).
//! 2. `template.rs`, `url_template.rs`, `body_template.rs`, `written_value.rs`, `refused_value.rs`,
//!    `reserved_headers.rs`, `tool_auth.rs`, `signature.rs`, `extract.rs`, `path_work.rs`: the
//!    parts of `http_tool.rs`; `draft.rs` writes the document of one.
//! 3. `bundle_set.rs`, `files.rs`, `lock.rs`, `changes.rs`, `store.rs` (what the rest of the daemon
//!    uses), `settings.rs`, `functions.rs`, `error.rs`.
//! 4. `built_in.rs`, `built_in_tool.rs` (tools of the program); `archive.rs`, `import_export.rs`
//!    (ZIP).
//!
//! It sends no request, and changes no stored file unless an operator requests it; only a bundle
//! that was deleted is removed for good two days later, if it is still empty.

pub mod archive;
mod body_template;
mod built_in;
mod built_in_tool;
pub mod bundle_set;
mod changes;
pub mod definition;
mod document_members;
pub mod draft;
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
mod signature;
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
pub use functions::{CallContext, ContextFunction, Functions, context_function, without_context};
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
