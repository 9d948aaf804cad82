//! `[[scenarios]]`: scenarios at known addresses, as they are written. None is contacted here.

use std::collections::BTreeMap;

use url::Url;

use super::address::address;
use super::rules::scenario_name;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use super::{Config, StaticScenario};
use crate::model::ScenarioName;
use crate::protocols::PROTOCOLS;

/// The shape of the list.
pub(super) const SHAPE: Shape =
    Shape::List(&Shape::Table(&[("name", Shape::Text), ("url", Shape::Text), ("protocol", Shape::Text)]));

/// Reads the scenarios, and takes those that keep the rules.
pub(super) fn read(written: &mut ValueReader<'_>, config: &mut Config) {
    let mut indices = BTreeMap::<ScenarioName, usize>::new();
    written.each(|i, mut at| {
        let (mut name, mut url, mut protocol): (Option<ScenarioName>, Option<Url>, Option<String>) = (None, None, None);
        at.require("name", ValueError::new("this scenario has no name", "add `name = \"...\"` to it"));
        at.require("url", ValueError::new("this scenario has no address", "add `url = \"http://...\"` to it"));
        at.key("name").text(&mut name, |text| {
            let name = scenario_name(text)?;
            match indices.get(&name) {
                Some(first) => Err(ValueError::new(
                    format!("`{name}` is already the name of scenarios[{first}]"),
                    "give each scenario a name of its own",
                )),
                None => Ok(name),
            }
        });
        at.key("url").text(&mut url, address);
        at.key("protocol").text(&mut protocol, known_protocol);
        if let (Some(name), Some(url)) = (name, url) {
            indices.insert(name.clone(), i);
            config.scenarios.push(StaticScenario { name, url, protocol });
        }
    });
}

/// The id of a supported protocol.
fn known_protocol(text: &str) -> Result<String, ValueError> {
    let known: Vec<&str> = PROTOCOLS.iter().map(|make| make().id()).collect();
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    let hint = format!("known are: {}; leave it out to find out by asking", known.join(", "));
    Err(ValueError::new(format!("{text:?} is no protocol"), hint))
}
