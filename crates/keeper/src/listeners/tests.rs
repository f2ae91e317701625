//! Sockets: whose place is taken, who counts as connected, and what is left behind.

use super::*;

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

fn volume(addresses: &[Address]) -> VolumeConfig {
    let text = format!(
        "[volume.v]\nhome = \"/h\"\nnbd = {:?}\nlog = \"/l\"\n\
         memory = {{ medium = \"shm\", size = \"64MiB\" }}\n",
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
    );
    holdfast_config::Config::parse(&text).unwrap().volumes.remove("v").unwrap()
}

/// A port that nobody listens at now.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn clients_are_counted_while_they_are_connected_and_keep_the_disk() {
    let (directory, nobody) = (tempfile::tempdir().unwrap(), ServiceManager::default());
    let path = directory.path().join("a disk");
    let tcp = free_port();
    let volume = volume(&[Address::Unix(path.clone()), Address::Tcp(tcp)]);
    let listeners = Listeners::bind("volume v", volume.sockets(), &nobody).unwrap();
    assert_eq!(listeners.descriptors().count(), 2);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    refuse_connected("unmounting", &volume).unwrap();
    let one = UnixStream::connect(&path).unwrap();
    let refusal = refuse_connected("unmounting", &volume).unwrap_err();
    assert_eq!(refusal.exit, Exit::InUse);
    assert!(refusal.why.contains("1 clients are connected at unix:"), "{refusal}");
    drop(one);
    let other = TcpStream::connect(tcp).unwrap();
    let refused = refuse_connected("unmounting", &volume);
    assert!(refused.is_err(), "a client over TCP was not seen");
    drop((other, listeners));
    assert!(!path.exists(), "the socket's file was left behind");
}

#[test]
fn a_socket_of_the_same_name_in_another_view_of_the_files_is_no_connection() {
    let (directory, nobody) = (tempfile::tempdir().unwrap(), ServiceManager::default());
    let path = directory.path().join("disk.sock");
    let volume = volume(&[Address::Unix(path.clone())]);
    let _listeners = Listeners::bind("volume v", volume.sockets(), &nobody).unwrap();
    let forge = "mount -t tmpfs forged \"$1\" && exec python3 -c 'import socket, sys\n\
        listener = socket.socket(socket.AF_UNIX)\n\
        listener.bind(sys.argv[1] + \"/disk.sock\")\n\
        listener.listen()\n\
        one = socket.socket(socket.AF_UNIX)\n\
        one.connect(sys.argv[1] + \"/disk.sock\")\n\
        other = listener.accept()\n\
        print(\"forged\", flush=True)\n\
        sys.stdin.read()' \"$1\"";
    let mut stranger = Command::new("unshare");
    stranger.args(["--mount", "sh", "-c", forge, "sh"]).arg(directory.path());
    let mut stranger = stranger.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 6];
    stranger.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let table = std::fs::read("/proc/net/unix").unwrap();
    assert!(unix_connections(&table, &path) > 0, "the canary: the table alone believes it");
    refuse_connected("unmounting", &volume).unwrap();
    let _client = UnixStream::connect(&path).unwrap();
    refuse_connected("unmounting", &volume).unwrap_err();
    drop(stranger.stdin.take());
    stranger.wait().unwrap();
}

#[test]
fn a_place_where_somebody_listens_is_not_taken_but_one_that_was_left_is() {
    let (directory, nobody) = (tempfile::tempdir().unwrap(), ServiceManager::default());
    let path = directory.path().join("disk.sock");
    let at_path = volume(&[Address::Unix(path.clone())]);
    let first = UnixListener::bind(&path).unwrap();
    let refusal = Listeners::bind("volume v", at_path.sockets(), &nobody).unwrap_err();
    assert_eq!(refusal.exit, Exit::InUse);
    assert!(refusal.what.contains("listening at unix:"), "{refusal}");
    drop(first);
    // A process that another test begins has it too, until it has become another program.
    while UnixStream::connect(&path).is_ok() {
        std::thread::yield_now();
    }
    let listeners = Listeners::bind("volume v", at_path.sockets(), &nobody).unwrap();
    UnixStream::connect(&path).unwrap();
    drop(listeners);
    std::fs::write(&path, "somebody's file").unwrap();
    assert_eq!(
        Listeners::bind("volume v", at_path.sockets(), &nobody).unwrap_err().exit,
        Exit::InUse
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody's file");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let at_port = volume(&[Address::Tcp(tcp.local_addr().unwrap())]);
    assert_eq!(
        Listeners::bind("volume v", at_port.sockets(), &nobody).unwrap_err().exit,
        Exit::InUse
    );
}
