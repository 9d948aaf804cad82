//! The thin way in: the guard for every request, and the prepared routes without the router.
//!
//! The usual middleware halves the requests per second, so `GET` and `HEAD` of the list and of single tools, and calls of tools, are answered
//! here, in a bare hyper service. Everything else goes on to the router. Both ways call the same handlers and give the same answers.
//! Rights are not checked here, because every caller has those of these routes; a test in
//! `server/auth/` holds the table to that.

use std::any::Any;
use std::convert::Infallible;
use std::future::ready;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Either as EitherFuture;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_LENGTH, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Body, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use tokio::time::Instant;
use tracing::{Instrument as _, field};

use super::error::Problem;
use super::events::LetGo;
use super::guard::{Guard, Pass};
use super::{App, calls, routes, tools};
use crate::metrics::Requests;
use crate::metrics::requests::{MethodPlace, RoutePlace};
use crate::runtime::tasks::panic_text;

/// Where the prepared routes live.
const TOOLS: &str = "/api/v1/tools";
/// The route of single tools, as it stands in the table.
const TOOL: &str = "/api/v1/tools/{*name}";
/// Where calls go.
const CALL: &str = "/api/v1/tools/execute";

/// A body that is at hand, or one of the router's.
type AnswerBody = Either<Full<Bytes>, axum::body::Body>;
type Answer = Response<AnswerBody>;

/// Answers requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Front(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    guard: Guard,
    shared: App,
    router: Router,
    max_body: usize,
    places: Places,
}

/// Where the requests are counted that need no router.
#[derive(Debug)]
struct Places {
    list: RoutePlace,
    tool: RoutePlace,
    call: RoutePlace,
    refused: RoutePlace,
    preflight: RoutePlace,
    slip: RoutePlace,
}

/// What there is to count about a request before it is answered.
#[derive(Debug, Clone, Copy)]
struct Begin {
    at: Instant,
    method: MethodPlace,
    head_only: bool,
}

/// What needs no router.
#[derive(Debug, PartialEq, Eq)]
enum Thin<'a> {
    List,
    /// One tool, by the rest of the path as written.
    Tool(&'a str),
    /// A call of a tool.
    Call,
}

impl Front {
    /// The front before the router of all routes, whose bodies are at most `max_body` bytes.
    pub(super) fn new(guard: Guard, shared: App, max_body: usize) -> Self {
        let router = routes::router(Arc::clone(&shared), max_body);
        let place = |route| shared.requests.route(route);
        let places = Places {
            list: place(TOOLS),
            tool: place(TOOL),
            call: place(CALL),
            refused: place(routes::REFUSED),
            preflight: place(routes::PREFLIGHT),
            slip: place(routes::UNMATCHED),
        };
        Self(Arc::new(Inner { guard, shared, router, max_body, places }))
    }

    /// The service of one connection, which came to the address `local` and is ended by `let_go`.
    pub(super) fn connection(
        &self,
        local: IpAddr,
        let_go: LetGo,
    ) -> impl Service<Request<Incoming>, Response = Answer, Error = Infallible, Future: Send> + use<> {
        let inner = Arc::clone(&self.0);
        service_fn(move |request: Request<Incoming>| {
            let noted = inner.note(request.method());
            // One request that hits a bug of ours costs that request, not the others of its connection. What is shared is immutable or
            // guards itself, so there is no half-changed state to see.
            let begun = catch_unwind(AssertUnwindSafe(|| inner.begin(local, request)));
            match begun {
                Ok(Begun::Answered(answer, route)) => {
                    EitherFuture::Left(ready(Ok(inner.finished(answer, route, noted))))
                }
                Ok(Begun::Passed(passed)) => {
                    let (inner, let_go) = (Arc::clone(&inner), let_go.clone());
                    // In a box: hyper moves the future of each request, and this one is many times that of an answer at hand.
                    EitherFuture::Right(Box::pin(async move {
                        let answered = AssertUnwindSafe(inner.go_on(passed, let_go)).catch_unwind().await;
                        let (answer, route) = answered.unwrap_or_else(|panic| (slip(&*panic), inner.places.slip));
                        Ok(inner.finished(answer, route, noted))
                    }))
                }
                Err(panic) => EitherFuture::Left(ready(Ok(inner.finished(slip(&*panic), inner.places.slip, noted)))),
            }
        })
    }
}

