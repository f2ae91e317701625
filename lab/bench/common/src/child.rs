//! This program, started again: as a process to be killed, or for a peak of memory of its own.
//!
//! Promise: a child ends, killed, when it is dropped, and sees the end of its input when its parent
//! is gone.
//! Never: leaves a process behind.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child as Process, ChildStdout, Command, Stdio};

use crate::Failure;

/// A process of this program.
pub struct Child {
    process: Process,
    said: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program with these words.
    ///
    /// # Errors
    /// If the kernel starts no process.
    pub fn start<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<Child, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let said = BufReader::new(process.stdout.take().ok_or("no output")?);
        Ok(Child { process, said })
    }

    /// The next line that it says, with its end; nothing if it ended before.
    ///
    /// # Errors
    /// If its output cannot be read.
    pub fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // If it is gone already there is nothing to kill.
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

/// Starts this program with these words and waits for its end.
///
/// # Errors
/// If it failed, with what it said.
pub fn run<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<String, Failure> {
    let done = Command::new(std::env::current_exe()?).args(words).output()?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// The numbers of a line.
///
/// # Errors
/// If a word is none.
pub fn numbers(line: &str) -> Result<Vec<f64>, Failure> {
    let number = |word: &str| word.parse().map_err(|_| format!("not numbers: {line}").into());
    line.split_whitespace().map(number).collect()
}

#[cfg(test)]
mod tests;
