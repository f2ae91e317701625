//! What fails says what it was and with which file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{EIO, ENOSPC, Effect, FakeFiles, Fault, Operation, is_power_cut};
use holdfast_io::{Change, Files, Kind, Named, OpenHow, Seek, errno, named, unnamed};

const WRITING: OpenHow =
    OpenHow { write: true, create_mode: Some(0o600), exclusive: false, direct: false };

fn named_files() -> (FakeFiles, Named<Arc<dyn Files>>) {
    let files = FakeFiles::new(1);
    let below: Arc<dyn Files> = Arc::new(files.clone());
    (files, Named::below(below, Path::new("/srv/log")))
}

/// Each operation that a fault can be set up for, on the file `one` or on the root.
fn try_it(files: &dyn Files, operation: Operation) -> io::Result<()> {
    let (one, two) = (Path::new("one"), Path::new("two"));
    let open = || files.open(one, WRITING);
    match operation {
        Operation::Open => open().map(drop),
        Operation::Metadata => files.metadata(one).map(drop),
        Operation::ReadDir => files.read_dir(Path::new("")).map(drop),
        Operation::ReadLink => files.read_link(one).map(drop),
        Operation::MakeDir => files.make_dir(one, 0o700),
        Operation::MakeSymlink => files.make_symlink(one, b"two"),
        Operation::MakeNode => files.make_node(one, Kind::File, 0o600, 0),
        Operation::Link => files.link(two, one),
        Operation::Rename => files.rename(one, two),
        Operation::Exchange => files.exchange(one, two),
        Operation::RemoveFile => files.remove_file(one),
        Operation::RemoveDir => files.remove_dir(one),
        Operation::Change => open()?.change(&Change { mode: Some(0o600), ..Change::default() }),
        Operation::SyncDir => files.sync_dir(Path::new("")),
        Operation::Xattr => files.xattr(one, b"user.x").map(drop),
        Operation::SetXattr => files.set_xattr(one, b"user.x", b"1"),
        Operation::RemoveXattr => files.remove_xattr(one, b"user.x"),
        Operation::SyncAll => files.sync_all(),
        Operation::Space => open()?.space().map(drop),
        Operation::Limits => files.limits().map(drop),
        Operation::Seek => open()?.seek(0, Seek::Data).map(drop),
        Operation::Read => open()?.read_full_at(&mut [0; 8], 4096).map(drop),
        Operation::Write => open()?.write_all_at(&[1; 8], 4096),
        Operation::SyncData => open()?.sync(),
        Operation::SetLen => open()?.set_len(9),
        Operation::Reserve => open()?.reserve(4096, 8),
        Operation::Punch => open()?.punch(4096, 8),
    }
}

#[test]
fn every_operation_that_fails_is_named_with_its_file_and_keeps_its_number() {
    for operation in Operation::ALL {
        for number in [EIO, ENOSPC] {
            let (files, named) = named_files();
            files.fail(Fault { operation, skip: 0, effect: Effect::Errno(number) });
            let error = try_it(&named, operation).expect_err("it was told to fail");
            let plain = io::Error::from_raw_os_error(number);
            assert_eq!(files.faults_fired(), 1, "{operation:?}");
            assert_eq!((errno(&error), error.kind()), (Some(number), plain.kind()));
            let told = error.to_string();
            assert!(told.contains("ing ") && told.contains("/srv/log"), "{operation:?}: {told}");
            assert!(told.ends_with(&plain.to_string()), "{operation:?}: {told}");
        }
    }
}

#[test]
fn a_transfer_says_where_in_the_file_it_failed() {
    let (files, named) = named_files();
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Errno(ENOSPC) });
    let told = try_it(&named, Operation::Write).unwrap_err().to_string();
    let wanted = "writing /srv/log/one at byte 4096: No space left on device (os error 28)";
    assert_eq!(told, wanted);
}

#[test]
fn who_names_an_error_again_does_not_name_it_twice() {
    let (files, inner) = named_files();
    files.fail(Fault { operation: Operation::Open, skip: 0, effect: Effect::Errno(EIO) });
    let inner: Arc<dyn Files> = Arc::new(inner);
    let error = try_it(&Named::new(inner), Operation::Open).unwrap_err();
    assert_eq!(error.to_string().matches("opening").count(), 1, "{error}");
    let again = named("mounting", Path::new("/mnt"), error);
    assert!(again.to_string().starts_with("opening /srv/log/one: "), "{again}");
    assert_eq!(unnamed(&again).raw_os_error(), Some(EIO));
}

#[test]
fn a_power_cut_is_known_below_its_name() {
    let (files, named) = named_files();
    files.cut_power_at(files.operations() + 1);
    let error = try_it(&named, Operation::Write).unwrap_err();
    assert!(is_power_cut(&error), "{error}");
}

#[test]
fn what_somebody_has_hold_of_is_named_by_what_it_was_called_then() {
    let (files, named) = named_files();
    let held = named.make(Path::new("one"), Kind::File, 0o600, 0).expect("a new disk");
    files.rename(Path::new("one"), Path::new("two")).expect("a new disk");
    files.fail(Fault { operation: Operation::Change, skip: 0, effect: Effect::Errno(EIO) });
    let failed = held.change(&Change { mode: Some(0o640), ..Change::default() }).expect_err("told");
    assert_eq!(errno(&failed), Some(EIO));
    assert!(failed.to_string().starts_with("changing /srv/log/one: "), "{failed}");
    let missing = named.hold(Path::new("one")).err().expect("it has another name");
    assert!(missing.to_string().starts_with("taking hold of /srv/log/one: "), "{missing}");
}