/// What came of a request before anything had to be waited for.
enum Begun {
    /// Its answer, and where that is counted.
    Answered(Answer, RoutePlace),
    /// It may pass the guard, and needs time.
    Passed(Box<Passed>),
}

/// A request that the guard let pass.
struct Passed {
    head: Parts,
    body: Incoming,
    pass: Pass,
}

impl Inner {
    /// Judges the request, and answers what is at hand.
    fn begin(&self, local: IpAddr, request: Request<Incoming>) -> Begun {
        let has_body = !request.body().is_end_stream();
        let (head, body) = request.into_parts();
        let pass = match self.guard.check(&head, local, has_body) {
            Ok(pass) => pass,
            Err(problem) => return Begun::Answered(short(problem.into_answer()), self.places.refused),
        };
        let preflight = head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let at_hand = if preflight && pass.origin.is_some() {
            Some((preflight_answer(), self.places.preflight))
        } else {
            match thin(&head.method, head.uri.path()) {
                Some(Thin::List) => tools::list_again(&self.shared, head.uri.query(), &head.headers)
                    .map(|answer| (answer, self.places.list)),
                Some(Thin::Tool(rest)) => {
                    Some((tools::one(&self.shared, rest, head.uri.query(), &head.headers), self.places.tool))
                }
                Some(Thin::Call) | None => None,
            }
        };
        match at_hand {
            Some((answer, route)) => Begun::Answered(self.shared_with(pass, short(answer)), route),
            None => Begun::Passed(Box::new(Passed { head, body, pass })),
        }
    }

    /// Answers what has to be made or is the router's, and tells where that is counted.
    async fn go_on(&self, passed: Box<Passed>, let_go: LetGo) -> (Answer, RoutePlace) {
        let (route, status) = (field::Empty, field::Empty);
        let span = tracing::debug_span!("request", method = %passed.head.method, route, status);
        let (answer, route) = self.route(passed, let_go).instrument(span.clone()).await;
        span.record("route", self.shared.requests.path(route)).record("status", answer.status().as_u16());
        (answer, route)
    }

    /// Each way is in a box of its own: together they would be moved with every request, whichever it takes. So is the request.
    async fn route(&self, mut passed: Box<Passed>, let_go: LetGo) -> (Answer, RoutePlace) {
        let head = &passed.head;
        let (answer, route) = match thin(&head.method, head.uri.path()) {
            Some(Thin::List) => {
                (short(Box::pin(tools::list(&self.shared, head.uri.query(), &head.headers)).await), self.places.list)
            }
            Some(Thin::Call) => {
                let Passed { head, body, pass } = *passed;
                let called = Box::pin(calls::execute_thin(&self.shared, &head, body, self.max_body));
                drop(head);
                return (self.shared_with(pass, short(called.await)), self.places.call);
            }
            Some(Thin::Tool(_)) | None => {
                passed.head.extensions.insert(let_go);
                let request = Request::from_parts(passed.head, passed.body);
                let routed = Box::pin(tower::Service::call(&mut self.router.clone(), request)).await;
                let answer = routed.unwrap_or_else(|never: Infallible| match never {});
                let route = self.shared.requests.route(routes::answered_by(&answer));
                (answer.map(Either::Right), route)
            }
        };
        (self.shared_with(passed.pass, answer), route)
    }

    /// Notes what is counted of a request when it is answered.
    fn note(&self, method: &Method) -> Begin {
        Begin { at: self.shared.clock.now(), method: Requests::method(method), head_only: method == Method::HEAD }
    }

