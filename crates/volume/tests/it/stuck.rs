//! The home has no room for what was acknowledged: it comes home once there is some, and meanwhile
//! nobody waits for that who is told why instead, and what gives room back goes on.

use holdfast_io::Kind;
use holdfast_io::fake::{Effect, Fault, Operation, Random};
use holdfast_io::tree::{Asker, Errno, NodeId, ROOT, SetAttributes, Tree, Waits, on_behalf_of};

use crate::seeds::for_each_seed;
use crate::world::{Opened, World, new_node};

/// Files of each user that are at home before.
const FILES: u64 = 12;
const STEPS: u64 = 60;

fn as_user<T>(user: u64, work: impl FnOnce() -> T) -> T {
    let user = Some(1000 + user as u32);
    on_behalf_of(Asker { user, waits: Waits::Never }, work)
}

fn name_of(user: u64, number: u64) -> Vec<u8> {
    format!("{user}-{number}").into_bytes()
}

fn make(volume: &Opened, name: &[u8]) -> NodeId {
    volume.make(ROOT, name, &new_node(Kind::File, 0o600)).expect("a name").node
}

fn bring_home(volume: &Opened) {
    loop {
        volume.drain_step().expect("a drain");
        if volume.clean_step().expect("a window").is_idle() {
            return;
        }
    }
}

/// Each user in turn writes until he has to wait. How many bytes each has written.
fn fill(volume: &Opened, nodes: &[NodeId], random: &mut Random) -> Vec<u64> {
    let bytes = 1 + random.below(24_000);
    let contents = vec![7; bytes as usize];
    let fill_one = |(user, node): (u64, &NodeId)| {
        let write = |at: &u64| as_user(user, || volume.write(*node, &contents, at * bytes, false));
        let stopped = (0..).find_map(|at| write(&at).err().map(|errno| (at * bytes, errno)));
        let (written, errno) = stopped.expect("the ring is not without an end");
        assert_eq!(errno, Errno::LATER);
        written
    };
    (0..).zip(nodes).map(fill_one).collect()
}

/// The home says once more that it has no room.
fn refuse_once(world: &World, volume: &Opened, errno: Errno) {
    let effect = Effect::Errno(errno.0);
    world.files.fail(Fault { operation: Operation::Write, skip: 0, effect });
    volume.clean_step().expect_err("refused");
}

/// One change of a user's, which must not be told to wait.
fn change(volume: &Opened, user: u64, number: u64, random: &mut Random) -> Result<(), Errno> {
    let name = name_of(user, number);
    let Ok(found) = volume.lookup(ROOT, &name) else { return Ok(()) };
    as_user(user, || match random.below(4) {
        0 => volume.remove_file(ROOT, &name),
        1 => {
            let set = SetAttributes { size_bytes: Some(0), ..SetAttributes::default() };
            volume.set_attributes(found.node, &set).map(drop)
        }
        2 => {
            let set = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
            volume.set_attributes(found.node, &set).map(drop)
        }
        _ => {
            // Over what is there: it takes nothing of the home, and much of the log.
            match volume.write(found.node, &[3; 4096], 0, false) {
                Err(Errno::DQUOT | Errno::NOSPC) => Ok(()),
                other => other,
            }
        }
    })
}

fn live(seed: u64) {
    let (world, mut random) = (World::new(seed), Random::new(seed));
    let (volume, _) = world.open().expect("a new volume");
    let users = 1 + random.below(3);
    let errno = [Errno::DQUOT, Errno::NOSPC][random.below(2) as usize];
    let every = (0..users).flat_map(|user| (0..FILES).map(move |number| name_of(user, number)));
    for name in every {
        let node = make(&volume, &name);
        volume.write(node, &[1; 4096], 0, false).expect("room");
    }
    let nodes: Vec<_> = (0..users).map(|user| make(&volume, &name_of(user, FILES))).collect();
    bring_home(&volume);
    let written = fill(&volume, &nodes, &mut random);
    while volume.drain_step().expect("a drain") > 0 {}
    for step in 0..STEPS {
        if step % 20 == 0 {
            refuse_once(&world, &volume, errno);
        }
        let (user, number) = (random.below(users), random.below(FILES));
        let changed = change(&volume, user, number, &mut random);
        assert_eq!(changed, Ok(()), "seed {seed}, step {step}: {errno:?}");
    }
    bring_home(&volume);
    for (node, bytes) in nodes.into_iter().zip(written) {
        let mut contents = vec![0; bytes as usize];
        assert_eq!(volume.read(node, &mut contents, 0), Ok(contents.len()), "seed {seed}");
        assert!(contents.iter().all(|byte| *byte == 7), "seed {seed}: what was acknowledged");
    }
}

#[test]
fn while_the_home_has_no_room_what_gives_some_back_passes_and_nobody_is_kept_waiting() {
    let test = "while_the_home_has_no_room_what_gives_some_back_passes_and_nobody_is_kept_waiting";
    for_each_seed(test, &[], 0..100, live);
}

/// In the end nothing more fits into the log, whatever it is; who asks then is told so.
#[test]
fn where_the_log_has_no_room_either_what_gives_room_back_is_refused_and_does_not_wait() {
    for errno in [Errno::DQUOT, Errno::NOSPC] {
        let (world, mut random) = (World::new(7), Random::new(7));
        let (volume, _) = world.open().expect("a new volume");
        let node = make(&volume, b"f");
        fill(&volume, &[node], &mut random);
        while volume.drain_step().expect("a drain") > 0 {}
        refuse_once(&world, &volume, errno);
        let set = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
        let told = (0..100_000)
            .find_map(|_| as_user(0, || volume.set_attributes(node, &set)).err())
            .expect("the ring is not without an end");
        assert_eq!(told, errno);
        bring_home(&volume);
        as_user(0, || volume.write(node, b"late", 0, false)).expect("room");
    }
}
