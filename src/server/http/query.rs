//! Parses query parameters strictly: an unknown, repeated or invalid parameter is refused, and the
//! refusal names the allowed ones.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use http::request::Parts;
use url::form_urlencoded;

use crate::catalog::{Defer, StickyTools, ViewQuery};
use crate::formats::{self, Format};
use crate::model::{Permission, ScenarioName, Scope};
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::next_step::NextStep;
use crate::server::http::params;
use crate::server::http::params::ParamType;
pub(in crate::server) use crate::server::http::params::{Param, many, once};

/// For routes without parameters: refuses any parameter.
#[derive(Debug)]
pub(in crate::server) struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Problem> {
        QueryParams::parse(head.uri.query(), &[]).map(|_| Self)
    }
}

/// The parameters of one request, all of them known to the route.
#[derive(Debug)]
pub(in crate::server) struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    /// Parses the part of the target after `?`.
    pub(in crate::server) fn parse(raw: Option<&str>, known: &[Param]) -> Result<Self, Problem> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            let Some(param) = known.iter().find(|param| param.name == name) else {
                return Err(unknown(&name, known));
            };
            if !param.many && pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Problem::bad_request(format!("`{name}` is given twice"))
                    .and_next("give it once"));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter that may be given once.
    pub(in crate::server) fn optional(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that must be given.
    pub(in crate::server) fn required(&self, name: &str) -> Result<&str, Problem> {
        let missing = || Problem::bad_request(format!("`{name}` is missing from the query"));
        self.optional(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(missing)
    }

    /// The values of a parameter that may be repeated. An empty value is refused: usually it comes
    /// from a variable that was not set.
    pub(in crate::server) fn list(&self, name: &str) -> Result<Vec<&str>, Problem> {
        let given = self
            .0
            .iter()
            .filter(|(given, _)| given == name)
            .flat_map(|(_, value)| value.split(','));
        let values: Vec<&str> = given.map(str::trim).collect();
        if values.contains(&"") {
            Err(bad_value(name, "", "at least one character"))
        } else {
            Ok(values)
        }
    }

    /// `true` or `false`; `false` if left out.
    pub(in crate::server) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.optional(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(bad_value(name, other, "`true` or `false`")),
        }
    }

    /// A scenario name; `None` if left out.
    pub(in crate::server) fn scenario(&self, name: &str) -> Result<Option<ScenarioName>, Problem> {
        self.optional(name)
            .map(|value| scenario(name, value))
            .transpose()
    }

    /// The client's scope from `profile`, `permission` and `chat_id`, as a query for all tools in
    /// it.
    pub(in crate::server) fn scope(&self) -> Result<ViewQuery, Problem> {
        let text = |name: &str, kind: &str| {
            let value = self.optional(name)?;
            // The model has the grammar of scopes; here it is only used.
            let checked = format!("{kind}:{value}").parse::<Scope>();
            Some(
                checked
                    .map(|_| value.to_owned())
                    .map_err(|_| bad_value(name, value, FREE_TEXT)),
            )
        };
        let profile = text("profile", "profile").transpose()?;
        let chat = text("chat_id", "chat").transpose()?;
        let permission = self.optional("permission").map(level).transpose()?;
        Ok(ViewQuery {
            profile,
            permission,
            chat,
            ..ViewQuery::default()
        })
    }

    /// The format in `format`; the first of the table if left out.
    pub(in crate::server) fn format(&self) -> Result<&'static dyn Format, Problem> {
        let known: Vec<&str> = formats::FORMATS.iter().map(|format| format.id()).collect();
        let id = self.optional("format").unwrap_or(known[0]);
        formats::by_id(id).ok_or_else(|| {
            let allowed = known
                .iter()
                .map(|id| format!("`{id}`"))
                .collect::<Vec<_>>()
                .join(" or ");
            bad_value("format", id, &allowed).with_member("known", known)
        })
    }
}

const FREE_TEXT: &str = "1 to 200 characters without control characters";
/// How many characters of `q` count, about a page of text: each word is searched for in every tool.
const QUESTION_LENGTH: usize = 4_000;
/// Largest length of `sticky` in characters: the daemon never sends a longer one.
const LONGEST_STICKY: usize = 8_000;

const MAX_TOKENS: Param = once("max_tokens")
    .takes(ParamType::Count(1, u32::MAX))
    .about(
        "Maximum number of tokens of the list, as estimated.",
        "4000",
    );
const DEFER: Param = once("defer")
    .takes(ParamType::Word(|| vec!["relevance", "preference"]))
    .about("What does not fit is offered by name only, where the format can say that; `relevance` needs `q`, `preference` goes without.", "relevance");
