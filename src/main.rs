//! The `callsheet` command.

fn main() {}
