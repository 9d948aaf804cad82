//! One call of a stored tool.
//!
//! What goes wrong between the tool and its API is the tool's failure, so that it does not count
//! against the other tools of its bundle. A request is sent again only when it was not sent at all,
//! or when its method may be repeated and the connection broke or the API is overloaded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue};
use serde_json::{Map, Value};

use super::{BundleSession, answer, built_in, usable};
use crate::bundles::http_tool::ResponseEncoding;
use crate::bundles::{
    BundleSettings, CallValues, HttpTool, PreparedRequest, RefusedValue, StoredTool, ToolAuth,
    ToolImplementation, WrittenValue,
};
use crate::model::{Auth, HttpTarget, JsonText, LoginCallback, OAuthClient, Secret};
use crate::protocols::{Call, CallError, CallIo, Outcome, run_function};
use crate::transports::TransportError;
use crate::transports::http::destination::{self, NoDestination};
use crate::transports::http::{CallLimits, HttpResponse, Unanswered};

/// The pause before the first further try; it doubles with each.
const RETRY_DELAY_FIRST: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The time of a function whose call has no limit.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(300);
/// The time of a built-in tool whose call has no limit.
const BUILT_IN_TIMEOUT: Duration = Duration::from_secs(30);

/// The secrets of one call, by name.
type UsedSecrets = BTreeMap<String, Secret>;

