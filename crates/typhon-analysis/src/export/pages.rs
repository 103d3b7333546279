//! Blocks that are kept because spans in them wait for nesting.

use typhon_trace::record::Record;

/// Where the bytes of a waiting span are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handle {
    pub(super) page: u32,
    pub(super) offset: u32,
    pub(super) thread: u32,
}

/// Decoded blocks of which spans are still waiting.
#[derive(Default)]
pub(super) struct Pages {
    pages: Vec<Page>,
    free: Vec<u32>,
    bytes: usize,
}

#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    waiting: u32,
}

impl Pages {
    /// Bytes of all blocks of which spans wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of a page for a block of which no span waits yet.
    pub(super) fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.pages.push(Page::default());
            self.pages.len() as u32 - 1
        })
    }

    /// Gives a page its block, of which so many spans wait.
    pub(super) fn fill(&mut self, page: u32, bytes: Vec<u8>, waiting: u32) {
        self.bytes += bytes.len();
        self.pages[page as usize] = Page { bytes, waiting };
        if waiting == 0 {
            self.clear(page);
        }
    }

    /// The record of a waiting span.
    pub(super) fn record(&self, handle: Handle) -> Option<Record<'_>> {
        Record::parse(&self.pages[handle.page as usize].bytes[handle.offset as usize..]).ok()
    }

    /// One of the page's spans waits no longer.
    pub(super) fn release(&mut self, page: u32) {
        let waiting = &mut self.pages[page as usize].waiting;
        *waiting -= 1;
        if *waiting == 0 {
            self.clear(page);
        }
    }

    fn clear(&mut self, page: u32) {
        let cleared = std::mem::take(&mut self.pages[page as usize]);
        self.bytes -= cleared.bytes.len();
        self.free.push(page);
    }
}
