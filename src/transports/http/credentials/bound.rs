//! The credentials of one target, bound to its origin.

use std::fmt;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::{Mutex, MutexGuard};
use url::{Origin, Url};

use super::challenge::Challenge;
use super::error::CredentialError;
use super::secret_reader::SecretReader;
use super::sent::SentSecrets;
use super::token::{Token, TokenSource, TokenSources};
use crate::model::{Auth, HttpTarget, Secret, SecretSource};
use crate::transports::Mask;

/// The credentials of one target. They go to the origin (scheme, host and port) that the operator
/// named and nowhere else. Cheap to clone; clones share their source of tokens.
#[derive(Clone)]
pub struct Credentials(Arc<BoundCredentials>);

/// See [`Credentials`].
struct BoundCredentials {
    origin: Origin,
    /// The name and password of the address.
    address: Option<HeaderValue>,
    headers: Vec<(HeaderName, SecretSource)>,
    auth: Option<Auth>,
    tokens: Option<Arc<dyn TokenSource>>,
    reader: SecretReader,
    sent: Mutex<SentSecrets>,
}

/// What goes with one request. It is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AppliedCredentials {
    pub(super) headers: HeaderMap,
    /// The token among them that a source gave.
    token: Option<Token>,
}

impl Credentials {
    /// The credentials of this target. `address` is the header for the name and password of its
    /// address.
    pub fn new(
        target: &HttpTarget,
        address: Option<HeaderValue>,
        reader: SecretReader,
        sources: Option<&Arc<dyn TokenSources>>,
    ) -> Self {
        let has_own =
            address.is_some() || target.headers.iter().any(|(name, _)| name == AUTHORIZATION);
        let may_login = target.auth.is_none() && target.login.is_some() && !has_own;
        let is_client = matches!(target.auth, Some(Auth::OAuth(_)));
        let sources = sources.filter(|_| may_login || is_client);
        Self(Arc::new(BoundCredentials {
            origin: target.url.origin(),
            address,
            headers: target.headers.clone(),
            auth: target.auth.clone(),
            tokens: sources.and_then(|sources| sources.source(target)),
            reader,
            sent: Mutex::default(),
        }))
    }

    /// What goes with a request to this address: nothing to another origin than their own.
    ///
    /// Fails when a secret cannot be read, or a token cannot be had.
    pub async fn apply(&self, to: &Url) -> Result<AppliedCredentials, CredentialError> {
        // An opaque origin equals no other.
        if self.0.origin != to.origin() {
            return Ok(AppliedCredentials::default());
        }
        let mut applied = AppliedCredentials::default();
        applied
            .headers
            .extend(self.0.address.clone().map(|value| (AUTHORIZATION, value)));
        for (name, source) in &self.0.headers {
            let value = self.read(source, name.as_str()).await?;
            applied
                .headers
                .insert(name, header(value.expose(), name.as_str())?);
        }
        match &self.0.auth {
            Some(Auth::Bearer(source)) => {
                let token = Token::new(self.read(source, "auth").await?)?;
                applied
                    .headers
                    .extend(token.header().map(|value| (AUTHORIZATION, value)));
            }
            Some(Auth::Header(name, source)) => {
                let value = self.read(source, name.as_str()).await?;
                applied
                    .headers
                    .insert(name, header(value.expose(), name.as_str())?);
            }
            Some(Auth::Basic(user, source)) => {
                let password = self.read(source, "auth").await?;
                let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
                applied
                    .headers
                    .insert(AUTHORIZATION, header(&format!("Basic {pair}"), "auth")?);
            }
            Some(Auth::OAuth(_)) | None => {}
        }
        if let Some(tokens) = &self.0.tokens {
            applied.token = tokens.token().await?;
            let shown = applied.token.as_ref().and_then(Token::header);
            applied
                .headers
                .extend(shown.map(|value| (AUTHORIZATION, value)));
        }
        self.sent().add(&applied.headers);
        Ok(applied)
    }

    /// Called when a server refused a request with these: whether there are others now, so that
    /// sending it again may succeed.
    ///
    /// Fails when a token was refused and cannot be renewed.
    pub async fn renew(
        &self,
        refused: &AppliedCredentials,
        challenge: &Challenge,
    ) -> Result<bool, CredentialError> {
        let Some(tokens) = &self.0.tokens else {
            for source in self.sources() {
                self.0.reader.refused(source).await;
            }
            return Ok(true);
        };
        match tokens.renew(refused.token.as_ref(), challenge).await {
            Ok(token) => Ok(refused.token.as_ref() != Some(&token)),
            // Without a token the server's own answer says what is missing.
            Err(error) if refused.token.is_none() && error.needs_operator() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Masks these secrets, too, which the caller sends to the same origin by itself.
    pub(in crate::transports::http) fn also_sends<'a>(
        &self,
        secrets: impl Iterator<Item = &'a Secret>,
    ) {
        self.sent().add_others(secrets);
    }

    /// Masks what was sent so far: the last few credentials, for a server may quote an old one.
    pub(in crate::transports::http) fn mask(&self) -> Mask {
        self.sent().mask.clone()
    }

    fn sent(&self) -> MutexGuard<'_, SentSecrets> {
        self.0.sent.lock()
    }

    /// Where the secrets are.
    fn sources(&self) -> impl Iterator<Item = &SecretSource> {
        let auth = match &self.0.auth {
            Some(Auth::Bearer(source) | Auth::Header(_, source) | Auth::Basic(_, source)) => {
                Some(source)
            }
            Some(Auth::OAuth(_)) | None => None,
        };
        self.0.headers.iter().map(|(_, source)| source).chain(auth)
    }

    async fn read(&self, source: &SecretSource, key: &str) -> Result<Secret, CredentialError> {
        let named = |error| match error {
            CredentialError::Unreadable(why) => {
                CredentialError::Unreadable(format!("its `{key}`: {why}"))
            }
            other => other,
        };
        self.0.reader.read(source).await.map_err(named)
    }
}

/// A value of a header that is never shown.
fn header(text: &str, key: &str) -> Result<HeaderValue, CredentialError> {
    let unreadable = |_| {
        CredentialError::Unreadable(format!(
            "its `{key}` has characters that no header can have"
        ))
    };
    let mut value = HeaderValue::from_str(text).map_err(unreadable)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The origin alone.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.0.origin.ascii_serialization())
    }
}

/// The names of the headers alone.
impl fmt::Debug for AppliedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers.keys()).finish()
    }
}
