//! Rules about sentences that order a model to act against those that it works for.

use std::ops::Range;

use super::reading::Reading;
use super::words::Classes;

/// Words between an order and its object.
const OBJECT_REACH_WORDS: usize = 7;
/// The same in languages whose verb may come last.
const ANY_ORDER_REACH_WORDS: usize = 12;
/// Words after an object that still say which one is meant.
const AFTER_REACH_WORDS: usize = 4;
/// Words of a prohibition.
const PROHIBITION_REACH_WORDS: usize = 8;

/// Sentences that order a model to disregard what it was instructed: `Ignore all previous
/// instructions`, `This overrides your guidelines`. Which instructions are meant is what makes it
/// an attack: a careful server says to ignore any instructions within a result, and an honest
/// option ignores case, errors or rules.
pub(super) fn disregards(reading: &Reading<'_>) -> Option<Range<usize>> {
    let order = Classes::IGNORE
        .with(Classes::IGNORE_LAST)
        .with(Classes::OVERRIDE)
        .with(Classes::NOT)
        .with(Classes::NOT_ANYWHERE);
    for at in reading.having(order) {
        let found = ignored_instructions(reading, at)
            .or_else(|| outranked(reading, at))
            .or_else(|| ignored_user(reading, at))
            .or_else(|| ignored_before_verb(reading, at))
            .or_else(|| ignored_limits(reading, at))
            .or_else(|| ignored_everything(reading, at));
        if let Some(end) = found.filter(|_| !is_spoken_of(reading, at)) {
            return reading.span(at, end);
        }
    }
    let which = Classes::PRIOR.with(Classes::YOU).with(Classes::SYSTEM);
    for at in reading.having(Classes::INSTRUCTIONS.with(Classes::LIMITS)) {
        let Some(which) = reading.near(at, 5, which) else {
            continue;
        };
        let not_applied = || {
            let not = reading.after(at, 5, Classes::NOT.with(Classes::UNABLE))?;
            let is_lifted = (not + 1..not + 3)
                .any(|next| reading.is_any(next, &["apply", "count", "hold", "matter", "bind"]));
            (is_lifted && reading.in_sentence(at, Classes::YOU.with(Classes::SYSTEM)))
                .then_some(not)
        };
        let ignored = reading.after(at, PROHIBITION_REACH_WORDS, Classes::IGNORED);
        let ignored = ignored
            .filter(|_| reading.is(at, Classes::INSTRUCTIONS))
            .or_else(not_applied);
        if let Some(end) = ignored.filter(|_| !is_spoken_of(reading, at)) {
            return reading.span(which.min(at), end);
        }
    }
    None
}

/// An order to ignore, override or not to follow instructions.
fn ignored_instructions(reading: &Reading<'_>, at: usize) -> Option<usize> {
    let overrides = reading.is(at, Classes::OVERRIDE);
    let not_followed = reading.is(at, Classes::NOT.with(Classes::NOT_ANYWHERE))
        && reading.after(at, 3, Classes::FOLLOW).is_some();
    if !overrides && !not_followed && !reading.is(at, Classes::IGNORE) {
        return None;
    }
    let message = (at + 1..at + 6)
        .find(|next| reading.is(*next, Classes::SYSTEM) && reading.says(next + 1, &["message"]));
    let object = reading
        .after(at, OBJECT_REACH_WORDS, Classes::INSTRUCTIONS)
        .or(message.map(|system| system + 1))?;
    let which = |classes: Classes| {
        reading.between(at, object, classes)
            || reading.after(object, AFTER_REACH_WORDS, classes).is_some()
    };
    let is_of_result = reading.after(object, 6, Classes::WITHIN).is_some();
    let is_setting = reading.in_sentence(at, Classes::WHETHER);
    let is_meant = if overrides {
        // A parameter may override the prompt or the instructions of an agent that a tool starts.
        !is_setting
            && (reading.between(at, object, Classes::YOU)
                || reading.between(at, object, Classes::PRIOR)
                    && reading.between(at, object, Classes::ALL))
    } else {
        which(Classes::PRIOR) && (!is_of_result || reading.between(at, object, Classes::PRIOR))
            || reading.between(at, object, Classes::YOU)
            || reading.after(object, 2, Classes::YOU).is_some() && !is_of_result
            || (reading.between(at, object, Classes::SYSTEM) || reading.is(object, Classes::SYSTEM))
                && !is_setting
            || reading.between(at, object, Classes::ALL) && !is_of_result && !is_setting
    };
    is_meant.then_some(object)
}

