//! Names of parts.

use super::chosen;

#[test]
fn all_parts_are_meant_if_none_is_named_and_unknown_names_are_refused() {
    let names = |only| chosen(only).map(|parts| parts.iter().map(|it| it.name).collect::<Vec<_>>());
    assert_eq!(names(None).unwrap().len(), 6);
    assert_eq!(names(Some("nbd,plan")).unwrap(), ["nbd", "plan"]);
    let refused = names(Some("nbd,blocks")).unwrap_err().to_string();
    assert!(refused.contains("blocks") && refused.contains("pcache"), "{refused}");
}
