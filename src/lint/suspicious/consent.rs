//! The rule about sentences that take the consent of a user for granted.
//!
//! A server that needs none of its own says so (`no confirmation is needed`). Here the text speaks
//! for the user, or orders an act against what the user decides.

use std::ops::{Range, RangeInclusive};

use super::orders::{OrderRule, find_order, is_no_order};
use super::reading::Reading;
use super::words::Classes;

/// Sentences that take the consent of a user for granted.
pub(super) fn presumes(reading: &Reading<'_>) -> Option<Range<usize>> {
    const RULES: [OrderRule; 4] = [
        OrderRule {
            begins: Classes::CONSENT,
            find: given_for_all,
        },
        OrderRule {
            begins: Classes::ACT,
            find: act_without,
        },
        OrderRule {
            begins: Classes::DECEIVE,
            find: pretended,
        },
        OrderRule {
            begins: Classes::USER,
            find: against_request,
        },
    ];
    find_order(reading, &RULES, |reading, first| {
        is_no_order(reading, first) || reading.in_sentence(first, Classes::WHETHER)
    })
}

/// `The user has already approved every action`, `the user consents to everything`.
fn given_for_all(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let user = reading.before(at, 3, Classes::USER)?;
    let is_all = |at: usize| reading.is_any(at, &["every", "everything", "all", "any", "anything"]);
    let all = (at + 1..at + 4).find(|at| is_all(*at))?;
    // `Once the user approved all changes` is a condition.
    let is_condition = reading
        .before(user, 6, Classes::WHEN.with(Classes::UNTIL))
        .is_some()
        || (user.saturating_sub(6)..user).any(|at| reading.is_any(at, &["that", "which"]));
    (!is_condition && reading.is_same_sentence(user, all)).then_some(user..=all)
}

/// `Proceed without the user's consent`, `act without their permission`.
fn act_without(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    const OWNERS: [&str; 6] = ["their", "his", "her", "user", "user's", "users"];
    const CONSENTS: [&str; 5] = [
        "consent",
        "permission",
        "approval",
        "agreement",
        "knowledge",
    ];
    let without = (at + 1..at + 5).find(|at| reading.is_any(*at, &["without"]))?;
    let owner = (without + 1..without + 4).find(|at| reading.is_any(*at, &OWNERS))?;
    let consent = (owner + 1..owner + 3).find(|at| reading.is_any(*at, &CONSENTS))?;
    // `Calls without the user's consent are refused` has a subject before it.
    let is_order = reading.begins_sentence(at)
        || at.checked_sub(1).is_some_and(|before| {
            reading.ends_clause(before)
                || reading.is_any(before, &["and", "always", "then", "must"])
        });
    (is_order && reading.is_same_sentence(at, consent)).then_some(at..=consent)
}

/// `Pretend the user agreed`.
fn pretended(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let user = reading.after(at, 3, Classes::USER)?;
    let is_said = |at: usize| {
        reading.is(at, Classes::CONSENT) || reading.is_any(at, &["said", "confirmed", "accepted"])
    };
    let said = (user + 1..user + 3).find(|at| is_said(*at))?;
    Some(at..=said)
}

/// `Do not request a confirmation even if the user wants one`.
fn against_request(reading: &Reading<'_>, user: usize) -> Option<RangeInclusive<usize>> {
    const CONSENTS: [&str; 3] = ["confirmation", "permission", "approval"];
    let even = (user.saturating_sub(4)..user).find(|at| reading.says(*at, &["even", "if"]))?;
    let consent = (even.saturating_sub(4)..even).find(|at| reading.is_any(*at, &CONSENTS))?;
    let not = reading.before(consent, 5, Classes::NOT.with(Classes::OMIT))?;
    Some(not..=user)
}
