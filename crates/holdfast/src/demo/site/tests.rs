//! The configuration of the demonstration's volumes, as the command reads it.
//!
//! Promise: looks at it through the command's own reader.
//! Never: needs a disk.

use super::*;
use crate::config::{Config, VolumeConfig};

fn site(way: Way) -> Site {
    Site::of(Path::new("/work"), Path::new("/work/slow"), way)
}

fn read(way: Way) -> (Config, VolumeConfig) {
    let site = site(way);
    let config = Config::parse(&site.configuration(Must::SurviveProcess)).unwrap();
    let volume = config.volumes[&site.name()].clone();
    (config, volume)
}

#[test]
fn each_configuration_states_its_way() {
    for way in WAYS {
        assert_eq!(read(way).1.way, way);
    }
}

#[test]
fn two_ways_share_no_path() {
    let ((one, direct), (other, queue)) = (read(Way::Direct), read(Way::Queue));
    assert_ne!(one.keeper.socket, other.keeper.socket);
    assert_ne!(direct.home, queue.home);
    assert_ne!(direct.mount, queue.mount);
    assert_ne!(direct.log, queue.log);
    assert_ne!(direct.memory.path, queue.memory.path);
    assert_ne!(site(Way::Direct).config(), site(Way::Queue).config());
}

#[test]
fn the_server_listens_inside_the_work_directory() {
    assert!(read(Way::Queue).0.server.socket.starts_with("/work"));
}
