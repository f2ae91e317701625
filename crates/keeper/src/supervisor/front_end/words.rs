//! What is said of front ends.
//!
//! Promise: every problem comes with the command that mends it.
//! Never: looks at a front end.

use crate::orders::Orders;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_config::shortage::LACKING;
use std::process::ExitStatus;

/// What is replaced, for people.
pub(super) fn front_end_of(whose: &str) -> String {
    format!("the front end of {whose}")
}

/// That a front end died.
pub(super) fn died_text(orders: &Orders, status: ExitStatus) -> Problem {
    let what = format!("serving {}", orders.whose());
    let why = format!("its front end died ({status})");
    let again = start_again(orders);
    let remedy = format!("see the keeper's log for its reason, and mend that; then `{again}`");
    let passes = status.code() == Some(LACKING);
    Problem { passes, ..Problem::new(Exit::Failed, what, why, remedy) }
}

/// The command that starts front ends once more.
pub(super) fn start_again(orders: &Orders) -> String {
    match orders.volume {
        Some(_) => format!("holdfast mount {}", orders.name),
        None => format!("holdfast upgrade disk {}", orders.name),
    }
}

/// The problem of something that programs go on waiting for, with what ends that.
pub(super) fn still_waited_for(orders: &Orders, problem: Problem) -> Problem {
    let end = match orders.volume {
        Some(_) => format!("holdfast umount {} --force", orders.name),
        None => "holdfast shutdown".to_owned(),
    };
    let (again, remedy) = (start_again(orders), problem.remedy);
    let remedy = format!(
        "{remedy}. Programs that use it wait until it is mended and `{again}` has started it, or \
         until `{end}` has them hear an error; memory and log are kept either way"
    );
    Problem { remedy, ..problem }
}
