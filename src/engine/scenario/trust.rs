//! For which peers an operator's decision holds. Pure.
//!
//! **An approval** is stored for the identity and the address it was given for, and is looked up by
//! the name it was given to (the reconciler ensures that no other peer gets that name). It counts
//!
//! - for the same identity on the same host, whatever its port: a restart on a new port is normal;
//! - without an identity: for exactly the address (scheme, host, port) it was given for.
//!
//! Every other peer waits again, with a finding that says for which peer the approval was given.
//! The same identity on another host waits: an identity is announced in the clear, so every host on
//! the network can copy it. Another identity at the same address waits too: the address may now
//! belong to another machine. An approval of an earlier version, which stored the name alone,
//! counts for no peer.
//!
//! **A block** holds for its name and for the identity it was given for, under every name. Among
//! scenarios that no source vouches for, it also holds for the address and for the announced name,
//! so renaming does not help. A scenario whose source is trusted, at the address of a blocked one,
//! is another program that got the port.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::discovery::{Endpoint, SourceTrust};
use crate::model::{Finding, FindingCode, PeerIdentity, ScenarioName, SourceId, Target};
use crate::state::{Decision, TrustDecision};

/// How the decisions apply to a scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct TrustVerdict {
    /// The decision that counts for it.
    pub(in crate::engine) decision: Option<Decision>,
    /// Why it is blocked through another name, or why the approval under its name does not count
    /// for it; no full stop.
    pub(in crate::engine) note: Option<String>,
}

/// Whether a scenario may be published, according to its source and the operators.
#[derive(Debug)]
pub(in crate::engine) struct TrustStatus {
    /// Whether its source is trusted for its address.
    source_trusted: bool,
    /// The decision that counts for it.
    decision: Option<Decision>,
    /// Why it is blocked through another name, or why the approval under its name does not count.
    note: Option<String>,
    /// The finding for an approval that does not count.
    finding: Option<Box<Finding>>,
    /// Whether trust was given when the decisions were last applied.
    was_given: bool,
}

/// The effect of changed decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrustChange {
    /// Whether it was refused before.
    pub(super) was_refused: bool,
    /// Whether it was given before.
    pub(super) was_given: bool,
    /// Whether the decision or its reason changed.
    pub(super) is_news: bool,
}

impl TrustStatus {
    /// The status that follows from the source alone.
    pub(super) fn new(source_trusted: bool) -> Self {
        Self {
            source_trusted,
            decision: None,
            note: None,
            finding: None,
            was_given: source_trusted,
        }
    }

    /// Sets whether its source is trusted for it.
    pub(super) fn set_source_trusted(&mut self, source_trusted: bool) {
        self.source_trusted = source_trusted;
    }

    pub(super) fn is_source_trusted(&self) -> bool {
        self.source_trusted
    }

    /// Whether its tools may be published.
    pub(super) fn is_given(&self) -> bool {
        self.source_trusted || self.decision == Some(Decision::Trusted)
    }

    /// Whether an operator rejected it.
    pub(super) fn is_refused(&self) -> bool {
        self.decision == Some(Decision::Blocked)
    }

    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    pub(super) fn finding(&self) -> Option<&Finding> {
        self.finding.as_deref()
    }

    /// Applies the current decisions to it.
    pub(super) fn rule(&mut self, name: &ScenarioName, verdict: TrustVerdict) -> TrustChange {
        let was_refused = self.is_refused();
        let was_given = self.was_given;
        let is_news = (self.decision, &self.note) != (verdict.decision, &verdict.note);
        self.finding = withheld(name, &verdict, self.source_trusted).map(Box::new);
        self.decision = verdict.decision;
        self.note = verdict.note;
        self.was_given = self.is_given();
        TrustChange {
            was_refused,
            was_given,
            is_news,
        }
    }
}

/// The peer at an endpoint. That of a proposed one is all of its entry: an approval never counts
/// for another version of it.
pub(in crate::engine) fn party(endpoint: &Endpoint) -> PeerIdentity {
    let origin = endpoint
        .target
        .as_ref()
        .map(|target| match (target, endpoint.trust) {
            (Target::Http(target), SourceTrust::Proposed) => {
                format!("{}:0", target.fingerprinted())
            }
            _ => target.origin(),
        });
    PeerIdentity {
        identity: endpoint.identity.clone(),
        origin: origin.map(Into::into),
    }
}

/// The host of a target's origin.
pub(in crate::engine) fn host(target: &Target) -> String {
    let origin = target.origin();
    let host = origin
        .split_once("://")
        .map_or(origin.as_str(), |(_, host)| host);
    host.rsplit_once(':')
        .map_or(host, |(host, _)| host)
        .to_owned()
}

