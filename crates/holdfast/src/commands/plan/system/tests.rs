//! What comes of a name, a file and flags.

use super::*;
use crate::cli::{Cli, Command, plan::PlanCommand};
use clap::Parser;

/// What `holdfast plan curve WORDS` would simulate.
fn asked(words: &[&str]) -> Outcome<Configuration> {
    let words = [&["holdfast", "plan", "curve"], words].concat();
    let Command::Plan { command: PlanCommand::Curve { system, .. } } =
        Cli::try_parse_from(words).unwrap().command
    else {
        panic!("that was another command");
    };
    configuration(system)
}

/// A file with this text, and its path.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a-file");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[track_caller]
fn refused_for(words: &[&str], why: &str, remedy: &str) {
    let problem = asked(words).unwrap_err();
    assert!(problem.why.contains(why), "no {why:?} in {problem}");
    assert!(problem.remedy.contains(remedy), "no {remedy:?} in {problem}");
    assert_eq!(problem.exit, Exit::Usage);
}

#[test]
fn a_name_of_the_papers_is_its_configuration() {
    for named in Named::ALL {
        assert_eq!(asked(&[named.name()]).unwrap(), named.configuration());
    }
}

#[test]
fn a_flag_comes_before_a_file_and_a_file_before_a_name() {
    let text = "[plan]\ndurable = \"64MiB\"\nseed = 7\ncold_pages = \"to-durable\"\n";
    let (_folder, path) = file(text);
    let found = asked(&["large", "--file", &path, "--seed", "9"]).unwrap();
    let wanted = Configuration {
        durable_pages: 16_384,
        seed: 9,
        cold_pages: ColdPages::ToDurable,
        ..Named::Large.configuration()
    };
    assert_eq!(found, wanted);
}

#[test]
fn sizes_are_pages_of_the_size_that_was_said() {
    let words = ["--database", "1GiB", "--memory", "512MiB", "--durable", "8MiB", "--page", "8KiB"];
    let found = asked(&words).unwrap();
    assert_eq!(found.load.database_pages(), 131_072);
    assert_eq!((found.memory_pages, found.durable_pages), (65_536, 1024));
    assert_eq!(found.machine.page_bytes, 8192);
}

#[test]
fn a_trace_takes_the_place_of_a_files_database() {
    let (_folder, trace) = file("r 1\nw 2\nr 3\n");
    let text = "[plan]\ndatabase = \"1GiB\"\nwrites = 0.5\nmemory = \"1MiB\"\n";
    let (_other_folder, plan) = file(text);
    let found = asked(&["--file", &plan, "--trace", &trace]).unwrap();
    assert_eq!(found.load.database_pages(), 3);
}

#[test]
fn a_database_takes_the_place_of_a_files_trace() {
    let (_folder, plan) = file("[plan]\ntrace = \"/nowhere\"\nmemory = \"1MiB\"\n");
    let found = asked(&["--file", &plan, "--database", "1GiB"]).unwrap();
    assert_eq!(found.load.database_pages(), 262_144);
}

#[test]
fn a_trace_with_a_mix_is_refused_whoever_says_which() {
    let why = "its own mix of requests";
    let trace = "[plan]\ntrace = \"/nowhere\"\n";
    let (_folder, both) = file(&format!("{trace}writes = 0.5\n"));
    let (_other_folder, one) = file(trace);
    refused_for(&["large", "--trace", "/nowhere", "--database", "1GiB"], why, "leave out");
    refused_for(&["large", "--file", &both], why, "leave out");
    refused_for(&["large", "--file", &one, "--hot-pages", "0.5"], why, "leave out");
}

#[test]
fn what_only_the_user_knows_is_asked_for() {
    refused_for(&[], "how much memory", "--memory");
    refused_for(&["--memory", "1GiB"], "how large the database", "--database");
}

#[test]
fn what_makes_no_sense_names_its_flag() {
    refused_for(&["large", "--durable", "1GiB"], "no conventional memory", "--durable");
    refused_for(&["large", "--writes", "1.5"], "writes, 1.5", "--writes");
    refused_for(&["large", "--database", "4KiB"], "1 pages", "--database");
    refused_for(&["large", "--disk-mb-per-s", "0"], "the disk in bytes", "--disk-mb-per-s");
    refused_for(&["large", "--disk-mb-per-s", "200"], "slower than the disk", "--durable-mb-per-s");
    refused_for(&["large", "--clock-mhz", "inf"], "the clock", "--clock-mhz");
    refused_for(&["large", "--page", "0B", "--memory", "1GiB"], "the page", "--page");
    let words = ["large", "--page", "1B", "--memory", "1048576GiB"];
    refused_for(&words, "more than 281474976710656", "--memory");
}

#[test]
fn a_file_that_cannot_be_understood_names_the_line() {
    for (text, line) in [
        ("[plan]\nmemory = \"1GiB\"\nmemroy = \"1GiB\"\n", "line 3"),
        ("[plan]\nmemory = \"1GB\"\n", "line 2"),
        ("[plan]\nwrites = \"many\"\n", "line 2"),
        ("[plan]\ncold_pages = \"away\"\n", "line 2"),
        ("[plan\n", "line 1"),
        ("memory = \"1GiB\"\n", "line 1"),
    ] {
        let (_folder, path) = file(text);
        refused_for(&["--file", &path], line, "correct the file");
    }
}

#[test]
fn files_that_are_not_there_are_named() {
    refused_for(&["--file", "/nowhere/plan.toml"], "No such file", "--file");
    refused_for(&["large", "--trace", "/nowhere/trace"], "No such file", "--trace");
}

#[test]
fn a_file_that_cannot_be_read_is_no_mistake_in_it() {
    for flag in ["--file", "--trace"] {
        let problem = asked(&["large", flag, "/"]).unwrap_err();
        assert!(problem.why.contains("Is a directory"), "{problem}");
        assert!(problem.remedy.contains(flag), "{problem}");
        assert_eq!(problem.exit, Exit::Failed);
    }
}

#[test]
fn a_line_of_a_trace_that_is_none_is_named_with_what_to_write() {
    let (_folder, path) = file("r 1\nr 2\nwrite 3\n");
    refused_for(&["large", "--trace", &path], "line 3: `write 3`", "`r PAGE` or `w PAGE`");
    let (_folder, path) = file("r 1\n");
    refused_for(&["large", "--trace", &path], "has not named two pages", "more accesses");
    refused_for(&["large", "--trace", "/dev/zero"], "line 1", "`r PAGE` or `w PAGE`");
}
