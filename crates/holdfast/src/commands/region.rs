//! `holdfast region probe`.
//!
//! Promise: says what was found, what is to be done next, and changes nothing but the pattern and
//! the proof.
//! Never: restarts the system.

use crate::cli::region::RegionCommand;
use crate::output::Output;
use holdfast_attach::observe::region_problem;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_io::Entropy;
use holdfast_io::real::RealEntropy;
use holdfast_machine::probe::{self, PATTERN_FILE, PROOF_FILE, Proof, Seen};
use holdfast_memory::{AttachError, CreateError, Medium, boot_id};
use serde::Serialize;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a call found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The pattern is written; the system is to be restarted.
    Written,
    /// It was written before, and the system has not restarted since.
    Waiting,
    /// A restart spared every byte.
    Kept,
    /// A restart did not.
    Lost,
}

/// The result of a call.
#[derive(Debug, Serialize)]
struct Report {
    state: State,
    path: PathBuf,
    /// What was looked at, once it was.
    proof: Option<Proof>,
}

/// Runs the subcommand.
pub(crate) fn region(command: RegionCommand, output: Output) -> Outcome<ExitCode> {
    let RegionCommand::Probe { path, size } = command;
    let report = Probe::of(&path)?.probe(size)?;
    output.result(&report, &report.text());
    Ok(match report.state {
        State::Lost => Exit::Claims.into(),
        _ => Exit::Ok.into(),
    })
}

/// A folder that is probed.
struct Probe {
    folder: PathBuf,
    medium: Medium,
    run: [u64; 2],
    firmware: String,
}

impl Probe {
    fn of(path: &Path) -> Outcome<Probe> {
        let failed = |error| Problem::new(Exit::Usage, what(path), error, "name a folder");
        let folder = std::fs::canonicalize(path).map_err(failed)?;
        let medium = Medium::Pmem { path: folder.join(PATTERN_FILE) };
        let failed = |error| Problem::new(Exit::Failed, what(path), error, "mount /proc");
        let run = boot_id().map_err(failed)?;
        Ok(Probe { folder, medium, run, firmware: probe::firmware() })
    }

    fn probe(&self, bytes: u64) -> Outcome<Report> {
        let proof = Proof::get(&self.folder).map_err(|error| self.failed(error))?;
        if let Some(proof) = proof.filter(|proof| proof.holds(&self.firmware)) {
            return Ok(self.report(State::Kept, Some(proof)));
        }
        match probe::look(&self.medium, self.run) {
            Ok(Seen::SameRun) => Ok(self.report(State::Waiting, None)),
            Ok(Seen::Restarted { bytes, kept_bytes, written_in }) => {
                let seen = (bytes, kept_bytes);
                self.keep(Proof::new(seen, written_in, self.run, &self.firmware))
            }
            Err(AttachError::Missing) => self.write(bytes),
            Err(error @ AttachError::Damaged { .. }) => Err(self.lost(&error)),
            Err(error) => Err(region_problem("probing", ("", &self.medium), &error)),
        }
    }

    fn write(&self, bytes: u64) -> Outcome<Report> {
        let mut nonce = [0; 16];
        RealEntropy.fill(&mut nonce);
        match probe::write(&self.medium, bytes, nonce, self.run) {
            Ok(true) => Ok(self.report(State::Written, None)),
            Ok(false) => Err(self.behind_cache()),
            Err(error @ CreateError::Io { .. }) => Err(self.failed(error)),
            Err(error) => Err(Problem::new(
                Exit::Usage,
                what(&self.folder),
                error,
                "correct --path or --size",
            )),
        }
    }

    /// Keeps what was found, then lets the pattern go.
    fn keep(&self, proof: Proof) -> Outcome<Report> {
        proof.put(&self.folder).map_err(|error| self.failed(error))?;
        probe::remove(&self.medium).map_err(|error| self.failed(error))?;
        let state = if proof.holds(&self.firmware) { State::Kept } else { State::Lost };
        Ok(self.report(state, Some(proof)))
    }

    fn report(&self, state: State, proof: Option<Proof>) -> Report {
        Report { state, path: self.folder.clone(), proof }
    }

    fn failed(&self, error: impl Display) -> Problem {
        Problem::new(
            Exit::Failed,
            what(&self.folder),
            error,
            "see whether there is space and right",
        )
    }

    fn behind_cache(&self) -> Problem {
        let why = "stores into files of this folder reach the page cache, not the memory itself";
        let remedy = "probe a folder on a file system that is mounted with -o dax, on a device of \
                      persistent or reserved memory";
        Problem::new(Exit::Usage, what(&self.folder), why, remedy)
    }

    /// The pattern's own head was not kept.
    fn lost(&self, error: &AttachError) -> Problem {
        let remedy = format!(
            "this memory does not outlive a restart; remove {} to probe it again",
            self.folder.join(PATTERN_FILE).display()
        );
        Problem::new(Exit::Claims, what(&self.folder), error, remedy)
    }
}

fn what(path: &Path) -> String {
    format!("probing {}", path.display())
}

impl Report {
    fn text(&self) -> String {
        let path = self.path.display();
        let again = format!("mount it again, then repeat `holdfast region probe --path {path}`");
        match (self.state, &self.proof) {
            (State::Written, _) => format!(
                "{path}: the pattern is written\nrestart the system now, as it would fail: \
                 `echo c > /proc/sysrq-trigger` with kernel.panic=1 (everything else on this \
                 machine ends too)\n{again}"
            ),
            (State::Waiting, _) => format!(
                "{path}: the pattern waits, the system has not restarted since\nrestart it, {again}"
            ),
            (_, Some(proof)) => {
                let (kept, bytes) = (proof.kept_bytes, proof.bytes);
                let outcome = match self.state {
                    State::Kept => "memory here survives os",
                    _ => "memory here does NOT survive os",
                };
                let firmware = match proof.firmware.as_str() {
                    "" => "without a name",
                    name => name,
                };
                format!(
                    "{path}: a restart kept {kept} of {bytes} bytes ({}); {outcome}\n  \
                     firmware     {firmware}\n  remembered   {}",
                    rounded(kept),
                    self.path.join(PROOF_FILE).display()
                )
            }
            (State::Kept | State::Lost, None) => unreachable!("what was looked at is in the proof"),
        }
    }
}
