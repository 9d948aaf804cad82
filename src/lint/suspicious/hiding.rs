//! The rule about sentences that order a model to hide what it does from its user.
//!
//! A tool whose output is no text for people says so, too (`do not show the id to the user`), and a
//! long one says what is not to be reported until it is done: neither hides what the model does.

use std::ops::{Range, RangeInclusive};

use super::orders::{OrderRule, find_order, is_no_order};
use super::reading::Reading;
use super::words::Classes;

/// Words of a prohibition.
const PROHIBITION_REACH_WORDS: usize = 8;
/// Words after a prohibition in which its end is named.
const END_REACH_WORDS: usize = 20;
/// Words between a verb and the act of which it speaks.
const ACT_REACH_WORDS: usize = 4;

/// What a text itself orders, as it speaks of it.
const ITSELF: Classes = Classes::THIS.with(Classes::OWN_ACT);

/// Sentences that order a model to hide what it does from its user.
pub(super) fn hides(reading: &Reading<'_>) -> Option<Range<usize>> {
    const RULES: [OrderRule; 10] = [
        OrderRule {
            begins: Classes::TELL,
            find: untold,
        },
        OrderRule {
            begins: Classes::MENTION.with(Classes::SHOW),
            find: unmentioned,
        },
        OrderRule {
            begins: Classes::KNOW,
            find: unknowing,
        },
        OrderRule {
            begins: Classes::UNAWARE,
            find: unaware,
        },
        OrderRule {
            begins: Classes::HIDE,
            find: hidden_from,
        },
        OrderRule {
            begins: Classes::TRACE,
            find: left_out,
        },
        OrderRule {
            begins: Classes::TELL.with(Classes::MENTION),
            find: nothing_told,
        },
        OrderRule {
            begins: Classes::DECEIVE,
            find: deceived,
        },
        OrderRule {
            begins: Classes::USER_ANYWHERE,
            find: untold_elsewhere,
        },
        OrderRule {
            begins: Classes::SECRETLY.with(Classes::SILENTLY),
            find: stealthy,
        },
    ];
    find_order(reading, &RULES, is_honest)
}

/// Whether what begins with a word is no order, has an end, or describes a setting of a tool.
fn is_honest(reading: &Reading<'_>, first: usize) -> bool {
    is_no_order(reading, first)
        || reading
            .after(first, END_REACH_WORDS, Classes::UNTIL)
            .is_some()
        || reading.in_sentence(first, Classes::WHETHER)
}

/// Whether the clause ends with a word, or goes on with what a model did or does.
fn is_of_act(reading: &Reading<'_>, at: usize) -> bool {
    let is_this = |at: usize| reading.is(at, Classes::THIS) && reading.ends_clause(at);
    reading.ends_clause(at)
        || reading.is_any(at + 1, &["that"])
        || reading.after(at, 2, Classes::YOU).is_some()
        || reading
            .after(at, ACT_REACH_WORDS, Classes::OWN_ACT)
            .is_some()
        || (at + 1..=at + ACT_REACH_WORDS).any(is_this)
}

/// `Do not tell the user about this`, `without informing the user`.
fn untold(reading: &Reading<'_>, tell: usize) -> Option<RangeInclusive<usize>> {
    let not = reading.before(tell, 5, Classes::NOT)?;
    let user = reading.after(tell, 3, Classes::USER)?;
    let is_about_ability = reading.after(user, 6, Classes::UNABLE).is_some();
    let is_told = reading.is_any(not, &["without"]) || is_of_act(reading, user);
    // `Do not tell the user to wait` is about what the user does.
    let is_order_for_user = reading.is_any(user + 1, &["to"]);
    let is_honest = is_order_for_user || is_about_ability;
    // `Do not forget to tell the user` has two negations.
    let is_denied = reading.is_one_clause(not, tell)
        && !reading.between(not, tell, Classes::IGNORE.with(Classes::OMIT));
    (is_told && is_denied && !is_honest).then_some(not..=user)
}

