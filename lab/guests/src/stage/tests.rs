//! Promise: a disk that answers flushes without a sync is seen.
//! Never: needs a guest.

use super::Flushes;

#[test]
fn a_flush_without_a_sync_behind_it_is_seen() {
    assert!(Flushes { answered: 129, synced: 218 }.were_each_synced());
    assert!(Flushes { answered: 129, synced: 128 }.were_each_synced());
    assert!(!Flushes { answered: 129, synced: 1 }.were_each_synced());
    assert!(!Flushes { answered: 0, synced: 0 }.were_each_synced());
}
