//! The gate remembers, and says what a home says that is asked each time.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use holdfast_io::Kind;
use holdfast_io::acl::{ACCESS, Acl};
use holdfast_io::fake::{FakeFiles, Operation, Random};

use super::*;
use crate::changes::xattr::{probe_name, space_of};

const STEPS: u64 = 100;
const FILES: u64 = 3;
const SEEDS: u64 = 16;
const REPLAY: &str = "replay it: HOLDFAST_SEED=<seed> cargo test -p holdfast-volume --lib xattr";

/// Some with the same names, near what the home takes or far from it.
fn any_change(random: &mut Random, names: u64, bytes_max: u64) -> Named {
    if random.below(20) == 0 {
        let users = (0..random.below(4)).map(|user| (2, 6, user as u32));
        return (ACCESS.into(), list(users).into());
    }
    let number = random.below(names);
    let space = ["user.", "user.", "trusted.", "security."][number as usize % 4];
    let name = format!("{space}{}{number}", "n".repeat((number % 11) as usize));
    let bytes = match random.below(8) {
        0 => random.below(bytes_max),
        1..4 => random.below(100),
        _ => 8,
    };
    (name.into_bytes().into(), vec![7; bytes as usize].into())
}

/// A list of access with these users.
fn list(users: impl Iterator<Item = (u16, u16, u32)>) -> Vec<u8> {
    let base = [(1, 6, u32::MAX)].into_iter().chain(users);
    let rest = [(4, 4, u32::MAX), (16, 7, u32::MAX), (32, 4, u32::MAX)];
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        let [tag, rights] = [tag.to_le_bytes(), rights.to_le_bytes()];
        [&tag[..], &rights[..], &id.to_le_bytes()[..]].concat()
    };
    let entries = base.chain(rest).flat_map(entry);
    let list: Vec<_> = 2_u32.to_le_bytes().into_iter().chain(entries).collect();
    Acl::decode(&list).expect("a list").encode()
}

/// A home of which an inode takes so much.
fn home(bytes_max: u64) -> FakeFiles {
    let home = FakeFiles::new(1);
    home.set_xattr_bytes_max(bytes_max as usize);
    home
}

/// What a home answers that remembers nothing.
fn answer(wanted: &[Named], bytes_max: u64) -> Result<(), Errno> {
    try_on_home(&mut Told::default(), &home(bytes_max), wanted, |_| ()).expect("a sound home")
}

/// Sets and removes attributes of a few files. Returns how many were taken without asking, though
/// they are more than what is always taken, and how many were refused.
fn live(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    // Some have not even room for what is sure elsewhere.
    let bytes_max =
        if seed.is_multiple_of(3) { random.below(1100) } else { 1100 + random.below(1000) };
    let names = [4, 20, 60][random.below(3) as usize];
    let gate = Gate::default();
    let mut files: Vec<BTreeMap<Box<[u8]>, Value>> = vec![BTreeMap::new(); FILES as usize];
    let (mut untold, mut refused) = (0, 0);
    for step in 0..STEPS {
        let has = &mut files[random.below(FILES) as usize];
        let (name, value) = any_change(&mut random, names, bytes_max);
        if random.below(5) == 0 {
            has.remove(&name);
            continue;
        }
        let mut wanted = vec![(name.clone(), value.clone())];
        let others = has.iter().filter(|(other, _)| **other != name);
        wanted.extend(others.map(|(name, value)| (name.clone(), value.clone())));
        let space = space_of(&name).expect("such a name");
        let probe = || match name[..] == *ACCESS {
            true => (ACCESS.into(), vec![value.clone()]),
            false => (probe_name(space), sure_values()),
        };
        // A new one: a fake disk keeps all that was done to it, and gets slow.
        let home = home(bytes_max);
        let said = gate.admit(&home, |_| Ok(()), space, probe, &wanted);
        let said = said.map(drop).map_err(|stop| match stop {
            Stop::Refused(errno) => errno,
            _ => panic!("there is room to try"),
        });
        let asked = home.calls(Operation::SetXattr);
        assert_eq!(said, answer(&wanted, bytes_max), "seed {seed}, step {step}; {REPLAY}");
        untold += u64::from(said.is_ok() && asked == 0 && bytes(&wanted) > SURE_BYTES[0]);
        refused += u64::from(said.is_err());
        if said.is_ok() {
            has.insert(name, value);
        }
    }
    (untold, refused)
}

