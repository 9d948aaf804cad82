//! Makes a Rust program a scenario (tool provider): a registry of its tools, and a router that
//! lists and runs them.
//!
//! A [`Registry`] knows the program's [`Provider`]s, and [`router()`] serves what they offer as the
//! Tool Discovery Protocol 1.0 requires: `GET /api/v1/tools`, `GET /api/v1/tools/{name}`, with
//! caching headers and conditional requests. Providers are called at each manifest, so a tool that
//! comes or goes shows at the next request. `POST /api/v1/tools/execute` runs the tools that have a
//! function ([`StaticProvider::runs`], [`Provider::run`]), and `POST /rpc` lists and runs them over
//! plain JSON-RPC ([`json_rpc`]). While the program starts ([`Registry::starting`]), every route
//! answers 503. An [`Announcement`] makes it known on the local network.
//!
//! ```
//! use callsheet_provide::{
//!     self as provide, CategoryDefinition, Parameter, Registry, RegistryConfig, StaticProvider, ToolDefinition,
//! };
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new(RegistryConfig {
//!     scenario_name: "library".to_owned(),
//!     scenario_version: "1.2.0".to_owned(),
//!     scenario_description: "Lends books".to_owned(),
//!     ..RegistryConfig::default()
//! })?;
//! let find = ToolDefinition::new("find_book", "Finds books by their title")?
//!     .category("catalogue")
//!     .parameter("title", Parameter::string("A part of the title").required().min_length(2))
//!     .parameter("language", Parameter::choice("Language of the book", ["de", "en"]).default_value("en"))
//!     .tags(["books"])
//!     .idempotent(true)
//!     .example("Books on bees", json!({ "title": "bee" }));
//! let shelf = StaticProvider::new("catalogue")
//!     .category(CategoryDefinition::new("catalogue", "Catalogue")?)
//!     .runs(find, |given: Value| async move {
//!         let title = given["title"].as_str().ok_or("`title` is missing")?;
//!         Ok::<_, &str>(json!([{ "title": format!("All about {title}") }]))
//!     });
//! registry.register(shelf);
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! println!("http://{}/api/v1/tools", listener.local_addr()?);
//! let shutdown = async { /* until a signal comes */ };
//! provide::serve(listener, registry, shutdown).await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is kept true here:
//!
//! - A definition is valid by construction: what the protocol does not allow is refused where it is
//!   made.
//! - The same tools and categories have the same `ETag`, in whatever order their providers were
//!   registered, and after a restart.
//! - Of several tools with one name, that of the provider that came first is served; the others are
//!   reported ([`Registry::shadowed`]).
//! - Arguments come to a function as they were sent, and the function checks what it needs.
//!
//! To change it, read in this order: `definition.rs` and `parameter.rs` (one tool), `provider.rs`,
//! `registry.rs` (the merge), `router.rs` with `conditional.rs` (HTTP), [`json_rpc`], `announce.rs`
//! and `mdns.rs` (the local network).

#[cfg(feature = "announce")]
mod announce;
pub mod conditional;
mod definition;
pub mod json_rpc;
#[cfg(feature = "announce")]
pub mod mdns;
mod parameter;
mod provider;
mod registry;
mod router;

#[cfg(feature = "announce")]
pub use announce::{AnnounceError, Announced, Announcement, SERVICE_TYPE};
pub use definition::{CategoryDefinition, Cost, InvalidDefinition, ToolDefinition};
pub use parameter::Parameter;
pub use provider::{Function, Provider, StaticProvider, ToolFuture, function};
pub use registry::{Registry, RegistryConfig, Shadowed, Starting};
pub use router::{router, serve};
