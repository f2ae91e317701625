//! Homes whose file system denies, or does not keep, a part of what programs do: that is refused
//! when it is done, or the home is refused as a whole. Nothing is told otherwise and stuck later.

use crate::block::Loop;
use crate::fixture::{Fixture, NAME};
use crate::refusals::done;
use holdfast_io::fake::Random;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is denied, or changed on the way, though the home can be a volume's.
const DENIED: [&[&str]; 6] = [
    &["--chown-ignore"],
    &["--chgrp-ignore"],
    &["--xattr-none"],
    &["--hide-hard-links"],
    &["--block-devices-as-files"],
    &["--create-with-perms=u+rwx"],
];
/// Homes that are no volume's, and what is told of them.
const UNFIT: [(&str, &str); 9] = [
    ("--chown-deny", "refuses"),
    ("--chgrp-deny", "refuses"),
    ("--uid-offset=1000", "refuses"),
    ("--chmod-ignore", "permissions"),
    ("--chmod-deny", "refuses"),
    ("--chmod-filter=o-x", "permissions"),
    ("--perms=0644,a+X", "permissions"),
    ("--rename-deny", "refuses"),
    ("--delete-deny", "refuses"),
];
const STEPS: u64 = 60;

/// A volume that could have what bindfs shows of a directory as its home; none where there is no
/// bindfs.
fn on_bindfs(options: &[&str]) -> Option<Fixture> {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("backing")).unwrap();
    let mut command = Command::new("bindfs");
    let shown = command.args(options).arg(fixture.path("backing")).arg(fixture.home()).status();
    if !shown.is_ok_and(|status| status.success()) {
        println!("no bindfs here: this is not tested");
        return None;
    }
    Some(fixture)
}

/// One command of a shell, which may well fail.
fn step(random: &mut Random) -> String {
    let mut any = |of: &[&str]| of[random.below(of.len() as u64) as usize].to_owned();
    let (name, other) = (any(&["a", "b", "c", "d", "d/x", "d/y"]), any(&["a", "b", "d/z", "e"]));
    let user = any(&["0", "1", "1000", "2000"]);
    match any(&["new", "new", "as", "own", "own", "mode", "time", "link", "node", "mv", "rest"]) {
        it if it == "new" => any(&[
            &format!("printf xyz >{name}"),
            &format!("mkdir {name}"),
            &format!("ln -s there {name}"),
        ]),
        it if it == "as" => {
            format!("setpriv --reuid={user} --regid={user} --clear-groups touch {name}")
        }
        it if it == "own" => {
            let owner = any(&[&format!("{user}:{user}"), &user, &format!(":{user}")]);
            format!("chown -h {owner} {name}")
        }
        it if it == "mode" => format!("chmod {} {name}", any(&["4755", "600", "1777", "2770"])),
        it if it == "time" => format!("touch -h -d @{} {name}", any(&["1", "1234567890.5"])),
        it if it == "link" => any(&[
            &format!("ln {name} {other}"),
            &format!("ln -s $(printf %1500s x | tr ' ' x) {name}"),
        ]),
        it if it == "node" => any(&[
            &format!("mkfifo {name}"),
            &format!("mknod {name} c 1 3"),
            &format!("mknod {name} b 7 0"),
            &format!("python3 -c 'import socket; socket.socket(1).bind(\"{name}\")'"),
        ]),
        it if it == "mv" => format!("mv -T {name} {other}"),
        _ => any(&[
            &format!("rm -rf {name}"),
            &format!("python3 -c 'import os; os.setxattr(\"{name}\", \"user.a\", b\"b\")'"),
        ]),
    }
}

/// Everything that is told of a tree.
fn listed(tree: &Path) -> String {
    let told = "find . -mindepth 1 -name .holdfast -prune -o -mindepth 1 -type d \
        -printf '%P %m %U %G %T@\\n' -o -printf '%P %y %m %U %G %s %T@ %l\\n' | sort";
    done(tree, told).1
}

