//! What the home never takes is put aside, and nothing else is lost or kept waiting.

use std::path::Path;

use holdfast_io::fake::{Effect, Fault, Operation};
use holdfast_io::tree::{NodeId, ROOT, RenameHow, SetAttributes, Tree};
use holdfast_io::{Files, Kind, OpenHow};
use holdfast_volume::{PutAside, order_to_put_aside, put_aside, stuck_at};

use crate::death::half_apply;
use crate::model::{Item, Life, image_of, image_through};
use crate::seeds::for_each_seed;
use crate::world::{Below, Opened, World, new_node};

const EPERM: i32 = 1;
const EIO: i32 = 5;
const EFBIG: i32 = 27;
const HUGE_BYTES: u64 = 17 << 40;
/// Seeds of a random life with refusals that found something once.
const ONCE_FAILED: [u64; 8] = [513, 576, 1380, 2497, 4037, 4202, 4963, 5069];

fn make(volume: &Opened, parent: NodeId, name: &str, kind: Kind) -> NodeId {
    let new = new_node(kind, 0o600);
    volume.make(parent, name.as_bytes(), &new).expect("a free name").node
}

/// The home refuses the next call of this kind.
fn refuse(world: &World, operation: Operation, errno: i32) {
    world.files.fail(Fault { operation, skip: 0, effect: Effect::Errno(errno) });
}

fn aside(world: &World) -> Vec<PutAside> {
    put_aside(&*Below::new(&world.files, "log")).expect("whole files")
}

fn stuck(world: &World) -> Option<String> {
    stuck_at(&*Below::new(&world.files, "log")).expect("a sound disk")
}

fn order(world: &World) -> Option<String> {
    order_to_put_aside(&*Below::new(&world.files, "log")).expect("a sound disk")
}

/// What the home has in a file, or none.
fn home_file(world: &World, path: &str) -> Option<Vec<u8>> {
    match image_of(&*world.home()).remove(path)? {
        Item::File { bytes, .. } => Some(bytes),
        _ => None,
    }
}

fn drain(volume: &Opened) {
    volume.log().commit(volume.log().marks().tail).expect("a sound disk");
}

/// A file that somebody made larger than the home's file system allows, among others.
fn grow_too_far(volume: &Opened) {
    for name in ["x", "y"] {
        let node = make(volume, ROOT, name, Kind::File);
        volume.write(node, b"abc", 0, false).expect("room");
    }
    drain(volume);
    while !volume.clean_step().expect("a sound home").is_idle() {}
    let node = volume.lookup(ROOT, b"x").expect("made above").node;
    let set = SetAttributes { size_bytes: Some(HUGE_BYTES), ..Default::default() };
    volume.set_attributes(node, &set).expect("a file");
    let other = volume.lookup(ROOT, b"y").expect("made above").node;
    volume.write(other, b"later", 0, false).expect("room");
    drain(volume);
}

#[test]
fn a_size_that_the_home_refuses_is_put_aside_when_that_is_ordered_and_not_before() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    grow_too_far(&volume);
    assert_eq!(order(&world), None, "nothing is stuck");
    for _ in 0..3 {
        refuse(&world, Operation::SetLen, EFBIG);
        volume.clean_step().expect_err("the home refuses it");
        assert!(aside(&world).is_empty(), "nobody ordered it");
    }
    let told = stuck(&world).expect("told to people");
    assert!(told.starts_with("lsn ") && told.contains("Write of x"), "{told}");
    assert_eq!(order(&world), Some(told));
    refuse(&world, Operation::SetLen, EFBIG);
    volume.clean_step().expect("it is passed over");
    assert_eq!(stuck(&world), None, "it has gone on");
    let put = aside(&world);
    assert_eq!(put.len(), 1, "{put:?}");
    assert_eq!((put[0].path.as_path(), put[0].errno), (Path::new("x"), EFBIG as u32));
    assert!(put[0].what.contains(&HUGE_BYTES.to_string()), "{put:?}");
    volume.detach().expect("nothing is in the way");
    assert_eq!(home_file(&world, "x").as_deref(), Some(&b"abc"[..]));
    assert_eq!(home_file(&world, "y").as_deref(), Some(&b"later"[..]));
    drop(volume);
    let (volume, _) = world.open().expect("a sound volume");
    assert_eq!(image_through(&volume), image_of(&*world.home()), "it is seen no more");
    volume.detach().expect("nothing is in the way");
    assert_eq!(aside(&world), put.iter().map(kept).collect::<Vec<_>>(), "and it is kept");
}

