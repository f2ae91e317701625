//! How programs are found.

use super::*;

fn refusal(holdfast: &str, slow_disk: &str) -> String {
    let found = Programs::find(Some(Path::new(holdfast)), Some(Path::new(slow_disk)));
    found.unwrap_err().to_string()
}

#[test]
fn a_program_that_is_missing_is_named_with_how_to_build_it_and_the_option_that_names_another() {
    let said = refusal("/nonexistent/holdfast", "/bin/sh");
    assert!(said.contains("looking for /nonexistent/holdfast:"), "{said}");
    assert!(said.contains("--package holdfast`") && said.ends_with("--holdfast"), "{said}");
    let said = refusal("/bin/sh", "/nonexistent/slow");
    assert!(said.contains("--package holdfast-slowdisk`"), "{said}");
    assert!(said.ends_with("--slow-disk"), "{said}");
}

#[test]
fn what_was_named_is_known_by_the_name_that_its_process_shows() {
    let link = std::env::temp_dir().join(format!("holdfast-programs-{}", std::process::id()));
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    let found = Programs::find(Some(&link), Some(&link)).unwrap();
    std::fs::remove_file(&link).unwrap();
    assert_eq!(found.holdfast, Path::new("/bin/sh").canonicalize().unwrap());
    assert!(found.names().all(|name| name != link.file_name().unwrap()));
}
