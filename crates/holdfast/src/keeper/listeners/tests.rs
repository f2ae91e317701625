//! Sockets: whose place is taken, who counts as connected, and what is left behind.

use super::*;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

fn volume(addresses: &[Address]) -> VolumeConfig {
    let text = format!(
        "[volume.v]\nhome = \"/h\"\nnbd = {:?}\nlog = \"/l\"\n\
         memory = {{ medium = \"shm\", size = \"64MiB\" }}\n",
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
    );
    crate::config::Config::parse(&text).unwrap().volumes.remove("v").unwrap()
}

/// A port that nobody listens at now.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn clients_are_counted_while_they_are_connected_and_keep_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a disk");
    let tcp = free_port();
    let volume = volume(&[Address::Unix(path.clone()), Address::Tcp(tcp)]);
    let listeners = Listeners::bind("v", &volume).unwrap();
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
fn a_place_where_somebody_listens_is_not_taken_but_one_that_was_left_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk.sock");
    let at_path = volume(&[Address::Unix(path.clone())]);
    let first = UnixListener::bind(&path).unwrap();
    let refusal = Listeners::bind("v", &at_path).unwrap_err();
    assert_eq!(refusal.exit, Exit::InUse);
    assert!(refusal.what.contains("listening at unix:"), "{refusal}");
    drop(first);
    let listeners = Listeners::bind("v", &at_path).unwrap();
    UnixStream::connect(&path).unwrap();
    drop(listeners);
    std::fs::write(&path, "somebody's file").unwrap();
    assert_eq!(Listeners::bind("v", &at_path).unwrap_err().exit, Exit::InUse);
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody's file");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let at_port = volume(&[Address::Tcp(tcp.local_addr().unwrap())]);
    assert_eq!(Listeners::bind("v", &at_port).unwrap_err().exit, Exit::InUse);
}

#[test]
fn addresses_are_read_as_the_kernel_prints_them() {
    let v4 = parse_tcp("0100007F:2A39").unwrap();
    assert_eq!(v4, (IpAddr::from([127, 0, 0, 1]), 10809));
    let v6 = parse_tcp("B80D0120000000000000000001000000:0016").unwrap();
    assert_eq!(v6, ("2001:db8::1".parse().unwrap(), 22));
    for strange in ["", ":", "0100007F", "zz00007F:2A39", "0100007F:zz", "01:2A39"] {
        assert_eq!(parse_tcp(strange), None, "{strange}");
    }
}
