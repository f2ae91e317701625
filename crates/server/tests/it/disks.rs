//! A disk that is served: what it does, what it refuses, and that its clients share it.

use crate::hostile::{Attack, MARK, at_least};
use crate::raw::connect;
use crate::support::{NAME, Numbers, Place, Serving, disk_spec, seed};
use holdfast_client::protocol::{ClientId, Hello, Status, VERSION};
use holdfast_client::{BlocksClient, ConnectError};
use holdfast_io::{Blocks, BlocksError};
use holdfast_log::CommitLog;
use holdfast_memory::queue::Request;
use holdfast_server::words;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const DISK: &str = "ram";
const HOSTILE: &str = "hostile-ram";
const MIB: usize = 1 << 20;
const DISK_BYTES: u64 = 8 << 20;

/// A server of the log and of these disks.
fn serve(place: &Place, disks: &[&str]) -> Serving {
    let spec = |name: &&str| disk_spec(name, &place.region(name), DISK_BYTES);
    place.serve_all(|_| {}, disks.iter().map(spec).collect())
}

fn disk(place: &Place) -> BlocksClient {
    BlocksClient::connect(&place.socket(), DISK).unwrap()
}

fn read(blocks: &dyn Blocks, offset: u64, bytes: usize) -> Vec<u8> {
    let mut found = vec![0xee; bytes];
    blocks.read(&mut found, offset).unwrap();
    found
}

/// Bytes that differ from place to place.
fn pattern(bytes: usize, salt: u8) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8) ^ ((at >> 8) as u8) ^ ((at >> 16) as u8) ^ salt).collect()
}

#[test]
fn what_is_written_is_read_back_however_long_it_is_and_wherever_it_begins() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    let disk = disk(&place);
    assert_eq!((disk.size_bytes(), disk.atomic_bytes_max()), (DISK_BYTES, MIB));
    assert!(read(&disk, 0, 5 * MIB).iter().all(|byte| *byte == 0), "a new disk");
    for (offset, bytes) in [(0, 4096), (4096, MIB), (777, 3 * MIB + 5), (DISK_BYTES - 1, 1), (9, 0)]
    {
        let wanted = pattern(bytes, offset as u8);
        disk.write(&wanted, offset).unwrap();
        assert!(read(&disk, offset, bytes) == wanted, "{bytes} bytes at {offset}");
    }
    disk.flush().unwrap();
    disk.write_zeroes(5000, 2 * MIB as u64).unwrap();
    disk.discard(4 << 20, 1 << 20).unwrap();
    assert!(read(&disk, 5000, 2 * MIB).iter().all(|byte| *byte == 0));
    assert_eq!(read(&disk, 4999, 1), [pattern(4223, 777u64 as u8)[4222]], "the byte before");
    assert!(place.word(DISK, words::REQUESTS) > 10);
    assert_eq!(place.word(DISK, words::REFUSED), 0);
}

#[test]
fn clients_of_one_disk_read_what_the_others_were_acknowledged() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    let clients: Vec<_> = (0..4).map(|_| disk(&place)).collect();
    assert_eq!(place.word(DISK, words::CLIENTS), 4);
    for round in 0..40u8 {
        let writer = &clients[usize::from(round) % 4];
        let wanted = pattern(20_000, round);
        writer.write(&wanted, 1234).unwrap();
        assert!(clients.iter().all(|client| read(client, 1234, wanted.len()) == wanted));
    }
}

#[test]
fn threads_of_one_client_have_requests_under_way_together() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    let disk = disk(&place);
    std::thread::scope(|scope| {
        for thread in 0..16u8 {
            let disk = &disk;
            scope.spawn(move || {
                let offset = u64::from(thread) * (DISK_BYTES / 16);
                for round in 0..20 {
                    let wanted = pattern(MIB / 4, thread ^ round);
                    disk.write(&wanted, offset).unwrap();
                    assert!(read(disk, offset, wanted.len()) == wanted, "thread {thread}");
                }
            });
        }
    });
}

#[test]
fn a_range_behind_the_end_is_refused_before_anything_is_done() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    let disk = disk(&place);
    let is_out = |done: Result<(), BlocksError>| matches!(done, Err(BlocksError::OutOfRange));
    assert!(is_out(disk.write(&[1; 4096], DISK_BYTES - 4095)));
    assert!(is_out(disk.read(&mut [0; 8], u64::MAX - 3)));
    assert!(is_out(disk.write_zeroes(1, DISK_BYTES)) && is_out(disk.discard(u64::MAX, 1)));
    assert_eq!(read(&disk, DISK_BYTES - 4095, 4095), [0; 4095]);
    assert_eq!(place.word(DISK, words::REFUSED), 0, "the server was not even asked");
}

