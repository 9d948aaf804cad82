//! The limits of calls: the rate of each tool, the permits of each scenario, and the circuit
//! breakers of both.
//!
//! The memory is bounded by the number of tools and scenarios. A scope, which a client may choose
//! freely, takes an entry for a minute. Calls are not sent here.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::Instant;

use super::ExecuteError;
use super::breaker::{BreakerStatus, ClockReading, ToolBreakerStatus};
use super::circuits::{AttemptEnd, OpenCircuits, ScenarioCircuits};
use super::held::CallerKey;
use crate::config;
use crate::model::{ScenarioName, ToolId, ViewTool};
use crate::runtime::Clock;

/// How many rates are tracked at once. Calls beyond share one limiter.
const RATES: usize = 10_000;
/// After this time without a call, a limiter is in the same state as a new one.
const MINUTE: Duration = Duration::from_secs(60);
/// One caller may have so many eighths of the permits of a scenario, rounded up, so that its calls
/// of a tool that does not answer leave some to others.
const CALLER_EIGHTHS: usize = 6;
/// One of so many permits of a scenario, and of so many places for calls that wait, is for requests
/// with full access only, so that they are served whatever other clients hold.
const OPERATORS_DIVISOR: usize = 8;
/// From this number of callers of a scenario on, those without a call there are forgotten.
const MOST_IDLE_CALLERS: usize = 64;
/// From this number of scenarios on, those without a call under way are forgotten.
const SCENARIO_LIMITERS_MAX: usize = 4096;

/// All limits of one daemon.
#[derive(Debug)]
pub(super) struct CallLimiter {
    clock: Clock,
    epoch: Instant,
    rates: Mutex<HashMap<RateKey, Rate>>,
    limiters: RwLock<HashMap<ScenarioName, Arc<ScenarioLimiter>>>,
    waiting: AtomicUsize,
}

/// Whose calls of a tool are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RateKey {
    tool: ToolId,
    /// Operators have a count of their own, so that clients never use it up.
    is_of_operator: bool,
    /// The conversation or profile. All calls without an entry of their own share the one
    /// without it.
    scope: Option<String>,
    per_minute: NonZeroU32,
}

#[derive(Debug)]
struct Rate {
    limiter: Arc<Limiter>,
    used: Instant,
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, Ticks, NoOpMiddleware<Duration>>;

/// The clock of the rate limiters: time since the start.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    clock: Clock,
    epoch: Instant,
}

impl governor::clock::Clock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.clock.now() - self.epoch
    }
}

/// The permits and the breakers of one scenario.
#[derive(Debug)]
pub(super) struct ScenarioLimiter {
    clock: Clock,
    places: Arc<Semaphore>,
    /// As many as calls without full access may have of them together.
    clients: Arc<Semaphore>,
    size: usize,
    callers: Mutex<KnownCallers>,
    circuits: Mutex<ScenarioCircuits>,
}

/// The callers that have a call under way or waiting, and some others: the next call of one that
/// calls again and again needs no new gates.
#[derive(Debug)]
struct KnownCallers {
    by_caller: HashMap<CallerKey, Arc<CallerCalls>>,
    fronts: HashMap<FrontKey, Arc<Front>>,
    /// With so many callers, those without a call are forgotten before another one is added.
    forget_at: usize,
}

/// A group of callers.
#[derive(Debug, PartialEq, Eq, Hash)]
enum FrontKey {
    /// Those of an access.
    Access(Arc<str>),
    /// Those of it that name this profile, or none.
    Profile(Arc<str>, Option<String>),
}

/// The calls of one caller.
#[derive(Debug)]
struct CallerCalls {
    /// As many as it may have permits.
    own: Arc<Semaphore>,
    front: Front,
}

/// The one place in front of the calls of a group that wait: the group competes with others by one
/// call at a time, so these get their permits in turn, however many of one of them wait.
#[derive(Debug)]
struct Front {
    place: Semaphore,
    /// The group that this one is a part of.
    within: Option<Arc<Front>>,
}

/// A permit. Dropping it lets the next call proceed.
#[derive(Debug)]
pub(super) struct CallPermit {
    _place: OwnedSemaphorePermit,
    /// Of all clients without full access, if its caller is one of them.
    _of_clients: Option<OwnedSemaphorePermit>,
    /// Of its caller.
    _own: OwnedSemaphorePermit,
    /// Keeps its caller known.
    _caller: Arc<CallerCalls>,
}

/// What a call of one caller takes a permit of, in this order.
struct CallerGates<'a> {
    caller: Arc<CallerCalls>,
    clients: Option<&'a Arc<Semaphore>>,
    places: &'a Arc<Semaphore>,
}

