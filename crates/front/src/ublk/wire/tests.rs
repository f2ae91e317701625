//! Numbers against those that a C compiler makes of linux/ublk_cmd.h, and structures against
//! themselves.

use super::*;

#[test]
fn commands_have_the_numbers_of_the_kernels_header() {
    assert_eq!(command::GET_INFO, 0x8020_7502);
    assert_eq!(command::ADD, 0xc020_7504);
    assert_eq!(command::END_RECOVERY, 0xc020_7511);
    assert_eq!(command::DELETE_LATER, 0x8020_7514);
    assert_eq!(FETCH, 0xc010_7520);
    assert_eq!(COMMIT_AND_FETCH, 0xc010_7521);
}

#[test]
fn what_a_device_is_comes_back_as_it_was_given() {
    let info = Info {
        queues: 2,
        depth: 64,
        state: 2,
        id: 7,
        server_pid: 1234,
        features: FEATURES,
        mark: 0x0123_4567_89ab_cdef,
    };
    assert_eq!(Info::from_bytes(&info.to_bytes()), info);
}

#[test]
fn parameters_tell_the_size_in_whole_sectors() {
    assert_eq!(sectors_of(&parameters(5 * SECTOR_BYTES + 511)), 5);
}

#[test]
fn queues_and_requests_have_places_of_their_own() {
    assert_eq!(requests_at(0, 4096), 0);
    assert_eq!(requests_at(2, 4096), 2 * 24 * 4096);
    assert_eq!(data_at(0, 0), 0x8000_0000);
    assert!(data_at(0, 1) - data_at(0, 0) >= DATA_BYTES_MAX as u64);
    assert!(data_at(1, 0) > data_at(0, u16::MAX));
}
