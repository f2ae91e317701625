//! The configuration: what is accepted, what is filled in, what is refused and in which words.

use super::*;
use crate::claims::{Class, Failure, Memory};
use crate::sizes::Size;
use crate::sockets::Protocol;
use crate::values::Cache;

const WHOLE: &str = r#"
[keeper]
socket = "/run/holdfast/control.sock"

[volume.pgwal]
home = "/var/lib/postgresql/15/main/pg_wal"
mount = "/srv/pgwal"
log = "/var/lib/holdfast/pgwal"
memory = { medium = "shm", size = "256MiB", path = "/dev/shm/holdfast/pgwal" }
segment = "16MiB"
must_survive = ["process"]
write_through = false
cache = "write-through"
"#;

const SHORT: &str = r#"
[volume.pgwal]
home = "/var/lib/postgresql/15/main/pg_wal"
mount = "/srv/pgwal"
log = "/var/lib/holdfast/pgwal"
memory = { medium = "shm", size = "256MiB" }
must_survive = ["process"]
"#;

fn refusal(line: &str, instead: &str) -> String {
    assert!(WHOLE.contains(line), "{line}");
    Config::parse(&WHOLE.replace(line, instead)).unwrap_err()
}

#[test]
fn what_is_left_out_is_filled_in() {
    let but_for_cache = WHOLE.replace("cache = \"write-through\"", "");
    assert_eq!(Config::parse(&but_for_cache), Config::parse(SHORT));
    let cache = |text| Config::parse(text).unwrap().volume("pgwal").unwrap().cache();
    assert_eq!(cache(WHOLE), cache(SHORT));
}

#[test]
fn a_volume_that_does_not_say_must_survive_everything_this_version_knows() {
    let config = Config::parse(&SHORT.replace("must_survive = [\"process\"]", "")).unwrap();
    let volume = config.volume("pgwal").unwrap();
    assert_eq!(volume.must_survive, Failure::DEFAULT);
    assert_eq!(
        volume.verdict_on("pgwal", Memory::Shm, PowerSource::None).unwrap().class,
        Class::Disk
    );
}

#[test]
fn threads_suit_the_class_unless_the_file_says_how_many() {
    let threads = |text: &str| {
        let config = Config::parse(text).unwrap();
        let volume = config.volume("pgwal").unwrap();
        (volume.threads_for(Class::Memory), volume.threads_for(Class::Disk))
    };
    assert_eq!(threads(SHORT), (1, 8));
    assert_eq!(threads(&format!("{SHORT}threads = 3")), (3, 3));
}

#[test]
fn certificates_without_a_place_to_use_them_or_with_a_relative_path_are_refused() {
    let tls = |certificate: &str| {
        let tls = format!("nbd_tls = {{ certificate = \"{certificate}\", key = \"/k\" }}");
        disk("\"unix:/run/d\"")
            .replace("nbd = [\"unix:/run/d\"]", &format!("nbd = [\"unix:/run/d\"]\n{tls}"))
    };
    Config::parse(&tls("/c")).unwrap();
    let refused = |text: &str| Config::parse(text).unwrap_err().to_string();
    assert!(refused(&tls("c")).contains("nbd_tls.certificate"));
    let nowhere = tls("/c").replace("nbd = [\"unix:/run/d\"]\n", "mount = \"/srv/d\"\n");
    assert!(refused(&nowhere).contains("nbd_tls is set, but nbd is not"), "{}", refused(&nowhere));
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    for (line, instead, word) in [
        ("cache = \"write-through\"", "treads = 2", "treads"),
        ("[keeper]", "[keeper]\npwoer = \"none\"", "pwoer"),
        ("medium = \"shm\", size", "medium = \"shm\", bytes = 1, size", "bytes"),
        ("[keeper]", "[keper]", "keper"),
    ] {
        let why = refusal(line, instead);
        assert!(why.contains("unknown field") && why.contains(word), "{why}");
        assert!(why.contains("line "), "{why}");
    }
}

