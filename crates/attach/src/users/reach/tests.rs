//! Whom the kernel lets into a home is who could have got at it.

use super::*;
use crate::users::Place;
use rustix::fs::{Mode, OFlags, chmod, chown, open};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs;
use std::path::Path;

/// Users and groups that directories belong to, and processes have.
const IDS: [u32; 3] = [40_001, 40_002, 40_003];

/// Numbers that a seed repeats: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn id(&mut self) -> u32 {
        IDS[self.below(IDS.len() as u64) as usize]
    }
}

/// Whether the kernel lets somebody open a home, or stand in it. Only a thread becomes him.
fn kernel_lets(who: &Who, home: &Path) -> bool {
    std::thread::scope(|scope| {
        let become_him = || {
            let groups: Vec<Gid> = who.groups.iter().map(|it| Gid::from_raw(*it)).collect();
            set_thread_groups(&groups).unwrap();
            let (user, group) = (Uid::from_raw(who.users[0]), groups[0]);
            set_thread_res_gid(Some(group), Some(group), Some(group)).unwrap();
            set_thread_res_uid(Some(user), Some(user), Some(user)).unwrap();
            let opens = |path: &Path, flags| open(path, flags, Mode::empty()).is_ok();
            opens(home, OFlags::RDONLY) || opens(&home.join("."), OFlags::PATH)
        };
        scope.spawn(become_him).join().unwrap()
    })
}

#[test]
fn whom_the_kernel_lets_into_a_home_could_have_got_at_it() {
    let given = std::env::var("HOLDFAST_SEED").ok().and_then(|text| text.parse().ok());
    let (mut let_in, mut kept_out) = (0, 0);
    for seed in given.map_or(0..400, |seed: u64| seed..seed + 1) {
        let root = tempfile::tempdir().unwrap();
        chmod(root.path(), Mode::from_raw_mode(0o755)).unwrap();
        let (mut numbers, mut home) = (Numbers(seed), root.path().canonicalize().unwrap());
        for name in ["a", "b", "home"] {
            home.push(name);
            fs::create_dir(&home).unwrap();
        }
        for at in home.ancestors().take(3) {
            let (user, group) = (numbers.id(), numbers.id());
            chown(at, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).unwrap();
            let closed = [0o777, 0o770, 0o707, 0o700][numbers.below(4) as usize];
            let mode = numbers.below(0o1000) as u32 & closed | 0o111 & closed;
            chmod(at, Mode::from_raw_mode(mode)).unwrap();
        }
        let (users, groups) = (vec![numbers.id()], vec![numbers.id(), numbers.id()]);
        let who = Who { users, groups, passes_everywhere: false };
        let lets = kernel_lets(&who, &home);
        let reach = Place::at(&home).reach();
        let replay = format!("HOLDFAST_SEED={seed} cargo test -p holdfast --bin holdfast reach");
        assert!(!lets || reach.is_open_to(&who), "{who:?} {reach:?}; {replay}");
        let_in += u32::from(lets);
        kept_out += u32::from(!reach.is_open_to(&who));
    }
    assert!(given.is_some() || let_in > 20 && kept_out > 20, "{let_in} in, {kept_out} out");
}

#[test]
fn a_process_is_known_by_its_users_groups_and_privileges() {
    let own = Who::is(std::process::id()).unwrap();
    assert!(own.users.contains(&0) && own.groups.contains(&0), "{own:?}");
    assert!(own.passes_everywhere);
    assert!(Who::is(u32::MAX).is_none());
}
