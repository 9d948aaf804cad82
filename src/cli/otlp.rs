//! Traces for an OpenTelemetry collector (OTLP over HTTP with protobuf), with the feature `otlp`.
//!
//! Traced are each poll of a scenario and each request except those for prepared lists. Batches are
//! sent with the existing HTTP client, apart from all other work. A collector that does not answer
//! costs only traces.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::CommandError;
use crate::runtime::Tasks;
use crate::transports::http::{body, tls};

/// Where collectors take traces, below their address.
const PATH: &str = "/v1/traces";
/// How long one batch may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer of a collector that is read: it says which spans it did not take.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Sends traces until it is finished.
#[derive(Debug)]
pub(super) struct Traces(SdkTracerProvider);

/// Sends batches from the exporter's own thread, which has no runtime.
#[derive(Debug)]
struct OtlpClient {
    client: reqwest::Client,
    runtime: Handle,
    tasks: Tasks,
}

impl Traces {
    /// Sends to the collector at this address, such as `http://127.0.0.1:4318`.
    pub(super) fn to_collector(collector: &str) -> Result<Self, CommandError> {
        tls::choose_tls();
        // A proxy from the environment would see the traces, and a redirect would send them
        // elsewhere.
        let builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none());
        let client = builder
            .timeout(TIMEOUT)
            .build()
            .context("the client for traces cannot be set up")?;
        let sender = OtlpClient {
            client,
            runtime: Handle::current(),
            tasks: Tasks::new(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}{PATH}", collector.trim_end_matches('/')))
            .build()
            .map_err(|error| CommandError::Usage {
                message: format!("`--otlp` cannot be used: {error}"),
                hint: "write the address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318"
                    .into(),
            })?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder()
            .with_service_name("callsheet")
            .with_attribute(version)
            .build();
        Ok(Self(
            SdkTracerProvider::builder()
                .with_resource(resource)
                .with_batch_exporter(exporter)
                .build(),
        ))
    }

    /// What hands spans of our own to it; those of libraries would include its own requests.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.0.tracer("callsheet");
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false);
        layer.with_filter(Targets::new().with_target("callsheet", Level::DEBUG))
    }

    /// Sends what is left.
    pub(super) async fn finish(self) {
        // It waits for its own thread, which needs the runtime's threads.
        let ended = Tasks::new()
            .spawn_blocking(move || self.0.shutdown_with_timeout(TIMEOUT))
            .await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

impl HttpClient for OtlpClient {
    fn send_bytes<'s, 'a>(
        &'s self,
        request: Request<Bytes>,
    ) -> BoxFuture<'a, Result<Response<Bytes>, HttpError>>
    where
        's: 'a,
        Self: 'a,
    {
        let client = self.client.clone();
        let sent = {
            let _here = self.runtime.enter();
            self.tasks.spawn(send(client, request))
        };
        Box::pin(async move { sent.await? })
    }
}

async fn send(
    client: reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let answer = client.execute(reqwest::Request::try_from(request)?).await?;
    let status = answer.status();
    let body = body::read(reqwest::Body::from(answer), LONGEST_ANSWER)
        .await
        .map_err(|_| "the collector's answer cannot be read")?;
    Ok(Response::builder().status(status).body(body)?)
}