/// A waiting call, for as long as it waits.
struct QueueSlot<'a>(&'a AtomicUsize);

impl CallLimiter {
    pub(super) fn new(clock: Clock) -> Self {
        let rates = Mutex::default();
        let limiters = RwLock::default();
        Self {
            clock,
            epoch: clock.now(),
            rates,
            limiters,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Counts a call of a tool by this caller, or refuses it if there were too many in its scope in
    /// the last minute.
    pub(super) fn rate(&self, tool: &ViewTool, caller: &CallerKey) -> Result<(), ExecuteError> {
        // Some scenarios write zero if they set no limit.
        let Some(per_minute) = tool
            .tool
            .facts
            .rate_limit_per_minute
            .filter(|rate| *rate > 0)
        else {
            return Ok(());
        };
        let most = NonZeroU32::new(u32::try_from(per_minute).unwrap_or(u32::MAX))
            .unwrap_or(NonZeroU32::MAX);
        let limiter = self.limiter(&tool.id, caller, most);
        limiter.check().map_err(|until| {
            let now = governor::clock::Clock::now(&Ticks {
                clock: self.clock,
                epoch: self.epoch,
            });
            ExecuteError::RateLimited {
                id: tool.id.clone(),
                per_minute,
                wait: until.wait_time_from(now),
            }
        })
    }

    fn limiter(&self, id: &ToolId, caller: &CallerKey, most: NonZeroU32) -> Arc<Limiter> {
        let now = self.clock.now();
        let chat = caller.chat().map(|chat| format!("chat:{chat}"));
        let profile = || caller.profile().map(|profile| format!("profile:{profile}"));
        let mut rates = self.rates.lock();
        let mut key = RateKey {
            tool: id.clone(),
            is_of_operator: caller.may_use_operators_permits(),
            scope: chat.or_else(profile),
            per_minute: most,
        };
        if rates.len() >= RATES && !rates.contains_key(&key) {
            rates.retain(|_, rate| now - rate.used < MINUTE);
            if rates.len() >= RATES {
                key.scope = None;
            }
        }
        let ticks = Ticks {
            clock: self.clock,
            epoch: self.epoch,
        };
        let rate = rates.entry(key).or_insert_with(|| {
            let limiter = Arc::new(RateLimiter::direct_with_clock(
                Quota::per_minute(most),
                ticks,
            ));
            Rate { limiter, used: now }
        });
        rate.used = now;
        Arc::clone(&rate.limiter)
    }

    /// The limiter of a scenario, with as many permits as `rules` allow.
    pub(super) fn scenario_limiter(
        &self,
        scenario: &ScenarioName,
        rules: &config::CallsConfig,
    ) -> Arc<ScenarioLimiter> {
        let known = self.limiters.read().get(scenario).cloned();
        if let Some(limiter) = known.filter(|limiter| limiter.size == rules.concurrency) {
            return limiter;
        }
        let mut limiters = self.limiters.write();
        if limiters.len() >= SCENARIO_LIMITERS_MAX {
            // A call under way or waiting holds its limiter too.
            limiters.retain(|_, limiter| Arc::strong_count(limiter) > 1);
        }
        let limiter = limiters
            .entry(scenario.clone())
            .or_insert_with(|| Arc::new(ScenarioLimiter::new(rules.concurrency, self.clock)));
        if limiter.size != rules.concurrency {
            // Calls under way keep their permits, so for a moment there may be more than the new
            // limit.
            *limiter = Arc::new(ScenarioLimiter::new(rules.concurrency, self.clock));
        }
        Arc::clone(limiter)
    }

    /// Waits for a permit for this caller, at most as long and with as many other calls as `rules`
    /// allow. Cancel-safe: a call that stops waiting makes room.
    pub(super) async fn acquire(
        &self,
        scenario: &ScenarioName,
        limiter: &ScenarioLimiter,
        caller: &CallerKey,
        rules: &config::CallsConfig,
    ) -> Result<CallPermit, ExecuteError> {
        let gates = limiter.gates_of(caller);
        if let Ok(permit) = gates.try_acquire() {
            return Ok(permit);
        }
        let busy = |reason| ExecuteError::Busy {
            scenario: scenario.clone(),
            reason,
        };
        let most = if caller.may_use_operators_permits() {
            rules.queue
        } else {
            open_to_clients(rules.queue)
        };
        let _waiting = QueueSlot::begin(&self.waiting, most)
            .ok_or_else(|| busy("too many others wait already"))?;
        match tokio::time::timeout(rules.queue_timeout, gates.acquire()).await {
            // The semaphores are never closed, so the inner error cannot occur.
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(busy("its turn did not come within `calls.queue_timeout`")),
        }
    }

    /// How many calls wait for a permit.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many permits of a scenario are in use.
    pub(super) fn under_way(&self, scenario: &ScenarioName) -> usize {
        let limiters = self.limiters.read();
        limiters.get(scenario).map_or(0, |limiter| {
            limiter.size - limiter.places.available_permits()
        })
    }

    /// The state of a scenario's breaker, by a route of this generation if one is given.
    pub(super) fn breaker(
        &self,
        scenario: &ScenarioName,
        generation: Option<u64>,
    ) -> Option<BreakerStatus> {
        let limiters = self.limiters.read();
        limiters
            .get(scenario)?
            .circuits
            .lock()
            .of_scenario(generation)
    }

    /// The state of the breakers of a scenario's tools that failed, by a route of this generation
    /// if one is given.
    pub(super) fn tool_breakers(
        &self,
        scenario: &ScenarioName,
        generation: Option<u64>,
    ) -> Vec<ToolBreakerStatus> {
        let limiters = self.limiters.read();
        limiters
            .get(scenario)
            .map(|limiter| limiter.circuits.lock().of_tools(generation))
            .unwrap_or_default()
    }

    /// How many breakers are not closed, of those for the generation that a scenario's route has.
    pub(super) fn open_circuits(
        &self,
        generation: impl Fn(&ScenarioName) -> Option<u64>,
    ) -> OpenCircuits {
        let limiters = self.limiters.read();
        let each = limiters
            .iter()
            .map(|(scenario, limiter)| limiter.circuits.lock().open(generation(scenario)));
        each.fold(OpenCircuits::default(), OpenCircuits::and)
    }
}

impl ScenarioLimiter {
    fn new(size: usize, clock: Clock) -> Self {
        let now = ClockReading {
            mono: clock.now(),
            wall: clock.wall(),
        };
        let callers = KnownCallers {
            by_caller: HashMap::new(),
            fronts: HashMap::new(),
            forget_at: MOST_IDLE_CALLERS,
        };
        let circuits = Mutex::new(ScenarioCircuits::new(now));
        let places = Arc::new(Semaphore::new(size));
        let clients = Arc::new(Semaphore::new(open_to_clients(size)));
        Self {
            clock,
            places,
            clients,
            size,
            callers: Mutex::new(callers),
            circuits,
        }
    }

    fn now(&self) -> ClockReading {
        ClockReading {
            mono: self.clock.now(),
            wall: self.clock.wall(),
        }
    }

    /// Whether all permits that this caller may have are in use.
    pub(super) fn is_full_for(&self, caller: &CallerKey) -> bool {
        self.gates_of(caller).are_full()
    }

    /// What a call of this caller takes a permit of.
    fn gates_of(&self, caller: &CallerKey) -> CallerGates<'_> {
        let clients = (!caller.may_use_operators_permits()).then_some(&self.clients);
        CallerGates {
            caller: self.calls_of(caller),
            clients,
            places: &self.places,
        }
    }

    /// The calls of this caller, with as many permits as it may have.
    fn calls_of(&self, caller: &CallerKey) -> Arc<CallerCalls> {
        let mut callers = self.callers.lock();
        if let Some(calls) = callers.by_caller.get(caller) {
            return Arc::clone(calls);
        }
        callers.forget_idle();
        let calls = Arc::new(CallerCalls {
            own: Arc::new(Semaphore::new((self.size * CALLER_EIGHTHS).div_ceil(8))),
            front: Front::within(callers.front_of_profile(caller)),
        });
        callers.by_caller.insert(caller.clone(), Arc::clone(&calls));
        calls
    }

    /// Whether a call of this tool by a route of this generation would pass the breakers.
    pub(super) fn would_pass(&self, id: &ToolId, generation: u64) -> Result<(), ExecuteError> {
        let circuits = self.circuits.lock();
        if circuits.are_closed(&id.tool, generation) {
            return Ok(());
        }
        circuits.would_pass(id, generation, self.now())
    }

    /// Lets a call of this tool pass the breakers. Its result must be reported to
    /// [`ScenarioLimiter::ended`].
    pub(super) fn pass(
        &self,
        id: &ToolId,
        generation: u64,
        rules: &config::CallsConfig,
    ) -> Result<(), ExecuteError> {
        let mut circuits = self.circuits.lock();
        if circuits.are_closed(&id.tool, generation) {
            return Ok(());
        }
        circuits.pass(id, generation, rules.breaker_open, self.now())
    }

    /// A call of this tool that passed ended.
    pub(super) fn ended(
        &self,
        tool: &Arc<str>,
        generation: u64,
        end: AttemptEnd,
        rules: &config::CallsConfig,
    ) {
        let mut circuits = self.circuits.lock();
        if end == AttemptEnd::Answered && circuits.are_closed(tool, generation) {
            return circuits.forget_failures(tool);
        }
        circuits.ended(tool, generation, end, rules, self.now());
    }
}

impl KnownCallers {
    /// Forgets the callers without a call, if there are many.
    fn forget_idle(&mut self) {
        if self.by_caller.len() < self.forget_at {
            return;
        }
        // Those of profiles first: each holds that of its access.
        self.by_caller
            .retain(|_, calls| Arc::strong_count(calls) > 1);
        self.fronts.retain(|key, front| {
            matches!(key, FrontKey::Access(_)) || Arc::strong_count(front) > 1
        });
        self.fronts.retain(|_, front| Arc::strong_count(front) > 1);
        self.forget_at = (self.by_caller.len() * 2).max(MOST_IDLE_CALLERS);
    }

