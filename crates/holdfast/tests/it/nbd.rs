//! Volumes whose disk is a network block device.

use crate::block::run;
use crate::fixture::{Fixture, NAME, kill, wait_until};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use vm_memory::FileOffset;
use vm_memory::mmap::{MmapRegion, MmapRegionError};

const DISK_BYTES: u64 = 32 << 20;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

/// The least that a client of a network block device has to know.
pub(crate) struct Client<S>(S);

impl<S: Read + Write> Client<S> {
    /// Chooses the only export.
    pub(crate) fn new(mut stream: S) -> io::Result<Client<S>> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed newstyle without zeroes; then EXPORT_NAME with no name.
        stream.write_all(&3_u32.to_be_bytes())?;
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0")?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        assert_eq!(export[..8], DISK_BYTES.to_be_bytes(), "the size of the export");
        Ok(Client(stream))
    }

    fn request(&mut self, command: u16, offset: u64, bytes: u32, data: &[u8]) -> io::Result<()> {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(0_u16.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(7_u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(bytes.to_be_bytes());
        request.extend(data);
        self.0.write_all(&request)?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes(), "a simple reply");
        assert_eq!(reply[4..8], [0; 4], "command {command} at {offset} failed");
        Ok(())
    }

    pub(crate) fn write(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        self.request(WRITE, offset, data.len() as u32, data)
    }

    pub(crate) fn read(&mut self, bytes: usize, offset: u64) -> io::Result<Vec<u8>> {
        self.request(READ, offset, bytes as u32, &[])?;
        let mut data = vec![0; bytes];
        self.0.read_exact(&mut data)?;
        Ok(data)
    }
}

/// A port that no other test of this process was given: the system gives one again at once.
fn port_of_its_own() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut given = GIVEN.lock().unwrap();
    std::iter::repeat_with(free).find(|port| given.insert(*port)).unwrap()
}

/// A volume that is a network block device, at a unix socket and a TCP port, and is not mounted.
pub(crate) struct Served {
    pub(crate) fixture: Fixture,
    pub(crate) port: u16,
}

impl Served {
    pub(crate) fn new() -> Served {
        let port = port_of_its_own();
        let served = Served { fixture: Fixture::new(), port };
        let fixture = &served.fixture;
        fs::remove_dir(fixture.home()).unwrap();
        fs::File::create(fixture.home()).unwrap().set_len(DISK_BYTES).unwrap();
        let mount = format!("mount = {:?}", fixture.mount());
        fixture.reconfigure(&mount, &served.nbd());
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        served
    }

    pub(crate) fn nbd(&self) -> String {
        let unix = format!("unix:{}", self.socket().display());
        format!("nbd = [{unix:?}, \"tcp:127.0.0.1:{}\"]", self.port)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.fixture.path("disk.sock")
    }

    pub(crate) fn unix(&self) -> Client<UnixStream> {
        Client::new(UnixStream::connect(self.socket()).unwrap()).unwrap()
    }

    fn tcp(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(("127.0.0.1", self.port)).unwrap()).unwrap()
    }
}

#[test]
fn what_clients_of_both_sockets_write_is_in_the_home_after_umount() {
    let mut served = Served::new();
    served.fixture.serve();
    let (mut one, mut other) = (served.unix(), served.tcp());
    one.write(&[1; 300_000], 1000).unwrap();
    assert_eq!(other.read(300_000, 1000).unwrap(), [1; 300_000]);
    other.write(&[2; 4096], DISK_BYTES - 4096).unwrap();
    other.request(TRIM, 2048, 1024, &[]).unwrap();
    one.request(FLUSH, 0, 0, &[]).unwrap();
    let status = served.fixture.holdfast(&["status"]).succeeded().out;
    assert!(status.contains("nbd          unix:/"), "{status}");
    assert!(status.contains(&format!("nbd          tcp:127.0.0.1:{}", served.port)), "{status}");
    let listed = served.fixture.holdfast(&["volume", "list"]).succeeded().out;
    assert!(listed.contains(" attached") && listed.contains("-> attached at unix:"), "{listed}");
    let refused = served.fixture.holdfast(&["umount", NAME]);
    refused.expect(5, &["1 clients are connected at unix:", "--force"]);
    drop(one);
    let refused = served.fixture.holdfast(&["umount", NAME]);
    refused.expect(5, &["1 clients are connected at tcp:", "--force"]);
    assert_eq!(other.read(10, 1000).unwrap(), [1; 10], "a refusal has no effect");
    drop(other);
    let unmounted = || served.fixture.holdfast(&["umount", NAME]).code == Some(0);
    wait_until(unmounted, || served.fixture.status().to_string());
    served.fixture.assert_given_back();
    assert!(!served.socket().exists(), "the socket is gone with the volume");
    let mut expected = vec![0; DISK_BYTES as usize];
    expected[1000..301_000].fill(1);
    expected[2048..3072].fill(0);
    expected[DISK_BYTES as usize - 4096..].fill(2);
    assert!(fs::read(served.fixture.home()).unwrap() == expected);
    let said = served.fixture.holdfast(&["mount", NAME]).succeeded().out;
    assert!(said.contains("v is attached at unix:"), "{said}");
    assert_eq!(served.unix().read(10, 1000).unwrap(), [1; 10]);
}

