//! Deaths at every step: whoever uses a store or a disk next finds the old or the new.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_blocks::Vdisk;
use holdfast_io::{Blocks, BlocksError};
use holdfast_snapshot::{Answer, Refusal, Request, Snapshots, Source};

use crate::support::{
    DISK_PAGES, Machine, ask, asked, bytes_of, content, disks, image, list, make, making, refused,
    room_bytes,
};

/// Blocks whose user dies after so many changes: no later one happens.
struct Mortal {
    blocks: Arc<Vdisk>,
    changes_left: Arc<AtomicU64>,
}

impl Mortal {
    fn live(&self) -> Result<(), BlocksError> {
        let left = self.changes_left.load(Ordering::Relaxed);
        self.changes_left.store(left.saturating_sub(1), Ordering::Relaxed);
        match left {
            0 => Err(BlocksError::Failed(std::io::Error::other("it is dead"))),
            _ => Ok(()),
        }
    }
}

impl Blocks for Mortal {
    fn size_bytes(&self) -> u64 {
        self.blocks.size_bytes()
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.blocks.read(into, offset)
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        assert!(from.len() <= self.atomic_bytes_max(), "more would be several changes");
        self.live()?;
        self.blocks.write(from, offset)
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.live()?;
        self.blocks.write_zeroes(offset, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.live()?;
        self.blocks.discard(offset, bytes)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        Ok(())
    }

    fn atomic_bytes_max(&self) -> usize {
        self.blocks.atomic_bytes_max()
    }
}

impl Source for Mortal {
    fn while_still(&self, job: &mut dyn FnMut()) {
        self.blocks.while_still(job);
    }
}

/// Snapshots whose user dies after so many changes of store or disk.
fn mortal(machine: &Machine, changes: u64) -> Snapshots {
    let changes_left = Arc::new(AtomicU64::new(changes));
    let mortal = |blocks: &Arc<Vdisk>| {
        Arc::new(Mortal { blocks: blocks.clone(), changes_left: changes_left.clone() })
    };
    Snapshots::open(mortal(&machine.store), disks("ram", mortal(&machine.disk))).unwrap()
}

/// Has `job` die after its first change, after its second, and so on, until it is done; `check`
/// sees each time what is left. Returns how many changes it was.
fn die_everywhere(
    prepare: impl Fn() -> Machine,
    job: impl Fn(&Snapshots) -> Option<()>,
    check: impl Fn(&Machine, bool),
) -> u64 {
    for changes in 0.. {
        let machine = prepare();
        let is_done = job(&mortal(&machine, changes)).is_some();
        check(&machine, is_done);
        if is_done {
            return changes;
        }
    }
    unreachable!("it is done some day")
}

fn with_one_snapshot() -> Machine {
    let machine = Machine::new();
    machine.disk.write(&content(2, DISK_PAGES), 0).unwrap();
    make(&machine.open(), 1, &content(1, 60)).unwrap();
    machine.disk.write(&content(3, DISK_PAGES), 0).unwrap();
    machine
}

fn ids(snapshots: &Snapshots) -> Vec<u64> {
    list(snapshots).iter().map(|it| it.id).collect()
}

/// The one snapshot is whole, and nothing else is in use.
fn is_as_before(snapshots: &Snapshots) {
    assert_eq!(image(snapshots, 1, 0).unwrap(), content(1, 60));
    assert_eq!(image(snapshots, 1, 1).unwrap(), content(2, DISK_PAGES));
}

#[test]
fn a_death_while_a_snapshot_is_made_leaves_the_old_ones_and_no_space_lost() {
    let old_bytes = room_bytes(&with_one_snapshot().open());
    let memory = content(4, 80);
    let changes = die_everywhere(
        with_one_snapshot,
        |it| make(it, 2, &memory),
        |machine, is_done| {
            let snapshots = machine.open();
            is_as_before(&snapshots);
            if !is_done {
                assert_eq!((ids(&snapshots), room_bytes(&snapshots)), (vec![1], old_bytes));
                return;
            }
            assert_eq!(ids(&snapshots), [1, 2]);
            assert_eq!(image(&snapshots, 2, 0).unwrap(), memory);
            assert_eq!(image(&snapshots, 2, 1).unwrap(), content(3, DISK_PAGES));
            assert!(room_bytes(&snapshots) < old_bytes, "the canary: room is counted");
        },
    );
    assert!(changes > 3, "{changes}");
}

#[test]
fn a_death_while_one_is_removed_leaves_it_whole_or_gone() {
    let empty_bytes = room_bytes(&Machine::new().open());
    let remove = |it: &Snapshots| asked(it, &Request::Remove { id: 1 }, &[]).map(drop);
    let changes = die_everywhere(with_one_snapshot, remove, |machine, is_done| {
        let snapshots = machine.open();
        match is_done {
            true => assert_eq!((ids(&snapshots), room_bytes(&snapshots)), (vec![], empty_bytes)),
            false => is_as_before(&snapshots),
        }
    });
    assert_eq!(changes, 1);
}

#[test]
fn a_restore_that_was_begun_is_finished_by_the_next_one() {
    let restore = |it: &Snapshots| {
        let told = asked(it, &Request::RestoreDisks { id: 1 }, &[])?;
        assert_eq!(told.answer, Answer::Done);
        Some(())
    };
    let (old, new) = (content(3, DISK_PAGES), content(2, DISK_PAGES));
    let is_torn = |disk: &Vdisk| ![&old, &new].contains(&&bytes_of(disk));
    let torn = AtomicU64::new(0);
    let changes = die_everywhere(with_one_snapshot, restore, |machine, is_done| {
        torn.fetch_add(is_torn(&machine.disk).into(), Ordering::Relaxed);
        let snapshots = machine.open();
        assert!(!is_torn(&machine.disk));
        assert!(!is_done || bytes_of(&*machine.disk) == new);
        assert_eq!(snapshots.torn_disks(), Vec::<String>::new());
        is_as_before(&snapshots);
    });
    assert!(torn.into_inner() > 10, "the canary: a death within leaves something torn");
    assert!(changes > 10, "{changes}");
}

#[test]
fn a_server_that_follows_knows_no_draft_and_a_repeated_commit() {
    let machine = Machine::new();
    let memory = content(1, 10);
    let requests = making(1, &memory);
    let (commit, before) = requests.split_last().unwrap();
    let first = machine.open();
    for (request, piece) in before {
        assert_eq!(asked(&first, request, piece).unwrap().answer, Answer::Done);
    }
    drop(first);
    let second = machine.open();
    let refusal = refused(&second, &commit.0);
    assert_eq!(refusal, Refusal::NoDraft);
    make(&second, 1, &memory).unwrap();
    drop(second);
    assert_eq!(ask(&machine.open(), &commit.0), Answer::Done);
}

/// Leaves the disk torn, between the first snapshot and what it was.
pub(crate) fn die_in_restore(machine: &Machine) {
    machine.disk.write(&content(3, DISK_PAGES), 0).unwrap();
    let told = asked(&mortal(machine, 5), &Request::RestoreDisks { id: 1 }, &[]);
    assert_eq!(told, None, "it is dead");
}
