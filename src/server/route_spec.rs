//! One row of the table of routes: a path with its operations, and the handlers made from it.

use axum::extract::DefaultBodyLimit;
use axum::routing::MethodRouter;

use crate::server::SharedState;
use crate::server::auth::ConfigWatch;
use crate::server::http::guard::BodyRule;
use crate::server::http::params::Param;
use crate::server::openapi::OperationSpec;
use crate::server::route_layer::require_right;

/// One path and its operations.
pub(super) struct RouteSpec {
    /// In the notation of the router: `{name}` is one segment, `{*name}` one or more.
    pub(super) path: &'static str,
    /// The parameters in the path.
    pub(super) path_params: &'static [Param],
    /// The operations of its methods. A test ensures that the handlers accept the same methods.
    pub(super) operations: &'static [OperationSpec],
}

/// A row of the table.
pub(super) const fn route(
    path: &'static str,
    places: &'static [Param],
    operations: &'static [OperationSpec],
) -> RouteSpec {
    RouteSpec {
        path,
        path_params: places,
        operations,
    }
}

impl RouteSpec {
    /// The methods, as in the `Allow` header.
    pub(super) fn methods(&self) -> String {
        let own = self
            .operations
            .iter()
            .filter(|operation| operation.path_suffix.is_empty());
        let methods: Vec<&str> = own
            .flat_map(|operation| {
                [
                    operation.verb.as_str(),
                    if operation.is_safe() { "HEAD" } else { "" },
                ]
            })
            .filter(|method| !method.is_empty())
            .collect();
        methods.join(",")
    }

    /// The summaries of its operations, for people.
    pub(super) fn answers(&self) -> String {
        let answers: Vec<String> = self.operations.iter().map(OperationSpec::answers).collect();
        answers.join("; ")
    }

    /// What the guard has to know of its bodies, where they differ from those of other routes. The
    /// guard compares whole paths, so such a route has no parameters in its path.
    pub(super) fn body_rules(&self) -> impl Iterator<Item = BodyRule> {
        let own = |operation: &OperationSpec| Some((operation.body?.media, operation.body_max?));
        let bodies = self.operations.iter().filter_map(own);
        bodies.map(|(media, max)| BodyRule {
            path: self.path,
            media,
            max,
        })
    }

    /// The handlers of its methods, each with the check of its right and its own limit of bodies.
    pub(super) fn handler(&self, config: &ConfigWatch) -> MethodRouter<SharedState> {
        let handlers = self
            .operations
            .iter()
            .filter_map(|operation| Some((operation.handler?, operation)));
        handlers.fold(MethodRouter::new(), |all, (handler, operation)| {
            let handler = require_right(handler(), operation.right, config);
            all.merge(match operation.body_max {
                Some(max) => handler.layer(DefaultBodyLimit::max(max)),
                None => handler,
            })
        })
    }
}
