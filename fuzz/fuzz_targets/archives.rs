//! The reader of archives of bundles. What it accepts is within its limits, and is read again from
//! the archive that is written of it.

#![no_main]

use callsheet::bundles::archive::{read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(bundle) = read(data) else { return };
    let tools: Vec<_> = bundle.tools.iter().map(|tool| tool.document.clone()).collect();
    let written = write(&bundle.definition.document, &tools).expect("a bundle that was read can be written");
    assert_eq!(read(&written).expect("what was written can be read"), bundle);
});
