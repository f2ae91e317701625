//! Connections that are left and taken.

use super::super::CLIENTS;
use super::*;
use holdfast_keeper::handover::Handover as Held;
use std::os::unix::net::UnixStream;

/// A front end's side of what a keeper holds.
fn front_end(held: &Held) -> Handover {
    let [leave, take] = held.descriptors().map(|end| end.try_clone_to_owned().unwrap());
    Handover { leave, take }
}

#[test]
fn the_next_front_end_finds_what_earlier_ones_left_in_its_order() {
    let held = Held::new().unwrap();
    let states = [vec![], vec![7], vec![9; 3 << 20]];
    let mut clients = Vec::new();
    for state in &states {
        let (client, connection) = UnixStream::pair().unwrap();
        front_end(&held).leave(Protocol::Nbd, &connection.into(), state).unwrap();
        clients.push(client);
    }
    let taken = front_end(&held).take_all(Protocol::Nbd);
    assert_eq!(taken.len(), 3);
    for (index, (connection, state)) in taken.into_iter().enumerate() {
        assert!(state == states[index]);
        UnixStream::from(connection).write_all(&[index as u8]).unwrap();
        let mut heard = [9];
        clients[index].read_exact(&mut heard).unwrap();
        assert_eq!(heard, [index as u8]);
    }
    assert!(front_end(&held).take_all(Protocol::Nbd).is_empty(), "taken twice");
}

#[test]
fn as_many_connections_as_a_front_end_may_have_find_room() {
    let held = Held::new().unwrap();
    let count = CLIENTS.connections_max;
    let pairs: Vec<_> = (0..count).map(|_| UnixStream::pair().unwrap()).collect();
    for (_, connection) in &pairs {
        let connection = connection.try_clone().unwrap().into();
        front_end(&held).leave(Protocol::Nbd, &connection, &[1; 100]).unwrap();
    }
    assert_eq!(front_end(&held).take_all(Protocol::Nbd).len(), count);
}

#[test]
fn what_nobody_takes_ends_with_the_volume_and_what_is_not_understood_ends_at_once() {
    let held = Held::new().unwrap();
    let is_over = |client: &mut UnixStream| client.read(&mut [0]).unwrap() == 0;
    let (mut client, connection) = UnixStream::pair().unwrap();
    front_end(&held).leave(Protocol::VhostUser, &connection.into(), &[]).unwrap();
    assert!(front_end(&held).take_all(Protocol::Nbd).is_empty());
    assert!(is_over(&mut client), "of another protocol");
    let (mut client, connection) = UnixStream::pair().unwrap();
    front_end(&held).leave(Protocol::Nbd, &connection.into(), &[]).unwrap();
    drop(held);
    assert!(is_over(&mut client), "of a volume that is gone");
}
