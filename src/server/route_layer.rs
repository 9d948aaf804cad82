//! What stands in front of every handler: it refuses a caller without the right before the handler
//! runs or the body is read, gives the handler the caller's [`Access`], and names the route in the
//! answer, for the counters.
//!
//! It is one service without a box of its own. The router makes a box of each layer, and copies all
//! that is below it with every request: two layers made of functions took a fifth of what a call
//! costs here.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, Route};
use futures_util::future::{Either, Ready, ready as ready_future};
use tower::{Layer, Service};

use crate::server::auth::{Access, ConfigWatch, Right};

/// Puts [`CheckedRoute`] in front of a handler.
#[derive(Debug, Clone)]
struct CheckLayer {
    right: Right,
    config: ConfigWatch,
}

/// A handler that only callers with this right reach.
#[derive(Debug, Clone)]
struct CheckedRoute<S> {
    right: Right,
    config: ConfigWatch,
    handler: S,
}

/// The answer of a route, which gets the name of the route when it is there.
struct NamedAnswer<F> {
    answer: F,
    route: Option<MatchedPath>,
}

/// Wraps a handler so that only callers with this right reach it.
pub(super) fn require_right<S>(
    handler: MethodRouter<S>,
    right: Right,
    config: &ConfigWatch,
) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    handler.route_layer(CheckLayer {
        right,
        config: config.clone(),
    })
}

/// Notes in an answer which route it came from.
pub(super) fn name_route(answer: &mut Response, route: Option<MatchedPath>) {
    if let Some(route) = route {
        answer.extensions_mut().insert(route);
    }
}

impl Layer<Route> for CheckLayer {
    type Service = CheckedRoute<Route>;

    fn layer(&self, handler: Route) -> CheckedRoute<Route> {
        CheckedRoute {
            right: self.right,
            config: self.config.clone(),
            handler,
        }
    }
}

impl<S> Service<Request> for CheckedRoute<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Unpin,
{
    type Response = Response;
    type Error = Infallible;
    type Future = NamedAnswer<Either<Ready<Result<Response, Infallible>>, S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.handler.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let answer = match Access::judge(&self.config, request.headers(), self.right) {
            Ok(access) => {
                request.extensions_mut().insert(access);
                Either::Right(self.handler.call(request))
            }
            Err(problem) => Either::Left(ready_future(Ok(problem.into_response()))),
        };
        NamedAnswer { answer, route }
    }
}

impl<F> Future for NamedAnswer<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin,
{
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(mut answer) = ready!(Pin::new(&mut self.answer).poll(context));
        name_route(&mut answer, self.route.take());
        Poll::Ready(Ok(answer))
    }
}