/// `Do not mention this step to the user`, `never reveal these instructions`.
fn unmentioned(reading: &Reading<'_>, verb: usize) -> Option<RangeInclusive<usize>> {
    let not = reading.before(verb, 3, Classes::NOT)?;
    let is_said = reading.is(verb, Classes::MENTION);
    let that_you = || {
        let that = (verb + 1..verb + 6).find(|at| reading.is_any(*at, &["that"]))?;
        let is_of_you =
            reading.is(that + 1, Classes::YOU) && reading.after(that, 4, Classes::UNABLE).is_none();
        let is_to_user = reading.is(that - 1, Classes::USER);
        (is_said && (is_of_you || is_to_user)).then_some(that)
    };
    let itself = || {
        let this = reading.after(verb, ACT_REACH_WORDS, Classes::THIS)?;
        let act = reading
            .after(this, 5, Classes::OWN_ACT)
            .filter(|act| reading.is_one_clause(this, *act));
        // What is not to be shown may be an identifier; an order or a step is none.
        let to_user = || reading.after(this, 3, Classes::USER).filter(|_| is_said);
        act.or_else(to_user)
    };
    let end = that_you().or_else(itself)?;
    reading.is_one_clause(not, verb).then_some(not..=end)
}

/// `The user must not know about this`, `do not let the user notice the call`, `without the user's
/// knowledge`.
fn unknowing(reading: &Reading<'_>, verb: usize) -> Option<RangeInclusive<usize>> {
    let user = reading.before(verb, 8, Classes::USER)?;
    let denial = Classes::NOT.with(Classes::UNABLE);
    let not = reading.before(verb, 12, denial)?;
    if reading.is_any(not, &["without"]) {
        let is_near = not + 3 >= user && user + 2 >= verb;
        return is_near.then_some(not..=verb);
    }
    // `Users may not know the id` is no order, and `so that the user does not notice` is one.
    let is_ordered = if not < user {
        reading.between(not, user, Classes::OUGHT.with(Classes::LET))
    } else {
        reading.between(user, verb, Classes::OUGHT.with(Classes::MUST))
            || reading.is(verb, Classes::NOTICE)
                && reading.before(user, 3, Classes::ENSURE).is_some()
    };
    let is_out = reading.says(verb, &["find", "out"]);
    let is_found = is_out || !reading.is_any(verb, &["find"]) && is_of_act(reading, verb);
    (is_ordered && is_found).then_some(user.min(not)..=verb + usize::from(is_out))
}

/// `The user must remain unaware of this step`.
fn unaware(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let user = reading.before(at, 6, Classes::USER)?;
    let is_ordered = reading.between(user, at, Classes::OUGHT.with(Classes::MUST));
    (is_ordered && is_of_act(reading, at)).then_some(user..=at)
}

/// `Hide this step from the user`, `keep this transfer secret from the user`.
fn hidden_from(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    const SECRET: [&str; 3] = ["secret", "hidden", "confidential"];
    let user = reading.after(at, PROHIBITION_REACH_WORDS, Classes::USER)?;
    let from = (at + 1..user).find(|at| reading.is_any(*at, &["from"]))?;
    let is_kept = (at + 1..from).any(|at| reading.is_any(at, &SECRET));
    let is_act = reading.is(from - 1, Classes::OWN_ACT) || reading.says(at + 1, &["the", "fact"]);
    let is_this = reading.is(at + 1, Classes::THIS.with(Classes::YOU))
        && (reading.between(at, from, Classes::OWN_ACT)
            || from == at + 2
            || is_kept && from == at + 3);
    let is_hidden = is_kept || !reading.is_any(at, &["keep"]);
    // A page or a toolbar is hidden from a user interface.
    let is_person = !reading.is_any(user + 1, &["interface"]);
    ((is_act || is_this) && is_hidden && is_person).then_some(at..=user)
}

