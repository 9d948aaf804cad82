//! callsheet keeps one always-current list of every tool that your agents may call.

pub mod model;

pub mod runtime;

pub mod config;

pub mod discovery;

pub mod upstream;

pub mod protocols;

pub mod engine;

pub mod catalog;

pub mod formats;

pub mod views;

pub mod state;

pub mod server;

pub mod provide;
