//! The sample scenarios, built with [`callsheet_provide`] like any scenario written in Rust.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use anyhow::Context as _;
use callsheet_provide::{
    CategoryDefinition, InvalidDefinition, Parameter, Registry, RegistryConfig, StaticProvider,
    ToolDefinition,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::super::CommandError;
use crate::model::ScenarioName;
use crate::runtime::{Clock, StopTrigger, Tasks};

/// How long an answer of the samples may be used: short, so that the demo moves.
const MAX_AGE: std::time::Duration = std::time::Duration::from_secs(2);

/// A sample scenario that can be stopped and started again at the same address.
pub(super) struct SampleScenario {
    pub(super) name: ScenarioName,
    pub(super) url: Url,
    registry: Registry,
    running: StopTrigger,
}

/// Starts all three: two that offer a tool of the same name, and one that goes away and comes back.
pub(super) async fn start(
    clock: Clock,
    tasks: &Tasks,
) -> Result<[SampleScenario; 3], CommandError> {
    let built = || -> Result<[StaticProvider; 3], InvalidDefinition> {
        Ok([notes()?, mail()?, weather()?])
    };
    let [notes, mail, weather] = built()
        .map_err(anyhow::Error::from)
        .context("a sample is not well-formed")?;
    Ok([
        SampleScenario::start("notes", "Keeps short notes", notes, clock, tasks).await?,
        SampleScenario::start("mail", "Reads and writes letters", mail, clock, tasks).await?,
        SampleScenario::start(
            "weather",
            "Tells the weather of a place",
            weather,
            clock,
            tasks,
        )
        .await?,
    ])
}

impl SampleScenario {
    async fn start(
        name: &str,
        description: &str,
        provider: StaticProvider,
        clock: Clock,
        tasks: &Tasks,
    ) -> Result<Self, CommandError> {
        let config = RegistryConfig {
            scenario_name: name.into(),
            scenario_version: "1.0.0".into(),
            scenario_description: description.into(),
            max_age: MAX_AGE,
            ..RegistryConfig::default()
        };
        let registry =
            Registry::with_clock(config, move || clock.wall()).map_err(anyhow::Error::from)?;
        registry.register(provider);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?)
            .parse()
            .map_err(anyhow::Error::from)?;
        let running = serve(listener, &registry, tasks);
        Ok(Self {
            name: name.parse().map_err(anyhow::Error::from)?,
            url,
            registry,
            running,
        })
    }

    /// Stops answering.
    pub(super) fn stop(&self) {
        self.running.stop();
    }

    /// Answers again at the same address.
    pub(super) async fn restart(&mut self, tasks: &Tasks) -> std::io::Result<()> {
        let port = self.url.port().unwrap_or_default();
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        self.running = serve(listener, &self.registry, tasks);
        Ok(())
    }
}

fn serve(listener: TcpListener, registry: &Registry, tasks: &Tasks) -> StopTrigger {
    let (trigger, stop) = StopTrigger::new();
    let registry = registry.clone();
    tasks.spawn(async move {
        if let Err(error) =
            callsheet_provide::serve(listener, registry, async move { stop.wait().await }).await
        {
            tracing::warn!(%error, "a sample scenario stopped");
        }
    });
    trigger
}

fn notes() -> Result<StaticProvider, InvalidDefinition> {
    let add = ToolDefinition::new("add_note", "Writes a note down")?
        .category("notes")
        .parameter(
            "text",
            Parameter::string("What to write").required().min_length(1),
        )
        .parameter(
            "tags",
            Parameter::array("Labels to find it by", Parameter::string("One label")),
        )
        .example(
            "A thing to buy",
            json!({ "text": "two lemons", "tags": ["shopping"] }),
        );
    let search = ToolDefinition::new("search", "Finds notes by their words")?
        .category("notes")
        .parameter(
            "words",
            Parameter::string("Words that the note holds").required(),
        )
        .idempotent(true);
    let wipe = ToolDefinition::new("delete_all_notes", "Deletes every note for good")?
        .category("notes")
        .enabled_by_default(false)
        .requires_approval(true);
    let shelf = SampleItems::new([json!({ "text": "two lemons", "tags": ["shopping"] })]);
    let writes = shelf.clone();
    let wiped = shelf.clone();
    Ok(StaticProvider::new("notes")
        .runs(add, move |note| done(json!({ "notes": writes.put(note) })))
        .runs(search, move |given| done(shelf.find(&given, &["text"])))
        .runs(wipe, move |_| done(json!({ "deleted": wiped.clear() })))
        .category(CategoryDefinition::new("notes", "Notes")?.icon("pencil")))
}

