//! A manifest of an earlier run, judged by what is configured now.

use super::decode::{FROM_ONE_SCENARIO, beyond_limit};
use super::flaw::DocumentFindings;
use super::{Decoded, head};
use crate::model::{AcceptedVersions, Manifest};
use crate::protocols::ListError;

/// Judges a manifest that was decoded in an earlier run and stored: its version, its time stamp,
/// and that of its tools the `most` first by name are taken. One without a version, or with a
/// revision of MCP, came by a protocol that has no such versions and no time stamps.
pub fn restored(
    mut manifest: Manifest,
    accept: &AcceptedVersions,
    most: usize,
) -> Result<Decoded, ListError> {
    let mut findings = DocumentFindings::default();
    if !manifest.protocol_version.is_empty()
        && !Manifest::is_revision_of_mcp(&manifest.protocol_version)
    {
        head::version_again(&manifest.protocol_version, accept, &mut findings)?;
        if manifest.generated_at.is_none() {
            findings.push(head::unstamped(head::MISSING));
        }
    }
    let total = manifest.tools.len();
    let beyond = total.saturating_sub(most);
    if beyond > 0 {
        let (from, hint) = FROM_ONE_SCENARIO;
        findings.push(beyond_limit(beyond, total, most, from, hint));
        manifest.tools.truncate(most);
        manifest.digest = manifest.content_digest();
    }
    Ok(Decoded {
        manifest,
        findings: findings.finish(),
        quarantined: beyond,
    })
}
