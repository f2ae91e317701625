//! What a frontend and its guest may send and write, as a script, and what must hold of the device.
//!
//! A script is a list of messages with any numbers in them, of bytes written into the guest's rings
//! and into the inflight area, of kicks, and of bytes of any kind on the socket. Most begin with a
//! sound opening, behind which a device does most.
//!
//! Promise: nothing panics or hangs, and nothing outside the disk is touched.
//! Never: shortens a file that it has handed over, which only a hypervisor could.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;

use holdfast_front::vhost_user::{VhostUserConfig, converse};
use holdfast_io::{Blocks, BlocksError};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

const DISK_BYTES: usize = 20_000;
const MEMORY_BYTES: u64 = 256 << 10;
/// The frontend's own address of the memory.
const USER_START: u64 = 0x10_0000;
const QUEUES: u64 = 2;
const QUEUE_SIZE: u64 = 8;
/// Rings of one queue, one page each.
const QUEUE_BYTES: u64 = 0x4000;
/// An area of two queues of eight, and what is behind it.
const AREA_BYTES: u64 = 2 * 192 + 64;
/// Steps of one script.
const STEPS_MAX: usize = 400;

mod message {
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const SET_MEM_TABLE: u32 = 5;
    pub(super) const SET_NUM: u32 = 8;
    pub(super) const SET_ADDRESS: u32 = 9;
    pub(super) const SET_BASE: u32 = 10;
    pub(super) const GET_BASE: u32 = 11;
    pub(super) const SET_KICK: u32 = 12;
    pub(super) const SET_CALL: u32 = 13;
    pub(super) const SET_ERROR: u32 = 14;
    pub(super) const SET_PROTOCOL: u32 = 16;
    pub(super) const ENABLE: u32 = 18;
    pub(super) const GET_CONFIG: u32 = 24;
    pub(super) const SET_CONFIG: u32 = 25;
    pub(super) const GET_INFLIGHT: u32 = 31;
    pub(super) const SET_INFLIGHT: u32 = 32;
    pub(super) const ADD_MEMORY: u32 = 37;
    pub(super) const REMOVE_MEMORY: u32 = 38;
    pub(super) const END: u32 = 45;
}

/// A disk in memory with a flaw, that counts on its ranges being checked.
struct MemoryBlocks(Mutex<Vec<u8>>);

impl MemoryBlocks {
    fn at(&self, offset: u64, bytes: usize) -> Result<usize, BlocksError> {
        let start = usize::try_from(offset).expect("a place on the disk");
        assert!(start.checked_add(bytes).expect("a length") <= DISK_BYTES, "outside the disk");
        if (512..1024).contains(&start) { Err(BlocksError::NoSpace) } else { Ok(start) }
    }
}

