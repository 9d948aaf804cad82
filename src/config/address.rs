//! Addresses of scenarios as they may be written.

use url::Url;

use super::origin::refused_address;
use super::units::ValueError;
use crate::protocols::{module, tool_discovery};

/// An address without the route of a list of tools at its end, which people copy with it.
pub(crate) fn without_route(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    let base =
        [tool_discovery::PATH, module::PATH].iter().find_map(|route| path.strip_suffix(route)).map(str::to_owned);
    if let Some(base) = base {
        url.set_path(&base);
    }
    url
}

/// The address of a scenario. What is refused is shown without what may be secret in it.
pub(super) fn address(text: &str) -> Result<Url, ValueError> {
    let whole = "write it whole, such as \"http://127.0.0.1:15000\"";
    let url = Url::parse(text)
        .map_err(|error| ValueError::new(format!("{:?} is not an address: {error}", refused_address(text)), whole))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ValueError::new(format!("{:?} is neither http nor https", refused_address(text)), whole));
    }
    for (part, present, mark) in [("query", url.query().is_some(), '?'), ("fragment", url.fragment().is_some(), '#')] {
        if present {
            return Err(ValueError::new(
                format!("the address of a scenario has no {part}"),
                format!("leave out everything from the `{mark}` on"),
            ));
        }
    }
    Ok(url)
}
