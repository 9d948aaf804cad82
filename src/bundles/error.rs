//! Why a bundle or tool was not read or changed.

use std::borrow::Cow;
use std::io;

use uuid::Uuid;

use super::document_members::DocumentError;
use super::{InvalidSlug, Slug, ToolVersion};
use crate::model::WithNextStep;

// What to do next: the ends of the texts below.
const OFF: &str = "set `bundles.path` to the folder for them, and restart the daemon";
const RESTART: &str = "restart the daemon";
const DELETE_FIRST: &str = "delete them first";
const ENABLE_FIRST: &str = "enable it first";
const OTHER_VERSION: &str = "use another version";
const AS_NEW: &str = "import it as a new bundle (`new=true`), or delete what is there first";
const RAISE_OR_DELETE_TOOLS: &str = "raise it, or delete tools first";
const RAISE_OR_DELETE_BUNDLES: &str = "raise it, or delete bundles";
const MAKE_SMALLER: &str = "make it smaller";
const TRY_SOON: &str = "try again soon";

/// Why a request about stored tools was not done. What was stored before is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BundleError {
    /// No folder is configured.
    #[error("no folder is configured for stored tools; {OFF}")]
    Off,
    /// A folder is configured, and is not in use before a restart.
    #[error(
        "there are no stored tools before a restart, because `bundles.path` was set while the daemon was running; {RESTART}"
    )]
    OffUntilRestart,
    /// No bundle has this id.
    #[error("no bundle has the id `{0}`")]
    UnknownBundle(Uuid),
    /// The bundle has no such tool.
    #[error("the bundle `{0}` has no tool `{1}` with version `{2}`")]
    UnknownTool(Uuid, Slug, ToolVersion),
    /// The bundle was deleted, and its files are still there.
    #[error("the bundle `{id}` is being deleted; {next}", id = .0, next = restore(.0))]
    BeingDeleted(Uuid),
    /// A bundle with tools cannot be deleted.
    #[error("the bundle `{0}` still has {1} tool(s); {DELETE_FIRST}")]
    NotEmpty(Uuid, usize),
    /// The bundle is disabled, so what is in it cannot be added or changed.
    #[error("the bundle `{0}` is disabled; {ENABLE_FIRST}")]
    Disabled(Uuid),
    /// The slug and version are taken.
    #[error(
        "the bundle `{0}` already has a tool `{1}` with version `{2}`; it is unchanged; {OTHER_VERSION}"
    )]
    Conflict(Uuid, Slug, ToolVersion),
    /// It is a part of the program.
    #[error("`{0}` is built in: only `isEnabled` can be changed")]
    BuiltIn(String),
    /// There are as many tools as are kept.
    #[error("there are {0} stored tools already, which is all that `bundles.max_tools` allows")]
    TooMany(usize),
    /// Tools of an archive are there already.
    #[error(
        "the archive is not imported: the bundle `{bundle}` already has a tool `{slug}` with version `{version}`{}; \
         {AS_NEW}",
        more_of(*.more)
    )]
    ArchiveConflict {
        /// The bundle that is there.
        bundle: Uuid,
        /// The first of these tools.
        slug: Slug,
        /// Its version.
        version: ToolVersion,
        /// How many more there are.
        more: usize,
    },
    /// With the tools of an archive there would be more than are kept.
    #[error(
        "the archive is not imported: it has {tools} tool(s), {stored} are stored already, and `bundles.max_tools` \
         allows {most}; {RAISE_OR_DELETE_TOOLS}"
    )]
    ArchiveTooMany {
        /// Tools of the archive.
        tools: usize,
        /// Tools that are stored.
        stored: usize,
        /// `bundles.max_tools`.
        most: usize,
    },
    /// There are as many bundles as are kept.
    #[error(
        "there are {0} bundles already, which is all that `bundles.max_bundles` allows; {RAISE_OR_DELETE_BUNDLES}"
    )]
    TooManyBundles(usize),
    /// The bundles would take more memory than is kept for them.
    #[error(
        "it needs {added_bytes} bytes, the stored bundles take {stored_bytes} already, and `bundles.max_bytes` allows \
         {most}; {RAISE_OR_DELETE_TOOLS}"
    )]
    TooManyBytes {
        /// What was to be added.
        added_bytes: usize,
        /// What is stored.
        stored_bytes: usize,
        /// `bundles.max_bytes`.
        most: usize,
    },
    /// A document is larger than the files that are read.
    #[error("`{0}` is larger than 256 KiB as a file; {MAKE_SMALLER}")]
    TooLarge(String),
    /// What is a part of the program has no files.
    #[error("the built-in tools are a part of the program, so they have no files to export")]
    NoFiles,
    /// What was sent cannot be stored.
    #[error(transparent)]
    Invalid(#[from] DocumentError),
    /// A name is outside its grammar.
    #[error(transparent)]
    Name(#[from] InvalidSlug),
    /// An archive cannot be imported.
    #[error("the archive cannot be imported: {0}")]
    Archive(String),
    /// A tool sends requests to a host that the configuration does not allow.
    #[error(
        "`{pointer}` has the host `{host}`, which is not allowed; {}",
        allow(host)
    )]
    HostNotAllowed {
        /// The member, as a JSON pointer.
        pointer: &'static str,
        /// The host.
        host: String,
    },
    /// Another process has the folder locked.
    #[error("another process is changing the bundles; {TRY_SOON}")]
    Busy,
    /// The folder could not be read or written.
    #[error("cannot {action} `{path}`: {message}")]
    Storage {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: String,
        /// The system's words.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

fn restore(bundle: &Uuid) -> String {
    format!("`callsheet bundle restore {bundle}` takes that back")
}

fn allow(host: &str) -> String {
    format!("add \"{host}\" to `bundles.allowed_hosts`")
}

impl WithNextStep for BundleError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        let known = match self {
            Self::Off => OFF,
            Self::OffUntilRestart => RESTART,
            Self::NotEmpty(..) => DELETE_FIRST,
            Self::Disabled(_) => ENABLE_FIRST,
            Self::Conflict(..) => OTHER_VERSION,
            Self::ArchiveConflict { .. } => AS_NEW,
            Self::ArchiveTooMany { .. } | Self::TooManyBytes { .. } => RAISE_OR_DELETE_TOOLS,
            Self::TooManyBundles(_) => RAISE_OR_DELETE_BUNDLES,
            Self::TooLarge(_) => MAKE_SMALLER,
            Self::Busy => TRY_SOON,
            Self::BeingDeleted(bundle) => return Some(restore(bundle).into()),
            Self::HostNotAllowed { host, .. } => return Some(allow(host).into()),
            Self::UnknownBundle(_)
            | Self::UnknownTool(..)
            | Self::BuiltIn(_)
            | Self::TooMany(_)
            | Self::NoFiles
            | Self::Invalid(_)
            | Self::Name(_)
            | Self::Archive(_)
            | Self::Storage { .. } => return None,
        };
        Some(known.into())
    }
}

/// The end of a sentence about the first of several tools.
fn more_of(more: usize) -> String {
    if more == 0 {
        String::new()
    } else {
        format!(", and {more} more of the archive")
    }
}

impl BundleError {
    /// A failure of the file system.
    pub(super) fn storage(action: &'static str, path: &std::path::Path, error: &io::Error) -> Self {
        Self::Storage {
            action,
            path: path.display().to_string(),
            message: error.to_string(),
            kind: error.kind(),
        }
    }
}
