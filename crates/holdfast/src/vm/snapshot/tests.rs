//! Promise: a snapshot is refused to whom it does not fit, and is taken up once.
//! Never: starts QEMU.

use super::{Snapshot, Taken};
use std::fs;

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

#[test]
fn a_snapshot_that_was_forgotten_is_not_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory");
    fs::write(&memory, "m").unwrap();
    let snapshot = Snapshot::at(&folder.path().join("vm")).unwrap();
    assert_eq!(snapshot.taken().unwrap(), None);
    fs::write(snapshot.state(), "s").unwrap();
    let taken = Taken::new(vec![memory], command(&["qemu", "-m", "1"]));
    snapshot.keep(&taken).unwrap();
    assert_eq!(snapshot.taken().unwrap(), Some(taken));
    snapshot.forget().unwrap();
    assert_eq!(snapshot.taken().unwrap(), None);
    snapshot.forget().unwrap();
}

#[test]
fn a_snapshot_is_refused_to_another_machine_and_without_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory");
    let qemu = command(&["qemu", "-m", "1"]);
    let taken = Taken::new(vec![memory.clone()], qemu.clone());
    assert!(taken.refusal(&qemu).is_some_and(|why| why.contains("is gone")));
    fs::write(&memory, "m").unwrap();
    assert_eq!(taken.refusal(&qemu), None);
    let other = taken.refusal(&command(&["qemu", "-m", "2"]));
    assert!(other.is_some_and(|why| why.contains("another machine")));
}

#[test]
fn memory_that_the_command_does_not_name_is_not_brought() {
    let command =
        ["qemu", "-object", "memory-backend-file,mem-path=/dev/shm/vm,share=on", "-mem-path", "/m"];
    let command = command.map(str::to_owned).to_vec();
    let unnamed = |memory: &str| {
        let taken = Taken::new(vec![memory.into()], command.clone());
        taken.unnamed_memory(&command).map(std::path::Path::to_owned)
    };
    for named in ["/dev/shm/vm", "/m"] {
        assert_eq!(unnamed(named), None);
    }
    for other in ["/etc/passwd", "/dev/shm/v", "/dev/shm", "/", "", "shm/vm"] {
        assert_eq!(unnamed(other), Some(other.into()), "{other}");
    }
    let json = vec![r#"{"id":"ram","mem-path":"/dev/shm/vm"}"#.to_owned()];
    assert_eq!(Taken::new(vec!["/dev/shm/vm".into()], json.clone()).unnamed_memory(&json), None);
}
