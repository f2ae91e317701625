//! A tree mounted for the length of a test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use holdfast_front::fuse::{
    self, Cache, FuseConfig, ListenConfig, MountOptions, Session, Unmount, mount, unmount,
};
use holdfast_io::tree::Tree;
use tempfile::TempDir;

pub(crate) const CACHES: [Cache; 2] = [Cache::Direct, Cache::WriteThrough];

pub(crate) struct Mounted {
    directory: TempDir,
    server: Option<JoinHandle<()>>,
}

/// Mounts an empty directory of the system's temporary one.
pub(crate) fn mount_point() -> (TempDir, std::os::fd::OwnedFd) {
    let directory = tempfile::tempdir().unwrap();
    let options = MountOptions { name: "holdfast-test".into() };
    let device = mount(directory.path(), &options)
        .unwrap_or_else(|error| panic!("this test needs root and /dev/fuse: {error}"));
    (directory, device)
}

impl Mounted {
    pub(crate) fn new(tree: Arc<dyn Tree>, cache: Cache) -> Self {
        let (directory, device) = mount_point();
        // One of the two modes also looks for requests before it sleeps.
        let listen = ListenConfig { threads: 2 };
        let server = thread::spawn(move || {
            let session = Session::adopt(device);
            fuse::serve(&session, &*tree, &FuseConfig { listen, cache }).unwrap();
        });
        Self { directory, server: Some(server) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Unmounts and waits for the server to end by itself.
    pub(crate) fn end(mut self) {
        // A process that another test is just starting holds copies of all descriptors.
        while let Err(error) = unmount(self.path(), Unmount::IfIdle) {
            assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
            thread::yield_now();
        }
        self.server.take().unwrap().join().unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.server.is_some() {
            let _ = unmount(self.path(), Unmount::Detach);
        }
    }
}
