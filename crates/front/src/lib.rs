//! Front ends: how a program that knows nothing of Holdfast sees a volume.
//!
//! Promise: one folder a protocol, each with the same three parts: `parse` turns bytes into
//! requests and knows no volume, `serve` answers requests from a tree or a disk and knows no
//! descriptor, `listen` moves bytes and knows neither.
//! Never: holds durable state. A front end that dies at any instruction loses nothing.

mod abort;
mod complaints;
mod flusher;
pub mod fuse;
pub mod nbd;
mod sectors;
pub mod ublk;
pub mod vhost_user;
mod wake;
