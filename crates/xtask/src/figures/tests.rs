//! What people see of the figures.

use super::*;

#[test]
fn a_table_shows_what_has_a_goal_and_the_rates() {
    let result: Value = serde_json::from_str(
        r#"{"name": "postgres", "figures": [
            {"id": "a", "value": 15.26, "unit": "ratio", "better": "higher", "goal": 12},
            {"id": "b", "value": 0.0512, "unit": "ratio", "better": "lower", "goal": 0.1},
            {"id": "c", "value": 8123.4, "unit": "transactions/s", "better": "higher"},
            {"id": "d", "value": 3.0, "unit": "ms", "better": "lower"}]}"#,
    )
    .unwrap();
    let table = table(&result);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(
        rows,
        [
            "| `a` | 15.3 | ratio | at least 12 |",
            "| `b` | 0.051 | ratio | at most 0.1 |",
            "| `c` | 8123 | transactions/s |  |",
        ]
    );
}

#[test]
fn what_an_acknowledgement_meant_stands_beside_each_figure_where_it_differs() {
    let result: Value = serde_json::from_str(
        r#"{"name": "log", "figures": [
            {"id": "a", "value": 1, "unit": "s", "better": "lower", "goal": 2, "class": "Disk"},
            {"id": "b", "value": 1, "unit": "s", "better": "lower", "goal": 2}]}"#,
    )
    .unwrap();
    let table = table(&result);
    assert!(table.contains("| goal | acknowledged by |\n|---|---:|---|---|---|\n"), "{table}");
    assert!(table.contains("| `a` | 1 | s | at most 2 | Disk |\n"), "{table}");
    assert!(table.contains("| `b` | 1 | s | at most 2 |  |\n"), "{table}");
}

#[test]
fn a_readme_that_shows_other_figures_is_noticed() {
    let readme = |body: &str| format!("before\n{BEGIN}{body}{END}after\n");
    let shown = readme("| a |\n");
    assert_eq!(between(&shown, "| a |\n"), Some(shown.clone()));
    assert_ne!(between(&shown, "| b |\n"), Some(shown));
    assert_eq!(between("no lines", ""), None);
}
