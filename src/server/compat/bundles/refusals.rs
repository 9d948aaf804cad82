//! Why requests about stored tools are refused.

use http::StatusCode;
use uuid::Uuid;

use super::archives::{self, ZIP};
use crate::bundles::BundleError;
use crate::bundles::archive::ARCHIVE_MAX;
use crate::server::http::error::Problem;
use crate::server::http::guard::other_media;
use crate::server::http::next_step::NextStep;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::state::StateErrorKind;

/// Nothing of that name.
pub(super) const UNKNOWN: RefusalSpec =
    refusal(404, "No bundle or tool is stored under this name.")
        .with_example(|| BundleError::UnknownBundle(Uuid::nil()).into());
/// Reads of a bundle that is going.
pub(super) const GOING: RefusalSpec = refusal(409, "The bundle is being deleted.")
    .with_example(|| BundleError::BeingDeleted(Uuid::nil()).into());
/// What cannot be changed.
pub(super) const READ_ONLY: RefusalSpec =
    refusal(403, "The bundle is disabled or built in; or the request has a `Host` that is not the daemon's, or comes from a web page of another site.")
        .with_example(|| BundleError::Disabled(Uuid::nil()).into());
/// A change that what is there forbids.
pub(super) const IN_THE_WAY: RefusalSpec =
    refusal(409, "The tool is there already and is unchanged, the bundle is not empty or is being deleted, or as many tools are stored as are kept.")
        .with_example(|| BundleError::NotEmpty(Uuid::nil(), 2).into());
/// Another process is at work.
pub(super) const LOCKED: RefusalSpec = refusal(
    503,
    "Another process is changing the bundles, or the folder cannot be written.",
)
.with_example(|| BundleError::Busy.into());
/// The built-in bundle as an archive.
pub(super) const NO_FILES: RefusalSpec =
    refusal(403, "The bundle is built in, so it has no files; or the request has a `Host` that is not the daemon's.")
        .with_example(|| BundleError::NoFiles.into());
/// An archive that cannot be imported.
pub(super) const BAD_ARCHIVE: RefusalSpec = refusal(
    400,
    "The archive cannot be imported (`code` is `invalid_archive`), or a parameter is not known. `detail` says what is \
     wrong. No part of it is stored.",
)
.with_example(|| BundleError::Archive("`../x.json` leads out of it, or is a link".to_owned()).into());
/// An archive beyond the limit.
pub(super) const TOO_LARGE: RefusalSpec = refusal(413, "The archive is larger than 64 MiB.")
    .with_example(|| Problem::larger_than_taken(ARCHIVE_MAX));
/// A body of another content type.
pub(super) const NOT_ZIP: RefusalSpec = refusal(
    415,
    "The body must say that it is `application/zip`, and be in no content coding.",
)
.with_example(|| other_media(ZIP, Some("application/json")));
/// Too many archives at once.
pub(super) const ARCHIVES_BUSY: RefusalSpec = refusal(
    503,
    "Other archives are being made or stored, another process is changing the bundles, or the folder cannot be written.",
)
.with_example(archives::busy);
impl From<BundleError> for Problem {
    fn from(error: BundleError) -> Self {
        let told = |status: StatusCode, code: &str| {
            Self::from_error(status, &error).with_member("code", code)
        };
        match &error {
            BundleError::Off | BundleError::OffUntilRestart => {
                told(StatusCode::NOT_FOUND, "bundles_off")
            }
            BundleError::UnknownBundle(_) => told(StatusCode::NOT_FOUND, "unknown_bundle"),
            BundleError::UnknownTool(..) => told(StatusCode::NOT_FOUND, "unknown_tool"),
            BundleError::BeingDeleted(_) => told(StatusCode::CONFLICT, "being_deleted"),
            BundleError::NotEmpty(..) => told(StatusCode::CONFLICT, "not_empty"),
            BundleError::Conflict(..) | BundleError::ArchiveConflict { .. } => {
                told(StatusCode::CONFLICT, "exists").with_next(NextStep::parameter("new", "true"))
            }
            BundleError::TooMany(_)
            | BundleError::TooManyBundles(_)
            | BundleError::TooManyBytes { .. }
            | BundleError::ArchiveTooMany { .. } => told(StatusCode::CONFLICT, "too_many"),
            BundleError::Disabled(_) => told(StatusCode::FORBIDDEN, "disabled"),
            BundleError::BuiltIn(_) | BundleError::NoFiles => {
                told(StatusCode::FORBIDDEN, "built_in")
            }
            BundleError::TooLarge(_) => told(StatusCode::BAD_REQUEST, "too_large"),
            BundleError::Invalid(wrong) => told(StatusCode::BAD_REQUEST, "invalid")
                .with_member("pointer", wrong.pointer.as_str()),
            BundleError::HostNotAllowed { pointer, .. } => {
                told(StatusCode::BAD_REQUEST, "host_not_allowed").with_member("pointer", *pointer)
            }
            BundleError::Name(_) => told(StatusCode::BAD_REQUEST, "invalid_name"),
            BundleError::Archive(_) => told(StatusCode::BAD_REQUEST, "invalid_archive"),
            BundleError::Busy => Self::busy_with(&error),
            BundleError::Storage { kind, .. } => {
                tracing::error!(%error, "a change of the bundles could not be stored");
                Self::storage_failed(match kind {
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                        StateErrorKind::Full
                    }
                    std::io::ErrorKind::PermissionDenied
                    | std::io::ErrorKind::ReadOnlyFilesystem => StateErrorKind::Unwritable,
                    _ => StateErrorKind::Other,
                })
            }
        }
    }
}
