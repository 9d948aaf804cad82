//! Rules of single keys: each makes a value of a text, or says what is wrong with it.

use std::net::SocketAddr;

use super::Config;
use super::origin::refused_address;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::catalog::NamingStyle;
use crate::model::{AcceptedVersions, PinMode, ScenarioName, Secret};

/// The least number of characters of the token of operators.
const SHORTEST_TOKEN: usize = 16;

/// The name of a scenario.
pub(super) fn scenario_name(text: &str) -> Result<ScenarioName, ValueError> {
    text.parse().map_err(|_| {
        ValueError::new(
            format!("{text:?} is not a scenario name"),
            "use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit",
        )
    })
}

/// An IP address with a port.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, ValueError> {
    text.parse().map_err(|_| {
        ValueError::new(
            format!("{:?} is not an address with a port", refused_address(text)),
            "write an IP address and a port, such as \"127.0.0.1:7400\" or \"[::1]:7400\"",
        )
    })
}

/// A range of versions of the protocol.
pub(super) fn versions(text: &str) -> Result<AcceptedVersions, ValueError> {
    AcceptedVersions::parse(text).map_err(|error| {
        ValueError::new(
            format!("{text:?} is not a version range: {error}"),
            "write conditions separated by commas, such as \">=1.0, <2.0\"",
        )
    })
}

/// When the published name of a tool contains the name of its scenario.
pub(super) fn naming_style(text: &str) -> Result<NamingStyle, ValueError> {
    match text {
        "on-collision" => Ok(NamingStyle::OnCollision),
        "always" => Ok(NamingStyle::Always),
        _ => Err(ValueError::new(
            format!("{text:?} is not a naming style"),
            "write \"on-collision\" or \"always\"",
        )),
    }
}

/// What happens with definitions that were not accepted.
pub(super) fn pin_mode(text: &str) -> Result<PinMode, ValueError> {
    text.parse().map_err(|_| {
        ValueError::new(
            format!("{text:?} is no mode of pins"),
            "write \"off\", \"warn\" or \"hold\"",
        )
    })
}

/// Whether MCP clients search in place of getting the whole list.
pub(super) fn mcp_mode(text: &str) -> Result<bool, ValueError> {
    match text {
        "list" => Ok(false),
        "search" => Ok(true),
        _ => Err(ValueError::new(
            format!("{text:?} is no mode of the list"),
            "write \"list\" or \"search\"",
        )),
    }
}

/// A token that a header can hold (RFC 6750 section 2.1, and whatever else is visible).
pub(super) fn bearer(token: Secret) -> Result<Secret, ValueError> {
    if !token.expose().is_empty() && token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    Err(ValueError::new(
        "it can be no bearer token",
        "write visible ASCII characters without blanks",
    ))
}

/// A bearer token that is too long to be guessed.
pub(super) fn operator_token(token: Secret) -> Result<Secret, ValueError> {
    let token = bearer(token)?;
    if token.expose().len() >= SHORTEST_TOKEN {
        return Ok(token);
    }
    let message = format!("it has less than {SHORTEST_TOKEN} characters, so it can be guessed");
    Err(ValueError::new(
        message,
        "make one, for example with `openssl rand -hex 32`",
    ))
}

/// The path of the database. It is required where there is no home folder for a default path.
pub(super) fn state_path(written: &mut ValueReader<'_>, config: &mut Config) {
    if written.value.is_none() && config.state.path.as_os_str().is_empty() {
        written.reject(ValueError::new(
            "there is no home folder to keep the database in",
            "set it, for example with `CALLSHEET_STATE__PATH=/var/lib/callsheet/state.db`",
        ));
    }
    written.path(&mut config.state.path);
}
