//! Peers that send descriptors.

use super::*;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Write};
use std::os::unix::net::UnixListener;

/// Sends a byte, and with it a descriptor of this end.
fn send_descriptor(peer: &UnixStream) -> Result<usize, Errno> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let descriptors = [peer.as_fd()];
    assert!(with.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(peer, &[IoSlice::new(b"x")], &mut with, SendFlags::NOSIGNAL)
}

/// A peer, and what was accepted of it.
fn accepted(refuse: bool) -> (UnixStream, UnixStream) {
    let folder = std::env::temp_dir().join(format!("peers-{}-{refuse}", std::process::id()));
    let listener = UnixListener::bind(&folder).unwrap();
    if refuse {
        refuse_descriptors(&listener);
    }
    let peer = UnixStream::connect(&folder).unwrap();
    std::fs::remove_file(folder).unwrap();
    (peer, listener.accept().unwrap().0)
}

fn kernel_can_refuse() -> bool {
    raw::refuse_descriptors(UnixStream::pair().unwrap().0.as_fd()).is_ok()
}

#[test]
fn the_kernel_refuses_descriptors_at_what_was_accepted_where_it_can() {
    let (peer, _accepted) = accepted(true);
    let (other, _taken) = accepted(false);
    assert_eq!(send_descriptor(&other), Ok(1), "nobody said so to the kernel");
    let expected = if kernel_can_refuse() { Err(Errno::PERM) } else { Ok(1) };
    assert_eq!(send_descriptor(&peer), expected);
}

#[test]
fn bytes_are_heard_up_to_the_first_that_came_with_a_descriptor_which_stays() {
    let (mut peer, accepted) = UnixStream::pair().unwrap();
    let (connection, mut room) = (Connection::new(accepted), [0; 8]);
    assert_eq!(connection.hear(&mut room), Err(Errno::AGAIN));
    peer.write_all(b"abc").unwrap();
    assert_eq!((connection.hear(&mut room), &room[..3]), (Ok(3), &b"abc"[..]));
    send_descriptor(&peer).unwrap();
    for _ in 0..2 {
        assert_eq!(connection.hear(&mut room), Err(Errno::BADMSG));
    }
}
