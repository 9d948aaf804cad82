//! Lists that are larger than all that may be kept: made while they are taken, and no other than they would be whole.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use bytes::Bytes;
use callsheet::catalog::{Catalog, Change, Snapshot, Turns, ViewQuery, build};
use callsheet::formats::native::Native;
use callsheet::runtime::Tasks;
use callsheet::views::{Body, Coding, Prepared, Views};

use crate::support::counting::Counting;
use crate::support::format_cases;
use crate::support::offers::{inputs, offer, put, scenario, tool};
use crate::support::view_tools::then;

const SCENARIOS: usize = 60;
const TOOLS: usize = 20;
/// More than any of these lists has.
const WHOLE: u64 = 64 << 20;
/// Less than any of them has.
const LITTLE: u64 = 1 << 20;

/// An offer of so many tools with long descriptions, each of them with `edition` in it.
fn long_offer(name: &str, tools: usize, edition: usize) -> callsheet::catalog::Offer {
    let tools = (0..tools).map(|at| {
        let text =
            format!("Edition {edition} of tool {at}. {}", "It does what its name says, and nothing else. ".repeat(50));
        tool(&format!("{name}_{at:02}")).about(&text).category(&format!("group-{}", at % 3))
    });
    offer(name, &tools.collect::<Vec<_>>())
}

fn name(at: usize) -> String {
    format!("scenario-{at:03}")
}

/// A catalog whose list has some three megabytes. Some scenarios have no tools, the first and the last among them.
fn catalog() -> Catalog {
    let mut all = inputs(&[("a-first", &[]), ("scenario-030-none", &[]), ("z-last", &[])]);
    for at in 0..SCENARIOS {
        put(&mut all, long_offer(&name(at), TOOLS, 0));
    }
    build(&all)
}

fn snapshot(catalog: Catalog, sequence: u64) -> Arc<Snapshot> {
    Arc::new(Snapshot {
        catalog,
        generated_at: then(),
        health: imbl::OrdMap::new(),
        findings: Arc::default(),
        sequence,
        turns: Turns::default(),
        isolated: None,
        configuration: None,
    })
}

fn everything() -> ViewQuery {
    ViewQuery { max_tools: Some(0), ..ViewQuery::default() }
}

/// The pieces of an answer that has some.
fn pieces(prepared: &Prepared, snapshot: &Arc<Snapshot>) -> Vec<Bytes> {
    let Body::Pieces(pieces) = &prepared.body else { panic!("it is whole: {} bytes", prepared.body.length()) };
    pieces.take(snapshot).pieces().collect::<Result<_, _>>().unwrap()
}

/// What an answer says of its list.
fn told(prepared: &Prepared) -> impl PartialEq + std::fmt::Debug + use<> {
    let Prepared { coding, etag, tools, findings, left_out, deferred, tokens, selection, notes, .. } = prepared.clone();
    (coding, etag, tools, findings, left_out, deferred, tokens, selection, notes.to_vec())
}

#[tokio::test]
async fn a_list_in_pieces_is_the_list_as_it_is_whole() {
    let (snapshot, mut in_pieces) = (snapshot(catalog(), 1), 0);
    for format in format_cases::variants() {
        let (whole, little) = (Views::new(WHOLE, Tasks::new()), Views::new(LITTLE, Tasks::new()));
        let ask = |views: &Views, coding| {
            let (views, snapshot) = (views.clone(), Arc::clone(&snapshot));
            async move { views.prepare(&snapshot, &everything(), format, coding).await }
        };
        let plain = ask(&whole, Coding::Identity).await;
        let body = plain.body.whole().unwrap().clone();
        let prepared = ask(&little, Coding::Identity).await;
        if format.request_wide() || body.len() as u64 <= LITTLE {
            // What becomes of a tool depends on those before it; or the format says little of each.
            assert_eq!(*prepared.body.whole().unwrap(), body, "{}", format.id());
        } else {
            let pieces = pieces(&prepared, &snapshot);
            in_pieces += 1;
            assert!(pieces.len() > 3 && pieces.iter().all(|piece| piece.len() < 400_000), "{}", format.id());
            assert!(pieces.concat() == body, "{}", format.id());
            assert_eq!(prepared.body.length(), body.len() as u64);
        }
        assert_eq!(told(&prepared), told(&plain), "{}", format.id());
    }
    assert!(in_pieces > 6, "{in_pieces}");
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        let answers = [WHOLE, LITTLE].map(|most| {
            let (views, snapshot) = (Views::new(most, Tasks::new()), Arc::clone(&snapshot));
            async move { views.prepare(&snapshot, &everything(), &Native, coding).await }
        });
        let [plain, prepared] = answers;
        let (plain, prepared) = (plain.await, prepared.await);
        assert!(plain.body.whole().unwrap() == prepared.body.whole().unwrap(), "{coding}");
        assert_eq!(told(&prepared), told(&plain), "{coding}");
    }
}

