//! Where output goes. Knows whether a person is looking (width, colours) and buffers; decides nothing about content.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use anstream::AutoStream;
use terminal_size::{Width, terminal_size_of};

use crate::text::visible;

/// stdout of a command that writes for people: colours only where they are wanted.
pub(crate) struct Screen {
    out: BufWriter<AutoStream<StdoutLock<'static>>>,
    /// Cells of a line; none when no terminal reads it and lines are as long as they are.
    pub(crate) width: Option<usize>,
}

impl Screen {
    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        let width = terminal_size_of(&stdout).map(|(Width(cells), _)| usize::from(cells));
        // A terminal that reports no size gets the classic one.
        let width = width
            .filter(|cells| *cells > 0)
            .or_else(|| stdout.is_terminal().then_some(80));
        Self {
            out: BufWriter::new(AutoStream::auto(stdout.lock())),
            width,
        }
    }

    /// A principal: enough of it for a reader to tell two apart and for `--principal`, all of it for other programs.
    pub(crate) fn principal(&self, principal: &str) -> String {
        let shown = self.width.map_or(usize::MAX, |_| 8);
        visible(principal).chars().take(shown).collect()
    }

    /// Whether a person sees fewer cells than these: then something has to give way.
    pub(crate) fn narrower_than(&self, cells: usize) -> bool {
        self.width.is_some_and(|width| width < cells)
    }

    /// How much of a recorded text is worth preparing for one line, in bytes.
    pub(crate) fn room(&self) -> usize {
        self.width
            .map_or(usize::MAX, |cells| cells.saturating_mul(4))
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// stdout of a command that writes for machines: byte for byte.
pub(crate) fn lines() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}
