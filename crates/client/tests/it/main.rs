//! The example program, killed and recovered.

// In a test, and in what tests are made of, a failed step is the end of the test.
#![allow(clippy::unwrap_used)]

use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{Log, LogConfig};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_server::{LogSpec, Server, ServerSpec};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

const IDENTITY: [u8; 16] = *b"the ledger's log";
const CONFIG: LogConfig = LogConfig::in_ring(4 << 20, 1 << 20, 4);

/// The log `ledger` in a directory.
fn server(root: &Path) -> Server {
    let medium = Medium::File { path: root.join("region") };
    let spec = RegionSpec { ring_bytes: 4 << 20, roster_bytes: 4096, identity: IDENTITY };
    let region = Region::create(&medium, &spec).unwrap();
    let files = RealFiles::open(&root.join("log")).unwrap();
    let owner = std::fs::metadata(root).unwrap();
    let log = LogSpec {
        service: "log/ledger".into(),
        files: Arc::new(files),
        region: Arc::new(region),
        clock: Arc::new(RealClock),
        config: CONFIG,
        is_written_through: false,
        allow_uids: vec![std::os::unix::fs::MetadataExt::uid(&owner)],
        clients_max: 4,
    };
    let (server, errors) =
        Server::open(ServerSpec { logs: vec![log], services: vec![], clients_max: 4 });
    assert!(errors.is_empty(), "{errors:?}");
    server
}

/// The example, running.
struct Ledger {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Ledger {
    /// Cargo builds examples beside the tests of their crate.
    fn start(socket: &Path) -> Ledger {
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("examples/served_ledger");
        let mut command = Command::new(program);
        command.arg(socket).arg("ledger").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap());
        Ledger { process, to, from }
    }

    fn book(&mut self, booking: &str) -> String {
        writeln!(self.to, "{booking}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_ledger_that_was_killed_goes_on_with_every_booking_it_confirmed() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("log")).unwrap();
    Log::create(&RealFiles::open(&root.path().join("log")).unwrap(), IDENTITY, &CONFIG).unwrap();
    let server = server(root.path());
    let socket = root.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let (stop, told) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&listener, &told, &told, &told).unwrap());
        let mut ledger = Ledger::start(&socket);
        assert_eq!(ledger.book("rent -700"), "rent -700");
        assert_eq!(ledger.book("bread -3"), "bread -3");
        ledger.kill();
        let mut ledger = Ledger::start(&socket);
        assert_eq!(ledger.book("rent -50"), "rent -750");
        assert_eq!(ledger.book("bread 1"), "bread -2");
        ledger.kill();
        drop(stop);
    });
}
