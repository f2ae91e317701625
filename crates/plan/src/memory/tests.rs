//! The model beside one that is as slow as it is plain, and its rules one by one.

mod plain;

use holdfast_io::fake::Random;

use self::plain::{Fault, Plain};
use super::*;
use crate::configuration::{Load, Mix};
use crate::machine::Machine;

/// Requests and checkpoints of one comparison.
const STEPS: u32 = 3000;

fn configuration(pages: u64, conventional_pages: u64, durable_pages: u64) -> Configuration {
    Configuration {
        machine: Machine::PAPER,
        memory_pages: conventional_pages + durable_pages,
        durable_pages,
        load: Load::Mix(Mix::paper(pages)),
        cold_pages: ColdPages::ToDisk,
        clean_pages: CleanPages::Written,
        seed: 1,
    }
}

fn any_configuration(random: &mut Random) -> Configuration {
    let pages = 2 + random.below(40);
    let (conventional, durable) = (1 + random.below(pages + 3), random.below(pages + 3));
    let mut any = configuration(pages, conventional, durable);
    if random.chance(50) {
        any.cold_pages = ColdPages::ToDurable;
    }
    if random.chance(50) {
        any.clean_pages = CleanPages::Dropped;
    }
    any
}

/// What differs first between the model and the plain one, which may have a fault.
fn difference(seed: u64, fault: Fault) -> Result<(), String> {
    let mut random = Random::new(seed);
    let configuration = any_configuration(&mut random);
    let pages = configuration.load.database_pages();
    let checkpoints = 1 + random.below(20);
    let mut memory = Memory::after_crash(&configuration);
    let mut plain = Plain::new(&configuration, fault);
    for step in 0..STEPS {
        if random.chance(checkpoints) {
            memory.checkpoint();
            plain.checkpoint();
        } else {
            // Low numbers more often than high ones.
            let page = random.below(1 + random.clone().below(pages)) as u32;
            let request = Request { page, is_write: random.chance(30) };
            memory.request(request);
            plain.request(request)?;
        }
        let found = (memory.paging(), memory.checkpoints(), memory.dirty());
        let wanted = (plain.paging, plain.checkpoints, plain.dirty());
        if found != wanted {
            return Err(format!("step {step}: {found:?}, not {wanted:?}, of {configuration:?}"));
        }
        if memory.resident_pages() as usize != plain.resident() {
            return Err(format!("step {step}: other pages are in memory"));
        }
    }
    Ok(())
}

#[test]
fn every_page_is_moved_when_a_plain_model_moves_it() {
    let asked_for = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in asked_for.map_or(1..=200, |seed| seed..=seed) {
        let replay = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-plan memory");
        difference(seed, Fault::None).unwrap_or_else(|why| panic!("{why}\n{replay}"));
    }
}

#[test]
fn each_fault_of_the_plain_model_is_noticed() {
    for fault in Fault::ALL {
        let noticed = (1..=200).any(|seed| difference(seed, fault).is_err());
        assert!(noticed, "{fault:?} is not noticed");
    }
}

fn read(memory: &mut Memory, page: u32) {
    memory.request(Request { page, is_write: false });
}

fn write(memory: &mut Memory, page: u32) {
    memory.request(Request { page, is_write: true });
}

#[test]
fn a_page_is_written_by_the_second_checkpoint_after_its_change() {
    let mut memory = Memory::after_crash(&configuration(10, 10, 0));
    write(&mut memory, 3);
    memory.checkpoint();
    assert_eq!(memory.checkpoints().disk_writes, 0);
    memory.checkpoint();
    assert_eq!(memory.checkpoints().disk_writes, 1);
    assert_eq!(memory.dirty(), Dirty::default());
    memory.checkpoint();
    assert_eq!(memory.checkpoints().disk_writes, 1);
}

#[test]
fn a_recovery_reads_a_dirty_page_from_where_stable_storage_has_it() {
    let mut memory = Memory::after_crash(&configuration(10, 10, 2));
    write(&mut memory, 0);
    write(&mut memory, 9);
    write(&mut memory, 9);
    assert_eq!(memory.dirty(), Dirty { on_disk: 1, durable: 1 });
}

#[test]
fn the_papers_first_strategy_sends_every_cold_page_to_disk_and_clean_ones_too() {
    let mut memory = Memory::after_crash(&configuration(10, 1, 5));
    memory.durable.clear();
    memory.pages.iter_mut().for_each(|page| page.is_durable = false);
    read(&mut memory, 8);
    read(&mut memory, 9);
    let to_disk = Traffic { disk_reads: 2, disk_writes: 1, ..Traffic::default() };
    assert_eq!(memory.paging(), to_disk);
}

#[test]
fn the_papers_second_strategy_sends_cold_pages_to_durable_memory_while_it_has_room() {
    let strategy = ColdPages::ToDurable;
    let configuration = Configuration { cold_pages: strategy, ..configuration(10, 1, 1) };
    let mut memory = Memory::after_crash(&configuration);
    memory.durable.clear();
    memory.pages.iter_mut().for_each(|page| page.is_durable = false);
    for page in [7, 8, 9, 7] {
        read(&mut memory, page);
    }
    let wanted = Traffic { disk_reads: 3, disk_writes: 2, durable_reads: 1, durable_writes: 1 };
    assert_eq!(memory.paging(), wanted);
}

#[test]
fn a_clean_page_that_is_dropped_moves_nothing() {
    let dropped = CleanPages::Dropped;
    let configuration = Configuration { clean_pages: dropped, ..configuration(10, 1, 0) };
    let mut memory = Memory::after_crash(&configuration);
    read(&mut memory, 1);
    read(&mut memory, 2);
    write(&mut memory, 2);
    read(&mut memory, 3);
    assert_eq!((memory.paging().disk_reads, memory.paging().disk_writes), (3, 1));
}

#[test]
fn memory_in_use_is_full_of_the_hottest_pages_which_are_all_dirty() {
    let memory = Memory::in_use(&configuration(10, 6, 4));
    assert!(memory.is_full());
    assert_eq!(memory.dirty(), Dirty { on_disk: 2, durable: 4 });
    assert_eq!(memory.dirtied_before.len() + memory.dirtied_now.len(), 6);
    assert_eq!((memory.paging(), memory.checkpoints()), Default::default());
}

#[test]
fn nothing_is_allocated_once_memory_is_made() {
    let mut memory = Memory::in_use(&configuration(40, 20, 10));
    let capacities = |memory: &Memory| {
        [
            memory.durable.capacity(),
            memory.dirtied_now.capacity() + memory.dirtied_before.capacity(),
            memory.candidates.capacity(),
        ]
    };
    let (before, mut random) = (capacities(&memory), Random::new(1));
    for _ in 0..5000 {
        match random.chance(2) {
            true => memory.checkpoint(),
            false => write(&mut memory, random.below(40) as u32),
        }
    }
    assert_eq!(capacities(&memory), before);
}
