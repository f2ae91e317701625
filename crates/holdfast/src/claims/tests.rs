//! Claims, exhaustively: every medium, every subset of failures, with and without write-through.

use super::*;

fn subsets() -> impl Iterator<Item = Vec<Failure>> {
    let chosen = |bits: u32| {
        let named = |f: &Failure| bits & (1 << *f as u32) != 0;
        Failure::ALL.into_iter().filter(named).collect()
    };
    (0..16).map(chosen)
}

fn verdict(medium: MediumKind, must_survive: &[Failure], write_through: bool) -> Verdict {
    judge(&Facts { medium, power: PowerSource::None, must_survive, write_through }).unwrap()
}

/// What memory survives, told a second time and by hand: the code above is checked against it.
fn memory_table(medium: MediumKind) -> &'static [Failure] {
    match medium {
        MediumKind::Private => &[],
        MediumKind::Shm | MediumKind::Hugetlb | MediumKind::File => &[Failure::Process],
        MediumKind::Pmem => &[Failure::Process, Failure::Os],
    }
}

#[test]
fn every_verdict_survives_everything_that_was_asked() {
    for medium in MediumKind::ALL {
        for asked in subsets().filter(|s| !s.is_empty() && !s.contains(&Failure::Machine)) {
            for write_through in [false, true] {
                let verdict = verdict(medium, &asked, write_through);
                for failure in &asked {
                    assert!(verdict.survives.contains(failure), "{medium:?} {asked:?} {verdict:?}");
                }
            }
        }
    }
}

#[test]
fn memory_acknowledges_exactly_when_it_covers_the_list() {
    for medium in MediumKind::ALL {
        for asked in subsets().filter(|s| !s.is_empty() && !s.contains(&Failure::Machine)) {
            let covers = asked.iter().all(|f| memory_table(medium).contains(f));
            let class = verdict(medium, &asked, false).class;
            assert_eq!(class == Class::Memory, covers, "{medium:?} {asked:?}");
            assert_eq!(verdict(medium, &asked, true).class, Class::Disk);
        }
    }
}

#[test]
fn a_memory_verdict_claims_exactly_what_the_table_says() {
    for medium in MediumKind::ALL {
        let asked = memory_table(medium);
        if asked.is_empty() {
            continue;
        }
        let verdict = verdict(medium, asked, false);
        assert_eq!(verdict.survives, asked, "{medium:?}");
        assert_eq!(verdict.lost_in.len() + verdict.survives.len(), Failure::ALL.len());
    }
}

#[test]
fn the_default_list_writes_through_on_every_medium_without_a_power_source() {
    for medium in MediumKind::ALL {
        let verdict = verdict(medium, &Failure::DEFAULT, false);
        assert_eq!(verdict.class, Class::Disk, "{medium:?}");
        let power = verdict.missing.iter().find(|gap| gap.failure == Failure::Power).unwrap();
        assert!(power.asked && power.supply.contains("power source"), "{power:?}");
    }
}

#[test]
fn every_gap_says_why_and_what_would_supply_it() {
    for medium in MediumKind::ALL {
        for failure in Failure::ALL {
            if let Some((why, supply)) = memory_gap(medium, PowerSource::None, failure) {
                assert!(!why.is_empty() && !supply.is_empty());
            }
        }
    }
}

#[test]
fn what_no_class_keeps_is_refused_instead_of_claimed() {
    for medium in MediumKind::ALL {
        for asked in subsets().filter(|s| s.is_empty() || s.contains(&Failure::Machine)) {
            for write_through in [false, true] {
                let facts =
                    Facts { medium, power: PowerSource::None, must_survive: &asked, write_through };
                assert!(judge(&facts).is_err(), "{medium:?} {asked:?}");
            }
        }
    }
}

#[test]
fn the_matrix_has_a_row_for_each_medium_and_one_for_the_disk() {
    let matrix = matrix();
    assert_eq!(matrix.lines().count(), 2 + MediumKind::ALL.len() + 1);
    assert!(matrix.contains("| memory, `shm` | survives | **lost** | **lost** | **lost** |"));
    assert!(matrix.contains("| memory, `pmem` | survives | survives | **lost** | **lost** |"));
    assert!(matrix.contains("any medium | survives | survives | survives | **lost** |"));
}
