//! `holdfast store load`.
//!
//! Promise: every line that is reported is in the store and on the disk; a line that is refused
//! ends it, and those before it are in the store.
//! Never: has more of the lines in memory than one transaction has.

use super::door::Door;
use super::opened::{Opened, what};
use crate::cli::store::InTree;
use crate::output::{Output, Progress};
use crate::spelling;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_store::{Durability, Transaction, Tree};
use std::fs::File;
use std::io::{self, BufRead, BufReader, stdin};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "loading into";

/// Lines a transaction, at most.
const LINES: u64 = 1000;

/// Bytes of lines a transaction, but for the last one.
const LINE_BYTES: u64 = 512 << 10;

/// Gives keys their values.
pub(super) fn load(
    door: Door<'_>,
    tree: &InTree,
    file: Option<&Path>,
    output: Output,
) -> Outcome<()> {
    let input = Input::open(file).map_err(|error| {
        let remedy = "nothing was changed; name a file with lines of a key, a tab and a value";
        Problem::new(Exit::Failed, what(DOING, &tree.store.directory), error, remedy)
    })?;
    let opened = door.open(DOING, &tree.store)?;
    let tree = opened.tree_or_new(&tree.tree)?;
    let mut loader = Loader { opened: &opened, tree, lines: 0, bytes: 0 };
    let loaded = loader.load(input);
    let Loader { lines, bytes, .. } = loader;
    opened.close()?;
    loaded?;
    let json = serde_json::json!({ "loaded": lines, "bytes": bytes, "class": "disk" });
    output.result(&json, &format!("{lines} keys loaded and on the disk, {}", rounded(bytes)));
    Ok(())
}

/// Where lines come from.
struct Input {
    lines: Box<dyn BufRead>,
    /// Bytes of all lines, where that is known.
    all_bytes: Option<u64>,
}

impl Input {
    fn open(file: Option<&Path>) -> io::Result<Input> {
        let Some(file) = file else {
            return Ok(Input { lines: Box::new(stdin().lock()), all_bytes: None });
        };
        let file = File::open(file)?;
        let all_bytes = Some(file.metadata()?.len());
        Ok(Input { lines: Box::new(BufReader::new(file)), all_bytes })
    }
}

/// Puts lines into a store.
struct Loader<'a> {
    opened: &'a Opened<'a>,
    tree: Tree,
    /// Lines that were put.
    lines: u64,
    /// Their bytes.
    bytes: u64,
}

impl Loader<'_> {
    fn load(&mut self, input: Input) -> Outcome<()> {
        let mut progress = Progress::of_bytes("loading");
        let mut lines = input.lines.lines();
        loop {
            let mut transaction = self.opened.store.begin();
            let is_more = self.put_some(&mut transaction, &mut lines);
            let committed = transaction.commit(Durability::Memory);
            committed.map_err(|error| self.opened.failed(&error))?;
            if !is_more? {
                return Ok(());
            }
            progress.done(self.bytes, input.all_bytes.unwrap_or(self.bytes));
        }
    }

    /// Puts as many lines as a transaction takes. Returns whether there may be more.
    fn put_some(
        &mut self,
        transaction: &mut Transaction<'_>,
        lines: &mut impl Iterator<Item = io::Result<String>>,
    ) -> Outcome<bool> {
        let (lines_end, bytes_end) = (self.lines + LINES, self.bytes + LINE_BYTES);
        while self.lines < lines_end && self.bytes < bytes_end {
            let Some(line) = lines.next() else { return Ok(false) };
            let line = line.map_err(|error| self.ends(self.opened.failed(&error)))?;
            self.put(transaction, &line)?;
            self.lines += 1;
            self.bytes += line.len() as u64 + 1;
        }
        Ok(true)
    }

    fn put(&self, transaction: &mut Transaction<'_>, line: &str) -> Outcome<()> {
        let (key, value) = key_and_value(line).map_err(|why| {
            let what = self.opened.what();
            self.ends(Problem::new(Exit::Usage, what, why, String::new()))
        })?;
        let put = transaction.put(&self.tree, &key, &value);
        put.map_err(|error| self.ends(self.opened.refused(&error)))
    }

    /// What ends it, at the line that comes next.
    fn ends(&self, problem: Problem) -> Problem {
        let lines = self.lines;
        let why = format!("line {}: {}", lines + 1, problem.why);
        let remedy = format!("the {lines} before it are in the store; correct it and go on there");
        Problem { why, remedy, ..problem }
    }
}

/// What a line says. The error is a sentence.
fn key_and_value(line: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let (key, value) = line.split_once('\t').ok_or("there is no tab behind a key")?;
    Ok((spelling::parse(key)?, spelling::parse(value)?))
}
