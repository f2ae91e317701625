//! The power goes at every I/O: the recovered home is a prefix of the acknowledged order.

use std::cell::Cell;

use holdfast_io::fake::{Effect, Fault, Operation};

use crate::death::half_apply_for;
use crate::model::{Image, Life, image_of, image_through, timeless};
use crate::seeds::for_each_seed;
use crate::world::{Opened, World};

/// Seeds of the plain life that found something once.
const ONCE_FAILED: [u64; 3] = [1077, 1091, 1166];

/// What is known of a run when the power went.
pub(crate) struct Run {
    pub(crate) world: World,
    /// The tree before the first change and after each acknowledged one.
    pub(crate) images: Vec<Image>,
    /// At least this many changes were durable.
    pub(crate) durable: usize,
    /// The cut came before the end.
    pub(crate) cut: bool,
}

/// Sixty steps until operation `cut_at` of the disk. A step notes what each of its changes has come
/// to, and returns whether something failed.
pub(crate) fn run_steps(
    seed: u64,
    cut_at: Option<u64>,
    mut step: impl FnMut(&World, &Opened, &mut dyn FnMut()) -> bool,
) -> Run {
    let world = World::new(seed);
    let (volume, _) = world.open().expect("a new volume");
    let start = world.files.operations();
    if let Some(cut_at) = cut_at {
        world.files.cut_power_at(start + cut_at);
    }
    let is_cut = || cut_at.is_some_and(|cut_at| world.files.operations() >= start + cut_at);
    let mut seen = vec![(volume.log().marks().tail, timeless(image_through(&volume)))];
    let mut note = || {
        let tail = volume.log().marks().tail;
        // Without power the home cannot be asked what it has.
        if !is_cut() && seen.last().is_some_and(|(last, _)| *last != tail) {
            seen.push((tail, timeless(image_through(&volume))));
        }
    };
    for _ in 0..60 {
        // What a cleaner removes behind itself may be missed without an error.
        if step(&world, &volume, &mut note) || is_cut() {
            break;
        }
    }
    let durable = volume.log().marks().durable;
    let durable = seen.iter().filter(|(tail, _)| *tail <= durable).count();
    let images = seen.into_iter().map(|(_, image)| image).collect();
    let cut = is_cut();
    drop(volume);
    Run { world, images, durable, cut }
}

/// Lives a random life until operation `cut_at` of the disk.
fn run(seed: u64, mut life: Life, cut_at: Option<u64>) -> Run {
    run_steps(seed, cut_at, |world, volume, note| {
        life.step(volume);
        note();
        life.step_more(volume);
        note();
        life.step_rich(volume);
        note();
        let has_more = life.has_more();
        match life.random().below(5) {
            0 => volume.drain_step().is_err(),
            1 => volume.clean_step().is_err(),
            2 => volume.log().prepare().is_err(),
            3 if has_more => {
                half_apply_for(&mut life, world, volume);
                false
            }
            _ => false,
        }
    })
}

/// Recovers, and finds which acknowledged state the home is in.
fn recovered_index(run: &Run, world: &World, told: &str) -> usize {
    let (volume, _) = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
    let through = timeless(image_through(&volume));
    volume.detach().unwrap_or_else(|error| panic!("{told}: {error}"));
    let home = timeless(image_of(&*world.home()));
    assert_eq!(home, through, "{told}: the home is not what was seen");
    let index = run.images.iter().rposition(|image| *image == home);
    index.unwrap_or_else(|| {
        let last: Vec<_> = run.images.iter().rev().take(4).collect();
        panic!("{told}: the home is in no acknowledged state: {home:?}, last were {last:#?}")
    })
}

/// Cuts the power of a life at every `stride`th operation, starting from a seeded one. Returns how
/// many crash images were recovered.
fn check_all_cuts(seed: u64, life: fn(u64) -> Life, stride: u64) -> u64 {
    let cuts = (1 + seed % stride..).step_by(stride as usize);
    check_cuts(&format!("seed {seed}"), cuts, |cut_at| run(seed, life(seed), Some(cut_at)))
}