/// The same, of a volume whose numbers have begun anew.
fn kept(put: &PutAside) -> PutAside {
    PutAside { file: put.file.with_extension("record"), ..put.clone() }
}

#[test]
fn what_depends_on_a_name_that_was_put_aside_follows_it_and_the_rest_comes_home() {
    let world = World::new(2);
    let (volume, _) = world.open().expect("a new volume");
    let lost = make(&volume, ROOT, "lost", Kind::Directory);
    let file = make(&volume, lost, "file", Kind::File);
    volume.write(file, b"kept whole", 0, false).expect("room");
    let sound = make(&volume, ROOT, "sound", Kind::File);
    volume.write(sound, b"home", 0, false).expect("room");
    drain(&volume);
    refuse(&world, Operation::MakeDir, EPERM);
    volume.clean_step().expect_err("the home refuses it");
    assert!(order(&world).is_some());
    refuse(&world, Operation::MakeDir, EPERM);
    volume.clean_step().expect("it is passed over");
    // What comes later is about nodes that the home does not have.
    volume.write(file, b" and later", 10, false).expect("room");
    volume.rename((lost, b"file"), (ROOT, b"out"), RenameHow::Replace).expect("a name");
    volume.rename((ROOT, b"sound"), (lost, b"in"), RenameHow::Replace).expect("a name");
    volume.write(sound, b"HOME", 0, false).expect("room");
    make(&volume, ROOT, "other", Kind::File);
    drop(volume);
    let (volume, _) = world.open().expect("the process died");
    drain(&volume);
    volume.detach().expect("nothing is in the way");
    assert_eq!(home_file(&world, "sound").as_deref(), Some(&b"home"[..]));
    assert!(home_file(&world, "other").is_some());
    let names: Vec<_> = image_of(&*world.home()).into_keys().filter(|p| !p.is_empty()).collect();
    assert_eq!(names, ["other", "sound"]);
    let put = aside(&world);
    assert_eq!(put.len(), 7, "{put:#?}");
    assert!(put[1..].iter().all(|one| one.errno == 0), "{put:#?}");
    let data: Vec<_> = put.iter().map(|one| read(&world, &one.file)).collect();
    assert!(data.iter().any(|bytes| bytes.ends_with(b"kept whole")));
    assert!(data.iter().any(|bytes| bytes.ends_with(b" and later")));
}

