//! A file that lost its name is there for as long as somebody knows it, and then goes: whoever
//! waits for room, whatever fails, and however many front ends die meanwhile.

use std::collections::VecDeque;
use std::path::Path;

use holdfast_io::fake::{EIO, Effect, Fault, Operation, Random};
use holdfast_io::tree::{Asker, Errno, NodeId, ROOT, RenameHow, Tree, Waits, on_behalf_of};
use holdfast_io::{Files, Kind};

use crate::seeds::for_each_seed;
use crate::world::{Opened, World, new_node};

/// Programs at a time. All are one user's.
const PROGRAMS: usize = 4;
const USER: u32 = 0;
/// Moments in one run.
const MOMENTS: u64 = 2000;
const WRITE_BYTES: u64 = 10_000;

/// What a program asks for next, one at a time.
#[derive(Clone, Copy, Debug)]
enum Next {
    Make,
    Write { times: u64 },
    Name,
    Unlink,
    MakeOther,
    RenameOver,
    Forget,
}

/// One program, which makes a file, fills it and takes its name away, again and again.
struct Program {
    name: String,
    next: Next,
    random: Random,
    /// Its file, and how often the kernel was told of it.
    node: NodeId,
    told: u64,
    /// The front end has its request, and no answer.
    waits: bool,
}

impl Program {
    fn new(seed: u64, number: u64) -> Program {
        let random = Random::new(seed * PROGRAMS as u64 + number);
        let (name, next) = (format!("p{number}"), Next::Make);
        Program { name, next, random, node: ROOT, told: 0, waits: false }
    }

    /// Asks for the next step, and tells what it asks for then.
    fn ask(&mut self, volume: &Opened) -> Result<Next, Errno> {
        let next = self.next;
        let Program { name, random, node, .. } = &mut *self;
        let (node, other) = (*node, format!("{name}-other"));
        let (name, other) = (name.as_bytes(), other.as_bytes());
        match next {
            Next::Make => return self.make(volume),
            Next::Write { times: 0 } => return self.fate(volume),
            Next::Write { times } => {
                let bytes = vec![times as u8; random.below(WRITE_BYTES) as usize + 1];
                volume.write(node, &bytes, times * WRITE_BYTES, false)?;
                return Ok(Next::Write { times: times - 1 });
            }
            Next::Name => {
                volume.link(node, ROOT, name)?;
                self.told += 1;
                return Ok(Next::Unlink);
            }
            Next::MakeOther => {
                let made = volume.make(ROOT, other, &new_node(Kind::File, 0o600))?;
                volume.forget(made.node, 1);
                return Ok(Next::RenameOver);
            }
            Next::Unlink => volume.remove_file(ROOT, name)?,
            Next::RenameOver => volume.rename((ROOT, other), (ROOT, name), RenameHow::Replace)?,
            Next::Forget => volume.forget(node, std::mem::take(&mut self.told)),
        }
        Ok(if self.told > 0 { Next::Forget } else { Next::Make })
    }

    /// Of what a rename left the name goes first.
    fn make(&mut self, volume: &Opened) -> Result<Next, Errno> {
        let new = new_node(Kind::File, 0o600);
        let made = match self.random.chance(20) {
            true => volume.make_unnamed(ROOT, &new)?,
            false => match volume.make(ROOT, self.name.as_bytes(), &new) {
                Err(Errno::EXIST) => return Ok(Next::Unlink),
                made => made?,
            },
        };
        (self.node, self.told) = (made.node, 1);
        Ok(Next::Write { times: self.random.below(40) })
    }

    /// What becomes of the file now.
    fn fate(&mut self, volume: &Opened) -> Result<Next, Errno> {
        let named = match volume.lookup(ROOT, self.name.as_bytes()) {
            Ok(found) if found.node == self.node => {
                self.told += 1;
                true
            }
            Ok(other) => {
                volume.forget(other.node, 1);
                return Ok(Next::Forget);
            }
            Err(Errno::NOENT) => false,
            Err(errno) => return Err(errno),
        };
        Ok(match (named, self.random.below(3)) {
            (true, 0) => Next::MakeOther,
            (true, _) => Next::Unlink,
            (false, 0) => Next::Name,
            (false, _) => Next::Forget,
        })
    }
}

