//! Snapshots that the server keeps, as its client sees them.
//!
//! Promise: a snapshot that was made is whole; what is brought of one is what was put, or there is
//! an error. A server that is replaced meanwhile costs time, nothing else.
//! Never: talks to QEMU.

use holdfast_client::protocol::SNAPSHOT_PREFIX;
use holdfast_client::{ConnectError, RequestError, ResponderClient};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_io::Entropy;
use holdfast_io::private;
use holdfast_io::real::RealEntropy;
use holdfast_snapshot::{
    Answer, ImageKind, NewImage, PIECE_BYTES_MAX, Refusal, Request, Snapshot, is_zeros,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Bytes of a page: pieces have a multiple of it.
const PAGE_BYTES: u64 = 4096;

/// How often a snapshot is begun again because the server was replaced while it was made.
const BEGINNINGS_MAX: u32 = 5;

/// How long a server may take to follow one that died while it was connected to.
const DEATH_PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// A connection to a service of snapshots.
#[derive(Debug)]
pub(crate) struct SnapshotService {
    client: ResponderClient,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    /// There is no such service to be had.
    #[error(transparent)]
    Connect(ConnectError),
    /// The service did not answer.
    #[error(transparent)]
    Request(RequestError),
    /// The service refused.
    #[error(transparent)]
    Refused(Refusal),
    /// No snapshot has this name.
    #[error("there is no snapshot {0}")]
    NoName(String),
    /// What was answered is no answer.
    #[error("what the service answers is no answer")]
    Malformed,
    /// A file here failed.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// Service and name of a snapshot, if both are given.
pub(crate) fn part(name: &str) -> Option<(&str, &str)> {
    name.split_once('/')
}

impl SnapshotService {
    /// Connects to the service of this name.
    pub(crate) fn connect(config: &Config, name: &str) -> Result<SnapshotService, ServiceError> {
        let service = format!("{SNAPSHOT_PREFIX}{name}");
        let begun = Instant::now();
        loop {
            match ResponderClient::connect(&config.server.socket, &service) {
                Ok(client) => return Ok(SnapshotService { client }),
                Err(error) if is_death(&error) && begun.elapsed() < DEATH_PATIENCE => {
                    std::thread::sleep(TRY_EVERY);
                }
                Err(error) => return Err(ServiceError::Connect(error)),
            }
        }
    }

    /// All snapshots, the oldest first.
    pub(crate) fn list(&self) -> Result<Vec<Snapshot>, ServiceError> {
        match self.ask(&Request::List, &[])? {
            (Answer::Snapshots(list), _) => Ok(list),
            _ => Err(ServiceError::Malformed),
        }
    }

    /// The snapshot of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Snapshot, ServiceError> {
        let found = self.list()?.into_iter().find(|snapshot| snapshot.name == name);
        found.ok_or_else(|| ServiceError::NoName(name.to_owned()))
    }

    /// Removes the snapshot of this name.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ServiceError> {
        let id = self.find(name)?.id;
        self.done(&Request::Remove { id }, &[])
    }

    /// Makes a snapshot of files, which do not change meanwhile, and of the service's disks.
    pub(crate) fn make(
        &self,
        name: &str,
        note: &str,
        files: &[PathBuf],
    ) -> Result<(), ServiceError> {
        for _ in 1..BEGINNINGS_MAX {
            match self.make_once(name, note, files) {
                Err(ServiceError::Refused(Refusal::NoDraft)) => {}
                made => return made,
            }
        }
        self.make_once(name, note, files)
    }

    fn make_once(&self, name: &str, note: &str, files: &[PathBuf]) -> Result<(), ServiceError> {
        let (id, name, note) = (drawn(), name.to_owned(), note.to_owned());
        let images = files.iter().map(new_image).collect::<Result<_, _>>()?;
        self.done(&Request::Begin { id, name, taken_ms: now_ms(), note, images }, &[])?;
        for (image, file) in (0..).zip(files) {
            self.put(id, image, file)?;
        }
        self.done(&Request::TakeDisks { id }, &[])?;
        self.done(&Request::Commit { id }, &[])
    }

    fn put(&self, id: u64, image: u32, path: &PathBuf) -> Result<(), ServiceError> {
        let failed = |error| ServiceError::File(path.to_path_buf(), error);
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut piece = Vec::new();
        for offset in (0..bytes).step_by(PIECE_BYTES_MAX) {
            let rest = (bytes - offset).min(PIECE_BYTES_MAX as u64);
            piece.clear();
            piece.resize(rest.next_multiple_of(PAGE_BYTES) as usize, 0);
            file.read_exact_at(&mut piece[..rest as usize], offset).map_err(failed)?;
            if !is_zeros(&piece) {
                self.done(&Request::Put { id, image, offset }, &piece)?;
            }
        }
        Ok(())
    }

    /// Makes files of what clients put of a snapshot, as many as there are of both.
    pub(crate) fn bring(&self, from: &Snapshot, files: &[PathBuf]) -> Result<(), ServiceError> {
        let put = (0..).zip(&from.images).filter(|(_, image)| image.kind == ImageKind::Memory);
        for ((image, its), path) in put.zip(files) {
            self.bring_one(from.id, image, its.size_bytes, path)?;
        }
        Ok(())
    }

    fn bring_one(&self, id: u64, image: u32, bytes: u64, path: &Path) -> Result<(), ServiceError> {
        let failed = |error| ServiceError::File(path.to_path_buf(), error);
        let file = match private::open(path, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => private::create(path),
            opened => opened,
        };
        let file = file.map_err(failed)?;
        file.set_len(0).and_then(|()| file.set_len(bytes)).map_err(failed)?;
        for offset in (0..bytes).step_by(PIECE_BYTES_MAX) {
            let rest = (bytes - offset).min(PIECE_BYTES_MAX as u64);
            let bytes = rest.next_multiple_of(PAGE_BYTES) as u32;
            match self.ask(&Request::Read { id, image, offset, bytes }, &[])? {
                (Answer::Zeros, _) => {}
                (Answer::Bytes, read) if read.len() == bytes as usize => {
                    file.write_all_at(&read[..rest as usize], offset).map_err(failed)?;
                }
                _ => return Err(ServiceError::Malformed),
            }
        }
        Ok(())
    }

    /// Makes the service's disks what they were.
    pub(crate) fn restore_disks(&self, from: &Snapshot) -> Result<(), ServiceError> {
        self.done(&Request::RestoreDisks { id: from.id }, &[])
    }

    fn done(&self, request: &Request, piece: &[u8]) -> Result<(), ServiceError> {
        match self.ask(request, piece)? {
            (Answer::Done, _) => Ok(()),
            _ => Err(ServiceError::Malformed),
        }
    }

    fn ask(&self, request: &Request, piece: &[u8]) -> Result<(Answer, Vec<u8>), ServiceError> {
        let answer = self.client.request(&request.encode(piece)).map_err(ServiceError::Request)?;
        match Answer::decode(&answer).map_err(|_| ServiceError::Malformed)? {
            (Answer::Refused(refusal), _) => Err(ServiceError::Refused(refusal)),
            (told, read) => Ok((told, read.to_vec())),
        }
    }
}

