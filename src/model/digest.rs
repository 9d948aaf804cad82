//! The digest of a manifest: equal for equal offers, whatever the time stamp and the order of the
//! extras.

use xxhash_rust::xxh3::Xxh3;

use super::manifest::{Digest, Manifest};
use super::relayed::{RelayedKind, RelayedOffer, RelayedOffers};
use super::tool::Extra;

impl Manifest {
    /// The digest of its content. `generated_at` and the digest that it has are not looked at.
    pub fn content_digest(&self) -> Digest {
        digest(self, true)
    }

    /// The same offer, with the digest of its content.
    #[must_use]
    pub fn digested(self) -> Self {
        Self {
            digest: self.content_digest(),
            ..self
        }
    }

    /// The digest of what shows in a list of tools: the content without what is offered besides
    /// them.
    pub fn list_digest(&self) -> Digest {
        if self.relayed.is_empty() {
            self.digest
        } else {
            digest(self, false)
        }
    }
}

impl RelayedOffers {
    /// The digest of one kind: equal for equal offers.
    pub fn digest(&self, kind: RelayedKind) -> Digest {
        let mut feed = Feed(Xxh3::new());
        feed.relayed(self.of(kind));
        Digest(feed.0.digest128())
    }
}

fn digest(manifest: &Manifest, with_relayed: bool) -> Digest {
    let mut feed = Feed(Xxh3::new());
    feed.text(&manifest.protocol_version);
    let scenario = &manifest.scenario;
    feed.text(&scenario.name);
    feed.text(&scenario.version);
    feed.text(&scenario.description);
    feed.option(scenario.base_url.as_deref());
    feed.extra(&scenario.extra);
    feed.count(manifest.tools.len());
    for tool in &manifest.tools {
        feed.text(&tool.name);
        feed.text(&tool.description);
        feed.option(tool.category.as_deref());
        feed.text(tool.parameters.get());
        // The facts are read from this text.
        feed.text(tool.metadata.get());
        feed.extra(&tool.extra);
        if let Some(choice) = &tool.definition {
            feed.option(choice.named.as_deref());
            for (profile, activity) in &choice.by_profile {
                feed.text(profile);
                feed.text(activity);
            }
        }
    }
    feed.count(manifest.categories.len());
    for category in &*manifest.categories {
        feed.text(&category.id);
        feed.text(&category.name);
        feed.option(category.description.as_deref());
        feed.option(category.icon.as_deref());
        feed.option(
            category
                .display_order
                .map(|order| order.to_string())
                .as_deref(),
        );
        feed.extra(&category.extra);
    }
    feed.extra(&manifest.extra);
    if with_relayed && !manifest.relayed.is_empty() {
        for kind in RelayedKind::ALL {
            feed.relayed(manifest.relayed.of(kind));
        }
    }
    Digest(feed.0.digest128())
}

/// Every part goes in with its length, so that no two sequences of parts are the same bytes.
struct Feed(Xxh3);

impl Feed {
    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn option(&mut self, text: Option<&str>) {
        self.count(usize::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn relayed(&mut self, offers: &[RelayedOffer]) {
        self.count(offers.len());
        for offer in offers {
            self.text(&offer.key);
            self.extra(&offer.members);
        }
    }

    fn extra(&mut self, extra: &Extra) {
        let mut sorted: Vec<_> = extra.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        self.count(sorted.len());
        for (name, value) in sorted {
            self.text(name);
            self.text(value.get());
        }
    }
}
