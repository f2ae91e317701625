//! `holdfast plan`: by name, by flags, by file, by trace.

use crate::fixture::{Ended, Fixture};
use serde_json::Value;
use std::fs;

fn plan(fixture: &Fixture, words: &[&str]) -> Ended {
    fixture.holdfast(&[&["plan"], words].concat())
}

fn json(fixture: &Fixture, words: &[&str]) -> Value {
    let said = plan(fixture, &[words, &["--json"]].concat()).succeeded().out;
    serde_json::from_str(&said).unwrap()
}

/// A system that is simulated in no time.
const SMALL: [&str; 4] = ["--database", "8MiB", "--memory", "4MiB"];

/// Advice for it.
fn advise(limit: &str) -> Vec<&str> {
    [&["advise"], &SMALL[..], &["--recovery-limit", limit]].concat()
}

#[test]
fn a_steady_state_is_told_with_what_it_is_made_of_and_what_comes_after_a_crash() {
    let fixture = Fixture::new();
    let words = [&["simulate"], &SMALL[..], &["--durable", "1MiB", "--interval", "500"]].concat();
    let found = json(&fixture, &words);
    assert_eq!(found["system"]["database_pages"], 2048);
    let steady = |key: &str| found["steady"][key].as_f64().unwrap();
    let sum = steady("paging_cycles") + steady("checkpoint_cycles");
    assert!((steady("request_cycles") - sum).abs() < 1e-6 && sum > 0.0);
    assert!(steady("recovery_mean_cycles") < steady("recovery_cycles"));
    assert!(found["after_crash"]["full"]["requests"].as_f64().unwrap() > 768.0);
    let said = plan(&fixture, &words).succeeded().out;
    assert!(said.contains("every 500 requests") && said.contains("after a crash"), "{said}");
    let endless = [&["simulate"], &SMALL[..], &["--interval", "18446744073709551615"]].concat();
    plan(&fixture, &endless).expect(2, &["are more than 524288", "--interval"]);
}

#[test]
fn advice_names_a_size_that_keeps_the_limit_and_a_limit_too_short_is_told() {
    let fixture = Fixture::new();
    let found = json(&fixture, &advise("0.1"));
    assert!(found["durable_bytes"].as_u64().unwrap() > 0, "{found}");
    assert!(found["best"]["recovery_cycles"].as_f64().unwrap() <= 0.1 * 100e6);
    let said = plan(&fixture, &advise("0.1")).succeeded().out;
    assert!(said.contains("reserve ") && said.contains("without durable memory"), "{said}");
    let refused = plan(&fixture, &advise("0.0000001"));
    refused.expect(2, &["no size keeps recoveries within", "--recovery-limit"]);
    let (_, least) = refused.err.split_once("say at least ").unwrap();
    let least = least.split(' ').next().unwrap();
    plan(&fixture, &advise(least)).succeeded();
    let long = plan(&fixture, &advise("1000")).succeeded().out;
    assert!(long.contains("reserve nothing"), "{long}");
    let durable = [&advise("1")[..], &["--durable", "1MiB"]].concat();
    plan(&fixture, &durable).expect(2, &["leave it out"]);
}

#[test]
fn a_curve_has_a_line_for_each_interval_and_becomes_files() {
    let fixture = Fixture::new();
    let out = fixture.path("figures");
    let out = out.to_str().unwrap();
    let found = json(&fixture, &[&["curve", "--out", out], &SMALL[..]].concat());
    let intervals = found["intervals"].as_array().unwrap();
    assert_eq!(intervals[0]["interval_requests"], Value::Null);
    let requests = |at: usize| intervals[at]["interval_requests"].as_u64().unwrap();
    assert!(intervals.len() > 8 && requests(1) > requests(2));
    let drawn = fs::read_to_string(format!("{out}/plan-curve.svg")).unwrap();
    assert_eq!(drawn.matches("<circle").count(), intervals.len() - 1);
    let nowhere = [&["curve", "--out", "/proc/nowhere"], &SMALL[..]].concat();
    plan(&fixture, &nowhere).expect(1, &["writing the figures", "--out"]);
    let figures = fs::read_to_string(format!("{out}/plan-curve.json")).unwrap();
    assert!(figures.contains(&format!("plan.curve.every_{}.request_cycles", requests(1))));
}

#[test]
fn a_file_and_a_trace_say_what_is_simulated_and_what_is_wrong_in_them_is_told_by_its_line() {
    let fixture = Fixture::new();
    let [trace, file] = ["trace", "plan.toml"].map(|name| fixture.path(name));
    let accesses: String = (0..4000).map(|at| format!("w {}\n", at * 7 % 300)).collect();
    fs::write(&trace, &accesses).unwrap();
    let text = format!("[plan]\nmemory = \"1MiB\"\ntrace = {trace:?}\n");
    fs::write(&file, &text).unwrap();
    let words = ["simulate", "--interval", "100", "--file", file.to_str().unwrap()];
    assert_eq!(json(&fixture, &words)["system"]["database_pages"], 300);
    fs::write(&trace, accesses + "x 1\n").unwrap();
    plan(&fixture, &words).expect(2, &["line 4001", "`x 1`", "`r PAGE` or `w PAGE`"]);
    fs::write(&file, text + "speed = 3\n").unwrap();
    plan(&fixture, &words).expect(2, &["line 4", "speed", "correct the file"]);
}

#[test]
fn the_papers_numbers_stand_beside_ours_and_its_figures_are_drawn() {
    let fixture = Fixture::new();
    let out = fixture.path("figures");
    let found = json(&fixture, &["paper", "--out", out.to_str().unwrap()]);
    let rows = found.as_array().unwrap();
    let crossover = rows.iter().find(|row| row["id"] == "crossover.megacycles").unwrap();
    assert_eq!(crossover["paper"], 1650.0);
    assert!((crossover["ours"].as_f64().unwrap() / 1650.0 - 1.0).abs() < 0.2);
    let drawn = fs::read_to_string(out.join("plan-paper.svg")).unwrap();
    assert!(drawn.contains("Figure 3") && drawn.contains("Figure 4"));
}