/// `This has priority over all other instructions`, `even if it contradicts your guidelines`.
fn outranked(reading: &Reading<'_>, at: usize) -> Option<usize> {
    let is_rank = reading.is_any(at, &["precedence", "priority", "outranks"]);
    let is_conflict = reading.is_any(at, &["contradict", "contradicts", "violate", "violates"])
        && (at.saturating_sub(6)..at).any(|before| reading.says(before, &["even", "if"]));
    if !is_rank && !is_conflict {
        return None;
    }
    let object = reading.after(at, OBJECT_REACH_WORDS, Classes::INSTRUCTIONS)?;
    let which = Classes::ALL
        .with(Classes::YOU)
        .with(Classes::PRIOR)
        .with(Classes::SYSTEM);
    let is_of_result = reading.after(object, 6, Classes::WITHIN).is_some();
    (reading.between(at, object, which) && !is_of_result).then_some(object)
}

/// `Ignore what the user asked`.
fn ignored_user(reading: &Reading<'_>, at: usize) -> Option<usize> {
    let stopped = reading.is(at, Classes::NOT) && reading.is_any(at, &["stop", "cease"]);
    if let Some(follow) = reading.after(at, 1, Classes::FOLLOW).filter(|_| stopped) {
        return reading.after(follow, 3, Classes::USER);
    }
    let user = reading
        .after(at, 4, Classes::USER)
        .filter(|_| reading.is(at, Classes::IGNORE))?;
    let wish = [
        "asked", "asks", "says", "said", "wants", "wanted", "request", "requests", "wishes",
    ];
    let is_bare = reading.says(at, &["disregard"])
        && (reading.begins_sentence(user + 1) || user + 1 == reading.words.len());
    let wished = (user + 1..user + 3)
        .find(|next| reading.is_any(*next, &wish))
        .or(is_bare.then_some(user))?;
    (!reading.in_sentence(at, Classes::WHETHER)).then_some(wished)
}

/// The same in languages whose verb comes last.
fn ignored_before_verb(reading: &Reading<'_>, at: usize) -> Option<usize> {
    if !reading.is(at, Classes::IGNORE_LAST) {
        return None;
    }
    let object = reading.near(at, ANY_ORDER_REACH_WORDS, Classes::INSTRUCTIONS)?;
    let which = Classes::PRIOR
        .with(Classes::YOU)
        .with(Classes::ALL)
        .with(Classes::SYSTEM);
    reading
        .near(object, ANY_ORDER_REACH_WORDS, which)
        .map(|_| object)
}

/// An order to ignore the limits of a model. Rules and policies are much else, too.
fn ignored_limits(reading: &Reading<'_>, at: usize) -> Option<usize> {
    let is_ignored = reading.is(at, Classes::IGNORE);
    if !is_ignored && !reading.is(at, Classes::OVERRIDE) {
        return None;
    }
    let object = reading.after(at, OBJECT_REACH_WORDS, Classes::LIMITS)?;
    let has = |classes: Classes| reading.between(at, object, classes);
    let on_you = (object + 1..object + 7).any(|next| reading.says(next, &["on", "you"]));
    let is_of_model = has(Classes::YOU) || is_ignored && (has(Classes::SYSTEM) || on_you);
    let is_all = is_ignored && has(Classes::ALL) && has(Classes::PRIOR);
    let is_setting = reading.in_sentence(at, Classes::WHETHER);
    ((is_of_model || is_all) && !is_setting).then_some(object)
}