    /// The answer as it is sent. It is counted here, whoever made it.
    fn finished(&self, answer: Answer, route: RoutePlace, begin: Begin) -> Answer {
        let took = self.shared.clock.now() - begin.at;
        self.shared.requests.answered(route, begin.method, answer.status(), took);
        if begin.head_only { without_body(answer) } else { answer }
    }

    /// Lets pages of a configured origin read the answer, and tells caches that it differs by origin.
    fn shared_with(&self, pass: Pass, mut answer: Answer) -> Answer {
        if self.guard.varies_by_origin() {
            share_with(pass.origin, answer.headers_mut());
        }
        answer
    }
}

/// The answer to a request that hit a bug of ours.
fn slip(panic: &(dyn Any + Send)) -> Answer {
    short(Problem::internal(&panic_text(panic)).into_answer())
}

fn thin<'a>(method: &Method, path: &'a str) -> Option<Thin<'a>> {
    let rest = path.strip_prefix(TOOLS)?;
    if *method == Method::POST {
        return (path == CALL).then_some(Thin::Call);
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    if rest.is_empty() {
        return Some(Thin::List);
    }
    let rest = rest.strip_prefix('/').filter(|rest| !rest.is_empty())?;
    let routed = routes::RESERVED.contains(&rest) || rest.ends_with("/explain");
    (!routed).then_some(Thin::Tool(rest))
}

fn short(answer: Response<Full<Bytes>>) -> Answer {
    answer.map(Either::Left)
}

/// What a GET would have been answered, without its content (RFC 9110 section 9.3.2). hyper does this for HTTP/1 only.
fn without_body(mut answer: Answer) -> Answer {
    if let Either::Left(body) = answer.body() {
        let length = body.size_hint().exact().unwrap_or_default();
        if answer.status() != StatusCode::NOT_MODIFIED {
            answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        *answer.body_mut() = Either::Left(Full::default());
    }
    answer
}

/// What a configured origin may send: everything that our routes take.
fn preflight_answer() -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, if-none-match, last-event-id"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    answer
}

fn share_with(origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from(ORIGIN));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(
            "callsheet-deferred, callsheet-left-out, callsheet-notes, callsheet-revision, callsheet-selection, callsheet-tokens, \
             callsheet-tools, etag",
        );
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_the_list_and_of_tools_need_no_router() {
        let get = |path| thin(&Method::GET, path);
        assert_eq!(get("/api/v1/tools"), Some(Thin::List));
        assert_eq!(thin(&Method::HEAD, "/api/v1/tools"), Some(Thin::List));
        assert_eq!(get("/api/v1/tools/read"), Some(Thin::Tool("read")));
        assert_eq!(get("/api/v1/tools/files/read"), Some(Thin::Tool("files/read")));
        assert_eq!(get("/api/v1/tools/config/read"), Some(Thin::Tool("config/read")));
        assert_eq!(get("/api/v1/tools/files%2Fexplain"), Some(Thin::Tool("files%2Fexplain")));
        assert_eq!(thin(&Method::POST, CALL), Some(Thin::Call));
    }

    #[test]
    fn everything_else_does() {
        for path in [
            "/",
            "/api/v1/tools/",
            "/api/v1/toolset",
            "/api/v1/tools/set",
            "/api/v1/tools/scenarios",
            "/api/v1/tools/config",
            "/api/v1/tools/config/approval",
            "/api/v1/tools/sync",
            "/api/v1/tools/read/explain",
        ] {
            assert_eq!(thin(&Method::GET, path), None, "{path}");
        }
        assert_eq!(thin(&Method::POST, "/api/v1/tools"), None);
        assert_eq!(thin(&Method::POST, "/api/v1/tools/execute/"), None);
        assert_eq!(thin(&Method::GET, "/api/v1/tools/execute"), None);
    }
}
