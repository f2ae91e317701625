//! What status prints of how clients of NBD have to speak.
//!
//! Promise: it holds of every client that is served: none is asked for less.
//! Never: looks at a connection, or at a certificate.

use holdfast_config::NbdTls;
use serde::{Deserialize, Serialize};

/// What clients of NBD have to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NbdTlsStatus {
    /// TLS.
    Required,
    /// TLS, with a certificate that a known authority signed.
    RequiredWithCertificate,
}

impl NbdTlsStatus {
    /// None where clients speak in the clear, or where there is no NBD.
    pub(super) fn of(tls: Option<&NbdTls>) -> Option<NbdTlsStatus> {
        let has_authority = tls?.clients.is_some();
        Some(if has_authority { Self::RequiredWithCertificate } else { Self::Required })
    }

    /// For people.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Required => "required of every client",
            Self::RequiredWithCertificate => "required of every client, with a certificate",
        }
    }
}
