//! Signals that order nothing, sent to whatever serves.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use crate::slow_disk;
use rustix::process::Signal;
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write};

/// Each would end a process that does nothing about it.
const NO_ORDERS: [Signal; 9] = [
    Signal::HUP,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::POWER,
    Signal::XFSZ,
];

#[test]
fn no_signal_but_an_order_ends_keeper_front_end_or_server() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let mut processes = vec![fixture.keeper_pid(), fixture.front_end()];
    processes.extend(fixture.server());
    assert_eq!(processes.len(), if way() == "queue" { 3 } else { 2 });
    for signal in NO_ORDERS {
        processes.iter().for_each(|pid| kill(*pid, signal));
    }
    fs::write(fixture.mount().join("f"), "goes on").unwrap();
    assert_eq!(fixture.status()["restarts"], 0, "{}", fixture.keeper_log());
    assert_eq!(fixture.front_end(), processes[1]);
    assert_eq!(fixture.server(), processes.get(2).copied());
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"goes on");
}

/// A pipe that has no room, with nobody who reads.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (reader, writer)
}

#[test]
fn a_keeper_whose_log_nobody_reads_replaces_what_dies_and_gives_back_and_tells_what_is_missing() {
    let mut fixture = Fixture::made();
    let (mut reader, writer) = full_pipe();
    let command = fixture.command();
    fixture.serve_with_log(command, writer.into());
    for round in 0..3 {
        let front_end = fixture.front_end();
        kill(front_end, Signal::KILL);
        fs::write(fixture.mount().join("f"), round.to_string()).unwrap();
        wait_until(|| fixture.front_end() != front_end, || "it is not replaced".to_owned());
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    // Somebody reads again.
    let read = std::thread::spawn(move || {
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        told
    });
    kill(fixture.front_end(), Signal::KILL);
    assert_eq!(fixture.stop(), Some(0));
    let told = read.join().unwrap();
    assert!(told.contains("lines are missing here"), "{}", told.trim_start_matches('x'));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"2");
}

/// Starts a program as one that hears of nothing does: what it ignores and blocks is inherited.
const DEAF: &str = "import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn a_keeper_whose_starter_heard_of_nothing_replaces_what_dies_and_ends_when_it_is_told_to() {
    let mut fixture = Fixture::made();
    fixture.serve_behind("/usr/bin/python3", &["-c", DEAF]);
    let front_end = fixture.front_end();
    kill(front_end, Signal::KILL);
    fs::write(fixture.mount().join("f"), "goes on").unwrap();
    wait_until(|| fixture.front_end() != front_end, || "it is not replaced".to_owned());
    kill(fixture.keeper_pid(), Signal::TERM);
    assert_eq!(fixture.reap(), Some(0), "{}", fixture.keeper_log());
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"goes on");
}

/// The command alone hears what it is sent: whoever started it knows nothing of it.
#[test]
fn a_run_goes_on_at_a_terminal_that_closes_and_its_command_hears_signals_as_ever() {
    let fixture = Fixture::new();
    let (home, mount) = (fixture.home(), fixture.mount());
    let mut command = fixture.command();
    command.arg("run").arg("--home").arg(&home).arg("--mount").arg(&mount);
    let script = "echo $$ >pid; trap 'echo heard >heard' HUP; kill -HUP $PPID; sleep 0.2; \
                  kill -HUP $$; echo late >late";
    command.args(["--", "sh", "-c", &format!("cd {} && {script}", mount.display())]);
    assert_eq!(command.status().unwrap().code(), Some(0));
    for (name, text) in [("heard", "heard\n"), ("late", "late\n")] {
        assert_eq!(fs::read_to_string(home.join(name)).unwrap(), text);
    }
    // Nothing of the run is left.
    fixture.holdfast(&["umount", NAME]);
}

#[test]
fn a_slow_disk_is_unmounted_when_its_terminal_closes() {
    let fixture = Fixture::new();
    let mut disk = slow_disk::command(&fixture.home(), &fixture.mount(), &[]).spawn().unwrap();
    wait_until(|| fixture.is_mounted(), || "never mounted".to_owned());
    kill(disk.id().cast_signed(), Signal::HUP);
    assert_eq!(disk.wait().unwrap().code(), Some(0));
    assert!(!fixture.is_mounted());
}