#[test]
fn a_killed_front_end_loses_its_connections_and_nothing_that_was_acknowledged() {
    let mut served = Served::new();
    served.fixture.serve();
    let mut expected = vec![0; DISK_BYTES as usize];
    for round in 0..20_u8 {
        let mut client = served.unix();
        let at = usize::from(round) * 1_000_003;
        client.write(&[round + 1; 50_000], at as u64).unwrap();
        expected[at..at + 50_000].fill(round + 1);
        kill(served.fixture.front_end(), Signal::KILL);
        client.read(1, 0).expect_err("its server is dead");
        // The sockets are the keeper's: a client that comes now waits for the next front end.
        let mut next = served.tcp();
        assert_eq!(next.read(50_000, at as u64).unwrap(), vec![round + 1; 50_000]);
    }
    let status = served.fixture.status();
    assert_eq!(status["restarts"], 20, "{status}");
    assert_eq!(served.fixture.stop(), Some(0));
    served.fixture.assert_given_back();
    assert!(fs::read(served.fixture.home()).unwrap() == expected);
}

#[test]
fn a_forced_umount_cuts_clients_off_and_loses_nothing() {
    let mut served = Served::new();
    served.fixture.serve();
    let mut client = served.unix();
    client.write(&[5; 4096], 8192).unwrap();
    served.fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    client.read(1, 0).expect_err("it was cut off");
    served.fixture.assert_given_back();
    assert_eq!(fs::read(served.fixture.home()).unwrap()[8192..12_288], [5; 4096]);
}

/// Writes until the ring is full and the home takes nothing. Returns what was acknowledged.
fn fill(client: &mut Client<UnixStream>) -> Vec<u64> {
    client.0.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let ends = (1..DISK_BYTES >> 20).map(|number| number << 20);
    ends.take_while(|at| client.write(&vec![(at >> 20) as u8; 1 << 20], *at).is_ok()).collect()
}

#[test]
fn a_forced_umount_ends_though_the_home_takes_nothing_and_a_write_waits_for_room() {
    let mut served = Served::new();
    let home = served.fixture.home();
    let chattr = |flag: &str| run("chattr", &[flag, home.to_str().unwrap()]);
    served.fixture.serve();
    let mut client = served.unix();
    chattr("+i");
    let acknowledged = fill(&mut client);
    assert!(acknowledged.len() < 20, "the ring has 8 MiB");
    let refused = served.fixture.holdfast(&["umount", NAME, "--force"]);
    chattr("-i");
    assert_ne!(refused.code, Some(0), "{refused:?}");
    served.fixture.holdfast(&["mount", NAME]).succeeded();
    served.fixture.holdfast(&["umount", NAME]).succeeded();
    served.fixture.assert_given_back();
    let found = fs::read(&home).unwrap();
    for at in acknowledged {
        assert!(found[at as usize..][..1 << 20] == vec![(at >> 20) as u8; 1 << 20], "at {at}");
    }
}