/// Changes drawn from a seed, a front end that dies, and the home afterwards.
fn live(fixture: &mut Fixture, seed: u64) {
    let mut random = Random::new(seed);
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    done(&fixture.mount(), "chmod 1777 .; mkdir -m 1777 d");
    let mut script = String::new();
    for _ in 0..STEPS {
        writeln!(script, "{}", step(&mut random)).unwrap();
    }
    let (before, after) = script.split_at(script[..script.len() / 2].rfind('\n').unwrap() + 1);
    done(&fixture.mount(), before);
    fixture.replace_front_end();
    done(&fixture.mount(), after);
    let told = listed(&fixture.mount());
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(listed(&fixture.home()), told, "seed {seed}\n{script}");
}

#[test]
fn what_a_home_denies_is_refused_when_it_is_done() {
    for seed in 0..DENIED.len() as u64 {
        let options = DENIED[seed as usize];
        println!("seed {seed}: {options:?}");
        let Some(mut fixture) = on_bindfs(options) else { return };
        live(&mut fixture, seed);
    }
}

#[test]
fn a_home_that_does_not_keep_what_every_volume_has_is_refused() {
    for (option, word) in UNFIT {
        println!("{option}");
        let Some(mut fixture) = on_bindfs(&[option]) else { return };
        let refused = fixture.holdfast(&["volume", "make", NAME]);
        refused.expect(2, &["cannot be the home of a volume", word, "name a home on ext4"]);
        // As it says.
        fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{:?}", fixture.path("it")));
        fs::create_dir(fixture.path("it")).unwrap();
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fixture.serve();
        assert_eq!(fixture.stop(), Some(0), "{option}");
    }
}

#[test]
fn a_home_that_was_moved_to_where_it_cannot_be_is_refused_before_anything_comes_home() {
    let Some(mut fixture) = on_bindfs(&["--chmod-ignore"]) else { return };
    let (shown, good) = (fixture.home(), fixture.path("good"));
    let name = |home: &Path| format!("home = {home:?}");
    fs::create_dir(&good).unwrap();
    fixture.reconfigure(&name(&shown), &name(&good));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.configure(&fixture.config_text());
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded();
    let told = fixture.try_to_serve().expect("the home is refused").err;
    assert!(told.contains("the home cannot be a volume's"), "{told}");
    assert!(told.contains("permissions") && told.contains("name a home on ext4"), "{told}");
    fixture.reconfigure(&name(&shown), &name(&good));
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded();
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0));
}

/// What the kernel shows as files is of many kinds, and no list has them all.
#[test]
fn a_home_in_which_nothing_can_be_made_is_refused_before_a_log_is_made() {
    for kind in ["proc", "sysfs", "debugfs", "securityfs", "cgroup2", "devpts", "mqueue"] {
        let fixture = Fixture::new();
        let mut command = Command::new("mount");
        command.args(["-t", kind, "none"]).arg(fixture.home()).stderr(Stdio::null());
        if !command.status().unwrap().success() {
            println!("no {kind} here: it is not tested");
            continue;
        }
        let refused = fixture.holdfast(&["volume", "make", NAME]);
        refused.expect(2, &["cannot be the home of a volume", "name a home on ext4"]);
        assert!(!fixture.log().exists(), "{kind}");
        assert!(!fixture.home().join(".holdfast").exists(), "{kind}");
        fixture.take_mounts_away();
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
    }
}

/// A home that counts each further name of a file as an inode.
#[test]
fn a_home_that_has_no_inodes_left_gets_no_further_names_either() {
    let mut fixture = Fixture::new();
    let (home, options) = (fixture.home(), "size=20m,nr_inodes=200");
    let mut command = Command::new("mount");
    assert!(
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&home).status().unwrap().success()
    );
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let script = "touch f; for n in $(seq 300); do ln f l$n 2>&1; done | tail -1; ls | wc -l";
    let (_, told, _) = done(&fixture.mount(), script);
    assert!(told.contains("No space left on device"), "{told}");
    fixture.replace_front_end();
    let told = listed(&fixture.mount());
    assert!(told.lines().count() > 150, "{told}");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(listed(&home), told);
}

