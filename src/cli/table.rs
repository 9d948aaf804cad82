//! Tables for people: one line per row, fitted to the width at hand.
//!
//! Names are never cut, since people copy them. When room is short, columns are left out by their
//! rank, and then long texts are cut. What reads a pipe gets everything.

use comfy_table::{Attribute, Cell, ColumnConstraint, Row, Table, Width};
use textwrap::core::display_width;

use super::output;

/// Blanks between two columns.
const GAP: u16 = 2;
/// A text with less room than this is not worth a column that could be left out instead.
const READABLE: u16 = 24;
/// A text with less room than this is left out itself.
const USELESS: u16 = 8;
/// The longest text of a cell, in characters, also in a pipe. Another program writes the text, and
/// all other rows would be padded to its length.
const CELL_CHARACTERS_MAX: usize = 4_000;

/// What may be done with a column when room is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnFit {
    /// Always shown whole.
    Whole,
    /// Left out; those with the highest rank first.
    Rank(u8),
    /// Cut to one line of what is left.
    Cut,
    /// Broken into lines of what is left.
    Wrap,
}

/// A table that is being filled.
pub(super) struct TextTable {
    fits: Vec<ColumnFit>,
    /// Whether a column has any content.
    used: Vec<bool>,
    /// The width of the longest word of each column, of those that are not broken.
    words: Vec<u16>,
    table: Table,
}

impl TextTable {
    /// An empty table with these headings.
    pub(super) fn new(columns: &[(&str, ColumnFit)]) -> Self {
        let mut table = Table::new();
        table
            .load_style(comfy_table::presets::NOTHING)
            // Where colour is not wanted, the stream takes it out again.
            .enforce_styling()
            .set_header(
                columns
                    .iter()
                    .map(|(heading, _)| Cell::new(heading).add_attribute(Attribute::Bold)),
            );
        // Otherwise the heading's style would keep the blanks at its line's end.
        table.style_text_only();
        let fits = columns.iter().map(|(_, fit)| *fit).collect();
        Self {
            fits,
            used: vec![false; columns.len()],
            words: vec![0; columns.len()],
            table,
        }
    }

    /// Adds a row with a cell for each heading.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        for ((used, longest), cell) in self.used.iter_mut().zip(&mut self.words).zip(&cells) {
            let content = cell.content();
            *used |= !content.is_empty();
            let words = content.split_whitespace().map(whole_width);
            *longest = (*longest).max(u16::try_from(words.max().unwrap_or(0)).unwrap_or(u16::MAX));
        }
        let mut row = Row::from(cells);
        if !self.fits.contains(&ColumnFit::Wrap) {
            row.max_height(1);
        }
        self.table.add_row(row);
    }

    /// The width of each column; `None` for one that is left out.
    fn widths(&self) -> Vec<Option<u16>> {
        let natural = self.table.column_max_content_widths();
        let columns = Columns {
            natural: &natural,
            words: &self.words,
            fits: &self.fits,
            used: &self.used,
        };
        columns.widths(output::line_width())
    }

    /// Whether there is no room for this column.
    pub(super) fn leaves_out(&self, column: usize) -> bool {
        self.widths().get(column).is_some_and(Option::is_none)
    }

    /// Prints it, without the blanks at line ends.
    pub(super) fn print(mut self) {
        let widths = self.widths();
        let last = widths.iter().rposition(Option::is_some).unwrap_or(0);
        for (at, width) in widths.into_iter().enumerate() {
            let Some(column) = self.table.column_mut(at) else {
                continue;
            };
            let gap = if at == last { 0 } else { GAP };
            column.set_padding((0, gap)).set_constraint(match width {
                Some(width) => ColumnConstraint::Absolute(Width::Fixed(width.saturating_add(gap))),
                None => ColumnConstraint::Hidden,
            });
        }
        for row in self.table.to_string().lines() {
            output::line(row.trim_end());
        }
    }
}

/// The width that a word needs: all of it, unless it is so long that it is broken.
fn whole_width(word: &str) -> usize {
    let width = display_width(word);
    if width > output::LONGEST_WORD {
        READABLE.into()
    } else {
        width
    }
}

/// A cell with a text of one line.
pub(super) fn cell(text: impl AsRef<str>) -> Cell {
    Cell::new(output::cut(text.as_ref(), CELL_CHARACTERS_MAX))
}

