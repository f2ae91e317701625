//! Clients that shake hands as they should, but some of whose records arrive as others.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use holdfast_io::Blocks;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::certificates::Signed;
use crate::messages::choice;
use crate::random::{Random, for_seeds};
use crate::served::write_message;
use crate::tls::Setting;

/// What a client writes whose records arrive as they were sent, and what another one does.
const HONEST: u8 = 0x11;
const SPOILED: u8 = 0xee;

const BLOCK_BYTES: usize = 4096;

/// Bytes before the body of a record: a kind, a version that nobody looks at, a length.
const HEAD_BYTES: usize = 5;

/// The kind of a record that TLS 1.3 has for old boxes on the way, and leaves out.
const CHANGE_CIPHER: u8 = 20;

/// The authority's clients.
fn config(setting: &Setting) -> Arc<ClientConfig> {
    let certificate =
        |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).expect("a certificate");
    let Signed(own, key) = setting.authority.sign("client");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&setting.authority.certificate)).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate(&own)], key)
        .unwrap();
    Arc::new(config)
}

/// Chooses the disk and writes a block, in several records of which `spoil` makes others; the first
/// time it is the client's greeting alone. Waits for the end of the connection.
fn write_block(
    setting: &Setting,
    config: &Arc<ClientConfig>,
    mark: u8,
    mut spoil: impl FnMut(&mut Vec<Vec<u8>>) -> bool,
) {
    let mut socket = setting.about_to_shake_hands().stream;
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = ClientConnection::new(config.clone(), name).unwrap();
    let write = write_message(1, 0, 0, &[mark; BLOCK_BYTES]);
    for piece in [&choice(b"disk", true), &write[..1000], &write[1000..]] {
        tls.writer().write_all(piece).unwrap();
    }
    loop {
        let mut sent = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut sent).unwrap();
        }
        let mut records = records_of(&sent);
        let is_spoiled = spoil(&mut records);
        // A server that has heard enough does not hear the rest.
        let is_cut_off = socket.write_all(&records.concat()).is_err();
        if is_spoiled || is_cut_off || !tls.is_handshaking() || !hear(&mut tls, &mut socket) {
            break;
        }
    }
    // Gone already, perhaps.
    let _ = socket.shutdown(Shutdown::Write);
    hear_the_end(&mut socket);
}

/// Whether the server's side of the handshake came, as far as it goes.
fn hear(tls: &mut ClientConnection, socket: &mut TcpStream) -> bool {
    while tls.is_handshaking() {
        let heard = tls.read_tls(socket).unwrap();
        if heard == 0 || tls.process_new_packets().is_err() {
            return false;
        }
    }
    true
}

fn hear_the_end(socket: &mut TcpStream) {
    match socket.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        // A server that closes with bytes unread resets the connection.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

fn records_of(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
        let body_bytes = usize::from(u16::from_be_bytes([head[3], head[4]]));
        let (record, rest) = bytes.split_at(HEAD_BYTES + body_bytes);
        records.push(record.to_vec());
        bytes = rest;
    }
    records
}

/// Makes others of the records; none of these ways leaves all that was said to be heard.
fn spoil(records: &mut Vec<Vec<u8>>, random: &mut Random) {
    records.retain(|record| record[0] != CHANGE_CIPHER);
    let at = random.below(records.len() as u64) as usize;
    let record = &mut records[at];
    match random.below(5) {
        0 => {
            let place = 2 + random.below(record.len() as u64 - 2) as usize;
            let place = if place == 2 { 0 } else { place };
            record[place] ^= 1 << random.below(8);
        }
        1 => {
            let left_bytes = random.below(record.len() as u64) as usize;
            record.truncate(left_bytes);
            records.truncate(at + 1);
        }
        2 => record[HEAD_BYTES..].fill_with(|| random.next() as u8),
        3 if at > 0 => records.swap(at - 1, at),
        _ => drop(records.remove(at)),
    }
}

#[test]
fn nothing_is_heard_behind_a_record_that_is_not_as_it_was_sent_and_others_are_served() {
    let setting = Setting::new();
    let config = config(&setting);
    for_seeds("nothing_is_heard_behind", 150, |random| {
        let mut flights = if random.below(4) == 0 { 1 } else { 2 };
        write_block(&setting, &config, SPOILED, |records| {
            flights -= 1;
            if flights == 0 {
                spoil(records, random);
            }
            flights == 0
        });
        assert!(!setting.disk.contents().contains(&SPOILED), "a spoiled write is heard");
        write_block(&setting, &config, HONEST, |_| false);
        assert_eq!(setting.disk.contents()[..BLOCK_BYTES], [HONEST; BLOCK_BYTES]);
        setting.disk.write(&[0; BLOCK_BYTES], 0).unwrap();
    });
}