const STICKY: Param = once("sticky").takes(ParamType::Text(LONGEST_STICKY)).about(
    "The `Callsheet-Selection` of the list that the conversation has; empty for its first.",
    "",
);
const MODE: Param = once("mode")
    .takes(ParamType::Word(|| vec!["list", "search"]))
    .about(
        "`search` gives tools that search, and those that are always listed, in place of the whole list.",
        "search",
    );
const REPORT: Param = once("report").takes(ParamType::Flag).about(
    "The answer is `{\"tools\", \"report\"}`: the list, and why each tool is or is not in it.",
    "true",
);

/// The query of `GET /api/v1/tools`.
pub(in crate::server) struct ListQuery {
    /// The shape of the list.
    pub(in crate::server) format: &'static dyn Format,
    /// The choice of the tools.
    pub(in crate::server) view: ViewQuery,
    /// Whether the answer explains for each tool why it is or is not in the list.
    pub(in crate::server) report: bool,
}

impl ListQuery {
    /// The parameters that the event routes take, too.
    pub(in crate::server) const FOLLOWED: [Param; 13] = [
        params::FORMAT,
        params::PROFILE,
        params::PERMISSION,
        params::CHAT,
        params::SCENARIOS,
        params::CATEGORIES,
        params::TAGS,
        once("q").about(
            "Only tools that fit these words, the best first. What follows the first 4,000 characters does not count.",
            "read a file",
        ),
        once("max_tools")
            .takes(ParamType::Count(0, u32::MAX))
            .about("Maximum number of tools; 0 removes the limit of the format, too.", "20"),
        params::INCLUDE_DISABLED,
        once("include_internal")
            .takes(ParamType::Flag)
            .about("Also tools that their scenario marks as internal. With `format=native` only.", "false"),
        once("strict")
            .takes(ParamType::Flag)
            .about("Schemas as a vendor's strict mode wants them, where the format has it.", "true"),
        once("cache")
            .takes(ParamType::Flag)
            .about("With a mark for the vendor's prompt cache, where the format has it.", "true"),
    ];
    /// All parameters of the list.
    pub(in crate::server) const KNOWN: [Param; 17] = {
        let mut all = [MAX_TOKENS; 17];
        let mut at = 0;
        while at < Self::FOLLOWED.len() {
            all[at] = Self::FOLLOWED[at];
            at += 1;
        }
        (all[14], all[15], all[16]) = (DEFER, STICKY, REPORT);
        all
    };

    /// The parameters of a list for MCP clients.
    pub(in crate::server) const FOR_MCP: [Param; 18] = {
        let mut all = [MODE; 18];
        let mut at = 0;
        while at < Self::KNOWN.len() {
            all[at] = Self::KNOWN[at];
            at += 1;
        }
        all
    };

    /// Parses the part of the target after `?`. A filter that names an unknown scenario, category
    /// or tag is no error: the list is empty then, as it is when a scenario is removed.
    pub(in crate::server) fn parse(raw: Option<&str>) -> Result<Self, Problem> {
        Self::from_params(&QueryParams::parse(raw, &Self::KNOWN)?)
    }

    /// Like [`Self::parse`], for a query that may have further parameters.
    pub(in crate::server) fn from_params(query: &QueryParams) -> Result<Self, Problem> {
        let format = query.format()?;
        let texts = |name: &str| -> Result<BTreeSet<String>, Problem> {
            Ok(query.list(name)?.into_iter().map(str::to_owned).collect())
        };
        let scenarios = query
            .list("scenario")?
            .into_iter()
            .map(|value| scenario("scenario", value));
        let view = ViewQuery {
            scenarios: scenarios.collect::<Result<_, _>>()?,
            categories: texts("category")?,
            tags: texts("tag")?,
            q: search(query.optional("q")),
            max_tools: max_tools(query.optional("max_tools"))?,
            max_tokens: max_tokens(query.optional("max_tokens"))?,
            defer: defer(query)?,
            sticky: sticky(query.optional("sticky"))?,
            include_disabled: query.flag("include_disabled")?,
            include_internal: query.flag("include_internal")?,
            ..query.scope()?
        };
        let for_programs = [
            ("include_disabled", view.include_disabled),
            ("include_internal", view.include_internal),
        ];
        if let Some((name, _)) = for_programs
            .iter()
            .find(|(_, given)| *given && format.for_llm())
        {
            let given = NextStep::parameter(name, "true");
            let format = NextStep::parameter("format", format.id());
            let native = NextStep::parameter("format", "native");
            let detail = format!("{given} does not go with {format}: LLMs never get such tools");
            let problem = Problem::bad_request(detail).and_next(&format!("use {native}"));
            return Err(problem.with_next(given).with_next(format).with_next(native));
        }
        Ok(Self {
            format: with_options(query, format, view.defer.is_some())?,
            view,
            report: query.flag("report")?,
        })
    }
}

