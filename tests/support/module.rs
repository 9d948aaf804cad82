//! Modules: real programs in Python (`module.py`), started at a free port, with what a test wants
//! them to offer.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use callsheet::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Starting an interpreter takes a tenth of a second; on a busy machine some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// One module. Ended when it is dropped.
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    folder: TempDir,
    token: Option<String>,
    running: Option<Child>,
}

impl Module {
    /// Starts one with these tools.
    pub(crate) async fn start(name: &str, tools: &[Value]) -> Self {
        Self::guarded(name, tools, None).await
    }

    /// The same, which wants a token.
    pub(crate) async fn guarded(name: &str, tools: &[Value], token: Option<&str>) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let folder = tempfile::tempdir().unwrap();
        let mut module = Self {
            name: name.to_owned(),
            address,
            folder,
            token: token.map(str::to_owned),
            running: None,
        };
        module.offer(tools);
        module.run().await;
        module
    }

    /// Offers these tools from now on.
    pub(crate) fn offer(&self, tools: &[Value]) {
        let manifest = json!({"module_name": self.name, "description": format!("Plays {}", self.name), "tools": tools});
        let new = self.folder.path().join("new.json");
        std::fs::write(&new, manifest.to_string()).unwrap();
        std::fs::rename(new, self.folder.path().join("manifest.json")).unwrap();
    }

    /// Answers again at its port.
    pub(crate) async fn run(&mut self) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/module.py");
        let mut command = Command::new("python3");
        command
            .arg(program)
            .arg(self.folder.path().join("manifest.json"));
        command.args(["--port", &self.address.port().to_string()]);
        command.args(self.token.iter().flat_map(|token| ["--token", token]));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let out = child.stdout.take().unwrap();
        self.running = Some(child);
        let line = tokio::task::spawn_blocking(move || {
            let (sender, received) = mpsc::sync_channel(1);
            std::thread::spawn(move || {
                let mut line = String::new();
                let read = BufReader::new(out).read_line(&mut line);
                let _ = sender.send(read.map(|_| line));
            });
            received
                .recv_timeout(PATIENCE)
                .expect("it says where it listens")
                .unwrap()
        });
        self.address
            .set_port(line.await.unwrap().trim().parse().expect("a port"));
    }

    /// Ends; afterwards its port is refused.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Names it in `[modules]`.
    pub(crate) fn configure(&self, config: &mut Config) {
        let url = format!("http://{}", self.address).parse().unwrap();
        config
            .modules
            .services
            .insert(self.name.parse().unwrap(), url);
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A tool that takes anything and asks this permission.
pub(crate) fn tool(name: &str, permission: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "parameters": [], "required_permission": permission})
}

/// The four modules of the worked example, by name, each with its tools and what they ask.
pub(crate) const EXAMPLE: [(&str, &[(&str, &str)]); 4] = [
    (
        "research",
        &[
            ("research.web_search", "guest"),
            ("research.fetch_webpage", "guest"),
        ],
    ),
    (
        "file_manager",
        &[
            ("file_manager.create_document", "guest"),
            ("file_manager.delete_file", "user"),
        ],
    ),
    (
        "code_executor",
        &[
            ("code_executor.run_python", "user"),
            ("code_executor.run_shell", "admin"),
        ],
    ),
    ("scheduler", &[("scheduler.add_job", "admin")]),
];

/// Starts them.
pub(crate) async fn example() -> Vec<Module> {
    let start = EXAMPLE.iter().map(|(name, tools)| async move {
        let tools: Vec<Value> = tools
            .iter()
            .map(|(name, permission)| tool(name, permission))
            .collect();
        Module::start(name, &tools).await
    });
    futures_util::future::join_all(start).await
}
