//! What is a reading, and what is none.

use super::*;

fn good() -> Reading {
    Reading {
        line: Line::Mains,
        is_low: false,
        is_testing: false,
        is_faulty: false,
        hold_up_ms: Some(1_200_500),
    }
}

#[test]
fn what_upsc_prints_is_a_reading() {
    let text = "battery.charge: 100\nbattery.runtime: 1200.5\nups.model: Smart: 1500\n\
                ups.status: OL CHRG\n";
    assert_eq!(parse(text), Ok(good()));
}

#[test]
fn each_word_of_a_status_means_one_thing() {
    let of = |status: &str| of(status, None).unwrap();
    let base = Reading { hold_up_ms: None, ..good() };
    assert_eq!(of("OL"), base);
    assert_eq!(of("OL TRIM"), base);
    assert_eq!(of("OB SOMETHING DISCHRG"), Reading { line: Line::Battery, ..base });
    assert_eq!(of("OB LB"), Reading { line: Line::Battery, is_low: true, ..base });
    assert_eq!(of("FSD OB"), Reading { line: Line::Battery, is_low: true, ..base });
    assert_eq!(of("OL CAL"), Reading { is_testing: true, ..base });
    assert_eq!(of("OL TEST"), Reading { is_testing: true, ..base });
    for word in ["OFF", "BYPASS", "OVER", "RB", "ALARM", "DISCHRG"] {
        assert_eq!(of(&format!("OL {word}")), Reading { is_faulty: true, ..base }, "{word}");
    }
}

#[test]
fn what_is_not_understood_is_no_reading_and_says_why() {
    let refused = [
        ("", "does not say ups.status"),
        ("ups.status:", "neither OL nor OB"),
        ("ups.status: WAIT", "neither OL nor OB"),
        ("ups.status: OLB", "neither OL nor OB"),
        ("ups.status: OL OB", "both"),
        ("ups.status: OL NOCOMM", "NOCOMM, which is not known"),
        ("ups.status: OL lb", "lb, which is not known"),
        ("Error: Data stale\nups.status: OL", "Error: Data stale"),
        ("ups.status: OL\nups.status: OB", "twice"),
        ("ups.status: OL\nbattery.runtime: soon", "no number"),
        ("ups.status: OL\nbattery.runtime: -1", "no number"),
        ("ups.status: OL\nbattery.runtime: NaN", "no number"),
        ("ups.status: OL\nbattery.runtime: inf", "no number"),
        ("ups.status: OL\nbattery.runtime: 1e300", "no number"),
    ];
    for (text, why) in refused {
        let refusal = parse(text).unwrap_err();
        assert!(refusal.contains(why), "{text:?}: {refusal}");
    }
}
