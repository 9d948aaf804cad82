//! The service in front of the router: the guard, the counters, and a shorter way for the list.
//!
//! Agents poll the list, and the router with its middleware halves the requests per second, so
//! `GET` and `HEAD` of the list are answered here; a cached answer does not even need a future. The
//! router answers all other routes, with the same handlers.

use std::any::Any;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use bytes::Bytes;
use futures_util::{FutureExt, future};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    AUTHORIZATION, CONTENT_LENGTH, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Body, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use tokio::time::Instant;
use tracing::{Instrument as _, field};

use crate::metrics::Requests;
use crate::metrics::requests::{MethodIndex, RouteIndex};
use crate::runtime::BudgetExceeded;
use crate::runtime::tasks::panic_text;
use crate::server::api::tools;
use crate::server::auth::Access;
use crate::server::events::DisconnectTrigger;
use crate::server::http::accept::{ConnectionLoad, TooManyRequests};
use crate::server::http::error::Problem;
use crate::server::http::guard::{Guard, Pass};
use crate::server::http::held::{ClientBytes, ConnectionBytes, HeldBody};
use crate::server::{SharedState, routes};

/// The path of the list.
const LIST: &str = "/api/v1/tools";

/// The paths of brief requests that are answered however many are under way: a supervisor restarts
/// a daemon that does not answer them.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// A body in memory, or one from the router.
type ServiceBody = Either<Full<Bytes>, axum::body::Body>;
type ServiceResponse = Response<ServiceBody>;
/// An answer whose bytes are reserved.
type HeldResponse = Response<HeldBody<ServiceBody>>;

/// Answers requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HttpService {
    inner: Arc<HttpServiceInner>,
    /// Whether only operators reach it.
    is_for_operator: bool,
}

#[derive(Debug)]
struct HttpServiceInner {
    guard: Guard,
    shared: SharedState,
    router: Router,
    counters: RequestCounters,
    bytes: ClientBytes,
    /// Of the bodies of routes that do not say otherwise.
    body_limit: DefaultBodyLimit,
}

/// The counters of the requests that the router does not get.
#[derive(Debug)]
struct RequestCounters {
    list: RouteIndex,
    refused: RouteIndex,
    preflight: RouteIndex,
    failed: RouteIndex,
}

/// What is counted of a request, beside its answer.
struct Counted {
    begun: Instant,
    method: MethodIndex,
    head_only: bool,
    bytes: ConnectionBytes,
}

/// A request after the guard has checked it.
enum Begun {
    /// It has an answer, which is counted under this route.
    Answered(ServiceResponse, RouteIndex),
    /// It may pass, and its answer is made by a future.
    Passed(Request<Incoming>, Pass),
}

impl HttpService {
    /// The service in front of the router of all routes. Request bodies have at most `max_body`
    /// bytes.
    pub(super) fn new(guard: Guard, shared: SharedState, max_body: usize) -> Self {
        let router = routes::router(Arc::clone(&shared));
        let place = |route| shared.requests.route(route);
        let places = RequestCounters {
            list: place(LIST),
            refused: place(routes::REFUSED),
            preflight: place(routes::PREFLIGHT),
            failed: place(routes::UNMATCHED),
        };
        let bytes = shared.bytes.clone();
        let inner = Arc::new(HttpServiceInner {
            guard,
            shared,
            router,
            counters: places,
            bytes,
            body_limit: DefaultBodyLimit::max(max_body),
        });
        Self {
            inner,
            is_for_operator: false,
        }
    }

    /// The same where only operators come in: bytes of their requests have room of their own.
    pub(super) fn for_operator(self) -> Self {
        Self {
            is_for_operator: true,
            ..self
        }
    }

    /// The service of one connection, which came to the address `local`. `let_go` cuts the
    /// connection, and `load` is what is under way on it.
    pub(super) fn connection(
        &self,
        local: IpAddr,
        let_go: DisconnectTrigger,
        load: &ConnectionLoad,
    ) -> impl Service<Request<Incoming>, Response = HeldResponse, Error = Infallible, Future: Send> + use<>
    {
        let inner = Arc::clone(&self.inner);
        let bytes = inner.bytes.connection(load.clone());
        let bytes = if self.is_for_operator {
            bytes.for_operator()
        } else {
            bytes
        };
        service_fn(move |request: Request<Incoming>| inner.respond(local, request, &let_go, &bytes))
    }
}

