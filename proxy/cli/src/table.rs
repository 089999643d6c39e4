//! Tables: aligned columns that fit the terminal, or keep every character when no terminal reads them.
//!
//! Rows are printed as they come (`tail`, millions of calls), so a column only ever grows: [`Table::measure`] lets it see
//! some rows first. The last column takes what is left of the line.

use std::io::{self, Write};

use anstyle::Style;

use crate::terminal::Screen;
use crate::text::{padding, truncate, width};
use crate::words::{DIM, PLAIN};

const GAP: &str = "  ";
/// What the last column gets at least if it needs so much, before others have to give way.
const LAST: usize = 20;
/// What a column that gives way keeps.
const SHRUNK: usize = 8;

/// What a column is padded to at most where nothing is cut.
const WIDEST: usize = 60;

/// A column.
pub(crate) struct Column {
    title: String,
    right: bool,
    /// May be cut on a terminal.
    shrinks: bool,
    width: usize,
}

impl Column {
    /// Always shown whole.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        let title = title.into();
        Self {
            width: width(&title),
            title,
            right: false,
            shrinks: false,
        }
    }

    /// For numbers.
    pub(crate) fn right(self) -> Self {
        Self {
            right: true,
            ..self
        }
    }

    /// At least so wide.
    pub(crate) fn at_least(self, cells: usize) -> Self {
        Self {
            width: self.width.max(cells),
            ..self
        }
    }

    /// For names that may be long.
    pub(crate) fn shrinks(self) -> Self {
        Self {
            shrinks: true,
            ..self
        }
    }
}

/// What stands in a column.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::styled(text, PLAIN)
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

/// Columns with the widths found so far.
pub(crate) struct Table {
    columns: Vec<Column>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns }
    }

    /// Makes room for these rows.
    pub(crate) fn measure<'a>(&mut self, rows: impl IntoIterator<Item = &'a Vec<Cell>>) {
        for row in rows {
            for (column, cell) in self.columns.iter_mut().zip(row) {
                column.width = column.width.max(width(&cell.text));
            }
        }
    }

    /// Prints the titles.
    pub(crate) fn head(&self, screen: &mut Screen) -> io::Result<()> {
        let titles: Vec<Cell> = self
            .columns
            .iter()
            .map(|column| Cell::styled(&column.title, DIM))
            .collect();
        self.print(screen, &titles)
    }

    /// Prints a row.
    pub(crate) fn row(&mut self, screen: &mut Screen, row: &Vec<Cell>) -> io::Result<()> {
        self.measure([row]);
        self.print(screen, row)
    }

    fn print(&self, screen: &mut Screen, row: &[Cell]) -> io::Result<()> {
        let widths = self.widths(screen.width);
        let mut used = 0;
        // Printed only in front of something: no spaces at the end of a line.
        let mut space = String::new();
        for (at, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
            let left = screen
                .width
                .map_or(usize::MAX, |cells| cells.saturating_sub(used + space.len()));
            let fixed = widths.get(at).copied();
            let room = if screen.width.is_some() {
                fixed.unwrap_or(left)
            } else {
                usize::MAX
            };
            let text = truncate(&cell.text, room);
            let fill = padding(&text, fixed.unwrap_or(0));
            let mut after = GAP.to_owned();
            if column.right {
                space.push_str(&fill);
            } else {
                after.insert_str(0, &fill);
            }
            if !text.is_empty() {
                let style = cell.style;
                write!(screen, "{space}{style}{text}{style:#}")?;
                used += space.len() + width(&text);
                space.clear();
            }
            space.push_str(&after);
        }
        writeln!(screen)
    }

    /// Widths of all columns but the last, made to fit.
    fn widths(&self, cells: Option<usize>) -> Vec<usize> {
        let inner = self.columns.len().saturating_sub(1);
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .take(inner)
            .map(|column| column.width)
            .collect();
        let Some(cells) = cells else {
            // Nothing is cut, but one long text must not push a thousand lines apart.
            return widths.into_iter().map(|width| width.min(WIDEST)).collect();
        };
        for width in &mut widths {
            *width = cells.min(*width);
        }
        let last = self
            .columns
            .last()
            .map_or(0, |column| column.width.min(LAST));
        let room = cells.saturating_sub(last + inner * GAP.len());
        loop {
            let over = widths.iter().sum::<usize>().saturating_sub(room);
            let widest = widths
                .iter_mut()
                .zip(&self.columns)
                .filter(|(_, column)| column.shrinks);
            match widest.map(|(width, _)| width).max() {
                Some(width) if over > 0 && *width > SHRUNK => *width -= 1,
                _ => return widths,
            }
        }
    }
}
