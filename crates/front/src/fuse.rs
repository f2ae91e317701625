//! A tree as a Linux file system, over `/dev/fuse`.
//!
//! Promise: the process that serves can be killed at any instruction and replaced. The descriptor
//! from [`mount()`] stays with the keeper; the next process adopts it ([`Session::adopt`]), asks
//! for the unanswered requests again ([`Session::resend`]) and goes on. No program sees an error.
//! The keeper itself has nothing open on the mount: a process that it starts would close that
//! before it could serve, and wait for itself.
//! Never: depends on anything this process saw earlier on the descriptor, `INIT` included: who did
//! not see that one is asked what others are not, and answers.
//!
//! What programs get that other file systems do more of:
//! - `flock` and `fcntl` locks are kept by the kernel, among the programs of this machine;
//! - `copy_file_range`, `FIEMAP`: the kernel's generic answers;
//! - device files are kept, but cannot be opened through the mount; set-user-id has no effect.

mod cache;
mod callers;
mod disk;
mod listen;
mod mount;
mod negotiate;
mod parked;
pub mod parse;
#[allow(unsafe_code)]
mod raw;
pub mod reply;
mod serve;
mod wire;

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_io::tree::{Asker, Errno, Tree, on_behalf_of};
use holdfast_peers::in_hand::{Doing, InHand};
use std::time::Duration;

pub use cache::Cache;
pub use disk::DiskTree;
pub use listen::{Answered, Answers, ListenConfig, ListenError, Session};
pub use mount::{MountError, MountOptions, Unmount, mount, mount_on, unmount};
pub use serve::Server;

use parse::Operation;

/// How to serve a tree.
#[derive(Clone, Copy, Debug)]
pub struct FuseConfig {
    /// How the descriptor is read.
    pub listen: ListenConfig,
    /// What the kernel may keep of a file's contents, if the mount begins now.
    pub cache: Cache,
}

/// Serves `tree` until the file system is unmounted.
///
/// A panic in the tree ends the whole process, so that whoever holds the descriptor notices and
/// starts another: a file system that answers only some requests is worse than none.
pub fn serve(session: &Session, tree: &dyn Tree, config: &FuseConfig) -> Result<(), ListenError> {
    let server = Server::new(tree, config.cache, utc_now_ns);
    session.listen(&config.listen, &Served { server, tree })
}

/// What answers the requests of a tree.
struct Served<'t> {
    server: Server<'t>,
    tree: &'t dyn Tree,
}

impl Answers for Served<'_> {
    fn answer(&self, asker: Asker, message: &[u8], answer: &mut [u8]) -> Answered {
        on_behalf_of(asker, || answer_one(&self.server, message, answer))
    }

    fn wait_until_later(&self, patience: Duration) {
        self.tree.wait_until_later(patience);
    }
}

/// Parse, serve, encode.
fn answer_one(server: &Server<'_>, message: &[u8], answer: &mut [u8]) -> Answered {
    let (unique, reply) = match parse::parse(message) {
        Ok(request) => {
            let _in_hand = InHand::take(doing(&request.operation));
            (request.unique, server.serve(&request, &mut answer[reply::HEADER_BYTES..]))
        }
        Err(fault) => match fault.unique() {
            Some(unique) => (unique, reply::Reply::Failed(wire::EIO)),
            None => return Answered::Nothing,
        },
    };
    match reply {
        reply::Reply::Failed(errno) if errno == Errno::LATER.0 => Answered::Later,
        reply => Answered::of(reply::encode(&reply, unique, answer)),
    }
}

/// What a request has done, for whoever watches.
fn doing(operation: &Operation<'_>) -> Doing {
    match operation {
        Operation::Read { .. } | Operation::Seek { .. } | Operation::ReadLink => Doing::Read,
        Operation::Write(_) | Operation::Allocate { .. } => Doing::Write,
        Operation::Sync | Operation::SyncDirectory | Operation::SyncFileSystem => Doing::Sync,
        Operation::Lookup { .. } => Doing::Lookup,
        Operation::Open(_)
        | Operation::OpenDirectory
        | Operation::Release
        | Operation::ReleaseDirectory => Doing::Open,
        Operation::Symlink { .. }
        | Operation::MakeNode { .. }
        | Operation::MakeDirectory { .. }
        | Operation::Create { .. }
        | Operation::CreateUnnamed { .. }
        | Operation::Link { .. } => Doing::Make,
        Operation::Unlink { .. } | Operation::RemoveDirectory { .. } => Doing::Remove,
        Operation::Rename { .. } => Doing::Rename,
        Operation::GetAttributes
        | Operation::SetAttributes(_)
        | Operation::StatFs
        | Operation::GetXattr { .. }
        | Operation::ListXattr { .. }
        | Operation::SetXattr(_)
        | Operation::RemoveXattr { .. } => Doing::Attributes,
        Operation::ReadDirectory { .. } | Operation::ReadDirectoryPlus { .. } => Doing::List,
        _ => Doing::Other,
    }
}

fn utc_now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
