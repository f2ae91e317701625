//! Zeros are a few bytes of log, and all their bytes for the home.

use std::path::Path;

use holdfast_io::fake::{Effect, Fault, Operation};
use holdfast_io::tree::{
    Allocate, Asker, Errno, NodeId, ROOT, SetAttributes, Tree, Waits, on_behalf_of,
};
use holdfast_io::{Files, Kind, OpenHow};
use holdfast_volume::DirectoryVolume;

use crate::world::{Opened, World, new_node};

const HEAVY: u32 = 1001;
const LIGHT: u32 = 1002;
/// As the world's ring has.
const RING_BYTES: u64 = 1 << 20;
/// The most that one window takes, and one record more.
const WINDOW_BYTES: u64 = (16 << 20) + (1 << 20);
const SEEDS: u64 = 24;

fn as_user<T>(user: u32, work: impl FnOnce() -> T) -> T {
    on_behalf_of(Asker { user: Some(user), waits: Waits::Never }, work)
}

fn make(volume: &DirectoryVolume, name: &str) -> NodeId {
    volume.make(ROOT, name.as_bytes(), &new_node(Kind::File, 0o600)).expect("a file").node
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn replay(seed: u64) -> String {
    format!("seed {seed}; replay it: cargo test -p holdfast-volume --test it zeros")
}

/// Leaves work to the home of which the log holds next to nothing. Returns how many bytes of it.
fn leave_work(volume: &DirectoryVolume, node: NodeId, state: &mut u64) -> Result<u64, Errno> {
    let bytes = 4096 * (1 + next(state) % 16);
    let offset = 4096 * (next(state) % 4096);
    match next(state) % 8 {
        0 => volume.allocate(node, Allocate::PunchHole, offset, bytes)?,
        1 => volume.allocate(node, Allocate::ZeroRange { keep_size: false }, offset, bytes)?,
        2 => volume.allocate(node, Allocate::Reserve { keep_size: true }, offset, bytes)?,
        3 => {
            let before = volume.attributes(node)?.size_bytes;
            let size_bytes = before.saturating_sub(bytes);
            let set = SetAttributes { size_bytes: Some(size_bytes), ..SetAttributes::default() };
            volume.set_attributes(node, &set)?;
            return Ok(before - size_bytes);
        }
        _ => volume.write(node, &vec![0; bytes as usize], offset, false)?,
    }
    Ok(match volume.attributes(node)?.size_bytes.min(offset + bytes) {
        end if end > offset => end - offset,
        _ => 0,
    })
}

/// Brings one window home. Returns the bytes written, and true if nothing is left.
fn window(volume: &Opened) -> (u64, bool) {
    volume.log().commit(volume.log().marks().tail).expect("a sound log");
    let cleaned = volume.clean_step().expect("a window");
    (cleaned.bytes, cleaned.is_idle())
}

#[test]
fn what_a_user_has_waiting_for_the_home_is_bounded_by_the_work_that_it_is() {
    for seed in 0..SEEDS {
        let mut state = seed;
        let (volume, _) = World::new(seed).open().expect("a new volume");
        let node = as_user(HEAVY, || make(&volume, "heavy"));
        for _ in 0..3 {
            let (mut waiting, mut stopped) = (0, None);
            while stopped.is_none() && waiting <= RING_BYTES {
                match as_user(HEAVY, || leave_work(&volume, node, &mut state)) {
                    Ok(bytes) => waiting += bytes,
                    Err(errno) => stopped = Some(errno),
                }
            }
            let told = format!("{waiting} bytes are to be written; {}", replay(seed));
            assert_eq!(stopped, Some(Errno::LATER), "{told}");
            // Whoever asks for little goes on.
            let other = as_user(LIGHT, || make(&volume, &format!("light-{state}")));
            as_user(LIGHT, || volume.write(other, &[0; 4096], 0, false)).expect("his turn");
            as_user(HEAVY, || volume.write(node, b"a few bytes", 0, false)).expect("little work");
            while !window(&volume).1 {}
        }
    }
}

#[test]
fn no_window_gives_the_home_more_to_write_than_a_window_of_bytes() {
    for seed in 0..4 {
        let mut state = seed;
        let (volume, _) = World::new(seed).open().expect("a new volume");
        let node = make(&volume, "sparse");
        // Nobody has to be told from others, so nobody waits.
        for step in 0..640 {
            let bytes = (32 << 10) + 4096 * (next(&mut state) % 8);
            volume.write(node, &vec![0; bytes as usize], step << 17, false).expect("room");
        }
        let mut windows = 0;
        loop {
            let (bytes, is_last) = window(&volume);
            assert!(bytes <= WINDOW_BYTES, "{bytes} bytes in one window; {}", replay(seed));
            if is_last {
                break;
            }
            windows += 1;
        }
        assert!(windows > 1, "{}", replay(seed));
    }
}

#[test]
fn zeros_that_follow_each_other_are_not_written_and_have_their_room() {
    const BYTES: u64 = 8 << 20;
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = make(&volume, "zeros");
    for offset in (0..BYTES).step_by(64 << 10) {
        volume.write(node, &[0; 64 << 10], offset, false).expect("room");
    }
    let (written, _) = window(&volume);
    assert!(written < BYTES / 4, "{written} bytes were written");
    let home = world.home().metadata(Path::new("zeros")).expect("it is home");
    assert_eq!(home.size_bytes, BYTES);
    assert!(home.allocated_bytes >= BYTES, "{} bytes have room", home.allocated_bytes);
}

/// A home may have no call for it, or refuse it for reasons of its own.
#[test]
fn zeros_that_the_home_does_not_make_are_written() {
    const BYTES: u64 = 4 << 20;
    const EIO: i32 = 5;
    const EOPNOTSUPP: i32 = 95;
    for operation in [Operation::Punch, Operation::Reserve] {
        for errno in [EIO, EOPNOTSUPP] {
            let world = World::new(1);
            let (volume, _) = world.open().expect("a new volume");
            let node = make(&volume, "zeros");
            for offset in (0..BYTES).step_by(64 << 10) {
                volume.write(node, &[0; 64 << 10], offset, false).expect("room");
            }
            world.files.fail(Fault { operation, skip: 0, effect: Effect::Errno(errno) });
            let (written, _) = window(&volume);
            assert_eq!(written, BYTES, "{operation:?} fails with {errno}");
            let home = world.home().metadata(Path::new("zeros")).expect("it is home");
            assert_eq!(home.size_bytes, BYTES);
        }
    }
}

/// Files of zeros, bytes and holes, long enough that the home makes some of the zeros itself.
#[test]
fn whatever_makes_the_zeros_the_home_has_what_was_written() {
    const FILE_BYTES: usize = 6 << 20;
    for seed in 0..SEEDS {
        let mut state = seed;
        let world = World::new(seed);
        let (volume, _) = world.open().expect("a new volume");
        let node = make(&volume, "file");
        let mut model = vec![0; FILE_BYTES];
        volume.write(node, &[0], FILE_BYTES as u64 - 1, false).expect("room");
        for step in 0..200 {
            let from = next(&mut state) as usize % FILE_BYTES;
            let bytes = (1 + next(&mut state) as usize % (64 << 10)).min(FILE_BYTES - from);
            let value = if next(&mut state).is_multiple_of(8) { step as u8 } else { 0 };
            // Few bytes that are none, many zeros, one after the other.
            let (bytes, times) = if value == 0 { (bytes, 24) } else { (bytes.min(5000), 1) };
            for from in (from..FILE_BYTES).step_by(bytes).take(times) {
                let part = bytes.min(FILE_BYTES - from);
                model[from..][..part].fill(value);
                let data = vec![value; part];
                volume.write(node, &data, from as u64, false).expect("room");
            }
            if step % 20 == 0 {
                while !window(&volume).1 {}
            }
        }
        volume.detach().expect("a sound disk");
        let file = world.home().open(Path::new("file"), OpenHow::default()).expect("it is home");
        let mut found = vec![1; FILE_BYTES];
        assert_eq!(file.read_full_at(&mut found, 0).expect("a sound disk"), FILE_BYTES);
        assert!(found == model, "the home has other bytes; {}", replay(seed));
    }
}
