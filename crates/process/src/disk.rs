//! Disks in durable memory, made, taken up and removed, for whatever they are used.
//!
//! Promise: a disk is made once and taken up as it was left; one that is served is not removed.
//! Never: makes a disk where one was expected: zeros are no answer to who asks for his data.

use holdfast_attach::logs::{as_mapped, once_let_go};
use holdfast_attach::observe::region_problem;
use holdfast_blocks::{AttachVdiskError, CreateVdiskError, Vdisk, VdiskSpec};
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{DiskConfig, Way};
use holdfast_io::Entropy;
use holdfast_io::real::RealEntropy;
use holdfast_keeper::memory::Astray;
use holdfast_machine::found::memory_of_disk;
use holdfast_memory::{AttachError, CreateError, Region};

/// What a disk is made for, as messages and commands name it.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    /// `disk`, `snapshot`: also the command that makes and removes it.
    pub(super) noun: &'static str,
    pub(super) name: &'a str,
}

impl Use<'_> {
    /// A disk of the configuration.
    pub fn disk(name: &str) -> Use<'_> {
        Use { noun: "disk", name }
    }

    fn whose(self) -> String {
        format!("{} {}", self.noun, self.name)
    }

    fn command(self, what: &str) -> String {
        format!("`holdfast {} {what} {}`", self.noun, self.name)
    }
}

/// Makes a disk of zeros, unless its memory does not survive what it must.
pub fn make_one(of: Use<'_>, disk: &DiskConfig, power: PowerSource) -> Outcome<Verdict> {
    let verdict = disk.verdict_on(&of.whose(), memory_of_disk(disk), power)?;
    if let Some(left) = Astray::without_keeper(&disk.medium()) {
        return Err(left_problem(format!("making {}", of.whose()), left));
    }
    let mut identity = [0; 16];
    RealEntropy.fill(&mut identity);
    let spec = VdiskSpec { size_bytes: disk.size.0, identity };
    Vdisk::create(&disk.medium(), &spec).map_err(|error| create_problem(of, &error))?;
    Ok(verdict)
}

/// Gives the memory of a disk back that nobody serves.
pub fn remove_one(of: Use<'_>, disk: &DiskConfig) -> Outcome<()> {
    let what = || format!("removing {}", of.whose());
    match Vdisk::attach(&disk.medium(), disk.size.0) {
        Err(AttachVdiskError::Region(AttachError::InUse { pid })) => {
            let why = format!("process {pid} serves it");
            let remedy = "stop the keeper, `holdfast shutdown`, then remove it";
            return Err(Problem::new(Exit::InUse, what(), why, remedy));
        }
        Err(
            error @ (AttachVdiskError::Region(AttachError::Missing)
            | AttachVdiskError::NoDisk { .. }),
        ) => {
            return Err(attach_problem(of, disk, &error));
        }
        // A damaged one, and one of another size, are removed like any other.
        _ => {}
    }
    Region::remove(&disk.medium())
        .map_err(|error| Problem::new(Exit::Failed, what(), error, "remove its file by hand"))
}

/// [`take_up_one`] of a configured disk.
pub(super) fn take_up(
    name: &str,
    disk: &DiskConfig,
    power: PowerSource,
) -> Outcome<(Vdisk, Verdict)> {
    take_up_one(Use::disk(name), disk, power)
}

/// Takes up a disk as it was left, once whoever had it before has let go of it; with what its
/// acknowledgements mean on the memory that is really there.
pub(super) fn take_up_one(
    of: Use<'_>,
    disk: &DiskConfig,
    power: PowerSource,
) -> Outcome<(Vdisk, Verdict)> {
    let medium = disk.medium();
    let holder = |error: &AttachVdiskError| match error {
        AttachVdiskError::Region(AttachError::InUse { pid }) => Some(*pid),
        _ => None,
    };
    let attached = once_let_go(&medium, || Vdisk::attach(&medium, disk.size.0), holder);
    let vdisk = attached.map_err(|error| attach_problem(of, disk, &error))?;
    let memory = as_mapped(memory_of_disk(disk), vdisk.survives());
    let verdict = disk.verdict_on(&of.whose(), memory, power)?;
    Ok((vdisk, verdict))
}

/// Refuses to begin anew beside memory that somebody has who serves it.
fn left_problem(what: String, Astray { why, mend }: Astray) -> Problem {
    Problem::new(Exit::InUse, what, why, mend.unwrap_or_default())
}

fn create_problem(of: Use<'_>, error: &CreateVdiskError) -> Problem {
    let (exit, remedy) = match error {
        CreateVdiskError::Region(CreateError::Exists { .. }) => (
            Exit::Usage,
            format!("use it as it is: `holdfast serve`, or {} first", of.command("remove")),
        ),
        CreateVdiskError::Region(CreateError::Io { .. }) => {
            (Exit::Failed, format!("give the machine more memory, or the {} less", of.noun))
        }
        _ => (Exit::Usage, "see memory.medium, memory.path and size in the configuration".into()),
    };
    Problem::new(exit, format!("making {}", of.whose()), error, remedy)
}

fn attach_problem(of: Use<'_>, disk: &DiskConfig, error: &AttachVdiskError) -> Problem {
    let what = format!("taking up {}", of.whose());
    let left = || Astray::without_keeper(&disk.medium());
    if let AttachVdiskError::Region(AttachError::Missing) = error
        && let Some(left) = left()
    {
        return left_problem(what, left);
    }
    let make_anew =
        || format!("{}, make it anew, and restore what was on it", of.command("remove"));
    let (exit, remedy) = match error {
        AttachVdiskError::Region(AttachError::Missing) => {
            let then = match disk.way {
                Way::Queue => "`holdfast upgrade server`".to_owned(),
                Way::Direct => {
                    format!("start the keeper again, or `holdfast upgrade disk {}`", of.name)
                }
            };
            (Exit::Usage, format!("make it: {}, then {then}", of.command("make")))
        }
        AttachVdiskError::Region(AttachError::OtherBoot) => (Exit::Damaged, make_anew()),
        AttachVdiskError::Region(AttachError::Damaged { .. }) => {
            let place = disk.medium().path().unwrap_or("private memory".as_ref()).to_owned();
            let place = place.display();
            let remedy = format!(
                "nothing was changed, and nothing else has what was on it: put {place} back from a \
                 copy, or {}",
                make_anew()
            );
            (Exit::Damaged, remedy)
        }
        AttachVdiskError::Region(error) => {
            return region_problem("taking up", ("", &disk.medium()), error);
        }
        AttachVdiskError::OtherSize { found, .. } => {
            let found = holdfast_config::sizes::text(*found);
            (Exit::Usage, format!("correct size to \"{found}\", or {}", make_anew()))
        }
        AttachVdiskError::NoDisk { .. } => (Exit::Usage, "correct memory.path".to_owned()),
        AttachVdiskError::OtherVersion { .. } => {
            (Exit::Damaged, "nothing was changed; use the version that made it".to_owned())
        }
        _ => (Exit::Damaged, make_anew()),
    };
    Problem::new(exit, what, error, remedy)
}