/// The format with its options. An option that the format does not have is refused, because
/// ignoring it would hide the mistake. Only deferring works with every format: if the format cannot
/// express it, the list is shorter.
fn with_options(
    query: &QueryParams,
    format: &'static dyn Format,
    deferring: bool,
) -> Result<&'static dyn Format, Problem> {
    let options = formats::FormatOptions {
        strict: query.flag("strict")?,
        cache: query.flag("cache")?,
        deferring: false,
    };
    let deferring = formats::FormatOptions {
        deferring,
        ..options
    };
    formats::with_options(format, deferring)
        .or_else(|| formats::with_options(format, options))
        .ok_or_else(|| {
            let have = formats::FORMATS
                .iter()
                .filter(|format| format.variant(options).is_some());
            let have: Vec<String> = have.map(|format| format!("`{}`", format.id())).collect();
            let requested = [
                ("`strict=true`", options.strict),
                ("`cache=true`", options.cache),
            ];
            let requested: Vec<&str> = requested
                .iter()
                .filter(|(_, given)| *given)
                .map(|(name, _)| *name)
                .collect();
            let requested = requested.join(" with ");
            let have = have.join(", ");
            let format = NextStep::parameter("format", format.id());
            let problem = Problem::bad_request(format!("{format} has no {requested}"));
            problem
                .and_next(&format!("these have it: {have}"))
                .with_next(format)
        })
}

/// The first [`QUESTION_LENGTH`] characters of a question. A longer one is cut and not refused,
/// because clients send what their users wrote.
pub(in crate::server) fn question(text: &str) -> &str {
    text.char_indices()
        .nth(QUESTION_LENGTH)
        .map_or(text, |(end, _)| &text[..end])
}

