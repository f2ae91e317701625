//! A page is read as it was written, or it is said what is there instead.

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation, Sectors};

use super::*;
use crate::page::{PAGE_HEAD_BYTES, PageFault, PageKind};
use crate::stream::rsn::Rsn;

const SEGMENT_PAGES: u64 = 4;

fn open(files: &FakeFiles) -> PageFile {
    let tag = Tag::of(b"a store in tests");
    PageFile::open(files, Path::new("pages"), tag, SEGMENT_PAGES).expect("a fake disk opens files")
}

/// A page that is full of one byte.
fn page(number: u64, byte: u8) -> Page {
    let mut page = Page::zeroed();
    page.begin(PageNumber(number), PageKind::Leaf, PageNumber(1));
    page.contents_mut().fill(byte);
    page.stamp(Rsn(100 + u64::from(byte)), 0);
    page
}

/// The byte that a page is full of.
fn read(file: &PageFile, number: u64) -> Result<u8, ReadPageError> {
    let mut page = Page::zeroed();
    file.read(PageNumber(number), &mut page)?;
    let byte = page.contents()[0];
    assert!(page.contents().iter().all(|other| *other == byte), "a page is of one moment");
    Ok(byte)
}

fn fault(file: &PageFile, number: u64) -> PageFault {
    match read(file, number) {
        Err(ReadPageError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_are_read_as_they_were_written() {
    let files = FakeFiles::new(1);
    open(&files).write(&mut [page(5, 50), page(6, 60)]).expect("there is room");
    let file = open(&files);
    assert_eq!((read(&file, 5).expect("whole"), read(&file, 6).expect("whole")), (50, 60));
    assert_eq!((file.segment_of(PageNumber(6)), file.first_of(1)), (1, PageNumber(4)));
    assert_eq!(fault(&file, 4), PageFault::Zeroed);
    assert_eq!(fault(&file, 7), PageFault::Zeroed, "it lies behind the end of the file");
    file.write(&mut []).expect("nothing is no trouble");
}

#[test]
fn pages_anywhere_are_written_in_one_call() {
    let files = FakeFiles::new(1);
    let file = open(&files);
    let before = files.operations();
    file.write_all(&mut [page(2, 20), page(3, 30), page(4, 40), page(9, 90)]).expect("it fits");
    assert_eq!(files.operations() - before, 3, "two of them are neighbours in their segment");
    for (number, byte) in [(2, 20), (3, 30), (4, 40), (9, 90)] {
        assert_eq!(read(&file, number).expect("whole"), byte);
    }
}

/// A page of which each half is full of a byte.
fn halves(number: u64, one: u8, other: u8) -> Page {
    let mut page = page(number, one);
    page.contents_mut()[SECOND_HALF - PAGE_HEAD_BYTES..].fill(other);
    page
}

#[test]
fn a_half_that_the_file_has_is_left_out_at_the_end_of_neighbours() {
    let files = FakeFiles::new(1);
    let file = open(&files);
    file.write_all(&mut [page(1, 10), page(2, 20), page(3, 30), page(5, 50)]).expect("it fits");
    let before = files.operations();
    // What is said to be there is not, so that it is seen what was written.
    let mut pages = [halves(1, 11, 12), halves(2, 21, 22), halves(3, 31, 32), halves(5, 51, 52)];
    let halved = [2, 3].map(PageNumber);
    file.write_changed(&mut pages, &halved).expect("it fits");
    assert_eq!(files.operations() - before, 2, "as many as if nothing was left out");
    let mut found = Page::zeroed();
    for (number, wanted) in [1, 2, 5].into_iter().zip([&pages[0], &pages[1], &pages[3]]) {
        file.read(PageNumber(number), &mut found).expect("it is whole");
        assert!(found.same_bytes(wanted), "page {number}");
    }
    assert_eq!(fault(&file, 3), PageFault::Check);
    file.write_changed(&mut [halves(3, 31, 30)], &halved).expect("it fits");
    file.read(PageNumber(3), &mut found).expect("it is whole");
    assert!(found.same_bytes(&halves(3, 31, 30)));
}

#[test]
fn a_write_that_went_elsewhere_or_nowhere_is_seen_in_the_page() {
    let files = FakeFiles::new(1);
    let file = open(&files);
    file.write(&mut [page(5, 50), page(6, 60)]).expect("there is room");
    let bytes = *page(5, 51).seal(file.tag);
    file.opened().file.write_all_at(&bytes, offset(PageNumber(6))).expect("there is room");
    assert_eq!(fault(&file, 6), PageFault::Number(PageNumber(5)));
    file.sync().expect("the disk is sound");
    files.sync_dir(Path::new("")).expect("the disk is sound");
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::LostWrite });
    file.write(&mut [page(5, 52)]).and_then(|()| file.sync()).expect("it is said to be written");
    let cut = open(&files.after_power_cut_in(Mood::KeepAll, 1));
    let mut old = Page::zeroed();
    cut.read(PageNumber(5), &mut old).expect("it is whole, though old");
    assert_eq!(old.rsn(), Rsn(150));
}

#[test]
fn a_failed_write_may_be_repeated_and_a_failed_sync_may_not() {
    let files = FakeFiles::new(1);
    let file = open(&files);
    files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Errno(EIO) });
    assert!(matches!(file.write(&mut [page(5, 50)]), Err(WritePagesError::Io(_))));
    file.write(&mut [page(5, 50)]).expect("the fault is gone");
    file.sync().expect("the disk is sound");
    file.write(&mut [page(5, 51)]).expect("there is room");
    files.fail(Fault { operation: Operation::SyncData, skip: 0, effect: Effect::DropsDirty });
    for _ in 0..2 {
        assert!(matches!(file.sync(), Err(WritePagesError::Failed(_))));
        assert!(matches!(file.write(&mut [page(6, 60)]), Err(WritePagesError::Failed(_))));
    }
    read(&file, 5).expect("pages can still be read");
    file.reopen(&files).expect("the disk is sound");
    file.write(&mut [page(5, 52)]).and_then(|()| file.sync()).expect("the disk is sound");
    let cut = files.after_power_cut_in(Mood::LoseAll, 1);
    assert!(matches!(read(&open(&cut), 5), Ok(52) | Err(ReadPageError::Fault(PageFault::Zeroed))));
}

