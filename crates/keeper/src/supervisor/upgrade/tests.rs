//! Replacements: who hears of them, which binary counts, and when patience is over.

use super::*;
use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

/// An open file that says this.
fn binary(says: &str) -> OwnedFd {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), says).unwrap();
    std::fs::set_permissions(file.path(), Permissions::from_mode(0o700)).unwrap();
    open_binary(file.path()).unwrap()
}

fn says(binary: &OwnedFd) -> String {
    let mut text = String::new();
    File::from(binary.try_clone().unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn begun(current: &mut OwnedFd) -> (Upgrade, Receiver<Outcome<()>>) {
    let (request, outcome) = Request::of(binary("new"));
    (Upgrade::begin(request, current), outcome)
}

#[test]
fn a_new_process_that_does_not_come_up_leaves_the_old_binary() {
    let mut current = binary("old");
    let (upgrade, outcome) = begun(&mut current);
    upgrade.failed("the server", "it died", &mut current);
    assert_eq!(says(&current), "old");
    let problem = outcome.recv().unwrap().unwrap_err();
    assert!(problem.why.contains("it died") && problem.what.contains("the server"), "{problem}");
}

#[test]
fn a_new_process_that_serves_is_of_the_new_binary() {
    let mut current = binary("old");
    let (upgrade, outcome) = begun(&mut current);
    upgrade.succeeded();
    assert_eq!(says(&current), "new");
    outcome.recv().unwrap().unwrap();
}

#[test]
fn patience_with_a_new_process_begins_with_its_start_and_ends_once() {
    let (mut upgrade, _outcome) = begun(&mut binary("old"));
    assert!(upgrade.waits_for_the_old() && upgrade.ready_until().is_none());
    assert!(!upgrade.is_late(Instant::now() + 2 * READY_PATIENCE), "nothing was started");
    upgrade.started();
    assert!(!upgrade.waits_for_the_old() && !upgrade.is_late(Instant::now()));
    let until = upgrade.ready_until().unwrap();
    assert!(upgrade.is_late(until) && !upgrade.is_late(until), "it is killed once");
    assert!(!upgrade.waits_for_the_old(), "its end is not that of the old one");
}

#[test]
fn whoever_asks_hears_of_a_request_that_nobody_takes() {
    let own = own_path().unwrap();
    let mut said = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned());
    let refused = Request::make("the server", &own, &mut say, drop).unwrap_err();
    assert!(refused.why.contains("being replaced already"), "{refused}");
    let missing = Request::make("the server", Path::new("/no/such"), &mut say, drop).unwrap_err();
    assert_eq!(missing.exit, Exit::Usage);
    assert_eq!(said.len(), 1, "nothing is begun without a binary");
}
