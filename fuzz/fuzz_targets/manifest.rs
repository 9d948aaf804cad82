//! The manifest decoder, in whatever spelling the bytes look like.
//!
//! Whatever it takes must keep its promises: tools sorted and unique, within the bounds, and the
//! same when written and read again.

#![no_main]

use callsheet::model::{AcceptedVersions, Bounds};
use callsheet::protocols::tool_discovery::{decode, decode_within};
use callsheet::state;
use libfuzzer_sys::fuzz_target;

const BOUNDS: Bounds = Bounds {
    tools: 4,
    part: 2048,
};

fuzz_target!(|body: &[u8]| {
    let accept = AcceptedVersions::default();
    let Ok(decoded) = decode_within(body, &accept, BOUNDS) else {
        return;
    };
    let tools = &decoded.manifest.tools;
    assert!(tools.len() <= BOUNDS.tools);
    assert!(
        tools.windows(2).all(|pair| pair[0].name < pair[1].name),
        "sorted and unique"
    );
    let written = state::manifest::write(&decoded.manifest);
    let restored =
        state::manifest::read(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(restored.digest, decoded.manifest.digest, "{written}");
    let again =
        decode(written.as_bytes(), &accept).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again.manifest.digest, decoded.manifest.digest, "{written}");
    assert_eq!(again.quarantined, 0, "{written}");
});
