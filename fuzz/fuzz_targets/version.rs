//! The version parser: what it takes reads the same when it is written out.

#![no_main]

use callsheet::model::{AcceptedVersions, ProtocolVersion, VersionVerdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let verdict = AcceptedVersions::default().judge(text);
    match ProtocolVersion::parse(text) {
        Ok(version) => {
            assert_ne!(verdict, VersionVerdict::Unreadable);
            let again =
                ProtocolVersion::parse(&version.to_string()).expect("what it writes it reads");
            assert_eq!(
                (&again.base.major, &again.base.minor, &again.prerelease),
                (
                    &version.base.major,
                    &version.base.minor,
                    &version.prerelease
                )
            );
            assert!(!again.nonconforming);
        }
        Err(_) => assert_eq!(verdict, VersionVerdict::Unreadable),
    }
});
