//! Volumes: what people must be able to read of them.

use super::*;
use crate::supervisor::front_end::known::OfFront;
use crate::supervisor::life::known::Known;
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;

fn volume(must_survive: &str) -> VolumeConfig {
    let text = format!(
        "[volume.pgwal]\nhome = \"/h\"\nmount = \"/m\"\nlog = \"/l\"\n\
         memory = {{ medium = \"shm\", size = \"64MiB\", path = \"/nowhere/at/all\" }}\n\
         must_survive = {must_survive}\n"
    );
    Config::parse(&text).unwrap().volumes.remove("pgwal").unwrap()
}

fn status(must_survive: &str) -> VolumeStatus {
    VolumeStatus::unattached("pgwal", &volume(must_survive), PowerSource::None)
}

#[test]
fn a_memory_volume_says_what_it_does_not_survive_and_what_would_supply_it() {
    let text = status("[\"process\"]").text();
    assert!(text.contains("class memory"), "{text}");
    assert!(text.contains("survives     process\n"), "{text}");
    assert!(text.contains("NOT          os, power, machine"), "{text}");
    assert!(text.contains("does not survive os") && text.contains("medium = \"pmem\""), "{text}");
    assert!(text.contains("does not survive power") && text.contains("power source"), "{text}");
}

#[test]
fn a_volume_that_writes_through_says_which_part_is_missing() {
    let text = status("[\"process\", \"os\", \"power\"]").text();
    assert!(text.contains("class disk"), "{text}");
    assert!(text.contains("writes through because of os"), "{text}");
    assert!(text.contains("writes through because of power"), "{text}");
}

#[test]
fn a_volume_that_the_claims_refuse_says_so() {
    let status = status("[\"machine\"]");
    assert_eq!((status.state.as_str(), &status.verdict), ("failed", &None));
    assert!(status.text().contains("the claims refuse"), "{}", status.text());
}

#[test]
fn what_is_known_of_front_ends_is_in_the_report() {
    let known = Known {
        state: State::GivenUp,
        problem: Some(Problem::new(Exit::Failed, "serving volume pgwal", "it died", "see the log")),
        last_error: Some("signal 9".into()),
        restarts: 4,
        upgrades: 2,
        longest_stall: Duration::from_micros(30_001),
        standstills: vec![Standstill::new("its front end sleeps", Duration::from_secs(9))],
        ..Known::new(OfFront { mortal_connections: 3, ..OfFront::default() })
    };
    let status = status("[\"process\"]").with(known);
    let text = status.text();
    let words = "pgwal: given up, 4 restarts, 2 upgrades, longest stall 31 ms";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("problem      serving volume pgwal failed: it died"), "{text}");
    assert!(text.contains("last error   signal 9"), "{text}");
    assert!(text.contains("stands still its front end sleeps, for 9 s"), "{text}");
    assert!(text.contains("at upgrade   3 connections that speak TLS will end"), "{text}");
}