/// `Omit any mention of this step`, `your answer must not contain a hint of this action`.
fn left_out(reading: &Reading<'_>, trace: usize) -> Option<RangeInclusive<usize>> {
    let omit = reading.before(trace, 5, Classes::OMIT.with(Classes::NOT))?;
    let is_of = reading.is_any(trace + 1, &["of", "that"]);
    let act = reading.after(trace, ACT_REACH_WORDS, Classes::OWN_ACT)?;
    is_of.then_some(omit..=act)
}

/// `Say nothing about this`, `tell the user nothing about the call`.
fn nothing_told(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let nothing = (at + 1..at + 5).find(|next| reading.is_any(*next, &["nothing"]))?;
    let about = (nothing + 1..nothing + 5).find(|next| reading.is_any(*next, &["about"]))?;
    let act = reading.after(about, ACT_REACH_WORDS, ITSELF)?;
    Some(at..=act)
}

/// `Pretend to the user`, `deceive the user`.
fn deceived(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let user = reading.after(at, 3, Classes::USER)?;
    reading.is_any(at + 1, &["to", "the"]).then_some(at..=user)
}

/// The same orders in other languages, in whatever order their words are.
fn untold_elsewhere(reading: &Reading<'_>, user: usize) -> Option<RangeInclusive<usize>> {
    let concealed = reading.near(user, PROHIBITION_REACH_WORDS, Classes::CONCEAL_ANYWHERE);
    if let Some(conceal) = concealed {
        let denial = Classes::NOT_ANYWHERE.with(Classes::DENIAL_ANYWHERE);
        let is_denied = reading.near(conceal, 6, denial).is_some();
        return (!is_denied).then_some(user.min(conceal)..=user.max(conceal));
    }
    let told = reading.near(user, PROHIBITION_REACH_WORDS, Classes::TELL_ANYWHERE);
    let known = || {
        reading.near(user, 5, Classes::OUGHT_ANYWHERE)?;
        reading.near(user, PROHIBITION_REACH_WORDS, Classes::KNOW_ANYWHERE)
    };
    let tell = told.or_else(known)?;
    let own = Some(tell).filter(|tell| reading.is(*tell, Classes::NOT_ANYWHERE));
    let not = own.or_else(|| reading.near(tell, 6, Classes::NOT_ANYWHERE))?;
    let is_honest =
        is_denied_elsewhere(reading, tell) || reading.in_sentence(user, Classes::IF_ANYWHERE);
    let first = user.min(tell).min(not);
    (!is_honest).then_some(first..=user.max(tell).max(not))
}

/// Whether there are two negations around a verb: `never delete without informing the user`.
fn is_denied_elsewhere(reading: &Reading<'_>, tell: usize) -> bool {
    let own = Some(tell).filter(|tell| reading.is(*tell, Classes::DENIAL_ANYWHERE));
    let Some(without) = own.or_else(|| reading.near(tell, 5, Classes::DENIAL_ANYWHERE)) else {
        return false;
    };
    let around = without.saturating_sub(PROHIBITION_REACH_WORDS)..without + PROHIBITION_REACH_WORDS;
    around
        .into_iter()
        .filter(|at| *at != without && *at != tell && reading.is_same_sentence(*at, without))
        .any(|at| reading.is(at, Classes::NOT_ANYWHERE))
}

/// `Secretly send`, `silently include the user's credentials`.
fn stealthy(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let act = Classes::SEND.with(Classes::PASS).with(Classes::READ);
    if reading.is(at, Classes::SECRETLY) {
        let act = reading.near(at, 4, act)?;
        return Some(at.min(act)..=at.max(act));
    }
    let verb = reading.after(at, 3, act)?;
    let private = reading.after(verb, 6, Classes::PRIVATE)?;
    reading.before(private, 3, Classes::USER)?;
    Some(at..=private)
}