#[test]
fn every_bad_value_is_refused_by_its_key() {
    for (line, instead, word) in [
        ("size = \"256MiB\"", "size = \"256M\"", "256MiB"),
        ("size = \"256MiB\"", "size = \"200MiB\"", "memory.size"),
        ("segment = \"16MiB\"", "segment = \"17MiB\"", "segment"),
        ("segment = \"16MiB\"", "segment = \"256MiB\"", "half"),
        ("cache = \"write-through\"", "threads = 0", "threads"),
        ("home = \"/var/lib/postgresql/15/main/pg_wal\"", "home = \"pg_wal\"", "home"),
        ("log = \"/var/lib/holdfast/pgwal\"", "log = \"/srv/pgwal/log\"", "log"),
        ("cache = \"write-through\"", "cache = \"lots\"", "lots"),
        ("[\"process\"]", "[\"proces\"]", "proces"),
        ("[keeper]", "[power]\nfile = \"ups\"\n\n[keeper]", "[power]"),
        ("medium = \"shm\"", "medium = \"ram\"", "ram"),
        ("[volume.pgwal]", "[volume.PgWal]", "PgWal"),
    ] {
        let why = refusal(line, instead);
        assert!(why.contains(word), "{instead}: {why}");
    }
}

#[test]
fn a_medium_that_needs_a_path_says_so() {
    let why = Config::parse(&SHORT.replace("\"shm\"", "\"pmem\"")).unwrap_err();
    assert!(why.contains("memory.path"), "{why}");
    let why = Config::parse(&WHOLE.replace("\"shm\"", "\"private\"")).unwrap_err();
    assert!(why.contains("memory.path"), "{why}");
}

const CACHED: &str = "block_cache = { medium = \"shm\", size = \"1GiB\" }\n";

#[test]
fn a_block_cache_gets_a_place_by_the_name_of_its_volume() {
    let config = Config::parse(&format!("{SHORT}{CACHED}")).unwrap();
    let cache = config.volume("pgwal").unwrap().block_cache.clone().unwrap();
    assert_eq!(cache.path.as_deref(), Some(Path::new("/dev/shm/holdfast/cache-pgwal")));
    assert_eq!(cache.size, Size(1 << 30));
}

#[test]
fn a_block_cache_that_cannot_be_is_refused_by_its_key() {
    for (line, instead, words) in [
        ("size = \"1GiB\"", "size = \"1000KiB\"", ["block_cache.size", "multiple of 1MiB"]),
        ("size = \"1GiB\"", "size = \"0B\"", ["block_cache.size", "multiple of 1MiB"]),
        ("size = \"1GiB\"", "size = \"9000GiB\"", ["block_cache.size", "8192GiB"]),
        ("{ medium = \"shm\", size = \"1", "{ medium = \"private\", size = \"1", ["gone", "shm"]),
        (
            "{ medium = \"shm\", size = \"1",
            "{ medium = \"pmem\", size = \"1",
            ["block_cache.path", "pmem"],
        ),
        (
            "{ medium = \"shm\", size = \"2",
            "{ medium = \"private\", size = \"2",
            ["memory.medium", "shm"],
        ),
        (
            "size = \"1GiB\"",
            "size = \"1GiB\", path = \"/dev/shm/holdfast/pgwal\"",
            ["block_cache.path", "memory.path"],
        ),
    ] {
        let text = format!("{SHORT}{CACHED}");
        assert!(text.contains(line), "{line}");
        let why = Config::parse(&text.replacen(line, instead, 1)).unwrap_err();
        assert!(words.iter().all(|word| why.contains(word)), "{instead}: {why}");
    }
}

#[test]
fn two_volumes_never_share_a_directory() {
    let second = SHORT.replace("volume.pgwal", "volume.other");
    let why = Config::parse(&format!("{SHORT}{second}")).unwrap_err();
    assert!(why.contains("other") && why.contains("pgwal") && why.contains("home"), "{why}");
}

