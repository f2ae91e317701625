//! `holdfast log verify`.
//!
//! Promise: every set that is still needed is read, also behind damage; damage ends it with its own
//! exit code, and every stretch is named with file and byte.
//! Never: changes anything; looks at a log that somebody has open.

use super::opened::{open_problem, stretch, what};
use crate::output::{Output, Progress};
use holdfast_attach::logs::in_the_way;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_wal::{CheckVerdict, Damage, FileFault, Spoilt, Verified};
use serde_json::{Value, json};
use std::path::Path;

/// What it does, for messages.
const DOING: &str = "verifying";

/// Reads everything.
pub(super) fn verify(directory: &Path, output: Output) -> Outcome<()> {
    let mut progress = Progress::of_bytes("reading");
    let found = holdfast_wal::verify(directory, &mut |walked| {
        progress.done(walked.done_bytes, walked.all_bytes);
    });
    drop(progress);
    let found = found.map_err(|error| open_problem(DOING, directory, &error))?;
    output.result(&json(&found), &text(&found));
    let Some(first) = found.damaged.first() else { return judge_copies(directory, &found.spoilt) };
    let mended = found.damaged.iter().filter(|damage| damage.mendable).count();
    let why = format!(
        "{} stretches of what was acknowledged are damaged, first {}; parity gives {mended} back",
        found.damaged.len(),
        damage_text(first),
    );
    let remedy = format!(
        "nothing was changed; restore the file from a copy, or save what is left: holdfast log \
         repair {} NEW-DIRECTORY",
        directory.display()
    );
    Err(Problem::new(Exit::Damaged, what(DOING, directory), why, remedy))
}

/// The records are whole, and one of the two files that say where they are is not.
fn judge_copies(directory: &Path, spoilt: &[Spoilt]) -> Outcome<()> {
    let Some(Spoilt { name, fault }) = spoilt.first() else { return Ok(()) };
    let why = format!("every record is whole, and the file {name} is not: {fault}");
    let remedy = match fault {
        FileFault::NotAFile => in_the_way(name),
        _ => "nothing was changed; it is made again from its copy when the log is next opened \
              for writing"
            .to_owned(),
    };
    Err(Problem::new(Exit::Damaged, what(DOING, directory), why, remedy))
}

fn damage_text(damage: &Damage) -> String {
    let (stretch, place) = (&damage.stretch, &damage.place);
    let (from, to) = (stretch.from.get(), stretch.to.get());
    format!("LSN {from} to {to}, in {} at byte {}", place.file, place.offset)
}

fn text(found: &Verified) -> String {
    let (frames, read) = (found.frames, rounded(found.bytes_scanned));
    let (first, end) = (found.first.get(), found.end.get());
    let mut text = format!("{frames} frames are whole, {read} read; LSN {first} to {end}\n");
    for damage in &found.damaged {
        let mendable = if damage.mendable { ", parity gives it back" } else { "" };
        text += &format!("damaged: {}{mendable}\n", damage_text(damage));
    }
    for Spoilt { name, fault } in &found.spoilt {
        text += &format!("damaged: the file {name}: {fault}; its copy says the same\n");
    }
    for hole in &found.holes {
        text += &format!("cut out before: LSN {} to {}\n", hole.from.get(), hole.to.get());
    }
    if let CheckVerdict::Torn { at } = found.verdict {
        text += &format!("the remains of an unfinished write lie at LSN {}\n", at.get());
    }
    if let Some(parity) = &found.parity {
        text += &format!(
            "parity: {} of {} stripes are sound, {} damaged, {} without\n",
            parity.sound, parity.stripes, parity.damaged, parity.unprotected
        );
    }
    text
}

fn json(found: &Verified) -> Value {
    let damage = |damage: &Damage| {
        json!({
            "from_lsn": damage.stretch.from.get(),
            "to_lsn": damage.stretch.to.get(),
            "file": damage.place.file,
            "offset": damage.place.offset,
            "mendable": damage.mendable,
        })
    };
    let verdict = match found.verdict {
        CheckVerdict::Clean => "clean",
        CheckVerdict::Torn { .. } => "torn",
        _ => "corrupt",
    };
    json!({
        "frames": found.frames,
        "bytes_scanned": found.bytes_scanned,
        "first_lsn": found.first.get(),
        "end_lsn": found.end.get(),
        "verdict": verdict,
        "damaged": found.damaged.iter().map(damage).collect::<Vec<_>>(),
        "spoilt": found.spoilt.iter().map(|it| &it.name).collect::<Vec<_>>(),
        "holes": found.holes.iter().map(stretch).collect::<Vec<_>>(),
        "parity": found.parity.as_ref().map(|parity| json!({
            "stripes": parity.stripes,
            "sound": parity.sound,
            "damaged": parity.damaged,
            "unprotected": parity.unprotected,
        })),
    })
}
