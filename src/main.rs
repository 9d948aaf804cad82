//! The `callsheet` command: parse, run, exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    callsheet::cli::run(std::env::args_os())
}
