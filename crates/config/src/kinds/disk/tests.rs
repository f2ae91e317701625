//! Disks in the configuration: what is filled in, what is refused and in which words.

use super::*;
use crate::config::Config;
use std::path::Path;

#[test]
fn a_disk_says_its_medium_and_size_and_has_a_default_for_the_rest() {
    let text = "[disk.ram]\nmemory = { medium = \"shm\" }\nsize = \"3MiB\"\nmust_survive = \
                [\"process\"]\n";
    let config = Config::parse(text).unwrap();
    let disk = config.disk("ram").unwrap();
    assert_eq!(disk.size.0, 3 << 20);
    assert_eq!(disk.medium().path().unwrap(), Path::new("/dev/shm/holdfast/disk-ram"));
    let verdict = disk.verdict_on("disk ram", Memory::Shm, PowerSource::None).unwrap();
    assert_eq!((verdict.class, &*verdict.survives), (Class::Memory, &[Failure::Process][..]));
    let refused = |what: &str, with: &str| Config::parse(&text.replace(what, with)).unwrap_err();
    for (what, with, named) in [
        ("\"3MiB\"", "\"1000B\"", "size"),
        ("\"3MiB\"", "\"0B\"", "size"),
        ("\"shm\"", "\"private\"", "memory.medium"),
        ("\"shm\"", "\"pmem\"", "memory.path"),
        ("\"shm\"", "\"shm\", size = \"3MiB\"", "size"),
        ("must_survive", "allow_uids = []\nmust_survive", "allow_uids"),
        ("must_survive", "clients_max = 0\nmust_survive", "clients_max"),
        ("must_survive", "vhost-user = \"run/x\"\nmust_survive", "vhost-user"),
        ("must_survive", "mount = \"srv/x\"\nmust_survive", "mount"),
        ("must_survive", "mount = \"/x\"\nallow_uids = [4000000]\nmust_survive", "front end"),
        ("must_survive", "nbd = [\"unix:/x\"]\nallow_uids = [4000000]\nmust_survive", "front end"),
    ] {
        let why = refused(what, with);
        assert!(why.contains(named), "{with}: {why}");
    }
}

#[test]
fn a_disk_of_its_front_end_alone_has_one_and_knows_no_clients() {
    let text = "[disk.ram]\nmemory = { medium = \"shm\" }\nsize = \"3MiB\"\n";
    assert_eq!(Config::parse(text).unwrap().disk("ram").unwrap().way, Way::Queue);
    let parse = |lines: &str| Config::parse(&format!("{text}way = \"direct\"\n{lines}\n"));
    for front_end in ["nbd = [\"unix:/x\"]", "vhost-user = \"/x\"", "mount = \"/x\"", "ublk = 3"] {
        parse(front_end).unwrap();
    }
    let alone = parse("mount = \"/x\"").unwrap();
    assert_eq!((alone.serves_programs(), alone.served_disks().count()), (false, 0));
    for (lines, words) in [
        ("", &["[disk.ram]", "front end", "neither mount nor nbd nor vhost-user nor ublk"][..]),
        ("mount = \"/x\"\nallow_uids = [0]", &["allow_uids", "leave it out", "\"queue\""]),
        ("mount = \"/x\"\nclients_max = 1", &["clients_max", "leave it out", "\"queue\""]),
        ("mount = \"/x\"\nway = \"queue\"", &["duplicate key"]),
    ] {
        let why = parse(lines).unwrap_err();
        words.iter().for_each(|word| assert!(why.contains(word), "{lines}: {why}"));
    }
    let why = Config::parse(&format!("{text}way = \"Direct\"")).unwrap_err();
    assert!(why.contains("`direct`"), "{why}");
}

#[test]
fn a_disk_has_sockets_of_its_own_at_which_users_find_it() {
    let text = "[disk.a]\nsize = \"3MiB\"\nmemory = { medium = \"shm\" }\n\
                nbd = [\"tcp:127.0.0.1:10809\"]\nvhost-user = \"/run/a\"\n";
    let config = Config::parse(text).unwrap();
    let sockets = config.disk("a").unwrap().sockets();
    let protocols: Vec<_> = sockets.into_iter().map(|(protocol, _)| protocol).collect();
    assert_eq!(protocols, [Protocol::Nbd, Protocol::VhostUser]);
    let why = Config::parse(&format!("{text}{}", text.replace("disk.a", "disk.b"))).unwrap_err();
    assert!(why.contains("[disk.b]") && why.contains("[disk.a]"), "{why}");
    let port = text.replace("disk.a", "disk.b").replace("/run/a", "/run/b");
    let why = Config::parse(&format!("{text}{port}")).unwrap_err();
    assert!(why.contains("[disk.b] nbd") && why.contains("[disk.a] nbd"), "{why}");
}

#[test]
fn two_disks_cannot_be_mounted_at_one_place() {
    let one = |name| {
        let memory = "memory = { medium = \"shm\" }\nmount = \"/srv/x\"";
        format!("[disk.{name}]\nsize = \"3MiB\"\n{memory}\n")
    };
    let why = Config::parse(&(one("a") + &one("b"))).unwrap_err();
    assert!(why.contains("[disk.b] mount") && why.contains("[disk.a] mount"), "{why}");
}

#[test]
fn two_disks_cannot_have_one_region() {
    let one = |name| {
        let memory = "memory = { medium = \"shm\", path = \"/dev/shm/x\" }";
        format!("[disk.{name}]\nsize = \"3MiB\"\n{memory}\n")
    };
    let why = Config::parse(&(one("a") + &one("b"))).unwrap_err();
    assert!(why.contains("[disk.b] memory.path") && why.contains("[disk.a]"), "{why}");
}
