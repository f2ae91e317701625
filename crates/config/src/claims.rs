//! Claims: what an acknowledgement survives, computed from the configuration.
//!
//! Promise: a pure function from memory, power source and wish to a verdict. A volume acknowledges
//! from memory only if the memory survives every failure its `must_survive` names; otherwise it
//! writes through. Each failure that memory does not survive comes with the reason and with what
//! would supply it.
//! Never: looks at the machine, or claims what it cannot compute.

use serde::{Deserialize, Serialize};

/// A failure that an acknowledged write may have to survive.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// Death of any process: database, front end, keeper.
    Process,
    /// Death of the operating system with the machine staying powered: panic, reset.
    Os,
    /// Loss of mains power.
    Power,
    /// Loss of the machine with its disks.
    Machine,
}

impl Failure {
    /// All of them, mildest first.
    pub const ALL: [Failure; 4] = [Failure::Process, Failure::Os, Failure::Power, Failure::Machine];

    /// What `must_survive` is when a volume does not say.
    pub const DEFAULT: [Failure; 3] = [Failure::Process, Failure::Os, Failure::Power];

    /// The word used in configuration, reports and documents.
    pub fn word(self) -> &'static str {
        match self {
            Failure::Process => "process",
            Failure::Os => "os",
            Failure::Power => "power",
            Failure::Machine => "machine",
        }
    }

    /// What the failure is, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Failure::Process => "any process dies: the database, the front end, the keeper",
            Failure::Os => "the operating system dies and the machine stays powered",
            Failure::Power => "the mains power fails",
            Failure::Machine => "the machine is lost with its disks",
        }
    }
}

/// What a region is to be made of, as the configuration has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediumKind {
    /// Heap of the front end.
    Private,
    /// A file in `/dev/shm`.
    Shm,
    /// A file in a hugetlbfs.
    Hugetlb,
    /// Persistent memory, or RAM hidden from the operating system.
    Pmem,
    /// An ordinary file, mapped.
    File,
}

impl MediumKind {
    /// The word used in configuration, reports and documents.
    pub fn word(self) -> &'static str {
        match self {
            MediumKind::Private => "private",
            MediumKind::Shm => "shm",
            MediumKind::Hugetlb => "hugetlb",
            MediumKind::Pmem => "pmem",
            MediumKind::File => "file",
        }
    }
}

/// What a region is made of, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Heap of the front end.
    Private,
    /// A file in `/dev/shm`.
    Shm,
    /// A file in a hugetlbfs.
    Hugetlb,
    /// A file that is reached through the page cache, whatever it is called.
    File,
    /// RAM that was reserved when the system started; nobody has seen it survive a restart.
    Unproven,
    /// The same, and `holdfast region probe` has seen it survive one.
    Reserved,
    /// Memory that keeps its contents without power, as its firmware says.
    Persistent,
}

impl Memory {
    /// All of them.
    pub const ALL: [Memory; 7] = [
        Memory::Private,
        Memory::Shm,
        Memory::Hugetlb,
        Memory::File,
        Memory::Unproven,
        Memory::Reserved,
        Memory::Persistent,
    ];

    /// What it is called in the matrix.
    fn name(self) -> &'static str {
        match self {
            Memory::Private => "`private`",
            Memory::Shm => "`shm`",
            Memory::Hugetlb => "`hugetlb`",
            Memory::File => "`file`",
            Memory::Unproven => "`pmem`: reserved RAM",
            Memory::Reserved => "`pmem`: reserved RAM, proved",
            Memory::Persistent => "`pmem`: persistent memory",
        }
    }
}

/// What keeps the machine alive while memory is emptied to disk after the mains failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerSource {
    /// Nothing does.
    #[default]
    None,
    /// Something does that is not to be relied on now.
    Unarmed,
    /// Something does for at least twice as long as that takes.
    Armed,
}

impl PowerSource {
    /// All of them.
    pub const ALL: [PowerSource; 3] = [PowerSource::None, PowerSource::Unarmed, PowerSource::Armed];
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// When the region has it.
    Memory,
    /// When the log's device has it.
    Disk,
}

