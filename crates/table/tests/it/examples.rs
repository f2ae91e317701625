//! The example does what it says.

#[allow(dead_code)]
#[path = "../../examples/library.rs"]
mod library;

use holdfast_table::{Outcome, Status, row};
use library::Library;

#[test]
fn a_book_is_lent_to_one_reader_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut library = Library::open(directory.path(), 1).expect("a library");
    for (book, author) in [(1, "Ada"), (2, "Bert"), (3, "Ada")] {
        assert!(library.buy(book, author).expect("the disk is well").is_ok());
    }
    for reader in ["Carla", "Dora"] {
        assert!(library.register(reader).expect("the disk is well").is_ok());
    }
    let lent = library.lend(1, "Carla").expect("the disk is well").expect("it is on its shelf");
    assert_eq!(lent.last(), Some(&Outcome::Row(row!["Carla", 1_u64])));
    let refused = library.lend(1, "Dora").expect("the disk is well");
    assert_eq!(refused.map_err(|refusal| refusal.status), Err(Status::NotAsExpected));
    let refused = library.lend(2, "Emil").expect("the disk is well");
    assert_eq!(refused.map_err(|refusal| refusal.status), Err(Status::NoRow));
    drop(library);
    let mut library = Library::open(directory.path(), 2).expect("it opens again");
    let books = library.by("Ada").expect("the disk is well");
    assert_eq!(books, [row![1_u64, "Ada", "Carla"], row![3_u64, "Ada", ""]]);
    assert_eq!(library.by("Bert").expect("the disk is well"), [row![2_u64, "Bert", ""]]);
}