#[test]
fn without_a_keeper_the_front_end_goes_on_until_umount() {
    let mut served = Served::new();
    served.fixture.serve();
    served.fixture.kill_keeper();
    let mut client = served.unix();
    client.write(&[6; 4096], 0).unwrap();
    let status = served.fixture.status();
    assert_eq!(status["state"], "served without a keeper", "{status}");
    served.fixture.holdfast(&["umount", NAME]).expect(5, &["clients are connected"]);
    drop(client);
    let unmounted = || served.fixture.holdfast(&["umount", NAME]).code == Some(0);
    wait_until(unmounted, || served.fixture.status().to_string());
    served.fixture.assert_given_back();
    assert_eq!(fs::read(served.fixture.home()).unwrap()[..4096], [6; 4096]);
    // Where nobody listens any more the socket's file is no hindrance.
    served.fixture.serve();
    assert_eq!(served.unix().read(4096, 0).unwrap(), [6; 4096]);
}

#[test]
fn a_disk_can_be_mounted_and_a_network_block_device_at_once() {
    let mut served = Served::new();
    let mount = format!("{}\nmount = {:?}", served.nbd(), served.fixture.mount());
    let text = fs::read_to_string(served.fixture.config()).unwrap();
    served.fixture.configure(&text.replace(&served.nbd(), &mount));
    served.fixture.serve();
    let file = served.fixture.mount().join("disk");
    let file = fs::File::options().read(true).write(true).open(file).unwrap();
    let mut client = served.unix();
    for round in 1..10_u8 {
        client.write(&[round; 5000], 100).unwrap();
        let mut found = [0; 5000];
        file.read_exact_at(&mut found, 100).unwrap();
        assert_eq!(found, [round; 5000]);
        file.write_all_at(&[round + 100; 5000], 100).unwrap();
        assert_eq!(client.read(5000, 100).unwrap(), [round + 100; 5000]);
    }
    // A page of a shared mapping would be written back over what the client wrote since.
    let whole = FileOffset::new(file.try_clone().unwrap(), 0);
    let mapped = MmapRegion::<()>::from_file(whole, 4096).map(drop).unwrap_err();
    assert!(
        matches!(&mapped, MmapRegionError::Mmap(error) if error.raw_os_error() == Some(ENODEV)),
        "{mapped}"
    );
    drop(client);
    served.fixture.holdfast(&["umount", NAME]).expect(5, &["in use by"]);
    drop(file);
    assert_eq!(served.fixture.stop(), Some(0));
    served.fixture.assert_given_back();
    assert_eq!(fs::read(served.fixture.home()).unwrap()[100..5100], [109; 5000]);
}

const ENODEV: i32 = 19;

/// Whoever copies a disk asks where it has something; a large one has nothing nearly everywhere.
#[test]
fn a_client_is_told_where_a_sparse_disk_has_something() {
    let mut served = Served::new();
    served.fixture.serve();
    let uri = format!("nbd+unix:///?socket={}", served.socket().display());
    let map = || {
        let text = run("nbdinfo", &["--map", &uri]);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        text.lines().map(words).collect::<Vec<_>>()
    };
    let empty = [DISK_BYTES.to_string(), "3".into(), "hole,zero".into()];
    assert_eq!(map().iter().map(|it| &it[1..]).collect::<Vec<_>>(), [empty]);
    let mut client = served.unix();
    client.write(&[1; 8192], 1 << 20).unwrap();
    let has_something = |map: &[Vec<String>]| {
        let data = map.iter().filter(|it| it[3] == "data").map(|it| it[..2].join(" "));
        data.collect::<Vec<_>>()
    };
    assert_eq!(has_something(&map()), ["1048576 8192"]);
    drop(client);
    // What the home has is told as what the log has.
    wait_until(|| served.fixture.holdfast(&["umount", NAME]).code == Some(0), String::new);
    served.fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(has_something(&map()), ["1048576 8192"]);
}

#[test]
fn a_directory_is_no_network_block_device() {
    let fixture = Fixture::made();
    let mount = format!("mount = {:?}", fixture.mount());
    let socket = format!("{mount}\nnbd = [\"unix:{}\"]", fixture.path("s").display());
    fixture.reconfigure(&mount, &socket);
    fixture.holdfast(&["serve"]).expect(2, &["nbd is set", "is a directory"]);
    assert!(!fixture.is_mounted() && !fixture.path("s").exists());
}