#[test]
fn a_power_cut_leaves_each_page_old_new_or_known_to_be_torn() {
    let moods = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];
    let mut torn = 0;
    for seed in 0..200 {
        let files = FakeFiles::new(seed);
        files.set_sectors(if seed % 3 == 0 { Sectors::Garbage } else { Sectors::Whole });
        let file = open(&files);
        file.write(&mut [page(4, 1), page(5, 1)]).and_then(|()| file.sync()).expect("it is sound");
        files.sync_dir(Path::new("")).expect("it is sound");
        file.write(&mut [page(4, 2), page(5, 2), page(6, 2)]).expect("there is room");
        let cut = open(&files.after_power_cut_in(moods[seed as usize % 4], seed));
        for number in 4..=6 {
            match read(&cut, number) {
                Ok(byte) => assert!(byte == 2 || byte == 1 && number < 6, "seed {seed}"),
                Err(ReadPageError::Fault(PageFault::Check)) => torn += 1,
                Err(ReadPageError::Fault(PageFault::Zeroed)) => assert_eq!(number, 6),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }
    assert!(torn > 0, "no page was torn, so nothing was tested");
}

#[test]
fn a_reader_sees_a_page_of_one_moment_while_it_is_written() {
    let files = FakeFiles::new(1);
    let file = open(&files);
    file.write(&mut [page(5, 0)]).expect("there is room");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for byte in 0..200 {
                file.write(&mut [page(5, byte)]).expect("there is room");
            }
        });
        let mut last = 0;
        while last < 199 {
            let byte = read(&file, 5).expect("it is whole at every moment");
            assert!(byte >= last, "what was read does not go back");
            last = byte;
        }
    });
}
