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
fn a_document_that_shows_other_figures_is_noticed() {
    for shown in &SHOWN {
        let [begin, end] = shown.between;
        let text = format!("before\n{begin}| a |\n{end}after\n");
        assert_eq!(shown.filled(&text, "| a |\n"), Some(text.clone()));
        assert_ne!(shown.filled(&text, "| b |\n"), Some(text));
        assert_eq!(shown.filled("no lines", ""), None);
    }
}

#[test]
fn a_headline_has_its_figure_s_value_and_is_left_out_without_one() {
    let (id, _) = HEADLINES[0];
    let result = serde_json::json!({"figures": [{"id": id, "value": 15.26}]});
    let said = headlines(&[result]);
    assert!(said.contains(": 15.3 times the transactions"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
