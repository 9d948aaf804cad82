//! The daemon's binary over a configuration file that changes while it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use serde_json::{Value, json};

use super::command::{Home, Running, json as read, until};

/// A scenario that counts who asks it.
pub(crate) struct Counted {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl Counted {
    /// Offers tools of these names for an hour.
    pub(crate) fn offering(scenario: &str, tools: &[&str]) -> Self {
        let tools: Vec<Value> = tools
            .iter()
            .map(|name| {
                json!({"name": name, "description": "Does it", "parameters": {"type": "object", "properties": {}},
                    "metadata": {"enabled_by_default": true}})
            })
            .collect();
        let manifest = json!({"protocol_version": "1.0", "scenario": {"name": scenario, "version": "1.0.0",
            "description": "Says what the test says"}, "tools": tools, "categories": []});
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&asked);
        let body = manifest.to_string();
        thread::spawn(move || {
            for stream in server.incoming().map_while(Result::ok) {
                answer(stream, &body, &counts);
            }
        });
        Self { url, asked }
    }

    /// How many requests there were.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Its entry in the configuration.
    pub(crate) fn entry(&self, name: &str) -> String {
        format!(
            "[[scenarios]]\nname = \"{name}\"\nurl = \"{}\"\nprotocol = \"tool-discovery\"\n",
            self.url
        )
    }
}

fn answer(mut stream: std::net::TcpStream, body: &str, counts: &AtomicUsize) {
    use std::io::{BufRead as _, BufReader, Write as _};
    let mut head = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    if head.next().is_none() {
        return;
    }
    let _ = head.find(String::is_empty);
    counts.fetch_add(1, Ordering::SeqCst);
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncache-control: max-age=3600\r\nconnection: close\r\n";
    // Whoever has gone needs no answer.
    let _ = write!(stream, "{head}content-length: {length}\r\n\r\n{body}");
}

/// What every file of these tests begins with: nothing else than the list is looked at.
pub(crate) const HEAD: &str = "server.listen = \"127.0.0.1:0\"\ndiscovery.vrooli.enabled = false\n";

/// A file of these entries.
pub(crate) fn file(entries: &[String]) -> String {
    format!("{HEAD}{}", entries.concat())
}

/// Replaces the file as careful editors and package managers do: by renaming another one over it.
pub(crate) fn replace(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(&aside, path).unwrap();
}

/// A daemon over a configuration file of its own.
pub(crate) struct Following {
    pub(crate) home: Home,
    pub(crate) path: PathBuf,
    pub(crate) daemon: Running,
}

impl Following {
    pub(crate) fn start(text: &str) -> Self {
        let home = Home::new();
        let path = home.write("callsheet.toml", text);
        let following = Self {
            daemon: home.serve(&[]),
            home,
            path,
        };
        // It answers before it begins to follow the file.
        until("the file is followed", || {
            following.configuration()["file"].is_string()
        });
        following
    }

    pub(crate) fn json(&self, target: &str) -> Value {
        read(std::str::from_utf8(&self.daemon.get(target).1).unwrap())
    }

    /// What `/readyz` says of the configuration.
    pub(crate) fn configuration(&self) -> Value {
        self.json("/readyz")["configuration"].clone()
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        let list = self.json("/api/v1/tools");
        list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn until_tools(&self, expected: &[&str]) {
        until(&format!("the tools are {expected:?}"), || {
            self.tools() == expected
        });
    }

    /// Waits until another configuration was put in force so many times.
    pub(crate) fn until_reloads(&self, times: u64) {
        until(&format!("{times} reloads"), || {
            self.configuration()["reloads"] == times
        });
    }

    pub(crate) fn until_refused(&self, refused: bool) -> Value {
        until(&format!("refused: {refused}"), || {
            self.configuration()["refused"].is_null() != refused
        });
        self.configuration()
    }

    pub(crate) fn health(&self, scenario: &str) -> Value {
        self.json(&format!("/api/v1/scenarios/{scenario}"))
    }

    pub(crate) fn findings(&self, code: &str) -> Vec<Value> {
        self.json(&format!("/api/v1/findings?code={code}"))["findings"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Ends the daemon: everything that it logged.
    pub(crate) fn log(mut self) -> String {
        self.daemon.signal("TERM");
        let (code, log) = self.daemon.ended();
        assert_eq!(code, Some(0), "{log}");
        log
    }
}