/// A failure that an acknowledgement from this memory would not survive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Which.
    pub failure: Failure,
    /// True if `must_survive` names it: it is then a reason to write through.
    pub asked: bool,
    /// Why memory does not survive it.
    pub why: String,
    /// What would.
    pub supply: String,
}

/// What a volume's acknowledgements mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// When writes are acknowledged.
    pub class: Class,
    /// The failures that an acknowledged write survives.
    pub survives: Vec<Failure>,
    /// The failures it does not survive.
    pub lost_in: Vec<Failure>,
    /// What the memory lacks, for each failure it does not cover, asked for or not.
    pub missing: Vec<Gap>,
}

/// What a log is kept on, and what it is applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A disk, as far as the kernel tells. It is assumed to obey flush.
    Disk,
    /// RAM that goes with the system, whatever it is called: what of it, and where.
    Ram(String),
}

impl Storage {
    /// RAM if either is.
    pub fn or(self, other: impl FnOnce() -> Storage) -> Storage {
        if self == Storage::Disk { other() } else { self }
    }

    /// None if what it keeps survives the failure; else why not.
    fn gap(&self, failure: Failure) -> Option<String> {
        match (failure, self) {
            (Failure::Machine, _) => {
                Some("which needs a copy on another machine; this version keeps none".into())
            }
            (Failure::Os | Failure::Power, Storage::Ram(what)) => {
                Some(format!("and {what}, which is RAM and gone then"))
            }
            _ => None,
        }
    }
}

impl Verdict {
    /// The verdict where log and home are kept on this, or why that cannot keep what is asked.
    pub fn stored_on(self, storage: &Storage, must_survive: &[Failure]) -> Result<Verdict, String> {
        refuse_gaps(storage, must_survive)?;
        let is_kept = |failure: &Failure| storage.gap(*failure).is_none();
        let survives: Vec<_> = self.survives.into_iter().filter(is_kept).collect();
        let lost_in = Failure::ALL.into_iter().filter(|it| !survives.contains(it)).collect();
        Ok(Verdict { survives, lost_in, ..self })
    }

    /// What is left of it when no other process would find the memory.
    pub fn without_memory(self) -> Verdict {
        match self.class {
            Class::Disk => self,
            Class::Memory => {
                Verdict { survives: Vec::new(), lost_in: Failure::ALL.to_vec(), ..self }
            }
        }
    }
}

/// What claims are computed from.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What the region is made of.
    pub memory: Memory,
    /// What powers the machine when the mains fail.
    pub power: PowerSource,
    /// The failures an acknowledgement must survive.
    pub must_survive: &'a [Failure],
    /// The operator wants class Disk whatever the memory can.
    pub write_through: bool,
}

/// The verdict, or why no class of acknowledgement can keep what is asked.
pub fn judge(facts: &Facts<'_>) -> Result<Verdict, String> {
    if facts.must_survive.is_empty() {
        return Err("must_survive is empty: an acknowledgement that survives nothing says \
                    nothing; name at least \"process\""
            .into());
    }
    refuse_gaps(&Storage::Disk, facts.must_survive)?;
    let missing = gaps(facts);
    let class = match facts.write_through || missing.iter().any(|gap| gap.asked) {
        true => Class::Disk,
        false => Class::Memory,
    };
    let kept = |failure: &Failure| match class {
        Class::Disk => disk_survives(*failure),
        Class::Memory => memory_gap(facts.memory, facts.power, *failure).is_none(),
    };
    let (survives, lost_in) = Failure::ALL.into_iter().partition(kept);
    Ok(Verdict { class, survives, lost_in, missing })
}

/// Refuses what no class of acknowledgement can keep on this storage.
fn refuse_gaps(storage: &Storage, must_survive: &[Failure]) -> Result<(), String> {
    let gap = must_survive.iter().find_map(|it| Some((*it, storage.gap(*it)?)));
    gap.map_or(Ok(()), |(failure, why)| {
        let (word, meaning) = (failure.word(), failure.meaning());
        Err(format!("must_survive names \"{word}\" ({meaning}), {why}"))
    })
}

