//! The reader of archives of bundles. What it accepts is within its limits, and is read again from
//! the archive that is written of it.

#![no_main]

use callsheet::bundles::archive::{read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(bundle) = read(data) else { return };
    let tools: Vec<_> = bundle.tools.iter().map(|tool| tool.document.clone()).collect();
    // Numbers are written in a form of their own, by which a file may become too large.
    let Ok(written) = write(&bundle.definition.document, &tools) else { return };
    assert_eq!(read(&written).expect("what was written can be read"), bundle);
});
