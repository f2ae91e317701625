//! Rights that the server gives up once its files are open.
//!
//! Promise: each right that the machine lets it give up is given up; foreign system calls and new
//! privileges for every thread, files for every thread started from then on. Each that it does not
//! is reported by name.
//! Never: keeps the server from starting.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};
use rustix::mm::{MlockAllFlags, mlockall};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// What the server still needs afterwards.
pub struct Confinement<'a> {
    /// The logs' directories, which it reads and writes.
    pub directories: Vec<BorrowedFd<'a>>,
}

/// A right that the machine would not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which.
    pub right: &'static str,
    /// Why.
    pub why: String,
}

/// Every system call that serving takes, and no other.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_pwritev2,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstatfs,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fcntl,
    libc::SYS_getdents64,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_memfd_create,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_munlock,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_ioctl,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_prctl,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_membarrier,
];

/// Gives up what serving does not need. Call it before [`crate::Server::serve`], from the thread
/// that calls that: the right to open files is given up by a thread and its children. Threads that
/// were started before keep that one right, and should hear no client.
#[must_use]
pub fn confine(confinement: &Confinement<'_>) -> Vec<Refused> {
    let steps = [
        ("locked memory", lock_memory()),
        ("no new privileges", rustix::thread::set_no_new_privs(true).map_err(text)),
        ("no foreign files", restrict_files(&confinement.directories)),
        ("no foreign system calls", restrict_calls()),
    ];
    let refused =
        |(right, outcome): (_, Result<(), String>)| outcome.err().map(|why| Refused { right, why });
    steps.into_iter().filter_map(refused).collect()
}

/// What is mapped, and what will be, stays in memory once it was touched.
fn lock_memory() -> Result<(), String> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).map_err(text)
}

/// No file can be opened but below the logs' directories. What is open stays open.
fn restrict_files(directories: &[BorrowedFd<'_>]) -> Result<(), String> {
    let all = AccessFs::from_all(ABI::V3);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let mut ruleset = ruleset.handle_access(all).map_err(text)?.create().map_err(text)?;
    for directory in directories {
        ruleset = ruleset.add_rule(PathBeneath::new(directory, all)).map_err(text)?;
    }
    match ruleset.restrict_self().map_err(text)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        status => Err(format!("the kernel enforces it like this: {status:?}")),
    }
}

/// Any other system call fails with EPERM.
fn restrict_calls() -> Result<(), String> {
    let rules: BTreeMap<_, _> = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(text)?;
    let (refuse, allow) = (SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow);
    let filter = SeccompFilter::new(rules, refuse, allow, arch).map_err(text)?;
    let program = BpfProgram::try_from(filter).map_err(text)?;
    // Threads that were started before are confined as well, and lose the way to new privileges.
    seccompiler::apply_filter_all_threads(&program).map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}
