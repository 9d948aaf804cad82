//! callsheet keeps one always-current list of every tool that your agents may call.
//!
//! It finds running *scenarios* through its *sources*, polls each in its *protocol* for a
//! *manifest*, merges the manifests with *preferences* into one immutable *catalog*, and answers
//! *views* of it in several *formats*. Every decision is explained by a *finding*.
//!
//! | word | meaning |
//! |---|---|
//! | source | finds out where scenarios may be: [`discovery`] |
//! | endpoint | one address of a scenario, as a source reports it |
//! | scenario | a running program that offers tools |
//! | protocol | how one family of scenarios is listed and called: [`protocols`] |
//! | manifest | what a scenario says it offers: [`model::Manifest`] |
//! | preference | what a user or operator wants, within a scope: [`model::PreferenceSet`] |
//! | catalog | the merged, immutable result; has a revision: [`catalog`] |
//! | finding | one explained decision: [`model::Finding`] |
//! | view | the catalog as one client may see it: [`catalog::View`] |
//! | format | an outgoing shape of a view: [`formats`] |
//! | call | one request to run a tool, routed to its scenario: [`calls`] |
//!
//! ```text
//! configuration, preferences -------------------------------------------+
//!                                                                       v
//! discovery --endpoints--> engine --poll-> protocols --manifest--> engine --> catalog
//!                                          (through transports)               |
//!                                  server <--prepared bytes-- views <---------+
//! ```
//!
//! [`Callsheet`] embeds all of it in a program; [`provide`] makes a program a scenario. How the
//! parts fit, and what each never does, is in `ARCHITECTURE.md`, each mechanism in `docs/design/`,
//! each word in `docs/glossary.md`. The modules below are in reading order.

mod json;

pub mod model;

pub mod runtime;

pub mod metrics;

pub mod config;

pub mod bundles;

pub mod discovery;

pub mod transports;

pub mod lint;

pub mod protocols;

pub mod engine;

pub mod catalog;

pub mod formats;

pub mod views;

pub mod events;

pub mod state;

pub mod calls;

pub mod server;

pub use callsheet_provide as provide;

pub mod native;

pub mod app;

pub mod cli;

pub use app::Callsheet;
