//! Protocol facts about MCP traffic, without IO: content codings, server-sent events, JSON-RPC.
//!
//! Everything here works on a copy of what passed on the wire. It never decides what is forwarded, opens no file and no
//! socket, and keeps no clock. Input is hostile by assumption: nothing panics, nothing recurses on depth that the peer
//! chooses, and every buffer has a limit that the caller set.

#[warn(clippy::indexing_slicing)]
pub mod coding;
#[warn(clippy::indexing_slicing)]
pub mod collect;
#[warn(clippy::indexing_slicing)]
pub mod json;
pub mod mcp;
pub mod redact;
#[warn(clippy::indexing_slicing)]
pub mod rpc;
#[warn(clippy::indexing_slicing)]
pub mod sse;
