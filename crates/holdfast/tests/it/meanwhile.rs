//! Programs that open a file of the home while the volume is being attached.

use crate::fixture::{Fixture, NAME};
use crate::seeds::{Random, for_seeds};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Whoever owns the home.
const OWNER: u32 = 1001;

/// Opens a file after a while as this user, says on which device it is, and keeps it open.
const OPENS: &str = "\
import os, sys, time
path, uid, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
os.setgid(uid)
os.setuid(uid)
time.sleep(pause)
try:
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    print(os.fstat(file).st_dev)
except OSError as error:
    print('refused', error)
sys.stdout.flush()
sys.stdin.read()
";

fn opens(path: &Path, uid: u32, pause: Duration) -> Child {
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", OPENS]).arg(path).arg(uid.to_string());
    python.arg(pause.as_secs_f64().to_string()).current_dir("/");
    python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// What it said, once it has.
fn said(python: &mut Child) -> String {
    let mut said = Vec::new();
    let mut byte = [0];
    let out = python.stdout.as_mut().unwrap();
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        said.push(byte[0]);
    }
    String::from_utf8(said).unwrap()
}

/// One attachment with a program that comes at a random moment of it. Says whether it was refused.
fn attach_meanwhile(fixture: &Fixture, mount: &Path, uid: u32, random: &mut Random) -> bool {
    let pause = Duration::from_micros(random.below(200_000));
    let mut python = opens(&fixture.home().join("f"), uid, pause);
    let ended = fixture.holdfast(&["mount", NAME]);
    let device = said(&mut python);
    match ended.code {
        Some(0) => {
            let volume = fs::metadata(mount).unwrap().dev().to_string();
            let is_beside = device != volume && !device.starts_with("refused");
            assert!(!is_beside, "{uid} has a file of the bare home, and it is mounted: {pause:?}");
        }
        _ => ended.expect(5, &["is in use by python3"]),
    }
    drop(python.stdin.take());
    assert!(python.wait().unwrap().success());
    if ended.code != Some(0) {
        let mode = fs::metadata(fixture.home()).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o755, "nobody is kept from a home that is not attached");
        fixture.holdfast(&["mount", NAME]).succeeded();
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    ended.code != Some(0)
}

#[test]
fn nobody_stays_in_the_bare_home_who_comes_while_it_is_attached() {
    for_seeds("nobody_stays_in_the_bare_home_who_comes_while", 4, |seed| {
        let mut random = Random::new(seed);
        let mut fixture = Fixture::new();
        // Where the volume is over its home, not even root comes to the home any more.
        let (mount, uid) = match seed % 2 {
            0 => (fixture.mount(), OWNER),
            _ => (fixture.home(), 0),
        };
        let shown = format!("\nmount = {:?}", fixture.mount());
        fixture.reconfigure(&shown, &format!("\nmount = {mount:?}"));
        fs::set_permissions(fixture.path(""), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(fixture.home(), Permissions::from_mode(0o755)).unwrap();
        chown(fixture.home(), Some(OWNER), None).unwrap();
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fixture.serve();
        fixture.holdfast(&["umount", NAME]).succeeded();
        let mut attach = || attach_meanwhile(&fixture, &mount, uid, &mut random);
        let refused = (0..12).filter(|_| attach()).count();
        println!("seed {seed}: {refused} of 12 refused");
        assert_eq!(fixture.stop(), Some(0));
    });
}
