//! `holdfast-verifier DIR`: what a log's directory holds, by a second reader.
//!
//! Promise: ends with 0 if everything that was durable is there, with 6 if not, and says where.
//! Never: changes anything.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use holdfast_verifier::{Directory, Found, look};

/// As the command's: damaged.
const DAMAGED: u8 = 6;

fn main() -> ExitCode {
    let named = env::args_os().nth(1).filter(|it| !it.as_encoded_bytes().starts_with(b"-"));
    let Some(directory) = named else {
        let _unwritable = writeln!(io::stderr(), "usage: holdfast-verifier DIR");
        return ExitCode::from(2);
    };
    let found = read(Path::new(&directory)).map_err(|error| error.to_string());
    match found.and_then(|directory| look(&directory)) {
        Ok(found) => tell(&found),
        Err(why) => {
            let _unwritable = writeln!(io::stderr(), "holdfast-verifier: {why}");
            ExitCode::from(DAMAGED)
        }
    }
}

fn read(path: &Path) -> io::Result<Directory> {
    let files = fs::read_dir(path)?.filter_map(|entry| {
        let entry = entry.ok().filter(|it| it.file_type().is_ok_and(|kind| kind.is_file()))?;
        let name = entry.file_name().into_string().ok()?;
        Some(fs::read(entry.path()).map(|bytes| (name, bytes)))
    });
    files.collect()
}

fn tell(found: &Found) -> ExitCode {
    let (first, end, proved) = (found.first, found.end, found.proved);
    let data = found.data().count();
    let text =
        format!("needed from {first}, whole up to {end}, durable up to {proved}, {data} of data");
    let _unwritable = writeln!(io::stdout(), "{text}");
    match found.damaged_at() {
        None => ExitCode::SUCCESS,
        Some(at) => {
            let _unwritable = writeln!(io::stderr(), "holdfast-verifier: damaged at {at}");
            ExitCode::from(DAMAGED)
        }
    }
}
