//! What processes see mounted.
//!
//! Promise: each table of mounts that a process has is told once, with those who have it.
//! Never: asks for the namespace of a process: that waits for one that becomes another program,
//! and its mounts tell it, too, as the kernel gives no two the same number.

use super::table::{Mount, mounts_of, parse};
use crate::processes::{Patience, Process, ask_all};
use holdfast_io::process;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::{Mutex, PoisonError};

/// One table, and whose it is.
#[derive(Debug)]
pub struct View {
    /// Who has it.
    pub pids: Vec<u32>,
    /// What is mounted there.
    pub mounts: Vec<Mount>,
}

/// The numbers of the mounts that one process sees.
pub fn numbers_of(process: &Process) -> BTreeSet<u64> {
    mounts_of(process).iter().map(|mount| mount.number).collect()
}

/// The tables of all processes, and one process that counts and does not tell its own.
pub fn views(patience: Patience, counts: impl Fn(u32) -> bool) -> (Vec<View>, Option<u32>) {
    let known = Mutex::new(BTreeSet::new());
    // A table that begins as one that is known is that one. Who had it read has read all of it.
    let table_of = move |it: &Process| {
        let known = || known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut head = Vec::new();
        let mut is_new = false;
        let table = it.mounts(|begins| {
            head = begins.to_vec();
            is_new = !known().contains(&head);
            is_new
        })?;
        known().insert(head.clone());
        Some((head, is_new.then_some(table)))
    };
    // A thread may have a namespace of its own.
    let look = move |it: &Process| {
        let apart = it.apart();
        iter::once(it).chain(&apart).filter_map(&table_of).collect::<Vec<_>>()
    };
    let answers = ask_all(process::all(), patience, counts, look);
    let silent = answers.iter().find(|it| it.counts && it.told.is_none()).map(|it| it.pid);
    let mut views: BTreeMap<Vec<u8>, View> = BTreeMap::new();
    let told = answers.into_iter().filter_map(|it| Some((it.pid, it.told?)));
    for (pid, (head, table)) in told.flat_map(|(pid, all)| all.into_iter().map(move |it| (pid, it)))
    {
        let view = views.entry(head).or_insert(View { pids: Vec::new(), mounts: Vec::new() });
        view.pids.push(pid);
        table.into_iter().for_each(|table| view.mounts = parse(&table));
    }
    (views.into_values().collect(), silent)
}
