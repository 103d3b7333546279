//! The others, each as its documentation says that an append is durable.

#[cfg(feature = "peers")]
pub mod fjall;
#[cfg(feature = "peers")]
pub mod lmdb;
#[cfg(feature = "peers")]
pub mod okaywal;
#[cfg(feature = "peers")]
pub mod raft_engine;
#[cfg(feature = "peers")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "peers")]
pub mod sqlite;
