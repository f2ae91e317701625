//! The server's words in the region of a service, all in [`holdfast_log::words::SERVER`].
//!
//! Promise: `holdfast status` reads them while the server lives, and after it died.
//! Never: a word of what else keeps its words in the region.

use holdfast_log::words::SERVER;

/// The root of the service: the check value of its handle, drawn when it was first served.
pub const ROOT: usize = SERVER.start;
/// Clients that have a session now.
pub const CLIENTS: usize = SERVER.start + 1;
/// Appends acknowledged.
pub const APPENDED: usize = SERVER.start + 2;
/// Appends that were repeated, and answered as the first time.
pub const REPLAYED: usize = SERVER.start + 3;
/// Requests and hellos that were refused as wrong or not allowed.
pub const REFUSED: usize = SERVER.start + 4;
/// Times a client's queue was found damaged, and made anew.
pub const DAMAGE: usize = SERVER.start + 5;
/// Requests done, of a service that is no log.
pub const REQUESTS: usize = SERVER.start + 6;

const _: () = assert!(REQUESTS < SERVER.end);
