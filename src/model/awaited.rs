//! What a scenario has not answered for some time, for people and programs.

use std::time::Duration;

use super::finding::quoted_excerpt;

/// After this time without an answer a scenario is reported, although it may still answer: a
/// program that is downloaded at its first start is slow, and not dead.
pub const REPORTED_AFTER: Duration = Duration::from_secs(10);

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// The request that has no answer, such as `initialize`.
    pub answer_to: &'static str,
    /// For how long there was no answer, to this request and to those before it.
    pub waited: Duration,
    /// What it wrote, if it is a program that was started here.
    pub output: Option<ProgramOutput>,
}

/// Lines that a program wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramOutput {
    /// The first lines on standard output that are no messages.
    pub stdout: Vec<String>,
    /// The last lines on standard error: what it waits for stands there.
    pub stderr: Vec<String>,
}

impl Awaited {
    /// The reason, in one sentence without a full stop. While it holds, only its time changes: the
    /// requests of a greeting follow each other, and are data.
    pub fn message(&self) -> String {
        let mut message = format!("no answer for {}", elapsed(self.waited));
        let Some(output) = &self.output else {
            return message;
        };
        if output.stdout.is_empty() && output.stderr.is_empty() {
            message.push_str("; it has written no line on stdout or stderr");
        }
        if !output.stdout.is_empty() {
            let lines = quoted(&output.stdout);
            message.extend([
                "; it printed ",
                &lines,
                " on stdout, where only JSON-RPC messages may be",
            ]);
        }
        if !output.stderr.is_empty() {
            message.extend(["; it wrote ", &quoted(&output.stderr), " on stderr"]);
        }
        message
    }

    /// The next step.
    pub fn hint(&self) -> &'static str {
        match &self.output {
            Some(output) if !output.stdout.is_empty() => {
                "let the program write its log to standard error; if it is no MCP server, correct its command"
            }
            Some(_) => {
                "if it is being downloaded, wait; else run its command by hand, and see whether it is an MCP server"
            }
            None => "see whether it answers at all, and what it waits for",
        }
    }
}

/// A time as people read it.
fn elapsed(waited: Duration) -> String {
    match waited.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Lines as they are shown.
fn quoted(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| quoted_excerpt(line)).collect();
    lines.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_is_recognised_as_such() {
        let output = ProgramOutput {
            stdout: vec!["Welcome!".into()],
            stderr: vec!["a".into(), "b".into()],
        };
        let waited = Duration::from_millis(10_400);
        let awaited = Awaited {
            answer_to: "initialize",
            waited,
            output: Some(output),
        };
        assert_eq!(
            awaited.message(),
            "no answer for 10 s; it printed `Welcome!` on stdout, where only JSON-RPC messages may be; \
             it wrote `a` | `b` on stderr"
        );
        let silent = Awaited {
            output: Some(ProgramOutput::default()),
            ..awaited
        };
        assert_eq!(
            silent.message(),
            "no answer for 10 s; it has written no line on stdout or stderr"
        );
    }

    #[test]
    fn a_long_wait_is_shown_in_minutes() {
        let message = |seconds| {
            Awaited {
                answer_to: "initialize",
                waited: Duration::from_secs(seconds),
                output: None,
            }
            .message()
        };
        assert_eq!(
            [message(119), message(120), message(485)].join(", "),
            "no answer for 119 s, no answer for 2 min, no answer for 8 min"
        );
    }
}