/// Whether a server died before it answered; where there is no keeper, nobody is connected to.
fn is_death(error: &ConnectError) -> bool {
    let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    matches!(error, ConnectError::Unreachable(error) if ends.contains(&error.kind()))
}

fn new_image(path: &PathBuf) -> Result<NewImage, ServiceError> {
    let failed = |error| ServiceError::File(path.clone(), error);
    let size_bytes = std::fs::metadata(path).map_err(failed)?.len();
    Ok(NewImage { name: path.display().to_string(), size_bytes })
}

fn drawn() -> u64 {
    let mut bytes = [0; 8];
    RealEntropy.fill(&mut bytes);
    u64::from_le_bytes(bytes).max(1)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl ServiceError {
    /// As a problem of whoever wanted this.
    pub(crate) fn problem(&self, what: &str) -> Problem {
        let (exit, remedy) = match self {
            Self::Connect(ConnectError::Unreachable(_)) => {
                (Exit::NotRunning, "start the keeper, `holdfast serve`")
            }
            Self::Connect(_) => (Exit::Failed, "see `holdfast status` for the server"),
            Self::Refused(Refusal::Damaged { .. }) => (Exit::Damaged, "remove the snapshot"),
            Self::Refused(_) | Self::NoName(_) => {
                (Exit::Usage, "see what there is: `holdfast snapshot list SERVICE`")
            }
            _ => (Exit::Failed, "see the keeper's log"),
        };
        Problem::new(exit, what.to_owned(), self, remedy)
    }
}
