//! Snapshots in the configuration: what is filled in, what is refused and in which words.

use crate::config::Config;
use std::path::Path;

const DISK: &str = "[disk.ram]\nmemory = { medium = \"shm\" }\nsize = \"3MiB\"\n";

#[test]
fn snapshots_have_memory_of_their_own_and_disks_that_are_there() {
    let text = format!(
        "{DISK}[snapshot.fast]\nmemory = {{ medium = \"shm\" }}\nsize = \"8MiB\"\n\
         disks = [\"ram\"]\n"
    );
    let config = Config::parse(&text).unwrap();
    let snapshot = config.snapshot("fast").unwrap();
    let path = snapshot.store().medium().path().map(Path::to_owned);
    assert_eq!(path.unwrap(), Path::new("/dev/shm/holdfast/snapshot-fast"));
    assert!(config.snapshot("slow").is_err());
    let other_path = "\"shm\", path = \"/dev/shm/holdfast/disk-ram\" }\nsize = \"8MiB\"";
    for (what, with, named) in [
        ("\"8MiB\"", "\"4097B\"", "size"),
        ("\"8MiB\"", "\"512KiB\"", ""),
        ("\"8MiB\"", "\"508KiB\"", "size"),
        ("[\"ram\"]", "[\"ram\", \"rom\"]", "[disk.rom]"),
        ("[snapshot", "way = \"direct\"\nmount = \"/x\"\n[snapshot", "set way = \"queue\" there"),
        ("\"shm\" }\nsize = \"8MiB\"", other_path, "memory.path"),
        ("disks", "allow_uids = []\ndisks", "allow_uids"),
    ] {
        let parsed = Config::parse(&text.replace(what, with));
        match named {
            "" => assert!(parsed.is_ok(), "{parsed:?}"),
            named => assert!(parsed.unwrap_err().contains(named), "{with}"),
        }
    }
}
