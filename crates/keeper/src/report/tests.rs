//! Reports: what programs must be able to read in them.

use super::*;
use holdfast_config::claims::PowerSource;

#[test]
fn the_json_has_a_version_and_reads_back() {
    let text = "[volume.pgwal]\nhome = \"/h\"\nmount = \"/m\"\nlog = \"/l\"\n\
                memory = { medium = \"shm\", size = \"64MiB\", path = \"/nowhere/at/all\" }\n\
                must_survive = [\"process\"]\n";
    let config = Config::parse(text).unwrap();
    let volume = VolumeStatus::unattached("pgwal", &config.volumes["pgwal"], PowerSource::None);
    let report = StatusReport::new(None, vec![volume]);
    let text = serde_json::to_string(&report).unwrap();
    assert!(text.starts_with("{\"schema\":1,"), "{text}");
    let back: StatusReport = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}
