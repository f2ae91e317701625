//! Whether a directory can be a volume's home.
//!
//! Promise: what every program relies on is tried out before a home is believed: permissions and
//! times of a file, those of a directory, a rename, a removal, names that differ in case alone, and
//! one that is no text; of a directory also whether anything can be made there at all.
//! Never: leaves what was tried behind, but for a death, after which it goes with the volume's own;
//! refuses a home that has no room to be asked.

use std::io;

use holdfast_io::tree::Errno;
use holdfast_io::{Change, Files, Kind, Metadata};

use crate::home::tried::is_about_room;
use crate::names::paths::to_path;
use crate::own::{self, make_unless_there, on_scratch, remove_if_there};

/// When a time is told back, this much of it may be gone: there are file systems that count in
/// seconds, and in two.
const COARSE_NS: i128 = 2_000_000_000;
const SOME_TIME_NS: i128 = 1_234_567_890_123_456_789;

/// Why a directory can be no volume's home: what programs would be told that they have, and its
/// file system does not keep. Nothing if it can, or if it cannot be asked now. It is tried out in
/// the volume's own directory, which goes again unless it was there.
///
/// # Errors
/// The home's own.
pub fn unfitness(home: &dyn Files) -> io::Result<Option<String>> {
    let is_there = || home.metadata(own::NAME.as_ref()).is_ok();
    let was_there = is_there();
    let found = match own::make(home) {
        Ok(()) => unfitness_by_trial(home)?,
        Err(error) if !was_there && is_there() => Some(refuses(&error)),
        // Whoever changes something will be told.
        Err(_) => return Ok(None),
    };
    match &found {
        None if !was_there => own::remove(home, None)?,
        // It may well refuse that, too.
        Some(_) if !was_there => drop(home.remove_dir(own::NAME.as_ref())),
        _ => {}
    }
    Ok(found)
}

fn refuses(error: &io::Error) -> String {
    format!("its file system refuses what every volume does ({error})")
}

fn unfitness_by_trial(home: &dyn Files) -> io::Result<Option<String>> {
    if let Some(fault) = own::fault(home)? {
        return Ok(Some(format!("its file system shows what a volume made otherwise: {fault}")));
    }
    let mut found = Ok(None);
    for unfitness in [unfitness_of_file, unfitness_of_directory, unfitness_of_names] {
        found = unfitness(home);
        if !matches!(found, Ok(None)) {
            break;
        }
    }
    match found {
        Err(error) if is_about_room(&error) => Ok(None),
        Err(error) if is_refusal(&error) => Ok(Some(refuses(&error))),
        found => Ok(found?.map(str::to_owned)),
    }
}

fn unfitness_of_file(home: &dyn Files) -> io::Result<Option<&'static str>> {
    let renamed = own::path("0-4");
    remove_if_there(home, &renamed)?;
    on_scratch(home, |path| {
        let held = home.make(path, Kind::File, 0o640, 0)?;
        let mut modes = vec![(held.metadata()?.mode, 0o640)];
        for mode in [0o4751, 0o606] {
            held.change(&Change { mode: Some(mode), ..Change::default() })?;
            modes.push((held.metadata()?.mode, mode));
        }
        // The owner that it has.
        let Metadata { uid, gid, .. } = held.metadata()?;
        held.change(&Change { uid: Some(uid), gid: Some(gid), ..Change::default() })?;
        if modes.iter().any(|(found, wanted)| found != wanted) {
            return Ok(Some("its file system does not keep the permissions of files"));
        }
        held.change(&Change { modified_ns: Some(SOME_TIME_NS), ..Change::default() })?;
        if (held.metadata()?.modified_ns - SOME_TIME_NS).abs() > COARSE_NS {
            return Ok(Some("its file system does not keep the times of files"));
        }
        home.rename(path, &renamed)?;
        let is_there = home.metadata(&renamed).is_ok() && home.metadata(path).is_err();
        home.remove_file(&renamed)?;
        Ok((!is_there).then_some("its file system does not rename files"))
    })
}

fn unfitness_of_directory(home: &dyn Files) -> io::Result<Option<&'static str>> {
    let [.., scratch] = own::SCRATCH.map(own::path);
    make_unless_there(home, &scratch)?;
    let change = Change { mode: Some(0o1751), ..Change::default() };
    let found = home.change(&scratch, &change).and_then(|()| home.metadata(&scratch));
    let is_folded = home.metadata(&own::path("SCRATCH")).is_ok();
    home.remove_dir(&scratch)?;
    Ok(match (found?.mode == 0o1751, is_folded) {
        (false, _) => Some("its file system does not keep the permissions of directories"),
        (_, true) => Some("names that differ in case alone are one there"),
        _ => None,
    })
}

fn unfitness_of_names(home: &dyn Files) -> io::Result<Option<&'static str>> {
    let path = to_path(own::NAME.into()).join(to_path(own::ODD_NAME.into()));
    remove_if_there(home, &path)?;
    match home.make(&path, Kind::File, 0o600, 0) {
        Err(error) if is_about_room(&error) => return Err(error),
        Err(_) => return Ok(Some("its file system does not take every name")),
        Ok(_) => {}
    }
    let is_there = home.read_dir(own::NAME.as_ref())?.iter().any(|it| it.name == own::ODD_NAME);
    home.remove_file(&path)?;
    Ok((!is_there).then_some("its file system changes names"))
}

/// Why a directory that nothing else is found against can be no volume's home: the kernel shows it,
/// and nobody makes anything there. One that is one file takes no names either, and may be a disk.
///
/// # Errors
/// The home's own.
pub fn namelessness(home: &dyn Files) -> io::Result<Option<String>> {
    if home.metadata(own::NAME.as_ref()).is_ok() {
        return Ok(None);
    }
    match own::make(home) {
        Ok(()) => own::remove(home, None).map(|()| None),
        Err(error) if takes_no_name(&error) => Ok(Some(format!(
            "nothing can be made in it ({error}): it is the kernel's own, immutable, or gone"
        ))),
        Err(_) => Ok(None),
    }
}

/// Whether a home that refuses a name so takes none. Rights are another matter: whoever has more of
/// them may make it.
fn takes_no_name(error: &io::Error) -> bool {
    let ways = [Errno::NOENT, Errno::PERM, Errno::NOSYS, Errno::INVAL, Errno::NOTSUP];
    ways.iter().any(|errno| error.raw_os_error() == Some(errno.0))
}

fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput)
}