#[test]
fn a_coding_does_not_show_where_the_text_was_cut() {
    let text: Vec<u8> = (0..60_000_u32)
        .flat_map(|at| format!("{} of {at},", at.wrapping_mul(2_654_435_761) % 977).into_bytes())
        .collect();
    for coding in Coding::ALL {
        let whole = coding.encode(&text).unwrap();
        for cut in [1_000, 65_536, 262_147] {
            let pieces = text.chunks(cut).map(Ok);
            assert!(coding.encode_pieces(text.len() as u64, pieces).unwrap() == whole, "{coding}, {cut}");
        }
        let broken = [Ok(&text[..10]), Err(std::io::Error::other("no"))];
        assert!(coding.encode_pieces(text.len() as u64, broken).is_err());
    }
}

#[tokio::test]
async fn after_a_change_only_what_changed_is_written_before_the_first_piece() {
    let counting = Counting::leaked();
    let views = Views::new(LITTLE, Tasks::new());
    let ask = |snapshot: &Arc<Snapshot>, query: ViewQuery| {
        let (views, snapshot) = (views.clone(), Arc::clone(snapshot));
        async move { views.prepare(&snapshot, &query, counting, Coding::Identity).await }
    };
    let before = snapshot(catalog(), 1);
    let first = ask(&before, ViewQuery::default()).await;
    assert_eq!(counting.take(), SCENARIOS * TOOLS);
    let changed = long_offer(&name(7), 3, 1);
    let after = snapshot(before.catalog.with(Change::Offer(scenario(&name(7)), Some(changed))), 2);
    let second = ask(&after, ViewQuery::default()).await;
    assert_eq!(counting.take(), 3, "the changed scenario alone");
    assert_ne!(first.etag, second.etag);
    let afresh =
        Views::new(WHOLE, Tasks::new()).prepare(&after, &ViewQuery::default(), &Native, Coding::Identity).await;
    assert_eq!(told(&second), told(&afresh));
    assert!(pieces(&second, &after).concat() == *afresh.body.whole().unwrap());
    counting.take();
    // One that is small is whole, and does not make the others forgotten.
    let one = ViewQuery { scenarios: [scenario(&name(7))].into(), ..ViewQuery::default() };
    assert!(ask(&after, one).await.body.whole().is_some());
    counting.take();
    let back = snapshot(before.catalog.clone(), 3);
    let third = ask(&back, ViewQuery::default()).await;
    assert_eq!((counting.take(), &third.etag), (TOOLS, &first.etag));
}

#[tokio::test]
async fn who_takes_a_list_at_the_same_time_shares_its_pieces() {
    let counting = Counting::leaked();
    let snapshot = snapshot(catalog(), 1);
    let views = Views::new(LITTLE, Tasks::new());
    let prepared = views.prepare(&snapshot, &ViewQuery::default(), counting, Coding::Identity).await;
    let Body::Pieces(pieces) = &prepared.body else { panic!("it is whole") };
    counting.take();
    let takers = [pieces.take(&snapshot), pieces.take(&snapshot), pieces.take(&snapshot)];
    let mut at = 0;
    while let Some(piece) = takers[0].piece(at).unwrap() {
        for other in &takers {
            assert_eq!(other.piece(at).unwrap().unwrap().as_ptr(), piece.as_ptr());
        }
        at += 1;
    }
    assert_eq!((counting.take(), takers[2].piece(at + 1).unwrap()), (SCENARIOS * TOOLS, None));
    // One who comes later has the last pieces at hand, and is given the first ones anew.
    let late = takers[1].piece(at - 1).unwrap().unwrap();
    assert_eq!((late.is_empty(), counting.take()), (false, 0));
    assert!(takers[1].piece(0).unwrap().is_some() && counting.take() > 0, "no more than a few are kept");
}

#[tokio::test]
async fn a_list_that_nobody_takes_holds_nothing_of_the_catalog() {
    let views = Views::new(LITTLE, Tasks::new());
    let first = snapshot(catalog(), 1);
    let entry = Arc::downgrade(first.catalog.entries().next().unwrap());
    let prepared = views.prepare(&first, &ViewQuery::default(), &Native, Coding::Identity).await;
    let Body::Pieces(pieces) = &prepared.body else { panic!("it is whole") };
    let taken = pieces.take(&first);
    let piece = taken.piece(0).unwrap();
    drop(first);
    assert!(entry.upgrade().is_some() && piece.is_some(), "as long as it is taken");
    assert!(taken.pieces().map(|piece| piece.unwrap().len() as u64).sum::<u64>() == prepared.body.length());
    drop(taken);
    assert!(entry.upgrade().is_none());
    assert_eq!(views.kept().0, 1, "what is known of it is kept");
    assert!(views.kept().1 < 10_000, "{:?}", views.kept());
}

#[tokio::test]
async fn where_tools_are_chosen_the_list_is_whole() {
    let views = Views::new(LITTLE, Tasks::new());
    let snapshot = snapshot(catalog(), 1);
    let query = ViewQuery { max_tools: Some(SCENARIOS * TOOLS - 1), ..ViewQuery::default() };
    let chosen = views.prepare(&snapshot, &query, &Native, Coding::Identity).await;
    assert_eq!((chosen.tools, chosen.left_out), (SCENARIOS * TOOLS - 1, 1));
    assert!(chosen.body.whole().is_some_and(|body| body.len() as u64 > LITTLE));
}
