//! The power goes at every I/O: the recovered home is a prefix of the acknowledged order.

use holdfast_io::fake::Random;

use crate::model::{Image, any_doing, apply, image_of, image_through};
use crate::world::World;

/// What is known of a run when the power went.
struct Run {
    world: World,
    /// The tree before the first change and after each acknowledged one.
    images: Vec<Image>,
    /// At least this many changes were durable.
    durable: usize,
    /// The cut came before the end.
    cut: bool,
}

/// Lives a random life until operation `cut_at` of the disk.
fn run(seed: u64, cut_at: Option<u64>) -> Run {
    let mut random = Random::new(seed);
    let world = World::new(seed);
    let (volume, _) = world.open().expect("a new volume");
    let start = world.files.operations();
    if let Some(cut_at) = cut_at {
        world.files.cut_power_at(start + cut_at);
    }
    let mut images = vec![image_through(&volume)];
    let mut tails = vec![volume.log().marks().tail];
    let mut cut = false;
    for _ in 0..60 {
        let doing = any_doing(&mut random);
        if apply(&volume, &doing).is_ok() {
            let tail = volume.log().marks().tail;
            if Some(&tail) != tails.last() {
                images.push(image_through(&volume));
                tails.push(tail);
            }
        }
        let failed = match random.below(5) {
            0 => volume.drain_step().is_err(),
            1 => volume.clean_step().is_err(),
            2 => volume.log().prepare().is_err(),
            _ => false,
        };
        if failed {
            cut = true;
            break;
        }
    }
    let marks = volume.log().marks();
    let durable = tails.iter().filter(|tail| **tail <= marks.durable).count();
    drop(volume);
    Run { world, images, durable, cut }
}

/// Recovers, and finds which acknowledged state the home is in.
fn recovered_index(run: &Run, world: &World, told: &str) -> usize {
    let (volume, _) = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
    let through = image_through(&volume);
    volume.detach().unwrap_or_else(|error| panic!("{told}: {error}"));
    let home = image_of(&*world.home());
    assert_eq!(home, through, "{told}: the home is not what was seen");
    let index = run.images.iter().rposition(|image| *image == home);
    index.unwrap_or_else(|| {
        let last: Vec<_> = run.images.iter().rev().take(4).collect();
        panic!("{told}: the home is in no acknowledged state: {home:?}, last were {last:#?}")
    })
}

fn check_all_cuts(seeds: std::ops::Range<u64>, stride: u64) -> u64 {
    let mut images = 0;
    for seed in seeds {
        let whole = run(seed, None);
        let operations = whole.world.files.operations();
        for cut_at in (1 + seed % stride..operations).step_by(stride as usize) {
            let run = run(seed, Some(cut_at));
            if !run.cut {
                break;
            }
            for crash_seed in 0..3 {
                let told = format!("seed {seed}, cut at {cut_at}, crash image {crash_seed}");
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
    }
    images
}

#[test]
fn a_power_cut_at_any_io_leaves_a_prefix_of_what_was_acknowledged() {
    let images = check_all_cuts(0..60, 3);
    println!("{images} crash images");
    assert!(images > 1000, "only {images} crash images");
}

/// Recovery itself is cut, then recovered.
#[test]
fn a_power_cut_during_recovery_is_recovered_from() {
    let mut images = 0;
    for seed in 100..112 {
        let operations = run(seed, None).world.files.operations();
        let run = run(seed, Some(operations / 2));
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
            images += 1;
        }
    }
    println!("{images} crash images");
}

/// The checker must notice a home that is in no acknowledged state.
#[test]
#[should_panic(expected = "in no acknowledged state")]
fn canary_a_home_with_a_hole_is_noticed() {
    use holdfast_io::{Files, OpenHow};
    let run = run(3, None);
    let home = run.world.home();
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = home.open("never-made".as_ref(), how).expect("a sound disk");
    file.sync_data().expect("a sound disk");
    home.sync_dir("".as_ref()).expect("a sound disk");
    recovered_index(&run, &run.world, "canary");
}
