//! Certificates for servers and their clients, made anew for a test.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// Somebody who signs.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// In PEM.
    pub(crate) certificate: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Signed(pub(crate) String, pub(crate) String);

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = named(name, vec![]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    pub(crate) fn sign(&self, name: &str) -> Signed {
        let params = named(name, vec!["localhost".into(), "127.0.0.1".into()]);
        let key = KeyPair::generate().unwrap();
        Signed(params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// What libnbd and QEMU look for in a directory.
    pub(crate) fn client_files(&self, trusted: &Authority) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let Signed(certificate, key) = self.sign("client");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        put("ca-cert.pem", &trusted.certificate);
        put("client-cert.pem", &certificate);
        put("client-key.pem", &key);
        folder
    }
}

fn named(name: &str, hosts: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
