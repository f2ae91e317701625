//! Addresses as the kernel prints them.

use super::*;

#[test]
fn addresses_are_read_as_the_kernel_prints_them() {
    let v4 = parse_tcp("0100007F:2A39").unwrap();
    assert_eq!(v4, (IpAddr::from([127, 0, 0, 1]), 10809));
    let v6 = parse_tcp("B80D0120000000000000000001000000:0016").unwrap();
    assert_eq!(v6, ("2001:db8::1".parse().unwrap(), 22));
    for strange in ["", ":", "0100007F", "zz00007F:2A39", "0100007F:zz", "01:2A39"] {
        assert_eq!(parse_tcp(strange), None, "{strange}");
    }
}
