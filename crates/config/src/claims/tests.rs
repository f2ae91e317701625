//! Claims, exhaustively: every memory, every subset of failures, with and without write-through.

use super::*;

fn subsets() -> impl Iterator<Item = Vec<Failure>> {
    let chosen = |bits: u32| {
        let named = |f: &Failure| bits & (1 << *f as u32) != 0;
        Failure::ALL.into_iter().filter(named).collect()
    };
    (0..16).map(chosen)
}

fn verdict(memory: Memory, must_survive: &[Failure], write_through: bool) -> Verdict {
    judge(&Facts { memory, power: PowerSource::None, must_survive, write_through }).unwrap()
}

fn verdict_with(power: PowerSource, memory: Memory, must_survive: &[Failure]) -> Verdict {
    judge(&Facts { memory, power, must_survive, write_through: false }).unwrap()
}

#[test]
fn a_power_source_supplies_the_power_and_nothing_else_and_only_while_it_is_armed() {
    for memory in Memory::ALL {
        for asked in subsets().filter(|s| !s.is_empty() && !s.contains(&Failure::Machine)) {
            let of = |power| verdict_with(power, memory, &asked);
            assert_eq!(of(PowerSource::Unarmed).class, of(PowerSource::None).class);
            let by_itself = memory_table(memory);
            let covers = |it: &Failure| *it == Failure::Power || by_itself.contains(it);
            let is_covered = asked.iter().all(covers);
            let armed = of(PowerSource::Armed);
            assert_eq!(armed.class == Class::Memory, is_covered, "{memory:?} {asked:?}");
            assert!(asked.iter().all(|it| armed.survives.contains(it)), "{memory:?} {asked:?}");
        }
    }
}

/// What memory survives, told a second time and by hand: the code above is checked against it.
fn memory_table(memory: Memory) -> &'static [Failure] {
    match memory {
        Memory::Private => &[],
        Memory::Shm | Memory::Hugetlb | Memory::File | Memory::Unproven => &[Failure::Process],
        Memory::Reserved => &[Failure::Process, Failure::Os],
        Memory::Persistent => &[Failure::Process, Failure::Os, Failure::Power],
    }
}

#[test]
fn every_verdict_survives_everything_that_was_asked() {
    for memory in Memory::ALL {
        for asked in subsets().filter(|s| !s.is_empty() && !s.contains(&Failure::Machine)) {
            for write_through in [false, true] {
                let verdict = verdict(memory, &asked, write_through);
                for failure in &asked {
                    assert!(verdict.survives.contains(failure), "{memory:?} {asked:?} {verdict:?}");
                }
            }
        }
    }
}

#[test]
fn memory_acknowledges_exactly_when_it_covers_the_list() {
    for memory in Memory::ALL {
        for asked in subsets().filter(|s| !s.is_empty() && !s.contains(&Failure::Machine)) {
            let covers = asked.iter().all(|f| memory_table(memory).contains(f));
            let class = verdict(memory, &asked, false).class;
            assert_eq!(class == Class::Memory, covers, "{memory:?} {asked:?}");
            assert_eq!(verdict(memory, &asked, true).class, Class::Disk);
        }
    }
}

#[test]
fn a_memory_verdict_claims_exactly_what_the_table_says() {
    for memory in Memory::ALL {
        let asked = memory_table(memory);
        if asked.is_empty() {
            continue;
        }
        let verdict = verdict(memory, asked, false);
        assert_eq!(verdict.survives, asked, "{memory:?}");
        assert_eq!(verdict.lost_in.len() + verdict.survives.len(), Failure::ALL.len());
    }
}

#[test]
fn the_default_list_writes_through_without_a_power_source_on_all_but_persistent_memory() {
    assert_eq!(verdict(Memory::Persistent, &Failure::DEFAULT, false).class, Class::Memory);
    for memory in Memory::ALL.into_iter().filter(|memory| *memory != Memory::Persistent) {
        let verdict = verdict(memory, &Failure::DEFAULT, false);
        assert_eq!(verdict.class, Class::Disk, "{memory:?}");
        let power = verdict.missing.iter().find(|gap| gap.failure == Failure::Power).unwrap();
        assert!(power.asked && power.supply.contains("power source"), "{power:?}");
    }
}

#[test]
fn every_gap_says_why_and_what_would_supply_it() {
    for memory in Memory::ALL {
        for failure in Failure::ALL {
            for power in PowerSource::ALL {
                if let Some((why, supply)) = memory_gap(memory, power, failure) {
                    assert!(!why.is_empty() && !supply.is_empty());
                }
            }
        }
    }
}

#[test]
fn reserved_memory_without_a_proof_is_worth_no_more_than_a_file() {
    let asked = [Failure::Process, Failure::Os];
    let unproven = verdict(Memory::Unproven, &asked, false);
    assert_eq!(unproven.class, Class::Disk);
    let gap = unproven.missing.iter().find(|gap| gap.failure == Failure::Os).unwrap();
    assert!(gap.asked && gap.supply.contains("region probe"), "{gap:?}");
    assert_eq!(verdict(Memory::Reserved, &asked, false).class, Class::Memory);
}

#[test]
fn what_no_class_keeps_is_refused_instead_of_claimed() {
    for memory in Memory::ALL {
        for asked in subsets().filter(|s| s.is_empty() || s.contains(&Failure::Machine)) {
            for write_through in [false, true] {
                let facts =
                    Facts { memory, power: PowerSource::None, must_survive: &asked, write_through };
                assert!(judge(&facts).is_err(), "{memory:?} {asked:?}");
            }
        }
    }
}

#[test]
fn the_matrix_has_a_row_for_each_memory_and_one_for_the_disk() {
    let matrix = matrix();
    assert_eq!(matrix.lines().count(), 2 + 2 * Memory::ALL.len() - 1 + 1);
    let armed = "| memory, `shm`, power source armed | survives | **lost** | survives | **lost** |";
    assert!(matrix.contains(armed), "{matrix}");
    assert!(matrix.contains("| memory, `shm` | survives | **lost** | **lost** | **lost** |"));
    let proved = "| memory, `pmem`: reserved RAM, proved | survives | survives | **lost** |";
    assert!(matrix.contains(proved));
    assert!(matrix.contains("any medium | survives | survives | survives | **lost** |"));
}

#[test]
fn ram_that_is_called_a_disk_is_refused_or_claimed_for_what_it_survives() {
    let ram = Storage::Ram("its log /run/log is on a tmpfs".into());
    for memory in Memory::ALL {
        for asked in subsets().filter(|s| !s.is_empty() && !s.contains(&Failure::Machine)) {
            for write_through in [false, true] {
                let verdict = verdict(memory, &asked, write_through);
                let on_disk = verdict.clone().stored_on(&Storage::Disk, &asked);
                assert_eq!(on_disk, Ok(verdict.clone()));
                match verdict.stored_on(&ram, &asked) {
                    Ok(stored) => {
                        assert_eq!(asked, [Failure::Process], "{memory:?}");
                        assert_eq!(stored.survives, [Failure::Process]);
                        assert_eq!(stored.lost_in, [Failure::Os, Failure::Power, Failure::Machine]);
                    }
                    Err(why) => {
                        assert!(asked.iter().any(|it| *it != Failure::Process), "{memory:?}");
                        assert!(why.contains("its log /run/log is on a tmpfs"), "{why}");
                    }
                }
            }
        }
    }
}