/// What the memory lacks. The loss of the machine is beyond any memory and is left out.
fn gaps(facts: &Facts<'_>) -> Vec<Gap> {
    let gap = |failure| {
        let (why, supply) = memory_gap(facts.memory, facts.power, failure)?;
        let asked = facts.must_survive.contains(&failure);
        Some(Gap { failure, asked, why: why.into(), supply: supply.into() })
    };
    Failure::DEFAULT.into_iter().filter_map(gap).collect()
}

/// Whether an acknowledgement from the log's device survives.
fn disk_survives(failure: Failure) -> bool {
    Storage::Disk.gap(failure).is_none()
}

/// None if this memory survives the failure; else why not, and what would supply it.
pub fn memory_gap(
    memory: Memory,
    power: PowerSource,
    failure: Failure,
) -> Option<(&'static str, &'static str)> {
    use Memory::{File, Hugetlb, Persistent, Private, Reserved, Shm, Unproven};
    match (failure, memory) {
        (Failure::Process, Private) => Some((
            "private memory is gone when the front end dies",
            "memory = { medium = \"shm\" } or better",
        )),
        (Failure::Process | Failure::Os, Reserved)
        | (Failure::Process | Failure::Os | Failure::Power, Persistent)
        | (Failure::Process, Shm | Hugetlb | File | Unproven) => None,
        (Failure::Os, Private | Shm | Hugetlb) => {
            Some(("the kernel takes this memory with it", PMEM))
        }
        (Failure::Os, File) => {
            Some(("a mapped file is page cache until the kernel writes it", PMEM))
        }
        (Failure::Os, Unproven) => Some((
            "nobody has seen this firmware keep RAM over a restart",
            "a proof: `holdfast region probe --path DIR`, a restart, and the same again",
        )),
        (Failure::Power, _) => match power {
            PowerSource::None => Some((
                "no power source that it relies on keeps the memory alive while it drains",
                "a power source with a proven hold-up: [power], for volumes of way \"direct\"",
            )),
            PowerSource::Unarmed => Some((
                "the power source is not to be relied on now",
                "an armed one: `holdfast status` of a running keeper says what is missing",
            )),
            PowerSource::Armed => None,
        },
        (Failure::Machine, _) => {
            Some(("memory and disk are in the same machine", "a copy on another machine"))
        }
    }
}

/// What supplies memory that outlives the operating system.
const PMEM: &str = "medium = \"pmem\": a file on a file system that is mounted with -o dax, on \
                    persistent memory or on RAM reserved with memmap=";

/// The failure x medium matrix as a Markdown table, for `docs/guarantees.md`.
pub fn matrix() -> String {
    let mut text = String::from("| acknowledged by |");
    Failure::ALL.iter().for_each(|failure| text += &format!(" {} |", failure.word()));
    text += "\n|---|";
    Failure::ALL.iter().for_each(|_| text += "---|");
    for (power, with) in [(PowerSource::None, ""), (PowerSource::Armed, ", power source armed")] {
        let kept = |memory, f| memory_gap(memory, power, f).is_none();
        // What keeps its contents by itself needs no source.
        let is_told = |it: &Memory| *it != Memory::Persistent || power == PowerSource::None;
        for memory in Memory::ALL.into_iter().filter(is_told) {
            text += &row(&format!("memory, {}{with}", memory.name()), |f| kept(memory, f));
        }
    }
    text + &row("disk (write-through), any medium", disk_survives) + "\n"
}

fn row(name: &str, kept: impl Fn(Failure) -> bool) -> String {
    let cell = |failure| if kept(failure) { " survives |" } else { " **lost** |" };
    format!("\n| {name} |") + &Failure::ALL.into_iter().map(cell).collect::<String>()
}

#[cfg(test)]
mod tests;
