//! How memory that has no section is told.

use super::*;

#[test]
fn the_section_is_named_that_memory_of_this_name_had() {
    let section = |name: &str| {
        let path = Path::new("/dev/shm/holdfast").join(name);
        Sectionless { path, log: String::new(), unapplied_bytes: 1, is_alone: false }.section()
    };
    assert_eq!(section("pgwal"), "[volume.pgwal]");
    assert_eq!(section("pgwal.held-2"), "[volume.pgwal]");
    assert_eq!(section("log-ledger"), "[log.ledger]");
    assert_eq!(section("table-bank"), "[table.bank]");
}
