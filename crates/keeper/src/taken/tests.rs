//! Addresses that somebody has.

use super::*;

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

fn in_use() -> io::Error {
    io::ErrorKind::AddrInUse.into()
}

/// Somebody else who has this socket, and has a name of his own.
fn other_with(socket: impl Into<std::os::fd::OwnedFd>) -> Child {
    let socket: std::os::fd::OwnedFd = socket.into();
    Command::new("sleep").arg("60").stdin(Stdio::from(socket)).spawn().unwrap()
}

#[test]
fn who_has_an_address_is_named_however_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk.sock");
    let unix = UnixListener::bind(&path).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let every = TcpListener::bind("[::]:0").unwrap();
    let (port, other_port) = (tcp.local_addr().unwrap().port(), every.local_addr().unwrap().port());
    let addresses = [
        Address::Unix(path),
        Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port))),
        Address::Tcp(SocketAddr::from(([0, 0, 0, 0], port))),
        Address::Tcp(SocketAddr::from(([127, 0, 0, 1], other_port))),
    ];
    for socket in [std::os::fd::OwnedFd::from(unix), tcp.into(), every.into()] {
        let mut other = other_with(socket);
        let named = format!("sleep (pid {})", other.id());
        let telling = addresses.iter().filter(|at| why(at, &in_use()).contains(&named)).count();
        assert!(telling > 0, "nobody tells of {named}");
        let (_, _) = (other.kill(), other.wait());
        addresses.iter().for_each(|at| assert!(!why(at, &in_use()).contains(&named), "{at}"));
    }
    for at in &addresses {
        let problem = refused("listening", at, "nbd", &in_use());
        assert_eq!(problem.exit, Exit::InUse);
        assert!(problem.why.contains(&at.to_string()), "{problem}");
    }
}

#[test]
fn each_reason_has_a_remedy_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a file");
    fs::write(&path, "somebody's").unwrap();
    let tcp = Address::Tcp(([192, 0, 2, 1], 80).into());
    let elsewhere = TcpListener::bind("192.0.2.1:80").unwrap_err();
    let unfit = io::Error::from(io::ErrorKind::PermissionDenied);
    for (at, error, words) in [
        (&Address::Unix(path), in_use(), "move it away"),
        (&tcp, elsewhere, "set one that it has in nbd"),
        (&tcp, unfit, "a port from 1024 on in nbd"),
        (&tcp, in_use(), "set another address in nbd"),
    ] {
        let problem = refused("listening", at, "nbd", &error);
        assert!(problem.remedy.contains(words), "{problem}");
    }
}
