//! All printing: lines for people, colour only if the stream supports it (anstream decides),
//! answers for machines unchanged.
//!
//! Text from scenarios passes through [`sanitize`], so that it cannot control an operator's
//! terminal. JSON for machines keeps its bytes in a pipe or file; on a terminal invisible
//! characters are escaped, which is the same JSON.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::{Cell, Color, Table};
use jiff::Timestamp;
use serde_json::Value;
use textwrap::core::{Word, display_width};

use super::CommandError;
use crate::model::text::is_invisible;

/// The longest word that stays whole where a line is broken: published names, which have 64
/// characters at most, and the pointers of findings.
pub(super) const LONGEST_WORD: usize = 72;

/// Durations below this are shown in milliseconds.
const SHOWN_IN_MILLISECONDS: u64 = 10_000;

/// Whether standard output takes no more, because its reader has closed it or for an error.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// The first error of standard output. A closed pipe (`| head`) is none.
static FAILED_WRITE: OnceLock<io::Error> = OnceLock::new();
/// Whether errors and notes are for programs (`--json`).
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Prints one line.
pub(super) fn line(text: &str) {
    keep(writeln!(anstream::stdout().lock(), "{text}"));
}

/// Remembers whether standard output could be written: the command goes on, and its end says it.
pub(super) fn keep(written: io::Result<()>) {
    let Err(error) = written else { return };
    CLOSED.store(true, Ordering::Relaxed);
    if error.kind() != io::ErrorKind::BrokenPipe {
        // The first error says why; the later ones follow from it.
        let _ = FAILED_WRITE.set(error);
    }
}

/// Writes what is left of the output. Returns why not all of the output could be written, if so.
pub(super) fn finish() -> Option<CommandError> {
    keep(io::stdout().flush());
    let error = FAILED_WRITE.get()?;
    Some(CommandError::Daemon {
        error: anyhow::Error::msg(format!("the output cannot be written: {error}")),
        hint: Some("make room where it goes, or send it elsewhere".to_owned()),
    })
}

/// Whether a line could not be printed. Commands without an end of their own stop then.
pub(super) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// From here on everything on standard error is JSON, one object in each line.
pub(super) fn as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Prints a note beside the output, on standard error.
pub(super) fn note(text: &str) {
    if is_json() {
        error_object(&serde_json::json!({"note": text}));
    } else {
        print_error_rows("note: ", text);
    }
}

/// Prints an answer for machines: its bytes unchanged, but indented and without invisible
/// characters on a terminal.
pub(super) fn answer(body: &[u8], value: &Value) {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() {
        // A `Value` can always be written as text.
        escape_json(&serde_json::to_string_pretty(value).unwrap_or_default()).into_bytes()
    } else {
        body.to_vec()
    };
    // It has no colour, so no code has to be removed.
    keep(out.write_all(&text).and_then(|()| out.write_all(b"\n")));
}

/// Prints bytes as they are; a terminal gets a line end after them. Not for text of scenarios.
pub(super) fn raw(body: &[u8]) {
    let mut out = io::stdout().lock();
    let end: &[u8] = if out.is_terminal() { b"\n" } else { b"" };
    keep(
        out.write_all(body)
            .and_then(|()| out.write_all(end))
            .and_then(|()| out.flush()),
    );
}

/// Prints JSON in the bytes of an answer; a terminal gets a line end after it, and no invisible
/// characters.
pub(super) fn raw_json(body: &[u8]) {
    if io::stdout().is_terminal() {
        raw(escape_json(&String::from_utf8_lossy(body)).as_bytes());
    } else {
        raw(body);
    }
}

/// Prints JSON in one line: one of several that follow each other.
pub(super) fn json_line(value: &Value) {
    let text = value.to_string();
    if io::stdout().is_terminal() {
        line(&escape_json(&text));
    } else {
        line(&text);
    }
}

