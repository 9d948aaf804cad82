//! The daemon's log: lines on standard error, for people or for machines.
//!
//! Addresses are shown without credentials, and neither bodies nor queries of requests are logged.
//! The names of fields are those of [`crate::runtime::fields`].

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::CommandError;

/// The default log filter.
const DEFAULT: &str = "info";

/// Arguments about the log.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// What to log on standard error, such as `warn` or `callsheet=debug`.
    #[arg(long, env = "CALLSHEET_LOG", hide_env_values = true, value_name = "FILTER", default_value = DEFAULT)]
    log: String,
    /// How to log: lines for people, or one JSON object a line.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    log_format: LogFormat,
    /// Address of an OpenTelemetry collector (OTLP over HTTP) that gets traces, such as
    /// `http://127.0.0.1:4318`.
    #[cfg(feature = "otlp")]
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    otlp: Option<String>,
}

/// What was started, to be finished at the end.
#[derive(Debug, Default)]
#[must_use = "what was gathered is lost unless it is finished"]
pub(super) struct LogGuard {
    #[cfg(feature = "otlp")]
    traces: Option<super::otlp::Traces>,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people.
    Human,
    /// For machines: `timestamp`, `level`, `target`, `message`, the fields, and in `span` those of
    /// what it belongs to.
    Json,
}

impl LogArgs {
    /// Logs from here on.
    pub(super) fn start(&self) -> Result<LogGuard, CommandError> {
        // An empty variable is one that is not set.
        let filter = if self.log.is_empty() {
            DEFAULT
        } else {
            &self.log
        };
        let filter = EnvFilter::try_new(filter).map_err(|error| CommandError::Usage {
            message: format!("`--log` or `CALLSHEET_LOG` cannot be `{filter}`: {error}"),
            hint: "write a level such as `info`, or parts with levels such as `warn,callsheet::engine=debug`".into(),
        })?;
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines = match self.log_format {
            LogFormat::Human => {
                // The same decision about colour as for all other output.
                let choice = anstream::AutoStream::choice(&std::io::stderr());
                lines
                    .with_ansi(choice != anstream::ColorChoice::Never)
                    .boxed()
            }
            LogFormat::Json => lines
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .boxed(),
        };
        let started = self.started()?;
        let all = tracing_subscriber::registry().with(lines.with_filter(filter));
        #[cfg(feature = "otlp")]
        let all = all.with(started.traces.as_ref().map(super::otlp::Traces::layer));
        // A second initialisation can only come from an embedding program that has its own log.
        let _ = all.try_init();
        Ok(started)
    }

    #[cfg(feature = "otlp")]
    fn started(&self) -> Result<LogGuard, CommandError> {
        let collector = self
            .otlp
            .as_deref()
            .filter(|collector| !collector.is_empty());
        Ok(LogGuard {
            traces: collector
                .map(super::otlp::Traces::to_collector)
                .transpose()?,
        })
    }

    #[cfg(not(feature = "otlp"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the same call with and without traces"
    )]
    fn started(&self) -> Result<LogGuard, CommandError> {
        Ok(LogGuard::default())
    }
}

impl LogGuard {
    /// Sends what is left.
    #[cfg_attr(
        not(feature = "otlp"),
        expect(clippy::unused_async, reason = "the same call with and without traces")
    )]
    pub(super) async fn finish(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
    }
}
