//! What `[power]` may say, and what it may not.

use crate::Config;
use holdfast_power::source::Kind;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(&format!("[power]\n{text}"))
}

#[test]
fn one_source_is_named_and_the_rest_has_defaults() {
    let nut = r#"nut = { address = "127.0.0.1:3493", ups = "cellar" }"#;
    let power = parse(nut).unwrap().power.unwrap();
    let address = "127.0.0.1:3493".parse().unwrap();
    assert_eq!(power.kind(), Kind::Nut { address, ups: "cellar".into() });
    assert_eq!(power.source_text(), "UPS cellar of upsd at 127.0.0.1:3493");
    let terms = power.terms();
    assert_eq!((terms.hold_up_ms, terms.reserve_ms, terms.settle_ms), (None, 60_000, 60_000));
    assert_eq!(terms.drill_ms, 90 * 86_400_000);
    let command = r#"command = ["/usr/bin/upsc", "cellar"]"#;
    let power = parse(command).unwrap().power.unwrap();
    assert_eq!(power.kind(), Kind::Command(vec!["/usr/bin/upsc".into(), "cellar".into()]));
    let file = "file = \"/run/ups\"\nhold_up_ms = 600000";
    let power = parse(file).unwrap().power.unwrap();
    assert_eq!(
        (power.kind(), power.terms().hold_up_ms),
        (Kind::File("/run/ups".into()), Some(600_000))
    );
    assert_eq!(Config::parse("").unwrap().power, None);
}

#[test]
fn what_cannot_be_meant_is_refused_and_says_why() {
    let refused = [
        ("", "names 0 sources"),
        ("file = \"/run/ups\"\ncommand = [\"/bin/true\"]", "names 2 sources"),
        ("file = \"ups\"", "file"),
        ("command = []", "command is empty"),
        ("command = [\"upsc\"]", "command"),
        ("nut = { address = \"localhost\", ups = \"a\" }", "address"),
        ("nut = { address = \"127.0.0.1:1\", ups = \"a b\" }", "no name of a UPS"),
        ("nut = { address = \"127.0.0.1:1\", ups = \"a\\nb\" }", "no name of a UPS"),
        ("nut = { address = \"127.0.0.1:1\", ups = \"\" }", "no name of a UPS"),
        ("file = \"/run/ups\"\nhold_up_ms = 60000", "leaves nothing"),
        ("file = \"/run/ups\"\nreserve_ms = 99999999999999", "ten years"),
        ("file = \"/run/ups\"\ndrill_days = 9999999999999999", "ten years"),
        ("file = \"/run/ups\"\nsettle_ms = -1", "settle_ms"),
        ("file = \"/run/ups\"\nasked_every_ms = 0", "not between"),
        ("file = \"/run/ups\"\ndrill_days = 0", "drill_days"),
        ("file = \"/run/ups\"\nreserve_ms = 4999", "less than the 5000 ms"),
        ("file = \"/run/ups\"\nasked_every_ms = 60000", "less than the 300000 ms"),
        ("file = \"/run/ups\"\nups = 1", "unknown field"),
    ];
    for (text, why) in refused {
        let refusal = parse(text).unwrap_err();
        assert!(refusal.contains(why), "{text:?}: {refusal}");
    }
}
