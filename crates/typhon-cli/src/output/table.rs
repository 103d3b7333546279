//! Tables that fit the terminal. Into a pipe or file they are as wide as their content.

use anstyle::{Effects, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns narrower than this are not cut further.
const CUT_WIDTH_MIN: usize = 8;
const GAP: &str = "  ";

/// On which side a column is filled up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with one cell per column. Cells must be printable.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The table as text, with a bold heading if `styled`, at most `width` columns wide where cutting cells allows.
    pub(crate) fn render(&self, width: Option<usize>, styled: bool) -> String {
        let widths = self.widths(width);
        let bold = if styled { Style::new().effects(Effects::BOLD) } else { Style::new() };
        let titles: Vec<&str> = self.columns.iter().map(|(title, _)| *title).collect();
        let mut out = format!("{bold}{}{bold:#}\n", self.line(&titles, &widths));
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            out.push_str(&self.line(&cells, &widths));
            out.push('\n');
        }
        out
    }

    /// Natural widths; when they do not fit, the widest left-aligned columns give way. Numbers are never cut.
    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(title, _)| title.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let Some(limit) = limit else { return widths };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > limit {
            let cuttable = self.columns.iter().zip(&mut widths);
            let widest = cuttable
                .filter(|((_, align), width)| *align == Align::Left && **width > CUT_WIDTH_MIN)
                .map(|(_, width)| width)
                .max();
            match widest {
                Some(width) => *width -= 1,
                None => break,
            }
        }
        widths
    }

    fn line(&self, cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, ((cell, &width), (_, align))) in cells.iter().zip(widths).zip(&self.columns).enumerate() {
            if index > 0 {
                line.push_str(GAP);
            }
            let cell = cut(cell, width);
            let fill = " ".repeat(width - cell.width());
            match align {
                Align::Left => line.extend([cell.as_str(), &fill]),
                Align::Right => line.extend([fill.as_str(), &cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// At most `width` columns; a cut cell ends in `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table =
            Table::new(&[("KIND", Align::Left), ("COUNT", Align::Right), ("SUMMARY", Align::Left)]);
        table.push(vec!["BTreeInsert".into(), "421,088".into(), "a key is inserted into a B+Tree".into()]);
        table.push(vec!["日本".into(), "7".into(), "wide".into()]);
        table
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        assert_eq!(
            sample().render(None, false),
            "KIND           COUNT  SUMMARY\n\
             BTreeInsert  421,088  a key is inserted into a B+Tree\n\
             日本               7  wide\n"
        );
    }

    #[test]
    fn fits_forty_columns() {
        let text = sample().render(Some(40), false);
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(text.contains("421,088") && text.contains('…'), "{text}");
    }

    #[test]
    fn absurdly_narrow_terminals_keep_the_numbers() {
        let text = sample().render(Some(3), false);
        assert!(text.contains("421,088"), "{text}");
    }

    #[test]
    fn wide_characters_are_cut_whole() {
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
