//! Settings in a file without a name.

use super::*;
use holdfast_config::{Config, VolumeConfig};

const TEXT: &str = "[volume.v]\nhome = \"/h\"\nmount = \"/m\"\nlog = \"/l\"\nway = \"queue\"\n\
                    memory = { medium = \"shm\", size = \"64MiB\" }\n";

#[test]
fn settings_are_read_as_they_were_written_as_often_as_somebody_likes() {
    let config = Config::parse(TEXT).unwrap();
    let volume = config.volume("v").unwrap();
    let file = written(volume).unwrap();
    for _ in 0..2 {
        assert_eq!(read::<VolumeConfig>(&file).as_ref(), Some(volume));
    }
}

#[test]
fn what_has_something_that_is_not_known_is_not_understood() {
    let file = written(&"something else").unwrap();
    assert_eq!(read::<VolumeConfig>(&file), None);
}
