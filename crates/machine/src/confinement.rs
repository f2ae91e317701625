//! What the keeper and its front ends may never ask of the kernel, and what is in force.
//!
//! Promise: each gives up, in every thread of it, what its work has no use for; what is said to be
//! in force was read back from the kernel, thread by thread. What the machine does not take is a
//! line in the log.
//! Never: keeps a process from starting; takes from the keeper what a command that it runs may
//! need.
//!
//! The server serves strangers' requests and needs few system calls, so it names those that it
//! needs (`holdfast_server::confine`). These name what they do not need: a front end does to a home
//! whatever a program may do to a file, and a keeper mounts, and starts others.

use holdfast_io::process;
use rustix::process::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// Other processes, the kernel's own code and clock, and what looks into either.
const NOBODYS_WORK: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Starting programs, and changing what is mounted, loaded or whose it is.
const NO_FRONT_ENDS_WORK: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
];

/// Confines the keeper, and with it whatever it starts. `runs_commands`: an administrator's command
/// may need privileges that its file has.
pub fn confine_keeper(runs_commands: bool) {
    let filter = filter(NOBODYS_WORK.iter().map(|call| (*call, Vec::new())).collect());
    confine(filter, !runs_commands);
}

/// Confines a front end. Of sockets it can make only those to programs of this machine.
pub fn confine_front() {
    let calls = NOBODYS_WORK.iter().chain(NO_FRONT_ENDS_WORK);
    let mut rules: BTreeMap<_, _> = calls.map(|call| (*call, Vec::new())).collect();
    let program = elsewhere().map(|rule| {
        rules.insert(libc::SYS_socket, vec![rule]);
        rules
    });
    confine(program.and_then(filter), true);
}

/// A socket of any kind that reaches beyond this machine, or into the kernel.
fn elsewhere() -> Result<SeccompRule, String> {
    let (width, other) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Ne);
    let is_other = SeccompCondition::new(0, width, other, libc::AF_UNIX as u64).map_err(text)?;
    SeccompRule::new(vec![is_other]).map_err(text)
}

/// A filter that refuses these calls with EPERM.
fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(text)?;
    let (allow, refuse) = (SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32));
    let filter = SeccompFilter::new(rules, allow, refuse, arch).map_err(text)?;
    BpfProgram::try_from(filter).map_err(text)
}

fn confine(program: Result<BpfProgram, String>, for_good: bool) {
    if for_good && let Err(error) = rustix::thread::set_no_new_privs(true) {
        tracing::warn!(%error, "this process may gain privileges");
    }
    let applied =
        program.and_then(|program| seccompiler::apply_filter_all_threads(&program).map_err(text));
    if let Err(error) = applied {
        tracing::warn!(%error, "no system call is refused to this process");
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// What is in force for one process, as the kernel says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// `keeper`, `server`, or what a front end serves.
    pub process: String,
    /// Its number.
    pub pid: u32,
    /// Threads that it has.
    pub threads: usize,
    /// Those of them to whom system calls are refused.
    pub filtered: usize,
    /// Those of them that can gain no privileges.
    pub no_new_privileges: usize,
}

impl Confined {
    /// Looks at a process; `None` if there is none.
    pub fn look(process: &str, pid: u32) -> Option<Confined> {
        Pid::from_raw(pid.try_into().ok()?)?;
        let mut seen = Confined {
            process: process.to_owned(),
            pid,
            threads: 0,
            filtered: 0,
            no_new_privileges: 0,
        };
        // A thread that has ended meanwhile is none.
        let threads = process::threads(pid).into_iter();
        let all = threads.filter_map(|thread| process::status_of_thread(pid, thread));
        all.for_each(|status| seen.count(&status));
        (seen.threads > 0).then_some(seen)
    }

    fn count(&mut self, status: &str) {
        let says = |line: &str| status.lines().any(|found| found == line);
        self.threads += 1;
        self.filtered += usize::from(says("Seccomp:\t2"));
        self.no_new_privileges += usize::from(says("NoNewPrivs:\t1"));
    }
}

impl Display for Confined {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Confined { process, pid, threads, .. } = self;
        let of = |count: usize| match count {
            0 => "no".to_owned(),
            all if all == *threads => "every".to_owned(),
            some => format!("{some} of {threads}"),
        };
        let (filtered, kept) = (of(self.filtered), of(self.no_new_privileges));
        write!(
            out,
            "{process}, process {pid}: system calls refused to {filtered} thread, \
             new privileges to {kept} thread"
        )
    }
}

#[cfg(test)]
mod tests;
