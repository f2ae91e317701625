//! Clients that write what they like, and clients killed wherever they are.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_memory::SessionMemory;
use holdfast_memory::queue::{Owner, PAGE_BYTES, Queue, Request, Response, SLOTS};

use crate::common::{Random, for_seeds};

/// Set for a child: the memory it maps, and the owner it is.
const MEMORY: &str = "HOLDFAST_TEST_MEMORY";
const OWNER: &str = "HOLDFAST_TEST_OWNER";

/// Long enough for any machine; reached only by a broken queue.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many times longer than in a short run.
fn factor() -> u64 {
    std::env::var("HOLDFAST_SEEDS_FACTOR").map_or(1, |factor| factor.parse().unwrap())
}

fn owner(number: u64) -> Owner {
    Owner::new(u16::try_from(number).unwrap()).unwrap()
}

/// Every call of the server's side, once. It returns, whatever the page holds.
fn serve_once(queue: Queue<'_>, random: &mut Random) {
    let _any = queue.wait_for_work(2, Duration::ZERO);
    for _ in 0..=SLOTS {
        match queue.take() {
            Ok(Some(taken)) => {
                let _damaged = queue.complete(taken.slot, &Response::default());
            }
            Ok(None) => break,
            Err(_) if random.below(2) == 0 => break,
            Err(_) => queue.rebuild(),
        }
    }
    let _damaged = queue.reclaim(&|who| who.get() % 2 == 0);
}

/// Four bytes that are likely to be taken for a link, a state or a count.
fn garbage(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => (random.below(SLOTS as u64 + 2) * 128) as u32,
        1 => random.below(6) as u32,
        2 => (random.below(4) << 16 | random.below(64)) as u32,
        _ => random.next() as u32,
    }
}

fn scribble(file: &File, random: &mut Random) {
    let at = random.below(PAGE_BYTES as u64 / 4) * 4;
    file.write_all_at(&garbage(random).to_le_bytes(), at).unwrap();
}

/// The page works after whatever happened to it.
fn assert_usable_after_a_rebuild(queue: Queue<'_>, file: &File) {
    queue.rebuild();
    // Slots that claim to be somebody's stay that, so a client of its own finds them all taken.
    let free = queue.acquire(owner(1)).or_else(|| {
        file.write_all_at(&[0; PAGE_BYTES], 0).unwrap();
        queue.acquire(owner(1))
    });
    let slot = free.unwrap();
    queue.put(slot, &Request { sequence: 77, ..Request::default() });
    assert_eq!(queue.take().unwrap().map(|taken| taken.request.sequence), Some(77));
}

#[test]
fn garbage_anywhere_in_the_page_is_survived_and_the_page_can_be_rebuilt() {
    let test = "garbage_anywhere_in_the_page_is_survived_and_the_page_can_be_rebuilt";
    for_seeds(test, 500 * factor(), |random| {
        let (session, file) = SessionMemory::create_sealed(4096).unwrap();
        let (queue, file) = (session.queue(), File::from(file));
        for _ in 0..50 {
            for sequence in 0..random.below(4) {
                if let Some(slot) = queue.acquire(owner(1 + random.below(3))) {
                    queue.put(slot, &Request { sequence, ..Request::default() });
                }
            }
            (0..random.below(4)).for_each(|_| scribble(&file, random));
            serve_once(queue, random);
        }
        assert_usable_after_a_rebuild(queue, &file);
    });
}

#[test]
fn garbage_written_while_the_server_runs_is_survived() {
    for_seeds("garbage_written_while_the_server_runs_is_survived", 4 * factor(), |random| {
        let (session, file) = SessionMemory::create_sealed(4096).unwrap();
        let (queue, file) = (session.queue(), File::from(file));
        let over = AtomicBool::new(false);
        let mut other = Random::seeded(random.next());
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    scribble(&file, &mut other);
                }
            });
            (0..20_000).for_each(|_| serve_once(queue, random));
            over.store(true, Ordering::Relaxed);
        });
        assert_ne!(queue.damage_count(), 0, "the garbage reached the server");
        assert_usable_after_a_rebuild(queue, &file);
    });
}

