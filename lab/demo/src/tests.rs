//! The documents name demonstrations that there are.

use std::fs;
use std::path::Path;

use clap::Parser;

use super::Cli;

/// The demonstrations that a document names between backquotes.
fn named(text: &str) -> Vec<String> {
    let line = text.replace('\n', " ");
    let quoted = line.split("`holdfast-demo ").skip(1);
    quoted.map(|rest| rest.split('`').next().unwrap_or_default().to_owned()).collect()
}

fn is_one(arguments: &str) -> bool {
    let words = ["holdfast-demo"].into_iter().chain(arguments.split_whitespace());
    Cli::try_parse_from(words).is_ok()
}

#[test]
fn every_demonstration_in_the_documents_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut tried = 0;
    for folder in ["", "docs", "docs/decisions"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            for arguments in named(&fs::read_to_string(&path).unwrap()) {
                assert!(is_one(&arguments), "{}: {arguments}", path.display());
                tried += 1;
            }
        }
    }
    assert!(tried > 5, "the documents name more demonstrations than {tried}");
}

#[test]
fn a_demonstration_that_there_is_not_is_noticed() {
    assert_eq!(named("see `holdfast-demo\npostgres`"), ["postgres"]);
    assert_eq!(named("see `holdfast-demo postgres\n--quick`"), ["postgres --quick"]);
    assert!(is_one("postgres --quick") && !is_one("postgers") && !is_one("ways --qiuck"));
}