/// The kernel and the programs above it, and the front end between them and the volume.
struct Machine {
    world: World,
    volume: Option<Opened>,
    random: Random,
    programs: Vec<Program>,
    /// Whose requests are parked, in their order.
    parked: VecDeque<usize>,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let world = World::new(seed);
        let (volume, _) = world.open().expect("a new volume");
        let programs = (0..PROGRAMS as u64).map(|number| Program::new(seed, number)).collect();
        let (random, parked) = (Random::new(seed), VecDeque::new());
        Machine { world, volume: Some(volume), random, programs, parked }
    }

    fn volume(&self) -> &Opened {
        self.volume.as_ref().expect("one is open between two moments")
    }

    fn moment(&mut self) {
        match self.random.below(1000) {
            0..980 => self.listen(),
            980..985 => self.die(),
            985..990 => drop(self.volume().drain_step().expect("a sound disk")),
            _ => self.clean(),
        }
    }

    /// A request comes, of a program that has none out. Nothing else than changes waits.
    fn listen(&mut self) {
        let at = self.random.below(PROGRAMS as u64) as usize;
        if self.programs[at].waits {
            return;
        }
        let waits = if self.parked.is_empty() { Waits::Never } else { Waits::Behind };
        if !self.answer(at, waits) {
            self.programs[at].waits = true;
            self.parked.push_back(at);
        }
    }

    /// False if the request has to wait. A home may fail a forget, and the kernel does not hear of
    /// it.
    fn answer(&mut self, at: usize, waits: Waits) -> bool {
        let asker = Asker { user: Some(USER), waits };
        let volume = self.volume.as_ref().expect("one is open between two moments");
        let program = &mut self.programs[at];
        if matches!(program.next, Next::Forget) && self.random.chance(30) {
            let effect = Effect::Errno(EIO);
            self.world.files.fail(Fault { operation: Operation::Metadata, skip: 0, effect });
        }
        let asked = on_behalf_of(asker, || program.ask(volume));
        self.world.files.forget_faults();
        match asked {
            Ok(next) => program.next = next,
            Err(Errno::LATER) => return false,
            Err(errno) => panic!("{:?} of {}: {errno:?}", program.next, program.name),
        }
        true
    }

    /// The cleaner does what it can, and what is parked is handed over.
    fn clean(&mut self) {
        self.volume().drain_step().expect("a sound disk");
        self.volume().clean_step().expect("a sound home");
        while let Some(at) = self.parked.front().copied()
            && self.answer(at, Waits::ForTheHome)
        {
            self.programs[at].waits = false;
            self.parked.pop_front();
        }
    }

    /// The front end dies, and the next one takes over; what was parked is sent again.
    fn die(&mut self) {
        self.volume = None;
        self.volume = Some(self.world.open().expect("the region has everything").0);
    }

    /// Everybody is answered, and everything comes home.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.clean();
            let is_idle = self.volume().clean_step().expect("a sound home").is_idle();
            let marks = self.volume().marks();
            if self.parked.is_empty() && is_idle && marks.durable == marks.tail {
                return;
            }
        }
        panic!("it comes to no rest");
    }

    /// The kernel forgets every file.
    fn close_all(&mut self) {
        let volume = self.volume.as_ref().expect("one is open between two moments");
        for program in self.programs.iter_mut().filter(|program| program.told > 0) {
            volume.forget(program.node, std::mem::take(&mut program.told));
        }
    }

    /// Files of the home that have no name, by their numbers.
    fn nameless(&self) -> Vec<NodeId> {
        let found = self.world.home().read_dir(Path::new(".holdfast")).unwrap_or_default();
        let names = found.into_iter().map(|item| String::from_utf8(item.name).expect("plain"));
        let mut numbers: Vec<NodeId> =
            names.filter_map(|name| name.split('-').next()?.parse().ok().map(NodeId)).collect();
        numbers.sort();
        numbers
    }

    /// Those that somebody has open.
    fn open_nameless(&self) -> Vec<NodeId> {
        let open = self.programs.iter().filter(|program| program.told > 0);
        let links = |node| self.volume().attributes(node).expect("it is open").links;
        let mut open: Vec<NodeId> =
            open.map(|program| program.node).filter(|node| links(*node) == 0).collect();
        open.sort();
        open
    }
}

#[test]
fn a_file_without_a_name_is_at_home_as_long_as_somebody_knows_it() {
    for_each_seed("a_file_without_a_name_is_at", &[], 0..40, |seed| {
        let mut machine = Machine::new(seed);
        (0..MOMENTS).for_each(|_| machine.moment());
        machine.settle();
        assert_eq!(machine.nameless(), machine.open_nameless(), "some are open");
        if seed % 2 == 0 {
            machine.die();
            machine.settle();
            assert_eq!(machine.nameless(), machine.open_nameless(), "and for the next front end");
        }
        machine.close_all();
        machine.settle();
        assert_eq!(machine.nameless(), [], "nobody knows any");
    });
}