impl HttpServiceInner {
    /// Answers a request and counts it.
    fn respond(
        self: &Arc<Self>,
        local: IpAddr,
        request: Request<Incoming>,
        let_go: &DisconnectTrigger,
        bytes: &ConnectionBytes,
    ) -> impl Future<Output = Result<HeldResponse, Infallible>> + Send + use<> {
        let begun = self.shared.clock.now();
        let method = Requests::method(request.method());
        let head_only = request.method() == Method::HEAD;
        let bytes = &self.bytes_for(request.headers(), bytes);
        let counted = Counted {
            begun,
            method,
            head_only,
            bytes: bytes.clone(),
        };
        // A request that panics must not end the other requests of its connection. Shared state
        // is immutable or protects itself, so no half-changed state can be seen.
        let answered = match catch_unwind(AssertUnwindSafe(|| self.at_once(local, request, bytes)))
        {
            Ok(Begun::Passed(request, pass)) => {
                let inner = Arc::clone(self);
                let let_go = let_go.clone();
                // Boxed, because hyper moves the future of each request.
                return future::Either::Right(Box::pin(async move {
                    let answered =
                        AssertUnwindSafe(inner.passed(request, pass, let_go, &counted.bytes))
                            .catch_unwind()
                            .await;
                    Ok(inner.ended(&counted, answered))
                }));
            }
            Ok(Begun::Answered(answer, route)) => Ok((answer, route)),
            Err(panic) => Err(panic),
        };
        future::Either::Left(future::ready(Ok(self.ended(&counted, answered))))
    }

    /// What bytes of a request with these headers are reserved from.
    fn bytes_for(&self, headers: &HeaderMap, bytes: &ConnectionBytes) -> ConnectionBytes {
        let is_operator =
            headers.contains_key(AUTHORIZATION) && Access::has_token(&self.shared.config, headers);
        if is_operator {
            bytes.for_operator()
        } else {
            bytes.clone()
        }
    }

    /// Counts an answer under its route.
    fn ended(
        &self,
        counted: &Counted,
        answered: Result<(ServiceResponse, RouteIndex), Box<dyn Any + Send>>,
    ) -> HeldResponse {
        let (answer, route) =
            answered.unwrap_or_else(|panic| (internal_error(&*panic), self.counters.failed));
        let answer = if counted.head_only {
            without_body(answer)
        } else {
            answer
        };
        let answer = counted
            .bytes
            .hold(answer)
            .unwrap_or_else(|exceeded| refused(exceeded, &counted.bytes));
        let took = self.shared.clock.now() - counted.begun;
        self.shared
            .requests
            .answered(route, counted.method, answer.status(), took);
        answer
    }

    /// The answer if it can be made without waiting, and the route that it is counted under.
    fn at_once(&self, local: IpAddr, request: Request<Incoming>, bytes: &ConnectionBytes) -> Begun {
        let has_body = !request.body().is_end_stream();
        let (head, body) = request.into_parts();
        if head.extensions.get::<TooManyRequests>().is_some() && !PROBES.contains(&head.uri.path())
        {
            let problem = Problem::busy("too many requests are under way")
                .and_next("try again when some have ended");
            return Begun::Answered(
                into_full_body(problem.into_full_response()),
                self.counters.refused,
            );
        }
        let pass = match self.guard.check(&head, local, has_body) {
            Ok(pass) => pass,
            Err(problem) => {
                return Begun::Answered(
                    into_full_body(problem.into_full_response()),
                    self.counters.refused,
                );
            }
        };
        let preflight = head.method == Method::OPTIONS
            && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let (answer, route) = if preflight && pass.origin.is_some() {
            (Some(preflight_answer()), self.counters.preflight)
        } else if is_list(&head.method, head.uri.path()) {
            let budget = (head.method != Method::HEAD).then(|| bytes.answers());
            let answer = tools::list_again(&self.shared, head.uri.query(), &head.headers, budget);
            (answer, self.counters.list)
        } else {
            (None, self.counters.failed)
        };
        match answer {
            Some(answer) => {
                Begun::Answered(self.add_cors_headers(pass, into_full_body(answer)), route)
            }
            None => Begun::Passed(Request::from_parts(head, body), pass),
        }
    }