#[test]
fn asking_for_the_impossible_is_refused_by_the_claims() {
    let config = Config::parse(&SHORT.replace("\"process\"", "\"machine\"")).unwrap();
    let volume = config.volume("pgwal").unwrap();
    let problem = volume.verdict_on("pgwal", Memory::Shm, PowerSource::None).unwrap_err();
    assert_eq!(problem.exit, Exit::Claims);
    assert!(problem.why.contains("machine"), "{problem}");
}

#[test]
fn a_volume_survives_the_way_to_its_front_end() {
    let config = Config::parse(WHOLE).unwrap();
    let volume = config.volume("pgwal").unwrap();
    let text = serde_json::to_string(volume).unwrap();
    assert_eq!(&serde_json::from_str::<VolumeConfig>(&text).unwrap(), volume);
}

const SERVED: &str = r#"
[log.ledger]
log = "/var/lib/holdfast/ledger"
memory = { medium = "shm", size = "64MiB" }
must_survive = ["process"]
"#;

#[test]
fn a_served_log_gets_socket_region_users_and_numbers_that_suit() {
    let config = Config::parse(SERVED).unwrap();
    let log = config.log("ledger").unwrap();
    assert_eq!(config.server.socket, Path::new("/run/holdfast/server.sock"));
    assert_eq!(log.memory.path.as_deref(), Some(Path::new("/dev/shm/holdfast/log-ledger")));
    assert_eq!(log.allow_uids, [rustix::process::geteuid().as_raw()]);
    assert_eq!((log.clients_max, config.server.clients_max), (64, 64));
    let sizes = log.log_config();
    assert_eq!(
        (sizes.segment_bytes, sizes.segments, sizes.dirty_bytes_max),
        (16 << 20, 6, 64 << 20)
    );
}

#[test]
fn a_served_log_that_cannot_be_is_refused_by_name_and_key() {
    let refused = |line: &str, words: &[&str]| {
        let why = Config::parse(&format!("{SERVED}{line}\n")).unwrap_err();
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    };
    refused("allow_uids = []", &["[log.ledger]", "allow_uids"]);
    refused("clients_max = 0", &["[log.ledger]", "clients_max"]);
    refused("segment = \"64MiB\"", &["[log.ledger]", "segment"]);
    refused("home = \"/srv\"", &["unknown field", "home"]);
    refused("[server]\nclients_max = 5000", &["[server]", "clients_max"]);
    refused("[server]\nsocket = \"here\"", &["[server]", "socket"]);
}

#[test]
fn a_log_and_a_volume_do_not_share_a_directory() {
    let text = format!("{SHORT}{SERVED}").replace("holdfast/ledger", "holdfast/pgwal");
    let why = Config::parse(&text).unwrap_err();
    assert!(why.contains("[log.ledger] log") && why.contains("[volume.pgwal] log"), "{why}");
}

#[test]
fn nothing_lies_in_the_directory_of_a_log_or_a_store() {
    let table = "[table.bank]\nstore = \"/var/lib/holdfast/bank\"\nmust_survive = [\"process\"]\n\
                 memory = { medium = \"shm\", size = \"64MiB\" }\n";
    let whole = format!("{WHOLE}{SERVED}{table}");
    Config::parse(&whole).unwrap();
    let folders = ["/var/lib/holdfast/pgwal", "/var/lib/holdfast/ledger", "/var/lib/holdfast/bank"];
    let others = ["/dev/shm/holdfast/pgwal", "/srv/pgwal", "/run/holdfast/control.sock"];
    for (folder, other) in folders.iter().flat_map(|it| others.map(|other| (*it, other))) {
        let inside = format!("{folder}/region");
        let text = whole.replace(&format!("{other:?}"), &format!("{inside:?}"));
        assert_ne!(text, whole);
        let why = Config::parse(&text).unwrap_err();
        assert!(why.contains(&inside) && why.contains("inside"), "{folder}, {other}: {why}");
    }
}

