//! The formats, each through a whole log.

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::{Archive, Format, Json, MessagePack, Raw, ViewFormat};
use holdfast_wal::{Log, Record, json_lines};

use crate::support::{SMALL, Work, place, records, works};

/// A new log on a new disk.
fn log_of<R: Record, F: Format<R>>() -> Log<R, F> {
    let files = FakeFiles::new(1);
    Log::<R, F>::create_at(&place(&files), &SMALL).unwrap();
    Log::<R, F>::open_at(place(&files), &SMALL).unwrap().0
}

/// What goes in comes out, alone and in sets.
fn comes_back<R: Record + Clone + PartialEq, F: Format<R>>(items: &[R]) {
    let log = log_of::<R, F>();
    for set in items.chunks(3) {
        log.append_all(set).unwrap();
    }
    log.append(&items[0]).unwrap();
    log.commit().unwrap();
    let found = records(&log).unwrap();
    assert!(found[..items.len()] == *items && found[items.len()] == items[0]);
}

#[test]
fn work_items_come_back_in_every_format_of_serde() {
    comes_back::<Work, MessagePack>(&works(0..500));
    comes_back::<Work, Json>(&works(0..500));
}

#[test]
fn bytes_of_every_length_come_back_as_they_are() {
    let items: Vec<Vec<u8>> = (0..100).map(|length| vec![length as u8; length]).collect();
    comes_back::<Vec<u8>, Raw>(&items);
    comes_back::<String, MessagePack>(&["", "text", "Zeichen"].map(String::from));
}

/// The record of the paper, to be read where it lies.
#[derive(Clone, Debug, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct Item {
    id: u64,
    comment: String,
    pairs: Vec<(u32, u32)>,
}

impl Record for Item {
    const NAME: &'static str = "item";
}

fn item(id: u64) -> Item {
    let pairs = (0..id as u32 % 9).map(|a| (a, 7 * a)).collect();
    Item { id, comment: format!("number {id}, longer than what fits beside it"), pairs }
}

#[test]
fn archived_records_come_back_whole() {
    comes_back::<Item, Archive>(&(0..500).map(item).collect::<Vec<_>>());
}

#[test]
fn views_show_the_records_where_they_lie() {
    let log = log_of::<Item, Archive>();
    for set in (0..300).map(item).collect::<Vec<_>>().chunks(7) {
        log.append_all(set).unwrap();
    }
    log.commit().unwrap();
    let (mut replay, mut id) = (log.iter(), 0);
    while let Some(entry) = replay.next_view().unwrap() {
        let (view, wanted) = (entry.record, item(id));
        assert_eq!((view.id.to_native(), view.comment.as_str()), (id, wanted.comment.as_str()));
        assert_eq!(view.pairs.len(), wanted.pairs.len());
        id += 1;
    }
    assert_eq!(id, 300);
    assert!(replay.next_view().unwrap().is_none(), "it ends once");
}

#[test]
fn bytes_can_be_viewed_too() {
    let log = log_of::<Vec<u8>, Raw>();
    log.append_durable(&b"as they are".to_vec()).unwrap();
    assert_eq!(log.iter().next_view().unwrap().unwrap().record, b"as they are");
}

#[test]
fn bytes_that_are_no_archive_are_refused_and_not_believed() {
    let bytes = [0xff_u64; 8];
    let bytes: Vec<u8> = bytes.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(<Archive as ViewFormat<Item>>::view(&bytes[..48]).is_err());
    assert!(<Archive as Format<Item>>::decode(&bytes[..3]).is_err());
}

#[test]
fn formats_refuse_what_follows_a_record() {
    let mut bytes = Vec::new();
    <MessagePack as Format<u64>>::encode(&7, &mut bytes).unwrap();
    assert_eq!(<MessagePack as Format<u64>>::decode(&bytes).unwrap(), 7);
    bytes.push(7);
    assert!(<MessagePack as Format<u64>>::decode(&bytes).is_err());
    assert!(<Json as Format<u64>>::decode(b"7 7").is_err());
}

#[test]
fn json_lines_are_one_object_a_line() {
    let mut text = Vec::new();
    works(0..3).iter().for_each(|item| json_lines::write(&mut text, item).unwrap());
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 3);
    assert!(text.starts_with(b"{\"id\":0,\"comment\":\"the work item 0\",\"objects\":[]}\n"));
    let read: Result<Vec<Work>, _> = json_lines::read(text.as_slice()).collect();
    assert_eq!(read.unwrap(), works(0..3));
}
