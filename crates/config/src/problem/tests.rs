//! What a failure says to people.

use super::*;

#[test]
fn of_two_failures_both_are_told_and_the_exit_code_says_how_things_are_left() {
    let refused = Problem::new(Exit::InUse, "attaching volume v", "sh uses /home", "end it");
    let kept = Problem::new(Exit::Damaged, "giving back volume v", "no space", "make space");
    let both = refused.and(kept);
    assert_eq!(
        both.to_string(),
        "attaching volume v failed: sh uses /home; end it; then giving back volume v failed: no \
         space; make space"
    );
    assert_eq!(both.exit, Exit::Damaged);
}