/// `Forget everything you were told`, `Disregard all of the above`.
fn ignored_everything(reading: &Reading<'_>, at: usize) -> Option<usize> {
    if !reading.is(at, Classes::IGNORE) {
        return None;
    }
    let all = reading.after(at, 2, Classes::ALL)?;
    let meant = (all + 1..all + 4).find(|at| {
        let above = reading.says(*at, &["above"])
            && (reading.begins_sentence(at + 1) || at + 1 == reading.words.len());
        above
            || reading.says(*at, &["you"])
                && reading
                    .after(*at, 2, Classes::KNOW.with(Classes::TELL))
                    .is_some()
            || reading.says(*at, &["you", "have", "been"])
            || reading.says(*at, &["you've", "been"])
            || reading.says(*at, &["the", "user", "said"])
            || reading.says(*at, &["the", "user", "says"])
            || reading.says(*at, &["you", "were", "told"])
            || reading.says(*at, &["before", "this"])
    });
    meant.filter(|_| !reading.in_sentence(at, Classes::WHETHER))
}

/// Sentences that give a model another role or other orders from now on. A description describes
/// a tool; only the model's own operator gives it a role.
pub(super) fn takes_over(reading: &Reading<'_>) -> Option<Range<usize>> {
    const PHRASES: [&[&str]; 22] = [
        &["from", "now", "on", "you", "are"],
        &["from", "now", "on", "you", "must"],
        &["from", "now", "on", "you", "should"],
        &["from", "now", "on", "you", "will", "act"],
        &["from", "now", "on", "you", "will", "obey"],
        &["from", "now", "on", "follow"],
        &["from", "now", "on", "obey"],
        &["you", "are", "now", "dan"],
        &["you", "are", "now", "unrestricted"],
        &["you", "are", "now", "in", "developer"],
        &["you", "are", "now", "in", "admin"],
        &["you", "are", "now", "in", "god"],
        &["you", "are", "now", "operating", "in"],
        &["you", "are", "now", "free"],
        &["you", "are", "now", "an", "unrestricted"],
        &["you", "are", "no", "longer", "bound"],
        &["you", "are", "no", "longer", "an"],
        &["you", "are", "no", "longer", "restricted"],
        &["your", "new", "instructions"],
        &["your", "new", "task", "is"],
        &["your", "real", "task", "is"],
        &["your", "true", "purpose", "is"],
    ];
    for at in reading.having(Classes::BEGINS) {
        let said = PHRASES.iter().find(|phrase| reading.says(at, phrase));
        if let Some(phrase) = said.filter(|_| !is_spoken_of(reading, at)) {
            return reading.span(at, at + phrase.len() - 1);
        }
        let role = || {
            let is_role = reading.says(at, &["you", "are", "now"]);
            reading.after(at + 2, 4, Classes::MODEL).filter(|_| is_role)
        };
        let orders = || {
            let span = reading.place(at + 1)?;
            let is_heading =
                at > 0 && reading.begins_sentence(at) && reading.says(at, &["new", "instructions"]);
            (is_heading && reading.text[span.end..].starts_with(':')).then_some(at + 1)
        };
        if let Some(end) = new_task(reading, at)
            .or_else(role)
            .or_else(orders)
            .filter(|_| !is_spoken_of(reading, at))
        {
            return reading.span(at, end);
        }
    }
    None
}

/// `Your primary objective is now to ...`.
fn new_task(reading: &Reading<'_>, at: usize) -> Option<usize> {
    const TASKS: [&str; 6] = ["objective", "goal", "task", "mission", "purpose", "role"];
    let task = (at + 1..at + 4)
        .find(|next| reading.is_any(*next, &TASKS))
        .filter(|_| reading.says(at, &["your"]))?;
    (task + 1..task + 3).find(|next| reading.says(*next, &["now"]))
}

