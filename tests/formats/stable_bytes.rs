//! The same catalog gives the same bytes in every format, however it came to be: prompt caches of
//! vendors break on one changed byte.

use std::sync::Arc;

use callsheet::catalog::{Catalog, Inputs, Snapshot, StateTransitions, View, ViewQuery, build};
use callsheet::formats::Format;
use callsheet::runtime::Tasks;
use callsheet::views::{Coding, ViewCache, render};
use jiff::Timestamp;

use crate::support::format_cases;
use crate::support::offers;

const FLEET: &[(&str, &[&str])] = &[
    ("alarm", &["ring", "stop"]),
    ("files", &["read", "find"]),
    ("mail", &["find", "send"]),
    ("notes", &["add"]),
];

fn body(catalog: &Catalog, format: &dyn Format) -> Vec<u8> {
    render(
        &View::select(catalog, &ViewQuery::default()),
        Timestamp::UNIX_EPOCH,
        format,
    )
    .body
}

/// The catalog after the scenarios came one by one in this order.
fn grown(order: impl Iterator<Item = usize>) -> Catalog {
    order.fold(build(&Inputs::default()), |catalog, at| {
        let (name, tools) = FLEET[at];
        let mut drafts: Vec<_> = tools.iter().map(|tool| offers::tool(tool)).collect();
        if at % 2 == 1 {
            drafts.reverse();
        }
        catalog.with(offers::change(offers::offer(name, &drafts)))
    })
}

#[test]
fn the_order_of_discovery_does_not_show() {
    let whole = offers::catalog(FLEET, &[]);
    for format in format_cases::variants() {
        let expected = body(&whole, format);
        for turn in 0..FLEET.len() {
            let turned = (0..FLEET.len()).map(|at| (at + turn) % FLEET.len());
            assert_eq!(
                body(&grown(turned), format),
                expected,
                "{} from {turn}",
                format.id()
            );
            let back = (0..FLEET.len()).rev().map(|at| (at + turn) % FLEET.len());
            assert_eq!(
                body(&grown(back), format),
                expected,
                "{} back from {turn}",
                format.id()
            );
        }
    }
}

#[test]
fn a_newcomer_changes_no_byte_of_the_tools_before_it() {
    let few = offers::catalog(&FLEET[..3], &[]);
    let all = offers::catalog(FLEET, &[]);
    let tools = |catalog: &Catalog| View::select(catalog, &ViewQuery::default()).parts;
    for format in format_cases::variants() {
        let before = body(&few, format);
        let after = body(&all, format);
        let texts: Vec<_> = tools(&few)
            .iter()
            .flat_map(|part| part.tools.to_vec())
            .collect();
        let Some(last) = texts.iter().rev().find_map(|tool| format.encode(tool).json) else {
            panic!("{}", format.id())
        };
        // Without the bracket that ends the last tool: a mark for caches stands before it.
        let last = &last[..last.len() - 1];
        let ends = before
            .windows(last.len())
            .rposition(|window| window == last)
            .unwrap()
            + last.len();
        assert_eq!(after[..ends], before[..ends], "{}", format.id());
        assert!(after.len() > before.len());
    }
}

/// A prepared list takes over what it can from the one before; that must not show either, least of
/// all behind a mark for caches.
#[tokio::test]
async fn what_was_prepared_before_does_not_show() {
    let views = ViewCache::new(1 << 20, Tasks::new());
    for (sequence, scenarios) in [1, 2, 4, 3, 0, 4].into_iter().enumerate() {
        let catalog = offers::catalog(&FLEET[..scenarios], &[]);
        let snapshot = Snapshot {
            catalog: catalog.clone(),
            former_names: callsheet::catalog::FormerNames::default(),
            generated_at: Timestamp::UNIX_EPOCH,
            health: imbl::OrdMap::new(),
            findings: Arc::default(),
            sequence: sequence as u64 + 1,
            transitions: StateTransitions::default(),
            program_ends: callsheet::catalog::ProgramEnds::default(),
            isolated: None,
            configuration: None,
        };
        let snapshot = Arc::new(snapshot);
        for format in format_cases::variants() {
            let prepared = views
                .prepare(&snapshot, &ViewQuery::default(), format, Coding::Identity)
                .await;
            assert_eq!(
                prepared.body,
                body(&catalog, format),
                "{} of {scenarios}",
                format.id()
            );
        }
    }
}