    /// The front of this caller's profile, which is within that of its access.
    fn front_of_profile(&mut self, caller: &CallerKey) -> Arc<Front> {
        let access = Arc::clone(caller.access());
        let profile = caller.profile().map(str::to_owned);
        let within = self.front(FrontKey::Access(Arc::clone(&access)), None);
        self.front(FrontKey::Profile(access, profile), Some(within))
    }

    fn front(&mut self, key: FrontKey, within: Option<Arc<Front>>) -> Arc<Front> {
        if let Some(front) = self.fronts.get(&key) {
            return Arc::clone(front);
        }
        let front = Arc::new(Front {
            place: Semaphore::new(1),
            within,
        });
        self.fronts.insert(key, Arc::clone(&front));
        front
    }
}

impl Front {
    fn within(group: Arc<Self>) -> Self {
        Self {
            place: Semaphore::new(1),
            within: Some(group),
        }
    }

    /// Whether a call of its group waits.
    fn is_taken(&self) -> bool {
        self.place.available_permits() == 0
    }

    /// This front and those that it is within, the smallest group first.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |front| front.within.as_deref())
    }
}

impl CallerGates<'_> {
    fn are_full(&self) -> bool {
        let own = &self.caller.own;
        let mut all = [own, self.places].into_iter().chain(self.clients);
        all.any(|gate| gate.available_permits() == 0)
    }

    /// A permit, if one is free now and no call of its groups waits before it.
    fn try_acquire(&self) -> Result<CallPermit, TryAcquireError> {
        let own = Arc::clone(&self.caller.own).try_acquire_owned()?;
        if self.caller.front.all().any(Front::is_taken) {
            return Err(TryAcquireError::NoPermits);
        }
        let of_clients = self
            .clients
            .map(|clients| Arc::clone(clients).try_acquire_owned())
            .transpose()?;
        let place = Arc::clone(self.places).try_acquire_owned()?;
        Ok(CallPermit {
            _place: place,
            _of_clients: of_clients,
            _own: own,
            _caller: Arc::clone(&self.caller),
        })
    }

    /// Waits for a permit: in turn among the conversations of its profile, that one among the
    /// profiles of its access, and that one among all. Cancel-safe.
    async fn acquire(self) -> Result<CallPermit, AcquireError> {
        let own = Arc::clone(&self.caller.own).acquire_owned().await?;
        let mut in_front = Vec::new();
        for front in self.caller.front.all() {
            in_front.push(front.place.acquire().await?);
        }
        let of_clients = match self.clients {
            Some(clients) => Some(Arc::clone(clients).acquire_owned().await?),
            None => None,
        };
        let place = Arc::clone(self.places).acquire_owned().await?;
        drop(in_front);
        Ok(CallPermit {
            _place: place,
            _of_clients: of_clients,
            _own: own,
            _caller: Arc::clone(&self.caller),
        })
    }
}

/// How many of these permits or places calls without full access may have together: all but an
/// eighth, or but one of fewer than eight. A single one is for all.
pub(super) fn open_to_clients(all: usize) -> usize {
    if all < 2 {
        all
    } else {
        all - (all / OPERATORS_DIVISOR).max(1)
    }
}

impl<'a> QueueSlot<'a> {
    /// Takes one more place in the queue, if there is room.
    fn begin(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let added = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now < most).then_some(now + 1)
        });
        added.is_ok().then(|| Self(count))
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
