//! Who waits for an attachment.

use super::*;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;

#[test]
fn everybody_who_waits_hears_how_an_attachment_ended() {
    let attempt = Attempt::begin();
    let why = Problem::new(Exit::Usage, "attaching volume v", "it has no home", "make it");
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| attempt.wait(|_| {}))).collect();
        attempt.end(Err(why.clone()));
        for waits in waiting {
            assert_eq!(waits.join().unwrap().unwrap_err(), why);
        }
    });
    // Nor does it matter how late somebody comes.
    assert_eq!(attempt.wait(|_| {}).unwrap_err(), why);
}

#[test]
fn an_attachment_says_what_it_waits_for() {
    let attempt = Attempt::begin();
    attempt.waits_for("its server");
    assert_eq!(attempt.text(), "attaching, for 0 s: it waits for its server");
    assert!(attempt.waited_for("its server") && !attempt.waited_for("its disks"));
}
