//! Names: of scenarios, of their tools, and the published names.
//!
//! A published name is built here and nowhere else, and is never parsed. Which tool gets which name
//! is decided in [`catalog`](crate::catalog); `docs/design/naming.md` has the rules with examples.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::next_step::WithNextStep;

/// What every LLM vendor accepts: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
pub const PUBLISHED_NAME_MAX: usize = 64;
/// Characters of a name for MCP clients at most: many of them put a prefix of their own before it.
pub const MCP_NAME_MAX: usize = 48;
/// Between scenario and tool in a qualified published name.
const JOINER: &str = "__";
/// `_` and 32 hexadecimal digits end a name of the reserved shape.
const UNIQUE_SUFFIX: usize = 33;
/// `_` and 12 hexadecimal digits end a name for MCP clients that was cut or repaired.
const MCP_HASH: usize = 13;
/// Characters of a scenario name at most.
pub const SCENARIO_NAME_MAX: usize = 100;

/// The name a scenario is filed under: 1 to 100 of `a-z A-Z 0-9 . _ -`, beginning with a letter or
/// digit.
///
/// One word in each of the hundred thousands of identities of tools that hold it, and one more step
/// to its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScenarioName(Arc<Box<str>>);

/// Identity of a tool: `scenario/tool`. Ordered by scenario, then by tool, bytewise.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    /// The owner.
    pub scenario: ScenarioName,
    /// The name the owner gave it.
    pub tool: Arc<str>,
}

/// The name a tool has in the published list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublishedName(Arc<str>);

/// How a client may name a tool: by identity, or by a bare published or original name to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameRef {
    /// `scenario/tool`.
    Id(ToolId),
    /// Anything without a slash.
    Bare(String),
}

// What to do next: the ends of the texts below.
const OF_SCENARIO: &str =
    "use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit";
const OF_TOOL: &str = "write `SCENARIO/TOOL`, for example `files/read_text`";
const OF_PUBLISHED: &str =
    "use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or `_`";

/// A text that cannot be the name it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Not within the grammar of scenario names.
    #[error("`{0}` is not a scenario name: {OF_SCENARIO}")]
    Scenario(String),
    /// Not `scenario/tool`.
    #[error("`{0}` is not a tool identity; {OF_TOOL}")]
    ToolId(String),
    /// Not acceptable as a published name.
    #[error("`{0}` is not a published name: {OF_PUBLISHED}")]
    Published(String),
}

impl WithNextStep for InvalidName {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Scenario(_) => OF_SCENARIO.into(),
            Self::ToolId(_) => OF_TOOL.into(),
            Self::Published(_) => OF_PUBLISHED.into(),
        })
    }
}

impl ScenarioName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ScenarioName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let legal = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
        let bytes = text.as_bytes();
        if bytes.len() <= SCENARIO_NAME_MAX
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|c| legal(*c))
        {
            Ok(Self(Arc::new(text.into())))
        } else {
            Err(InvalidName::Scenario(text.chars().take(120).collect()))
        }
    }
}

impl ToolId {
    /// The identity of `tool` in `scenario`.
    pub fn new(scenario: ScenarioName, tool: impl Into<Arc<str>>) -> Self {
        Self {
            scenario,
            tool: tool.into(),
        }
    }
}

impl FromStr for ToolId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        // The first slash: scenario names have none, tool names may.
        let (scenario, tool) = text
            .split_once('/')
            .ok_or_else(|| InvalidName::ToolId(text.into()))?;
        if tool.is_empty() {
            return Err(InvalidName::ToolId(text.into()));
        }
        Ok(Self::new(scenario.parse()?, tool))
    }
}

impl NameRef {
    /// Parses the text of a client. A text with a slash that is no identity is looked up as it
    /// stands.
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Bare(text.to_owned()), Self::Id)
    }
}

impl PublishedName {
    /// The tool's own name when that is legal, else a legal one made from it: other characters
    /// become `_`, a leading digit or dash gets a `_` before it, and the result ends in a hash of
    /// the original so that two repaired names cannot meet. Where only dots are illegal there is no
    /// hash: `module.tool` is how a whole family of scenarios names its tools, and equal results
    /// are resolved like any other collision.
    pub fn plain(tool: &str) -> Self {
        Self(legalise(tool))
    }

    /// As [`Self::plain`], but shares the text instead of copying it when it is legal as it is.
    pub fn plain_shared(tool: &Arc<str>) -> Self {
        if is_legal(tool) {
            Self(Arc::clone(tool))
        } else {
            Self::plain(tool)
        }
    }

    /// `scenario__tool`, made legal; what is too long is cut and ends in a short hash.
    pub fn qualified(id: &ToolId) -> Self {
        // A dot is legal in scenario names only, and far too common in them to make a hash appear
        // in every tool's name.
        let scenario = id.scenario.as_str();
        let dotted = id.scenario.as_str().contains('.');
        let undotted = if dotted {
            Cow::Owned(scenario.replace('.', "_"))
        } else {
            Cow::Borrowed(scenario)
        };
        let whole = [&*undotted, JOINER, &id.tool].concat();
        if is_legal(&whole) && !dotted {
            return Self(whole.into());
        }
        Self(hashed(&whole, &id.to_string()))
    }