/// Sentences that order a model to hide what it does from its user. A tool whose output is no text
/// for people says so, too (`do not show the id to the user`), and a long one says what is not to
/// be reported until it is done: neither hides what the model does.
pub(super) fn hides(reading: &Reading<'_>) -> Option<Range<usize>> {
    type Rule = fn(&Reading<'_>) -> Option<Range<usize>>;
    let rules: [Rule; 9] = [
        untold,
        unmentioned,
        unknowing,
        without_knowledge,
        hidden_from,
        left_out,
        pretended,
        untold_elsewhere,
        stealthy,
    ];
    rules.iter().find_map(|rule| rule(reading))
}

/// `Do not tell the user`, `without informing the user`.
fn untold(reading: &Reading<'_>) -> Option<Range<usize>> {
    for at in reading.having(Classes::NOT) {
        let told = reading.after(at, 5, Classes::TELL).and_then(|tell| {
            let user = reading.after(tell, 3, Classes::USER)?;
            let is_order_for_user = reading.says(user + 1, &["to"]);
            let is_about_ability = reading.after(user, 6, Classes::UNABLE).is_some();
            (!is_order_for_user && !is_about_ability).then_some(user)
        });
        let let_know = || {
            let user = reading.after(reading.after(at, 3, Classes::LET)?, 3, Classes::USER)?;
            reading.after(user, 3, Classes::KNOW)
        };
        let end = told.or_else(let_know);
        if let Some(end) = end.filter(|_| is_prohibition(reading, at)) {
            return reading.span(at, end);
        }
    }
    None
}

/// `Do not mention this step to the user`, `never reveal these instructions`.
fn unmentioned(reading: &Reading<'_>) -> Option<Range<usize>> {
    for at in reading.having(Classes::NOT) {
        let Some(verb) = reading.after(at, 3, Classes::MENTION.with(Classes::SHOW)) else {
            continue;
        };
        let user = reading.after(verb, 3, Classes::USER);
        let is_about_model = user
            .is_some_and(|user| reading.is_any(user + 1, &["that", "this", "what"]))
            || reading.says(verb + 1, &["that", "you"])
            || reading.says(verb + 1, &["that", "this"])
            || reading.is_any(verb, &["reveal", "disclose", "admit"])
                && reading.says(verb + 1, &["that"]);
        if is_about_model && reading.is(verb, Classes::MENTION) && is_prohibition(reading, at) {
            return reading.span(at, verb + 3);
        }
        let Some(object) = reading.after(verb, 4, Classes::ITSELF) else {
            continue;
        };
        let user = reading.after(verb, PROHIBITION_REACH_WORDS, Classes::USER);
        let is_shown = reading.is(verb, Classes::SHOW);
        // What is not to be shown may be an identifier; an order or a step is none.
        let is_own_act = reading
            .after(verb, PROHIBITION_REACH_WORDS, Classes::OWN_ACT)
            .is_some();
        let is_bare = reading.begins_sentence(object + 1)
            || object + 1 == reading.words.len()
            || reading.is(object + 1, Classes::USER)
            || reading.says(object + 1, &["to"])
            || reading.is_any(object + 1, &["in", "with"]);
        let is_hidden = is_own_act
            || !is_shown && is_bare && (user.is_some() || reading.begins_sentence(object + 1));
        if is_hidden && is_prohibition(reading, at) {
            return reading.span(at, user.unwrap_or(object));
        }
    }
    None
}

/// `The user must not know`, `the user should never be told`.
fn unknowing(reading: &Reading<'_>) -> Option<Range<usize>> {
    for user in reading.having(Classes::USER) {
        let unaware = (user + 1..user + 6).find(|at| reading.says(*at, &["unaware"]));
        if let Some(unaware) = unaware.filter(|at| {
            reading.is_any(
                at - 1,
                &["kept", "remain", "stay", "remains", "stays", "be"],
            )
        }) {
            return reading.span(user, unaware);
        }
        let in_the_dark = (user + 1..user + 6).find(|at| reading.says(*at, &["in", "the", "dark"]));
        if let Some(dark) = in_the_dark {
            return reading.span(user, dark + 2);
        }
        if let Some(end) =
            kept_from_knowing(reading, user).filter(|_| is_prohibition(reading, user))
        {
            return reading.span(user, end);
        }
        let not = reading.after(user, 4, Classes::NOT.with(Classes::UNABLE));
        let ought = reading.after(user, 3, Classes::OUGHT);
        let known = |not: usize| {
            let bothered = (not + 1..not + 4).find(|at| reading.is_any(*at, &["bothered"]));
            reading
                .after(not, 5, Classes::KNOW.with(Classes::TELL))
                .or(bothered)
        };
        let Some(verb) = not.and_then(known) else {
            continue;
        };
        // What a user need not know may be an identifier; what a user need not be informed of is an
        // act.
        let is_informed = reading.says(verb - 1, &["be"])
            && reading.is_any(verb, &["told", "informed", "notified", "aware", "bothered"])
            && (ends_clause(reading, verb) || reading.is_any(verb + 1, &ABOUT));
        let is_kept_from = ought.is_some()
            && (reading.begins_sentence(verb + 1)
                || verb + 1 == reading.words.len()
                || reading.after(verb, 4, Classes::ITSELF).is_some());
        if !is_informed && !is_kept_from {
            continue;
        }
        let is_plain_sight =
            reading.says(verb, &["see"]) && reading.after(verb, 3, Classes::ITSELF).is_none();
        if !is_plain_sight && is_prohibition(reading, verb) {
            return reading.span(user, verb);
        }
    }
    None
}

/// Words behind which stands what a person is not to know.
const ABOUT: [&str; 12] = [
    "about", "of", "that", "why", "which", "how", "what", "when", "this", "it", "anything", "with",
];

/// Whether a word is the last of its sentence.
fn ends_clause(reading: &Reading<'_>, at: usize) -> bool {
    at + 1 >= reading.words.len() || reading.begins_sentence(at + 1)
}

/// `Under no circumstances should the user learn about it`, `no need for the user to know of it`,
/// `this must stay invisible to the user`.
fn kept_from_knowing(reading: &Reading<'_>, user: usize) -> Option<usize> {
    let learnt = || {
        let not = reading.before(user, 6, Classes::NOT)?;
        let is_ought = reading.between(
            not,
            user,
            Classes::OUGHT.with(Classes::LET).with(Classes::MUST),
        );
        let verb = reading.after(user, 3, Classes::KNOW)?;
        (is_ought && reading.is_any(verb + 1, &["about", "of", "that", "this", "it"]))
            .then_some(verb)
    };
    let seen = || {
        const UNSEEN: [&str; 4] = ["invisible", "hidden", "secret", "visible"];
        let unseen = (user.saturating_sub(4)..user).find(|at| reading.is_any(*at, &UNSEEN))?;
        let ought = reading.before(unseen, 5, Classes::OUGHT)?;
        let is_denied =
            reading.between(ought, unseen, Classes::NOT) || reading.is(ought, Classes::NOT);
        let stays = ["stay", "remain", "kept", "keep"];
        let is_kept = (ought..unseen).any(|at| reading.is_any(at, &stays)) || is_denied;
        let is_itself = reading.before(ought, 3, Classes::ITSELF).is_some();
        let is_unseen = !reading.says(unseen, &["visible"]) || is_denied;
        (is_kept && is_itself && is_unseen).then_some(user)
    };
    let stays = || {
        let unseen = (user.saturating_sub(4)..user)
            .find(|at| reading.is_any(*at, &["invisible", "hidden", "secret"]))?;
        let kept = reading.is_any(unseen - unseen.min(1), &["stay", "remain"]);
        (kept && reading.before(unseen, 6, Classes::ITSELF).is_some()).then_some(user)
    };
    learnt().or_else(seen).or_else(stays)
}

/// `Without the user's knowledge`, `so that the user does not notice`, `behind the user's back`.
fn without_knowledge(reading: &Reading<'_>) -> Option<Range<usize>> {
    for user in reading.having(Classes::USER) {
        let unaware = reading
            .before(user, 2, Classes::NOT)
            .filter(|not| reading.says(*not, &["without"]))
            .and_then(|_| {
                let verb = reading.after(user, 2, Classes::KNOW)?;
                (!reading.says(verb, &["consent"])).then_some(verb)
            });
        let unnoticing = || {
            let not = reading.after(user, 2, Classes::NOT.with(Classes::UNABLE))?;
            let verb = reading.after(not, 2, Classes::KNOW)?;
            let is_found_out = reading.says(verb, &["find", "out"])
                || reading.says(verb, &["learn", "of"])
                || reading.says(verb, &["learn", "about"]);
            (is_found_out || reading.is_any(verb, &["notice", "suspect", "realize", "realise"]))
                .then_some(verb)
        };
        let behind = || {
            let is_behind = reading.says(user + 1, &["back"])
                && user > 1
                && reading.says(user - 2, &["behind"]);
            is_behind.then_some(user + 1)
        };
        if let Some(end) = unaware
            .or_else(unnoticing)
            .or_else(behind)
            .filter(|_| !is_spoken_of(reading, user))
        {
            return reading.span(user, end);
        }
    }
    None
}

/// `Hide this from the user`, `keep this step secret from the user`, `keep it between us`.
fn hidden_from(reading: &Reading<'_>) -> Option<Range<usize>> {
    for at in reading.having(Classes::HIDE) {
        let keeps = reading.says(at, &["keep"]);
        if keeps
            && (reading.says(at + 2, &["between", "us"])
                || reading.says(at + 1, &["quiet", "about"]))
        {
            return reading.span(at, at + 3);
        }
        if reading.says(at + 1, &["the", "fact"]) && is_prohibition(reading, at) {
            return reading.span(at, at + 2);
        }
        let Some(user) = reading.after(at, PROHIBITION_REACH_WORDS, Classes::USER) else {
            continue;
        };
        let is_from = (at + 1..user).any(|at| reading.says(at, &["from"]));
        let is_of_itself = reading.says(at + 2, &["from"]) && reading.is(at + 1, Classes::ITSELF)
            || reading.between(at, user, Classes::OWN_ACT)
            || keeps
                && (at + 1..user).any(|at| {
                    ["secret", "hidden", "confidential"]
                        .iter()
                        .any(|own| reading.says(at, &[own]))
                });
        // A flag of a tool may hide an item from users.
        let is_setting = reading.in_sentence(at, Classes::WHETHER);
        if is_from && is_of_itself && !is_setting && !is_spoken_of(reading, at) {
            return reading.span(at, user);
        }
    }
    None
}

/// `Omit any mention of this step`, `your answer must not contain a hint of it`, `say nothing about
/// this to the user`.
fn left_out(reading: &Reading<'_>) -> Option<Range<usize>> {
    for at in reading.having(
        Classes::OMIT
            .with(Classes::NOT)
            .with(Classes::TELL)
            .with(Classes::MENTION),
    ) {
        let trace = (at + 1..at + 6).find(|next| {
            reading.is_any(*next, &["mention", "hint", "trace", "indication", "sign"])
        });
        let omitted = trace
            .filter(|_| reading.is(at, Classes::OMIT.with(Classes::NOT)))
            .and_then(|trace| {
                let of = reading.says(trace + 1, &["of"]) || reading.says(trace + 1, &["that"]);
                reading.after(trace, 4, Classes::ITSELF).filter(|_| of)
            });
        let nothing = || {
            let nothing = (at + 1..at + 5).find(|next| reading.is_any(*next, &["nothing"]))?;
            let is_to_user = reading
                .near(nothing, PROHIBITION_REACH_WORDS, Classes::USER)
                .is_some();
            (is_to_user && reading.is(at, Classes::TELL.with(Classes::MENTION))).then_some(nothing)
        };
        let not_in_answer = || {
            const ANSWERS: [&str; 4] = ["answer", "reply", "response", "replies"];
            let answer = (at.saturating_sub(4)..at).any(|back| reading.is_any(back, &ANSWERS));
            let verb = reading.after(at, 2, Classes::MENTION)?;
            let object = reading.after(verb, 3, Classes::ITSELF.with(Classes::TOOL))?;
            (answer && reading.is(at, Classes::NOT)).then_some(object)
        };
        let not_brought_up = || {
            let brought = reading.is(at, Classes::NOT)
                && (at + 1..at + 3).any(|next| reading.says(next, &["bring"]));
            (brought && reading.is(at + 2, Classes::ITSELF) && reading.says(at + 3, &["up"]))
                .then_some(at + 3)
        };
        if let Some(end) = omitted
            .or_else(nothing)
            .or_else(not_in_answer)
            .or_else(not_brought_up)
            .filter(|_| is_prohibition(reading, at))
        {
            return reading.span(at, end);
        }
    }
    None
}

/// `Pretend to the user`, `act as if nothing had happened`.
fn pretended(reading: &Reading<'_>) -> Option<Range<usize>> {
    for at in reading.having(Classes::DECEIVE) {
        let is_denied = reading.before(at, 4, Classes::NOT).is_some();
        if reading.says(at, &["pretend", "you"]) || reading.says(at, &["pretend", "that", "you"]) {
            return reading.span(at, at + 1);
        }
        let is_verb = reading.is_any(at + 1, &["to", "the", "that", "your"]);
        let user = reading
            .after(at, 4, Classes::USER)
            .filter(|_| is_verb && !is_denied && !is_spoken_of(reading, at));
        if let Some(user) = user {
            return reading.span(at, user);
        }
    }
    for at in reading.having(Classes::TELL.with(Classes::MENTION)) {
        let outcomes = ["success", "successful", "succeeded", "fine", "failed", "ok"];
        let outcome = (at + 1..at + 9).find(|next| reading.is_any(*next, &outcomes));
        let is_lie = |outcome: usize| {
            (outcome + 1..outcome + 9).find(|next| {
                reading.is_any(*next, &["regardless", "anyway"])
                    || reading.says(*next, &["even", "if"])
                    || reading.says(*next, &["no", "matter"])
            })
        };
        let is_denied = reading.before(at, 3, Classes::NOT).is_some();
        if let Some(end) = outcome
            .and_then(is_lie)
            .filter(|_| !is_denied && reading.is_any(at, &["tell", "say", "report"]))
        {
            return reading.span(at, end);
        }
    }
    let happened = |at: &usize| (at + 2..at + 7).any(|next| reading.is_any(next, &["happened"]));
    let at = reading.having(Classes::WHEN).find(|at| {
        reading.says(*at, &["if"]) && *at > 0 && reading.says(at - 1, &["as"]) && happened(at)
    })?;
    reading.span(at - 1, at + 2)
}

/// The same orders in other languages, in whatever order their words are.
fn untold_elsewhere(reading: &Reading<'_>) -> Option<Range<usize>> {
    for user in reading.having(Classes::USER_ANYWHERE) {
        if let Some(conceal) =
            reading.near(user, PROHIBITION_REACH_WORDS, Classes::CONCEAL_ANYWHERE)
        {
            return reading.span(user, conceal);
        }
        let told = reading.near(user, PROHIBITION_REACH_WORDS, Classes::TELL_ANYWHERE);
        let known = || {
            reading.near(user, 5, Classes::OUGHT_ANYWHERE)?;
            reading.near(user, PROHIBITION_REACH_WORDS, Classes::KNOW_ANYWHERE)
        };
        let Some(tell) = told.or_else(known) else {
            continue;
        };
        let own = Some(tell).filter(|tell| reading.is(*tell, Classes::NOT_ANYWHERE));
        let Some(not) = own.or_else(|| reading.near(tell, 6, Classes::NOT_ANYWHERE)) else {
            continue;
        };
        if is_prohibition(reading, not) && !reading.in_sentence(user, Classes::IF_ANYWHERE) {
            return reading.span(user.min(tell).min(not), user.max(tell).max(not));
        }
    }
    None
}

/// `Secretly send`, `silently include the conversation`.
fn stealthy(reading: &Reading<'_>) -> Option<Range<usize>> {
    let act = Classes::SEND.with(Classes::PASS).with(Classes::READ);
    for at in reading.having(Classes::SECRETLY.with(Classes::SILENTLY)) {
        let done = at >= 2
            && reading.is_any(at - 2, &["do", "perform", "handle", "execute"])
            && reading.is_any(at - 1, &["this", "it", "that"]);
        let found = if done {
            Some(at - 2)
        } else if reading.is(at, Classes::SECRETLY) {
            reading.near(at, 4, act)
        } else {
            let verb = reading.after(at, 3, act);
            verb.and_then(|verb| {
                reading.after(
                    verb,
                    6,
                    Classes::PRIVATE
                        .with(Classes::DESTINATION)
                        .with(Classes::SECRET_FILE),
                )
            })
        };
        if let Some(end) = found.filter(|_| !is_spoken_of(reading, at)) {
            return reading.span(at, end);
        }
    }
    None
}

/// Whether it is an order without an end, and not one that is spoken of.
fn is_prohibition(reading: &Reading<'_>, at: usize) -> bool {
    reading.after(at, 20, Classes::UNTIL).is_none()
        && !is_spoken_of(reading, at)
        && !reading.in_sentence(at, Classes::WHETHER)
}

/// Whether the sentence speaks of such orders before it has one, as that of a scanner does.
pub(super) fn is_spoken_of(reading: &Reading<'_>, at: usize) -> bool {
    reading.before(at, 25, Classes::DETECT).is_some()
}
