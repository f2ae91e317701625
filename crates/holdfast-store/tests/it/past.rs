//! Backups, and stores as they were.

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_pages::RestoreError as PagesError;
use holdfast_store::Durability::Disk;
use holdfast_store::{At, BackupError, OpenError, RestoreError, Rsn, Store, restore_at};

use crate::life::contents;
use crate::model::Contents;
use crate::support::{config, machine, place, settle};

/// The keys that a store had, and since when.
type History = Vec<(Rsn, Contents)>;

/// A store on which every commit gives or takes one of a few keys.
fn history(commits: u64) -> (FakeFiles, Store, History) {
    let files = machine(1);
    let (store, _) = Store::open_at(place(&files), &config()).unwrap();
    let tree = store.tree("accounts").unwrap();
    let (mut history, mut now) = (History::new(), Contents::new());
    for at in 0..commits {
        let (key, mut one) = (vec![b'a' + (at * 7 % 19) as u8], store.begin());
        if at % 5 == 4 {
            one.delete(&tree, &key).unwrap();
            now.remove(&key);
        } else {
            one.put(&tree, &key, &[at as u8; 700]).unwrap();
            now.insert(key, vec![at as u8; 700]);
        }
        history.push((one.commit(Disk).unwrap().at, now.clone()));
        if at % 8 == 0 {
            settle(&store);
        }
    }
    (files, store, history)
}

/// What is found where `from` was restored as it was then.
fn restored(from: &FakeFiles, at: At) -> Result<Contents, RestoreError> {
    let to = machine(2);
    restore_at(&place(from), at, &place(&to), &config(), &mut |_| ())?;
    let (store, _) = Store::open_at(place(&to), &config()).expect("what is restored opens");
    let tree = store.tree("accounts").expect("a tree");
    let found = contents(&store, &tree).expect("pages");
    store.check().expect("trees are sound");
    Ok(found)
}

#[test]
fn a_store_is_restored_as_it_was_at_any_commit() {
    let (files, store, history) = history(60);
    let mut running = store.begin();
    running.put(&store.tree("accounts").unwrap(), b"never", b"").unwrap();
    store.sync().unwrap();
    std::mem::forget(running);
    store.close().unwrap();
    for (at, wanted) in &history {
        let found = restored(&files, At::Rsn(*at)).unwrap();
        assert!(found == *wanted, "at {at}");
    }
    assert!(restored(&files, At::End).unwrap() == history.last().unwrap().1);
}

#[test]
fn a_backup_is_what_was_committed_when_it_was_made_or_brought_forward() {
    let (_, store, history) = history(40);
    let (backup, tree) = (machine(3), store.tree("accounts").unwrap());
    store.back_up_to(&place(&backup), &mut |_| ()).unwrap();
    let mut more = store.begin();
    more.put(&tree, b"z", b"more").unwrap();
    more.commit(Disk).unwrap();
    let mut wanted = history.last().unwrap().1.clone();
    assert!(restored(&backup, At::End).unwrap() == wanted);
    wanted.insert(b"z".to_vec(), b"more".to_vec());
    store.forward_backup_at(&place(&backup)).unwrap();
    assert!(restored(&backup, At::End).unwrap() == wanted);
}

#[test]
fn a_restore_that_is_cut_short_leaves_no_store_and_is_made_again_elsewhere() {
    let (files, store, history) = history(40);
    store.close().unwrap();
    let whole = machine(2);
    let before = whole.operations();
    restore_at(&place(&files), At::End, &place(&whole), &config(), &mut |_| ()).unwrap();
    for cut in before + 1..=whole.operations() {
        let to = machine(2);
        to.cut_power_at(cut);
        restore_at(&place(&files), At::End, &place(&to), &config(), &mut |_| ())
            .expect_err("the power is cut");
        for mood in [Mood::LoseAll, Mood::KeepAll] {
            let to = to.after_power_cut_in(mood, cut);
            let Ok((store, recovery)) = Store::open_at(place(&to), &config()) else { continue };
            // Before anything, or after everything.
            let tree = store.tree("accounts").unwrap();
            let found = contents(&store, &tree).unwrap();
            let wanted = if recovery.is_new { Contents::new() } else { history[39].1.clone() };
            assert!(found == wanted, "cut {cut} {mood:?}: {recovery:?}");
        }
    }
}

#[test]
fn what_cannot_be_restored_is_told() {
    let (files, store, history) = history(20);
    let backup = machine(3);
    store.back_up_to(&place(&backup), &mut |_| ()).unwrap();
    let again = store.back_up_to(&place(&backup), &mut |_| ());
    assert!(matches!(again, Err(BackupError::Pages(_))), "{again:?}");
    let over = store.back_up_to(&place(&files), &mut |_| ());
    assert!(matches!(over, Err(BackupError::IsAStore)), "{over:?}");
    let nothing = store.forward_backup_at(&place(&machine(4)));
    assert!(matches!(nothing, Err(BackupError::OtherStore)), "{nothing:?}");
    store.close().unwrap();
    let opened = Store::open_at(place(&backup), &config()).map(drop);
    assert!(matches!(opened, Err(OpenError::NotAStore)), "{opened:?}");
    let behind = Rsn(history[19].0.get() + 1_000_000);
    let outside = restored(&files, At::Rsn(behind));
    assert!(matches!(outside, Err(RestoreError::Pages(PagesError::Outside { .. }))), "{outside:?}");
    let none = restored(&machine(5), At::End);
    assert!(matches!(none, Err(RestoreError::NoStore)), "{none:?}");
    let onto = restore_at(&place(&backup), At::End, &place(&files), &config(), &mut |_| ());
    assert!(matches!(onto, Err(RestoreError::NotEmpty)), "{onto:?}");
}