/// The columns of a table that is full.
struct Columns<'a> {
    /// How wide each would be without a limit.
    natural: &'a [u16],
    /// Its longest word.
    words: &'a [u16],
    fits: &'a [ColumnFit],
    used: &'a [bool],
}

impl Columns<'_> {
    /// The width of each; `None` for a column that is left out.
    fn widths(&self, room: Option<u16>) -> Vec<Option<u16>> {
        let Self {
            natural,
            words,
            fits,
            used,
        } = *self;
        let mut shown: Vec<bool> = used
            .iter()
            .zip(fits)
            .map(|(used, fit)| *used || matches!(fit, ColumnFit::Rank(_)))
            .collect();
        let Some(room) = room.map(u32::from) else {
            return natural
                .iter()
                .zip(shown)
                .map(|(width, shown)| shown.then_some(*width))
                .collect();
        };
        let flexible = |at: usize| matches!(fits[at], ColumnFit::Cut | ColumnFit::Wrap);
        // Names stay whole, also within a text that wraps.
        let least = |at: usize| {
            if fits[at] == ColumnFit::Wrap {
                words[at]
            } else {
                0
            }
        };
        let needed = |shown: &[bool], readable: u16| -> u32 {
            let visible = (0..fits.len()).filter(|at| shown[*at]);
            let width = |at: usize| {
                if flexible(at) {
                    natural[at].min(readable).max(least(at))
                } else {
                    natural[at]
                }
            };
            visible
                .map(|at| u32::from(width(at)) + u32::from(GAP))
                .sum::<u32>()
                .saturating_sub(GAP.into())
        };
        while needed(&shown, READABLE) > room {
            let rank = |at: &usize| {
                if let ColumnFit::Rank(rank) = fits[*at] {
                    Some(rank)
                } else {
                    None
                }
            };
            let Some(first) = (0..fits.len())
                .filter(|at| shown[*at] && rank(at).is_some())
                .max_by_key(rank)
            else {
                break;
            };
            shown[first] = false;
        }
        let texts: Vec<usize> = (0..fits.len())
            .filter(|at| shown[*at] && flexible(*at))
            .collect();
        let fixed = (0..fits.len())
            .filter(|at| shown[*at] && !flexible(*at))
            .map(|at| u32::from(natural[at]));
        let gaps = u32::from(GAP)
            * u32::try_from(
                shown
                    .iter()
                    .filter(|shown| **shown)
                    .count()
                    .saturating_sub(1),
            )
            .unwrap_or(0);
        let left =
            u16::try_from(room.saturating_sub(fixed.sum::<u32>() + gaps)).unwrap_or(u16::MAX);
        let readable = READABLE / u16::try_from(texts.len()).unwrap_or(1).max(1);
        let left = share(
            left,
            texts.iter().map(|at| (natural[*at], least(*at))).collect(),
        );
        let width = |at: usize| match fits[at] {
            ColumnFit::Whole | ColumnFit::Rank(_) => Some(natural[at]),
            ColumnFit::Cut => {
                Some(natural[at].min(left)).filter(|width| *width >= USELESS.min(natural[at]))
            }
            ColumnFit::Wrap => Some(natural[at].min(left.max(readable)).max(words[at])),
        };
        (0..fits.len())
            .map(|at| if shown[at] { width(at) } else { None })
            .collect()
    }
}

