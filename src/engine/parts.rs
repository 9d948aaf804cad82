//! What the loop uses but does not own the state of.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::message::Event;
use super::persist::archive::Save;
use super::routes::Routes;
use crate::config::Config;
use crate::metrics::Listings;
use crate::protocols::Protocols;
use crate::runtime::{Clock, Stop, Tasks};
use crate::transports::Transports;

/// What the loop uses but does not own the state of.
pub(super) struct Parts {
    pub(super) config: Arc<Config>,
    pub(super) transports: Transports,
    pub(super) protocols: Protocols,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) events: mpsc::Sender<Event>,
    /// What is to be stored behind the loop's back.
    pub(super) saves: mpsc::Sender<Save>,
    /// Tells the sources of another configuration.
    pub(super) configured: watch::Sender<Arc<Config>>,
    pub(super) listings: Arc<Listings>,
    /// Where calls find the ways to scenarios.
    pub(super) routes: Routes,
    /// Ends asks under way: nobody needs their answers then.
    pub(super) stop: Stop,
}
