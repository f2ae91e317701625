//! The documents say what the code does: every example in them is parsed by what it is an example
//! of.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::cli::Cli;
use crate::cli::plan::PlanFile;
use holdfast_config::Config;
use holdfast_config::claims;

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/holdfast has a root")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every document that is written for people: path and text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut folders = vec![PathBuf::new(), "docs".into(), "docs/decisions".into()];
    let crates = fs::read_dir(root().join("crates")).unwrap();
    folders.extend(crates.map(|entry| Path::new("crates").join(entry.unwrap().file_name())));
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if path.extension().is_some_and(|ending| ending == "md") {
                found.push((path.clone(), read(path)));
            }
        }
    }
    assert!(found.len() > 10, "the documents are elsewhere");
    found
}

/// The fenced blocks of a document: language and text.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let (mut blocks, mut open): (Vec<(&str, String)>, bool) = (Vec::new(), false);
    for line in text.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                blocks.push((language, String::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let (_, block) = blocks.last_mut().expect("one is open");
                *block += &format!("{line}\n");
            }
            (None, false) => {}
        }
    }
    blocks
}

/// What stands between single backquotes, outside of blocks.
fn quoted(text: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut open = false;
    for line in text.lines() {
        open ^= line.starts_with("```");
        if !open && !line.starts_with("```") {
            prose += &format!("{line} ");
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Why the command line is none that works here; `None` if it is one, or is somebody else's.
fn fault(command: &str) -> Option<String> {
    let command = command.split(" #").next().unwrap_or_default();
    let words: Vec<&str> = command.trim().trim_end_matches('&').split_whitespace().collect();
    match words.as_slice() {
        ["holdfast", _, ..] => {
            let refused = Cli::try_parse_from(&words).err()?;
            // `--help` and the like are answered with an "error" that is no mistake.
            refused.use_stderr().then(|| format!("{command}: {refused}"))
        }
        ["make", target, ..] => {
            let rule = format!("\n{target}:");
            (!read("Makefile").contains(&rule)).then(|| format!("no target {target}"))
        }
        ["cargo", "xtask", task, ..] => {
            let arm = format!("\"{task}\" =>");
            (!read("xtask/src/main.rs").contains(&arm)).then(|| format!("no task {task}"))
        }
        [script, ..] if script.starts_with("scripts/") => {
            (!root().join(script).exists()).then(|| format!("no script {script}"))
        }
        _ => None,
    }
}

/// True if [`fault`] knows the command that a line of a shell example starts with.
fn is_checkable(line: &str) -> bool {
    let checked = ["holdfast ", "make ", "cargo xtask ", "scripts/"];
    let of_every_system = ["mkdir -p /", "truncate -s "];
    checked.iter().chain(&of_every_system).any(|word| line.starts_with(word))
}

/// Whether it is a configuration of volumes, logs or disks, or a file of the planner's.
fn check_toml(block: &str) -> Result<(), String> {
    if block.contains("[plan]") {
        return PlanFile::parse(block).map(drop);
    }
    let config = Config::parse(block)?;
    let has_front_ends = !(config.volumes.is_empty() && config.disks.is_empty());
    let is_empty = !has_front_ends && !config.serves_programs();
    if is_empty { Err("no volume, no log and no disk".into()) } else { Ok(()) }
}

#[test]
fn every_configuration_in_the_documents_is_one() {
    let mut tried = 0;
    for (path, text) in documents() {
        for (_, block) in blocks(&text).iter().filter(|(language, _)| *language == "toml") {
            if let Err(why) = check_toml(block) {
                panic!("{}: {why}\n{block}", path.display());
            }
            tried += 1;
        }
    }
    assert!(tried > 0, "the documents have a configuration");
}

#[test]
fn every_command_in_the_documents_is_one() {
    let (mut tried, mut faults) = (0, Vec::new());
    for (path, text) in documents() {
        let shell: Vec<(&str, String)> =
            blocks(&text).into_iter().filter(|(language, _)| *language == "sh").collect();
        let lines: Vec<String> =
            shell.iter().flat_map(|(_, block)| block.lines().map(str::to_owned)).collect();
        for line in &lines {
            assert!(is_checkable(line), "{}: nobody checks `{line}`", path.display());
        }
        for command in lines.into_iter().chain(quoted(&text)) {
            faults.extend(fault(&command).map(|fault| format!("{}: {fault}", path.display())));
            tried += usize::from(is_checkable(&command));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(tried > 10, "the documents name more commands than {tried}");
}

#[test]
fn every_block_in_the_documents_is_of_a_kind_that_is_checked() {
    for (path, text) in documents() {
        for (language, block) in blocks(&text) {
            // That page's Rust is a documentation test of holdfast-wal.
            let compiled = language == "rust" && path == Path::new("docs/choose.md");
            let known = ["toml", "sh", "arrows", "circles", "critical", ""];
            let known = known.contains(&language) || compiled;
            assert!(known, "{}: nobody checks {language}\n{block}", path.display());
        }
    }
}

#[test]
fn the_matrix_in_the_documents_is_the_one_that_claims_are_computed_from() {
    for path in ["README.md", "docs/guarantees.md"] {
        let matrix = claims::matrix();
        assert!(read(path).contains(&matrix), "{path} lacks what `holdfast matrix` prints");
    }
}

#[test]
fn the_list_of_formats_names_every_table() {
    let list = read("docs/format.md");
    let formats = documents().into_iter().filter(|(path, _)| path.ends_with("FORMAT.md"));
    let mut sections = 0;
    for (path, text) in formats {
        for section in text.lines().filter_map(|line| line.strip_prefix("## ")) {
            let anchor = format!("{}#", path.display());
            assert!(list.contains(section) && list.contains(&anchor), "{anchor}{section}");
            sections += 1;
        }
    }
    assert!(sections > 5, "the formats have moved");
}

#[test]
fn wrong_examples_are_noticed() {
    assert!(fault("holdfast volume mak NAME").is_some());
    assert!(fault("holdfast status --verbose").is_some());
    assert!(fault("holdfast serve &   # the keeper").is_none());
    assert!(fault("make rnu").is_some());
    assert!(fault("cargo xtask tdy").is_some());
    let sample = "```toml\n[volume.v]\nhom = \"/v\"\n```\n`holdfast statu`\n";
    assert!(check_toml(&blocks(sample)[0].1).is_err());
    assert!(check_toml("[keeper]\n").is_err());
    assert!(check_toml("[plan]\nmemroy = \"1GiB\"\n").is_err());
    assert!(check_toml("[plan]\nmemory = \"1GiB\"\n").is_ok());
    assert!(quoted(sample).iter().any(|command| fault(command).is_some()));
    let matrix = claims::matrix().replacen("survives", "**lost**", 1);
    assert!(!read("docs/guarantees.md").contains(&matrix));
}
