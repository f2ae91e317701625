//! What a table says is found, and what it says wrong is noticed.

use super::*;

const TABLES: Tables = Tables::of(
    "# A sample\n\n## Head\n\n\
     | offset | size | name | meaning |\n|---|---|---|---|\n\
     | 0 | 2 | `level` | 0 in a leaf |\n\
     | 2 | 4 | `check` | of the rest |\n\
     | 6 | | `rest` | to the end |\n\n\
     ## Words\n\n\
     | word | name |\n|---|---|\n\
     | 0 | `opens` |\n\
     | 7 | `errors` |\n",
);

#[test]
fn a_section_has_the_rows_of_its_own_table_alone() {
    assert_eq!(TABLES.rows("Head").len(), 3);
    assert_eq!(TABLES.rows("Head")[2][..3], ["6", "", "`rest`"]);
    assert_eq!(TABLES.place("Head", "check"), 2..6);
    assert_eq!(TABLES.gapless("Head", 6), [("level", 0..2), ("check", 2..6)]);
    assert!(TABLES.words().contains("# A sample ## Head | offset"));
}

#[test]
fn words_are_constants() {
    let code = "//! Words.\n\npub const OPENS: usize = 0;\nconst NONE: usize = 9;\n\
                pub const ERRORS: usize = 7;\n";
    assert_eq!(TABLES.numbers("Words"), constants(code));
    assert_ne!(TABLES.numbers("Words"), constants(&code.replace('7', "8")));
}

#[test]
fn a_byte_that_changes_is_its_fields() {
    let fields = TABLES.fields("Head");
    let before = [0; 9];
    let after =
        |at: &[usize]| -> Vec<u8> { (0..8).map(|byte| u8::from(at.contains(&byte))).collect() };
    assert_eq!(changed(&fields, &before, &after(&[1])), ["level"]);
    assert_eq!(changed(&fields, &before, &after(&[0, 2, 5])), ["level", "check"]);
    assert_eq!(changed(&fields, &before, &after(&[6, 7])), [""; 0]);
}

#[test]
#[should_panic(expected = "byte 3 has no field")]
fn a_byte_between_fields_is_noticed() {
    let _ = changed(&[("one", 0..2), ("two", 4..6)], &[0; 6], &[0, 0, 0, 1, 0, 0]);
}

#[test]
#[should_panic(expected = "Head: level")]
fn a_gap_is_noticed() {
    let _ =
        Tables::of("\n## Head\n| offset | size | name |\n| 1 | 2 | `level` |\n").gapless("Head", 3);
}

#[test]
#[should_panic(expected = "Head")]
fn a_table_that_ends_early_is_noticed() {
    let _ = TABLES.gapless("Head", 7);
}

#[test]
#[should_panic(expected = "Head: crew is not told")]
fn a_field_that_is_missing_is_noticed() {
    let _ = TABLES.place("Head", "crew");
}