/// A home that counts extended attributes as inodes, by their bytes.
#[test]
fn a_home_that_has_no_inodes_left_gets_no_further_attributes_either() {
    let mut fixture = Fixture::new();
    let (home, options) = (fixture.home(), "size=20m,nr_inodes=60");
    let mut command = Command::new("mount");
    assert!(
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&home).status().unwrap().success()
    );
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let script = "python3 -c '
import os
for n in range(120):
    try:
        open(f\"f{n % 40}\", \"a\").close()
        os.setxattr(f\"f{n % 40}\", f\"user.k{n // 40}\", b\"v\" * 4000)
    except OSError as error:
        print(error.strerror)
' | sort -u";
    let (_, told, _) = done(&fixture.mount(), script);
    assert_eq!(told, "No space left on device\n");
    let count = "for f in *; do echo $f; python3 -c \
        'import os, sys; print(os.listxattr(sys.argv[1]))' $f; done";
    let seen = done(&fixture.mount(), count);
    fixture.replace_front_end();
    assert_eq!(done(&fixture.mount(), count), seen);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(done(&home, count), seen);
}

/// A home with blocks of 1 KiB, which a symbolic link must fit in, and all attributes of a file.
#[test]
fn what_is_longer_than_a_block_of_the_home_is_refused_as_there() {
    let mut fixture = Fixture::new();
    let (image, point) = (fixture.path("image"), fixture.path("small"));
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-b", "1024"]).arg(&image).status();
    assert!(made.unwrap().success());
    let mut device = Loop::over(&image);
    device.mount(point.clone());
    let (home, raw) = (point.join("home"), point.join("raw"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&raw).unwrap();
    fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let set = "python3 -c 'import os, sys; n = int(sys.argv[1]); \
        os.setxattr(\"f\", \"user.a\", b\"x\" * n); \
        print(len(os.getxattr(\"f\", \"user.a\")))'";
    let script = format!(
        "for n in 10 1000 1023 1024 1500 4000; do ln -s $(printf %${{n}}s x | tr ' ' x) l$n \
        2>/dev/null; echo $?; done; mkfifo p; echo $?; mknod c c 1 3; echo $?; stat -c '%F %s' *; \
        touch f; for n in 1 100 700 900 1100; do {set} $n 2>&1 | tail -1; done"
    );
    let script = script.as_str();
    assert_eq!(done(&fixture.mount(), script), done(&raw, script));
    assert_eq!(fixture.stop(), Some(0));
    let list = "stat -c '%n %F %s' *";
    assert_eq!(done(&home, list), done(&raw, list));
}

/// A home on overlayfs, with directories of its lower layer.
#[test]
fn a_directory_of_a_lower_layer_is_moved_as_there() {
    let mut fixture = Fixture::new();
    let layers = ["lower", "upper", "work", "shown"].map(|name| fixture.path(name));
    layers.iter().for_each(|layer| fs::create_dir(layer).unwrap());
    let [lower, upper, work, shown] = layers;
    for tree in ["home/old/deep", "raw/old/deep"] {
        fs::create_dir_all(lower.join(tree)).unwrap();
        fs::write(lower.join(tree).join("file"), "as it was").unwrap();
    }
    let options = format!(
        "redirect_dir=off,lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let mut mount = Command::new("mount");
    mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(&shown);
    if !mount.status().unwrap().success() {
        println!("no overlayfs here: this is not tested");
        return;
    }
    let (home, raw) = (shown.join("home"), shown.join("raw"));
    fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let rename = |from: &str, to: &str| {
        format!("python3 -c 'import os; os.rename(\"{from}\", \"{to}\")' 2>&1 | tail -1; ")
    };
    let script = [
        rename("old", "new"),
        rename("old/deep", "new"),
        "mkdir made; touch made/f; ".into(),
        rename("made", "moved"),
        rename("moved", "old/moved"),
        "mknod w c 0 0; echo $?; echo more >>old/deep/file; find . -name .holdfast -prune -o \
         \\( -type d -printf '%P %y\\n' -o -printf '%P %y %s\\n' \\) | sort"
            .into(),
    ]
    .concat();
    let expected = done(&raw, &script);
    println!("{expected:?}");
    assert_eq!(done(&fixture.mount(), &script), expected);
    assert_eq!(fixture.stop(), Some(0));
    let list = "find . -printf '%P %y %s\\n' | sort";
    assert_eq!(done(&home, list), done(&raw, list));
    rustix::mount::unmount(&shown, rustix::mount::UnmountFlags::DETACH).unwrap();
}
