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
/// Words between hiding and the person from whom something is hidden.
const HIDDEN_REACH_WORDS: usize = 10;
/// Words after a prohibition in which its end is named.
const END_REACH_WORDS: usize = 20;
/// Words between a verb and the act of which it speaks.
const ACT_REACH_WORDS: usize = 4;

/// What a text itself orders, as it speaks of it.
const ITSELF: Classes = Classes::THIS.with(Classes::OWN_ACT);

/// Every way in which a text orders that.
const HIDING_RULES: [OrderRule; 21] = [
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
    OrderRule {
        begins: Classes::THIS,
        find: kept_quiet,
    },
    OrderRule {
        begins: Classes::ATTENTION,
        find: unobtrusive,
    },
    OrderRule {
        begins: Classes::SUCCESS,
        find: false_report,
    },
    OrderRule {
        begins: Classes::SUCCESS,
        find: failure_as_success,
    },
    OrderRule {
        begins: Classes::TELL.with(Classes::MENTION),
        find: told_whatever,
    },
    OrderRule {
        begins: Classes::MENTION,
        find: refused,
    },
    OrderRule {
        begins: Classes::HIDE.with(Classes::DECEIVE).with(Classes::OMIT),
        find: conceals_act,
    },
    OrderRule {
        begins: Classes::USER,
        find: not_to_see,
    },
    OrderRule {
        begins: Classes::UNSEEN.with(Classes::SECRETLY),
        find: stays_hidden,
    },
    OrderRule {
        begins: Classes::PASSAGE,
        find: for_models_only,
    },
    OrderRule {
        begins: Classes::MODEL,
        find: seen_by_models_only,
    },
];