#[test]
fn a_socket_that_somebody_else_has_is_left_alone() {
    let served = Served::new();
    let taken = TcpListener::bind(("127.0.0.1", served.port)).unwrap();
    let named = format!("(pid {})", std::process::id());
    let words = ["listening at tcp:127.0.0.1", &named, "set another address in nbd"];
    served.fixture.holdfast(&["serve"]).expect(5, &words);
    assert!(!served.socket().exists(), "what was bound before is given back");
    drop(taken);
}

#[test]
fn a_socket_that_is_taken_away_under_its_front_end_is_there_again_and_no_client_notices() {
    for_seeds("a_socket_that_is_taken_away", 2, |seed| {
        let random = &mut Random::new(seed);
        let mut served = Served::new();
        served.fixture.serve();
        let mut clients = vec![served.unix()];
        for step in 0..4 {
            let folder = served.fixture.path("moved");
            match random.below(3) {
                0 => fs::remove_file(served.socket()).unwrap(),
                1 => fs::rename(served.socket(), folder).unwrap(),
                _ => {
                    fs::remove_file(served.socket()).unwrap();
                    kill(served.fixture.front_end(), Signal::KILL);
                    clients.clear();
                }
            }
            let is_back =
                || UnixStream::connect(served.socket()).is_ok_and(|it| Client::new(it).is_ok());
            wait_until(is_back, || served.fixture.keeper_log());
            clients.push(served.unix());
            for (number, client) in clients.iter_mut().enumerate() {
                let data = [seed as u8 ^ step; 4096];
                client.write(&data, 4096 * number as u64).unwrap();
                assert_eq!(client.read(4096, 4096 * number as u64).unwrap(), data, "seed {seed}");
            }
        }
        drop(clients);
        served.fixture.holdfast(&["status"]).succeeded();
        served.fixture.holdfast(&["umount", NAME]).succeeded();
        assert!(!served.socket().exists(), "the socket's file was left behind");
    });
}

#[test]
fn a_socket_whose_name_somebody_else_has_by_now_is_told_of_until_it_is_moved_away() {
    let mut served = Served::new();
    served.fixture.serve();
    fs::remove_file(served.socket()).unwrap();
    let other = UnixListener::bind(served.socket()).unwrap();
    let is_told = || {
        let status = served.fixture.holdfast(&["status"]);
        status.code == Some(7) && status.out.contains("move away what is there")
    };
    wait_until(is_told, || served.fixture.keeper_log());
    fs::remove_file(served.socket()).unwrap();
    drop(other);
    let is_well = || served.fixture.holdfast(&["status"]).code == Some(0);
    wait_until(|| served.socket().exists() && is_well(), || served.fixture.keeper_log());
    drop(served.unix());
    served.fixture.holdfast(&["umount", NAME]).succeeded();
}

/// A client that asks for the first export by TLS, which it says is wanted.
fn answer_to_starttls(mut stream: UnixStream) -> u32 {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x05\0\0\0\0").unwrap();
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).unwrap();
    u32::from_be_bytes(answer[12..16].try_into().unwrap())
}

#[test]
fn a_volume_with_certificates_is_served_by_tls_alone() {
    let mut served = Served::new();
    let (certificate, key) = (served.fixture.path("cert.pem"), served.fixture.path("key.pem"));
    let tls = format!("nbd_tls = {{ certificate = {certificate:?}, key = {key:?} }}");
    let nbd = served.nbd();
    let text = fs::read_to_string(served.fixture.config()).unwrap();
    served.fixture.configure(&text.replace(&nbd, &format!("{nbd}\n{tls}")));
    served.fixture.holdfast(&["serve"]).expect(2, &["nbd_tls.certificate", "cert.pem"]);
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&certificate, pair.cert.pem()).unwrap();
    fs::write(&key, "no key").unwrap();
    served.fixture.holdfast(&["serve"]).expect(2, &["nbd_tls.key", "no private key"]);
    fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    served.fixture.serve();
    assert_eq!(answer_to_starttls(UnixStream::connect(served.socket()).unwrap()), 1);
    let plain = Client::new(UnixStream::connect(served.socket()).unwrap());
    assert!(plain.is_err(), "an export was told in the clear");
    served.fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
}
