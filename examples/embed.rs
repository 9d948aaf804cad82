//! The daemon inside a program: its own tools beside those of every scenario that is configured,
//! served to agents.
//!
//! `cargo run --example embed` listens on a free port until Ctrl-C.

use std::convert::Infallible;

use callsheet::provide::ToolDefinition;
use callsheet::{Callsheet, config, native::NativeTools, runtime::Clock};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut config = config::Config::for_state(folder.path().join("state.db"));
    config.scenarios = vec![config::StaticScenario {
        name: "library".parse()?,
        target: callsheet::model::Target::at("http://127.0.0.1:8123".parse()?),
        protocol: None,
        sleep_after: None,
    }];
    let host = ToolDefinition::new("host_name", "Tells the name of this machine")?;
    let about = NativeTools::new("machine", "Knows this machine", Clock::system())?
        .tool(host, |_: Value| async {
            Ok::<_, Infallible>(json!(std::env::var("HOSTNAME").ok()))
        });

    let app = Callsheet::builder(config).native(about).start().await?;
    app.stop_on_signal()?;
    app.serve(TcpListener::bind("127.0.0.1:0").await?).await?;
    app.finish().await;
    Ok(())
}
