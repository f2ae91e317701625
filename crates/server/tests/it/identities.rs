//! Users of one log who come with each other's identity, which the log shows them all.

use crate::raw::{Raw, connect};
use crate::strangers::as_user;
use crate::support::{NAME, Numbers, Place, Serving, payloads, seed, seeds_factor};
use holdfast_client::protocol::{Operation, Status};
use holdfast_log::CommitLog;
use holdfast_memory::queue::Request;
use rustix::process::getuid;
use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

const USERS: [u32; 2] = [40_001, 40_002];
/// What both call themselves.
const DRAWN: [u8; 16] = *b"one of two users";
const STEPS: u32 = 60;

/// The log that both users may use.
struct Shared {
    place: Place,
    serving: Option<Serving>,
    /// The session of whichever user has one.
    session: Option<(usize, Raw)>,
    /// The last number that each user appended.
    last: [u64; 2],
    acknowledged: BTreeMap<(u32, u64), u32>,
}

impl Shared {
    fn new() -> Shared {
        let place = Place::new();
        let folder = place.socket().parent().unwrap().to_owned();
        set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        set_permissions(place.socket(), Permissions::from_mode(0o666)).unwrap();
        let (serving, acknowledged) = (None, BTreeMap::new());
        let mut shared = Shared { place, serving, session: None, last: [0; 2], acknowledged };
        shared.serve_anew();
        shared
    }

    fn serve_anew(&mut self) {
        (self.session, self.serving) = (None, None);
        let own = getuid().as_raw();
        let serving = self.place.serve_with(|spec| {
            spec.allow_uids = [&[own], &USERS[..]].concat();
        });
        self.serving = Some(serving);
    }

    /// The user's session, which ends that of the other.
    fn session_of(&mut self, user: usize) -> &Raw {
        if self.session.as_ref().is_none_or(|(whose, _)| *whose != user) {
            self.session = None;
            let service = format!("log/{NAME}");
            let come = || as_user(USERS[user], || connect(&self.place, DRAWN, &service));
            // The server sees by itself that the other has gone.
            let session = std::iter::repeat_with(come).flatten().next().unwrap();
            self.session = Some((user, session));
        }
        &self.session.as_ref().unwrap().1
    }

    /// A user's append of this number.
    fn append(&mut self, user: usize, sequence: u64) {
        let raw = self.session_of(user);
        let payload = [u64::from(USERS[user]), sequence].map(u64::to_le_bytes).concat();
        raw.memory.copy_in(0, &payload).unwrap();
        let append = raw.request(Operation::Append as u16);
        let bytes = payload.len() as u32;
        let status = raw.ask(&Request { sequence, count: 1, bytes, ..append });
        assert_eq!(status, Status::Done as u32, "user {}, number {sequence}", USERS[user]);
        self.last[user] = self.last[user].max(sequence);
        self.acknowledged.insert((USERS[user], sequence), 1);
    }

    fn check(&self) {
        let reader = self.place.client();
        let mut found = BTreeMap::<(u32, u64), u32>::new();
        for payload in payloads(&reader, reader.marks().released, reader.marks().tail) {
            let (words, _) = payload.as_chunks::<8>();
            let [user, sequence] = [words[0], words[1]].map(u64::from_le_bytes);
            *found.entry((u32::try_from(user).unwrap(), sequence)).or_default() += 1;
        }
        assert_eq!(found, self.acknowledged, "in the log once, whoever else came");
    }
}

#[test]
fn whoever_comes_with_the_identity_of_another_user_has_nothing_of_what_that_one_appends() {
    let mut numbers = Numbers(seed("whoever_comes_with_the_identity"));
    for _ in 0..2 * seeds_factor() {
        let mut shared = Shared::new();
        for _ in 0..STEPS {
            let user = numbers.below(2) as usize;
            match numbers.below(8) {
                0 => shared.serve_anew(),
                // It asks again, as one does that has no answer.
                1 | 2 => shared.append(user, shared.last[user].max(1)),
                _ => shared.append(user, shared.last[user] + 1),
            }
        }
        shared.check();
    }
}