/// Cuts the power of a run at the given operations, until one lies behind its end. Returns how many
/// crash images were recovered.
pub(crate) fn check_cuts(
    name: &str,
    cuts: impl Iterator<Item = u64>,
    run: impl Fn(u64) -> Run,
) -> u64 {
    let mut images = 0;
    for (cut_at, run) in cuts.map(|cut_at| (cut_at, run(cut_at))).take_while(|(_, run)| run.cut) {
        for crash_seed in 0..3 {
            let told = format!("{name}, cut at {cut_at}, crash image {crash_seed}");
            let world = run.world.after_power_cut(crash_seed);
            let index = recovered_index(&run, &world, &told);
            assert!(
                index + 1 >= run.durable,
                "{told}: state {index} of {} though {} were durable",
                run.images.len(),
                run.durable
            );
            images += 1;
        }
    }
    images
}

#[test]
fn a_power_cut_at_any_io_leaves_a_prefix_of_what_was_acknowledged() {
    let images = Cell::new(0);
    for_each_seed("power::a_power_cut_at_any_io", &ONCE_FAILED, 0..60, |seed| {
        images.set(images.get() + check_all_cuts(seed, Life::plain, 3));
    });
    println!("{} crash images", images.get());
}

#[test]
fn so_it_does_with_extended_attributes() {
    for_each_seed("power::so_it_does_with_extended", &[], 7000..7030, |seed| {
        check_all_cuts(seed, Life::rich, 5);
    });
}

#[test]
fn so_it_does_with_open_files_and_windows_applied_in_part() {
    for_each_seed("power::so_it_does_with_open_files", &[], 5000..5050, |seed| {
        check_all_cuts(seed, Life::full, 3);
    });
}

/// Recovery itself is cut, then recovered.
#[test]
fn a_power_cut_during_recovery_is_recovered_from() {
    for_each_seed("power::a_power_cut_during_recovery", &[], 100..112, |seed| {
        let operations = run(seed, Life::plain(seed), None).world.files.operations();
        let run = run(seed, Life::plain(seed), Some(operations / 2));
        for cut_at in 0..60 {
            let told = format!("seed {seed}, recovery cut at {cut_at}");
            let world = run.world.after_power_cut(seed);
            world.files.cut_power_at(world.files.operations() + cut_at);
            if let Ok((volume, _)) = world.open() {
                let _ = volume.detach();
            }
            let world = world.after_power_cut(cut_at);
            let index = recovered_index(&run, &world, &told);
            assert!(index + 1 >= run.durable, "{told}: lost what was durable");
        }
    });
}

/// Breaks a recovery off: by a death before anything is applied, or by a home that fails.
fn break_off(world: &World, skip: Option<u64>) {
    let Some(skip) = skip else {
        drop(world.open_log());
        return;
    };
    world.files.fail(Fault { operation: Operation::Rename, skip, effect: Effect::Errno(5) });
    drop(world.open());
    world.files.forget_faults();
}

/// The region stays, and what it says of the log is no proof of what the home has.
#[test]
fn a_recovery_that_is_broken_off_is_begun_again() {
    for_each_seed("power::a_recovery_that_is_broken_off", &[], 5000..5012, |seed| {
        let operations = run(seed, Life::full(seed), None).world.files.operations();
        for cut in 1..8 {
            let run = run(seed, Life::full(seed), Some(operations * cut / 8));
            for skip in [None, Some(0), Some(1)] {
                let told = format!("seed {seed}, cut {cut} of 8, broken off by {skip:?}");
                let world = run.world.after_power_cut(seed);
                break_off(&world, skip);
                let index = recovered_index(&run, &world, &told);
                assert!(index + 1 >= run.durable, "{told}: lost what was durable");
            }
        }
    });
}

/// The checker must notice a home that is in no acknowledged state.
#[test]
#[should_panic(expected = "in no acknowledged state")]
fn canary_a_home_with_a_hole_is_noticed() {
    use holdfast_io::{Files, OpenHow};
    let run = run(3, Life::plain(3), None);
    let home = run.world.home();
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = home.open("never-made".as_ref(), how).expect("a sound disk");
    file.sync_data().expect("a sound disk");
    home.sync_dir("".as_ref()).expect("a sound disk");
    recovered_index(&run, &run.world, "canary");
}