/// Starts this test program again as a client of the memory.
fn start(memory: &File, number: u64) -> Child {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::the_client_to_be_killed", "--ignored"])
        .env(MEMORY, path)
        .env(OWNER, number.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "not a test: the process that the tests of this file start and kill"]
fn the_client_to_be_killed() {
    let Some(path) = std::env::var_os(MEMORY) else { return };
    let number = std::env::var(OWNER).unwrap().parse().unwrap();
    let file = File::options().read(true).write(true).open(PathBuf::from(path)).unwrap();
    let session = SessionMemory::map(file.as_fd()).unwrap();
    client(session.queue(), owner(number));
}

/// Puts as many requests as it can and waits for some of them.
fn client(queue: Queue<'_>, who: Owner) {
    for sequence in 1..=u64::MAX {
        let Some(slot) = queue.acquire(who) else { continue };
        queue.put(slot, &Request { sequence, ..Request::default() });
        while queue.wait(slot, 50, Duration::from_secs(60)).is_none() {}
        queue.free(slot);
    }
}

/// Serves until `end` says so; how many requests of each owner.
fn serve_until(queue: Queue<'_>, served: &mut [u64; 3], end: impl Fn(&[u64; 3]) -> bool) {
    let began = Instant::now();
    while !end(served) {
        assert!(began.elapsed() < PATIENCE, "nobody asks any more; served so far: {served:?}");
        let _any = queue.wait_for_work(50, Duration::from_millis(10));
        while let Some(taken) = queue.take().unwrap() {
            served[usize::from(taken.owner.get())] += 1;
            queue.complete(taken.slot, &Response::default()).unwrap();
        }
    }
}

#[test]
fn a_client_killed_anywhere_stops_nobody_and_its_slots_come_back() {
    let test = "a_client_killed_anywhere_stops_nobody_and_its_slots_come_back";
    for_seeds(test, 3 * factor(), |random| {
        let (session, file) = SessionMemory::create_sealed(4096).unwrap();
        let (queue, file) = (session.queue(), File::from(file));
        let mut survivor = start(&file, 2);
        for _ in 0..20 {
            let mut served = [0; 3];
            let mut victim = start(&file, 1);
            let enough = 1 + random.below(2000);
            serve_until(queue, &mut served, |served| served[1] >= enough);
            victim.kill().unwrap();
            victim.wait().unwrap();
            // The living goes on, and the dead has nothing any more.
            let before = served[2];
            serve_until(queue, &mut served, |served| served[2] > before);
            queue.reclaim(&|who| who == owner(1)).unwrap();
            let left = SLOTS - free_slots(queue);
            assert!(left <= 1, "{left} slots are in use, and one client lives");
        }
        survivor.kill().unwrap();
        survivor.wait().unwrap();
        serve_until(queue, &mut [0; 3], |_| !queue.wait_for_work(0, Duration::ZERO));
        queue.reclaim(&|who| who == owner(2)).unwrap();
        assert_eq!((free_slots(queue), queue.damage_count()), (SLOTS, 0));
    });
}

/// Takes every free slot and gives it back; how many.
fn free_slots(queue: Queue<'_>) -> usize {
    let free: Vec<_> = std::iter::from_fn(|| queue.acquire(owner(9))).collect();
    free.iter().for_each(|slot| queue.free(*slot));
    free.len()
}

#[test]
fn the_count_of_slots_notices_one_that_did_not_come_back() {
    let (session, _file) = SessionMemory::create_sealed(4096).unwrap();
    let queue = session.queue();
    assert_eq!(free_slots(queue), SLOTS);
    queue.acquire(owner(1)).unwrap();
    assert_eq!(queue.reclaim(&|_| false), Ok(0));
    assert_eq!(free_slots(queue), SLOTS - 1);
}
