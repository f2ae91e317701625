//! Each error and what is advised for it.

use super::*;

/// The error as the system gives it, and as it is wrapped on its way.
fn forms(number: Errno) -> [io::Error; 3] {
    let plain = || io::Error::from(number);
    [
        plain(),
        io::Error::new(plain().kind(), plain()),
        io::Error::new(plain().kind(), Arc::new(plain())),
    ]
}

#[test]
fn the_advice_goes_by_the_error_however_it_is_wrapped() {
    for (number, word) in [
        (Errno::NOSPC, "make space on"),
        (Errno::DQUOT, "quota"),
        (Errno::ROFS, "read-only"),
        (Errno::PERM, "chattr -i"),
        (Errno::ACCESS, "who may read and write"),
        (Errno::MFILE, "open files"),
        (Errno::NOMEM, "memory"),
        (Errno::IO, "dmesg"),
        (Errno::NXIO, "mend the log's disk"),
    ] {
        for error in forms(number) {
            let said = cure(&error, "the log's disk");
            assert!(said.contains(word), "{error:?}: {said}");
            assert_eq!(said.contains("make space"), matches!(number, Errno::NOSPC | Errno::DQUOT));
        }
    }
}

#[test]
fn an_error_of_which_only_the_kind_is_left_is_one_of_that_kind() {
    let told = |number: Errno| {
        let kind = io::Error::from(number).kind();
        cure(&io::Error::new(kind, "catalogue: something"), "it")
    };
    assert!(told(Errno::NOSPC).contains("make space"), "{}", told(Errno::NOSPC));
    assert!(told(Errno::PERM).contains("who may"), "{}", told(Errno::PERM));
    assert_eq!(told(Errno::IO), "mend it");
}