/// The same JSON, with each character that a terminal would act on, or that cannot be seen, written
/// as `\u` and its number (RFC 8259 section 7). Such characters stand in strings only.
fn escape_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if !is_invisible(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            // Writing to a text cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

/// Prints JSON for machines: indented on a terminal, compact elsewhere.
pub(super) fn json(value: &Value) {
    answer(value.to_string().as_bytes(), value);
}

/// Whether what is on standard error is for programs.
pub(super) fn is_json() -> bool {
    AS_JSON.load(Ordering::Relaxed)
}

/// Prints an error for people, to standard error.
pub(super) fn error(message: &str, hint: Option<&str>) {
    print_error_rows("\u{1b}[1;31merror:\u{1b}[0m ", message);
    if let Some(hint) = hint {
        print_error_rows("  \u{1b}[1mhint:\u{1b}[0m ", hint);
    }
}

/// Prints a text to standard error as [`wrapped`] does to standard output.
fn print_error_rows(first: &str, text: &str) {
    let mut out = anstream::stderr().lock();
    let mut table = Table::new();
    let terminal = || {
        if io::stderr().is_terminal() {
            table.use_stderr().width()
        } else {
            None
        }
    };
    for row in rows(first, text, columns(terminal)) {
        let _ = writeln!(out, "{row}");
    }
}

/// Prints an error for programs, to standard error.
pub(super) fn error_object(object: &Value) {
    let text = object.to_string();
    let text = if io::stderr().is_terminal() {
        escape_json(&text)
    } else {
        text
    };
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// The characters a line may have: `COLUMNS` if set, else the width of the terminal. A pipe has no
/// limit.
pub(super) fn line_width() -> Option<u16> {
    columns(|| {
        if io::stdout().is_terminal() {
            Table::new().width()
        } else {
            None
        }
    })
}

/// `COLUMNS` if set, else what the terminal says.
fn columns(terminal: impl FnOnce() -> Option<u16>) -> Option<u16> {
    let set = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|columns| *columns > 0);
    // A terminal that does not know its width says 0.
    set.or_else(|| terminal().filter(|columns| *columns > 0))
}

/// Prints a text in as many lines as it needs, broken at blanks, so that names stay whole, and
/// within words that are longer than any name, such as a `PATH`.
/// The first line begins with `first`, the others with as many blanks. What could control a
/// terminal is left out, wherever the text comes from.
pub(super) fn wrapped(first: &str, text: &str) {
    for row in rows(first, &lines(text), line_width()) {
        line(&row);
    }
}

/// The lines of [`wrapped`].
pub(super) fn rows(first: &str, text: &str, width: Option<u16>) -> Vec<String> {
    let indent = " ".repeat(display_width(first));
    let width = width.map_or(usize::MAX, usize::from);
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::Custom(pieces))
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options)
        .iter()
        .map(|row| row.trim_end().to_owned())
        .collect()
}

/// The words of a line, those that are too long in pieces.
fn pieces(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    Box::new(
        textwrap::WordSeparator::AsciiSpace
            .find_words(line)
            .flat_map(|word| {
                let places = breaks(word.word);
                let starts = std::iter::once(0).chain(places.iter().copied());
                let ends = places.iter().copied().chain([word.word.len()]);
                let mut pieces: Vec<Word<'_>> = starts
                    .zip(ends)
                    .map(|(start, end)| Word::from(&word.word[start..end]))
                    .collect();
                if let Some(last) = pieces.last_mut() {
                    last.whitespace = word.whitespace;
                }
                pieces
            }),
    )
}

/// Where a word may be broken: nowhere, unless it is longer than any name; then behind each `:` and
/// `/`, or after as many characters as a name has.
fn breaks(word: &str) -> Vec<usize> {
    if display_width(word) <= LONGEST_WORD {
        return Vec::new();
    }
    let mut places = Vec::new();
    let mut since = 0;
    for (at, c) in word.char_indices() {
        since += 1;
        if matches!(c, ':' | '/') || since >= LONGEST_WORD {
            places.push(at + c.len_utf8());
            since = 0;
        }
    }
    places.retain(|place| *place < word.len());
    places
}

/// Prints what is known of one thing: a name and a value in each line.
pub(super) fn details(rows: &[(&str, String)]) {
    for (key, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        wrapped(&format!("{key:>11}  "), value);
    }
}

/// A text without control characters (line ends become blanks) and marks that change the direction
/// of writing.
pub(super) fn sanitize(text: &str) -> String {
    let steers =
        |c: &char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .filter(|c| !steers(c))
        .collect()
}

/// As [`sanitize`], but keeps line ends.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
}

/// A state with its colour.
pub(super) fn state(text: &str) -> Cell {
    let colour = match text {
        "live" | "asleep" => Color::DarkGreen,
        "stale" | "connecting" | "pending" => Color::DarkYellow,
        "removed" => Color::Grey,
        _ => Color::DarkRed,
    };
    Cell::new(text).fg(colour)
}

/// A text of an answer, sanitized; empty when it has none.
pub(super) fn text(value: &Value, pointer: &str) -> String {
    sanitize(
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default(),
    )
}

/// The first line of a text of an answer, sanitized.
pub(super) fn first_line(value: &Value, pointer: &str) -> String {
    let text = value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default();
    sanitize(text.trim_start().lines().next().unwrap_or_default())
}

