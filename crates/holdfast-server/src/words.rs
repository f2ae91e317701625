//! The server's words in the region of a served log, all in [`holdfast_log::words::SERVER`].
//!
//! Promise: `holdfast status` reads them while the server lives, and after it died.
//! Never: a word of the log or of its reader.

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

const _: () = assert!(DAMAGE < SERVER.end);