impl Blocks for MemoryBlocks {
    fn size_bytes(&self) -> u64 {
        DISK_BYTES as u64
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        let at = self.at(offset, into.len())?;
        into.copy_from_slice(&self.0.lock().expect("no panic")[at..at + into.len()]);
        Ok(())
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        let at = self.at(offset, from.len())?;
        self.0.lock().expect("no panic")[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        let at = self.at(offset, bytes as usize)?;
        self.0.lock().expect("no panic")[at..at + bytes as usize].fill(0);
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.write_zeroes(offset, bytes)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        // Slow enough for a second thread.
        thread::sleep(std::time::Duration::from_micros(60));
        Ok(())
    }

    fn atomic_bytes_max(&self) -> usize {
        1000
    }
}

/// Runs one script; returns how many answers its guest was given, as far as its rings say.
pub(crate) fn run(script: &[u8]) -> u64 {
    let disk = MemoryBlocks(Mutex::new(vec![0; DISK_BYTES]));
    let config = VhostUserConfig { name: "script".into(), queues_max: QUEUES as u16 };
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    ours.set_nonblocking(true).expect("a socket");
    thread::scope(|scope| {
        let device = scope.spawn(|| converse(theirs, &disk, &config));
        let mut frontend = Frontend::new(ours);
        let mut script = Script(script);
        for _ in 0..STEPS_MAX {
            if script.0.is_empty() || frontend.is_gone {
                break;
            }
            frontend.step(&mut script);
        }
        let memory = frontend.memory.try_clone().expect("a descriptor");
        thread::sleep(std::time::Duration::from_micros(100));
        drop(frontend);
        device.join().expect("no panic");
        (0..QUEUES).map(|queue| u64::from(index(&memory, queue * QUEUE_BYTES + 0x2002))).sum()
    })
}

/// The index of a ring, which stands at `at`.
fn index(memory: &File, at: u64) -> u16 {
    let mut index = [0; 2];
    memory.read_exact_at(&mut index, at).expect("the memory");
    u16::from_le_bytes(index)
}

/// What is left of a script.
struct Script<'s>(&'s [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number, often one that is near something.
    fn number(&mut self) -> u64 {
        let (kind, low) = (self.byte(), u64::from(self.byte()));
        let near = u64::from(kind >> 4);
        match kind % 16 {
            0..4 => low,
            4 => USER_START + (low << 10),
            5 => USER_START + MEMORY_BYTES - near,
            6 => u64::MAX - low,
            7 => MEMORY_BYTES - near,
            8 => low << 12,
            9 => (low << 8) | near,
            10 => u64::from(u32::MAX) - near,
            11 => u64::from(u16::MAX) + near,
            12 => 1 << (low % 64),
            13 => QUEUE_SIZE + near,
            14 => DISK_BYTES as u64 / 512 + near,
            _ => 512 * low,
        }
    }
}

struct Frontend {
    socket: UnixStream,
    memory: File,
    area: File,
    bells: [File; 3],
    is_gone: bool,
}

impl Frontend {
    fn new(socket: UnixStream) -> Frontend {
        let bell = || {
            let flags = rustix::event::EventfdFlags::NONBLOCK;
            File::from(rustix::event::eventfd(0, flags).expect("a descriptor"))
        };
        let (memory, area) = (sealed(MEMORY_BYTES), sealed(AREA_BYTES));
        Frontend { socket, memory, area, bells: [bell(), bell(), bell()], is_gone: false }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0 => self.open(script),
            1..=4 => self.say_something(script),
            5..=8 => self.describe(script),
            9 => self.write_somewhere(script),
            10 => {
                let at = script.number() % AREA_BYTES;
                self.area.write_all_at(&[script.byte()], at).expect("the area");
            }
            11 => {
                let bytes = [script.byte(), script.byte(), script.byte()];
                self.send(&bytes[..usize::from(bytes[0] % 3) + 1], &[]);
            }
            12 => drop(rustix::io::write(&self.bells[0], &[0xff; 8])),
            _ => drop(rustix::io::write(&self.bells[0], &[1, 0, 0, 0, 0, 0, 0, 0])),
        }
        self.listen();
    }