#[test]
fn a_stand_by_without_a_fence_is_refused() {
    let section = |fence: &str| {
        format!("{SHORT}\n[standby]\nhost = \"a\"\nfolder = \"/shared\"\nfence = {fence}\n")
    };
    let config = Config::parse(&section("[\"/sbin/fence\", \"--off\"]")).unwrap();
    assert_eq!(config.standby.unwrap().beat_every() * 10, std::time::Duration::from_secs(10));
    for (fence, word) in [("[]", "fence is empty"), ("[\"fence\"]", "not an absolute path")] {
        let why = Config::parse(&section(fence)).unwrap_err();
        assert!(why.contains("[standby]") && why.contains(word), "{why}");
    }
    let without = section("[]").replace("fence = []\n", "");
    assert!(Config::parse(&without).unwrap_err().contains("fence"));
}

/// [`SHORT`] as a disk without a mount.
fn disk(nbd: &str) -> String {
    let home = SHORT.replace("/var/lib/postgresql/15/main/pg_wal", "/srv/disk.img");
    home.replace("mount = \"/srv/pgwal\"", &format!("nbd = [{nbd}]"))
}

#[test]
fn a_disk_is_found_where_its_addresses_say() {
    let text = disk("\"unix:/run/disk.sock\", \"tcp:127.0.0.1:10809\", \"tcp:[::1]:10809\"");
    let config = Config::parse(&text).unwrap();
    let volume = config.volume("pgwal").unwrap();
    let at = "attached at unix:/run/disk.sock and tcp:127.0.0.1:10809 and tcp:[::1]:10809";
    assert_eq!(volume.found_at(), at);
    let text = serde_json::to_string(volume).unwrap();
    assert_eq!(&serde_json::from_str::<VolumeConfig>(&text).unwrap(), volume);
    let both = SHORT.replace("log =", "nbd = [\"unix:/run/d\"]\nlog =");
    let config = Config::parse(&both).unwrap();
    let at = config.volume("pgwal").unwrap().found_at();
    assert_eq!(at, "mounted at /srv/pgwal, and attached at unix:/run/d");
}

