//! Whenever the power fails, every page is what its durable records make of it.

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_pages::{Checkpoints, CleaningOrder, Compression, PagesConfig, Rsn};

use crate::support::{replay, seeds};
use crate::toy::{CONFIG_OF_PAGES, Model, Store, is_cut, new_disk};

/// What is left when a life is over.
pub(crate) struct End {
    model: Model,
    durable: Rsn,
    checkpoints: Checkpoints,
    cleaning: CleaningOrder,
    compression: Compression,
}

/// A life of so many steps, or until the power fails.
pub(crate) fn live(store: &mut Store, random: &mut Random, steps: u64) -> Result<End, String> {
    for _ in 0..steps {
        if let Err(error) = store.step(random) {
            if is_cut(&store.files) {
                break;
            }
            return Err(error);
        }
        let (archived, durable) = (store.pages.archived(), store.pages.stream().durable());
        if archived > durable {
            return Err(format!("{archived} is archived, {durable} durable"));
        }
    }
    let durable = store.pages.stream().durable();
    let (checkpoints, cleaning, compression) = Default::default();
    Ok(End { model: store.model.clone(), durable, checkpoints, cleaning, compression })
}

/// The store that is found after a power cut has everything that was durable.
fn found(disk: &FakeFiles, end: End) -> Result<Store, String> {
    let End { checkpoints, cleaning, compression, .. } = end;
    let config = PagesConfig { checkpoints, cleaning, compression, ..CONFIG_OF_PAGES };
    let store = Store::open_with(disk, end.model, &config)?;
    if store.found.next < end.durable {
        return Err(format!("{} was durable, {} is there", end.durable, store.found.next));
    }
    store.check()?;
    Ok(store)
}

const SECTORS: [Sectors; 2] = [Sectors::Whole, Sectors::Garbage];

/// The disk after some restarts that were cut short.
fn restarted(mut disk: FakeFiles, random: &mut Random) -> FakeFiles {
    for _ in 0..random.below(3) {
        disk.cut_power_at(disk.operations() + 1 + random.below(12));
        drop(Store::open(&disk, Model::default()));
        disk = disk.after_power_cut(random.any());
    }
    disk
}

/// Several lives in a row, each ended by a power cut; then one that ends well.
pub(crate) fn lives(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let checkpoints = [Checkpoints::Followed, Checkpoints::Reread][seed as usize % 2];
    let cleaning = CleaningOrder::ALL[seed as usize % CleaningOrder::ALL.len()];
    let mut disk = new_disk(seed);
    let (model, durable) = (Model::default(), Rsn::FIRST);
    let mut end = End { model, durable, checkpoints, cleaning, compression: Compression::None };
    for life in 0..4 {
        disk = restarted(disk, &mut random);
        let mut store = found(&disk, end)?;
        store.files.cut_power_at(store.files.operations() + 1 + random.below(150));
        // Each life reads what the one before wrote in another form.
        let compression = [Compression::Lz4, Compression::None][life as usize % 2];
        let lived = live(&mut store, &mut random, 2000)?;
        end = End { checkpoints, cleaning, compression, ..lived };
        store.files.set_sectors(SECTORS[life as usize % SECTORS.len()]);
        disk = store.files.after_power_cut(seed + life);
    }
    let mut store = found(&disk, end)?;
    live(&mut store, &mut random, 1000)?;
    store.pages.archive_all().map_err(|error| error.to_string())?;
    store.check()
}

#[test]
fn power_cuts_in_a_row_leave_every_page_as_its_records_say() {
    for seed in seeds(60) {
        if let Err(error) = lives(seed) {
            panic!("{error}\n{}", replay("power_cuts_in_a_row", seed));
        }
    }
}

/// One life, cut at this operation of its disk. False if it ended before.
fn cut_at(operation: u64, seed: u64, mood: Mood) -> Result<bool, String> {
    let mut store = Store::new(seed);
    store.files.cut_power_at(store.files.operations() + operation);
    let end = live(&mut store, &mut Random::new(seed), 900)?;
    let disk = store.files.after_power_cut_in(mood, seed + operation);
    let was_cut = is_cut(&store.files);
    drop(store);
    found(&disk, end)?;
    Ok(was_cut)
}

#[test]
fn a_power_cut_at_any_operation_leaves_every_page_as_its_records_say() {
    for seed in seeds(1) {
        let moods = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];
        let mut operation = 1;
        while cut_at(operation, seed, moods[operation as usize % moods.len()]).unwrap_or_else(
            |error| {
                panic!("operation {operation}: {error}\n{}", replay("a_power_cut_at_any", seed))
            },
        ) {
            operation += 1;
        }
    }
}
