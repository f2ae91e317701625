//! The checks of zeros.

use holdfast_core::frame::{Sealer, payload_check};
use holdfast_io::checksum::crc32c;

use super::PadChecks;

#[test]
fn the_check_of_a_pad_is_that_of_its_zeros() {
    let sealer = Sealer::new(b"identity of pads", crc32c);
    let checks = PadChecks::of(&sealer);
    for bytes in (0..8192).step_by(8) {
        let zeros = vec![0; bytes];
        assert_eq!(checks.get(bytes), Some(payload_check(&sealer, &zeros)), "{bytes} zeros");
    }
    assert_eq!((checks.get(12), checks.get(8192)), (None, None));
}
