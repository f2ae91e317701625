//! Regions whose bytes their user arranges.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use holdfast_memory::{Area, AreaSpec, AttachError, CreateError, Medium, Region};

use crate::common::{IDENTITY, create, path_of, shm};

const CONTENT: [u8; 8] = *b"A TEST'S";

/// Where the boot id lies, as FORMAT.md says.
const BOOT: u64 = 4376;

fn spec() -> AreaSpec {
    AreaSpec { content: CONTENT, identity: IDENTITY, bytes: 3 * 4096 }
}

fn fill(area: &Area) {
    area.copy_in(4095, b"filled");
    area.word_at(8).store(5, Ordering::Relaxed);
}

#[test]
fn an_area_is_attached_as_its_last_server_left_it() {
    let (_folder, medium) = shm();
    let area = Area::create(&medium, &spec(), fill).unwrap();
    area.copy_in(3 * 4096 - 3, b"end");
    area.counter(7).store(9, Ordering::Relaxed);
    drop(area);

    let area = Area::attach(&medium, CONTENT).unwrap();
    assert_eq!((area.bytes(), area.identity(), area.generation()), (3 * 4096, IDENTITY, 2));
    let mut found = [0; 6];
    area.copy_out(4095, &mut found);
    assert_eq!(found, *b"filled");
    area.copy_out(3 * 4096 - 6, &mut found);
    assert_eq!(found, *b"\0\0\0end");
    assert_eq!(area.word_at(8).load(Ordering::Relaxed), 5);
    assert_eq!(Region::observe(&medium).unwrap().word(7), 9);
}

#[test]
fn an_area_that_was_not_filled_to_the_end_is_missing_and_can_be_made() {
    let (_folder, medium) = shm();
    let died = std::panic::catch_unwind(|| {
        Area::create(&medium, &spec(), |_| panic!("the maker dies")).map(drop)
    });
    assert!(died.is_err());
    assert!(matches!(Area::attach(&medium, CONTENT), Err(AttachError::Missing)));
    drop(Area::create(&medium, &spec(), fill).unwrap());
    Area::attach(&medium, CONTENT).unwrap();
}

#[test]
fn content_of_another_name_is_told_and_left_alone() {
    let (_folder, medium) = shm();
    drop(Area::create(&medium, &spec(), fill).unwrap());
    let refused = Area::attach(&medium, *b"ANOTHER'");
    assert!(matches!(refused, Err(AttachError::OtherContent { found: CONTENT })), "{refused:?}");
    let refused = Region::attach(&medium);
    assert!(matches!(refused, Err(AttachError::OtherContent { found: CONTENT })), "{refused:?}");
    assert_eq!(Area::attach(&medium, CONTENT).unwrap().generation(), 2);
}

#[test]
fn the_ring_of_a_log_is_no_area() {
    let (_folder, medium) = shm();
    drop(create(&medium));
    let refused = Area::attach(&medium, CONTENT);
    assert!(
        matches!(refused, Err(AttachError::OtherContent { found: [0, 0, 0, 0, 0, 0, 0, 0] })),
        "{refused:?}"
    );
}

#[test]
fn an_area_that_cannot_exist_is_refused() {
    let wrong = [
        AreaSpec { content: [0; 8], ..spec() },
        AreaSpec { bytes: 0, ..spec() },
        AreaSpec { bytes: 4097, ..spec() },
        AreaSpec { bytes: 1 << 60, ..spec() },
    ];
    for asked in wrong {
        let refused = Area::create(&Medium::Private, &asked, fill);
        assert!(matches!(refused, Err(CreateError::BadSpec(_))), "{asked:?}: {refused:?}");
    }
}

#[test]
fn a_file_that_an_earlier_run_of_the_system_wrote_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (name, medium) in [
        ("file", Medium::File { path: folder.path().join("file") }),
        ("pmem", Medium::Pmem { path: folder.path().join("pmem") }),
    ] {
        drop(Area::create(&medium, &spec(), fill).unwrap());
        drop(Area::attach(&medium, CONTENT).unwrap());
        let file = OpenOptions::new().read(true).write(true).open(path_of(&medium)).unwrap();
        let mut boot = [0; 16];
        file.read_exact_at(&mut boot, BOOT).unwrap();
        assert_ne!(boot, [0; 16], "{name}");
        file.write_all_at(&[1; 16], BOOT).unwrap();
        let refused = Area::attach(&medium, CONTENT);
        assert!(matches!(refused, Err(AttachError::OtherBoot)), "{name}: {refused:?}");
        file.write_all_at(&boot, BOOT).unwrap();
        assert_eq!(Area::attach(&medium, CONTENT).unwrap().generation(), 3);
    }
}

#[test]
#[should_panic(expected = "lie in an area of 12288 bytes")]
fn bytes_behind_the_area_cannot_be_reached() {
    let area = Area::create(&Medium::Private, &spec(), fill).unwrap();
    area.copy_in(3 * 4096 - 1, &[0; 2]);
}