/// Whether an answer of `before` may be used for `now`.
pub(in crate::engine) fn same(before: &PeerIdentity, now: &PeerIdentity) -> bool {
    if before.identity.is_some() && now.identity.is_some() {
        before.same_identity(now) && before.same_host(now)
    } else {
        before.same_origin(now)
    }
}

/// Decides about the scenario known as `name`. `announced` is the name its endpoint gives it.
pub(in crate::engine) fn judge(
    rulings: &BTreeMap<ScenarioName, TrustDecision>,
    name: &ScenarioName,
    party: Option<&PeerIdentity>,
    announced: Option<&ScenarioName>,
    source_trusted: bool,
) -> TrustVerdict {
    let own = rulings.get(name);
    if own.is_some_and(|ruling| ruling.decision == Decision::Blocked) {
        return TrustVerdict {
            decision: Some(Decision::Blocked),
            note: None,
        };
    }
    if let Some(note) = blocked_as(rulings, party, announced, source_trusted) {
        return TrustVerdict {
            decision: Some(Decision::Blocked),
            note: Some(note),
        };
    }
    let Some(yes) = own else {
        return TrustVerdict::default();
    };
    match party.map(|party| covers(&yes.party, party)) {
        Some(Ok(())) => TrustVerdict {
            decision: Some(Decision::Trusted),
            note: None,
        },
        Some(Err(why)) => TrustVerdict {
            decision: None,
            note: Some(why),
        },
        None => TrustVerdict {
            decision: None,
            note: Some("it is not known where it is".into()),
        },
    }
}

/// Why a block under another name holds for it, if one does.
fn blocked_as(
    rulings: &BTreeMap<ScenarioName, TrustDecision>,
    party: Option<&PeerIdentity>,
    announced: Option<&ScenarioName>,
    source_trusted: bool,
) -> Option<String> {
    rulings.iter().filter(|(_, ruling)| ruling.decision == Decision::Blocked).find_map(|(blocked, ruling)| {
        let what = match party {
            Some(party) if ruling.party.same_identity(party) => "has the identity of",
            Some(party) if !source_trusted && ruling.party.same_origin(party) => "has the address of",
            _ if !source_trusted && announced == Some(blocked) => "announces itself as",
            _ => return None,
        };
        Some(format!("it {what} `{blocked}`, which an operator blocked; `callsheet block {blocked} --undo` lifts that"))
    })
}

/// Whether an approval for one peer counts for another, or why not.
fn covers(given: &PeerIdentity, now: &PeerIdentity) -> Result<(), String> {
    if given.origin.is_none() {
        return Err(
            "the approval under its name was stored by an earlier version, without the address it was given for".into(),
        );
    }
    if given.holds_for(now) {
        Ok(())
    } else if given.is_of_an_entry() && now.is_of_an_entry() {
        Err("its command, arguments, variables, folder, address or headers changed since an operator accepted them"
            .into())
    } else {
        Err(format!(
            "the approval under its name was given for the scenario {given}, but this is the scenario {now}"
        ))
    }
}

/// The finding that says why an approval does not count.
pub(in crate::engine) fn withheld(
    name: &ScenarioName,
    verdict: &TrustVerdict,
    source_trusted: bool,
) -> Option<Finding> {
    let note = verdict
        .note
        .as_ref()
        .filter(|_| verdict.decision.is_none() && !source_trusted)?;
    let hint = format!("if it is the same scenario at a new address, run `callsheet trust {name}`");
    Some(
        Finding::new(FindingCode::TrustWithheld, note.clone())
            .of_scenario(name)
            .hint(hint),
    )
}

/// Whether an address was only found: no operator configured it, and this machine did not start it.
pub(in crate::engine) fn merely_found(source: SourceId, trust: SourceTrust) -> bool {
    source.spec().is_announced || trust == SourceTrust::Untrusted
}

