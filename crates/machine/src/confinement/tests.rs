//! What is in force is counted thread by thread.

use super::*;

#[test]
fn a_thread_to_whom_nothing_is_refused_is_seen() {
    let mut seen = Confined {
        process: "server".into(),
        pid: 7,
        threads: 0,
        filtered: 0,
        no_new_privileges: 0,
    };
    seen.count("Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    assert_eq!((seen.threads, seen.filtered, seen.no_new_privileges), (1, 1, 1));
    assert!(seen.to_string().ends_with("to every thread, new privileges to every thread"));
    seen.count("Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n");
    assert_eq!((seen.threads, seen.filtered, seen.no_new_privileges), (2, 1, 1));
    assert!(seen.to_string().contains("refused to 1 of 2 thread"), "{seen}");
}

#[test]
fn this_process_is_looked_at_by_its_threads() {
    let seen = Confined::look("test", std::process::id()).unwrap();
    assert!(seen.threads > 1, "the test's own and the one that started it");
    assert_eq!(Confined::look("nobody", u32::MAX), None);
}
