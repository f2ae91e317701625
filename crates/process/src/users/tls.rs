//! The files by which a front end and its clients know each other.
//!
//! Promise: they are read once, when the front end starts; one that is of no use is named with its
//! key in the configuration.
//! Never: keeps a file open, or tells what is in one.

use holdfast_config::NbdTls;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_front::nbd::Tls;
use holdfast_keeper::orders::Orders;
use std::path::Path;

/// TLS for the clients of what is ordered, if they have to speak it.
pub(crate) fn tls_of(orders: &Orders) -> Outcome<Option<Tls>> {
    let of_volume = orders.volume.as_ref().and_then(|volume| volume.nbd_tls.as_ref());
    let of_disk = orders.disk.as_ref().and_then(|disk| disk.nbd_tls.as_ref());
    let Some(files) = of_volume.or(of_disk) else { return Ok(None) };
    let problem = |why: String| {
        let what = format!("reading nbd_tls of {}", orders.whose());
        Problem::new(Exit::Usage, what, why, "correct the file, or nbd_tls in the configuration")
    };
    load(files).map(Some).map_err(problem)
}

fn load(files: &NbdTls) -> Result<Tls, String> {
    let certificate = read("certificate", &files.certificate)?;
    let key = read("key", &files.key)?;
    let clients = files.clients.as_deref().map(|path| read("clients", path)).transpose()?;
    Tls::new(&certificate, &key, clients.as_deref()).map_err(|fault| format!("nbd_tls.{fault}"))
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("nbd_tls.{key} = {path:?}: {error}"))
}
