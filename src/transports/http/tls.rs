//! TLS for scenarios with https.
//!
//! It is set up when the first https address is connected to, because reading the machine's
//! certificates takes milliseconds and a megabyte. It never decides which address is connected to.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The TLS configuration of all connections. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Tls(Arc<OnceLock<Arc<ClientConfig>>>);

impl Tls {
    /// The configuration, which the first call makes.
    pub(super) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(self.0.get_or_init(|| Arc::new(configure())))
    }

    /// The configuration of connections to proxies, which make tunnels over HTTP/1.1 only.
    pub(super) fn config_for_proxies(&self) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config());
        config.alpn_protocols.clear();
        Arc::new(config)
    }
}

/// Makes ring the TLS provider of the process, unless it has one already. It comes before every
/// TLS configuration, those of other clients included.
pub(crate) fn choose_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // It fails only when another thread was faster, and that thread's choice serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn configure() -> ClientConfig {
    choose_tls();
    let builder = ClientConfig::builder().with_platform_verifier().unwrap_or_else(|error| {
        // A bare container has no CA certificates. Scenarios with http do not need any.
        tracing::warn!(%error, "no CA certificates can be loaded, so https scenarios will not be trusted");
        ClientConfig::builder().with_root_certificates(RootCertStore::empty())
    });
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}
