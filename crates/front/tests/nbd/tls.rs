//! Clients that speak TLS, those that do not, and those that pretend to.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use holdfast_front::nbd::{Listener, NbdConfig, Session, Tls, TlsFault};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::answers;
use crate::certificates::{Authority, Signed};
use crate::memory::MemoryBlocks;
use crate::messages::{ABORT, EXPORT_NAME, GO, LIST, STARTTLS, hello, info, option};
use crate::random::Random;
use crate::served::{CONFIG, Client, Disk, Server};

const SIZE: usize = 3 << 20;
const TLS_REQUIRED: u32 = 1 << 31 | 5;

/// A server at a port, all of whose clients have to have a certificate of the authority.
pub(crate) struct Setting {
    pub(crate) authority: Authority,
    port: u16,
    pub(crate) disk: Arc<MemoryBlocks>,
    server: Server,
}

impl Setting {
    pub(crate) fn new() -> Setting {
        let authority = Authority::new("authority");
        let Signed(certificate, key) = authority.sign("server");
        let clients = Some(authority.certificate.as_bytes());
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes(), clients).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let disk = Arc::new(MemoryBlocks::new(SIZE, 1 << 20));
        let listeners = vec![Listener::new(listener).unwrap()];
        let config = NbdConfig { tls: Some(tls), ..CONFIG };
        let server = Server::start(listeners, Vec::new(), Disk::new(disk.clone()), config);
        Setting { authority, port, disk, server }
    }

    fn uri(&self, files: &Path) -> String {
        format!("nbds://127.0.0.1:{}/disk?tls-certificates={}", self.port, files.display())
    }

    /// A client that has said nothing.
    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// A client that has sent its flags, in the clear.
    fn plain(&self) -> Client<TcpStream> {
        let mut client = Client::of(self.connect());
        client.send(&hello());
        client.hear(answers::GREETING.len());
        client
    }

    /// A client that may go on by TLS.
    pub(crate) fn about_to_shake_hands(&self) -> Client<TcpStream> {
        let mut client = self.plain();
        client.send(&option(STARTTLS, b""));
        assert_eq!(client.option().kind, 1, "an acknowledgement");
        client
    }

    /// One more that has said nothing, from one of the machine's own addresses.
    pub(crate) fn connect_from(&self, address: Ipv4Addr) -> TcpStream {
        let from = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&from, &SocketAddr::from((address, 0))).unwrap();
        connect(&from, &SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))).unwrap();
        from.into()
    }

    pub(crate) fn assert_serves(&self) {
        let files = self.authority.client_files(&self.authority);
        let said = run("nbdinfo", &["--size", &self.uri(files.path())]);
        assert!(said.status.success(), "{said:?}");
        assert_eq!(said.stdout, format!("{SIZE}\n").as_bytes());
    }
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn assert_succeeds(program: &str, arguments: &[&str]) {
    let said = run(program, arguments);
    assert!(said.status.success(), "{program} {arguments:?}: {said:?}");
}

#[test]
fn libnbd_and_qemu_read_and_write_by_tls() {
    let setting = Setting::new();
    let files = setting.authority.client_files(&setting.authority);
    let path = |name: &str| files.path().join(name).display().to_string();
    let mut noise = vec![0; SIZE];
    let mut random = Random::seeded(5);
    noise.chunks_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
    fs::write(path("noise"), &noise).unwrap();
    assert_succeeds("nbdcopy", &[&path("noise"), &setting.uri(files.path())]);
    assert!(setting.disk.contents() == noise);
    let credentials =
        format!("tls-creds-x509,id=tls,endpoint=client,dir={}", files.path().display());
    let image = format!("driver=nbd,host=127.0.0.1,port={},export=disk", setting.port);
    let image = format!("{image},tls-creds=tls");
    let back = path("back");
    assert_succeeds(
        "qemu-img",
        &["convert", "--object", &credentials, "--image-opts", &image, "-O", "raw", &back],
    );
    assert!(fs::read(&back).unwrap() == noise);
}

