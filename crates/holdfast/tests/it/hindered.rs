//! What a user did to his own files in the home before it was barred keeps nobody else waiting.

use crate::fixture::{Ended, Fixture, NAME, kill};
use rustix::process::Signal;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const BUSY: i32 = 26;
const AGAIN: i32 = 11;

/// Takes leases to write on files, tells it, and keeps them for as long as it lives.
const LEASE: &str = "import fcntl, os, signal, sys, time\n\
    signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
    for path in sys.argv[1:]:\n    \
        fcntl.fcntl(os.open(path, os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
    print('leased', flush=True)\n\
    time.sleep(600)\n";

/// A process that is ended with this.
struct Running(Child);

impl Running {
    fn program(path: &Path) -> io::Result<Running> {
        Command::new(path).arg("600").spawn().map(Running)
    }

    fn leases(paths: &[PathBuf]) -> Option<Running> {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", LEASE]).args(paths).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut told = [0; 7];
        let out = child.stdout.as_mut().unwrap();
        let is_leased = io::Read::read_exact(out, &mut told).is_ok();
        let running = Running(child);
        is_leased.then_some(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A file in the home that has another name outside.
fn linked(fixture: &Fixture, name: &str, from: &str) -> PathBuf {
    let outside = fixture.path(&format!("outside-{name}"));
    fs::copy(from, fixture.home().join(name)).unwrap();
    fs::hard_link(fixture.home().join(name), &outside).unwrap();
    outside
}

fn append(path: &Path) -> Result<(), Option<i32>> {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"more").map_err(|error| error.raw_os_error())
}

/// Everything that is acknowledged comes home, whoever hinders what.
fn comes_home(fixture: &Fixture) {
    let settled = || {
        let volume = fixture.status();
        let home = fixture.home().join("beside");
        fs::read(&home).is_ok_and(|found| found == b"beside") && volume["stuck"].is_null()
    };
    fs::write(fixture.mount().join("beside"), "beside").unwrap();
    crate::fixture::wait_until(settled, || format!("{}", fixture.status()));
    fs::remove_file(fixture.mount().join("beside")).unwrap();
}

#[test]
fn who_runs_his_program_by_another_name_is_told_so_by_his_write_and_keeps_nobody_waiting() {
    let mut fixture = Fixture::made();
    let outside = linked(&fixture, "program", "/bin/sleep");
    fixture.serve();
    let program = fixture.mount().join("program");
    let running = Running::program(&outside).unwrap();
    assert_eq!(append(&program), Err(Some(BUSY)));
    let cut = fs::OpenOptions::new().write(true).open(&program).unwrap().set_len(1);
    assert_eq!(cut.unwrap_err().raw_os_error(), Some(BUSY));
    comes_home(&fixture);
    drop(running);
    assert_eq!(append(&program), Ok(()));
    let started = Running::program(&outside);
    comes_home(&fixture);
    drop(started);
    // What is written until then nobody can run, a front end that takes over included.
    assert_eq!(append(&program), Ok(()));
    kill(fixture.front_end(), Signal::KILL);
    comes_home(&fixture);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(fs::read(fixture.home().join("program")).unwrap().ends_with(b"moremore"));
}

#[test]
fn who_has_a_lease_on_his_file_keeps_nobody_waiting() {
    let mut fixture = Fixture::made();
    let names = ["a", "b", "c"];
    let outside = names.map(|name| linked(&fixture, name, "/etc/passwd"));
    fixture.serve();
    let Some(leases) = Running::leases(&outside) else {
        println!("there are no leases here");
        return;
    };
    let hindered = names.map(|name| fixture.mount().join(name));
    for path in &hindered {
        assert_eq!(fs::read(path).unwrap_err().raw_os_error(), Some(AGAIN), "{path:?}");
        assert_eq!(append(path), Err(Some(AGAIN)), "{path:?}");
    }
    let mode =
        |path| fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600));
    hindered.iter().for_each(|path| mode(path).unwrap());
    comes_home(&fixture);
    drop(leases);
    hindered.iter().for_each(|path| assert_eq!(append(path), Ok(())));
    // Nobody can have one on what is written, until it is at home.
    let _maybe = Running::leases(&outside);
    comes_home(&fixture);
    fixture.holdfast(&["umount", NAME]).succeeded();
}

/// A capability of a file that a stranger asks to be given to its owner.
const STRANGER: &str = "import os, struct, sys\n\
    d = sys.argv[1]\n\
    os.setgroups([])\n\
    cap = struct.pack('<5I', 0x02000001, 1 << 10, 0, 0, 0)\n\
    def become(n):\n    \
        os.setresgid(n, n, 0); os.setresuid(n, n, 0)\n\
    for mode in (0o755, 0o4755, 0o2755, 0o2745, 0o6755):\n    \
        for who in ((-1, -1), (0, -1), (-1, 0), (0, 0)):\n        \
            p = d + '/f%o%d%d' % (mode, who[0], who[1])\n        \
            open(p, 'w').write('x'); os.chmod(p, mode)\n        \
            os.setxattr(p, 'security.capability', cap)\n        \
            become(61001)\n        \
            try: os.chown(p, *who)\n        \
            except PermissionError: pass\n        \
            os.setresuid(0, 0, 0); os.setresgid(0, 0, 0)\n        \
            print(p[len(d):], '%o' % os.stat(p).st_mode, os.listxattr(p))\n";

#[test]
fn a_strangers_change_of_owner_takes_no_capability_away_that_it_leaves_elsewhere() {
    let mut fixture = Fixture::made();
    let bare = fixture.path("bare");
    fs::create_dir(&bare).unwrap();
    for directory in [fixture.path(""), bare.clone(), fixture.home()] {
        fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    fixture.serve();
    let told = |directory: &Path| {
        let mut python = Command::new("/usr/bin/python3");
        Ended::of(python.args(["-c", STRANGER]).arg(directory).output().unwrap()).succeeded().out
    };
    assert_eq!(told(&fixture.mount()), told(&bare));
}

/// A stranger links a file whose list of access has just let its group run it.
const LINKER: &str = "import os, struct, sys\n\
    d = sys.argv[1]; p = d + '/f'\n\
    os.chmod(d, 0o777); os.setgroups([])\n\
    fd = os.open(p, os.O_CREAT | os.O_WRONLY, 0o666)\n\
    os.fchown(fd, 61003, 61003); os.fchmod(fd, 0o2666); os.close(fd)\n\
    os.setresgid(61003, 61003, 0); os.setresuid(61003, 61003, 0)\n\
    acl = [(1, 6), (4, 6), (16, 7), (32, 6)]\n\
    acl = b''.join(struct.pack('<HHI', *e, 0xffffffff) for e in acl)\n\
    os.setxattr(p, 'system.posix_acl_access', struct.pack('<I', 2) + acl)\n\
    os.setresuid(0, 0, 0); os.setresgid(0, 0, 0)\n\
    os.setresgid(61001, 61001, 0); os.setresuid(61001, 61001, 0)\n\
    try: os.link(p, d + '/g'); print('linked')\n\
    except PermissionError: print('refused')\n";

#[test]
fn a_stranger_links_nothing_that_a_list_has_just_let_run_as_its_group() {
    let mut fixture = Fixture::made();
    let bare = fixture.path("bare");
    fs::create_dir(&bare).unwrap();
    let of = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(fixture.path(""), of(0o755)).unwrap();
    fixture.serve();
    let told = |directory: &Path| {
        let mut python = Command::new("/usr/bin/python3");
        Ended::of(python.args(["-c", LINKER]).arg(directory).output().unwrap()).succeeded().out
    };
    assert_eq!(told(&fixture.mount()), told(&bare));
}
