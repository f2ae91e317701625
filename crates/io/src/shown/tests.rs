//! What is shown of names and texts.

use super::*;

#[test]
fn what_a_terminal_would_obey_is_shown() {
    let name = OsStr::from_bytes(b"a\x1b[2J\r\n\t\xc2\x9b\x7f\xff\\");
    let shown = Shown::name(name).to_string();
    assert_eq!(shown, "a\\u001b[2J\\u000d\\u000a\\u0009\\u009b\\u007f\\xff\\\\");
    assert_eq!(Shown::name("\u{202e}\u{200b}").to_string(), "\\u202e\\u200b");
}

#[test]
fn what_can_be_seen_stays_as_it_is() {
    let name = "Gr\u{fc}n, \u{6771}\u{4eac} (pid 7)";
    assert_eq!(Shown::name(name).to_string(), name);
    assert_eq!(Shown::text("one\n\ttwo\\").to_string(), "one\n\ttwo\\");
    assert_eq!(Shown::text("one\x1b]0;\x07").to_string(), "one\\u001b]0;\\u0007");
}

#[test]
fn no_two_names_look_the_same() {
    let bytes = [0x1b, b'\\', b'u', b'0', b'x', 0xff, b'f', b'1', b'b'];
    let mut names: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..4 {
        let longer = |name: &Vec<u8>| bytes.map(|byte| [&name[..], &[byte]].concat());
        names = names.iter().flat_map(longer).collect();
    }
    let shown = names.iter().map(|name| Shown::name(OsStr::from_bytes(name)).to_string());
    let shown: std::collections::BTreeSet<String> = shown.collect();
    assert_eq!(shown.len(), names.len());
    assert!(shown.iter().all(|text| !text.chars().any(misleads)));
}
