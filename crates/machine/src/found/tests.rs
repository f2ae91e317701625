//! Promise: memory is never called more than the kernel and a probe say of it.
//! Never: needs persistent memory: what the kernel tells is a folder of files here.

use super::*;
use crate::probe::Proof;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

const FIRMWARE: &str = "a firmware";

/// A machine: a folder as sysfs has it, and one for regions, whose file system is on a device of
/// persistent memory.
struct Machine {
    devices: TempDir,
    memory: TempDir,
}

impl Machine {
    fn with_device(at: &str) -> Machine {
        let (devices, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = devices.path().join(at);
        fs::create_dir_all(&place).unwrap();
        fs::create_dir_all(devices.path().join("dev/block")).unwrap();
        let device = fs::metadata(memory.path()).unwrap().dev();
        let number = format!("{}:{}", major(device), minor(device));
        symlink(place, devices.path().join("dev/block").join(number)).unwrap();
        Machine { devices, memory }
    }

    fn domain(self, domain: &str) -> Machine {
        let region = self.devices.path().join("devices/ndbus0/region0");
        fs::write(region.join("persistence_domain"), format!("{domain}\n")).unwrap();
        self
    }

    fn proof(&self, kept_bytes: u64) {
        let mut proof = Proof::sample(FIRMWARE);
        proof.kept_bytes = kept_bytes;
        proof.put(self.memory.path()).unwrap();
    }

    fn found(&self) -> Memory {
        behind(&self.memory.path().join("region"), self.devices.path(), FIRMWARE)
    }
}

#[test]
fn a_file_on_any_other_device_is_a_file() {
    let machine = Machine::with_device("devices/virtio0/block/vda");
    machine.proof(Proof::sample(FIRMWARE).bytes);
    assert_eq!(machine.found(), Memory::File);
}

#[test]
fn memory_of_a_region_without_a_domain_is_reserved_ram_and_needs_a_proof() {
    let machine = Machine::with_device("devices/ndbus0/region0/namespace0.0/block/pmem0");
    assert_eq!(machine.found(), Memory::Unproven);
    let bytes = Proof::sample(FIRMWARE).bytes;
    machine.proof(bytes);
    assert_eq!(machine.found(), Memory::Reserved);
    machine.proof(bytes - 1);
    assert_eq!(machine.found(), Memory::Unproven, "a byte was lost");
}

/// Any character device will do: what it is, the folder says.
#[test]
fn a_device_that_is_mapped_without_a_file_system_is_found_by_its_own_number() {
    let machine = Machine::with_device("devices/ndbus0/region0/dax0.1/dax0.0");
    let path = Path::new("/dev/null");
    let found = || behind(path, machine.devices.path(), FIRMWARE);
    assert_eq!(found(), Memory::File);
    let device = fs::metadata(path).unwrap().rdev();
    let told = machine.devices.path().join("dev/char");
    fs::create_dir_all(&told).unwrap();
    let place = machine.devices.path().join("devices/ndbus0/region0/dax0.1/dax0.0");
    symlink(place, told.join(format!("{}:{}", major(device), minor(device)))).unwrap();
    assert_eq!(found(), Memory::Unproven);
    fs::write(
        machine.devices.path().join("devices/ndbus0/region0/persistence_domain"),
        "cpu_cache",
    )
    .unwrap();
    assert_eq!(found(), Memory::Persistent);
}

#[test]
fn a_proof_says_nothing_of_another_firmware() {
    let machine = Machine::with_device("devices/ndbus0/region0/namespace0.0/block/pmem0");
    machine.proof(Proof::sample(FIRMWARE).bytes);
    let region = machine.memory.path().join("region");
    assert_eq!(behind(&region, machine.devices.path(), "a newer one"), Memory::Unproven);
}

#[test]
fn memory_whose_firmware_names_what_a_power_failure_spares_is_persistent() {
    for domain in ["memory_controller", "cpu_cache"] {
        let place = "devices/ndbus0/region0/namespace0.0/block/pmem0/pmem0p1";
        let machine = Machine::with_device(place).domain(domain);
        assert_eq!(machine.found(), Memory::Persistent, "{domain}");
    }
}