/// The most that each text may have so that all of them have room together: what short ones do not
/// need goes to the others, and what a long word needs is taken from them. Each text has its width
/// and its least one.
fn share(mut room: u16, mut texts: Vec<(u16, u16)>) -> u16 {
    texts.sort_unstable();
    let each = |room: u16, texts: usize| room / u16::try_from(texts.max(1)).unwrap_or(u16::MAX);
    let mut short = 0;
    while let Some((width, _)) = texts
        .get(short)
        .filter(|(width, _)| *width <= each(room, texts.len() - short))
    {
        room -= width;
        short += 1;
    }
    let mut long = texts.split_off(short);
    if long.is_empty() {
        return texts.last().map_or(room, |(width, _)| *width);
    }
    while let Some(at) = long
        .iter()
        .position(|(_, least)| *least > each(room, long.len()))
    {
        room = room.saturating_sub(long.swap_remove(at).1);
    }
    each(room, long.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widths of columns whose words are short.
    fn widths(
        natural: &[u16],
        fits: &[ColumnFit],
        used: &[bool],
        room: Option<u16>,
    ) -> Vec<Option<u16>> {
        Columns {
            natural,
            words: &[1; 4][..natural.len()],
            fits,
            used,
        }
        .widths(room)
    }

    const FITS: [ColumnFit; 4] = [
        ColumnFit::Whole,
        ColumnFit::Rank(1),
        ColumnFit::Rank(2),
        ColumnFit::Cut,
    ];

    #[test]
    fn without_a_limit_everything_is_whole() {
        assert_eq!(
            widths(&[10, 5, 6, 300], &FITS, &[true; 4], None),
            [10, 5, 6, 300].map(Some)
        );
    }

    #[test]
    fn what_has_room_stays() {
        assert_eq!(
            widths(&[10, 5, 6, 30], &FITS, &[true; 4], Some(80)),
            [10, 5, 6, 30].map(Some)
        );
        assert_eq!(
            widths(&[10, 5, 6, 300], &FITS, &[true; 4], Some(80)),
            [10, 5, 6, 53].map(Some)
        );
    }

    #[test]
    fn the_highest_rank_goes_first_then_texts_are_cut_and_names_never_are() {
        assert_eq!(
            widths(&[40, 5, 6, 300], &FITS, &[true; 4], Some(80)),
            [Some(40), Some(5), None, Some(31)]
        );
        assert_eq!(
            widths(&[50, 5, 6, 300], &FITS, &[true; 4], Some(80)),
            [Some(50), None, None, Some(28)]
        );
        assert_eq!(
            widths(&[64, 5, 6, 300], &FITS, &[true; 4], Some(80)),
            [Some(64), None, None, Some(14)]
        );
        assert_eq!(
            widths(&[75, 5, 6, 300], &FITS, &[true; 4], Some(80)),
            [Some(75), None, None, None]
        );
        assert_eq!(
            widths(&[90, 5, 6, 300], &FITS, &[true; 4], Some(80)),
            [Some(90), None, None, None]
        );
    }

    #[test]
    fn a_text_that_wraps_keeps_a_readable_width() {
        let fits = [ColumnFit::Whole, ColumnFit::Wrap];
        assert_eq!(
            widths(&[10, 300], &fits, &[true; 2], Some(80)),
            [Some(10), Some(68)]
        );
        assert_eq!(
            widths(&[70, 300], &fits, &[true; 2], Some(80)),
            [Some(70), Some(24)]
        );
    }

    #[test]
    fn the_longest_word_of_a_text_that_wraps_stays_whole() {
        let fits = [ColumnFit::Whole, ColumnFit::Wrap, ColumnFit::Wrap];
        let widths = |words: [u16; 3]| {
            Columns {
                natural: &[10, 300, 300],
                words: &words,
                fits: &fits,
                used: &[true; 3],
            }
            .widths(Some(80))
        };
        assert_eq!(widths([10, 8, 8]), [10, 33, 33].map(Some));
        assert_eq!(widths([10, 50, 8]), [10, 50, 16].map(Some));
        assert_eq!(
            widths([10, 60, 60]),
            [10, 60, 60].map(Some),
            "there is no room for both"
        );
    }

    #[test]
    fn a_word_longer_than_any_name_takes_no_more_than_a_readable_width() {
        let path = ["/usr/local/bin"; 20].join(":");
        assert_eq!(whole_width(&path), usize::from(READABLE));
        assert_eq!(
            whole_width(&"n".repeat(output::LONGEST_WORD)),
            output::LONGEST_WORD
        );
    }

    #[test]
    fn texts_share_the_room_that_short_ones_leave() {
        let fits = [
            ColumnFit::Whole,
            ColumnFit::Wrap,
            ColumnFit::Wrap,
            ColumnFit::Wrap,
        ];
        let shared = |natural: [u16; 4]| widths(&natural, &fits, &[true; 4], Some(106));
        assert_eq!(shared([10, 300, 20, 300]), [10, 35, 20, 35].map(Some));
        assert_eq!(shared([10, 300, 300, 300]), [10, 30, 30, 30].map(Some));
        assert_eq!(shared([10, 5, 6, 7]), [10, 5, 6, 7].map(Some));
        assert_eq!(shared([99, 300, 300, 300]), [99, 8, 8, 8].map(Some));
    }

    #[test]
    fn a_column_without_content_is_left_out() {
        assert_eq!(
            widths(&[10, 5, 6, 1], &FITS, &[true, true, true, false], None)[3],
            None
        );
    }
}
