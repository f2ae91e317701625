//! Requests that are sent again because a front end died: each gets the answer it would have had.

use std::collections::BTreeSet;

use holdfast_io::Kind;
use holdfast_io::fake::Random;
use holdfast_io::tree::{Asked, Errno, NodeId, ROOT, RenameHow, SetXattr, Tree};

use crate::death::die_while_opening;
use crate::seeds::for_each_seed;
use crate::world::{Opened, World, new_node};

const STEPS: u64 = 60;
const FILES: [&[u8]; 3] = [b"one", b"two", b"of others"];
const NAMES: [&str; 2] = ["user.a", "user.b"];
/// More than 64, and not for each step: what is remembered of others must not push out what counts.
const OTHERS_MAX: u64 = 100;

/// What is asked for, of a file and an attribute by their numbers.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Remove(usize, usize),
    Create(usize, usize),
    Exchange,
}

/// What there is: attributes of each file, and whether the first two have changed places.
#[derive(Clone, Default)]
struct Model {
    has: BTreeSet<(usize, usize)>,
    are_exchanged: bool,
}

impl Model {
    fn answer(&mut self, doing: Doing) -> Result<(), Errno> {
        match doing {
            Doing::Remove(file, name) if self.has.remove(&(file, name)) => Ok(()),
            Doing::Remove(..) => Err(Errno::NODATA),
            Doing::Create(file, name) if self.has.insert((file, name)) => Ok(()),
            Doing::Create(..) => Err(Errno::EXIST),
            Doing::Exchange => {
                self.are_exchanged = !self.are_exchanged;
                Ok(())
            }
        }
    }
}

struct Asker {
    files: [NodeId; 3],
    request: u64,
}

impl Asker {
    fn ask(&self, volume: &Opened, doing: Doing, again: bool) -> Result<(), Errno> {
        let asked = Asked { request: self.request, again };
        match doing {
            Doing::Remove(file, name) => {
                volume.remove_xattr(self.files[file], NAMES[name].as_bytes(), asked)
            }
            Doing::Create(file, name) => {
                let how = SetXattr { create: Some(asked), ..SetXattr::default() };
                volume.set_xattr(self.files[file], NAMES[name].as_bytes(), b"value", &how)
            }
            Doing::Exchange => {
                let how = RenameHow::Exchange(asked);
                volume.rename((ROOT, FILES[0]), (ROOT, FILES[1]), how)
            }
        }
    }

    /// Another thread asks for so much, about a file of its own.
    fn ask_by_another(&mut self, volume: &Opened, count: u64, model: &mut Model) {
        let own = FILES.len() - 1;
        std::thread::scope(|scope| {
            let another = scope.spawn(|| {
                for turn in 0..count {
                    self.request += 2;
                    let doing =
                        if turn % 2 == 0 { Doing::Create(own, 0) } else { Doing::Remove(own, 0) };
                    assert_eq!(self.ask(volume, doing, false), model.answer(doing));
                }
            });
            another.join().expect("it has nothing to fail of");
        });
    }
}

fn any(random: &mut Random) -> Doing {
    let (file, name) = (random.below(2) as usize, random.below(2) as usize);
    match random.below(5) {
        0 | 1 => Doing::Remove(file, name),
        2 | 3 => Doing::Create(file, name),
        _ => Doing::Exchange,
    }
}

fn live(seed: u64) {
    let (world, mut random) = (World::new(seed), Random::new(seed));
    let mut volume = world.open().expect("a new log").0;
    let make = |name| volume.make(ROOT, name, &new_node(Kind::File, 0o600)).expect("room").node;
    let mut asker = Asker { files: FILES.map(make), request: 0 };
    let mut model = Model::default();
    for step in 0..STEPS {
        let (doing, told) = (any(&mut random), format!("seed {seed}, step {step}"));
        asker.request += 2;
        let request = asker.request;
        let expected = model.answer(doing);
        let mut again = false;
        // How often a front end dies before the kernel has an answer.
        for _ in 0..random.below(3) {
            if random.below(2) == 0 {
                assert_eq!(asker.ask(&volume, doing, again), expected, "{told}, {doing:?}");
                asker.ask_by_another(&volume, 2 * random.below(OTHERS_MAX / 2), &mut model);
                asker.request = request;
            }
            drop(volume);
            die_while_opening(&world, &mut random);
            volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
            again = true;
        }
        assert_eq!(asker.ask(&volume, doing, again), expected, "{told}, {doing:?}, {again}");
        let first = volume.lookup(ROOT, FILES[0]).expect("it is never removed").node;
        assert_eq!(first == asker.files[1], model.are_exchanged, "{told}, {doing:?}");
        asker.request += 1000;
    }
}

#[test]
fn a_request_that_is_sent_again_gets_the_answer_of_the_first_time() {
    for_each_seed("repeated::a_request_that_is_sent_again", &[], 0..24, live);
}
