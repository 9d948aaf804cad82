//! Writes the stored form of a manifest.

use std::sync::Arc;

use serde_json::Value;

use super::RELAYED;
use crate::model::{
    Category, Extra, JsonText, Manifest, RelayedKind, RelayedOffers, ScenarioInfo, Tool,
};

/// Writes a manifest in its compact stored form; [`super::read()`] of the result gives an equal
/// manifest.
pub fn write(manifest: &Manifest) -> String {
    let sizes = manifest.tools.iter().map(|tool| {
        FRAME
            + tool.name.len()
            + tool.description.len()
            + tool.parameters.get().len()
            + tool.metadata.get().len()
    });
    let mut object = Object::open(String::with_capacity(sizes.sum::<usize>() + FRAME));
    object.text("protocol_version", &manifest.protocol_version);
    object.nested("scenario", |out| scenario(out, &manifest.scenario));
    object.nested("tools", |out| {
        list(out, &manifest.tools, |out, item| tool(out, item))
    });
    object.nested("categories", |out| {
        list(out, &manifest.categories, category)
    });
    if let Some(at) = manifest.generated_at {
        object.text("generated_at", &at.to_string());
    }
    if !manifest.relayed.is_empty() {
        object.nested(RELAYED, |out| relayed(out, &manifest.relayed));
    }
    // A scenario that speaks another protocol may send any member.
    object.close_with(manifest.extra.iter().filter(|(name, _)| &**name != RELAYED))
}

/// What is offered besides tools.
fn relayed(out: String, offers: &RelayedOffers) -> String {
    let mut object = Object::open(out);
    for kind in RelayedKind::ALL
        .into_iter()
        .filter(|kind| !offers.of(*kind).is_empty())
    {
        object.nested(kind.member(), |out| {
            list(out, offers.of(kind), |out, offer| {
                let mut object = Object::open(out);
                object.text(kind.key(), &offer.key);
                object.close(&offer.members)
            })
        });
    }
    object.close(&Extra::default())
}

/// The approximate size of the text around the values of a tool.
const FRAME: usize = 128;

fn scenario(out: String, info: &ScenarioInfo) -> String {
    let mut object = Object::open(out);
    object.text("name", &info.name);
    object.text("version", &info.version);
    object.text("description", &info.description);
    object.option("base_url", info.base_url.as_deref());
    object.close(&info.extra)
}

fn tool(out: String, tool: &Tool) -> String {
    let mut object = Object::open(out);
    object.text("name", &tool.name);
    object.text("description", &tool.description);
    object.option("category", tool.category.as_deref());
    object.raw("parameters", tool.parameters.get());
    object.raw("metadata", tool.metadata.get());
    object.close(&tool.extra)
}

fn category(out: String, category: &Category) -> String {
    let mut object = Object::open(out);
    object.text("id", &category.id);
    object.text("name", &category.name);
    object.option("description", category.description.as_deref());
    object.option("icon", category.icon.as_deref());
    if let Some(order) = category.display_order {
        object.raw("display_order", &order.to_string());
    }
    object.close(&category.extra)
}

fn list<T>(mut out: String, items: &[T], item: impl Fn(String, &T) -> String) -> String {
    out.push('[');
    for (index, each) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out = item(out, each);
    }
    out.push(']');
    out
}

/// An object that is being written.
struct Object {
    out: String,
    empty: bool,
}

impl Object {
    fn open(mut out: String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    fn name(&mut self, name: &str) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        self.string(name);
        self.out.push(':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.string(value);
    }

    fn string(&mut self, text: &str) {
        self.out.push_str(&Value::from(text).to_string());
    }

    fn option(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    fn raw(&mut self, name: &str, json: &str) {
        self.name(name);
        self.out.push_str(json);
    }

    fn nested(&mut self, name: &str, write: impl FnOnce(String) -> String) {
        self.name(name);
        self.out = write(std::mem::take(&mut self.out));
    }

    fn close(self, extra: &Extra) -> String {
        self.close_with(extra.iter())
    }

    fn close_with<'a>(mut self, extra: impl Iterator<Item = &'a (Arc<str>, JsonText)>) -> String {
        for (name, value) in extra {
            self.raw(name, value.get());
        }
        self.out.push('}');
        self.out
    }
}