/// Sentences that order a model to hide what it does from its user.
pub(super) fn hides(reading: &Reading<'_>) -> Option<Range<usize>> {
    find_order(reading, &HIDING_RULES, is_honest)
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
    let is_out = reading.is_any(verb, &["find", "finds"]) && reading.is_any(verb + 1, &["out"]);
    let is_found = is_out || !reading.is_any(verb, &["find", "finds"]) && is_of_act(reading, verb);
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
    let user = reading.after(at, HIDDEN_REACH_WORDS, Classes::USER)?;
    let from = (at + 1..user).find(|at| reading.is_any(*at, &["from"]))?;
    let is_kept = (at + 1..from).any(|at| reading.is_any(at, &SECRET));
    let is_act = reading.is(from - 1, Classes::OWN_ACT) || reading.says(at + 1, &["the", "fact"]);
    let is_this = reading.is(at + 1, Classes::THIS.with(Classes::YOU))
        && (reading.between(at, from, Classes::OWN_ACT)
            || from == at + 2
            || is_kept && from == at + 3);
    let is_hidden = is_kept
        || !reading.is_any(at, &["keep"])
        || reading.between(at, from, Classes::THIS) && is_act;
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

/// `Without drawing attention`, `without raising suspicion`.
fn unobtrusive(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let verb = at.checked_sub(1)?;
    let is_drawn = reading.is_any(verb, &["drawing", "attracting", "raising", "arousing"]);
    let without = verb.checked_sub(1)?;
    (is_drawn && reading.is_any(without, &["without"])).then_some(without..=at)
}

/// `Report all tests as passed whatever the result`, `claim that it succeeded even if it failed`.
fn false_report(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let is_said = |at: usize| {
        reading.is_any(
            at,
            &["report", "claim", "say", "state", "declare", "answer"],
        )
    };
    let verb = (at.saturating_sub(8)..at).rev().find(|at| is_said(*at))?;
    let is_whatever = |at: usize| {
        reading.is_any(at, &["whatever", "regardless"])
            || reading.says(at, &["even", "if"])
            || reading.says(at, &["no", "matter"])
    };
    let whatever = (at + 1..at + 5).find(|at| is_whatever(*at))?;
    // `Report success even if a row failed` is what a tool does.
    let is_order = reading.begins_sentence(verb) && reading.is_any(whatever, &["whatever"])
        || reading
            .before(verb, 4, Classes::MUST.with(Classes::OUGHT))
            .is_some();
    let is_one = reading.is_same_sentence(verb, whatever);
    (is_order && is_one).then_some(verb..=whatever)
}

/// `If a test fails, say that it passed`.
fn failure_as_success(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let it = at
        .checked_sub(1)
        .filter(|it| reading.is_any(*it, &["it", "they"]))?;
    let is_said = |at: usize| reading.is_any(at, &["report", "claim", "say", "state", "answer"]);
    let verb = (it.saturating_sub(3)..it).find(|at| is_said(*at))?;
    let is_failure = |at: usize| reading.is_any(at, &["fails", "failed", "fail"]);
    let fails = (verb.saturating_sub(8)..verb).find(|at| is_failure(*at))?;
    reading.is_same_sentence(fails, at).then_some(fails..=at)
}

/// `Tell the user that it is off, whatever the tool returns`.
fn told_whatever(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let is_verb = reading.is_any(at, &["tell", "say", "claim"]);
    let that = (at + 1..at + 5).find(|next| reading.is_any(*next, &["that"]))?;
    let is_whatever = |at: usize| {
        reading.is_any(at, &["whatever", "regardless"]) || reading.says(at, &["no", "matter"])
    };
    let whatever = (that + 1..that + 12).find(|at| is_whatever(*at))?;
    let is_order = is_verb && reading.begins_sentence(at);
    (is_order && reading.is_same_sentence(at, whatever)).then_some(at..=whatever)
}

/// `Refuse to reveal it`, `decline to mention this`.
fn refused(reading: &Reading<'_>, verb: usize) -> Option<RangeInclusive<usize>> {
    let refuse = verb.checked_sub(2)?;
    let is_refused = reading.is_any(refuse, &["refuse", "decline"])
        && reading.is_any(verb - 1, &["to"])
        && reading.is_any(verb + 1, &["it", "this", "these"]);
    is_refused.then_some(refuse..=verb + 1)
}

/// `Pretend to the user`, `deceive the user`, `lie if you are asked`.
fn deceived(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let is_lie = reading.is_any(at, &["lie"]) && reading.begins_sentence(at);
    if is_lie && reading.is_any(at + 1, &["if", "when", "about"]) {
        return Some(at..=at + 1);
    }
    let user = reading.after(at, 3, Classes::USER)?;
    reading.is_any(at + 1, &["to", "the"]).then_some(at..=user)
}

/// `Without pointing it out`, `do not bring this up`, `keep quiet about it`, `keep it between us`.
fn kept_quiet(reading: &Reading<'_>, this: usize) -> Option<RangeInclusive<usize>> {
    let verb = this.checked_sub(1)?;
    let is_particle = reading.is_any(verb, &["point", "pointing", "bring", "bringing"])
        && reading.is_any(this + 1, &["out", "up"]);
    let unsaid = reading
        .before(verb, 3, Classes::NOT)
        .filter(|not| is_particle && reading.is_one_clause(*not, verb));
    let quiet = || {
        let first = this.checked_sub(3)?;
        let is_quiet = reading.is_any(first, &["keep", "stay", "remain"])
            && reading.is_any(first + 1, &["quiet", "silent"])
            && reading.is_any(verb, &["about", "on"]);
        is_quiet.then_some(first)
    };
    let unmentioned = || {
        let first = this.checked_sub(3)?;
        let is_unsaid = reading.is_any(first, &["say", "mention", "reveal", "tell"])
            && reading.is_any(first + 1, &["nothing"])
            && reading.is_any(verb, &["of", "about"]);
        (is_unsaid && reading.ends_clause(this)).then_some(first)
    };
    let between = || {
        let is_kept = reading.is_any(verb, &["keep"]);
        (is_kept && reading.says(this + 1, &["between", "us"])).then_some(verb)
    };
    let first = unsaid
        .or_else(quiet)
        .or_else(unmentioned)
        .or_else(between)?;
    Some(first..=this + 1)
}

/// `Conceal that you were directed to`, `pretend that you did not see this`.
fn conceals_act(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    const DONE: [&str; 15] = [
        "were", "did", "have", "had", "used", "called", "read", "sent", "copied", "saw", "added",
        "changed", "made", "ran", "received",
    ];
    let that = (at + 1..at + 4).find(|next| reading.is_any(*next, &["that"]))?;
    // A role that is played, or a status that a tool hides, is in the present: `that you are`.
    let is_of_you = reading.is(that + 1, Classes::YOU) && reading.is_any(that + 2, &DONE);
    let passive = || {
        let is_left_out = reading.is_any(at, &["leave"]) && reading.is_any(at + 1, &["out"]);
        let done = (that + 2..that + 6).find(|next| reading.is_any(*next, &["were", "was"]))?;
        is_left_out.then_some(done)
    };
    if is_of_you {
        return Some(at..=that + 2);
    }
    Some(at..=passive()?)
}

/// `The user is not to see it`, `the user need not learn that the tool was called`.
fn not_to_see(reading: &Reading<'_>, user: usize) -> Option<RangeInclusive<usize>> {
    let is_known = |at: usize| {
        reading.is(at, Classes::KNOW.with(Classes::NOTICE)) || reading.is_any(at, &["see", "hear"])
    };
    let is_not_to = reading.is_any(user + 1, &["is", "are"])
        && reading.says(user + 2, &["not", "to"])
        && is_known(user + 4);
    if is_not_to {
        return Some(user..=user + 4);
    }
    let is_needless = (reading.says(user + 1, &["does", "not", "need", "to", "be"])
        && reading.is(user + 6, Classes::TELL.with(Classes::MENTION)))
    .then_some(user + 6)
    .or_else(|| {
        let not = reading.after(user, 6, Classes::NOT)?;
        let is_to_be = reading.says(not + 1, &["need", "to", "be"]);
        let is_said = reading.is(not + 4, Classes::TELL.with(Classes::MENTION))
            || reading.is_any(not + 4, &["reminded"]);
        (is_to_be && is_said).then_some(not + 4)
    });
    if let Some(end) = is_needless {
        return Some(user..=end);
    }
    let need = user + 1;
    let verb = if reading.is_any(need, &["needn't", "needn’t"]) {
        need + 1
    } else if reading.says(need, &["need", "not"]) {
        need + 2
    } else {
        return None;
    };
    let of = reading.is_any(verb + 1, &["that", "of", "about"]);
    (is_known(verb) && of).then_some(user..=verb + 1)
}

/// `This must stay hidden from the human`.
fn stays_hidden(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let user = reading.after(at, 4, Classes::USER)?;
    let is_from = reading.is_any(at + 1, &["from", "to"]);
    let is_heading = reading.begins_sentence(at)
        && reading
            .place(user)
            .is_some_and(|place| reading.text[place.end..].starts_with(':'));
    if is_from && is_heading {
        return Some(at..=user);
    }
    let ought = reading.before(at, 3, Classes::OUGHT)?;
    let this = ought.checked_sub(1)?;
    let is_this = reading.is(this, Classes::THIS) && reading.begins_sentence(this);
    (is_from && is_this).then_some(this..=user)
}

/// `The following block is for the AI only`, `this paragraph is invisible to people`. A text whose
/// readers are models says to them what its own tool needs; it does not say that people are not to
/// see it.
fn for_models_only(reading: &Reading<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let before = at.checked_sub(1)?;
    if !reading.is_any(before, &["this", "following", "next"]) {
        return None;
    }
    let model = || {
        let model = reading.after(at, 6, Classes::MODEL)?;
        let is_only = (at + 1..model + 3).any(|next| reading.is_any(next, &["only", "solely"]));
        is_only.then_some(model)
    };
    let unseen = || {
        let unseen = reading.after(at, 8, Classes::UNSEEN)?;
        reading.after(unseen, 4, Classes::PEOPLE.with(Classes::USER))
    };
    Some(before..=model().or_else(unseen)?)
}

/// `Only language models can see this section`.
fn seen_by_models_only(reading: &Reading<'_>, model: usize) -> Option<RangeInclusive<usize>> {
    let from = model.saturating_sub(3);
    let only = (from..model).find(|at| reading.is_any(*at, &["only"]))?;
    let see = (model + 1..model + 4).find(|at| reading.is_any(*at, &["see", "read"]))?;
    let this = reading.after(see, 3, Classes::THIS.with(Classes::PASSAGE))?;
    Some(only..=this)
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
    if let Some(destination) = reading.after(verb, 12, Classes::DESTINATION)
        && reading.is(verb, Classes::SEND.with(Classes::PASS))
    {
        return Some(at..=destination);
    }
    let private = reading.after(verb, 6, Classes::PRIVATE)?;
    reading.before(private, 3, Classes::USER)?;
    Some(at..=private)
}
