//! A reader that shares no code with the log says what must be there after a crash, before the log
//! says it.

use std::path::Path;

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_io::{Files, OpenHow};
use holdfast_verifier::{Directory, Found, look};

use crate::device::at_every_power_cut;
use crate::power::life;
use crate::support::{
    Model, contents, new_log, open_with, region, replay, seeds, with_a_lost_write,
};

/// Every file of a disk, read from a copy: reading counts as work of the disk.
fn directory(files: &FakeFiles) -> Directory {
    let copy = files.after_power_cut_in(Mood::KeepAll, 0);
    let names = copy.read_dir(Path::new("")).expect("the disk is sound");
    let read = |name: &[u8]| {
        let name = String::from_utf8(name.to_vec()).expect("the log's names are text");
        let file = copy.open(Path::new(&name), OpenHow::default()).expect("the disk is sound");
        let size_bytes = file.metadata().expect("the disk is sound").size_bytes;
        let mut bytes = vec![0; size_bytes as usize];
        let read_bytes = file.read_full_at(&mut bytes, 0).expect("the disk is sound");
        assert_eq!(read_bytes, bytes.len());
        (name, bytes)
    };
    names.iter().map(|entry| read(&entry.name)).collect()
}

/// Why what was found is not what the model has.
fn fault(found: &Found, model: &Model) -> Option<String> {
    if let Some(at) = found.damaged_at() {
        return Some(format!("damaged at {at}"));
    }
    if found.end < model.durable {
        return Some(format!("it ends at {}, durable was {}", found.end, model.durable));
    }
    if found.first > model.marked {
        return Some(format!("needed from {}, marked was {}", found.first, model.marked));
    }
    let start = model.puts.partition_point(|put| put.lsn.get() < found.first);
    let mut expected = model.puts[start..].iter();
    let wrong = found.data().find(|frame| {
        let put = expected.next();
        put.is_none_or(|put| put.lsn.get() != frame.lsn || put.payload != frame.payload)
    });
    let missing = expected.find(|put| put.end.get() <= model.durable);
    let wrong = wrong.map(|frame| format!("the frame at {} was not put there", frame.lsn));
    wrong.or(missing.map(|put| format!("the durable frame at {} is missing", put.lsn)))
}

/// What the log makes of a disk has to be what the second reader found there.
fn agree(files: &FakeFiles, found: &Found) {
    let copy = files.after_power_cut_in(Mood::KeepAll, 0);
    let (log, _) = open_with(&copy, region()).expect("the second reader could read it");
    let released = log.marks().released.get();
    let of_log: Vec<_> =
        contents(&log).into_iter().map(|put| (put.lsn.get(), put.payload)).collect();
    let data = found.data().filter(|frame| frame.lsn >= released);
    let found: Vec<_> = data.map(|frame| (frame.lsn, frame.payload.clone())).collect();
    assert_eq!(of_log, found);
}

/// Has a disk read by the second reader, then by the log.
fn compare(files: &FakeFiles, model: &Model) -> Result<(), String> {
    match look(&directory(files)) {
        // A log that was not made wholly has nothing in it.
        Err(_) if model.puts.is_empty() => Ok(()),
        Err(why) => Err(why),
        Ok(found) => match fault(&found, model) {
            Some(why) => Err(why),
            None => {
                agree(files, &found);
                Ok(())
            }
        },
    }
}

#[test]
fn a_second_reader_finds_what_was_durable_after_several_power_cuts_in_a_row() {
    let mut images = 0;
    for seed in seeds(150) {
        let mut random = Random::new(seed);
        let (mut files, mut model) = (FakeFiles::new(seed), Model::default());
        for _ in 0..6 {
            files.set_sectors(if random.chance(50) { Sectors::Garbage } else { Sectors::Whole });
            files.cut_power_at(files.operations() + 1 + random.below(400));
            let ended = life(&files, &mut model, random.any(), 200);
            assert!(ended.err().is_none_or(|error| error.is_power_cut()), "seed {seed}");
            files = files.after_power_cut(random.any());
            let compared = compare(&files, &model);
            compared.unwrap_or_else(|why| {
                panic!("{why}; {}", replay("several_power_cuts_in_a_row", seed))
            });
            images += 1;
        }
    }
    println!("{images} images read twice");
}

#[test]
fn a_second_reader_finds_what_was_durable_after_a_power_cut_at_any_io_and_the_log_agrees() {
    let mut images = 0;
    for seed in seeds(8) {
        println!("{}", replay("a_second_reader", seed));
        let live = |files: &FakeFiles, model: &mut Model| {
            let ended = life(files, model, seed, 60);
            let failure = ended.err().inspect(|error| assert!(error.is_power_cut(), "{error:?}"));
            failure.is_none().then_some(())
        };
        images += at_every_power_cut(seed, live, |image, model, cut| {
            compare(image, model).unwrap_or_else(|why| panic!("cut {cut}: {why}"));
            Some(())
        });
    }
    println!("{images} images read twice");
}

#[test]
fn the_second_reader_notices_a_write_that_was_acknowledged_and_lost() {
    for lost in 0..4 {
        let (files, model) = with_a_lost_write(lost);
        let found = look(&directory(&files)).expect("the catalogue is whole");
        assert!(fault(&found, &model).is_some(), "lost write {lost} was not noticed");
    }
}

#[test]
fn the_second_reader_notices_each_bit_of_what_is_durable() {
    let (files, _region, log) = new_log(1);
    let mut model = Model::default();
    for _ in 0..4 {
        model.put(&log, 300).expect("there is room");
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    model.note(&log);
    let whole = directory(&files);
    let found = look(&whole).expect("nothing is wrong yet");
    assert_eq!(fault(&found, &model), None);
    let durable_bytes = model.puts[3].end.get();
    for bit in (0..durable_bytes * 8).step_by(7) {
        let mut changed = whole.clone();
        let file = changed.get_mut("segment-00000000").expect("the log has a first segment");
        file[4096 + (bit / 8) as usize] ^= 1 << (bit % 8);
        let seen = look(&changed).expect("the catalogue is whole");
        let told = fault(&seen, &model);
        // What lies behind a payload, and in what nobody reads again, is all that may differ.
        assert!(told.is_some() || seen.data().eq(found.data()), "bit {bit}");
    }
}

#[test]
fn whatever_bytes_there_are_the_second_reader_ends() {
    let (files, _region, log) = new_log(3);
    let mut model = Model::default();
    model.put(&log, 3000).expect("there is room");
    log.commit(log.marks().tail).expect("the disk is sound");
    let whole = directory(&files);
    for (name, bytes) in &whole {
        for at in (0..bytes.len().min(8192)).step_by(3) {
            for byte in [0, 0x7F, 0xFF] {
                let mut changed = whole.clone();
                changed.get_mut(name).expect("it was there")[at] = byte;
                let _any = look(&changed);
            }
        }
        for kept in (0..bytes.len().min(8192)).step_by(97) {
            let mut short = whole.clone();
            short.get_mut(name).expect("it was there").truncate(kept);
            let _any = look(&short);
        }
    }
}