    /// The answer to a request that passed the guard, and the route that it is counted under.
    async fn passed(
        &self,
        request: Request<Incoming>,
        pass: Pass,
        let_go: DisconnectTrigger,
        bytes: &ConnectionBytes,
    ) -> (ServiceResponse, RouteIndex) {
        let (answer, route) = if is_list(request.method(), request.uri().path()) {
            // Boxed, because it is large and other requests do not need the space.
            let uri = request.uri();
            let head_only = request.method() == Method::HEAD;
            let list = Box::pin(tools::list(
                &self.shared,
                uri.query(),
                request.headers(),
                bytes.answers(),
                head_only,
            ));
            (into_full_body(list.await), self.counters.list)
        } else {
            self.answer_by_router(request, let_go, bytes).await
        };
        (self.add_cors_headers(pass, answer), route)
    }

    /// The answer of the router.
    async fn answer_by_router(
        &self,
        mut request: Request<Incoming>,
        let_go: DisconnectTrigger,
        bytes: &ConnectionBytes,
    ) -> (ServiceResponse, RouteIndex) {
        let route = field::Empty;
        let status = field::Empty;
        let span = tracing::debug_span!("request", method = %request.method(), route, status);
        self.body_limit.apply(&mut request);
        request.extensions_mut().insert(let_go);
        request.extensions_mut().insert(bytes.clone());
        let routed = Box::pin(tower::Service::call(&mut self.router.clone(), request));
        let answer = routed
            .instrument(span.clone())
            .await
            .unwrap_or_else(|never: Infallible| match never {});
        let route = self.shared.requests.route(routes::route_of(&answer));
        span.record("route", self.shared.requests.path(route))
            .record("status", answer.status().as_u16());
        (answer.map(Either::Right), route)
    }

    /// Adds the headers that let pages of a configured origin read the answer, and that tell caches
    /// that it differs by origin.
    fn add_cors_headers(&self, pass: Pass, mut answer: ServiceResponse) -> ServiceResponse {
        if self.guard.varies_by_origin() {
            allow_origin(pass.origin, answer.headers_mut());
        }
        answer
    }
}

/// The answer in place of one for whose bytes there is no room. Its own few bytes are not reserved:
/// there is always room to say so.
fn refused(exceeded: BudgetExceeded, bytes: &ConnectionBytes) -> HeldResponse {
    bytes.unreserved(into_full_body(Problem::from(exceeded).into_full_response()))
}

/// The answer to a request whose handler panicked.
fn internal_error(panic: &(dyn Any + Send)) -> ServiceResponse {
    into_full_body(Problem::internal(&panic_text(panic)).into_full_response())
}

fn is_list(method: &Method, path: &str) -> bool {
    path == LIST && matches!(*method, Method::GET | Method::HEAD)
}

fn into_full_body(answer: Response<Full<Bytes>>) -> ServiceResponse {
    answer.map(Either::Left)
}

/// The answer to a GET without its content (RFC 9110 section 9.3.2). hyper does this for HTTP/1
/// only.
fn without_body(mut answer: ServiceResponse) -> ServiceResponse {
    if let Either::Left(body) = answer.body() {
        let length = body.size_hint().exact().unwrap_or_default();
        if answer.status() != StatusCode::NOT_MODIFIED {
            answer
                .headers_mut()
                .insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        *answer.body_mut() = Either::Left(Full::default());
    }
    answer
}

/// The answer to a preflight request: a configured origin may send all methods and headers that the
/// routes accept.
fn preflight_answer() -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE"),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, if-none-match, last-event-id"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    answer
}

fn allow_origin(origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from(ORIGIN));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(
            "callsheet-awaiting, callsheet-deferred, callsheet-left-out, callsheet-notes, callsheet-revision, callsheet-selection, callsheet-tokens, \
             callsheet-tools, etag",
        );
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}