    /// `scenario__tool` for MCP clients, at most [`MCP_NAME_MAX`] characters. It follows from the
    /// identity alone, so it is the same whatever other tools there are. Dots of the tool become
    /// `__`. What is too long or not legal, or could be read as the name of another tool, is cut
    /// and ends in a hash of the identity.
    pub fn for_mcp(id: &ToolId) -> Self {
        let scenario = id.scenario.as_str();
        let tool = &*id.tool;
        let whole = if tool.contains('.') {
            tool.replace('.', JOINER)
        } else {
            tool.to_owned()
        };
        let whole = [scenario, JOINER, &whole].concat();
        if whole.len() <= MCP_NAME_MAX && is_legal(&whole) && divides(scenario, tool) {
            return Self(whole.into());
        }
        // Forty-eight bits.
        let suffix = format!("_{:012x}", xxh3_64(id.to_string().as_bytes()) >> 16);
        Self(ended(&whole, &suffix, MCP_NAME_MAX))
    }

    /// The last resort, for a tool whose qualified name another tool claims (`a/b__c` and
    /// `a__b/c`): `_scenario__tool`, cut, and ended with all 128 bits of the identity's digest. No
    /// qualified name looks like this, since those begin with a letter, or with `_` and a digit;
    /// see [`Self::is_reserved`] for the other names.
    pub fn unique(id: &ToolId) -> Self {
        let digit = id
            .scenario
            .as_str()
            .starts_with(|c: char| c.is_ascii_digit());
        let whole = format!(
            "_{}{}{JOINER}{}",
            if digit { "_" } else { "" },
            id.scenario,
            id.tool
        );
        let suffix = format!("_{:032x}", xxh3_128(id.to_string().as_bytes()));
        Self(ended(&whole, &suffix, PUBLISHED_NAME_MAX))
    }

    /// Whether this has the shape of [`Self::unique`]. Such a text is never given as an alias or as
    /// a plain name.
    pub fn is_reserved(&self) -> bool {
        let bytes = self.0.as_bytes();
        let hex = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        let Some((head, tail)) = bytes
            .len()
            .checked_sub(UNIQUE_SUFFIX)
            .and_then(|at| bytes.split_at_checked(at))
        else {
            return false;
        };
        matches!(head, [b'_', second, ..] if !second.is_ascii_digit())
            && tail[0] == b'_'
            && tail[1..].iter().all(hex)
    }

    /// A name that a user chose, which must be legal as it is.
    pub fn alias(text: &str) -> Result<Self, InvalidName> {
        if is_legal(text) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName::Published(text.chars().take(120).collect()))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether every LLM vendor accepts `text` as a tool name.
pub fn is_legal(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= PUBLISHED_NAME_MAX
        && bytes
            .first()
            .is_some_and(|c| c.is_ascii_alphabetic() || *c == b'_')
        && bytes
            .iter()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
}

fn legalise(text: &str) -> Arc<str> {
    if is_legal(text) {
        return text.into();
    }
    let undotted = text.replace('.', "_");
    if is_legal(&undotted) {
        undotted.into()
    } else {
        hashed(text, text)
    }
}

/// `text` with illegal characters replaced, cut to leave room for, and ended with, the hash of
/// `identity`.
fn hashed(text: &str, identity: &str) -> Arc<str> {
    // Eight hexadecimal digits: the low half of the digest.
    ended(
        text,
        &format!("_{:08x}", xxh3_64(identity.as_bytes()) & 0xffff_ffff),
        PUBLISHED_NAME_MAX,
    )
}

/// Whether the text of [`PublishedName::for_mcp`] can be divided in this way only, and does not
/// look like one that ends in a hash: the first `__` ends the scenario, and each further one is a
/// dot.
fn divides(scenario: &str, tool: &str) -> bool {
    let ends_in_hash = tool.len() > MCP_HASH && tool.is_char_boundary(tool.len() - MCP_HASH) && {
        let tail = &tool[tool.len() - MCP_HASH..];
        tail.starts_with('_')
            && tail[1..]
                .bytes()
                .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let inner = |part: &str| !part.is_empty() && !part.starts_with('_') && !part.ends_with('_');
    let dots = !tool.contains('.') || tool.split('.').all(inner);
    let clear = |text: &str| !text.contains(JOINER);
    clear(scenario) && !scenario.ends_with('_') && clear(tool) && dots && !ends_in_hash
}

/// `text` with illegal characters replaced, cut to leave room for `suffix` within `max`, and ended
/// with it.
fn ended(text: &str, suffix: &str, max: usize) -> Arc<str> {
    let room = max - suffix.len();
    let mut name = String::with_capacity(max);
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '_'
        };
        if name.is_empty() && !(c.is_ascii_alphabetic() || c == '_') {
            name.push('_');
        }
        name.push(c);
        if name.len() >= room {
            break;
        }
    }
    name.truncate(room);
    name.push_str(suffix);
    name.into()
}

