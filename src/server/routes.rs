//! The table of routes, and the router made from it. To add a route, write a function in `server/`
//! and an entry here with the right that it needs. `/openapi.json` and `/docs` describe the route
//! from that entry; only its examples are elsewhere (`openapi/examples.json`).

use axum::Router;
use axum::extract::{Extension, MatchedPath, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::{HeaderMap, Method, Uri};
use serde_json::{Map, Value};

use crate::calls::track::CancelError;
use crate::metrics::Requests;
use crate::server::api::call_answers::{Accepted, CallAnswer, CallState};
use crate::server::api::call_body::CallBody;
use crate::server::api::call_event_json::ActiveCallJson;
use crate::server::api::shared_json::HealthJson;
use crate::server::api::{
    active_calls, approvals, call_examples, call_json, calls, configured, definitions, explain,
    findings, health, history, log, login, metrics, operations, pins, preferences, profiles,
    recent_calls, scenarios, search, shared_json, state, tools, turn_examples, turn_json, turns,
};
use crate::server::auth::Right::{Approve, Call, Operate, Prefer, Read};
use crate::server::compat::{agent_inbox, bundles, inbox_json, modules};
use crate::server::events::event_json::SseEventJson;
use crate::server::events::socket;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::guard::BodyRule;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::params;
use crate::server::http::query::ListQuery;
use crate::server::openapi as api;
use crate::server::openapi::Tag::{
    Calls, Daemon, Events, Inbox, Modules, Preferences, Scenarios, Tools,
};
use crate::server::openapi::Verb::{Delete, Get, Post, Put};
use crate::server::openapi::list_schemas::{AnyTool, AnyToolList};
use crate::server::openapi::{
    ResponseSpec, json, operation, refusal, streamed, sub_operation, text,
};
use crate::server::route_layer::name_route;
use crate::server::route_refusals::{
    ALREADY_DECIDED, AMBIGUOUS_NAME, CANNOT_POLL, NO_APPROVAL, NO_CALL, NO_OPERATION, NO_TOOL,
    NOT_ALLOWED, NOT_FORGETTABLE, TOO_MANY_PREFERENCES, TOO_MANY_STREAMS, UNKNOWN_SCENARIO,
};
use crate::server::route_spec::{RouteSpec, route};
use crate::server::{SharedState, dashboard, events, json_rpc, mcp};

/// The label in metrics of requests that the guard refused.
pub(super) const REFUSED: &str = "refused";
/// The label in metrics of CORS preflight requests.
pub(super) const PREFLIGHT: &str = "preflight";
/// The label in metrics of requests that match no route.
pub(super) const UNMATCHED: &str = "unmatched";

/// All routes except the pages of the dashboard. Each line is one property of an operation.
#[rustfmt::skip]
pub(super) const ROUTES: &[RouteSpec] = &[
    route("/", &[], &[
        operation(Get, Read, Daemon, "listRoutes", "all routes", json::<health::Index>("every route"), || get(root))
            .about("Clients that accept `text/html`, such as browsers, get the dashboard."),
    ]),
    route("/healthz", &[], &[operation(Get, Read, Daemon, "isAlive", "whether the daemon lives", json::<health::Live>("it does"), || get(health::live))]),
    route("/readyz", &[], &[
        operation(Get, Read, Daemon, "isReady", "whether every configured scenario was polled, else 503", json::<health::Ready<'_>>("it was"), || get(health::ready))
            .also(&[json::<health::Ready<'_>>("some are still awaited").status(503)]),
    ]),
    route("/metrics", &[], &[
        operation(Get, Read, Daemon, "scrapeMetrics", "what was counted, for Prometheus", text("application/openmetrics-text; version=1.0.0; charset=utf-8", "the metrics"), || get(metrics::scrape))
            .about("With `Accept: text/plain` the answer has the older format of Prometheus."),
    ]),
    route("/openapi.json", &[], &[
        operation(Get, Read, Daemon, "describeApi", "this description", json::<Map<String, Value>>("an OpenAPI 3.1 document"), || get(api::serve::serve))
            .about("`/docs` shows it as a page.")
            .revalidates(),
    ]),
    route("/api/v1/tools", &[], &[
        operation(Get, Read, Tools, "listTools", "the list of tools", json::<AnyToolList<'_>>("the tools in the requested format").headers(tools::HEADERS), || get(tools::list_route))
            .about("Without parameters every tool that is published and enabled, as a manifest of the Tool Discovery Protocol. A filter that matches no tool gives an empty list.")
            .query(&ListQuery::KNOWN)
            .revalidates(),
    ]),
    route("/api/v1/tools/search", &[], &[
        operation(Get, Read, Tools, "searchTools", "the tools that fit a text best, with why", json::<search::SearchAnswer<'_>>("the tools, the best first"), || get(search::search))
            .query(search::PARAMS)
            .revalidates(),
    ]),
    route("/api/v1/tools/{*name}", &[params::TOOL_NAME], &[
        operation(Get, Read, Tools, "getTool", "one tool", json::<AnyTool>("the tool in the requested format").headers(tools::ONE_HEADERS), || get(tools::one_route))
            .about("A disabled tool is shown as such in the native format; formats for LLMs give only out what they list.")
            .query(tools::ONE)
            .refuses(&[NO_TOOL, AMBIGUOUS_NAME])
            .revalidates(),
        sub_operation("/explain", Read, Tools, "explainTool", "why a tool is or is not in the list", json::<explain::ToolExplanation<'_>>("every decision with its source"))
            .about("Tools that are not published are explained, too.")
            .query(tools::EXPLAIN)
            .refuses(&[NO_TOOL, AMBIGUOUS_NAME]),
        sub_operation("/history", Read, Tools, "toolHistory", "how the definition of a tool changed", json::<history::DefinitionHistory<'_>>("the changes that are kept, the latest first"))
            .about("The last 20 changes of a tool are kept, also over restarts; a tool that is not offered now is found by `scenario/tool`.")
            .query(tools::EXPLAIN)
            .refuses(&[NO_TOOL, AMBIGUOUS_NAME]),
    ]),
    route("/api/v1/scenarios", &[], &[
        operation(Get, Read, Scenarios, "listScenarios", "the health of every scenario", json::<scenarios::ScenarioList<'_>>("the scenarios, in order of their names"), || get(scenarios::list))
            .query(scenarios::STATES),
        operation(Post, Operate, Scenarios, "addScenario", "adds one at an address to the file of the configuration", json::<configured::ConfiguredJson>("the file is written").status(201).with_example(configured::added), || post(configured::add))
            .about("The daemon follows its file within a second. A command cannot be added over HTTP.").body_like::<configured::NewScenarioBody>(configured::new_scenario).refuses(&[configured::NOT_WRITTEN]),
    ]),
    route("/api/v1/scenarios/{name}", &[params::SCENARIO_NAME], &[
        operation(Get, Read, Scenarios, "getScenario", "the health of one scenario with its findings", json::<scenarios::ExaminedScenario<'_>>("the scenario"), || get(scenarios::show))
            .refuses(&[UNKNOWN_SCENARIO]),
        operation(Delete, Operate, Scenarios, "removeScenario", "takes one out of the file of the configuration", json::<configured::ConfiguredJson>("the file is written").with_example(configured::removed), || delete(configured::remove))
            .about("The daemon follows its file within a second; `forgetScenario` then deletes the rest.").refuses(&[configured::NO_ENTRY, configured::NOT_WRITTEN]),
    ]),
    route("/api/v1/scenarios/{name}/refresh", &[params::SCENARIO_NAME], &[
        operation(Post, Call, Scenarios, "refreshScenario", "polls it now", json::<HealthJson<'_>>("its health after that, also when the poll failed"), || post(scenarios::refresh))
            .refuses(&[UNKNOWN_SCENARIO, CANNOT_POLL]),
    ]),
    route("/api/v1/scenarios/{name}/trust", &[params::SCENARIO_NAME], &[
        operation(Post, Operate, Scenarios, "trustScenario", "trusts its address", json::<HealthJson<'_>>("its health after that"), || post(scenarios::trust))
            .about("Its address may be used although its source is untrusted. Lifts a block.")
            .query(scenarios::ORIGIN)
            .refuses(&[UNKNOWN_SCENARIO, NOT_ALLOWED])
            .stores(),
        operation(Delete, Operate, Scenarios, "untrustScenario", "takes the trust back", json::<HealthJson<'_>>("its health after that"), || delete(scenarios::untrust))
            .refuses(&[UNKNOWN_SCENARIO, NOT_ALLOWED])
            .stores(),
    ]),
    route("/api/v1/scenarios/{name}/block", &[params::SCENARIO_NAME], &[
        operation(Post, Operate, Scenarios, "blockScenario", "neither polls nor publishes it", json::<HealthJson<'_>>("its health after that"), || post(scenarios::block))
            .refuses(&[UNKNOWN_SCENARIO])
            .stores(),
        operation(Delete, Operate, Scenarios, "unblockScenario", "takes the block back", json::<HealthJson<'_>>("its health after that"), || delete(scenarios::unblock))
            .about("Has no effect if the scenario is not blocked: its trust stays as it is.")
            .refuses(&[UNKNOWN_SCENARIO])
            .stores(),
    ]),
    route("/api/v1/scenarios/{name}/forget", &[params::SCENARIO_NAME], &[
        operation(Post, Operate, Scenarios, "forgetScenario", "forgets it when it is removed or down", json::<scenarios::ForgottenJson<'_>>("what came of it"), || post(scenarios::forget))
            .about("Ends its health, the names of its tools, its stored manifest, and the trust in one that is removed. One that a source still names comes back at its next good answer.")
            .refuses(&[UNKNOWN_SCENARIO, NOT_FORGETTABLE])
            .stores(),
    ]),
    route("/api/v1/pins", &[], &[
        operation(Get, Read, Scenarios, "listPins", "how scenarios differ from what was accepted of them", json::<pins::PinsList<'_>>("the scenarios whose definitions are compared, in order of their names"), || get(pins::list))
            .about("With `pins` set to `hold`, what differs is neither listed nor called until it is accepted.")
            .query(pins::SCENARIOS)
            .refuses(&[UNKNOWN_SCENARIO]),
    ]),
    route("/api/v1/pins/{name}/accept", &[params::SCENARIO_NAME], &[
        operation(Post, Operate, Scenarios, "acceptPins", "accepts definitions in the versions that were shown", json::<pins::ScenarioPins<'_>>("what still differs"), || post(pins::accept))
            .body::<pins::AcceptBody>()
            .refuses(&[UNKNOWN_SCENARIO, pins::NOT_ACCEPTED])
            .stores(),
    ]),
    route("/api/v1/scenarios/{name}/login", &[params::SCENARIO_NAME], &[
        operation(Get, Read, Scenarios, "getLogin", "the state of a person's login for it", json::<login::LoginJson>("the login; nothing of it is secret").with_example(login::logged_in), || get(login::show)).refuses(&[UNKNOWN_SCENARIO, login::NO_LOGIN]),
        operation(Post, Operate, Scenarios, "beginLogin", "begins a login for it", json::<login::StartedLoginJson>("what the person opens in a browser").with_example(login::started), || post(login::begin))
            .about("The browser comes back to the given address of loopback, and `finishLogin` gets what it brings. A login that was begun before is replaced. It has to be finished within 10 minutes.").body_like::<login::LoginStartBody>(login::redirect).refuses(&[UNKNOWN_SCENARIO, login::NO_LOGIN, login::UNUSABLE]),
        operation(Delete, Operate, Scenarios, "logout", "forgets the login for it", json::<login::LogoutJson>("whether there was one, and whether its tokens are revoked").with_example(login::logged_out), || delete(login::logout)).refuses(&[UNKNOWN_SCENARIO, login::NO_LOGIN]).stores(),
    ]),
    route("/api/v1/scenarios/{name}/login/finish", &[params::SCENARIO_NAME], &[
        operation(Post, Operate, Scenarios, "finishLogin", "finishes a login, and polls the scenario", json::<login::LoginJson>("the login as it is now").with_example(login::logged_in), || post(login::finish)).body_like::<login::LoginFinishBody>(login::came_back).refuses(&[UNKNOWN_SCENARIO, login::NO_LOGIN, login::UNUSABLE]).stores(),
    ]),
    route("/api/v1/preferences", &[], &[
        operation(Get, Read, Preferences, "listPreferences", "preferences by scope and target", json::<preferences::Preferences>("the preferences, in order"), || get(preferences::list)).query(preferences::FILTERS),
        operation(Put, Prefer, Preferences, "setPreference", "changes the settings that the body names", json::<preferences::ChangedPreference>("the preference as it is now, durable and published"), || put(preferences::change))
            .about("The tool or scenario need not exist now.")
            .body::<preferences::ChangeBody>()
            .refuses(&[TOO_MANY_PREFERENCES])
            .stores(),
        operation(Delete, Prefer, Preferences, "resetPreference", "makes settings inherit again", json::<preferences::ChangedPreference>("the preference as it is now"), || delete(preferences::reset))
            .query(preferences::RESET)
            .stores(),
    ]),
    route("/api/v1/preferences/reset", &[], &[
        operation(Post, Operate, Preferences, "resetPreferences", "makes all preferences of scopes inherit again", json::<preferences::ResetCount>("how many there were"), || post(preferences::reset_many))
            .about("Those of the configuration file stay.")
            .body::<preferences::ResetManyBody>()
            .stores(),
    ]),
    route("/api/v1/profiles", &[], &[
        operation(Get, Read, Preferences, "listProfiles", "the profiles with their bounds", json::<profiles::ProfileList>("those of the configuration and of the store, in order of their names"), || get(profiles::list)),
    ]),
    route("/api/v1/profiles/{name}", &[profiles::NAME], &[
        operation(Put, Operate, Preferences, "putProfile", "adds a profile to the store, or replaces it", json::<profiles::ChangedProfile>("the profile, durable and in use"), || put(profiles::put))
            .about("A profile of the configuration is changed there. As soon as there is one profile, a client that names another one sees and calls no tools.")
            .body::<profiles::ProfileBody>()
            .refuses(&[profiles::CONFIGURED])
            .stores(),
        operation(Delete, Operate, Preferences, "removeProfile", "takes a profile of the store away", json::<profiles::RemovedProfile>("what that means for its callers"), || delete(profiles::remove))
            .refuses(&[profiles::NOT_STORED, profiles::CONFIGURED])
            .stores(),
    ]),
    route("/api/v1/definitions", &[], &[
        operation(Get, Read, Tools, "listDefinitions", "the tools that are defined by their schemas", json::<definitions::DefinitionList>("those of the configuration, of the store and of the embedding program, in order of their names"), || get(definitions::list)),
    ]),
    route("/api/v1/definitions/{name}", &[definitions::NAME], &[
        operation(Put, Operate, Tools, "putDefinition", "registers a definition, or replaces it", json::<definitions::RegisteredDefinition>("the definition, durable and listed"), || put(definitions::put))
            .about("It is judged like an entry of `[[definitions]]`. One of the configuration is changed there.")
            .body::<definitions::DefinitionBody>()
            .refuses(&[profiles::CONFIGURED])
            .stores(),
        operation(Delete, Operate, Tools, "removeDefinition", "takes a registered definition away", json::<definitions::RemovedDefinition>("what that means"), || delete(definitions::remove))
            .refuses(&[profiles::NOT_STORED, profiles::CONFIGURED])
            .stores(),
    ]),
    route("/api/v1/findings", &[], &[
        operation(Get, Read, Daemon, "listFindings", "every open finding", json::<findings::Findings<'_>>("what was left out, renamed, hidden or kept old, and why"), || get(findings::list)).query(findings::FILTERS),
    ]),
    route("/api/v1/state/accept-loss", &[], &[
        operation(Post, Operate, Daemon, "acceptStateLoss", "accepts that stored decisions were lost", json::<state::AcceptedLoss>("what was lost, if anything was"), || post(state::accept_loss))
            .about("After damage to the database no tool is called (503, `state_lost`), because what disabled a tool or required approval may be lost. This lifts that.")
            .stores(),
    ]),
    route("/api/v1/state/forget-unreachable", &[], &[
        operation(Post, Operate, Daemon, "forgetUnreachable", "forgets every scenario that is removed or down", json::<scenarios::ForgottenMany>("the scenarios"), || post(scenarios::forget_many))
            .about("With `preview` they are only named. One that a source still names comes back at its next good answer.")
            .body::<scenarios::ForgetManyBody>()
            .stores(),
    ]),
    route("/api/v1/events", &[], &[
        operation(Get, Read, Events, "followEvents", "changes as they happen, as server-sent events", streamed::<SseEventJson>("a stream that ends when the daemon stops or the client does not keep up"), || get(events::follow))
            .about("The first event is a `snapshot`, unless the cursor is known: then nothing was lost. `data` of each is that of the schema `Event`, `event` its kind, `id` its cursor. A comment shows now and then that the stream lives; an event `end` says why it ends.")
            .query(&events::PARAMS)
            .with_headers(events::RESUME_HEADERS)
            .refuses(&[TOO_MANY_STREAMS]),
    ]),
    route("/api/v1/ws", &[], &[
        operation(Get, Read, Events, "followEventsBySocket", "changes as they happen, over a WebSocket", ResponseSpec { status: 101, about: "the socket is open", content: None, headers: &[] }, || get(socket::follow))
            .about("Each message is one text frame that holds an `Event`. The socket only sends: it is closed with 1008 when the client sends a message, 1013 when it does not keep up, 1001 when the daemon stops.")
            .query(&events::PARAMS)
            .with_headers(events::RESUME_HEADERS)
            .refuses(&[refusal(426, "This is only answered over a WebSocket (RFC 6455)."), TOO_MANY_STREAMS]),
    ]),
    route("/api/v1/tools/execute", &[], &[
        operation(Post, Call, Calls, "callTool", "calls a tool and answers what it gave back", json::<CallAnswer<'_>>("what it gave back; that the tool failed is an answer, too"), || post(calls::execute))
            .about("By the name in the client's list. A call that was not made, or that failed, is refused with `success`, `error` and `code`.")
            .body::<CallBody<'_>>()
            .also(&[json::<Accepted<'_>>("it goes on, its tool needs input, or a human has to say yes first").status(202)])
            .refuses(calls::REFUSALS),
    ]),
    route("/api/v1/approvals", &[], &[
        operation(Get, Read, Calls, "listApprovals", "calls that need approval", json::<approvals::ApprovalList<'_>>("the calls, in the order in which they were requested"), || get(approvals::list)).query(approvals::FILTERS),
    ]),
    route("/api/v1/approvals/{id}", &[params::APPROVAL_ID], &[
        operation(Get, Read, Calls, "getApproval", "one of them, with what came of it", json::<call_json::ApprovalJson<'_>>("everything about it"), || get(approvals::show)).refuses(&[NO_APPROVAL]),
    ]),
    route("/api/v1/approvals/{id}/approve", &[params::APPROVAL_ID], &[
        operation(Post, Approve, Calls, "approveCall", "approves it, and runs exactly this call once", json::<call_json::ApprovalJson<'_>>("what came of it"), || post(approvals::approve))
            .body::<approvals::ApproveBody>()
            .also(&[json::<call_json::ApprovalJson<'_>>("it is under way").status(202)])
            .refuses(&[NO_APPROVAL, ALREADY_DECIDED])
            .stores(),
    ]),
    route("/api/v1/approvals/{id}/reject", &[params::APPROVAL_ID], &[
        operation(Post, Approve, Calls, "rejectCall", "rejects it", json::<call_json::ApprovalJson<'_>>("the call, which is never run"), || post(approvals::reject))
            .body::<approvals::RejectBody>()
            .refuses(&[NO_APPROVAL, ALREADY_DECIDED])
            .stores(),
    ]),
    route("/api/v1/calls", &[], &[operation(Get, Read, Calls, "listCalls", "the latest calls that are over", json::<recent_calls::RecentCallList<'_>>("the calls without arguments and results, in the order in which they ended"), || get(recent_calls::list)).query(recent_calls::FILTERS)]),
    route("/api/v1/log", &[], &[operation(Get, Read, Calls, "readLog", "calls that are over, changes of states, ends of programs and starts of callsheet", json::<log::LogJson<'_>>("the lines in the order in which they happened, with arguments and results only where they are kept and the client has the operator's token"), || get(log::list)).query(log::FILTERS)]),
    route("/api/v1/calls/{call_id}", &[params::CALL_ID], &[
        operation(Get, Read, Calls, "getCall", "how far a call is, by the id that its caller gave or got", json::<CallState<'_>>("it is under way, or its answer if it is kept").with_example(call_examples::under_way), || get(active_calls::show))
            .about("Answers of calls that waited for input are kept for a while; other callers got theirs.")
            .also(&[json::<Accepted<'_>>("it is over and goes on elsewhere").status(202).with_example(call_examples::goes_on)])
            .refuses(&[NO_CALL]),
        operation(Delete, Call, Calls, "cancelCall", "cancels a call", json::<ActiveCallJson<'_>>("its scenario is informed").status(202).with_example(call_examples::cancelling), || delete(active_calls::cancel))
            .about("A client that only disconnects does not cancel its call.")
            .refuses(&[NO_CALL, refusal(409, "It is over already.").with_example(active_calls::already_over)]),
    ]),
    route("/api/v1/interactions/{id}", &[params::INTERACTION_ID], &[
        operation(Post, Call, Calls, "giveInput", "gives the input that a tool waits for, and answers as the call does", json::<CallAnswer<'_>>("what the tool gave back").with_example(call_examples::answered), || post(active_calls::give))
            .body_like::<active_calls::InputBody>(call_examples::input)
            .also(&[json::<Accepted<'_>>("it goes on, or its tool needs more input").status(202).with_example(call_examples::needs_input)])
            .refuses(calls::INPUT_REFUSALS),
    ]),
    route("/api/v1/turns", &[], &[
        operation(Post, Call, Calls, "runTurn", "runs the tool calls in a model's response", json::<turn_json::TurnJson<'_>>("the messages with their results, in the vendor's shape").with_example(turn_examples::complete), || post(turns::begin))
            .about("A call that is refused or fails is an answer to the model. Calls of tools that are not callsheet's are named and left out. Event streams have to be joined first.")
            .query(turns::PARAMS)
            .body_like::<turn_json::TurnBody<'_>>(turn_examples::request)
            .also(&[json::<turn_json::TurnJson<'_>>("a call waits for approval or for input").status(202).with_example(turn_examples::waiting)])
            .refuses(turns::REFUSALS)
            .stores(),
    ]),
    route("/api/v1/turns/{id}", &[params::TURN_ID], &[
        operation(Get, Read, Calls, "getTurn", "a turn that was begun", json::<turn_json::TurnJson<'_>>("the messages with its results").with_example(turn_examples::complete), || get(turns::show))
            .query(turns::WAIT)
            .also(&[json::<turn_json::TurnJson<'_>>("a call waits for approval or for input, or is under way").status(202).with_example(turn_examples::waiting)])
            .refuses(&[turns::NO_TURN]),
    ]),
    route("/api/v1/results/{id}", &[params::RESULT_ID], &[
        operation(Get, Read, Calls, "getResult", "the whole result of a call of a turn", json::<turn_json::ResultJson<'_>>("the result, however long").with_example(turn_examples::result), || get(turns::result))
            .refuses(&[turns::NO_RESULT]),
    ]),
    route("/api/v1/operations", &[], &[
        operation(Get, Read, Calls, "listOperations", "what long-running tools do", json::<operations::Operations<'_>>("the operations without their results, in the order in which they were started"), || get(operations::list)).query(operations::FILTERS),
    ]),
    route("/api/v1/operations/{id}", &[params::OPERATION_ID], &[
        operation(Get, Read, Calls, "getOperation", "one of them with its result", json::<call_json::OperationJson<'_>>("everything about it"), || get(operations::show))
            .refuses(&[NO_OPERATION]),
        operation(Delete, Operate, Calls, "cancelOperation", "cancels it", json::<call_json::OperationJson<'_>>("it is cancelled, or no longer followed where its scenario cannot cancel it"), || delete(operations::cancel))
            .also(&[json::<call_json::OperationJson<'_>>("the scenario was requested to cancel it and has not confirmed it").status(202)])
            .refuses(&[
                NO_OPERATION,
                refusal(409, "It is over already."),
                refusal(502, "The scenario did not cancel it; it is followed as before.")
                    .with_example(|| CancelError::Refused("builds/stop_run".into(), "it answered 500".into()).into()),
            ]),
    ]),
    route("/api/v1/tools/set", &[], &[
        operation(Get, Read, Inbox, "getToolSet", "scenarios, tools with their settings, categories", json::<inbox_json::ToolSet<'_>>("every tool, whether enabled or not"), || get(agent_inbox::tool_set)).query(agent_inbox::CHAT),
    ]),
    route("/api/v1/tools/scenarios", &[], &[
        operation(Get, Read, Inbox, "listScenarioStatuses", "which scenarios answer", json::<Vec<inbox_json::ScenarioStatusJson<'_>>>("every known scenario, dead ones too"), || get(agent_inbox::statuses)),
    ]),
    route("/api/v1/tools/config", &[], &[
        operation(Post, Prefer, Inbox, "setToolEnabled", "switches a tool on or off", json::<inbox_json::InboxChangeJson>("what was set"), || post(agent_inbox::set_enabled))
            .body::<agent_inbox::EnabledBody>()
            .refuses(&[TOO_MANY_PREFERENCES])
            .stores(),
        operation(Delete, Prefer, Inbox, "resetTool", "resets whether a tool is enabled and needs approval", json::<inbox_json::InboxChangeJson>("what was reset"), || delete(agent_inbox::reset))
            .query(agent_inbox::RESET)
            .stores(),
    ]),
    route("/api/v1/tools/config/approval", &[], &[
        operation(Post, Prefer, Inbox, "setToolApproval", "sets whether calls of a tool need approval", json::<inbox_json::InboxChangeJson>("what was set"), || post(agent_inbox::set_approval))
            .body::<agent_inbox::ApprovalBody>()
            .refuses(&[TOO_MANY_PREFERENCES])
            .stores(),
    ]),
    route("/api/v1/tools/sync", &[], &[
        operation(Post, Call, Inbox, "syncTools", "polls every scenario now", json::<inbox_json::Synced>("what came of it"), || post(agent_inbox::sync)),
    ]),
    route("/api/modules", &[], &[
        operation(Get, Read, Modules, "listModules", "how each module is and what it offers", json::<modules::ModuleList<'_>>("the modules, in order of their names"), || get(modules::list)),
    ]),
    route("/api/modules/{module}/execute", &[params::MODULE], &[
        operation(Post, Call, Modules, "callModule", "calls a tool of one module", json::<modules::ModuleAnswer<'_>>("the result or the failure"), || post(modules::execute))
            .about("As every other call. `tool_name` is the module's own, as `MODULE.TOOL`. Failures are answers, as modules give them; only a body that is not a call is refused.")
            .body::<CallBody<'_>>()
            .also(&[json::<modules::ModuleAnswer<'_>>("it is running, or waits for approval: `error` names the id").status(202)]),
    ]),
    route("/refresh-tools", &[], &[
        operation(Post, Call, Modules, "refreshModules", "polls every module now", json::<modules::RefreshedModules>("the modules whose tools are known"), || post(modules::refresh)),
    ]),
    route("/tools/bundles", &[], bundles::BUNDLE_LIST_OPERATIONS),
    route("/tools/bundles/archive", &[], bundles::IMPORT_OPERATIONS),
    route("/tools/bundles/{bundleID}", &[bundles::BUNDLE_ID], bundles::BUNDLE_OPERATIONS),
    route("/tools/bundles/{bundleID}/restore", &[bundles::BUNDLE_ID], bundles::RESTORE_OPERATIONS),
    route("/tools/bundles/{bundleID}/archive", &[bundles::BUNDLE_ID], bundles::EXPORT_OPERATIONS),
    route("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{v}", &[bundles::BUNDLE_ID, bundles::TOOL_SLUG, bundles::TOOL_VERSION], bundles::STORED_TOOL_OPERATIONS),
    route("/tools/bundles/{bundleID}/tools/{toolSlug}/version/{v}/invoke", &[bundles::BUNDLE_ID, bundles::TOOL_SLUG, bundles::TOOL_VERSION], bundles::INVOKE_OPERATIONS),
    route("/tools", &[], bundles::MOVED_LIST_OPERATIONS),
    route("/tools/search", &[], bundles::MOVED_SEARCH_OPERATIONS),
    route("/tools/tools", &[], bundles::STORED_TOOL_LIST_OPERATIONS),
    route("/tools/tools/search", &[], bundles::STORED_TOOL_SEARCH_OPERATIONS),
];

/// `GET /`: the page of the scenarios for browsers, the table of routes for all other clients.
async fn root(
    state: State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    dashboard::home(state, &bytes, query, headers)
        .await
        .unwrap_or_else(route_index)
}

/// Not async: the table contains [`root`], whose type would then depend on itself.
fn route_index() -> Response {
    let routes = ROUTES
        .iter()
        .map(|route| (route.methods(), route.path, route.answers()));
    let mut answer = shared_json::json(&health::index(routes)).into_response();
    answer
        .headers_mut()
        .insert(http::header::VARY, http::HeaderValue::from_static("accept"));
    answer
}

/// The routes whose bodies are not JSON of at most `server.max_body` bytes.
pub(super) fn body_rules() -> Vec<BodyRule> {
    ROUTES.iter().flat_map(RouteSpec::body_rules).collect()
}

/// The router of all routes.
pub(super) fn router(shared: SharedState) -> Router {
    let config = &shared.config;
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        router.route(route.path, route.handler(config))
    });
    router
        .merge(dashboard::router(&shared))
        .merge(mcp::router(config))
        .merge(json_rpc::router(config))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

/// Counters for all routes.
pub(super) fn request_counters() -> Requests {
    Requests::new(
        ROUTES
            .iter()
            .map(|route| route.path)
            .chain(dashboard::paths())
            .chain(mcp::PATHS)
            .chain([json_rpc::PATH])
            .chain([REFUSED, PREFLIGHT, UNMATCHED]),
    )
}

/// The route of an answer, for the counters.
pub(super) fn route_of(answer: &http::response::Response<impl Sized>) -> &str {
    answer
        .extensions()
        .get::<MatchedPath>()
        .map_or(UNMATCHED, MatchedPath::as_str)
}

/// 404 for a path that matches no route.
async fn unknown(uri: Uri, headers: HeaderMap) -> Response {
    let problem = || {
        Problem::not_found(format!("there is no route `{}`", excerpt(uri.path())))
            .and_next("`GET /` lists all")
    };
    dashboard::unknown(uri.path(), &headers, problem).unwrap_or_else(|| problem().into_response())
}

/// 405; the router adds the `Allow` header.
async fn wrong_method(method: Method, uri: Uri, route: Option<MatchedPath>) -> Response {
    let detail = format!("`{}` does not take {method}", excerpt(uri.path()));
    let mut answer = Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, detail)
        .and_next("`Allow` names what it takes")
        .into_response();
    name_route(&mut answer, route);
    answer
}