fn mail() -> Result<StaticProvider, InvalidDefinition> {
    let search = ToolDefinition::new("search", "Finds letters by sender, subject or words")?
        .category("mail")
        .parameter(
            "words",
            Parameter::string("Words that the letter holds").required(),
        )
        .parameter(
            "from",
            Parameter::string("Address of the sender").format("email"),
        )
        .idempotent(true);
    let send = ToolDefinition::new("send_mail", "Sends a letter")?
        .category("mail")
        .parameter(
            "to",
            Parameter::string("Address of the receiver")
                .format("email")
                .required(),
        )
        .parameter("subject", Parameter::string("In a few words"))
        .parameter("body", Parameter::string("The letter").required())
        .requires_approval(true);
    let shelf = SampleItems::new([
        json!({ "from": "ada@example.org", "subject": "Lunch", "body": "At noon, at the lake?" }),
    ]);
    let outbox = shelf.clone();
    Ok(StaticProvider::new("mail")
        .runs(search, move |given| {
            done(shelf.find(&given, &["from", "subject", "body"]))
        })
        .runs(send, move |letter| {
            done(json!({ "letters": outbox.put(letter) }))
        })
        .category(CategoryDefinition::new("mail", "Mail")?.icon("envelope")))
}

fn weather() -> Result<StaticProvider, InvalidDefinition> {
    let forecast = ToolDefinition::new("get_forecast", "Tells the weather of the next days")?
        .category("weather")
        .parameter("place", Parameter::string("Name of a town").required())
        .parameter(
            "days",
            Parameter::integer("How many days")
                .minimum(1)
                .maximum(10)
                .default_value(3),
        )
        .idempotent(true);
    Ok(StaticProvider::new("weather")
        .runs(forecast, |given| done(forecast_of(&given)))
        .category(CategoryDefinition::new("weather", "Weather")?.icon("cloud")))
}

/// Made up, but the same for the same place.
fn forecast_of(given: &Value) -> Value {
    const SKIES: [&str; 4] = ["sunny", "cloudy", "rainy", "windy"];
    let days = usize::try_from(given["days"].as_u64().unwrap_or(3))
        .unwrap_or(3)
        .min(10);
    let start = given["place"].as_str().map_or(0, str::len);
    json!({ "place": given["place"], "days": SKIES.iter().cycle().skip(start).take(days).collect::<Vec<_>>() })
}

fn done(result: Value) -> Ready<Result<Value, Infallible>> {
    ready(Ok(result))
}

/// The things that a sample stores while the demo runs.
#[derive(Clone)]
struct SampleItems(Arc<Mutex<Vec<Value>>>);

impl SampleItems {
    /// Things on it at most; a demo that is called all day keeps the first.
    const LISTED_THINGS_MAX: usize = 1000;

    fn new(first: [Value; 1]) -> Self {
        Self(Arc::new(Mutex::new(first.into())))
    }

    fn things(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock()
    }

    /// Puts a thing on it, and answers how many there are.
    fn put(&self, thing: Value) -> usize {
        let mut things = self.things();
        if things.len() < Self::LISTED_THINGS_MAX {
            things.push(thing);
        }
        things.len()
    }

    /// The things with these words in one of their members.
    fn find(&self, given: &Value, members: &[&str]) -> Value {
        let words = given["words"].as_str().unwrap_or_default().to_lowercase();
        let has = |thing: &&Value| {
            members
                .iter()
                .filter_map(|member| thing[*member].as_str())
                .any(|text| text.to_lowercase().contains(&words))
        };
        json!({ "found": self.things().iter().filter(has).collect::<Vec<_>>() })
    }

    /// Empties it, and answers how many there were.
    fn clear(&self) -> usize {
        std::mem::take(&mut *self.things()).len()
    }
}