macro_rules! text_impls {
    ($($name:ty => $text:expr),* $(,)?) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text: fn(&$name, &mut fmt::Formatter<'_>) -> fmt::Result = $text;
                text(self, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

text_impls! {
    ScenarioName => |name, f| f.write_str(&name.0),
    PublishedName => |name, f| f.write_str(&name.0),
    ToolId => |id, f| write!(f, "{}/{}", id.scenario, id.tool),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ToolId {
        text.parse().unwrap()
    }

    #[test]
    fn legal_names_stay_as_they_are() {
        assert_eq!(
            PublishedName::plain("get_execution").as_str(),
            "get_execution"
        );
        assert_eq!(
            PublishedName::qualified(&id("test-genie/get_execution")).as_str(),
            "test-genie__get_execution"
        );
    }

    #[test]
    fn illegal_names_are_repaired_and_stay_apart() {
        let a = PublishedName::plain("read file");
        let b = PublishedName::plain("read.file");
        assert!(is_legal(a.as_str()) && is_legal(b.as_str()));
        assert_ne!(a, b);
        assert!(a.as_str().starts_with("read_file_"));
        assert_eq!(b.as_str(), "read_file");
        assert_ne!(
            PublishedName::plain(&format!("a.{}", "x".repeat(80))),
            PublishedName::plain(&"x".repeat(80))
        );
        assert!(is_legal(PublishedName::plain("9lives").as_str()));
        assert!(is_legal(PublishedName::plain("ключ").as_str()));
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let a = format!("s/{}a", "x".repeat(80));
        let b = format!("s/{}b", "x".repeat(80));
        let a = PublishedName::qualified(&id(&a));
        let b = PublishedName::qualified(&id(&b));
        assert_eq!(a.as_str().len(), PUBLISHED_NAME_MAX);
        assert_ne!(a, b);
    }

    #[test]
    fn scenarios_that_differ_in_a_dot_stay_apart() {
        assert_ne!(
            PublishedName::qualified(&id("a.b/t")),
            PublishedName::qualified(&id("a_b/t"))
        );
    }

    #[test]
    fn unique_forms_have_a_shape_of_their_own() {
        for text in [
            "a/b__c",
            "a__b/c",
            "1a/b",
            "A.b/read file",
            &format!("s/{}", "x".repeat(200)),
        ] {
            let unique = PublishedName::unique(&id(text));
            let qualified = PublishedName::qualified(&id(text));
            assert!(
                is_legal(unique.as_str()) && unique.is_reserved(),
                "{unique}"
            );
            assert!(
                !qualified.is_reserved() && !PublishedName::plain(text).is_reserved(),
                "{qualified}"
            );
        }
        assert_eq!(
            PublishedName::qualified(&id("a/b__c")),
            PublishedName::qualified(&id("a__b/c"))
        );
        assert_ne!(
            PublishedName::unique(&id("a/b__c")),
            PublishedName::unique(&id("a__b/c"))
        );
        assert!(
            !PublishedName::plain("_").is_reserved()
                && !PublishedName::plain(&"_".repeat(40)).is_reserved()
        );
    }

    #[test]
    fn names_for_mcp_clients_follow_from_the_identity_alone_and_stay_apart() {
        let name = |text: &str| PublishedName::for_mcp(&id(text)).to_string();
        for (identity, expected) in [
            ("files/read_file", "files__read_file"),
            ("test-genie/get", "test-genie__get"),
            ("dice/dice.count", "dice__dice__count"),
            ("s/_private", "s___private"),
        ] {
            assert_eq!(name(identity), expected);
        }
        // Each of them would be the name of another tool without a hash.
        let hashed = |text: &str| {
            let made = name(text);
            assert!(made.len() <= MCP_NAME_MAX && is_legal(&made), "{made}");
            made.as_bytes()[made.len() - MCP_HASH] == b'_' && !divides("s", &made)
        };
        for text in [
            "a__b/c",
            "a/b__c",
            "a_/b",
            "a.b/c",
            "9/lives",
            "a/b c",
            "a/b.",
            "a/b._c",
            "a/c_0123456789ab",
        ] {
            assert!(hashed(text), "{text} became {}", name(text));
        }
        let long = |last: &str| format!("{}/{}{last}", "s".repeat(60), "t".repeat(60));
        assert!(hashed(&long("a")) && name(&long("a")) != name(&long("b")));
        assert_eq!(name(&format!("s/{}", "t".repeat(45))).len(), MCP_NAME_MAX);
        assert!(hashed(&format!("s/{}", "t".repeat(46))));
    }

    #[test]
    fn identities_split_at_the_first_slash() {
        assert_eq!(id("files/dir/read").tool.as_ref(), "dir/read");
        assert!("files".parse::<ToolId>().is_err());
        assert!("/x".parse::<ToolId>().is_err());
        assert_eq!(NameRef::parse("read"), NameRef::Bare("read".into()));
    }
}