    /// All that a sound frontend says before its guest runs.
    fn open(&mut self, script: &mut Script<'_>) {
        let choice = u64::from(script.byte());
        let event_index = choice & 1;
        self.say(message::SET_OWNER, &[], &[]);
        let features = 1 << 32 | event_index << 29 | 1 << 28 | (choice & 2) << 8 | 1 << 30;
        self.say(message::SET_FEATURES, &words(&[features]), &[]);
        self.say(message::SET_PROTOCOL, &words(&[1 | 1 << 3 | 1 << 9 | 1 << 12 | 1 << 15]), &[]);
        if choice & 4 != 0 {
            self.set_inflight([AREA_BYTES, 0, QUEUES | QUEUE_SIZE << 16]);
        }
        let table = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &self.region()].concat();
        let memory = self.memory.as_raw_fd();
        self.say(message::SET_MEM_TABLE, &table, &[memory]);
        for queue in 0..QUEUES {
            let start = USER_START + queue * QUEUE_BYTES;
            self.say(message::SET_NUM, &words(&[queue | QUEUE_SIZE << 32]), &[]);
            self.say(message::SET_BASE, &words(&[queue]), &[]);
            let address = [queue, start, start + 0x2000, start + 0x1000, 0];
            self.say(message::SET_ADDRESS, &words(&address), &[]);
            for (kind, bell) in [message::SET_ERROR, message::SET_CALL, message::SET_KICK]
                .into_iter()
                .zip([2, 1, 0])
            {
                let bell = self.bells[bell].as_raw_fd();
                self.say(kind, &words(&[queue]), &[bell]);
            }
            self.say(message::ENABLE, &words(&[queue | 1 << 32]), &[]);
        }
    }

    fn region(&self) -> Vec<u8> {
        words(&[0, MEMORY_BYTES, USER_START, 0])
    }

    fn set_inflight(&mut self, numbers: [u64; 3]) {
        let area = self.area.as_raw_fd();
        self.say(message::SET_INFLIGHT, &words(&numbers), &[area]);
    }

    /// A message of the right length, with any numbers, and any files.
    fn say_something(&mut self, script: &mut Script<'_>) {
        let kind = u32::from(script.byte()) % message::END;
        let count = match kind {
            message::SET_MEM_TABLE | message::SET_ADDRESS | message::ADD_MEMORY => 5,
            message::REMOVE_MEMORY => 5,
            message::GET_INFLIGHT | message::SET_INFLIGHT => 3,
            message::SET_FEATURES | message::SET_PROTOCOL | message::SET_NUM => 1,
            message::SET_BASE | message::GET_BASE | message::ENABLE => 1,
            message::SET_KICK | message::SET_CALL | message::SET_ERROR => 1,
            message::GET_CONFIG | message::SET_CONFIG => 2,
            _ => 0,
        };
        let mut numbers: Vec<u64> = (0..count).map(|_| script.number()).collect();
        let wish = script.byte();
        match (kind, wish % 4) {
            // Numbers in both halves.
            (message::SET_NUM | message::SET_BASE | message::ENABLE | message::GET_BASE, 0..3) => {
                numbers[0] = (numbers[0] % 3) | (script.number() << 32);
            }
            (message::SET_MEM_TABLE, 0..3) => numbers[0] = 1,
            (message::ADD_MEMORY, 0..3) => numbers[0] = 0,
            (message::SET_INFLIGHT, 0..3) => numbers[0] = AREA_BYTES,
            _ => {}
        }
        let mut payload = words(&numbers);
        if matches!(kind, message::GET_CONFIG | message::SET_CONFIG) && wish % 4 < 3 {
            let (offset, size) = (script.number() as u32 % 70, script.number() as u32 % 70);
            payload = [offset, size, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
            payload.extend((0..size).map(|_| wish));
        }
        let files = [&self.memory, &self.area, &self.bells[0], &self.bells[1]];
        let files: Vec<i32> = files.map(AsRawFd::as_raw_fd)[usize::from(wish >> 2) % 4..].to_vec();
        let count = match (kind, wish >> 6) {
            (_, 1) => 0,
            (_, 2) => files.len(),
            (message::SET_MEM_TABLE | message::ADD_MEMORY | message::SET_INFLIGHT, _) => 1,
            (message::SET_KICK | message::SET_CALL | message::SET_ERROR, _) => 1,
            _ => 0,
        };
        self.say(kind, &payload, &files[..count.min(files.len())]);
    }

    /// A request in some queue's rings: most of them sound in most things.
    fn describe(&mut self, script: &mut Script<'_>) {
        let queue = u64::from(script.byte()) % QUEUES;
        let (first, shape) = (u64::from(script.byte()) % QUEUE_SIZE, script.byte());
        let start = queue * QUEUE_BYTES;
        let header = start + 0x3000 + first * 32;
        let kind = [0, 1, 4, 8, 11, 13, 0, 99][usize::from(shape) % 8];
        let sector = script.number();
        self.write(header, &[&words(&[kind, sector])[..], &[0xaa; 16]].concat());
        let bytes = script.number() % 70_000;
        let next = (first + 1) % QUEUE_SIZE;
        let last = (first + 2) % QUEUE_SIZE;
        let is_for_guest = matches!(kind, 0 | 8);
        let data = (0x10000, bytes, 1 | u64::from(is_for_guest) << 1, last);
        let mut chain =
            [(first, (header, 16, 1, next)), (next, data), (last, (header + 16, 1, 2, 0))];
        if shape & 0x80 != 0 {
            let spoiled = &mut chain[usize::from(script.byte()) % 3].1;
            match script.byte() % 4 {
                0 => spoiled.0 = script.number(),
                1 => spoiled.1 = script.number(),
                2 => spoiled.2 = script.number() % 8,
                _ => spoiled.3 = script.number(),
            }
        }
        for (index, (address, bytes, flags, next)) in chain {
            let rest = bytes & 0xffff_ffff | flags << 32 | next << 48;
            self.write(start + index * 16, &words(&[address, rest]));
        }
        let index = index(&self.memory, start + 0x1002);
        let place = start + 0x1004 + u64::from(index) % QUEUE_SIZE * 2;
        self.write(place, &(first as u16).to_le_bytes());
        let step = if shape & 0x7c == 0x7c { u16::from(script.byte()) } else { 1 };
        self.write(start + 0x1002, &index.wrapping_add(step).to_le_bytes());
        // The device is to tell of every answer.
        let _ = rustix::io::write(&self.bells[0], &[1, 0, 0, 0, 0, 0, 0, 0]);
    }

    fn write_somewhere(&mut self, script: &mut Script<'_>) {
        let at = script.number() % MEMORY_BYTES;
        let bytes = [script.byte(), script.byte()];
        self.write(at, &bytes);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let room = MEMORY_BYTES.saturating_sub(at).min(bytes.len() as u64) as usize;
        self.memory.write_all_at(&bytes[..room], at).expect("the memory");
    }

    fn say(&mut self, kind: u32, payload: &[u8], files: &[i32]) {
        let head = [kind, 1 | 8, payload.len() as u32];
        let head: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.send(&[&head[..], payload].concat(), files);
    }

    fn send(&mut self, bytes: &[u8], files: &[i32]) {
        for _ in 0..10_000 {
            match self.socket.send_with_fds(&[bytes], files) {
                Ok(_) => return,
                Err(error) if error.errno() == 11 => self.listen(),
                Err(_) => break,
            }
            thread::yield_now();
        }
        self.is_gone = true;
    }

    /// Throws away what the device says.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        while self.socket.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn sealed(bytes: u64) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("script", flags).expect("a file in memory");
    ftruncate(&file, bytes).expect("a file in memory");
    fcntl_add_seals(&file, SealFlags::SHRINK).expect("a file in memory");
    file.into()
}

/// Scripts to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let opening = |choice| vec![0, choice];
    let requests: Vec<u8> = (0..8).flat_map(|kind| [5, 0, 0, kind, 1, 2, 15, 2]).collect();
    let spoiled: Vec<u8> =
        (0..12).flat_map(|at| [5, 1, 3, 0x80 | at, 1, 2, 15, 4, at, at / 3, 6, at]).collect();
    let messages: Vec<u8> = (0..45).flat_map(|kind| [1, kind, 1, 1, 1, 1, 1, 1]).collect();
    vec![
        ("requests", [opening(3), requests.clone()].concat()),
        ("kept", [opening(7), requests.clone()].concat()),
        ("spoiled", [opening(7), spoiled.clone()].concat()),
        ("messages", [opening(7), messages.clone(), requests.clone()].concat()),
        ("unopened", [messages, spoiled].concat()),
        ("restarted", [opening(7), requests.clone(), opening(2), requests].concat()),
    ]
}
