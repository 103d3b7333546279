//! `typhon db`: what lies on disk.

pub(crate) mod log;
