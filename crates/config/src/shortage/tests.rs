//! What passes, and what does not.

use super::*;

#[test]
fn a_lack_of_processes_descriptors_or_memory_passes_however_deep_it_lies() {
    for number in SHORT {
        let error = || io::Error::from_raw_os_error(number);
        assert!(passes(&error()), "{}", error());
        assert!(passes(&io::Error::other(error())), "{} inside another", error());
        assert!(passes(&io::Error::other(io::Error::other(error()))), "{} two below", error());
        assert!(passes(&rustix::io::Errno::from_raw_os_error(number)), "{}", error());
    }
}

#[test]
fn what_is_wrong_with_the_thing_itself_does_not_pass() {
    for number in [libc::ENOENT, libc::EACCES, libc::EIO, libc::ENOSPC, libc::ENOEXEC] {
        assert!(!passes(&io::Error::from_raw_os_error(number)), "{number}");
    }
    assert!(!passes(&io::Error::other("Resource temporarily unavailable (os error 11)")));
}
