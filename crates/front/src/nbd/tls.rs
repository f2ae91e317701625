//! TLS between a conversation and its socket.
//!
//! Promise: only TLS 1.3 is spoken; where clients need a certificate, one that another authority
//! signed is refused before a byte of NBD is heard from it.
//! Never: opens a file, waits but as the socket does, or can be given to another process: the
//! secrets of a connection end with it.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

/// Room for what is received and not deciphered yet.
const CIPHERED_BYTES: usize = 64 << 10;

/// Conversations in TLS that this process has now.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// How many connections speak TLS now. They end with this process, because their secrets do.
#[must_use]
pub fn tls_connections() -> u64 {
    OPEN.load(Ordering::Relaxed)
}

/// Counts a conversation for as long as it lasts.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Counted {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who this server is, and who may be its client. All its clients have to speak TLS.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

/// Why nobody can be served with these certificates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The certificate is no chain of certificates in PEM: the server's first, then who signed it.
    #[error("certificate: no certificate in PEM")]
    Certificate,
    /// The key is no private key in PEM.
    #[error("key: no private key in PEM")]
    Key,
    /// The certificates of those who sign clients' are none in PEM, or cannot sign.
    #[error("clients: no certificate in PEM that could sign")]
    Clients,
    /// The key is not the certificate's, or of a kind that is not known here.
    #[error("key: not the certificate's: {0}")]
    Pair(String),
}

impl Tls {
    /// A server with this certificate and key. With `clients`, only those are served whose
    /// certificate was signed by one of these. All three are the contents of PEM files.
    ///
    /// # Errors
    /// See [`TlsFault`].
    pub fn new(certificate: &[u8], key: &[u8], clients: Option<&[u8]>) -> Result<Tls, TlsFault> {
        let chain = certificates(certificate).ok_or(TlsFault::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFault::Key)?;
        let pair = |error: rustls::Error| TlsFault::Pair(error.to_string());
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(pair)?;
        let builder = match clients {
            Some(clients) => builder.with_client_cert_verifier(verifier(clients)?),
            None => builder.with_no_client_auth(),
        };
        Ok(Tls(Arc::new(builder.with_single_cert(chain, key).map_err(pair)?)))
    }

    /// The server's side of a new connection.
    pub(crate) fn channel(&self) -> io::Result<Channel> {
        let tls = ServerConnection::new(self.0.clone()).map_err(io::Error::other)?;
        let ciphered = vec![0; CIPHERED_BYTES];
        Ok(Channel { tls, ciphered, filled: 0..0, _counted: Counted::new() })
    }
}

fn verifier(clients: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(clients).ok_or(TlsFault::Clients)? {
        roots.add(certificate).map_err(|_| TlsFault::Clients)?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.build().map_err(|_| TlsFault::Clients)
}

/// All certificates of a file; `None` if there is none, or something else.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.ok().filter(|all| !all.is_empty())
}

/// One connection's TLS.
pub(crate) struct Channel {
    tls: ServerConnection,
    ciphered: Vec<u8>,
    filled: Range<usize>,
    _counted: Counted,
}

impl Channel {
    /// Receives deciphered bytes; 0 if there will be none any more.
    pub(crate) fn receive(
        &mut self,
        socket: &OwnedFd,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.filled.is_empty() {
                // A record may be shorter than what there is room for.
                let (_, bytes) = recv(socket, &mut self.ciphered[..], flags & RecvFlags::DONTWAIT)?;
                self.filled = 0..bytes;
                if bytes == 0 {
                    return Ok(0);
                }
            }
            let used = self.tls.read_tls(&mut &self.ciphered[self.filled.clone()])?;
            self.filled.start += used;
            let processed = self.tls.process_new_packets();
            // An answer to the handshake, or why there is none.
            self.pass_on(socket)?;
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Sends bytes; returns how many were taken. They are on their way once nothing
    /// [is owed](Channel::owes).
    pub(crate) fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        self.pass_on(socket)?;
        self.tls.writer().write(bytes)
    }

    /// Whether bytes that were taken are not sent.
    pub(crate) fn owes(&self) -> bool {
        self.tls.wants_write()
    }

    /// Says that nothing more will come, so that the client takes the end for one.
    pub(crate) fn end(&mut self) {
        self.tls.send_close_notify();
    }

    fn pass_on(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut Outward(socket))?;
        }
        Ok(())
    }
}

/// A socket that is written to.
struct Outward<'s>(&'s OwnedFd);

impl Write for Outward<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