#[test]
fn a_wrong_check_range_buffer_or_operation_is_refused_to_its_client_alone_and_counted() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    let raw = connect(&place, [9; 16], &format!("disk/{DISK}")).unwrap();
    let reading = |offset, bytes| Request { bytes, argument: [offset, 0], ..raw.request(17) };
    let emptying = |offset, bytes| Request { argument: [offset, bytes], ..raw.request(20) };
    let (good, buffer_bytes) = (reading(0, 4096), raw.reply.buffer_bytes);
    let wrong = [
        (Request { handle: good.handle + 1, ..good }, Status::BadHandle),
        (Request { handle: good.handle - 1, ..good }, Status::BadHandle),
        (Request { check: good.check ^ 1, ..good }, Status::BadHandle),
        (raw.request(1), Status::BadOperation),
        (raw.request(16), Status::BadOperation),
        (raw.request(22), Status::BadOperation),
        (raw.request(23), Status::BadOperation),
        (Request { buffer: 512, ..good }, Status::BadBuffer),
        (Request { buffer: buffer_bytes * raw.reply.buffers, ..good }, Status::BadBuffer),
        (Request { bytes: buffer_bytes + 1, ..good }, Status::BadBuffer),
        (reading(DISK_BYTES, 1), Status::OutOfRange),
        (reading(u64::MAX, 4096), Status::OutOfRange),
        (Request { operation: 18, ..reading(DISK_BYTES - 1, 2) }, Status::OutOfRange),
        (emptying(DISK_BYTES, 1), Status::OutOfRange),
        (emptying(u64::MAX, u64::MAX), Status::TooLarge),
    ];
    for (request, status) in wrong {
        assert_eq!(raw.ask(&request), status as u32, "{request:?}");
    }
    let misused = wrong.iter().filter(|(_, status)| status.is_misuse()).count() as u64;
    assert_eq!(place.word(DISK, words::REFUSED), misused);
    assert_eq!(place.word(NAME, words::REFUSED), 0, "another service has nothing to do with it");
    assert_eq!(raw.ask(&good), Status::Done as u32, "its own session goes on");
    disk(&place).write(b"undisturbed", 0).unwrap();
    place.client().append(1, &[b"undisturbed"]).unwrap();
}

#[test]
fn one_client_has_one_session_at_a_time() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    let service = format!("disk/{DISK}");
    let first = connect(&place, [9; 16], &service).unwrap();
    let mut again = UnixStream::connect(place.socket()).unwrap();
    let hello = Hello { version: VERSION, client: ClientId([9; 16]), oldest: 0, service };
    again.write_all(&hello.encode()).unwrap();
    let mut reply = Vec::new();
    again.read_to_end(&mut reply).unwrap();
    let reply = holdfast_client::protocol::Reply::parse(&reply).unwrap();
    assert_eq!(reply.status, Status::InUse);
    assert_eq!(first.ask(&first.request(21)), Status::Done as u32);
}

#[test]
fn a_name_that_no_disk_has_is_refused() {
    let place = Place::new();
    let _server = serve(&place, &[DISK]);
    for name in ["nobody", NAME, ""] {
        let refused = BlocksClient::connect(&place.socket(), name);
        assert!(matches!(refused, Err(ConnectError::Refused(Status::NoService))), "{refused:?}");
    }
    assert_eq!(place.word(DISK, words::REFUSED), 0, "nobody asked for this one");
}

#[test]
fn a_client_goes_on_with_the_same_disk_and_refuses_another_of_its_name() {
    let place = Place::new();
    let server = serve(&place, &[DISK]);
    let disk = disk(&place);
    disk.write(b"kept", 4000).unwrap();
    drop(server);
    let server = serve(&place, &[DISK]);
    assert_eq!(read(&disk, 4000, 4), b"kept");
    drop(server);
    std::fs::remove_file(place.region(DISK)).unwrap();
    let _server = serve(&place, &[DISK]);
    let failed = disk.read(&mut [0; 4], 4000);
    assert!(matches!(failed, Err(BlocksError::Failed(_))), "not the zeros of an empty one");
    assert_eq!(read(&self::disk(&place), 4000, 4), [0; 4]);
}

/// Writes and reads back, and finds exactly that.
fn write_honestly(disk: &BlocksClient, numbers: &mut Numbers, round: u64) {
    let wanted = MARK.repeat(1 + numbers.below(4000) as usize);
    let offset = numbers.below(DISK_BYTES - wanted.len() as u64);
    disk.write(&wanted, offset).unwrap();
    assert!(read(disk, offset, wanted.len()) == wanted, "round {round}");
}

#[test]
fn an_honest_client_of_a_disk_is_served_right_whatever_hostile_ones_do() {
    let mut numbers = Numbers(seed("an_honest_client_of_a_disk"));
    let mut writes = Numbers(numbers.next());
    let place = Place::new();
    let _server = serve(&place, &[DISK, HOSTILE]);
    let disk = disk(&place);
    let service = format!("disk/{HOSTILE}");
    let attack = Attack { place: &place, service: &service, name: HOSTILE, at_least: at_least(4) };
    attack.beside(&mut numbers, |round| write_honestly(&disk, &mut writes, round));
    assert_eq!(place.word(DISK, words::DAMAGE) + place.word(DISK, words::REFUSED), 0);
}