#[test]
fn a_client_without_tls_is_told_nothing_but_that_it_needs_it() {
    let setting = Setting::new();
    let mut client = setting.plain();
    for (number, data) in [(GO, info(b"disk", &[])), (LIST, Vec::new()), (999, Vec::new())] {
        client.send(&option(number, &data));
        assert_eq!(client.option().kind, TLS_REQUIRED);
    }
    client.send(&option(ABORT, b""));
    assert_eq!(client.option().kind, 1);
    client.hear_the_end();
    let mut client = setting.plain();
    client.send(&option(EXPORT_NAME, b"disk"));
    assert_eq!(client.hear_the_end(), b"", "this option has no other answer");
    let plain = format!("nbd://127.0.0.1:{}/disk", setting.port);
    assert!(!run("nbdinfo", &[&plain]).status.success());
    setting.assert_serves();
}

#[test]
fn garbage_instead_of_a_handshake_ends_that_connection_alone() {
    let setting = Setting::new();
    let mut client = setting.about_to_shake_hands();
    client.send(&[0x5a; 3000]);
    client.hear_the_end();
    setting.assert_serves();
}

#[test]
fn what_is_said_before_tls_is_agreed_on_is_not_taken_for_what_comes_behind_it() {
    let setting = Setting::new();
    let mut client = setting.plain();
    client.send(&[option(STARTTLS, b""), option(LIST, b"")].concat());
    let heard = client.hear_the_end();
    let mut rest = heard.as_slice();
    assert_eq!(answers::take_option(&mut rest).map(|answer| answer.kind), Some(1));
    assert_eq!(rest, b"", "no list");
    setting.assert_serves();
}

#[test]
fn a_client_whose_certificate_somebody_else_signed_is_refused() {
    let setting = Setting::new();
    let other = Authority::new("somebody else");
    let files = other.client_files(&setting.authority);
    assert!(!run("nbdinfo", &[&setting.uri(files.path())]).status.success());
    setting.assert_serves();
}

#[test]
fn connections_by_tls_end_with_their_process_and_plain_ones_are_not_taken_over_where_tls_is_needed()
{
    let setting = Setting::new();
    let _shaking = setting.about_to_shake_hands();
    let _plain = setting.plain();
    let sessions = setting.server.stop();
    assert!(sessions.len() <= 1, "the one that was not to speak TLS, if it was there by then");
    let plain = Server::unix(Disk::in_memory(SIZE));
    let mut client = plain.client(true);
    let sessions: Vec<Session> = plain.stop();
    assert_eq!(sessions.len(), 1);
    let Signed(certificate, key) = setting.authority.sign("server");
    let tls = Tls::new(certificate.as_bytes(), key.as_bytes(), None).unwrap();
    let config = NbdConfig { tls: Some(tls), ..CONFIG };
    let _server = Server::start(Vec::new(), sessions, Disk::in_memory(SIZE), config);
    assert_eq!(client.hear_the_end(), b"");
}

#[test]
fn files_that_nobody_can_be_served_with_are_told_apart() {
    let authority = Authority::new("authority");
    let (Signed(certificate, key), Signed(_, other)) = (authority.sign("a"), authority.sign("b"));
    let fault = |certificate: &str, key: &str, clients: Option<&str>| {
        let clients = clients.map(str::as_bytes);
        Tls::new(certificate.as_bytes(), key.as_bytes(), clients).unwrap_err()
    };
    assert_eq!(fault("", &key, None), TlsFault::Certificate);
    assert_eq!(fault(&certificate, &certificate, None), TlsFault::Key);
    assert_eq!(fault(&certificate, &key, Some("")), TlsFault::Clients);
    assert!(matches!(fault(&certificate, &other, None), TlsFault::Pair(_)));
}