#[test]
fn what_is_remembered_of_the_home_is_what_it_would_say() {
    let number =
        |variable| std::env::var(variable).ok().map(|text| text.parse().expect("a number"));
    if let Some(seed) = number("HOLDFAST_SEED") {
        live(seed);
        return;
    }
    let seeds = SEEDS * number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1);
    let (mut untold, mut refused) = (0, 0);
    for seed in 0..seeds {
        let counts = live(seed);
        (untold, refused) = (untold + counts.0, refused + counts.1);
    }
    assert!(untold > seeds * 3 && refused > seeds * 5, "{untold} not asked, {refused} refused");
}

/// One that took just these, with nothing to spare.
fn just_taken(lengths: &[usize], bytes_max: usize) -> (Taken, Vec<Named>) {
    let home = FakeFiles::new(1);
    home.set_xattr_bytes_max(bytes_max);
    let held = home.make(Path::new("scratch"), Kind::Directory, 0o700, 0).expect("a new name");
    let named = |(number, length): (usize, &usize)| {
        (format!("user.{number}").into_bytes().into(), vec![0; *length].into())
    };
    let wanted: Vec<Named> = lengths.iter().enumerate().map(named).collect();
    for (name, value) in &wanted {
        held.set_xattr(name, value).expect("room");
    }
    (Taken::learn(&*held, &wanted), wanted)
}

#[test]
fn a_home_that_took_nothing_to_spare_tells_of_nothing_else() {
    let (taken, mut wanted) = just_taken(&[600, 700], 1400);
    assert!(taken.tells_of(&wanted));
    wanted[0].1 = vec![1; 600].into();
    assert!(taken.tells_of(&wanted), "another value of that length");
    wanted[0].1 = vec![1; 599].into();
    assert!(!taken.tells_of(&wanted), "another order may be taken for it");
}

#[test]
fn a_home_that_took_spare_ones_tells_of_so_many_more() {
    let (taken, mut wanted) = just_taken(&[50; 20], 4000);
    let more = taken.spares;
    assert!(more > 0 && more <= 20 && taken.tells_of(&wanted[3..]));
    wanted.extend(
        (0..more).map(|at| (format!("user.a{at}").into_bytes().into(), vec![0; 40].into())),
    );
    assert!(taken.tells_of(&wanted));
    wanted.push((b"user.b"[..].into(), vec![0; 40].into()));
    assert!(!taken.tells_of(&wanted), "one more than it took");
    wanted.truncate(20);
    wanted[7].1 = vec![0; 60].into();
    assert!(!taken.tells_of(&wanted), "longer than any");
}

/// The cleaner asks on the same inode as those who set attributes: each gets the answer that it
/// would get alone.
#[test]
fn who_asks_while_another_does_is_answered_for_its_own_attributes() {
    const ROUNDS: u64 = 150;
    let (gate, home) = (Gate::default(), home(1400));
    let named = |who: &str, number: u64| -> Vec<Named> {
        let name = |part| format!("user.{who}-{number}-{part}").into_bytes().into();
        (0..4).map(|part| (name(part), vec![7; 250 + number as usize % 60].into())).collect()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..ROUNDS {
                let wanted = named("cleaner", number);
                let given: Vec<_> = wanted.iter().map(|(name, value)| (&**name, value)).collect();
                gate.is_taken(&home, &given).unwrap_or_else(|error| panic!("{number}: {error}"));
            }
        });
        scope.spawn(|| {
            let probe = || (probe_name(b"user."), sure_values());
            for number in 0..ROUNDS {
                let wanted = named("program", number);
                assert!(
                    gate.admit(&home, |_| Ok(()), b"user.", probe, &wanted).is_ok(),
                    "{number}"
                );
            }
        });
    });
}

#[test]
fn what_is_tried_of_a_namespace_is_made_for_the_first_who_asks_and_for_no_other() {
    let (gate, home) = (Gate::default(), home(4096));
    let made = Cell::new(0);
    let probe = || {
        made.set(made.get() + 1);
        (probe_name(b"user."), sure_values())
    };
    for number in 0..5 {
        let wanted = [(Box::from(&b"user.one"[..]), Value::from([number]))];
        assert!(gate.admit(&home, |_| Ok(()), b"user.", probe, &wanted).is_ok());
        assert_eq!(made.get(), 1, "asked {number} times before");
    }
}
