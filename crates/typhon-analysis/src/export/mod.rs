//! The same data in the formats of other tools.
//!
//! Writers here know the target format only: [`perfetto`] writes the protobuf that Perfetto's UI and trace processor read.
//! They stream, keep no events, and are fed by the conversion of a whole file.

pub mod chrome;
pub mod perfetto;
mod protobuf;