/// The text of a search with single blanks, so that equal searches share a prepared answer; `None`
/// if it has no words. Letters keep their case, because `createDirectory` counts as two words only
/// in that spelling.
fn search(text: Option<&str>) -> Option<String> {
    let words: Vec<&str> = question(text.unwrap_or_default())
        .split_whitespace()
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn max_tokens(text: Option<&str>) -> Result<Option<usize>, Problem> {
    let read = |text: &str| {
        let number = count(text).filter(|number| *number > 0);
        number.ok_or_else(|| {
            bad_value("max_tokens", text, "a whole number above 0")
                .and_next("leave it out for no limit")
        })
    };
    text.map(read).transpose()
}

fn defer(query: &QueryParams) -> Result<Option<Defer>, Problem> {
    let searched = query
        .optional("q")
        .is_some_and(|text| !text.trim().is_empty());
    match query.optional("defer") {
        None => Ok(None),
        Some("relevance") if searched => Ok(Some(Defer::Relevance)),
        Some("relevance") => Err(Problem::bad_request(
            "`defer=relevance` needs `q`: the tools are ranked by it",
        )),
        Some("preference") if searched => {
            let next = "use `defer=relevance`, or leave `q` out";
            let detail = format!(
                "`defer=preference` does not go with `q`, which ranks by relevance: {next}"
            );
            Err(Problem::bad_request(detail).ending_with(Some(next)))
        }
        Some("preference") => Ok(Some(Defer::Preference)),
        Some(other) => Err(bad_value("defer", other, "`relevance` or `preference`")),
    }
}

/// Parses `sticky`. An empty text begins a conversation. A text that cannot be parsed must not
/// break the conversation, so only the answer says so.
fn sticky(text: Option<&str>) -> Result<Option<StickyTools>, Problem> {
    if let Some(long) = text.filter(|text| text.chars().nth(LONGEST_STICKY).is_some()) {
        return Err(bad_value(
            "sticky",
            long,
            "the `Callsheet-Selection` of an earlier list, or nothing",
        ));
    }
    Ok(text.map(StickyTools::parse))
}

/// Parses `max_tools`. 0 is passed on: it lifts the cap of the format.
fn max_tools(text: Option<&str>) -> Result<Option<usize>, Problem> {
    let read = |text: &str| {
        count(text).ok_or_else(|| bad_value("max_tools", text, "a whole number, 0 for no limit"))
    };
    text.map(read).transpose()
}

/// A whole number of 32 bits, written in digits.
pub(in crate::server) fn count(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    text.parse::<u32>()
        .ok()
        .filter(|_| digits)
        .and_then(|number| number.try_into().ok())
}

fn scenario(name: &str, value: &str) -> Result<ScenarioName, Problem> {
    value
        .parse()
        .map_err(|error| Problem::bad_request(format!("`{name}`: {error}")))
}

/// The level that a client says it has. An unknown one is refused, also where one of a profile is
/// read as `guest`: the client learns of its mistake.
pub(in crate::server) fn level(text: &str) -> Result<Permission, Problem> {
    text.parse().map_err(|_| {
        let names = Permission::NAMED.map(|level| format!("`{level}`"));
        bad_value("permission", text, &names.join(", "))
    })
}

/// 400 for a value that a parameter cannot have.
pub(in crate::server) fn bad_value(name: &str, value: &str, allowed: &str) -> Problem {
    Problem::bad_request(format!(
        "`{name}` cannot be `{}`: allowed is {allowed}",
        excerpt(value)
    ))
}

fn unknown(name: &str, known: &[Param]) -> Problem {
    let known: Vec<&str> = known.iter().map(|param| param.name).collect();
    let listed = match known[..] {
        [] => "this route takes none".to_owned(),
        _ => format!("known are {}", known.join(", ")),
    };
    Problem::bad_request(format!(
        "unknown query parameter `{}`: {listed}",
        excerpt(name)
    ))
    .with_member("known", known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn refusal(raw: &str) -> String {
        let answer = ListQuery::parse(Some(raw))
            .err()
            .expect(raw)
            .into_full_response();
        assert_eq!(answer.status(), 400, "{raw}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        body["detail"].as_str().unwrap().to_owned()
    }

    #[test]
    fn nothing_given_is_the_native_list_of_everything_enabled() {
        for raw in [None, Some("")] {
            let list = ListQuery::parse(raw).unwrap();
            assert_eq!(list.format.id(), "native");
            assert_eq!(list.view, ViewQuery::default());
        }
    }

    #[test]
    fn every_parameter_is_read() {
        let raw = "format=native&profile=coder&permission=user&chat_id=7%20f&scenario=b,a&scenario=c&category=x%2Cy&tag=t\
            &q=Read++file%20read&max_tools=0&include_disabled=true&include_internal=true\
            &max_tokens=900&defer=relevance&sticky=0123456789ab&report=true";
        let list = ListQuery::parse(Some(raw)).unwrap();
        let view = list.view;
        let set = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(view.profile.as_deref(), Some("coder"));
        assert_eq!(view.permission, Some(Permission::User));
        assert_eq!(view.chat.as_deref(), Some("7 f"));
        assert_eq!(
            view.scenarios
                .iter()
                .map(ScenarioName::as_str)
                .collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert_eq!(view.categories, set(&["x", "y"]));
        assert_eq!(view.tags, set(&["t"]));
        assert_eq!(view.q.as_deref(), Some("Read file read"));
        assert_eq!(view.max_tokens, Some(900));
        assert_eq!(view.defer, Some(Defer::Relevance));
        assert!(list.report);
        assert_eq!(view.sticky.unwrap().to_string(), "0123456789ab");
        assert_eq!(view.max_tools, Some(0));
        assert!(view.include_disabled && view.include_internal);
    }

    #[tokio::test]
    async fn what_cannot_be_is_refused_by_name() {
        for (raw, named) in [
            (
                "fromat=openai",
                &["`fromat`", "format, profile, permission, chat_id"][..],
            ),
            (
                "format=opneai",
                &["`format`", "`opneai`", "`native` or `openai`"],
            ),
            ("format=native&format=openai", &["`format`", "twice"]),
            (
                "include_disabled=1",
                &["`include_disabled`", "`1`", "`true` or `false`"],
            ),
            ("max_tools=-1", &["`max_tools`", "`-1`", "whole number"]),
            ("max_tools=", &["`max_tools`"]),
            ("max_tools=%2B5", &["`max_tools`", "`+5`", "whole number"]),
            ("max_tokens=0", &["`max_tokens`", "above 0"]),
            (
                "defer=later",
                &["`defer`", "`later`", "`relevance` or `preference`"],
            ),
            ("defer=relevance&q=+", &["`defer=relevance`", "`q`"]),
            ("defer=preference&q=x", &["`defer=preference`", "`q`"]),
            ("report=yes", &["`report`"]),
            ("scenario=a,,b", &["`scenario`"]),
            ("scenario=a/b", &["`scenario`", "`a/b`"]),
            ("profile=", &["`profile`", "200 characters"]),
            (
                "permission=",
                &["`permission`", "`guest`, `user`, `admin`, `owner`"],
            ),
            ("permission=root", &["`permission`", "`root`"]),
            ("chat_id=%00", &["`chat_id`"]),
            (
                "format=openai&include_internal=true",
                &["`include_internal=true`", "`format=openai`"],
            ),
            (
                "format=openai&cache=true",
                &["`cache=true`", "`anthropic`, `bedrock`"],
            ),
            (
                "format=openai&include_disabled=true",
                &["`include_disabled=true`"],
            ),
        ] {
            let detail = refusal(raw).await;
            for part in named {
                assert!(detail.contains(part), "{raw}: {detail}");
            }
        }
    }
}
