//! Frontends that have the device keep their own end of the connection open.

use std::io::{IoSlice, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use holdfast_front::vhost_user::converse;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::requests::{config, disk};

/// The messages that hand over a queue's bells.
const BELLS: [u32; 3] = [12, 13, 14];
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 12;

/// Hands over a descriptor as a bell of queue 0; of the message so many bytes are sent.
fn hand_over(to: &UnixStream, bell: u32, descriptor: BorrowedFd<'_>, bytes: usize) {
    let parts = [bell, VERSION, 8, 0, 0];
    let message: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    assert!(rights.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let message = [IoSlice::new(&message[..bytes])];
    assert_eq!(sendmsg(to, &message, &mut rights, SendFlags::empty()), Ok(bytes));
}

/// Whether the conversation ends; the thread of one that does not is left.
fn ends(theirs: UnixStream, then: impl FnOnce()) -> bool {
    let (told, heard) = mpsc::channel();
    thread::spawn(move || {
        converse(theirs, &disk(), &config());
        let _nobody_waits_any_more = told.send(());
    });
    then();
    heard.recv_timeout(Duration::from_secs(60)).is_ok()
}

#[test]
fn a_frontend_is_seen_to_go_whatever_it_hands_over() {
    for (bell, bytes) in BELLS.map(|bell| [(bell, 20), (bell, HEADER_BYTES)]).concat() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ended = ends(theirs, || {
            hand_over(&ours, bell, ours.as_fd(), bytes);
            drop(ours);
        });
        assert!(ended, "its own end as bell {bell}, {bytes} bytes of the message");
    }
}

#[test]
fn a_bell_is_an_event_counter_and_nothing_else() {
    let (reader, _writer): (PipeReader, _) = std::io::pipe().unwrap();
    let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
    for bell in BELLS {
        for other in [reader.as_fd(), null.as_fd()] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            assert!(ends(theirs, || hand_over(&ours, bell, other, 20)), "{other:?} as bell {bell}");
        }
    }
}
