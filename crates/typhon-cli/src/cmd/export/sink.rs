//! The destination of text and foreign formats: a file, perhaps compressed.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Write};

/// The fastest level: the usual one makes files a third smaller, but takes many times as long as the export itself.
const LEVEL: Compression = Compression::fast();

/// A file, perhaps compressed. It does not buffer.
pub(super) enum Sink {
    Plain(File),
    Gzip(Box<GzEncoder<File>>),
}

impl Sink {
    pub(super) fn new(file: File, compress: bool) -> Self {
        match compress {
            true => Self::Gzip(Box::new(GzEncoder::new(file, LEVEL))),
            false => Self::Plain(file),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}
