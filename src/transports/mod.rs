//! How bytes reach a scenario.
//!
//! Each transport is one folder. None knows a protocol: what the bytes mean is decoded in
//! [`protocols`](crate::protocols).

pub mod http;
