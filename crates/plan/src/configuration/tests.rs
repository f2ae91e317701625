//! What can be simulated, and what is made of it when it is large.

use super::*;
use crate::paper::Named;

fn refused(change: impl Fn(&mut Configuration, &mut Mix)) -> ConfigurationFault {
    let mut configuration = Named::LargeDurable.configuration();
    let Load::Mix(mut mix) = configuration.load else { panic!("the paper has no traces") };
    change(&mut configuration, &mut mix);
    Configuration { load: Load::Mix(mix), ..configuration }.check().unwrap_err()
}

#[test]
fn the_papers_configurations_can_be_simulated_and_have_its_sizes() {
    let sizes = Named::ALL.map(|named| {
        let configuration = named.configuration();
        assert_eq!(configuration.check(), Ok(()));
        (configuration.conventional_pages(), configuration.durable_pages)
    });
    assert_eq!(sizes, [(128_000, 0), (64_000, 64_000), (128_000, 0), (76_800, 51_200)]);
}

#[test]
fn a_page_costs_what_the_papers_numbers_say() {
    let machine = Machine::PAPER;
    assert_eq!((machine.disk_page_cycles(), machine.durable_page_cycles()), (32_768.0, 4096.0));
    assert_eq!(machine.seconds(1.65e9), 16.5);
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    assert_eq!(
        refused(|all, _| all.durable_pages = all.memory_pages),
        ConfigurationFault::NoConventionalMemory
    );
    assert_eq!(refused(|_, mix| mix.database_pages = 1), ConfigurationFault::TooFewPages(1));
    assert_eq!(refused(|_, mix| mix.hot_pages = 0.0), ConfigurationFault::Part("hot pages", 0.0));
    assert_eq!(
        refused(|_, mix| mix.hot_requests = 1.0),
        ConfigurationFault::Part("hot requests", 1.0)
    );
    assert_eq!(refused(|_, mix| mix.writes = 1.5), ConfigurationFault::Part("writes", 1.5));
    assert!(matches!(refused(|_, mix| mix.writes = f64::NAN), ConfigurationFault::Part(..)));
    assert_eq!(
        refused(|all, _| all.machine.disk_bytes_per_s = 0.0),
        ConfigurationFault::Rate("disk in bytes a second", 0.0)
    );
    assert_eq!(
        refused(|all, _| all.machine.disk_bytes_per_s = 200e6),
        ConfigurationFault::SlowDurable
    );
    assert!(matches!(
        refused(|all, _| all.machine.clock_hz = f64::INFINITY),
        ConfigurationFault::Rate("clock in hertz", _)
    ));
    assert!(matches!(
        refused(|all, _| all.machine.page_bytes = u64::MAX),
        ConfigurationFault::Rate("page in bytes", _)
    ));
}

#[test]
fn more_pages_than_can_be_counted_with_are_refused() {
    let most = 1 << 48;
    assert_eq!(
        refused(|all, _| all.memory_pages = most + 1),
        ConfigurationFault::TooManyPages(most + 1)
    );
    assert_eq!(
        refused(|_, mix| mix.database_pages = u64::MAX),
        ConfigurationFault::TooManyPages(u64::MAX)
    );
    let huge = Configuration {
        memory_pages: most,
        durable_pages: most / 2,
        load: Load::Mix(Mix::paper(most)),
        ..Named::Large.configuration()
    };
    assert_eq!(huge.check(), Ok(()));
    let (small, _) = huge.scaled(1000);
    assert_eq!((small.conventional_pages(), small.durable_pages), (500, 500));
}

#[test]
fn intervals_may_be_long_or_as_long_as_the_trace_but_not_endless() {
    let large = Named::Large.configuration();
    assert_eq!(large.check_interval(256_000 * 256), Ok(()));
    assert_eq!(
        large.check_interval(u64::MAX),
        Err(ConfigurationFault::LongInterval(u64::MAX, 65_536_000))
    );
    let trace = Trace::read("r 1\nw 2\n".repeat(1000).as_bytes()).unwrap();
    let replayed = Configuration { load: Load::Trace(Arc::new(trace)), ..large };
    assert_eq!(replayed.check_interval(2000), Ok(()));
    assert_eq!(replayed.check_interval(2001), Err(ConfigurationFault::LongInterval(2001, 2000)));
}

#[test]
fn a_large_database_is_made_smaller_in_all_its_parts_alike() {
    let (small, factor) = Named::LargeDurable.configuration().scaled(25_600);
    assert_eq!(factor, 10.0);
    assert_eq!(small.load.database_pages(), 25_600);
    assert_eq!((small.conventional_pages(), small.durable_pages), (7680, 5120));
    let (same, factor) = Named::LargeDurable.configuration().scaled(256_000);
    assert_eq!((same, factor), (Named::LargeDurable.configuration(), 1.0));
}

#[test]
fn memory_without_pages_to_hold_is_left_out() {
    let large = Configuration { memory_pages: 1 << 60, ..Named::SmallDurable.configuration() };
    let (small, _) = large.scaled(64_000);
    assert_eq!((small.conventional_pages(), small.durable_pages), (64_000, 64_000));
}