fn read(world: &World, file: &Path) -> Vec<u8> {
    let file = Below::new(&world.files, "log").open(file, OpenHow::default());
    let file = file.expect("it is listed");
    let mut bytes = vec![0; file.metadata().expect("a file").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("a sound disk");
    bytes
}

/// Puts aside what the home refuses next, and goes on.
fn put_aside_what_is_refused(world: &World, volume: &Opened, operation: Operation) {
    drain(volume);
    refuse(world, operation, EPERM);
    volume.clean_step().expect_err("the home refuses it");
    order(world).expect("it is stuck");
    refuse(world, operation, EPERM);
    volume.clean_step().expect("it is passed over");
    world.files.forget_faults();
}

/// The process dies, and what it left comes home without another order.
fn die_and_come_home(world: &World, volume: Opened) {
    drain(&volume);
    drop(volume);
    let (volume, _) = world.open().expect("the process died");
    volume.detach().expect("nothing is in the way");
}

fn home_names(world: &World) -> Vec<String> {
    image_of(&*world.home()).into_keys().filter(|path| !path.is_empty()).collect()
}

#[test]
fn what_was_half_made_and_put_aside_leaves_its_name_free_for_another() {
    for (kind, other) in [(Kind::File, Kind::Directory), (Kind::Directory, Kind::File)] {
        let world = World::new(4);
        let (volume, _) = world.open().expect("a new volume");
        make(&volume, ROOT, "e", kind);
        // The home makes it, and does not give it its owner.
        put_aside_what_is_refused(&world, &volume, Operation::Change);
        assert_eq!(home_names(&world), [""; 0], "{kind:?}: nothing of it has stayed");
        volume.rename((ROOT, b"e"), (ROOT, b"a"), RenameHow::Replace).expect("a name");
        make(&volume, ROOT, "e", other);
        die_and_come_home(&world, volume);
        assert_eq!(home_names(&world), ["e"], "{kind:?}");
        assert_eq!(aside(&world).len(), 2, "{kind:?}: the two that are about what was not made");
    }
}

#[test]
fn what_would_come_under_a_name_that_the_home_has_kept_is_put_aside_with_it() {
    let world = World::new(5);
    let (volume, _) = world.open().expect("a new volume");
    for (name, bytes) in [("kept", b"old"), ("next", b"new")] {
        let node = make(&volume, ROOT, name, Kind::File);
        volume.write(node, bytes, 0, false).expect("room");
    }
    drain(&volume);
    while !volume.clean_step().expect("a sound home").is_idle() {}
    volume.remove_file(ROOT, b"kept").expect("a file");
    put_aside_what_is_refused(&world, &volume, Operation::Rename);
    // Not even what is like it is taken for what was half made there.
    make(&volume, ROOT, "kept", Kind::File);
    volume.remove_file(ROOT, b"kept").expect("a file");
    volume.rename((ROOT, b"next"), (ROOT, b"kept"), RenameHow::Replace).expect("a free name");
    die_and_come_home(&world, volume);
    assert_eq!(home_file(&world, "kept").as_deref(), Some(&b"old"[..]));
    assert_eq!(home_file(&world, "next").as_deref(), Some(&b"new"[..]));
    let put = aside(&world);
    let last = put.last().expect("some are aside");
    assert_eq!((last.path.as_path(), last.errno), (Path::new("next"), 0), "{put:#?}");
}

#[test]
fn what_came_before_what_was_put_aside_comes_home() {
    let world = World::new(6);
    let (volume, _) = world.open().expect("a new volume");
    let node = make(&volume, ROOT, "x", Kind::File);
    drain(&volume);
    while !volume.clean_step().expect("a sound home").is_idle() {}
    volume.write(node, b"before", 0, false).expect("room");
    volume.link(node, ROOT, b"z").expect("a free name");
    put_aside_what_is_refused(&world, &volume, Operation::Link);
    die_and_come_home(&world, volume);
    assert_eq!(home_file(&world, "x").as_deref(), Some(&b"before"[..]));
    assert_eq!(aside(&world).len(), 1, "the second name alone");
}

#[test]
fn a_node_that_was_never_made_is_not_taken_for_what_stands_under_its_name() {
    // Which of two is found by one name must not hang on the order of a table.
    for seed in 0..20 {
        let world = World::new(seed);
        let (volume, _) = world.open().expect("a new volume");
        let old = make(&volume, ROOT, "p", Kind::Directory);
        put_aside_what_is_refused(&world, &volume, Operation::MakeDir);
        drop(volume);
        let (volume, _) = world.open().expect("the process died");
        let new = make(&volume, ROOT, "p", Kind::Directory);
        make(&volume, new, "a", Kind::File);
        drain(&volume);
        while !volume.clean_step().expect("a sound home").is_idle() {}
        volume.remove_file(new, b"a").expect("a file");
        drop(volume);
        let opened = world.open().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let found = opened.0.lookup(ROOT, b"p").expect("it is there").node;
        assert!(found == new && found != old, "seed {seed}");
        opened.0.detach().expect("nothing is in the way");
    }
}

/// A second name that the home refuses, among other changes; nothing of the log is of that kind,
/// and nothing that a home is asked when it is opened.
fn link_too_much(volume: &Opened) {
    let nodes = ["x", "y"].map(|name| make(volume, ROOT, name, Kind::File));
    drain(volume);
    while !volume.clean_step().expect("a sound home").is_idle() {}
    volume.link(nodes[0], ROOT, b"z").expect("a free name");
    volume.write(nodes[1], b"later", 0, false).expect("room");
    drain(volume);
}

#[test]
fn a_power_cut_anywhere_leaves_a_record_in_the_log_or_aside() {
    for cut_at in 1..60 {
        let world = World::new(3);
        let (volume, _) = world.open().expect("a new volume");
        link_too_much(&volume);
        refuse(&world, Operation::Link, EPERM);
        volume.clean_step().expect_err("the home refuses it");
        order(&world).expect("it is stuck");
        world.files.cut_power_at(world.files.operations() + cut_at);
        refuse(&world, Operation::Link, EPERM);
        let _ = volume.clean_step();
        let _ = volume.detach();
        drop(volume);
        let world = world.after_power_cut(cut_at);
        refuse(&world, Operation::Link, EPERM);
        if world.open().is_err() {
            // It was aside already, so the home refused something else, once.
            world.files.forget_faults();
        }
        let opened = world.open();
        let (volume, _) = opened.unwrap_or_else(|error| panic!("cut at {cut_at}: {error}"));
        volume.detach().unwrap_or_else(|error| panic!("cut at {cut_at}: {error}"));
        assert_eq!(aside(&world).len(), 1, "cut at {cut_at}");
        let links = world.home().metadata(Path::new("x")).expect("it is home").links;
        assert!(links == 1 && home_file(&world, "z").is_none(), "cut at {cut_at}");
        assert_eq!(home_file(&world, "y").as_deref(), Some(&b"later"[..]), "cut at {cut_at}");
    }
}

/// Whatever is refused in a random life, once it is ordered aside everything goes on.
#[test]
fn whatever_the_home_refuses_the_volume_is_never_stuck() {
    const REFUSED: [Operation; 6] = [
        Operation::Rename,
        Operation::RemoveFile,
        Operation::MakeNode,
        Operation::MakeDir,
        Operation::Link,
        Operation::Change,
    ];
    let put = std::cell::Cell::new(0);
    for_each_seed("aside::whatever_the_home_refuses", &ONCE_FAILED, 0..200, |seed| {
        let world = World::new(seed);
        let (mut volume, _) = world.open().expect("a new volume");
        let mut life = Life::plain(seed);
        for step in 0..100 {
            life.step(&volume);
            match life.random().below(20) {
                0 => {
                    drain(&volume);
                    let operation = REFUSED[life.random().below(6) as usize];
                    let skip = life.random().below(3);
                    let effect = Effect::Errno(EPERM);
                    world.files.fail(Fault { operation, skip, effect });
                    let failed = volume.clean_step().is_err();
                    world.files.forget_faults();
                    if failed && order(&world).is_some() {
                        for skip in 0..=skip {
                            world.files.fail(Fault { operation, skip, effect });
                        }
                        let _ = volume.clean_step();
                        world.files.forget_faults();
                    }
                }
                1 => half_apply(&world, &volume, life.random()),
                2 => {
                    drop(volume);
                    let opened = world.open();
                    volume = opened.unwrap_or_else(|e| panic!("seed {seed}, {step}: {e}")).0;
                }
                _ => {}
            }
        }
        for _ in 0..200 {
            if volume.detach().is_ok() {
                break;
            }
            assert!(order(&world).is_some(), "seed {seed}: stuck, and at nothing");
        }
        volume.detach().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        put.set(put.get() + aside(&world).len());
    });
    let enough = if std::env::var_os("HOLDFAST_SEED").is_some() { 0 } else { 50 };
    assert!(put.get() >= enough, "only {} records were put aside", put.get());
}

#[test]
fn bytes_come_home_under_no_right_that_they_were_not_written_under() {
    for (before, after) in [(0o644, 0o600), (0o666, 0o640), (0o600, 0o644), (0o640, 0o604)] {
        let world = World::new(1);
        let (volume, _) = world.open().expect("a new volume");
        let node = make(&volume, ROOT, "f", Kind::File);
        let mode = |mode| SetAttributes { mode: Some(mode), ..Default::default() };
        volume.write(node, b"public", 0, false).expect("room");
        volume.set_attributes(node, &mode(before)).expect("a file");
        drain(&volume);
        while !volume.clean_step().expect("a sound home").is_idle() {}
        volume.set_attributes(node, &mode(after)).expect("a file");
        volume.write(node, b"secret", 0, false).expect("room");
        drain(&volume);
        let at_home = || world.home().metadata(Path::new("f")).expect("it is there").mode;
        refuse(&world, Operation::Write, EIO);
        volume.clean_step().expect_err("the home refuses it");
        assert_eq!(at_home(), before & after, "{before:o} {after:o}");
        while !volume.clean_step().expect("a sound home").is_idle() {}
        assert_eq!(at_home(), after);
        assert_eq!(home_file(&world, "f").as_deref(), Some(&b"secret"[..]));
    }
}
