//! What is said of a log that the server does not give.

use super::*;
use std::io;

#[test]
fn each_reason_has_the_exit_code_that_scripts_know_it_by() {
    let refused = ConnectError::Refused;
    for (error, exit) in [
        (ConnectError::Unreachable(io::ErrorKind::NotFound.into()), Exit::NotRunning),
        (refused(Status::TooManyClients), Exit::InUse),
        (refused(Status::NoService), Exit::Usage),
        (refused(Status::NotAllowed), Exit::Failed),
        (refused(Status::OtherVersion), Exit::Damaged),
        (refused(Status::NoMemory), Exit::Failed),
        (ConnectError::Protocol(HelloFault::Version { found: 9 }), Exit::Damaged),
        (ConnectError::Protocol(HelloFault::Magic), Exit::Usage),
        (ConnectError::Memory(io::ErrorKind::OutOfMemory.into()), Exit::Failed),
    ] {
        assert_eq!(advice(&OpenError::Server(error)).0, exit);
    }
}
