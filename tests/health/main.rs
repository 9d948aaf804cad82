//! Watching scenarios: when they are asked, what their answers and their silence mean, and what is listed meanwhile.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod authorization;
mod backoff;
mod crowd;
mod forced;
mod forgetting;
mod fresh;
mod isolation;
mod life;
mod restart;
mod settling;
mod sources;
mod time;
mod versions;