/// A failure of a tool that is not an answer of its API: a code and a sentence.
struct ToolFailure(&'static str, String);

impl From<ToolFailure> for Outcome {
    fn from(ToolFailure(code, why): ToolFailure) -> Self {
        Self::failed(None, why, Some(code.to_owned()))
    }
}

impl From<RefusedValue> for ToolFailure {
    fn from(refused: RefusedValue) -> Self {
        Self("refused_argument", refused.to_string())
    }
}

impl BundleSession {
    /// Runs a tool.
    pub(super) async fn run(&self, call: &Call, io: &dyn CallIo) -> Result<Outcome, CallError> {
        let gone = |why: &str| CallError::NotCallable(why.to_owned());
        let bundle = self
            .bundle()
            .ok_or_else(|| gone("its bundle was deleted"))?;
        if !bundle.definition.is_enabled {
            return Err(gone("its bundle is disabled"));
        }
        let tool = bundle.tools.iter().find(|tool| tool.name() == *call.tool);
        let tool = tool
            .cloned()
            .or_else(|| self.store.take_trial(self.id, &call.tool));
        let tool = tool
            .as_deref()
            .ok_or_else(|| gone("its bundle has no such tool any more"))?;
        let unread = |_| gone("the arguments are no JSON object");
        let members =
            || serde_json::from_str::<Map<String, Value>>(call.arguments.get()).map_err(unread);
        Ok(match &tool.implementation {
            ToolImplementation::Http(http) => {
                let arguments = WrittenValue::parse(&call.arguments).map_err(unread)?;
                let limit = call.limit(http.timeout).min(http.timeout);
                match self.answer(tool, http, &arguments, call, limit).await {
                    Ok(answer) => {
                        let http = Arc::clone(http);
                        let most = call.max_body;
                        // Reading a large answer takes a while.
                        self.transports
                            .tasks()
                            .blocking(move || answer::outcome(&http, &answer, most))
                            .await
                    }
                    Err(failure) => failure.into(),
                }
            }
            ToolImplementation::BuiltIn(tool) => {
                let settings = self.store.settings();
                let limit = call.limit(BUILT_IN_TIMEOUT);
                match built_in::run(
                    *tool,
                    members()?,
                    &settings,
                    &self.transports,
                    limit,
                    call.max_body,
                )
                .await
                {
                    Ok(value) => self.done(value).await,
                    Err(why) => ToolFailure("failed", why).into(),
                }
            }
            ToolImplementation::Function(name) => self.function(name, members()?, call, io).await,
        })
    }

    /// The outcome of a tool that gave this. Writing a large text with its escapes takes a while.
    async fn done(&self, value: Value) -> Outcome {
        let text = self
            .transports
            .tasks()
            .blocking(move || value.to_string())
            .await;
        Outcome::done(JsonText::known(text))
    }

    /// Runs a function of the embedding program.
    async fn function(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        call: &Call,
        io: &dyn CallIo,
    ) -> Outcome {
        let Some(function) = self.store.functions().get(name) else {
            let why = format!("the function `{name}` is not registered in this program");
            return ToolFailure("unavailable", why).into();
        };
        let limit = call.limit(FUNCTION_TIMEOUT);
        let deadline = self.transports.clock().now() + limit;
        let run = |context| function(Value::Object(arguments), context);
        match run_function(run, call.caller.clone(), deadline, io).await {
            Some(Ok(value)) => self.done(value).await,
            Some(Err(message)) => Outcome::failed(None, message, None),
            None => ToolFailure("timeout", format!("`{name}` took longer than {limit:?}")).into(),
        }
    }

    /// The answer of the API of an HTTP tool, whatever its status, within the limit of the call.
    async fn answer(
        &self,
        tool: &StoredTool,
        http: &HttpTool,
        arguments: &WrittenValue,
        call: &Call,
        limit: Duration,
    ) -> Result<HttpResponse, ToolFailure> {
        let settings = self.store.settings();
        let used = usable::check(tool, &settings, self.store.functions());
        let used = used
            .map_err(|unusable| ToolFailure("unavailable", format!("the tool {}", unusable.why)))?;
        let late = || {
            ToolFailure(
                "timeout",
                format!("`{}` did not answer within {limit:?}", http.url.origin()),
            )
        };
        let whole = async {
            let mut secrets = UsedSecrets::new();
            for name in used {
                secrets.insert(name.to_owned(), self.secret(name, &settings).await?);
            }
            let values = CallValues {
                arguments,
                declared: &tool.declared,
                secrets: &secrets,
                tool: (tool.slug.as_str(), tool.version.as_str()),
            };
            let now = self.transports.clock().wall();
            let request = http.prepare(&values, settings.max_request, now)?;
            self.sent(http, &settings, &secrets, &request, call.max_body)
                .await
        };
        // The pauses between tries are within the limit.
        tokio::time::timeout(limit, whole)
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    async fn secret(&self, name: &str, settings: &BundleSettings) -> Result<Secret, ToolFailure> {
        let unread = |why: String| {
            ToolFailure(
                "unavailable",
                format!("the secret `{name}` cannot be read: {why}"),
            )
        };
        let secret = settings
            .secrets
            .get(name)
            .ok_or_else(|| unread("it is not configured".to_owned()))?;
        self.transports
            .secret(&secret.source)
            .await
            .map_err(|error| unread(error.to_string()))
    }

    /// Sends a request, and sends it again where that is safe.
    async fn sent(
        &self,
        http: &HttpTool,
        settings: &BundleSettings,
        secrets: &UsedSecrets,
        request: &PreparedRequest,
        max_body: usize,
    ) -> Result<HttpResponse, ToolFailure> {
        let mut headers = request.headers.clone();
        if http.encoding == ResponseEncoding::Text {
            headers
                .entry(ACCEPT)
                .or_insert(HeaderValue::from_static("*/*"));
        }
        let max_body = http.max_response.unwrap_or(max_body).min(max_body);
        // The whole call has its own limit.
        let limits = CallLimits {
            timeout: http.timeout,
            max_body,
            headers,
            repeatable: http.is_idempotent(),
        };
        let mut pause = RETRY_DELAY_FIRST;
        for left in (0..=http.max_retries).rev() {
            let answered = self.once(http, settings, secrets, request, &limits).await?;
            let wait = match &answered {
                Ok(answer) if is_overloaded(answer) && http.is_idempotent() => {
                    answer.retry_after().unwrap_or(pause)
                }
                Err(failed) if !failed.sent || http.is_idempotent() && is_broken(&failed.error) => {
                    pause
                }
                _ => Duration::ZERO,
            };
            if left == 0 || wait.is_zero() {
                return answered
                    .map_err(|failed| ToolFailure(failed.error.kind(), failed.error.to_string()));
            }
            self.transports.clock().sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        // The last round of the loop returns.
        Err(ToolFailure("unavailable", "no request was sent".to_owned()))
    }

    /// Sends a request once, to the address that its host has now.
    async fn once(
        &self,
        http: &HttpTool,
        settings: &BundleSettings,
        secrets: &UsedSecrets,
        request: &PreparedRequest,
        limits: &CallLimits,
    ) -> Result<Result<HttpResponse, Unanswered>, ToolFailure> {
        let origin = http.url.origin();
        let hosts = &settings.allowed_hosts;
        let proxies = self.transports.proxies();
        let destination = match destination::find(origin, hosts, limits.timeout, &proxies).await {
            Ok(destination) => destination,
            Err(NoDestination::Unresolved(error)) => {
                return Ok(Err(Unanswered { error, sent: false }));
            }
            Err(refused) => {
                let why = format!("{refused}; add it to `bundles.allowed_hosts` if it is yours");
                return Err(ToolFailure("host_not_allowed", why));
            }
        };
        let auth = client(http, settings);
        let target = HttpTarget {
            auth,
            ..HttpTarget::at(origin.clone())
        };
        let upstream = self.transports.http(&target);
        let upstream = upstream.map_err(|error| ToolFailure(error.kind(), error.to_string()))?;
        let upstream = upstream
            .with_destination(destination)
            .hiding(secrets.values());
        Ok(upstream
            .request(
                request.method.clone(),
                request.url.clone(),
                request.body.clone(),
                limits,
            )
            .await)
    }
}

/// Whether an API says that it may answer later.
fn is_overloaded(answer: &HttpResponse) -> bool {
    matches!(answer.head.status.as_u16(), 429 | 502..=504)
}

/// Whether a connection ended before an answer came.
fn is_broken(error: &TransportError) -> bool {
    matches!(error, TransportError::Broken { .. })
}

/// The client of an authorization server that a tool is.
fn client(http: &HttpTool, settings: &BundleSettings) -> Option<Auth> {
    let Some(ToolAuth::OAuth {
        token_url,
        client_id,
        client_secret,
        scopes,
    }) = &http.auth
    else {
        return None;
    };
    let secret = client_secret
        .as_ref()
        .and_then(|name| settings.secrets.get(name));
    Some(Auth::OAuth(Box::new(OAuthClient {
        token_url: Some(token_url.clone()),
        client_id: client_id.clone(),
        client_secret: secret.map(|secret| secret.source.clone()),
        scopes: scopes.clone(),
        resource: None,
        issuer: None,
        callback: LoginCallback::Shared,
        token_hosts: Some(settings.allowed_hosts.clone()),
    })))
}
