//! A keeper that does not answer.

use super::*;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{bind, listen, socket_with};

fn at(socket: &Path) -> Config {
    let mut config = Config::default();
    config.keeper.socket = socket.to_owned();
    config
}

#[test]
fn a_keeper_that_takes_nobody_in_is_asked_for_no_longer_than_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.unwrap();
    bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&socket, 0).unwrap();
    // Whoever was first waits in the queue, and there is room for one.
    let _first = connect(&path).unwrap();
    let asked = ask(&at(&path), Command::Status, &mut |_| {}).unwrap_err();
    assert_eq!(asked.exit, Exit::NoAnswer, "{asked}");
    assert!(is_there(&path));
}

#[test]
fn no_keeper_is_another_answer_than_a_silent_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let asked = ask(&at(&path), Command::Status, &mut |_| {}).unwrap_err();
    assert_eq!(asked.exit, Exit::NotRunning, "{asked}");
    assert!(!is_there(&path));
}
