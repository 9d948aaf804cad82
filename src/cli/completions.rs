//! `callsheet completions SHELL`: a script with the commands and flags, which for names asks
//! `callsheet complete`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, output};

/// For bash: names first, then what the rest of the script knows.
const BASH: &str = r#"
_callsheet_names() {
    local names IFS=$'\n'
    names="$("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)"
    if [[ -n "$names" ]]; then
        COMPREPLY=($names)
        return 0
    fi
    IFS=$' \t\n'
    _callsheet "$@"
}

complete -F _callsheet_names -o bashdefault -o default callsheet
"#;

/// For zsh: the function that zsh calls.
const ZSH: &str = r#"
_callsheet() {
    local -a names
    names=(${(f)"$(command "${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#names} )); then
        compadd -a names
        return 0
    fi
    _callsheet_words "$@"
}

"#;

/// For fish: further candidates, in place of files.
const FISH: &str = r#"
function __callsheet_names
    set -l before (commandline -opc)
    set -l typed (commandline -ct)
    command $before[1] complete -- $before[2..-1] "$typed" 2>/dev/null
end

complete -c callsheet -n 'count (__callsheet_names) >/dev/null' -f -a '(__callsheet_names)'
complete -c callsheet -l scenario -x -a '(__callsheet_names)'
"#;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self) {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "callsheet", &mut script);
        let script = String::from_utf8_lossy(&script);
        let script = match self.shell {
            Shell::Bash => format!("{script}{BASH}"),
            Shell::Fish => format!("{script}{FISH}"),
            Shell::Zsh => for_zsh(&script),
            _ => script.into_owned(),
        };
        output::line(script.trim_end());
    }
}

/// The script for zsh, whose function gets another name: the one that zsh calls looks for names
/// first.
fn for_zsh(script: &str) -> String {
    let script = script.replacen("\n_callsheet() {", "\n_callsheet_words() {", 1);
    // The end calls or registers the function.
    script.replacen(
        "\nif [ \"$funcstack[1]\"",
        &format!("{ZSH}if [ \"$funcstack[1]\""),
        1,
    )
}