/// What is special about a tool, in words.
pub(super) fn notes(tool: &Value) -> String {
    let off = tool["enabled"] == Value::Bool(false);
    let approval = tool["requires_approval"] == Value::Bool(true);
    let notes = [off.then_some("off"), approval.then_some("approval")];
    notes.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A list of an answer; empty when it has none.
pub(super) fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A number of an answer; 0 when it has none.
pub(super) fn number(value: &Value, pointer: &str) -> i64 {
    value
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// A number with the word for what it counts.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}

/// How long ago (or until) a time of an answer is, such as `3m ago` or `in 20s`; a dash when there
/// is none.
pub(super) fn relative(value: &Value, pointer: &str, now: Timestamp) -> String {
    let Ok(at) = text(value, pointer).parse::<Timestamp>() else {
        return "-".into();
    };
    let seconds = now.as_second() - at.as_second();
    let span = short(seconds.unsigned_abs());
    if seconds >= 0 {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

/// When something is due, such as `in 20s`: `now` from the second of that time on; a dash when
/// there is none.
pub(super) fn due(value: &Value, pointer: &str, now: Timestamp) -> String {
    match text(value, pointer).parse::<Timestamp>() {
        Ok(at) if at.as_second() <= now.as_second() => "now".to_owned(),
        _ => relative(value, pointer, now),
    }
}

/// A time of an answer for people: to the second, in UTC, and how long ago that is; empty when
/// there is none.
pub(super) fn when(value: &Value, pointer: &str, now: Timestamp) -> String {
    match text(value, pointer).parse::<Timestamp>() {
        Ok(at) => format!(
            "{} ({})",
            at.strftime("%Y-%m-%d %H:%M:%S UTC"),
            relative(value, pointer, now)
        ),
        Err(_) => String::new(),
    }
}

/// How long something took: `294 ms`, and `4m 54s` from ten seconds on.
pub(super) fn took(milliseconds: u64) -> String {
    if milliseconds < SHOWN_IN_MILLISECONDS {
        format!("{milliseconds} ms")
    } else {
        short(milliseconds / 1_000)
    }
}

/// The two largest units at most: `45s`, `3m 20s`, `2h 5m`, `4d 1h`.
pub(super) fn short(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let first = units
        .iter()
        .position(|(size, _)| seconds >= *size)
        .unwrap_or(3);
    let (size, unit) = units[first];
    let rest = seconds % size;
    match units.get(first + 1) {
        Some((next, name)) if rest >= *next => {
            format!("{}{unit} {}{name}", seconds / size, rest / next)
        }
        _ => format!("{}{unit}", seconds / size),
    }
}

/// A text, cut at `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (200, "3m 20s"),
            (7_500, "2h 5m"),
            (3_605, "1h"),
            (350_000, "4d 1h"),
        ] {
            assert_eq!(short(seconds), shown);
        }
    }

    #[test]
    fn long_durations_are_no_milliseconds() {
        for (milliseconds, shown) in [(0, "0 ms"), (9_999, "9999 ms"), (294_085, "4m 54s")] {
            assert_eq!(took(milliseconds), shown);
        }
    }

    #[test]
    fn what_was_due_a_moment_ago_is_due_now() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (at, shown) in [
            (999_000, "now"),
            (1_000_000, "now"),
            (1_000_900, "now"),
            (1_020_000, "in 20s"),
        ] {
            let at = Timestamp::from_millisecond(at).unwrap();
            assert_eq!(
                due(&serde_json::json!({"at": at.to_string()}), "/at", now),
                shown
            );
        }
        assert_eq!(due(&serde_json::json!({}), "/at", now), "-");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(cut("größer als Platz", 8), "größer…");
        assert_eq!(cut("fits", 4), "fits");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(
            sanitize("a\u{1b}[2Jb\u{9b}31mc\u{202e}d\ne\tf\u{7}"),
            "a[2Jb31mcd e f"
        );
    }

    #[test]
    fn names_stay_whole_and_longer_words_are_broken() {
        let name = "n".repeat(LONGEST_WORD);
        assert_eq!(rows("", &name, Some(40)), [name.as_str()]);
        let path = format!(
            "no folder of PATH ({}) has it",
            ["/usr/local/bin"; 30].join(":")
        );
        let broken = rows("  hint: ", &path, Some(80));
        assert!(broken.iter().all(|row| row.len() <= 80), "{broken:#?}");
        let dense = |text: &str| text.replace(' ', "");
        assert_eq!(dense(&broken.concat()), dense(&format!("  hint: {path}")));
        assert!(
            rows("", &"x".repeat(300), Some(80))
                .iter()
                .all(|row| row.len() <= 80)
        );
        assert_eq!(rows("", &path, None), [path.as_str()]);
    }
}
