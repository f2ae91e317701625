//! The configuration of the demonstration's volumes. That the command takes it is for the
//! demonstrations to show.

use super::*;
use toml::Table;

fn site(way: Way) -> Site {
    Site::of(Path::new("holdfast"), Path::new("/work"), Path::new("/work/slow"), way)
}

/// All of it, and what it says of the volume.
fn read(way: Way) -> (Table, Table) {
    let site = site(way);
    let config: Table = site.configuration(MustSurvive::Process).parse().unwrap();
    let volume = config["volume"][&site.name()].as_table().unwrap().clone();
    (config, volume)
}

#[test]
fn each_configuration_states_its_way() {
    for way in WAYS {
        assert_eq!(read(way).1["way"].as_str(), Some(word(way)));
    }
}

#[test]
fn a_database_without_a_guard_of_its_own_is_past_the_page_cache() {
    let with = site(Way::Direct).configuration(MustSurvive::Process);
    let without = site(Way::Direct).uncached().configuration(MustSurvive::Process);
    assert_eq!(without, format!("{with}cache = \"direct\"\n"));
}

#[test]
fn a_log_on_a_fast_disk_is_nowhere_on_the_modelled_one_and_survives_the_power() {
    let site = site(Way::Direct).with_fast_log();
    let config: Table = site.configuration(site.must()).parse().unwrap();
    let volume = config["volume"][&site.name()].as_table().unwrap();
    assert!(!Path::new(volume["log"].as_str().unwrap()).starts_with("/work/slow"));
    assert!(Path::new(volume["home"].as_str().unwrap()).starts_with("/work/slow"));
    assert!(volume["must_survive"].as_array().unwrap().contains(&"power".into()));
    assert_ne!(site.config(), self::site(Way::Direct).config());
    let strays = strays(Path::new("/work"));
    assert!(strays.contains(&site.region()) && strays.contains(&site.log()));
}

#[test]
fn a_volume_with_a_power_source_has_it_in_its_configuration_and_no_other_has() {
    let site = site(Way::Direct).powered();
    let config: Table = site.configuration(site.must()).parse().unwrap();
    assert_eq!(config["power"]["file"].as_str().map(Path::new), Some(ups().as_path()));
    let volume = config["volume"][&site.name()].as_table().unwrap();
    let must = volume["must_survive"].as_array().unwrap();
    assert_eq!(must, &vec!["process".into(), "power".into()]);
    assert!(strays(Path::new("/work")).contains(&ups()));
    assert!(!read(Way::Direct).0.contains_key("power"));
    assert_ne!(site.region(), self::site(Way::Direct).region());
}

#[test]
fn two_ways_share_no_path() {
    let ((one, direct), (other, queue)) = (read(Way::Direct), read(Way::Queue));
    assert_ne!(one["keeper"]["socket"], other["keeper"]["socket"]);
    assert_ne!(direct["home"], queue["home"]);
    assert_ne!(direct["mount"], queue["mount"]);
    assert_ne!(direct["log"], queue["log"]);
    assert_ne!(direct["memory"]["path"], queue["memory"]["path"]);
    assert_ne!(site(Way::Direct).config(), site(Way::Queue).config());
}

#[test]
fn the_server_listens_inside_the_work_directory() {
    let config = read(Way::Queue).0;
    let socket = config["server"]["socket"].as_str().unwrap();
    assert!(Path::new(socket).starts_with("/work"), "{socket}");
}
