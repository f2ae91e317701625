//! Sessions on their way, whole and damaged.

use std::os::unix::net::UnixStream;

use super::*;

fn socket() -> OwnedFd {
    UnixStream::pair().unwrap().0.into()
}

fn states() -> Vec<State> {
    let payload = Payload {
        cookie: u64::MAX,
        offset: 4096,
        left_bytes: 70_000,
        is_durable: true,
        refusal: None,
    };
    let transmission = |payload| State::Transmission {
        export: "pg-wal".into(),
        size_bytes: 1 << 40,
        read_only: true,
        agreed: Agreed { structured: true, allocation: false },
        payload,
    };
    let mut states: Vec<State> = [Stage::Greeting, Stage::Flags, Stage::Options]
        .into_iter()
        .map(|stage| State::Negotiation {
            stage,
            no_zeroes: true,
            structured: false,
            context: (stage == Stage::Options).then(|| "disk".into()),
            skip_bytes: 77,
        })
        .collect();
    states.extend([transmission(None), transmission(Some(payload))]);
    let refused = |&refusal| Payload { refusal: Some(refusal), ..payload };
    states.extend(Refusal::ALL.iter().map(|one| transmission(Some(refused(one)))));
    states
}

fn session(state: State) -> Session {
    Session { socket: socket(), state, unread: b"half a requ".into(), unsent: b"a reply".into() }
}

#[test]
fn a_session_is_the_same_behind_its_way() {
    for state in states() {
        let (socket, bytes) = session(state.clone()).into_parts();
        let adopted = Session::adopt(socket, &bytes).unwrap();
        assert_eq!(adopted.state, state);
        assert_eq!(adopted.unread, b"half a requ");
        assert_eq!(adopted.unsent, b"a reply");
    }
}

#[test]
fn what_is_no_session_is_a_fault() {
    let (_, bytes) = session(states().remove(0)).into_parts();
    let fault = |bytes: &[u8]| Session::adopt(socket(), bytes).unwrap_err();
    assert_eq!(fault(b"NBD"), SessionFault::Magic);
    let mut newer = bytes.clone();
    newer[4] = 2;
    assert_eq!(fault(&newer), SessionFault::Version(2));
    for end in 4..bytes.len() {
        assert_eq!(fault(&bytes[..end]), SessionFault::Malformed);
    }
    assert_eq!(fault(&[bytes, vec![0]].concat()), SessionFault::Malformed);
}

#[test]
fn no_damage_makes_adopting_panic() {
    for state in states() {
        let (mut socket, bytes) = session(state).into_parts();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                socket = match Session::adopt(socket, &damaged) {
                    Ok(session) => session.socket,
                    Err(_) => self::socket(),
                };
            }
        }
    }
}