#[test]
fn a_disk_for_a_hypervisor_has_a_socket_of_its_own() {
    let vhost_user = |path: &str| {
        disk("").replace("nbd = []", &format!("nbd = [\"unix:/run/d\"]\nvhost-user = {path:?}"))
    };
    let config = Config::parse(&vhost_user("/run/vm1.sock")).unwrap();
    let volume = config.volume("pgwal").unwrap();
    assert_eq!(volume.found_at(), "attached at unix:/run/d and unix:/run/vm1.sock");
    let protocols: Vec<_> = volume.sockets().into_iter().map(|(protocol, _)| protocol).collect();
    assert_eq!(protocols, [Protocol::Nbd, Protocol::VhostUser]);
    let long = format!("/{}", "x".repeat(107));
    for (path, word) in [("run/d", "absolute"), ("/run/d", "already"), (&*long, "107")] {
        let why = Config::parse(&vhost_user(path)).unwrap_err();
        assert!(why.contains("[volume.pgwal]") && why.contains("vhost-user"), "{why}");
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn a_block_device_has_a_number_of_its_own() {
    let ublk = |id: u64| disk("").replace("nbd = []", &format!("ublk = {id}"));
    let config = Config::parse(&ublk(7)).unwrap();
    let volume = config.volume("pgwal").unwrap();
    assert_eq!(volume.found_at(), "attached at /dev/ublkb7");
    let device = volume.device_of("pgwal").unwrap();
    assert_eq!((device.id, &*device.name), (7, "volume pgwal"));
    let of_server = "[disk.pgwal]\nsize = \"4KiB\"\nmemory = { medium = \"shm\" }\nublk = 7\n";
    let twice = Config::parse(&(ublk(7) + of_server)).unwrap_err();
    assert!(twice.contains("[disk.pgwal] ublk = 7 is already [volume.pgwal] ublk"), "{twice}");
    let apart = Config::parse(&(ublk(8) + of_server)).unwrap();
    assert_eq!(apart.disk("pgwal").unwrap().device_of("pgwal").unwrap().name, "disk pgwal");
    let high = Config::parse(&ublk(1 << 20)).unwrap_err();
    assert!(high.contains("[volume.pgwal]: ublk = 1048576"), "{high}");
}

#[test]
fn a_volume_that_nobody_could_find_is_refused() {
    for text in [disk(""), SHORT.replace("mount = \"/srv/pgwal\"", "")] {
        let why = Config::parse(&text).unwrap_err();
        assert!(why.contains("[volume.pgwal]") && why.contains("neither mount nor nbd"), "{why}");
    }
}

#[test]
fn pages_that_the_kernel_keeps_and_clients_that_change_them_do_not_go_together() {
    let text = SHORT.replace("log =", "nbd = [\"unix:/run/d\"]\ncache = \"write-through\"\nlog =");
    let why = Config::parse(&text).unwrap_err();
    assert!(
        why.contains("[volume.pgwal]") && why.contains("cache") && why.contains("nbd"),
        "{why}"
    );
    Config::parse(&text.replace("mount = \"/srv/pgwal\"", "")).unwrap();
    let unsaid = Config::parse(&text.replace("cache = \"write-through\"", "")).unwrap();
    assert_eq!(unsaid.volume("pgwal").unwrap().cache(), Cache::Direct);
}

#[test]
fn an_address_that_cannot_be_listened_at_is_refused_by_its_key() {
    let long = format!("unix:/{}", "x".repeat(107));
    for (address, word) in [
        ("/run/disk.sock", "neither unix:"),
        ("unix:disk.sock", "absolute"),
        ("unix:", "absolute"),
        (&*long, "107"),
        ("tcp:10809", "port"),
        ("tcp:localhost:10809", "port"),
        ("tcp:127.0.0.1:70000", "port"),
        ("http://127.0.0.1:80", "neither unix:"),
    ] {
        let why = Config::parse(&disk(&format!("{address:?}"))).unwrap_err();
        assert!(why.contains("nbd") && why.contains(word) && why.contains("line "), "{why}");
    }
}

#[test]
fn two_disks_never_share_an_address() {
    for address in ["unix:/run/disk.sock", "tcp:127.0.0.1:10809"] {
        let one = disk(&format!("{address:?}"));
        let other = one.replace("pgwal", "other").replace("disk.img", "other.img");
        let why = Config::parse(&format!("{one}{other}")).unwrap_err();
        let words = ["[volume.pgwal] nbd", "[volume.other] nbd"];
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
        let twice = Config::parse(&disk(&format!("{address:?}, {address:?}"))).unwrap_err();
        assert!(twice.contains("[volume.pgwal] nbd"), "{twice}");
    }
    let text = disk("\"unix:/var/lib/holdfast/pgwal\"");
    let why = Config::parse(&text).unwrap_err();
    assert!(why.contains("[volume.pgwal] log") && why.contains("nbd"), "{why}");
}

#[test]
fn tables_have_a_store_and_memory_of_their_own() {
    let table = |name: &str, store: &str, lines: &str| {
        format!(
            "[table.{name}]\nstore = \"{store}\"\n\
             memory = {{ medium = \"shm\", size = \"8MiB\" }}\n{lines}"
        )
    };
    let config = Config::parse(&table("bank", "/srv/bank", "")).unwrap();
    let path = config.tables["bank"].memory.path.as_deref();
    assert_eq!(path, Some(std::path::Path::new("/dev/shm/holdfast/table-bank")));
    assert!(config.serves_programs());
    let twice = table("bank", "/srv/bank", "") + &table("till", "/srv/bank", "");
    for (text, word) in [
        (twice, "[table.bank] store"),
        (table("bank", "bank", ""), "store"),
        (table("bank", "/srv/bank", "allow_uids = []"), "allow_uids"),
        (table("bank", "/srv/bank", "clients_max = 0"), "clients_max"),
        (table("bank", "/srv/bank", "").replace("8MiB", "4MiB"), "memory.size"),
    ] {
        let refused = Config::parse(&text).unwrap_err();
        assert!(refused.contains(word), "{refused}");
    }
}
