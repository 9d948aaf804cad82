//! The reader of archives of bundles. What it accepts is within its limits, and is read again from
//! the archive that is written of it.

#![no_main]

use callsheet::bundles::archive::{read, write};
use libfuzzer_sys::fuzz_target;

/// Bytes of memory that the tools of an archive may take.
const MOST_BYTES: usize = 32 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(bundle) = read(data, MOST_BYTES) else {
        return;
    };
    let tools: Vec<_> = bundle
        .tools
        .iter()
        .map(|tool| tool.document.clone())
        .collect();
    let Ok(written) = write(&bundle.definition.document, &tools) else {
        return;
    };
    assert_eq!(
        read(&written, MOST_BYTES).expect("what was written can be read"),
        bundle
    );
});