/// Removes everything from the address of a target that could be a secret for the server there.
pub(in crate::engine) fn bare(target: Target) -> Target {
    let Target::Http(found) = target else {
        return target;
    };
    let mut found = Arc::unwrap_or_clone(found);
    // Neither fails for an address with a host.
    let _ = found.url.set_username("");
    let _ = found.url.set_password(None);
    found.url.set_query(None);
    found.url.set_fragment(None);
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HttpTarget;

    fn at(identity: &str, origin: &str) -> PeerIdentity {
        let text = |text: &str| (!text.is_empty()).then(|| text.into());
        PeerIdentity {
            identity: text(identity),
            origin: text(origin),
        }
    }

    fn rulings(decision: Decision, party: PeerIdentity) -> BTreeMap<ScenarioName, TrustDecision> {
        BTreeMap::from([(
            "pantry".parse().unwrap(),
            TrustDecision {
                decision,
                party,
                source: None,
            },
        )])
    }

    #[test]
    fn trust_in_a_name_does_not_lift_a_block_of_its_identity() {
        let here = at("7", "http://10.0.0.5:80");
        let decided = |decision| TrustDecision {
            decision,
            party: here.clone(),
            source: None,
        };
        let both = BTreeMap::from([
            ("pantry".parse().unwrap(), decided(Decision::Trusted)),
            ("kitchen".parse().unwrap(), decided(Decision::Blocked)),
        ]);
        for source_trusted in [false, true] {
            let verdict = judge(
                &both,
                &"pantry".parse().unwrap(),
                Some(&here),
                None,
                source_trusted,
            );
            assert_eq!(
                verdict.decision,
                Some(Decision::Blocked),
                "source_trusted: {source_trusted}"
            );
            assert!(
                verdict
                    .note
                    .as_ref()
                    .is_some_and(|note| note.contains("`kitchen`")),
                "{:?}",
                verdict.note
            );
        }
    }

    #[test]
    fn a_yes_counts_for_whom_it_was_given() {
        let id = "7";
        let here = "http://10.0.0.5:80";
        for (given, now, counts) in [
            (at(id, here), at(id, here), true),
            (at(id, here), at(id, "http://10.0.0.5:81"), true),
            (at(id, here), at(id, "http://10.0.0.6:80"), false),
            (at(id, here), at(id, "https://10.0.0.5:80"), false),
            (at(id, here), at("8", here), false),
            (at(id, here), at("", here), false),
            (at("", here), at("", here), true),
            (at("", here), at(id, here), true),
            (at("", here), at("", "http://10.0.0.5:81"), false),
            (at("", ""), at("", here), false),
            (at(id, ""), at(id, here), false),
        ] {
            let name = "pantry".parse().unwrap();
            let verdict = judge(
                &rulings(Decision::Trusted, given.clone()),
                &name,
                Some(&now),
                Some(&name),
                false,
            );
            assert_eq!(
                verdict.decision == Some(Decision::Trusted),
                counts,
                "{given} {now}"
            );
            assert_eq!(verdict.note.is_none(), counts, "{verdict:?}");
        }
    }

    #[test]
    fn a_block_holds_whatever_it_calls_itself() {
        let id = "7";
        let here = "http://10.0.0.5:80";
        let there = "http://10.0.0.6:80";
        for (name, announced, now, source_trusted, blocked) in [
            ("pantry", "pantry", at("", there), false, true),
            ("pantry", "pantry", at("", there), true, true),
            ("larder", "larder", at(id, there), false, true),
            ("larder", "larder", at(id, there), true, true),
            ("larder", "larder", at("8", here), false, true),
            ("larder", "larder", at("8", here), true, false),
            ("pantry-1", "pantry", at("8", there), false, true),
            ("larder", "larder", at("8", there), false, false),
        ] {
            let rulings = rulings(Decision::Blocked, at(id, here));
            let announced = announced.parse().unwrap();
            let verdict = judge(
                &rulings,
                &name.parse().unwrap(),
                Some(&now),
                Some(&announced),
                source_trusted,
            );
            assert_eq!(
                verdict.decision == Some(Decision::Blocked),
                blocked,
                "{name} {now} {source_trusted}"
            );
        }
    }

    #[test]
    fn an_origin_is_where_is_connected_to() {
        let target = |url: &str, dial: Option<&str>| {
            let dial = dial.map(|dial| dial.parse().unwrap());
            Target::from(HttpTarget {
                dial,
                ..HttpTarget::at(url.parse().unwrap())
            })
        };
        for (url, dial, expected) in [
            ("http://LocalHost/x", None, "http://localhost:80"),
            ("http://[::1]:7/", None, "http://localhost:7"),
            ("http://127.0.0.2:7/", None, "http://127.0.0.2:7"),
            (
                "https://box.local/",
                Some("10.0.0.5:81"),
                "https://10.0.0.5:81",
            ),
            (
                "http://box.local/",
                Some("[fe80::1%2]:81"),
                "http://[fe80::1%2]:81",
            ),
        ] {
            assert_eq!(target(url, dial).origin(), expected);
        }
    }
}
