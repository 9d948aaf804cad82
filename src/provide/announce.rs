//! Telling the local network of a scenario, so that callsheet daemons find it without configuration.
//!
//! ```no_run
//! use callsheet::provide::Announcement;
//! use callsheet::runtime::Clock;
//!
//! # async fn announce(listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
//! let announced = Announcement::new("library", listener.local_addr()?, "0b1c6c4e-6f0a-4a0e-9d0c-2b7b1a0f5a11")
//!     .start(Clock::system())
//!     .await?;
//! // ... serve until told to stop, then:
//! announced.goodbye().await;
//! # Ok(())
//! # }
//! ```

pub use crate::discovery::mdns::announce::{AnnounceError, Announced, Announcement};
