//! A server killed at any instant, a real process by a real signal.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use holdfast_memory::{Medium, Region};

use crate::common::{
    RING_BYTES, Random, append, create, for_seeds, path_of, pattern, position_faults, shm,
};

/// Set for a child: what it does, and the region it does it to.
const ROLE: &str = "HOLDFAST_TEST_ROLE";
const PATH: &str = "HOLDFAST_TEST_PATH";

/// The word a child sets once it is where it is to be killed.
const READY: usize = 0;

/// Starts this test program again as the server of `medium` and waits until it is ready.
fn start(role: &str, medium: &Medium) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::the_server_to_be_killed", "--ignored"])
        .env(ROLE, role)
        .env(PATH, path_of(medium))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let observed = Region::observe(medium).unwrap();
    while observed.word(READY) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Kills the server and attaches the region it left.
fn kill_and_attach(mut child: Child, medium: &Medium) -> Region {
    child.kill().unwrap();
    child.wait().unwrap();
    let region = Region::attach(medium).unwrap();
    region.word(READY).store(0, Ordering::Relaxed);
    region
}

#[test]
#[ignore = "not a test: the process that the tests of this file start and kill"]
fn the_server_to_be_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let path = std::env::var_os(PATH).unwrap().into();
    let region = Region::attach(&Medium::Shm { path }).unwrap();
    match role.as_str() {
        "inside an append" => die_inside_an_append(&region),
        "under load" => serve_under_load(&region),
        "publish first" => publish_before_filling(&region),
        other => panic!("no role {other}"),
    }
}

/// Half an append, with other threads waiting for the lock.
fn die_inside_an_append(region: &Region) {
    let mut guard = region.lock();
    guard.reserve(512).unwrap()[..256].fill(0xff);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| drop(region.lock()));
        }
        thread::sleep(Duration::from_millis(20));
        region.word(READY).store(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(3600));
    });
}

/// Two threads append, one makes room.
fn serve_under_load(region: &Region) {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    append(region, 64);
                }
            });
        }
        region.word(READY).store(1, Ordering::Relaxed);
        loop {
            let tail = region.wait_tail(region.marks().released, Duration::from_secs(1));
            region.set_durable(tail);
            region.release(tail - tail % 512);
        }
    });
}

/// What an append must never do; the checks have to notice.
fn publish_before_filling(region: &Region) {
    region.lock().publish(512);
    region.word(READY).store(1, Ordering::Relaxed);
    thread::sleep(Duration::from_secs(3600));
}

#[test]
fn a_death_inside_an_append_leaves_nothing_and_blocks_nobody() {
    let (_folder, medium) = shm();
    let region = create(&medium);
    assert!(append(&region, 128));
    let before = region.marks();
    drop(region);

    let region = kill_and_attach(start("inside an append", &medium), &medium);
    assert_eq!(region.marks(), before);
    assert!(append(&region, 512), "the lock of the dead is taken over");
    assert_eq!(region.pin(0).bytes(0, 640), pattern(0, 640));
}

#[test]
fn deaths_under_load_leave_whole_appends_only() {
    for_seeds("deaths_under_load_leave_whole_appends_only", 3, |random: &mut Random| {
        let (_folder, medium) = shm();
        drop(create(&medium));
        for death in 1..=10 {
            let child = start("under load", &medium);
            thread::sleep(Duration::from_micros(random.below(20_000)));
            let region = kill_and_attach(child, &medium);
            assert_eq!(region.generation(), 1 + 2 * death);
            assert_eq!(region.marks().tail % 64, 0, "appends are whole");
            assert_eq!(position_faults(&region), 0);
            // Room for this process to append: the lock is free again.
            let durable = region.marks().tail;
            region.set_durable(durable);
            region.release(durable);
            assert!(append(&region, 64));
        }
    });
}

#[test]
fn the_check_of_positions_notices_bytes_published_before_they_were_filled() {
    let (_folder, medium) = shm();
    drop(create(&medium));
    let region = kill_and_attach(start("publish first", &medium), &medium);
    assert_ne!(position_faults(&region), 0);
}

#[test]
fn a_living_server_is_named_to_whoever_asks() {
    let (_folder, medium) = shm();
    drop(create(&medium));
    let child = start("under load", &medium);
    let pid = child.id();
    let refused = Region::attach(&medium);
    let in_use = holdfast_memory::AttachError::InUse { pid };
    assert_eq!(format!("{:?}", refused.map(drop)), format!("{:?}", Err::<(), _>(in_use)));
    let region = kill_and_attach(child, &medium);
    assert!(region.marks().tail - region.marks().released <= RING_BYTES);
}

#[test]
fn a_dropped_region_is_free_although_children_are_being_started() {
    let (_folder, medium) = shm();
    drop(create(&medium));
    thread::scope(|scope| {
        // A child holds copies of its parent's descriptors until it runs its own program.
        let starter = scope.spawn(|| {
            for _ in 0..200 {
                Command::new("true").status().unwrap();
            }
        });
        while !starter.is_finished() {
            drop(Region::attach(&medium).unwrap());
        }
    });
}
